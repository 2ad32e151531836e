package main

import (
	"path/filepath"
	"testing"

	"github.com/emmer-proxy/emmer/bucket/buckettest"
	"github.com/emmer-proxy/emmer/hostsim/scenario"
	"github.com/emmer-proxy/emmer/plugin/internal/wasmbuild"
)

const (
	coreReserve  = "plugin/core/reserve.go"
	coreResponse = "plugin/core/response.go"
	corePark     = "plugin/core/park.go"
	coreLocal    = "plugin/core/local.go"
	coreExact    = "plugin/core/exact.go"
)

// faulty is the filter with faults built in: where a callback trips over the key that it has for a
// name, once for each exchange. The key "twice" also trips what catches the first fault.
func faulty(t *testing.T) string {
	return wasmbuild.Changed(t,
		in(coreStream, "// State is where the exchange stands.\n", `// Trip is a fault.
func (s *Stream) Trip(where string) {
	if len(s.caller.Values) > 0 && s.caller.Values[0] == where && !s.tripped {
		s.tripped = true
		var none *Stream
		none.state = Closed
	}
}

// State is where the exchange stands.
`),
		in(coreStream, "	settled bool\n", "	settled bool\n	tripped bool\n"),
		in(coreStream, "	s.caller = who\n", "	s.caller = who\n	s.Trip(\"headers\")\n"),
		in(coreStream, "	if len(body) == 0 {\n", "	s.Trip(\"body\")\n	s.Trip(\"twice\")\n	if len(body) == 0 {\n"),
		in(coreReserve, "		s.ask(i, c.Store.Timeout, fx)\n	}\n	return", "		s.ask(i, c.Store.Timeout, fx)\n		s.Trip(\"asked\")\n	}\n	return"),
		in(coreReserve, "	p := &s.parts[e.Tag]\n", "	s.Trip(\"reply\")\n	p := &s.parts[e.Tag]\n"),
		in(coreReserve, "		s.grant(inCallback, fx)\n", "		s.Trip(\"granted\")\n		s.grant(inCallback, fx)\n"),
		in(coreStream, "	fx.count(\"emmer.granted\")\n", "	fx.count(\"emmer.granted\")\n	s.Trip(\"grant\")\n"),
		in(coreStream, "func (s *Stream) onGateHeaders(fx *effects) {\n", "func (s *Stream) onGateHeaders(fx *effects) {\n	s.Trip(\"gate\")\n"),
		in(coreStream, "	fx.count(\"emmer.recovered\")\n", "	fx.count(\"emmer.recovered\")\n	if len(s.caller.Values) > 0 && s.caller.Values[0] == \"twice\" {\n		panic(\"twice\")\n	}\n"),
		in(corePark, "	s.state, s.parkedAt = Parked, now\n", "	s.state, s.parkedAt = Parked, now\n	s.Trip(\"parked\")\n"),
		in(corePark, "	fx.tell(Event{Kind: Queued, Now: now, Place: s.place})\n", "	fx.tell(Event{Kind: Queued, Now: now, Place: s.place})\n	s.Trip(\"queued\")\n"),
		in(corePark, "	flag, stopped := e.Flag, e.Flag.Field != \"\"\n", "	flag, stopped := e.Flag, e.Flag.Field != \"\"\n	s.Trip(\"turn\")\n"),
		in(corePark, "		s.admit(e.Now, s.place.open, fx)\n		s.grant(false, fx)\n", "		s.admit(e.Now, s.place.open, fx)\n		s.grant(false, fx)\n		s.Trip(\"left\")\n"),
		in(coreLocal, "	s.record.from = \"local\"\n", "	s.Trip(\"share\")\n	s.record.from = \"local\"\n"),
		in(coreLocal, "			s.record.local += s.plan.Limits[p.At[f.item]].Name\n		}\n	}\n", "			s.record.local += s.plan.Limits[p.At[f.item]].Name\n		}\n	}\n	s.Trip(\"drawn\")\n"),
		in(coreResponse, "	s.state = Responding\n", "	s.Trip(\"response\")\n	s.state = Responding\n"),
		in(coreResponse, "		s.meter.Write(e.Body)\n", "		s.meter.Write(e.Body)\n		s.Trip(\"chunk\")\n"),
		in(coreResponse, "		fx.tell(Event{Kind: AnswerHeld, Now: e.Now, Held: s.waits})\n", "		fx.tell(Event{Kind: AnswerHeld, Now: e.Now, Held: s.waits})\n		s.Trip(\"held\")\n"),
		in(coreExact, "	s.waits.bytes += len(e.Body)\n", "	s.waits.bytes += len(e.Body)\n	if s.state == Answered {\n		s.Trip(\"finish\")\n	}\n"),
		in(coreExact, "func (s *Stream) onAnswerDue(fx *effects) {\n", "func (s *Stream) onAnswerDue(fx *effects) {\n	s.Trip(\"due\")\n"),
		in(coreExact, "	s.waits = nil\n", "	s.waits = nil\n	s.Trip(\"let\")\n"),
		in(coreResponse, "func (s *Stream) onDone(e *Event, fx *effects) {\n", "func (s *Stream) onDone(e *Event, fx *effects) {\n	s.Trip(\"done\")\n"),
		in(coreResponse, "	if s.state != Passing && s.state != Fresh {\n", "	s.Trip(\"record\")\n	if s.state != Passing && s.state != Fresh {\n"),
		in(shellExchange, "		x.step(core.Event{Kind: core.StoreUnsent, Now: now(), Tag: tag})\n	}\n", "		x.step(core.Event{Kind: core.StoreUnsent, Now: now(), Tag: tag})\n	}\n	x.stream.Trip(\"sent\")\n"),
		in(shellExchange, "		defer x.guard(\"later\", &ignored)\n", "		defer x.guard(\"later\", &ignored)\n		x.stream.Trip(\"later\")\n"),
	)
}

