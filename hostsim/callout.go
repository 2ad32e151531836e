package hostsim

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"
)

// callout is one proxy_http_call under way. It belongs to a root context and outlives the stream that asked.
type callout struct {
	root  *rootContext
	token uint32
	stop  context.CancelFunc
	timer Timer
	over  bool
	heads bool // the reply's headers came: a time-out is a broken reply from now on
}

// calloutResponse is readable inside its callback.
type calloutResponse struct {
	head, tail *fields
	body       []byte
}

// asyncResponseLimit is Envoy's http.async_response_buffer_limit.
const asyncResponseLimit = 32 << 20

// dispatch starts a call. What fails here fails inside the module's call.
func (r *rootContext) dispatch(name string, head, tail *fields, payload []byte, timeout uint32) (uint32, status) {
	h := r.vm.w.host
	if int32(timeout) < 0 {
		return 0, statusBadArgument
	}
	c, known := h.clusters[name]
	if !known {
		return 0, statusBadArgument
	}
	for _, need := range []string{":method", ":path", ":authority"} {
		if _, ok := head.get(need); !ok {
			return 0, statusBadArgument
		}
	}
	if c.base == nil || r.vm.canary || r.finished {
		return 0, statusInternalFailure
	}
	r.vm.nextCall++
	call := &callout{root: r, token: r.vm.nextCall}
	r.calls[call.token] = call
	ctx, stop := context.WithCancel(h.ctx)
	call.stop = stop
	req := newRequest(c, head).WithContext(ctx)
	if len(payload) > 0 {
		req.Body = io.NopCloser(bytes.NewReader(payload))
		req.ContentLength = int64(len(payload))
	}
	if tail.len() > 0 && len(payload) > 0 {
		req.Trailer = http.Header{}
		for _, t := range tail.list {
			req.Trailer.Add(t[0], t[1])
		}
		if !c.http2 {
			req.ContentLength = -1
		}
	}
	if timeout > 0 {
		call.timer = r.vm.w.after(time.Duration(timeout)*time.Millisecond, call.timedOut)
	}
	h.running.Add(1)
	go func() {
		defer h.running.Done()
		defer stop()
		call.exchange(c, req)
	}()
	return call.token, statusOK
}

func (c *callout) exchange(to *cluster, req *http.Request) {
	w := c.root.vm.w
	resp, err := to.transport.RoundTrip(req)
	if err != nil {
		// The router of the async client answers for the upstream.
		reason := faultBefore(err).reason
		w.post(func() { c.finish(localAnswer(503, upstreamBroke+reason)) })
		return
	}
	defer resp.Body.Close()
	w.post(func() { c.heads = true })
	b, err := io.ReadAll(io.LimitReader(resp.Body, asyncResponseLimit+1))
	if err != nil || len(b) > asyncResponseLimit {
		w.post(func() { c.finish(nil) })
		return
	}
	answer := &calloutResponse{head: responseHead(resp), tail: lowerFields(resp.Trailer), body: b}
	w.post(func() { c.finish(answer) })
}

func localAnswer(code int, text string) *calloutResponse {
	return &calloutResponse{body: []byte(text), head: &fields{list: [][2]string{
		{":status", strconv.Itoa(code)}, {"content-length", strconv.Itoa(len(text))}, {"content-type", "text/plain"}}}}
}

func (c *callout) timedOut() {
	if c.heads {
		c.finish(nil)
		return
	}
	c.finish(localAnswer(504, "upstream request timeout"))
}

// finish delivers an answer on the root context; nil is a reply that broke: no headers at all.
func (c *callout) finish(answer *calloutResponse) {
	r := c.root
	if c.over || r.vm.failed {
		return
	}
	c.abandon()
	delete(r.calls, c.token)
	headers, size, trailers := 0, 0, 0
	if answer != nil {
		headers, size, trailers = answer.head.len(), len(answer.body), answer.tail.len()
	}
	r.response = answer
	r.vm.call("proxy_on_http_call_response", &r.vmContext, 0, uint64(r.id), uint64(c.token), uint64(headers), uint64(size), uint64(trailers))
	// The answer stays readable until the deferred actions begin.
	r.response = nil
	r.vm.runAfter()
}

// abandon forgets a call: its answer, if one comes, is dropped.
func (c *callout) abandon() {
	c.over = true
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.stop != nil {
		c.stop()
	}
}
