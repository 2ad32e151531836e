package hostsim

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// listener is one door: a server, its chain and its routes.
type listener struct {
	host        *Host
	name        string
	network     []*plugin
	plugins     []*plugin
	routes      []Route
	bufferLimit int
	jwt         *jwtCheck
	tls         *tls.Config // nil without
	format      []logPart
	server      *http.Server
	net         net.Listener

	mu    sync.Mutex
	lines []string
}

// connection is one downstream connection: it belongs to one worker.
type connection struct {
	worker *worker
	id     uint64
	remote string
	local  string
	broken atomic.Bool // its end has been read
}

type connectionKey struct{}

// watchedListener gives connections that remember that they are over, behind the listener's network filters.
type watchedListener struct {
	net.Listener
	l *listener
}

type watchedConn struct {
	net.Conn
	c connection
}

func (l watchedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if l.l.tls != nil { // the server sees what it carries, and knows HTTP/2 by its preface
		c = tls.Server(c, l.l.tls)
	}
	watched := &watchedConn{Conn: c}
	if len(l.l.network) > 0 {
		watched.Conn = &network{Conn: c, l: l.l, c: &watched.c, state: map[string][]byte{}}
	}
	return watched, nil
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.c.broken.Store(true)
	}
	return n, err
}

func (l *listener) serve() {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	l.server = &http.Server{
		Handler:   l,
		Protocols: protocols,
		BaseContext: func(net.Listener) context.Context {
			return l.host.ctx
		},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			id := l.host.nextConnection.Add(1)
			w := l.host.workers[int((id-1)%uint64(len(l.host.workers)))]
			made := &c.(*watchedConn).c
			made.worker, made.id = w, id
			made.remote, made.local = c.RemoteAddr().String(), c.LocalAddr().String()
			if n, ok := c.(*watchedConn).Conn.(*network); ok {
				w.run(n.open)
			}
			return context.WithValue(ctx, connectionKey{}, made)
		},
		ErrorLog: l.host.serverLog,
	}
	l.host.running.Add(1)
	go func() {
		defer l.host.running.Done()
		_ = l.server.Serve(watchedListener{l.net, l}) // ends with the listener
	}()
}

func (l *listener) route(head *fields) (cluster string, ok bool) {
	for _, r := range l.routes {
		if r.Header == "" {
			return r.Cluster, true
		}
		if v, found := head.get(r.Header); found && v == r.Value {
			return r.Cluster, true
		}
	}
	return "", false
}

// ServeHTTP is one exchange: a goroutine reads the body for the worker, this one writes what the worker decides.
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.host.running.Add(1)
	defer l.host.running.Done()
	c := r.Context().Value(connectionKey{}).(*connection)
	http1 := r.ProtoMajor == 1
	control := http.NewResponseController(w)
	if http1 {
		// The response may begin while the body still comes.
		_ = control.EnableFullDuplex()
	}
	scheme := "http"
	if l.tls != nil {
		scheme = "https"
	}
	s := newStream(l, c, requestHead(r, scheme), http1)
	s.trailerNames = trailerNames(r.Trailer)
	end := r.ContentLength == 0
	if !c.worker.post(func() { s.begin(end) }) {
		panic(http.ErrAbortHandler)
	}
	leave := context.AfterFunc(r.Context(), func() { c.worker.post(s.gone) })
	defer leave()
	var finished atomic.Bool
	read := make(chan struct{})
	if end {
		close(read)
		finished.Store(true)
	} else {
		go func() {
			defer close(read)
			finished.Store(readBody(s, r))
		}()
	}
	complete := writeResponse(s, w, control)
	if !finished.Load() {
		// Wake the reader: the request must not be read after this function.
		if http1 {
			_ = control.SetReadDeadline(time.Unix(1, 0))
		} else {
			_ = r.Body.Close()
		}
	}
	<-read
	if !complete || (http1 && !finished.Load() && !s.client.closing) {
		panic(http.ErrAbortHandler)
	}
}

// http2Frame is the size in which HTTP/2 data comes.
const http2Frame = 16 << 10

