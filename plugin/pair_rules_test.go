package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket/buckettest"
	"github.com/emmer-proxy/emmer/hostsim/scenario"
	"github.com/emmer-proxy/emmer/plugin/internal/wasmbuild"
)

const (
	shellPlugin   = "plugin/shell/plugin.go"
	shellExchange = "plugin/shell/exchange.go"
	shellGate     = "plugin/shell/gate.go"
	coreStream    = "plugin/core/stream.go"
	coreHeld      = "plugin/core/exact.go"
)

// pairRule is one of the rules that keep an exchange whole.
type pairRule struct {
	name     string
	scenario string
	changes  []wasmbuild.Change
	simBlind bool // the simulated host can't show it: it has no filter between the entries
	crashes  bool // a real Envoy falls with it, and every other scenario of it: only the simulated host is to show it
}

// in puts a text in the place of another in a file of the filter.
func in(file, old, text string) wasmbuild.Change {
	return wasmbuild.Change{File: file, Old: old, New: text}
}

// rules are what keeps an exchange whole that two entries of the filter hold, each with the
// scenario that fails without it and the change of the filter that breaks it. One module has all
// changes: each applies where the scenario's first limit bears the rule's name.
var rules = []pairRule{
	{
		// A gate let go inside the body callback of the same request loses the body.
		name: "rule-2", scenario: "a-call-decided-without-the-store-keeps-its-body",
		changes: []wasmbuild.Change{in(shellExchange,
			"x.defer1(x.own, x.resumeGate)",
			"x.defer1(x.own && !x.plugin.config.Breaks(\"rule-2\"), x.resumeGate)")},
	},
	{
		// The gate first, then the entry before it.
		name: "rule-3", scenario: "an-edited-body-passes-the-filters-between-first",
		changes: []wasmbuild.Change{in(coreStream, `	if s.kept && !inCallback {
		fx.add(Effect{Kind: ResumeRequest})
	}
`, `	if s.w.config.Breaks("rule-3") && s.gateHeld {
		fx.add(Effect{Kind: ResumeGate})
		s.gateHeld = false
	}
	if s.kept && !inCallback {
		fx.add(Effect{Kind: ResumeRequest})
	}
`)},
	},
	{
		// The body is taken piece by piece and put back outside of its callback.
		name: "rule-4", scenario: "trailers-and-an-edit-leave-the-next-request-whole",
		changes: []wasmbuild.Change{
			in(shellExchange, "	gone   bool\n", "	gone   bool\n	taken  []byte\n"),
			in(shellExchange, "	e := core.Event{Kind: core.RequestBody, Now: now(), End: end, Size: size}\n",
				`	if x.plugin.config.Breaks("rule-4") && x.stream.State() == core.Reading && !end {
		x.taken = append(x.taken, mustBody(size)...)
		return types.Action(3) // StopIterationNoBuffer
	}
	e := core.Event{Kind: core.RequestBody, Now: now(), End: end, Size: size}
`),
			in(shellExchange, "		e.Body = mustBody(x.plugin.config.Body.Hold + 1)\n", `		if x.plugin.config.Breaks("rule-4") {
			e.Body = x.taken
			return x.step(e)
		}
		e.Body = mustBody(x.plugin.config.Body.Hold + 1)
`),
		},
	},
	{
		// Trailers are passed on as if they said nothing of the body.
		name: "rule-5", scenario: "trailers-change-nothing-of-the-count",
		changes: []wasmbuild.Change{in(shellExchange, "func (x *exchange) OnHttpRequestTrailers(int) (action types.Action) {\n",
			`func (x *exchange) OnHttpRequestTrailers(int) (action types.Action) {
	if x.plugin.config.Breaks("rule-5") {
		return types.ActionContinue
	}
`)},
	},
	{
		// The two entries find each other by x-request-id.
		name: "rule-6", scenario: "one-request-id-on-sixteen-streams", simBlind: true,
		changes: []wasmbuild.Change{
			in(shellExchange, "	action = x.step(e)\n	if x.plugin.config.Hold", `	action = x.step(e)
	if id, err := proxywasm.GetHttpRequestHeader("x-request-id"); err == nil && x.plugin.config.Breaks("rule-6") {
		byRequestID[id] = x.id
	}
	if x.plugin.config.Hold`),
			in(shellGate, "	switch partner {\n", `	if id, err := proxywasm.GetHttpRequestHeader("x-request-id"); err == nil && g.plugin.config.Breaks("rule-6") {
		partner, n = core.PartnerHere, uint64(byRequestID[id])
	}
	switch partner {
`),
			in(shellGate, "// join tells", "var byRequestID = map[string]uint32{}\n\n// join tells"),
		},
	},
	{
		// The first entry let go inside the gate's body callback of the same answer.
		name: "rule-2-answer", scenario: "a-held-answer-of-http2-in-one-piece", crashes: true,
		changes: []wasmbuild.Change{
			in(coreHeld, "	case !s.waits.due:\n", `	case s.w.config.Breaks("rule-2-answer"):
		s.tellCost(fx)
		fx.add(Effect{Kind: ResumeAnswer})
	case !s.waits.due:
`),
			in(shellExchange, "	case core.SetResponseHeader:\n", "	case core.SetResponseHeader:\n		if x.plugin.config.Breaks(\"rule-2-answer\") {\n			x.about(false)\n		}\n"),
			in(shellExchange, "		x.defer1(x.own, x.resumeAnswer)\n", "		x.defer1(x.own && !x.plugin.config.Breaks(\"rule-2-answer\"), x.resumeAnswer)\n"),
		},
	},
	{
		// A held answer is bound by its size alone, which never comes where the host's buffers end before.
		name: "rule-7", scenario: "a-held-answer-larger-than-the-buffers",
		changes: []wasmbuild.Change{in("plugin/core/worker.go", "		w.answers.tick(e.Now, w.drain, &fx)\n",
			"		if !w.config.Breaks(\"rule-7\") {\n			w.answers.tick(e.Now, w.drain, &fx)\n		}\n")},
	},
	{
		// The length that the client stated is left where the body is edited.
		name: "content-length", scenario: "a-grown-body-leaves-the-next-request-on-its-connection-alone",
		changes: []wasmbuild.Change{in(coreStream, `	if length != "" && !e.End {`, `	if length != "" && !e.End && !c.Breaks("content-length") {`)},
	},
}

