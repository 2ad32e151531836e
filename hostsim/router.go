package hostsim

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// router is the end of the request side: it opens the upstream exchange when the headers leave the last filter, and
// not before, so that a refused request never reaches an upstream.
type router struct {
	s        *stream
	flow     *gate // of the request side
	stop     context.CancelFunc
	up       *uplink
	tail     http.Header
	began    bool
	ended    bool
	http1    bool
	declared int64
	written  int64
	wire     atomic.Int64
	conn     atomic.Value // string
}

const upstreamBroke = "upstream connect error or disconnect/reset before headers. reset reason: "

func (r *router) headers(head *fields, end bool) {
	s := r.s
	if r.began {
		s.w.host.violate("request headers reach the upstream twice")
		return
	}
	r.began, r.ended = true, end
	name, ok := s.listener.route(head)
	if !ok {
		s.localReply(reply{code: 404, details: "route_not_found", flags: flagNoRoute})
		return
	}
	s.cluster = name
	c := s.w.host.clusters[name]
	if c == nil {
		s.localReply(reply{code: 503, details: "cluster_not_found", flags: flagNoCluster})
		return
	}
	if c.base == nil {
		s.localReply(reply{code: 503, body: []byte("no healthy upstream"), details: "no_healthy_upstream", flags: flagNoHealthyUpstream})
		return
	}
	r.http1 = !c.http2
	ctx, stop := context.WithCancel(s.w.host.ctx)
	r.stop = stop
	req := newRequest(c, head)
	r.declared = -1
	if v, ok := head.get("content-length"); ok {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 0 {
			r.lengthMismatch("request leaves with content-length %q", v)
			return
		}
		r.declared = n
	}
	if end {
		if r.declared > 0 {
			r.lengthMismatch("request without a body leaves with content-length %d", r.declared)
			return
		}
	} else {
		r.up = newUplink(r.flow)
		r.tail = http.Header{}
		// HTTP/2 sends only trailers that were announced.
		for _, name := range s.trailerNames {
			r.tail[name] = nil
		}
		req.Body, req.ContentLength, req.Trailer = r.up, r.declared, r.tail
		if r.declared == 0 {
			req.Body, req.Trailer = http.NoBody, nil
		}
	}
	trace := &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) { r.conn.Store(i.Conn.RemoteAddr().String()) },
		WroteHeaderField: func(name string, values []string) {
			for _, v := range values {
				r.wire.Add(int64(len(name) + len(v) + 4))
			}
		},
	}
	h := s.w.host
	h.running.Add(1)
	go func() {
		defer h.running.Done()
		defer stop()
		r.exchange(c, req.WithContext(httptrace.WithClientTrace(ctx, trace)))
	}()
}

// exchange runs in its own goroutine: the round trip, then the body, chunk by chunk as it comes.
func (r *router) exchange(c *cluster, req *http.Request) {
	s := r.s
	flow := s.paths[response].flow
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		f := faultBefore(err)
		s.w.post(func() { r.failed(f) })
		return
	}
	defer resp.Body.Close()
	head := responseHead(resp)
	end := resp.Body == http.NoBody || resp.ContentLength == 0 || req.Method == http.MethodHead ||
		resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
	s.w.post(func() {
		if addr, ok := r.conn.Load().(string); ok {
			s.upstream = addr
		}
		s.responseHeaders(head, end)
	})
	if end {
		return
	}
	buf := make([]byte, 64<<10)
	if c.http2 {
		buf = buf[:http2Frame]
	}
	for flow.wait() {
		n, err := resp.Body.Read(buf)
		last := err == io.EOF && c.http2 && len(resp.Trailer) == 0
		if n > 0 || last {
			chunk := append([]byte(nil), buf[:n]...)
			flow.add(n)
			s.w.post(func() {
				flow.add(-n)
				s.responseData(chunk, last)
			})
		}
		switch {
		case last:
			return
		case err == io.EOF:
			if len(resp.Trailer) > 0 {
				tail := lowerFields(resp.Trailer)
				s.w.post(func() { s.responseTrailers(tail) })
			} else {
				s.w.post(func() { s.responseData(nil, true) })
			}
			return
		case err != nil:
			f := faultAfter(err)
			s.w.post(func() { s.upstreamReset(f) })
			return
		}
	}
}

