package shell

import (
	"math"
	"strconv"

	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm"
	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/emmer-proxy/emmer/plugin/closer"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/core"
	"github.com/emmer-proxy/emmer/plugin/dialect"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

// exchange is one HTTP stream at the first entry.
type exchange struct {
	types.DefaultHttpContext
	plugin *plugin
	id     uint32
	gateID uint32 // context id of the gate's half, 0 if there is none
	stream *core.Stream
	own    bool // a callback of this exchange is running
	inBody bool // it is one of the request's body
	atGate bool // host calls are about the gate's half, since this callback said so
	spent  bool // this callback of the host has its one deferred action
	said   bool // a local reply was given to the host
	gone   bool
	gated  bool // the gate's half has seen the head of the answer, and nothing of its body
	paused bool // the head of the answer is held here

	wire      *wire       // the closer's entry of its connection, once asked for
	announced bool        // its answer may be cut
	cutting   bool        // the final bytes are handed on, their end is not on the wire
	mark      closer.Mark // of those
}

// enter begins a callback. own: it is one of this exchange, so that resumes must wait.
func (x *exchange) enter(own bool) { x.own, x.inBody, x.atGate, x.spent = own, false, false, false }

func (x *exchange) OnHttpRequestHeaders(_ int, end bool) (action types.Action) {
	x.enter(true)
	defer x.guard("request headers", &action)
	headers, err := proxywasm.GetHttpRequestHeaders()
	if err != nil {
		panic("reading request headers: " + err.Error())
	}
	e := core.Event{Kind: core.RequestHeaders, Now: now(), End: end, GateInVM: x.plugin.vm.gates > 0}
	e.Head = head(headers, x.plugin.config)
	if path := x.plugin.config.Store.ClusterProperty; len(path) > 0 {
		cluster, _ := proxywasm.GetProperty(path)
		e.Cluster = string(cluster)
	}
	action = x.step(e)
	if x.plugin.config.Hold == config.HoldPair {
		key := core.PairKey(x.plugin.vm.tag, uint64(x.id))
		if x.stream.State() == core.Passing {
			key = core.PassKey(x.plugin.vm.tag)
		}
		if err := proxywasm.SetProperty([]string{"emmer_pair"}, []byte(key)); err != nil {
			panic("setting the key of the pair: " + err.Error())
		}
	}
	return action
}

// head sorts the headers of a request: pseudo-headers apart, save for the one that says who is asked;
// the rest in order and repeated as they came.
func head(headers [][2]string, c *config.Compiled) plan.Head {
	var h plan.Head
	h.Headers = headers[:0]
	for _, kv := range headers {
		switch {
		case kv[0] == ":method":
			h.Method = kv[1]
		case kv[0] == ":path":
			h.Path = kv[1]
		case len(kv[0]) > 0 && kv[0][0] == ':' && kv[0] != ":authority":
		default:
			h.Headers = append(h.Headers, kv)
		}
	}
	for _, path := range c.Claims {
		v, ok := claim(path)
		h.Claims = append(h.Claims, plan.Claim{Value: v, OK: ok})
	}
	return h
}

func (x *exchange) OnHttpRequestBody(size int, end bool) (action types.Action) {
	x.enter(true)
	x.inBody = true
	defer x.guard("request body", &action)
	e := core.Event{Kind: core.RequestBody, Now: now(), End: end, Size: size}
	if end && x.stream.State() == core.Reading && size > 0 {
		e.Body = mustBody(size)
	}
	return x.step(e)
}

func (x *exchange) OnHttpRequestTrailers(int) (action types.Action) {
	x.enter(true)
	x.inBody = true
	defer x.guard("request trailers", &action)
	e := core.Event{Kind: core.RequestTrailers, Now: now(), End: true}
	if x.stream.State() == core.Reading {
		// The body may be read here because every body callback before returned "stop and buffer".
		e.Body = mustBody(x.plugin.config.Body.Hold + 1)
	}
	return x.step(e)
}

// editBody replaces the body that this entry holds. One that can't be must not leave as it is: its
// length may have been stated already.
func (x *exchange) editBody() {
	body, ok := x.stream.Edited(mustBody(x.plugin.config.Body.Hold + 1))
	if !ok {
		panic("the request body is not the one that was read")
	}
	if err := proxywasm.ReplaceHttpRequestBody(body); err != nil {
		panic("replacing the request body: " + err.Error())
	}
}

// mustBody reads the buffered request body. A body that can't be read must not pass unmetered.
func mustBody(most int) []byte {
	b, err := proxywasm.GetHttpRequestBody(0, most)
	if err == types.ErrorStatusNotFound {
		return nil // an empty buffer
	}
	if err != nil {
		panic("reading the request body: " + err.Error())
	}
	return b
}

func (x *exchange) OnHttpResponseHeaders(_ int, end bool) (action types.Action) {
	x.enter(true)
	defer x.guard("response headers", &action)
	switch x.stream.State() {
	case core.Reading, core.Deciding, core.Parked, core.Forwarded:
	default:
		return types.ActionContinue
	}
	var usage []string
	for _, name := range x.stream.UsageHeaders() {
		usage = append(usage, responseHeader(name))
	}
	h := dialect.ResponseHead{
		Usage:           usage,
		Status:          status(responseHeader(":status")),
		ContentType:     responseHeader("content-type"),
		ContentEncoding: responseHeader("content-encoding"),
	}
	if length := responseHeader("content-length"); length != "" {
		h.HasLength, h.Length = true, math.MaxInt64
		if n, err := strconv.ParseInt(length, 10, 64); err == nil {
			h.Length = n
		}
	}
	action = x.step(core.Event{Kind: core.ResponseHeaders, Now: now(), End: end, Ungated: x.ungated(), Gated: x.gated, Response: h})
	x.paused = action == types.ActionPause
	return action
}

// ungated says that the provider answered a call that should have been held by a gate and met none:
// there is one in this VM, but not in this chain. What filters between answer comes past no gate
// either; Envoy says whose an answer is.
func (x *exchange) ungated() bool {
	if x.gateID != 0 || x.plugin.config.Hold != config.HoldPair {
		return false
	}
	details, _ := proxywasm.GetProperty([]string{"response", "code_details"})
	return string(details) == "via_upstream"
}

func responseHeader(name string) string {
	v, _ := proxywasm.GetHttpResponseHeader(name)
	return v
}

func status(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

func (x *exchange) OnHttpResponseBody(size int, end bool) (action types.Action) {
	x.enter(true)
	defer x.answerMoves(&action)
	defer x.guard("response body", &action)
	if x.stream.State() != core.Responding && !x.paused {
		return types.ActionContinue
	}
	if action = x.step(x.answerPiece(size, end, false)); action == types.ActionPause {
		action = keepBehindHead
	}
	return action
}

// keepBehindHead keeps a piece of an answer behind its held head (StopIterationAndWatermark). To buffer
// it as ActionPause says would be a 500 above the buffer limit of Envoy; this stops the provider there.
const keepBehindHead types.Action = 2

// answerMoves comes last in a callback: with a piece that may pass the host lets a held head go.
func (x *exchange) answerMoves(action *types.Action) {
	x.paused = x.paused && *action != types.ActionContinue
}

// answerPiece is a piece of an answer's body as the half sees it whose callback is running.
func (x *exchange) answerPiece(size int, end, atGate bool) core.Event {
	e := core.Event{Kind: core.ResponseBody, Now: now(), End: end, AtGate: atGate}
	if size > 0 && x.stream.Metering(atGate) {
		e.Body, _ = proxywasm.GetHttpResponseBody(0, size)
	}
	return e
}

func (x *exchange) OnHttpResponseTrailers(int) (action types.Action) {
	x.enter(true)
	defer x.answerMoves(&action)
	defer x.guard("response trailers", &action)
	return x.step(core.Event{Kind: core.ResponseTrailers, Now: now(), End: true})
}

func (x *exchange) OnHttpStreamDone() {
	x.enter(true)
	var ignored types.Action
	defer x.guard("stream done", &ignored)
	x.gone = true
	delete(x.plugin.vm.exchanges, x.id)
	x.disarm()
	x.step(core.Event{Kind: core.StreamDone, Now: now()})
}

// step gives an event to the stream, applies what it asks for, and says what the callback returns.
func (x *exchange) step(e core.Event) types.Action {
	action := types.ActionContinue
	fx := x.stream.Step(e)
	for i := range fx {
		if fx[i].Kind == core.Hold {
			action = types.ActionPause
			continue
		}
		x.apply(&fx[i])
	}
	x.plugin.worker.Recycle(fx)
	return action
}

func (x *exchange) apply(f *core.Effect) {
	var err error
	switch f.Kind {
	case core.Call:
		x.send(f.Call)
	case core.SetHeader:
		if x.about(f.AtGate) {
			err = proxywasm.ReplaceHttpRequestHeader(f.Name, f.Value)
		}
	case core.RemoveHeader:
		if x.about(f.AtGate) {
			err = proxywasm.RemoveHttpRequestHeader(f.Name)
		}
	case core.SetResponseHeader:
		err = proxywasm.ReplaceHttpResponseHeader(f.Name, f.Value)
	case core.RemoveResponseHeader:
		err = proxywasm.RemoveHttpResponseHeader(f.Name)
	case core.EditResponse:
		err = proxywasm.ReplaceHttpResponseBody(f.Body)
	case core.EditBody:
		if x.about(false) {
			x.editBody()
		}
	case core.SetState:
		err = proxywasm.SetProperty([]string{f.Name}, f.Body)
	case core.Answer:
		x.said = true
		x.answer(x.inBody, f.Status, f.Headers, f.Body)
	case core.ResumeRequest:
		x.defer1(x.own, x.resume)
	case core.ResumeGate:
		x.defer1(x.own, x.resumeGate)
	case core.ResumeAnswer:
		x.defer1(x.own, x.resumeAnswer)
	case core.Release:
		x.released(*f.Event)
	case core.Count:
		x.plugin.vm.counters.add(f.Name, f.N)
	case core.Log:
		proxywasm.LogWarn("emmer: " + f.Value)
	case core.Tell:
		x.plugin.step(*f.Event) // of a kind that sends nothing: a Wake runs in the plugin's own callback
	}
	if err != nil {
		x.refused(err)
	}
}

func (x *exchange) refused(err error) {
	x.plugin.vm.counters.add("emmer.host_refused", 1)
	proxywasm.LogError("emmer: the host refused a call: " + err.Error())
}

// about makes the next host calls be about the gate's half, or about this one. False: they can't be,
// as the gate's half has ended.
func (x *exchange) about(gate bool) bool {
	if gate == x.atGate {
		return true
	}
	id := x.id
	if gate {
		id = x.gateID
	}
	if id == 0 {
		return false
	}
	if err := proxywasm.SetEffectiveContext(id); err != nil {
		x.refused(err)
		return false
	}
	x.atGate = gate
	return true
}

func (x *exchange) resume() error     { return x.resumeAt(false) }
func (x *exchange) resumeGate() error { return x.resumeAt(true) }

func (x *exchange) resumeAt(gate bool) error {
	if !x.about(gate) {
		return nil
	}
	return proxywasm.ResumeHttpRequest()
}

// resumeAnswer lets the head of the answer go, unless what a callback returned has done so.
func (x *exchange) resumeAnswer() error {
	if !x.paused || !x.about(false) {
		return nil
	}
	x.paused = false
	return proxywasm.ResumeHttpResponse()
}

// answer sends a local reply. Not in a callback of the request's body: there it ends the call while Envoy
// 1.40 is still taking it in, and of several pipelined ones the next may then never be read.
func (x *exchange) answer(wait bool, status int, headers [][2]string, body []byte) {
	x.defer1(wait, func() error {
		if !x.about(false) {
			return nil
		}
		return proxywasm.SendHttpResponse(uint32(status), headers, body, -1)
	})
}

// defer1 does an action that the host defers: at once if this callback has none yet and wait is
// false, else in a callback of its own.
func (x *exchange) defer1(wait bool, act func() error) {
	if !x.spent && !wait {
		x.spent = true
		if err := act(); err != nil {
			x.refused(err)
		}
		return
	}
	x.later(func() {
		x.spent = true
		if err := act(); err != nil {
			x.refused(err)
		}
	})
}

// later does something in a callback of its own, unless the exchange ends before.
func (x *exchange) later(do func()) {
	x.plugin.later(func() {
		if x.gone {
			return
		}
		if err := proxywasm.SetEffectiveContext(x.id); err != nil {
			return // the exchange ended meanwhile
		}
		x.enter(false)
		var ignored types.Action
		defer x.guard("later", &ignored)
		do()
	})
}

// released gives the stream an event in a callback of its own.
func (x *exchange) released(e core.Event) {
	x.later(func() {
		e.Now = now()
		x.step(e)
	})
}

func (x *exchange) send(c *core.StoreCall) {
	tag := c.Tag
	_, err := proxywasm.DispatchHttpCall(c.Cluster, c.Request.Headers, c.Request.Body, nil, uint32(c.Timeout), func(headers, size, _ int) {
		if x.gone {
			return
		}
		x.enter(false)
		var ignored types.Action
		defer x.guard("answer of the store", &ignored)
		status, body := readReply(headers, size)
		x.step(core.Event{Kind: core.StoreReply, Now: now(), Tag: tag, Status: status, Body: body})
	})
	if err != nil {
		x.step(core.Event{Kind: core.StoreUnsent, Now: now(), Tag: tag})
	}
}

// readReply reads the answer of a call inside its callback. Without headers it broke off.
func readReply(headers, size int) (status string, body []byte) {
	if headers == 0 {
		return "", nil
	}
	pairs, _ := proxywasm.GetHttpCallResponseHeaders()
	for _, kv := range pairs {
		if kv[0] == ":status" {
			status = kv[1]
		}
	}
	if size > 0 {
		body, _ = proxywasm.GetHttpCallResponseBody(0, size)
	}
	return status, body
}

// guard keeps a fault in one exchange from killing the VM, and leaves nothing parked: the core
// answers or ends the metering.
func (x *exchange) guard(where string, action *types.Action) {
	e := recover()
	if e == nil {
		return
	}
	proxywasm.LogCritical("emmer: fault in " + where + ": " + describe(e))
	defer func() {
		if e := recover(); e != nil {
			x.plugin.vm.counters.add("emmer.recovered", 1)
			proxywasm.LogCritical("emmer: fault while answering a fault: " + describe(e))
		}
		// The core did not come to answer, or its answer was not sent: what may still be parked here
		// must neither wait for ever nor go on undecided.
		switch x.stream.State() {
		case core.Fresh, core.Reading, core.Deciding, core.Parked, core.Forwarded, core.Refused:
			if x.said || x.gone {
				return
			}
			x.said = true
			*action = types.ActionPause
			x.answer(false, 500, nil, nil)
		default:
			if x.paused && !x.gone {
				x.defer1(true, x.resumeAnswer)
			}
		}
	}()
	*action = x.step(core.Event{Kind: core.Recovered, Now: now()})
}
