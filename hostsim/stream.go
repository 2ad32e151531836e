package hostsim

import (
	"strconv"
	"time"
)

// stream is one exchange: a request, its chain, its response. It lives on its worker's loop.
type stream struct {
	w        *worker
	listener *listener
	conn     *connection
	id       uint64
	protocol string
	http1    bool
	begun    time.Time

	filters     []*filter
	paths       [2]*path
	client      *clientExit
	router      *router
	bufferLimit int

	state    map[string][]byte // filter state, by full name
	claims   map[string]any    // verified JWT payload
	metadata string            // the name it is under

	trailerNames []string // announced by the client

	received int64
	sent     int64

	prepared  *reply
	answered  bool // the response is complete
	destroyed bool
	code      int
	details   string
	explained bool // details are set, be they empty
	flags     uint64
	cluster   string
	upstream  string // address
	duration  time.Duration
}

// Response flags, as bits of the response.flags property and as the two letters of the access log
// (envoy stream_info.h).
const (
	flagNoHealthyUpstream uint64 = 0x2
	flagUpstreamReset     uint64 = 0x10
	flagUpstreamConnect   uint64 = 0x20
	flagUpstreamClosed    uint64 = 0x40
	flagNoRoute           uint64 = 0x100
	flagDownstreamGone    uint64 = 0x4000
	flagUpstreamProtocol  uint64 = 0x800000
	flagDownstreamReset   uint64 = 0x10000000
	flagNoCluster         uint64 = 0x1000000
)

var flagLetters = []struct {
	bit  uint64
	name string
}{
	{flagNoHealthyUpstream, "UH"}, {flagUpstreamReset, "UR"}, {flagUpstreamConnect, "UF"},
	{flagUpstreamClosed, "UC"}, {flagNoRoute, "NR"}, {flagDownstreamGone, "DC"}, {flagUpstreamProtocol, "UPE"}, {flagNoCluster, "NC"},
	{flagDownstreamReset, "DR"},
}

const http2BufferLimit = 16 << 20

// newStream runs on any goroutine; begin is the first that runs on the loop.
func newStream(l *listener, c *connection, head *fields, http1 bool) *stream {
	s := &stream{w: c.worker, listener: l, conn: c, id: l.host.nextStream.Add(1), http1: http1, protocol: "HTTP/2",
		bufferLimit: http2BufferLimit, begun: l.host.clock.Now(), state: map[string][]byte{}}
	if http1 {
		s.protocol, s.bufferLimit = "HTTP/1.1", l.bufferLimit
	}
	s.client = &clientExit{s: s, out: newOutbox()}
	s.router = &router{s: s}
	s.paths[request] = &path{s: s, side: request, head: head, exit: s.router, flow: newGate(), lenient: true}
	s.paths[response] = &path{s: s, side: response, exit: s.client, flow: newGate(), lenient: true}
	s.client.flow = s.paths[response].flow
	s.router.flow = s.paths[request].flow
	return s
}

// begin builds the chain and starts the request through it.
func (s *stream) begin(end bool) {
	s.w.streams[s] = struct{}{}
	for _, p := range s.listener.plugins {
		v := s.w.place(p)
		if v.failed && p.policy == FailOpen {
			continue
		}
		f := &filter{s: s, plugin: p, vm: v}
		f.sides[request].f, f.sides[response].f = f, f
		s.filters = append(s.filters, f)
	}
	for i, f := range s.filters {
		last := len(s.filters) - 1
		f.index = [2]int{i, last - i}
		s.paths[request].order = append(s.paths[request].order, &f.sides[request])
		s.paths[response].order = append(s.paths[response].order, &s.filters[last-i].sides[response])
	}
	p := s.paths[request]
	p.complete = end
	if s.listener.jwt != nil {
		claims, refusal := s.listener.jwt.check(p.head, s.begun)
		if refusal != nil {
			s.localReply(*refusal)
			return
		}
		s.claims, s.metadata = claims, s.listener.jwt.metadata
	}
	p.headers(0, end)
}

func (s *stream) requestData(b []byte, end bool) {
	p := s.paths[request]
	s.received += int64(len(b))
	p.complete = p.complete || end
	p.data(0, &body{b}, end)
}

func (s *stream) requestTrailers(tail *fields) {
	p := s.paths[request]
	p.complete, p.tail = true, tail
	p.trailers(0)
}

func (s *stream) responseHeaders(head *fields, end bool) {
	p := s.paths[response]
	if s.destroyed || p.head != nil {
		return
	}
	p.head, p.complete = head, end
	s.explain("via_upstream")
	p.headers(0, end)
}

func (s *stream) responseData(b []byte, end bool) {
	p := s.paths[response]
	p.complete = p.complete || end
	p.data(0, &body{b}, end)
}

func (s *stream) responseTrailers(tail *fields) {
	p := s.paths[response]
	p.complete, p.tail = true, tail
	p.trailers(0)
}

// reply is a response that a filter or the host itself gives.
type reply struct {
	code    int
	headers [][2]string
	body    []byte
	details string
	flags   uint64
}