// fault is how an upstream exchange broke, in Envoy's words.
type fault struct {
	reason, more string // more goes into the details alone
	flag         uint64
}

func (f fault) code() string { return strings.ReplaceAll(f.reason+f.more, " ", "_") }

var (
	faultClosed   = fault{reason: "connection termination", flag: flagUpstreamClosed}
	faultReset    = fault{reason: "remote reset", flag: flagUpstreamReset}
	faultProtocol = fault{reason: "protocol error", flag: flagUpstreamProtocol}
	faultConnect  = fault{reason: "remote connection failure", flag: flagUpstreamConnect}
)

// streamError tells an RST_STREAM from other errors: net/http keeps the type to itself.
func streamError(err error) bool { return strings.HasPrefix(err.Error(), "stream error: ") }

// faultBefore names an error that came instead of a response.
func faultBefore(err error) fault {
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial":
		f := faultConnect
		if errors.Is(err, syscall.ECONNREFUSED) {
			f.more = "|delayed connect error: Connection refused"
		}
		return f
	case streamError(err):
		return faultReset
	}
	return faultClosed
}

// faultAfter names an error in the middle of a body: to Envoy's HTTP/1.1 parser an early end is a protocol error.
func faultAfter(err error) fault {
	switch {
	case streamError(err):
		return faultReset
	case errors.Is(err, io.ErrUnexpectedEOF):
		return faultProtocol
	}
	return faultClosed
}

func (r *router) failed(f fault) {
	if r.stop == nil {
		return // cancelled by us
	}
	r.s.localReply(reply{code: 503, body: []byte(upstreamBroke + f.reason), flags: f.flag,
		details: "upstream_reset_before_response_started{" + f.code() + "}"})
}

func (r *router) data(d *body, end bool) {
	b := d.b
	d.b = nil
	if r.ended {
		if len(b) > 0 {
			r.s.w.host.violate("%d bytes of a request body come after its end and are lost", len(b))
		} else if end {
			r.s.w.host.violate("request ends twice")
		}
		return
	}
	if r.up == nil {
		return // refused by the router itself
	}
	r.written += int64(len(b))
	if r.declared >= 0 && r.written > r.declared {
		// On a pooled HTTP/1.1 connection the rest would begin the next request: request smuggling.
		r.lengthMismatch("request body of %d bytes leaves under a content-length of %d", r.written, r.declared)
		return
	}
	if len(b) > 0 {
		r.up.push(b)
	}
	if end {
		r.finish()
	}
}

func (r *router) trailers(tail *fields) {
	if r.ended {
		r.s.w.host.violate("request ends twice: trailers after the end")
		return
	}
	if r.up == nil {
		return
	}
	target := r.tail
	r.up.atEnd = func() {
		for _, t := range tail.list {
			name := http.CanonicalHeaderKey(t[0])
			target[name] = append(target[name], t[1])
		}
	}
	r.finish()
}

func (r *router) finish() {
	if r.declared >= 0 && r.written < r.declared {
		// A real upstream would wait for the rest until the client leaves.
		r.lengthMismatch("request body of %d bytes leaves under a content-length of %d", r.written, r.declared)
		return
	}
	r.ended = true
	r.up.end()
}

// lengthMismatch fails a request that would corrupt or hang the upstream connection.
func (r *router) lengthMismatch(format string, args ...any) {
	r.s.w.host.violate(format, args...)
	r.s.localReply(reply{code: 502, body: []byte("hostsim: content-length and body differ"), details: "content_length_mismatch", flags: flagUpstreamReset})
}

// cancel ends the upstream exchange, whatever it is at.
func (r *router) cancel() {
	if r.stop == nil {
		return
	}
	stop := r.stop
	r.stop = nil
	if r.up != nil && !r.ended {
		r.up.abort(context.Canceled)
	}
	if !r.s.paths[response].complete || !r.ended {
		stop()
	}
}

