package hostsim

// This file is the iteration of a filter chain in one direction, with the states and the order of Envoy's filter
// manager (source/common/http/filter_manager.cc, 1.35 and later): what a filter returns decides whether the next
// one is called, what is kept, and where the iteration takes up again.

type side int

const (
	request side = iota
	response
)

func (s side) String() string {
	if s == request {
		return "request"
	}
	return "response"
}

// action is what a callback returns.
type action uint32

const (
	actContinue action = 0
	// headers: this part only (with AllowOnHeadersStop); body: keep what came, 413 above the limit
	actStop action = 1
	// body: keep what came, back-pressure above the limit
	actStopWatermark action = 2
	// headers: everything, back-pressure above the limit
	actStopAll action = 4
	// body: the filter took what it wanted, drop the rest
	actStopNoBuffer action = 3
)

type iteration uint8

const (
	flowing iteration = iota
	stoppedOne
	stoppedAll
)

// body is a buffer. Filters of a direction share one for what they hold.
type body struct {
	b []byte
}

// passage is the state of one filter in one direction.
type passage struct {
	f           *filter
	state       iteration
	headersWent bool
	ended       bool // it saw the end
	fromCurrent bool // its next data callback is one it never had

	// What the module can reach; nil is out of reach.
	head, tail *fields
	data       *body
	stale      bool // data points at bytes that are gone: the filter returned 2 or 3
	buffering  bool // it returned StopIterationAndBuffer: data is the held buffer
}

// exit is where a direction leads: the router or the client.
type exit interface {
	headers(head *fields, end bool)
	data(d *body, end bool)
	trailers(tail *fields)
}

type path struct {
	s        *stream
	side     side
	order    []*passage
	exit     exit
	head     *fields
	tail     *fields
	held     *body // nil until something is held
	above    bool  // held is over the limit
	complete bool  // the far side has sent everything
	lenient  bool  // whoever holds wants back-pressure above the limit, not an error
	aborted  bool  // a local reply took over
	depth    int   // callbacks of this direction on the stack
	flow     *gate // stops the source
}

// deaf says that nobody cares for what comes.
func (p *path) deaf() bool {
	if p.s.destroyed || p.aborted {
		return true
	}
	return p.side == request && p.s.answered
}

// afterCall settles what a callback did to the whole stream; true ends the iteration.
func (p *path) afterCall() bool {
	if p.s.destroyed {
		return true
	}
	if p.aborted {
		p.s.sendPrepared()
		return true
	}
	return false
}

func (p *path) headers(from int, end bool) {
	for i := from; i < len(p.order); i++ {
		e := p.order[i]
		e.ended = end
		p.depth++
		act := e.f.onHeaders(p, e, end)
		p.depth--
		if p.afterCall() {
			return
		}
		switch act {
		case actStop:
			e.state = stoppedOne
			return
		case actStopAll:
			e.state = stoppedAll
			return
		}
		e.headersWent = true
	}
	p.exit.headers(p.head, end)
}

func (p *path) data(from int, d *body, end bool) {
	if p.deaf() {
		return
	}
	for i := from; i < len(p.order); i++ {
		e := p.order[i]
		if e.state == stoppedAll {
			p.lenient = true
			p.hold(d)
			return
		}
		if e.ended {
			if len(d.b) > 0 {
				p.s.w.host.violate("%d bytes of a %s body came to %q after its end and are lost", len(d.b), p.side, e.f.plugin.name)
				d.b = nil
			}
			return
		}
		e.ended = end && p.tail == nil
		p.depth++
		act := e.f.onData(p, e, d, e.ended)
		p.depth--
		if p.afterCall() {
			return
		}
		if !p.afterData(i, e, act, d) || p.s.destroyed {
			return
		}
	}
	if end && p.held != nil && d != p.held && len(p.held.b) > 0 {
		// A filter resumed the stream in the middle of a body it was buffering: what came after went into a
		// buffer that nobody continues.
		p.s.w.host.violate("%d bytes of a %s body stay behind in the buffer of the chain", len(p.held.b), p.side)
	}
	p.exit.data(d, end)
	p.drained()
}

func (p *path) afterData(i int, e *passage, act action, d *body) bool {
	if act == actContinue {
		if e.state != stoppedOne {
			return true
		}
		p.hold(d)
		if !p.s.destroyed {
			p.resume(i)
		}
		return false
	}
	e.state = stoppedOne
	switch {
	case act == actStop || act == actStopWatermark:
		p.lenient = act == actStopWatermark
		p.hold(d)
	case p.complete && p.tail == nil && p.held == nil:
		// So that a later resume ends the stream with an empty frame.
		p.held = &body{}
	}
	if act == actStopNoBuffer && d != p.held {
		d.b = nil
	}
	return false
}

func (p *path) trailers(from int) {
	if p.deaf() {
		return
	}
	for i := from; i < len(p.order); i++ {
		e := p.order[i]
		if e.state == stoppedAll {
			return
		}
		p.depth++
		act := e.f.onTrailers(p, e)
		p.depth--
		if p.afterCall() {
			return
		}
		if act != actContinue {
			if e.state == flowing {
				e.state = stoppedOne
			}
			return
		}
		if e.state == stoppedOne {
			p.resume(i)
			return
		}
	}
	p.exit.trailers(p.tail)
}

// resume takes the iteration up at filter i.
func (p *path) resume(i int) {
	if p.deaf() {
		return
	}
	e := p.order[i]
	if e.state == stoppedAll {
		e.fromCurrent = true
	}
	e.state = flowing
	if !e.headersWent {
		e.headersWent = true
		p.headers(i+1, p.complete && p.held == nil && p.tail == nil)
	}
	next := func() int {
		if e.fromCurrent {
			return i
		}
		return i + 1
	}
	hadTrailers := p.tail != nil
	if p.held != nil {
		// The filter may have made it larger. Envoy notices at the edit itself.
		if p.measure(); p.deaf() {
			return
		}
		p.data(next(), p.held, p.complete && !hadTrailers)
	}
	if hadTrailers {
		p.trailers(next())
	}
	e.fromCurrent = false
}

// hold keeps data in the shared buffer. What is in it already stays: the filter has edited it in place.
func (p *path) hold(d *body) {
	if p.held != d {
		if p.held == nil {
			p.held = &body{}
		}
		if p.held.b == nil {
			p.held.b = d.b
		} else {
			p.held.b = append(p.held.b, d.b...)
		}
		d.b = nil
	}
	p.measure()
}

// measure acts once when the buffer rises over the limit.
func (p *path) measure() {
	if p.held == nil || p.above || len(p.held.b) <= p.s.bufferLimit {
		return
	}
	p.above = true
	if p.lenient {
		p.flow.pause(true)
		return
	}
	if p.side == request {
		p.s.localReply(reply{code: 413, body: []byte("Payload Too Large"), details: "request_payload_too_large"})
	} else {
		p.s.localReply(reply{code: 500, body: []byte("Internal Server Error"), details: "response_payload_too_large"})
	}
}

// drained reopens the source once the buffer is low again.
func (p *path) drained() {
	if p.above && p.held != nil && len(p.held.b) <= p.s.bufferLimit/2 {
		p.above = false
		p.flow.pause(false)
	}
}