// TestScenariosFailWithoutTheRulesOfThePair breaks each rule that lets two entries hold one
// exchange, and sees its scenario fail: on a real Envoy, and on the simulated host.
func TestScenariosFailWithoutTheRulesOfThePair(t *testing.T) {
	t.Parallel() // a broken scenario is mostly waiting
	changes := []wasmbuild.Change{in("plugin/config/compiled.go", "// Measure is what a limit counts.\n",
		"func (c *Compiled) Breaks(rule string) bool { return len(c.Limits) > 0 && c.Limits[0].Name == rule }\n\n// Measure is what a limit counts.\n")}
	for _, r := range rules {
		changes = append(changes, r.changes...)
	}
	broken := wasmbuild.Changed(t, changes...)
	for gateway, redis := range map[string]string{scenario.GatewayHostsim: "", scenario.GatewayEnvoy: buckettest.StartRedis(t)} {
		t.Run(gateway, func(t *testing.T) {
			t.Parallel()
			o := scenario.Options{
				Gateway: gateway, Wasm: broken, Probes: probes(), Redis: redis,
				Modes: map[string][]scenario.Entry{"pair": scenario.EmmerModes()["pair"]},
			}
			var names []string
			for _, r := range rules {
				if gateway == scenario.GatewayHostsim && r.simBlind || gateway == scenario.GatewayEnvoy && r.crashes {
					continue
				}
				names = append(names, r.name)
				o.Files = append(o.Files, filepath.Join("testdata", "scenarios", r.scenario+".txtar"))
			}
			var seen []string
			err := scenario.Run(context.Background(), o, func(r scenario.Result) {
				i := slices.IndexFunc(rules, func(x pairRule) bool { return x.scenario+"/pair" == r.Name })
				seen = append(seen, rules[i].name)
				if r.Err == nil {
					t.Errorf("%s holds though %s is broken", r.Name, rules[i].name)
				} else {
					t.Logf("%s: %s", rules[i].name, firstLines(r.Err.Error(), 2))
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(seen, names) {
				t.Errorf("ran %q, want %q", seen, names)
			}
		})
	}
}

func firstLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[:min(n, len(lines))], "\n")
}
