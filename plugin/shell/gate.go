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

func (g *gate) OnHttpStreamDone() {
	if g.partner != nil {
		g.partner.gateID = 0
	}
}
