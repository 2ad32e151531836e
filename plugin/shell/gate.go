package shell

import (
	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm"
	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/emmer-proxy/emmer/plugin/core"
	"github.com/emmer-proxy/emmer/plugin/dialect"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

// gate is one HTTP stream at the second entry: it holds the request headers until its partner has
// decided.
type gate struct {
	types.DefaultHttpContext
	plugin  *plugin
	id      uint32
	partner *exchange
}

func (g *gate) OnHttpRequestHeaders(int, bool) (action types.Action) {
	defer func() {
		if e := recover(); e != nil {
			g.plugin.vm.counters.add("emmer.recovered", 1)
			proxywasm.LogCritical("emmer: fault in the gate: " + describe(e))
			action = g.refuse(plan.Refuse(nil, plan.Internal()))
		}
	}()
	key, _ := proxywasm.GetProperty([]string{"emmer_pair"})
	partner, n := core.FindPartner(g.plugin.config, string(key), g.plugin.vm.tag)
	switch partner {
	case core.PartnerPassed:
		return types.ActionContinue
	case core.PartnerPass:
		g.plugin.vm.counters.add("emmer.mismatch", 1)
		return types.ActionContinue
	case core.PartnerHere:
		if x := g.plugin.vm.exchanges[uint32(n)]; x != nil {
			return g.join(x)
		}
	}
	g.plugin.vm.counters.add("emmer.mismatch", 1)
	return g.refuse(plan.Refuse(nil, plan.Misconfigured()))
}

// join tells the partner that the headers are here. Effects on headers mean this half.
func (g *gate) join(x *exchange) (action types.Action) {
	g.partner, x.gateID = x, g.id
	x.enter(true)
	defer x.guard("gate headers", &action)
	fx := x.stream.Step(core.Event{Kind: core.GateHeaders})
	for i := range fx {
		switch f := &fx[i]; f.Kind {
		case core.Hold:
			action = types.ActionPause
		case core.SetHeader:
			if err := proxywasm.ReplaceHttpRequestHeader(f.Name, f.Value); err != nil {
				x.refused(err)
			}
		case core.RemoveHeader:
			if err := proxywasm.RemoveHttpRequestHeader(f.Name); err != nil {
				x.refused(err)
			}
		default:
			x.apply(f)
		}
	}
	x.plugin.worker.Recycle(fx)
	return action
}

func (g *gate) refuse(d plan.Denial) types.Action {
	headers, body := dialect.OpenAIChat.Refusal(d.Refusal)
	headers = append(headers, d.Headers...)
	if err := proxywasm.SendHttpResponse(uint32(d.Refusal.HTTPStatus()), headers, body, -1); err != nil {
		proxywasm.LogError("emmer: the host refused a call: " + err.Error())
	}
	return types.ActionPause
}

func (g *gate) OnHttpResponseHeaders(int, bool) types.Action {
	if g.partner != nil {
		g.partner.gated = true
	}
	return types.ActionContinue
}

// OnHttpResponseBody reads the body of an answer whose head the partner holds, behind which the host
// keeps the body from it. The gate never holds: two would have to let go.
func (g *gate) OnHttpResponseBody(size int, end bool) types.Action {
	if g.reads() {
		g.read("gate response body", func(x *exchange) core.Event { return x.answerPiece(size, end, true) })
	}
	return types.ActionContinue
}

func (g *gate) OnHttpResponseTrailers(int) types.Action {
	if g.reads() {
		g.read("gate response trailers", func(*exchange) core.Event {
			return core.Event{Kind: core.ResponseTrailers, Now: now(), End: true, AtGate: true}
		})
	}
	return types.ActionContinue
}

// reads says whether this half reads the answer. What has passed it unread would be missing later.
func (g *gate) reads() bool {
	if g.partner == nil || g.partner.gone {
		return false
	}
	g.partner.gated = false
	return g.partner.stream.AtGate()
}

func (g *gate) read(where string, event func(*exchange) core.Event) {
	x := g.partner
	x.enter(true)
	x.atGate = true
	var ignored types.Action
	defer x.guard(where, &ignored)
	x.step(event(x))
}

func (g *gate) OnHttpStreamDone() {
	if g.partner != nil {
		g.partner.gateID = 0
	}
}
