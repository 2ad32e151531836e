package core

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/callout"
	"github.com/emmer-proxy/emmer/plugin/config"
)

// localWorker is a worker with these limits of requests by key.
func localWorker(t testing.TB, limits string) *Worker {
	t.Helper()
	text := strings.NewReplacer("HOLD", "flag", "FAILURE", "local", "TARGETS", `{"up": {"provider": "openai"}}`).Replace(testConfig)
	at := strings.Index(text, `"limits"`)
	c, err := config.Parse([]byte(text[:at]+`"limits": [`+limits+`]}`), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return NewWorker(c, "tag")
}

const rpm = `{"name": "rpm", "by": ["key"], "count": "requests", "bucket": {"rate": "60/m", "burst": 30}}`

// exchange is a call as the shell plays it: what is told is told at once.
type testExchange struct {
	w  *Worker
	s  *Stream
	fx []Effect // of the last step
}

func (x *testExchange) step(e Event) {
	x.fx = x.s.Step(e)
	for _, f := range x.fx {
		if f.Kind == Tell {
			x.w.Step(*f.Event)
		}
	}
}

var exchanges uint64

// begin brings a call to where the store was asked.
func begin(w *Worker, key string, now bucket.Millis) *testExchange {
	exchanges++
	x := &testExchange{w: w, s: w.NewStream(exchanges)}
	h := headersEvent(false)
	h.Now, h.Head.Headers[0][1] = now, key
	x.step(h)
	b := bodyEvent(chat)
	b.Now = now
	x.step(b)
	return x
}

// away is the store's answer that is none.
func (x *testExchange) away(now bucket.Millis) *testExchange {
	x.step(storeFails(now, 0, callout.Unavailable))
	return x
}

func (x *testExchange) end(now bucket.Millis) {
	r := responseEvent()
	r.Now = now
	x.step(r)
	x.step(Event{Kind: ResponseBody, Now: now, Body: []byte(answer), End: true})
	x.step(Event{Kind: StreamDone, Now: now})
}

func counted(fx []Effect, name string) int {
	n := 0
	for _, f := range fx {
		if f.Kind == Count && f.Name == name {
			n++
		}
	}
	return n
}

func TestAWorkerPassesItsShareWhileTheStoreIsAway(t *testing.T) {
	w := localWorker(t, rpm)
	now := bucket.Millis(1_000_000)
	var passed []*testExchange
	for i := range 5 {
		x := begin(w, "k", now).away(now)
		if i < 3 {
			if x.s.State() != Forwarded || x.s.record.decision != "passed_local" || x.s.record.local != "rpm" || counted(x.fx, "emmer.passed_local") != 1 {
				t.Fatalf("call %d: %v, %+v", i, x.s.State(), x.s.record)
			}
			passed = append(passed, x)
			continue
		}
		if x.s.State() != Refused || x.s.record.status != 429 || x.s.record.retry != 10_000 || x.s.record.from != "local" || counted(x.fx, "emmer.refused_local") != 1 {
			t.Fatalf("call %d: %v, %+v", i, x.s.State(), x.s.record)
		}
	}
	// A tenth of one a second: the next one fits ten seconds later, and not before.
	if x := begin(w, "k", now+9999).away(now + 9999); x.s.State() != Refused || x.s.record.retry != 1 {
		t.Errorf("a millisecond early: %v, %+v", x.s.State(), x.s.record)
	}
	if x := begin(w, "k", now+10_000).away(now + 10_000); x.s.State() != Forwarded {
		t.Errorf("in time: %v", x.s.State())
	}
	// What passed is booked under its id; a settlement that is told twice gives back nothing twice.
	for _, x := range passed {
		x.end(now + 10_000)
		again := *x.s.jobs[0]
		w.Step(Event{Kind: Settle, Now: now + 10_000, Job: &again})
	}
	if w.shares.running != 1 {
		t.Errorf("%d calls are thought to run", w.shares.running)
	}
	if len(w.outbox.ready) != 3*2+2+1 { // also what the refused ones may have reserved
		t.Errorf("%d settlements", len(w.outbox.ready))
	}
}

func TestWhichFailurePolicyHolds(t *testing.T) {
	limit := func(name, failure string) string {
		return fmt.Sprintf(`{"name": %q, "by": ["key"], "count": "requests", "bucket": {"rate": "60/m", "burst": 30}, "failure": %s}`, name, failure)
	}
	for limits, want := range map[string]string{
		limit("a", `"local"`) + "," + limit("b", `"closed"`):                                                       "unavailable",
		limit("a", `"local"`) + "," + limit("b", `"open"`):                                                         "passed_local a",
		limit("a", `"open"`) + "," + limit("b", `"open"`):                                                          "passed_open ",
		limit("a", `"local"`) + "," + limit("b", `{"mode": "local", "local_share": "50%"}`):                        "passed_local a,b",
		limit("a", `{"mode": "local", "local_share": "3%"}`):                                                       "unavailable", // of 30: not one
		strings.Replace(limit("a", `"closed"`), `"by"`, `"mode": "shadow", "by"`, 1) + "," + limit("b", `"local"`): "passed_local b",
		strings.Replace(limit("a", `"local"`), `"by"`, `"mode": "shadow", "by"`, 1):                                "passed_open ",
	} {
		x := begin(localWorker(t, limits), "k", 1_000_000).away(1_000_000)
		got := x.s.record.decision
		if x.s.State() == Forwarded {
			got += " " + x.s.record.local
		}
		if got != want {
			t.Errorf("%s: %s, want %s", limits, got, want)
		}
	}
}

// TestAShareIsWholeAgainOnceTheStoreIsCalm: a store that comes and goes gives no new share each time.
func TestAShareIsWholeAgainOnceTheStoreIsCalm(t *testing.T) {
	w := localWorker(t, `{"name": "year", "by": ["key"], "count": "requests", "max": 30, "window": {"calendar": "year"}}`)
	now := bucket.Millis(1_000_000_000_000)
	passes := func() int {
		n := 0
		for range 5 {
			x := begin(w, "k", now).away(now)
			if x.s.State() == Forwarded {
				n++
				x.end(now)
			}
			x.step(Event{Kind: StreamDone, Now: now})
		}
		return n
	}
	answers := func() {
		x := begin(w, "other", now)
		x.step(reply(t, x.s, bucket.Granted))
		x.step(Event{Kind: StreamDone, Now: now})
	}
	until := func(end bucket.Millis) {
		for ; now < end; now += 500 {
			w.Step(Event{Kind: Tick, Now: now})
		}
	}
	if n := passes(); n != 3 {
		t.Fatalf("%d of a share of 3 passed", n)
	}
	until(now + 60_000)
	if n := passes(); n != 0 {
		t.Errorf("%d passed a minute later, without an answer in between", n)
	}
	answers()
	until(now + calm/2)
	if n := passes(); n != 0 {
		t.Errorf("%d passed after a short return of the store", n)
	}
	until(now + 2*calm)
	if n := passes(); n != 0 {
		t.Errorf("%d passed: the answer before the last fault counted", n)
	}
	answers()
	until(now + calm + 2*sweepEvery)
	if w.shares.any() || len(w.shares.away) != 0 {
		t.Errorf("shares are kept though the store has answered for long: %+v", w.shares)
	}
	if n := passes(); n != 3 {
		t.Errorf("%d of a new share of 3 passed in the next outage", n)
	}
}

func TestAShareOfCallsAtOnce(t *testing.T) {
	w := localWorker(t, `{"name": "parallel", "by": ["key"], "count": "concurrency", "max": 20}`)
	now := bucket.Millis(1_000_000)
	one, two := begin(w, "k", now).away(now), begin(w, "k", now).away(now)
	three := begin(w, "k", now).away(now)
	if one.s.State() != Forwarded || two.s.State() != Forwarded || three.s.State() != Refused || three.s.record.retry != 0 {
		t.Fatalf("%v, %v, %v %+v", one.s.State(), two.s.State(), three.s.State(), three.s.record)
	}
	one.step(Event{Kind: StreamDone, Now: now}) // the client left
	if x := begin(w, "k", now).away(now); x.s.State() != Forwarded {
		t.Errorf("after an end: %v", x.s.State())
	}
}

// TestSharesAreBounded: entities that nobody knows can't fill the VM, and nothing passes that couldn't
// be booked.
func TestSharesAreBounded(t *testing.T) {
	w := localWorker(t, `{"name": "hour", "by": ["key"], "count": "requests", "max": 1000, "window": {"rolling": "1h"}}`)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	now := bucket.Millis(1_000_000)
	long := strings.Repeat("x", 60_000)
	before := heap()
	passed, full := 0, 0
	for i := range sharesMost + 50 {
		x := begin(w, fmt.Sprint(i, long), now).away(now)
		if x.s.State() == Forwarded {
			passed++
			x.end(now)
			w.outbox = outbox{} // as if it had been booked
		}
		full += counted(x.fx, "emmer.local_full")
	}
	if passed != sharesMost || full != 50 || len(w.shares.byID) != sharesMost {
		t.Errorf("%d passed, %d found the table full, %d entries", passed, full, len(w.shares.byID))
	}
	grown := int64(heap() - before)
	t.Logf("%d bytes an entry", grown/sharesMost)
	if grown > sharesMost*600 {
		t.Errorf("%d entries keep %d bytes", sharesMost, grown)
	}
	if x := begin(w, "0"+long, now).away(now); x.s.State() != Forwarded {
		t.Error("who is in the table was refused")
	}
	// An hour later nothing of it counts.
	w.Step(Event{Kind: Tick, Now: now + 3_700_000})
	if n := len(w.shares.byID); n > 1 {
		t.Errorf("%d shares are kept that are whole again", n)
	}
	runtime.KeepAlive(w)

	w = localWorker(t, `{"name": "all", "by": [], "count": "requests", "max": 1000000, "window": {"rolling": "1h"}}`)
	passed, unbooked := 0, 0
	for range outboxCap + 50 {
		x := begin(w, "k", now).away(now)
		if x.s.State() == Forwarded {
			passed++
		}
		unbooked += counted(x.fx, "emmer.local_unbooked")
	}
	if passed+unbooked != outboxCap+50 || passed > outboxCap || passed < outboxCap/2 || w.outbox.room(w.shares.running) {
		t.Errorf("%d passed, %d could not have been booked", passed, unbooked)
	}
}

// BenchmarkLocal is what a decision by shares costs, with four limits.
func BenchmarkLocal(b *testing.B) {
	limits := make([]string, 4)
	for i := range limits {
		limits[i] = strings.Replace(rpm, "rpm", fmt.Sprint("rpm", i), 1)
	}
	w := localWorker(b, strings.Join(limits, ","))
	x := begin(w, "k", 1_000_000)
	p := &x.s.parts[0]
	b.ReportAllocs()
	for b.Loop() {
		v, d := w.shares.ask(p.layout.Tag, p.Part, x.s.plan.Items, x.s.plan.Limits, 1_000_000)
		if v.by < 0 {
			w.shares.draw(d, 1_000_000)
			w.shares.settle(d, x.s.plan.Nothing())
		}
	}
}

// TestSharesOfOneShard: only the limits of the shard that is broken are asked of shares; what the other
// one granted is kept, or given back.
func TestSharesOfOneShard(t *testing.T) {
	w := newSharded(t, "closed", "local",
		`{"name": "own", "by": ["key"], "count": "requests", "bucket": {"rate": "10/m", "burst": 10}, "failure": "local"}`,
		`{"name": "all", "by": ["model"], "count": "tokens", "bucket": {"rate": "6000/m", "burst": 6000}, "failure": "closed"}`)
	for i, want := range []State{Forwarded, Refused} {
		s := deciding(t, w)
		x := &testExchange{w: w, s: s}
		granted := says(&s.parts[0], bucket.Granted, 0, 0, 100)
		x.step(granted)
		lost := storeFails(1002, 1, callout.Unsent)
		x.step(lost)
		if s.State() != want || s.record.from != "local" {
			t.Fatalf("call %d: %v, %+v", i, s.State(), s.record)
		}
		settled := len(w.outbox.ready)
		if want == Forwarded {
			if s.record.decision != "passed_local" || s.record.local != "own" {
				t.Errorf("passed: %+v", s.record)
			}
			x.end(1100)
		} else if s.record.limit != "own" || s.record.status != 429 {
			t.Errorf("refused: %+v", s.record)
		}
		if n := len(w.outbox.ready) - settled; want == Forwarded && n != 2 || len(w.outbox.ready) != []int{2, 3}[i] {
			t.Errorf("call %d: %d settlements", i, len(w.outbox.ready))
		}
	}
	if len(w.shares.byID) != 1 {
		t.Errorf("%d shares", len(w.shares.byID))
	}
}

// TestARefusalOfOneShardStopsCallsToBoth: a client that one shard refuses must not take from the other
// and give back, again and again.
func TestARefusalOfOneShardStopsCallsToBoth(t *testing.T) {
	w := newSharded(t, "closed", "closed")
	x := &testExchange{w: w, s: deciding(t, w)}
	x.step(says(&x.s.parts[0], bucket.Granted, 0, 0, 100))
	denied := says(&x.s.parts[1], bucket.Denied, 2, 5000, 0)
	denied.Tag = 1
	x.step(denied)
	if x.s.State() != Refused || x.s.record.limit != "calls" {
		t.Fatalf("%v %+v", x.s.State(), x.s.record)
	}
	for org, asks := range map[string]int{"acme": 0, "umbra": 2} { // the same key in another org is another count
		s := w.NewStream(2)
		s.Step(ofOrg(org))
		b := bodyEvent(chat)
		b.Now = 1100
		if n := len(callsOf(s.Step(b))); n != asks {
			t.Errorf("%s: %d calls to the store, want %d", org, n, asks)
		}
		if asks == 0 && (s.record.limit != "calls" || s.record.from != "memory" || s.record.retry != 4902) {
			t.Errorf("%s: %+v", org, s.record)
		}
	}
}