// localReply answers the client in one of Envoy's three ways: through the response side of the chain while no
// response has begun, past the chain while its headers are still held, by a reset after that.
func (s *stream) localReply(r reply) {
	if s.destroyed || s.answered {
		return
	}
	if s.prepared != nil {
		return
	}
	req, resp := s.paths[request], s.paths[response]
	switch {
	case req.depth > 0:
		req.aborted = true
	case resp.depth > 0:
		resp.aborted = true
	}
	s.explain(r.details)
	s.flags |= r.flags
	// Envoy takes a 400 of its own, whoever asked for it, for a fault of the message (Envoy 1.40,
	// ActiveStream::sendLocalReply).
	s.client.distrust = s.client.distrust || r.code == 400
	s.router.cancel()
	switch {
	case resp.head == nil:
		if req.depth > 0 {
			// Sent when the callback has returned to the chain.
			s.prepared = &r
			return
		}
		s.replyThroughChain(r)
	case !s.client.began:
		head, noBody := s.replyHead(r)
		resp.head = head
		s.client.headers(head, noBody)
		if !noBody && !s.destroyed {
			s.client.data(&body{r.body}, true)
		}
	default:
		s.reset()
	}
}

func (s *stream) sendPrepared() {
	if r := s.prepared; r != nil && !s.destroyed {
		s.prepared = nil
		s.replyThroughChain(*r)
	}
}

func (s *stream) replyThroughChain(r reply) {
	resp := s.paths[response]
	s.paths[request].aborted = true
	head, noBody := s.replyHead(r)
	resp.head, resp.complete = head, noBody
	resp.headers(0, noBody)
	if !noBody && !s.destroyed {
		resp.complete = true
		resp.data(0, &body{r.body}, true)
	}
}

// replyHead is what Envoy's encodeLocalReply makes; the second result says that no body follows.
func (s *stream) replyHead(r reply) (*fields, bool) {
	head := &fields{list: [][2]string{{":status", strconv.Itoa(r.code)}}}
	if len(r.body) > 0 {
		head.add("content-length", strconv.Itoa(len(r.body)))
	}
	typed := false
	for _, h := range r.headers {
		if h[0] == "content-length" || h[0] == ":status" {
			continue
		}
		typed = typed || h[0] == "content-type"
		head.add(h[0], h[1])
	}
	if len(r.body) > 0 && !typed {
		head.add("content-type", "text/plain")
	}
	return head, len(r.body) == 0 || s.paths[request].head.value(":method") == "HEAD"
}

// gone: the client left. On HTTP/2 it may have reset this stream alone.
func (s *stream) gone() {
	if s.destroyed {
		return
	}
	if s.http1 || s.conn.broken.Load() {
		s.flags |= flagDownstreamGone
		s.explain("downstream_remote_disconnect")
	} else {
		s.flags |= flagDownstreamReset
		s.explain("http2.remote_reset")
	}
	s.reset() // who is still there, because the host itself closes, must not take it for an end
}

// reset cuts the client off: a closed connection on HTTP/1.1, RST_STREAM on HTTP/2.
func (s *stream) reset() {
	s.end(outItem{kind: outReset})
}

// upstreamReset: the upstream broke after its headers.
func (s *stream) upstreamReset(f fault) {
	if s.destroyed {
		return
	}
	details := "upstream_reset_after_response_started{" + f.code() + "}"
	if !s.client.began { // a filter still holds them
		s.localReply(reply{code: 502, body: []byte(upstreamBroke + f.reason), details: details, flags: f.flag})
		return
	}
	s.flags |= f.flag
	s.explain(details)
	s.reset()
}

// explain sets the response code details.
func (s *stream) explain(details string) { s.details, s.explained = details, true }

// end is the one end of a stream: the log callback of every filter in chain order, then done and delete of each,
// the access log line, and only then the last bytes to the client.
func (s *stream) end(last ...outItem) {
	if s.destroyed {
		return
	}
	s.destroyed = true
	s.duration = s.w.host.clock.Now().Sub(s.begun)
	s.router.cancel()
	for _, f := range s.filters {
		f.create()
		f.sides[request] = passage{f: f, head: s.paths[request].head}
		f.sides[response] = passage{f: f, head: s.paths[response].head, tail: s.paths[response].tail}
		f.vm.call("proxy_on_log", &f.ctx, 0, uint64(f.ctx.id))
		f.vm.runAfter()
	}
	for _, f := range s.filters {
		f.vm.call("proxy_on_done", &f.ctx, 1, uint64(f.ctx.id))
		f.vm.runAfter()
		f.vm.call("proxy_on_delete", &f.ctx, 0, uint64(f.ctx.id))
		f.vm.runAfter()
		delete(f.vm.contexts, f.ctx.id)
	}
	s.listener.log(s)
	delete(s.w.streams, s)
	s.paths[request].flow.shut()
	s.paths[response].flow.shut()
	for _, item := range last {
		s.client.out.push(item)
	}
}