// readBody posts the body to the worker as it comes and says whether it came whole.
func readBody(s *stream, r *http.Request) bool {
	flow := s.paths[request].flow
	left := r.ContentLength
	buf := make([]byte, http2Frame)
	if s.http1 {
		buf = make([]byte, min(s.bufferLimit, 64<<10))
	}
	for flow.wait() {
		n, err := r.Body.Read(buf)
		left -= int64(n)
		last := false
		if n > 0 && err == nil && left == 0 && !s.http1 && len(r.Trailer) == 0 {
			// HTTP/2 ends a body of known length with its last frame, HTTP/1.1 with an empty one.
			if m, eof := r.Body.Read(buf[n:]); m == 0 && eof == io.EOF {
				err = io.EOF
			}
		}
		if err == io.EOF && !s.http1 && len(r.Trailer) == 0 {
			last = true
		}
		if n > 0 || last {
			chunk := append([]byte(nil), buf[:n]...)
			flow.add(n)
			s.w.post(func() {
				flow.add(-n)
				s.requestData(chunk, last)
			})
		}
		switch {
		case last:
			return true
		case err == io.EOF:
			if tail := lowerFields(r.Trailer); tail.len() > 0 {
				s.w.post(func() { s.requestTrailers(tail) })
			} else {
				s.w.post(func() { s.requestData(nil, true) })
			}
			return true
		case err != nil:
			s.w.post(s.gone)
			return false
		}
	}
	return false
}

// writeResponse writes until the stream ends; false asks for a cut.
func writeResponse(s *stream, w http.ResponseWriter, control *http.ResponseController) bool {
	flow := s.paths[response].flow
	began := false
	for {
		item := s.client.out.pop()
		switch item.kind {
		case outHeaders:
			h := w.Header()
			h["Date"], h["Content-Type"] = nil, nil // only what the chain decided
			for _, f := range item.head.list {
				if f[0] != ":status" {
					name := http.CanonicalHeaderKey(f[0])
					h[name] = append(h[name], f[1])
				}
			}
			if item.close {
				h.Set("Connection", "close")
				s.client.closing = true
			}
			code, _ := strconv.Atoi(item.head.value(":status"))
			if code < 200 || code > 599 {
				code = 502
			}
			w.WriteHeader(code)
			began = true
			// net/http would add a content-length of 0 to an HTTP/2 response that ends here.
			if !item.end || (!s.http1 && h["Content-Length"] == nil) {
				_ = control.Flush()
			}
		case outData:
			_, err := w.Write(item.data)
			flow.add(-len(item.data))
			if err == nil && s.client.out.empty() {
				_ = control.Flush()
			}
		case outTrailers:
			for _, f := range item.head.list {
				w.Header().Add(http.TrailerPrefix+http.CanonicalHeaderKey(f[0]), f[1])
			}
		case outEnd:
			return true
		case outReset:
			if began {
				_ = control.Flush()
			}
			return false
		}
	}
}

// requestHead is the header map that a chain sees: pseudo headers first.
func requestHead(r *http.Request, scheme string) *fields {
	path := r.RequestURI
	if path == "" {
		path = r.URL.RequestURI()
	}
	head := &fields{list: [][2]string{
		{":authority", r.Host}, {":path", path}, {":method", r.Method}, {":scheme", scheme}}}
	// A listener that lets WebSockets pass keeps what asks for one (Envoy, upgrade_configs).
	upgrade := strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
	for _, h := range lowerFields(r.Header).list {
		switch have, ok := head.get(h[0]); {
		case upgrade && (h[0] == "upgrade" || h[0] == "connection"):
			head.list = append(head.list, h)
		case hopByHop[h[0]]:
		case ok && h[0] == "authorization":
			// One of the headers that Envoy keeps in a fixed place, where lines that repeat it are
			// joined (seen on Envoy 1.40, HTTP/1.1 and HTTP/2).
			head.replace(h[0], have+","+h[1])
		default:
			head.list = append(head.list, h)
		}
	}
	if _, ok := head.get("content-length"); !ok && r.ContentLength > 0 {
		head.add("content-length", strconv.FormatInt(r.ContentLength, 10))
	}
	if _, ok := head.get("x-forwarded-proto"); !ok {
		head.add("x-forwarded-proto", scheme)
	}
	if _, ok := head.get("x-request-id"); !ok {
		head.add("x-request-id", newRequestID())
	}
	return head
}

func trailerNames(h http.Header) []string {
	var names []string
	for name := range h {
		names = append(names, name)
	}
	return names
}

// serverLog passes what net/http complains about to the host's log.
type serverLogWriter struct{ h *Host }

func (s serverLogWriter) Write(p []byte) (int, error) {
	s.h.logf("debug", "%s", strings.TrimSpace(string(p)))
	return len(p), nil
}