// wireBytes is what was sent upstream: nothing, or about the size of the head and the body.
func (r *router) wireBytes() int64 {
	n := r.wire.Load()
	if n > 0 {
		n += r.written
	}
	return n
}

func newUplink(flow *gate) *uplink {
	u := &uplink{flow: flow}
	u.more.L = &u.mu
	return u
}

func (u *uplink) change(f func()) {
	u.mu.Lock()
	f()
	u.more.Broadcast()
	u.mu.Unlock()
}

func (u *uplink) push(b []byte) {
	u.flow.add(len(b))
	u.change(func() { u.chunks = append(u.chunks, b) })
}

func (u *uplink) end() { u.change(func() { u.ended = true }) }

func (u *uplink) abort(err error) {
	u.change(func() {
		if u.stopped == nil {
			u.stopped = err
		}
	})
}

// Read hands on what has come, waiting for at least one byte.
func (u *uplink) Read(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.chunks) == 0 && !u.ended && u.stopped == nil {
		u.more.Wait()
	}
	switch {
	case u.stopped != nil:
		return 0, u.stopped
	case len(u.chunks) > 0:
		n := copy(p, u.chunks[0])
		if u.chunks[0] = u.chunks[0][n:]; len(u.chunks[0]) == 0 {
			u.chunks[0] = nil
			u.chunks = u.chunks[1:]
		}
		u.flow.add(-n)
		return n, nil
	}
	if u.atEnd != nil {
		u.atEnd()
		u.atEnd = nil
	}
	return 0, io.EOF
}

// Close is called by the transport when it wants no more.
func (u *uplink) Close() error {
	u.abort(io.ErrClosedPipe)
	return nil
}

// cluster is an upstream as the host uses it.
type cluster struct {
	name      string
	base      *url.URL // nil: no healthy host
	http2     bool
	transport *http.Transport
}

func newCluster(name string, o Cluster) (*cluster, error) {
	c := &cluster{name: name, http2: o.HTTP2}
	if o.URL == "" {
		return c, nil
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return nil, errors.New("cluster " + strconv.Quote(name) + ": want http://host:port, got " + strconv.Quote(o.URL))
	}
	c.base = u
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!o.HTTP2)
	protocols.SetUnencryptedHTTP2(o.HTTP2)
	c.transport = &http.Transport{
		DisableCompression:  true,
		Protocols:           protocols,
		MaxIdleConnsPerHost: 64,
		DialContext:         (&net.Dialer{}).DialContext,
	}
	return c, nil
}

// newRequest makes an upstream request of a header map, without a body.
func newRequest(c *cluster, head *fields) *http.Request {
	path := head.value(":path")
	target := &url.URL{Scheme: "http", Host: c.base.Host, Opaque: path}
	if strings.HasPrefix(path, "//") || !strings.HasPrefix(path, "/") {
		if u, err := url.ParseRequestURI(path); err == nil {
			target.Opaque, target.Path, target.RawPath, target.RawQuery = "", u.Path, u.RawPath, u.RawQuery
		}
	}
	req := &http.Request{
		Method: head.value(":method"), URL: target, Host: head.value(":authority"), Header: http.Header{},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	for _, h := range head.list {
		if strings.HasPrefix(h[0], ":") || hopByHop[h[0]] || h[0] == "content-length" || h[0] == "host" {
			continue
		}
		name := http.CanonicalHeaderKey(h[0])
		req.Header[name] = append(req.Header[name], h[1])
	}
	if _, ok := req.Header["User-Agent"]; !ok {
		req.Header["User-Agent"] = []string{""} // net/http would name itself
	}
	return req
}

func responseHead(resp *http.Response) *fields {
	head := &fields{list: [][2]string{{":status", strconv.Itoa(resp.StatusCode)}}}
	for _, h := range lowerFields(resp.Header).list {
		if !hopByHop[h[0]] {
			head.list = append(head.list, h)
		}
	}
	return head
}

// lowerFields orders a header by name: net/http has lost the order in which it came.
func lowerFields(h http.Header) *fields {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	sort.Strings(names)
	f := &fields{}
	for _, name := range names {
		for _, v := range h[name] {
			f.add(name, v)
		}
	}
	return f
}