// TestFaultsOfTheFilter lets the filter panic in every callback, on both hosts.
func TestFaultsOfTheFilter(t *testing.T) {
	t.Parallel()
	modes := scenario.EmmerModes()
	modes["gate-only"] = modes["pair"][1:]
	onBothHosts(t, scenario.Options{
		Files: []string{filepath.Join("testdata", "faults", "*.txtar")}, Wasm: faulty(t), Modes: modes,
	})
}

// TestChainWithoutGate runs chains that lack their second entry. They have VMs of their own: it is
// in its VM that an entry looks for a gate.
func TestChainWithoutGate(t *testing.T) {
	t.Parallel()
	onBothHosts(t, scenario.Options{
		Files: []string{filepath.Join("testdata", "chains", "*.txtar")}, Wasm: wasmbuild.Path(t),
		Modes: map[string][]scenario.Entry{"entry-only": scenario.EmmerModes()["pair"][:1]},
	})
}

// TestChainWithoutGateBesideOneThatHasIt runs chains that lack their second entry in a VM that has
// one for another chain.
func TestChainWithoutGateBesideOneThatHasIt(t *testing.T) {
	t.Parallel()
	pair := scenario.EmmerModes()["pair"]
	onBothHosts(t, scenario.Options{
		Files: []string{filepath.Join("testdata", "ungated", "*.txtar")}, Wasm: wasmbuild.Path(t),
		Modes: map[string][]scenario.Entry{"pair": pair, "entry-only": pair[:1]},
	})
}

func onBothHosts(t *testing.T, o scenario.Options) {
	o.Probes, o.Update = probes(), *update
	o.CompilationCache = filepath.Join("..", ".cache", "wazero")
	t.Run(scenario.GatewayHostsim, func(t *testing.T) {
		o := o
		o.Gateway = scenario.GatewayHostsim
		scenario.RunAll(t, o)
	})
	t.Run(scenario.GatewayEnvoy, func(t *testing.T) {
		o := o
		o.Gateway, o.Redis = scenario.GatewayEnvoy, buckettest.StartRedis(t)
		scenario.RunAll(t, o)
	})
}
