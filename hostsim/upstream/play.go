package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// errGone ends an answer without its proper end.
var errGone = errors.New("upstream: answer cut")

// player carries out the steps of one answer.
type player struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	record *Request
	body   []byte
	conn   *conn

	status  int
	started bool
	coder   coder // of the answer's content coding, if it has one
	coded   bytes.Buffer
}

func (p *player) run(steps []step) error {
	p.status = http.StatusOK
	for _, st := range steps {
		for range st.repeat {
			if err := p.step(st); err != nil {
				return err
			}
		}
	}
	if p.coder != nil {
		return p.send(p.encode(nil, true))
	}
	p.start()
	return nil
}

func (p *player) step(st step) error {
	switch st.verb {
	case "early":
	case "wait":
		return p.until(p.server.gate(st.name))
	case "arrived":
		return p.arrived(st.n)
	case "delay":
		done := make(chan struct{})
		timer := time.AfterFunc(st.delay, func() { close(done) })
		defer timer.Stop()
		return p.until(done)
	case "info":
		p.w.WriteHeader(st.n)
	case "status":
		p.status = st.n
	case "header":
		p.w.Header().Add(st.name, string(st.text))
	case "trailer":
		p.start()
		p.w.Header().Add(http.TrailerPrefix+st.name, string(st.text))
	case "gzip", "deflate":
		p.w.Header().Set("Content-Encoding", st.verb)
		p.coder = newCoder(st.verb, &p.coded)
	case "write", "file":
		return p.write(st.text)
	case "echo":
		return p.write(p.body)
	case "sse":
		p.asStream()
		return p.write(append(append([]byte("data: "), st.text...), "\n\n"...))
	case "done":
		p.asStream()
		return p.write([]byte("data: [DONE]\n\n"))
	case "chat":
		return p.chat(st.usage)
	case "hang":
		p.until(nil)
		return errGone
	case "cut":
		p.flushStarted()
		return errGone
	case "reset":
		p.flushStarted()
		if p.conn != nil && p.r.ProtoMajor == 1 {
			p.conn.reset()
		}
		return errGone
	case "raw":
		return p.raw(st.text)
	default:
		return fmt.Errorf("upstream: no step %q", st.verb)
	}
	return nil
}

// until waits for a channel, but not beyond the request's life. A nil channel is never ready.
func (p *player) until(c <-chan struct{}) error {
	limit := time.NewTimer(bounded)
	defer limit.Stop()
	select {
	case <-c:
		return nil
	case <-p.r.Context().Done():
	case <-p.server.closing:
	case <-limit.C:
	}
	return errGone
}

func (p *player) arrived(n int) error {
	for {
		changed := p.server.Changed()
		if p.server.Count() >= n {
			return nil
		}
		if err := p.until(changed); err != nil {
			return err
		}
	}
}

func (p *player) start() {
	if p.started {
		return
	}
	p.started = true
	p.server.note(func() { p.record.Status = p.status })
	p.w.WriteHeader(p.status)
}

// flushStarted sends what was written so far, so that a cut comes after it on the wire.
func (p *player) flushStarted() {
	if p.started {
		http.NewResponseController(p.w).Flush()
	}
}

func (p *player) asStream() {
	if !p.started && p.w.Header().Get("Content-Type") == "" {
		p.w.Header().Set("Content-Type", "text/event-stream")
	}
}

// write sends bytes, in the answer's coding, as one flushed piece.
func (p *player) write(b []byte) error {
	if p.coder != nil {
		b = p.encode(b, false)
	}
	return p.send(b)
}

func (p *player) send(b []byte) error {
	if !p.started && p.w.Header().Get("Content-Type") == "" {
		p.w.Header().Set("Content-Type", "application/json")
	}
	p.start()
	// Noted first: who reads these bytes at the other end must find them recorded.
	p.server.note(func() { p.record.Sent = append(p.record.Sent, b...) })
	if _, err := p.w.Write(b); err != nil {
		return errGone
	}
	if err := http.NewResponseController(p.w).Flush(); err != nil {
		return errGone
	}
	return nil
}

// raw takes the connection from net/http and writes bytes as they stand: for answers that no
// well-behaved server gives. The connection is closed after it.
func (p *player) raw(b []byte) error {
	c, rw, err := http.NewResponseController(p.w).Hijack()
	if err != nil {
		return fmt.Errorf("upstream: raw: %w", err)
	}
	defer c.Close()
	p.server.note(func() { p.record.Sent = append(p.record.Sent, b...) })
	if _, err := rw.Write(b); err != nil {
		return errGone
	}
	return rw.Flush()
}
