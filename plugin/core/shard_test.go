package core

import (
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
	"github.com/emmer-proxy/emmer/plugin/callout"
	"github.com/emmer-proxy/emmer/plugin/config"
)

// newSharded is a worker whose calls touch two shards: of all, and of the header x-org.
func newSharded(t *testing.T, all, own string, limits ...string) *Worker {
	t.Helper()
	if len(limits) == 0 {
		limits = []string{
			`{"name": "own", "by": ["key"], "count": "tokens", "bucket": {"rate": "6000/m", "burst": 6000}, "failure": "` + own + `"}`,
			`{"name": "all", "by": ["model"], "count": "tokens", "bucket": {"rate": "6000/m", "burst": 6000}, "failure": "` + all + `"}`,
			`{"name": "calls", "by": ["key"], "count": "requests", "bucket": {"rate": "6000/m", "burst": 6000}, "failure": "` + own + `"}`,
		}
	}
	c, err := config.Parse([]byte(`{
		"version": 1, "currency": "EUR", "store": {"cluster": "bridge", "token": "t", "shard": "org", "namespace": "test"}, "hold": {"mode": "flag"},
		"identity": {"org": {"header": "x-org", "missing": "pass"}, "key": {"header": "x-api-key"}},
		"models": {"m": {"tokenizer": "o200k_base", "max_output": 1000}},
		"limits": [`+strings.Join(limits, ",")+`]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	return NewWorker(c, "tag")
}

func ofOrg(org string) Event { return headersEvent(false, [2]string{"x-org", org}) }

// says is what a store answers to a part.
func says(p *part, outcome bucket.Outcome, by, retry, left int64) Event {
	v := numbers(int64(outcome), 5000, 0, by, retry)
	switch outcome {
	case bucket.Granted:
		v = numbers(int64(outcome), 5000, 65000, 0, 0)
	case bucket.Killed:
		v = append(v, script.Value{Text: script.KillValue(0, "ann", "fire")})
	}
	if outcome != bucket.Killed {
		for range p.At {
			v = append(v, numbers(left)...)
		}
		for range p.At {
			v = append(v, numbers(6000)...)
		}
		v = append(v, numbers(0)...)
	}
	return storeReply(1002, 0, append(v, script.Value{Text: p.call.Nonce}))
}

func deciding(t *testing.T, w *Worker) *Stream {
	t.Helper()
	s := w.NewStream(1)
	s.Step(ofOrg("acme"))
	if got := kinds(s.Step(bodyEvent(chat))); got != "call call hold" {
		t.Fatalf("at the end of the body: %s", got)
	}
	return s
}

func header(fx []Effect, name string) string {
	for _, f := range fx {
		for _, h := range f.Headers {
			if h[0] == name {
				return h[1]
			}
		}
	}
	return ""
}

// TestOneAnswerOfTwoShards: a call passes if both grant. Where one doesn't, the other gets its amount back,
// and the caller is told what binds, in whichever order the answers come.
func TestOneAnswerOfTwoShards(t *testing.T) {
	type one struct {
		outcome   bucket.Outcome
		by, retry int64
	}
	const broken = bucket.Outcome(0)
	for _, x := range []struct {
		all, own  one
		status    int // 0: it passes
		limit     string
		retry     string
		cancelled int // shards
	}{
		{one{bucket.Granted, 0, 0}, one{bucket.Granted, 0, 0}, 0, "", "", 0},
		{one{bucket.Granted, 0, 0}, one{bucket.Denied, 2, 2500}, 429, "calls", "2500", 1},
		{one{bucket.Denied, 1, 1500}, one{bucket.Granted, 0, 0}, 429, "all", "1500", 1},
		{one{bucket.Denied, 1, 1500}, one{bucket.Denied, 1, 2500}, 429, "own", "2500", 0},
		{one{bucket.Denied, 1, 3500}, one{bucket.Denied, 1, 2500}, 429, "all", "3500", 0},
		{one{bucket.Denied, 1, 2500}, one{bucket.Denied, 1, 2500}, 429, "own", "2500", 0},
		{one{bucket.NeverFits, 1, 0}, one{bucket.Denied, 1, 2500}, 400, "all", "", 0},
		{one{bucket.NeverFits, 1, 0}, one{bucket.Killed, 1, 0}, 403, "", "", 0},
		{one{bucket.Killed, 1, 0}, one{bucket.Granted, 0, 0}, 403, "", "", 1},
		{one{broken, 0, 0}, one{bucket.Granted, 0, 0}, 503, "", "1000", 2},
		{one{broken, 0, 0}, one{bucket.Denied, 1, 2500}, 429, "own", "2500", 1},
		{one{broken, 0, 0}, one{broken, 0, 0}, 503, "", "1000", 2},
	} {
		for _, order := range [][2]int{{0, 1}, {1, 0}} {
			w := newSharded(t, "closed", "closed")
			s := deciding(t, w)
			var fx []Effect
			for n, i := range order {
				a := []one{x.all, x.own}[i]
				e := storeFails(1002, 0, callout.Unavailable)
				if a.outcome != broken {
					e = says(&s.parts[i], a.outcome, a.by, a.retry, 100)
				}
				e.Tag = uint64(i)
				if fx = s.Step(e); n == 0 && (s.State() != Deciding || strings.Contains(kinds(fx), "answer") || strings.Contains(kinds(fx), "settle")) {
					t.Errorf("%+v: %s after one answer of two", x, kinds(fx))
				}
			}
			status, cancelled, leases := 0, 0, 0
			for _, f := range fx {
				switch {
				case f.Kind == Answer:
					status = f.Status
				case f.Kind == Tell && f.Event.Kind == Settle:
					cancelled++
				case f.Kind == Tell && f.Event.Kind == LeaseTaken:
					leases++
				}
			}
			if status != x.status || cancelled != x.cancelled || header(fx, "x-emmer-limit") != x.limit || header(fx, "retry-after-ms") != x.retry {
				t.Errorf("%+v, in order %v: %d, limit %q, retry %q, %d cancelled", x, order, status, header(fx, "x-emmer-limit"), header(fx, "retry-after-ms"), cancelled)
			}
			if x.status == 0 && (leases != 2 || s.State() != Forwarded) {
				t.Errorf("%+v: %d leases, state %v", x, leases, s.State())
			}
		}
	}
}

// TestFailurePolicyOfEachShard: open passes without the shard that is broken, for its limits alone.
func TestFailurePolicyOfEachShard(t *testing.T) {
	for _, x := range []struct {
		all, own string
		broken   int // which of the two
		passes   bool
	}{{"open", "closed", 0, true}, {"open", "closed", 1, false}, {"closed", "open", 0, false}, {"closed", "open", 1, true}} {
		w := newSharded(t, x.all, x.own)
		s := deciding(t, w)
		for i := range s.parts {
			e := says(&s.parts[i], bucket.Granted, 0, 0, 100)
			if i == x.broken {
				e = storeFails(1002, 0, callout.Unsent)
			}
			e.Tag = uint64(i)
			s.Step(e)
		}
		if passes := s.State() == Forwarded; passes != x.passes {
			t.Errorf("%+v: %v", x, s.State())
		}
		if !x.passes {
			continue
		}
		s.Step(responseEvent())
		n := 0
		for _, f := range s.Step(Event{Kind: ResponseBody, Now: 1200, Body: []byte(answer), End: true}) {
			if f.Kind == Tell && f.Event.Kind == Settle {
				n++
			}
		}
		if n != 2 || s.record.decision != "passed_open" {
			t.Errorf("%+v: %d settlements of a call that %s", x, n, s.record.decision)
		}
	}
}

// TestFlagsOfAShardThatNothingIsTakenFrom: they are looked at without a script.
func TestFlagsOfAShardThatNothingIsTakenFrom(t *testing.T) {
	const own = `{"name": "own", "by": ["key"], "count": "tokens", "bucket": {"rate": "6000/m", "burst": 6000}}`
	const all = `{"name": "all", "by": ["model"], "count": "tokens", "bucket": {"rate": "6000/m", "burst": 6000}}`
	null := script.Value{}
	flag := func(until bucket.Millis) script.Value {
		return script.Value{Text: script.KillValue(until, "ann", "fire")}
	}
	for _, x := range []struct {
		flags []script.Value // global:all org:acme key:k model:m target:default
		state State
	}{
		{[]script.Value{null, null, null, null, null}, Forwarded},
		{[]script.Value{null, null, flag(0), null, null}, Refused},
		{[]script.Value{null, null, flag(1002), null, null}, Forwarded},
		{[]script.Value{null, null, flag(1003), null, null}, Refused},
		{[]script.Value{null, {Text: "by hand"}, null, null, null}, Refused},
		{[]script.Value{null, null}, Forwarded}, // broken: the flags last known stay in force
		{nil, Forwarded},
	} {
		for watched, limit := range []string{own, all} {
			s := deciding(t, newSharded(t, "", "", limit))
			e := storeReply(1002, uint64(watched), x.flags)
			s.Step(e)
			taken := says(&s.parts[1-watched], bucket.Granted, 0, 0, 100)
			taken.Tag = uint64(1 - watched)
			fx := s.Step(taken)
			if s.State() != x.state {
				t.Errorf("flags %v in shard %d: %v", x.flags, watched, s.State())
			}
			jobs := strings.Count(kinds(fx), "settle")
			if want := map[State]int{Forwarded: 0, Refused: 1}[x.state]; jobs != want {
				t.Errorf("flags %v in shard %d: %d settlements", x.flags, watched, jobs)
			}
		}
	}
}

// TestBothShardsAreRenewed: each part of a long call has a lease of its own.
func TestBothShardsAreRenewed(t *testing.T) {
	w := newSharded(t, "closed", "closed")
	s := deciding(t, w)
	for i := range s.parts {
		e := says(&s.parts[i], bucket.Granted, 0, 0, 100)
		e.Tag = uint64(i)
		tellAll(w, s.Step(e))
	}
	renewed := func(now bucket.Millis) string {
		var homes []string
		for _, c := range settles(callsOf(w.Step(Event{Kind: Tick, Now: now}))) {
			for _, home := range []string{"{g}", "{o.acme}"} {
				if strings.Contains(string(c.Request.Body), "test:1:"+home+":r:tag-1") && strings.Contains(string(c.Request.Body), `"n.tag-1"`) {
					homes = append(homes, home)
				}
			}
		}
		return strings.Join(homes, " ")
	}
	if got := renewed(1002 + w.config.Lease.For/2); got != "{g} {o.acme}" {
		t.Errorf("renewed in %s", got)
	}
	tellAll(w, s.Step(responseEvent()))
	tellAll(w, s.Step(Event{Kind: ResponseBody, Now: 1200, Body: []byte(answer), End: true}))
	if got := renewed(1002 + 3*w.config.Lease.For); got != "" {
		t.Errorf("renewed after the end in %s", got)
	}
}

// TestARefusalOfOneShardKeepsCallsFromBoth: a client that its own org's limit refuses takes nothing from
// the limit of all while that is remembered, so that it is in nobody's way; the same name in another org
// asks as ever.
func TestARefusalOfOneShardKeepsCallsFromBoth(t *testing.T) {
	w := newSharded(t, "closed", "closed")
	s := deciding(t, w)
	for i, o := range []bucket.Outcome{bucket.Granted, bucket.Denied} {
		e := says(&s.parts[i], o, 1, 60_000, 0)
		e.Tag = uint64(i)
		tellAll(w, s.Step(e))
	}
	again := w.NewStream(2)
	again.Step(ofOrg("acme"))
	body := bodyEvent(chat)
	body.Now = 1010
	if fx := again.Step(body); len(callsOf(fx)) != 0 || again.State() != Refused || header(fx, "x-emmer-limit") != "own" {
		t.Errorf("the next call of the org: %s, limit %q", kinds(fx), header(fx, "x-emmer-limit"))
	}
	other := w.NewStream(3)
	other.Step(ofOrg("umbra"))
	if fx := other.Step(body); len(callsOf(fx)) != 2 {
		t.Errorf("the same key of another org: %s", kinds(fx))
	}
}

// TestAShardThatHangsHoldsUpItsOwnSettlementsOnly: those of two shards share a call. Where it broke off,
// because one of them gave no answer in time, each shard's are repeated by themselves.
func TestAShardThatHangsHoldsUpItsOwnSettlementsOnly(t *testing.T) {
	w := newSharded(t, "closed", "closed")
	for i := range 6 {
		j := job(w, string(rune('a'+i)))
		j.layout = w.layout.Of([]string{"", "acme", "umbra"}[i%3])
		w.Step(Event{Kind: Settle, Now: 1000, Job: j})
	}
	sent := settles(callsOf(w.Step(Event{Kind: Flush, Now: 1000})))
	if len(sent) != 1 {
		t.Fatalf("%d calls for six settlements", len(sent))
	}
	w.Step(storeFails(1010, sent[0].Tag, callout.Unavailable))
	w.Step(Event{Kind: Settle, Now: 1011, Job: job(w, "new")})
	again := settles(callsOf(w.Step(Event{Kind: Tick, Now: 2000})))
	if len(again) != 3 {
		t.Errorf("%d calls, want one for each shard", len(again))
	}
	for _, c := range again {
		shards := 0
		for _, tag := range []string{"{g}", "{o.acme}", "{o.umbra}"} {
			if strings.Contains(string(c.Request.Body), tag) {
				shards++
			}
		}
		if shards != 1 {
			t.Errorf("a repeated call names %d shards", shards)
		}
	}
}

// TestAPartThatStartedFirstIsRenewedInTime: a call waits for its turn in one shard for half of the lease that it
// has in the other, or for less. The first renewal there leaves time for another try, whenever it began.
func TestAPartThatStartedFirstIsRenewedInTime(t *testing.T) {
	for _, share := range []bucket.Millis{2, 3, 5, 9} {
		w := newSharded(t, "closed", "closed")
		wait := w.config.Lease.For / share
		s := deciding(t, w)
		first, then := says(&s.parts[0], bucket.Granted, 0, 0, 100), parkedPart(&s.parts[1], int64(wait))
		first.Tag, then.Tag = 0, 1
		tellAll(w, s.Step(first))
		tellAll(w, s.Step(then))
		ends := 1002 + w.config.Lease.For
		renewed := bucket.Millis(0)
		for now := bucket.Millis(1010); now < ends+1000 && renewed == 0; now += 10 {
			fx := w.Step(Event{Kind: Tick, Now: now})
			for range released(fx) {
				tellAll(w, s.Step(Event{Kind: Released, Now: now}))
			}
			for _, c := range settles(callsOf(fx)) {
				if l := w.calls[c.Tag].lease; l != nil && l.layout == s.parts[0].layout {
					renewed = now
				}
			}
		}
		if s.State() != Forwarded || renewed == 0 || renewed > ends-w.config.Lease.For/4 {
			t.Errorf("after 1/%d of a lease: %v, renewed at %d, and the lease ends at %d", share, s.State(), renewed, ends)
		}
	}
}
