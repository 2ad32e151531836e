package core

import (
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
	"github.com/emmer-proxy/emmer/plugin/callout"
)

func callsOf(fx []Effect) (calls []*StoreCall) {
	for _, f := range fx {
		if f.Kind == Call {
			calls = append(calls, f.Call)
		}
	}
	return calls
}

// done is a script's reply: numbers, then the call's nonce.
func done(nonce string, n ...int64) []script.Value {
	return append(numbers(n...), script.Value{Text: nonce})
}

func job(w *Worker, id string) *Job {
	return &Job{ID: id, layout: w.layout, Items: []bucket.Item{{Limit: bucket.Limit{Name: "tpm", Kind: bucket.TokenBucket, Rate: 1, Per: 1, Burst: 10}, Amount: 3}}}
}

func TestASettlementIsRepeatedUntilTheStoreConfirmsIt(t *testing.T) {
	w := newWorker(t, "flag", "closed")
	if got := kinds(w.Step(Event{Kind: Settle, Now: 0, Job: job(w, "a")})); got != "wake" {
		t.Fatalf("put: %q", got)
	}
	now := bucket.Millis(0)
	sent := callsOf(w.Step(Event{Kind: Flush, Now: now}))
	if len(sent) != 1 {
		t.Fatalf("flush sent %d calls", len(sent))
	}
	for i, failure := range []callout.Class{callout.Unavailable, callout.Misconfigured, callout.Unsent} {
		w.Step(storeFails(now, sent[0].Tag, failure))
		if got := callsOf(w.Step(Event{Kind: Tick, Now: now + 50})); len(got) != 0 {
			t.Fatalf("try %d: repeated at once", i)
		}
		now += 5000
		if sent = settles(callsOf(w.Step(Event{Kind: Tick, Now: now}))); len(sent) != 1 {
			t.Fatalf("try %d: %d calls after the pause", i, len(sent))
		}
	}
	// A forgotten script is sent whole, at once.
	again := callsOf(w.Step(storeFails(now, sent[0].Tag, callout.NoScript)))
	if len(again) != 1 || !strings.Contains(string(again[0].Request.Body[:8]), `"EVAL"`) {
		t.Fatalf("after NOSCRIPT: %d calls", len(again))
	}
	w.Step(storeReply(now, again[0].Tag, done("s.a", int64(bucket.SettledLive), 9000, 7)))
	if !w.outbox.empty() {
		t.Error("the confirmed settlement is still in the outbox")
	}
	// A late duplicate of the answer changes nothing.
	if fx := w.Step(storeFails(now, again[0].Tag, callout.OK)); len(fx) != 0 {
		t.Errorf("a duplicate answer did %s", kinds(fx))
	}
}

func settles(fx []*StoreCall) (out []*StoreCall) {
	for _, f := range fx {
		if !strings.Contains(string(f.Request.Body), "HGETALL") {
			out = append(out, f)
		}
	}
	return out
}

func TestTheOutboxIsBounded(t *testing.T) {
	w := newWorker(t, "flag", "closed")
	dropped := 0
	for range outboxCap + 10 {
		for _, f := range w.Step(Event{Kind: Settle, Now: 0, Job: job(w, "x")}) {
			if f.Kind == Count && f.Name == "emmer.outbox_dropped" {
				dropped++
			}
		}
	}
	if dropped != 10 {
		t.Errorf("dropped %d, want 10", dropped)
	}
	if n := len(callsOf(w.Step(Event{Kind: Flush, Now: 0}))); n != outboxFlight/batchMost {
		t.Errorf("%d calls at a time, want %d", n, outboxFlight/batchMost)
	}
}

// TestSettlementsInACrowdShareACall settles three calls at once; the store has forgotten the script,
// refuses one for now and confirms the others.
func TestSettlementsInACrowdShareACall(t *testing.T) {
	w := newWorker(t, "flag", "closed")
	if got := kinds(w.Step(Event{Kind: Settle, Now: 1000, Job: job(w, "a")})); got != "wake" {
		t.Errorf("the first one: %q, want it sent at once", got)
	}
	first := callsOf(w.Step(Event{Kind: Flush, Now: 1000}))
	w.Step(storeReply(1001, first[0].Tag, done("s.a", int64(bucket.SettledLive), 9000, 7)))
	for _, id := range []string{"b", "c", "d"} {
		if got := kinds(w.Step(Event{Kind: Settle, Now: 1002, Job: job(w, id)})); got != "" {
			t.Errorf("one soon after: %q, want it to wait for the tick", got)
		}
	}
	calls := callsOf(w.Step(Event{Kind: Tick, Now: 1010}))
	if len(calls) != 1 || calls[0].Request.Headers[1][1] != "/pipeline" {
		t.Fatalf("%d calls", len(calls))
	}
	forgotten := `{"error":"NOSCRIPT x"}`
	again := callsOf(w.Step(Event{Kind: StoreReply, Now: 1011, Tag: calls[0].Tag, Status: "200", Body: []byte("[" + forgotten + "," + forgotten + "," + forgotten + "]")}))
	if len(again) != 1 || !strings.HasPrefix(string(again[0].Request.Body), `[["EVAL",`) {
		t.Fatalf("after NOSCRIPT: %d calls", len(again))
	}
	ok := func(id string) string { return result(done("s."+id, int64(bucket.SettledLive), 9000, 7)) }
	w.Step(Event{Kind: StoreReply, Now: 1012, Tag: again[0].Tag, Status: "200", Body: []byte("[" + ok("b") + `,{"error":"LOADING x"},` + ok("d") + "]")})
	last := callsOf(w.Step(Event{Kind: Tick, Now: 1200}))
	if len(last) != 1 || !strings.Contains(string(last[0].Request.Body), `"s.c"`) {
		t.Fatalf("the one that was not confirmed: %d calls", len(last))
	}
	w.Step(storeReply(1201, last[0].Tag, done("s.c", int64(bucket.SettledLive), 9000, 7)))
	if !w.outbox.empty() {
		t.Error("something is left in the outbox")
	}
}

func TestShutdownDrainsTheOutboxFirst(t *testing.T) {
	w := newWorker(t, "flag", "closed")
	w.Step(Event{Kind: Settle, Now: 0, Job: job(w, "a")})
	fx := w.Step(Event{Kind: Shutdown, Now: 1})
	if got := kinds(fx); got != "call" {
		t.Fatalf("shutdown: %q", got)
	}
	fx = w.Step(storeReply(2, callsOf(fx)[0].Tag, done("s.a", int64(bucket.SettledLive), 9000, 7)))
	if got := kinds(fx); got != "drained" {
		t.Errorf("after the last answer: %q", got)
	}
	if got := kinds(newWorker(t, "flag", "closed").Step(Event{Kind: Shutdown})); got != "drained" {
		t.Errorf("with nothing to send: %q", got)
	}
}

func TestLongExchangesKeepTheirLease(t *testing.T) {
	w := newWorker(t, "flag", "closed")
	half := w.config.Lease.For / 2
	w.Step(Event{Kind: LeaseTaken, Now: 0, Job: job(w, "a")})
	w.Step(Event{Kind: LeaseTaken, Now: 10, Job: job(w, "b")})
	w.Step(Event{Kind: Settle, Now: 20, Job: job(w, "b")})
	w.Step(storeReply(20, callsOf(w.Step(Event{Kind: Flush, Now: 20}))[0].Tag, done("s.b", int64(bucket.SettledLive), 9000, 7)))
	if got := settles(callsOf(w.Step(Event{Kind: Tick, Now: half - 1}))); len(got) != 0 {
		t.Fatal("renewed before half the lease")
	}
	sent := settles(callsOf(w.Step(Event{Kind: Tick, Now: half + 20})))
	if len(sent) != 1 || !strings.Contains(string(sent[0].Request.Body), "n.a") {
		t.Fatalf("%d renewals, want one, of a", len(sent))
	}
	// The store is away: it is asked again well before the lease ends.
	w.Step(storeFails(half+20, sent[0].Tag, callout.Unavailable))
	sent = settles(callsOf(w.Step(Event{Kind: Tick, Now: half + 20 + half/4})))
	if len(sent) != 1 {
		t.Fatalf("%d renewals after a failed one", len(sent))
	}
	w.Step(storeReply(half+half/2, sent[0].Tag, done("n.a", int64(bucket.Renewed), 9000, 70000)))
	sent = settles(callsOf(w.Step(Event{Kind: Tick, Now: 3 * half})))
	if len(sent) != 1 {
		t.Fatalf("%d renewals in the next half", len(sent))
	}
	w.Step(Event{Kind: Settle, Now: 3 * half, Job: job(w, "a")})
	w.Step(storeReply(3*half, sent[0].Tag, done("n.a", int64(bucket.RenewSettled), 9000, 0)))
	for _, f := range settles(callsOf(w.Step(Event{Kind: Tick, Now: 9 * half}))) {
		if strings.Contains(string(f.Request.Body), "n.a") {
			t.Error("renewed after the end")
		}
	}
}

func TestKillFlagsReachEveryWorkerThroughOnePoll(t *testing.T) {
	a, b := newWorker(t, "flag", "closed"), newWorker(t, "flag", "closed")
	fx := a.Step(Event{Kind: Tick, Now: 10_000, OK: true})
	if got := kinds(fx); got != "share-if" {
		t.Fatalf("first tick: %q", got)
	}
	lease := fx[0]
	fx = a.Step(Event{Kind: SharedStored, Now: 10_000, OK: true})
	if len(callsOf(fx)) != 1 {
		t.Fatal("the worker that stored the time first must ask the store")
	}
	// The other worker sees the fresh time and stays quiet.
	if got := kinds(b.Step(Event{Kind: Tick, Now: 10_050, OK: true, Shared: lease.Body, Version: 2})); got != "" {
		t.Fatalf("the other worker did %q", got)
	}
	value := script.KillValue(20_000, "ann", "fire")
	fx = a.Step(storeReply(10_060, callsOf(fx)[0].Tag, []script.Value{{Text: "key:k"}, {Text: value}}))
	if got := kinds(fx); got != "share" {
		t.Fatalf("after the answer: %q", got)
	}
	b.Step(Event{Kind: Tick, Now: 10_100, OK: true, Shared: fx[0].Body, Version: 3})
	for name, w := range map[string]*Worker{"asker": a, "other": b} {
		s := w.NewStream(1)
		fx := s.Step(headersEvent(false))
		if len(callsOf(fx)) != 0 || s.State() != Refused || s.record.status != 403 {
			t.Errorf("%s: a killed key came to %v (%s)", name, s.State(), kinds(fx))
		}
		late := headersEvent(false)
		late.Now = 20_001
		s = w.NewStream(2)
		if s.Step(late); s.State() != Reading {
			t.Errorf("%s: the flag outlived its end: %v", name, s.State())
		}
	}
}

func TestTheOperatorIsToldOfAStoreThatCantBeUsedButNotAtEveryCall(t *testing.T) {
	w := newWorker(t, "flag", "closed")
	told := 0
	for now := bucket.Millis(1000); now < 31_000; now += 100 {
		s := w.NewStream(uint64(now))
		s.Step(headersEvent(false))
		s.Step(bodyEvent(chat))
		for _, f := range s.Step(storeFails(now, 0, callout.Unsent)) {
			if f.Kind != Tell {
				continue
			}
			e := *f.Event
			e.Now = now
			for _, g := range w.Step(e) {
				if g.Kind == Log {
					told++
					if !strings.Contains(g.Value, "cluster bridge") {
						t.Errorf("told %q, which doesn't name the cluster", g.Value)
					}
				}
			}
		}
	}
	if told != 3 {
		t.Errorf("told %d times in 30 seconds, want 3", told)
	}
}

func TestAnOutageDoesNotHideAWrongSetting(t *testing.T) {
	w := newWorker(t, "flag", "closed")
	log := func(c callout.Class, now bucket.Millis) bool {
		fx := w.Step(Event{Kind: StoreFault, Now: now, Class: c, Text: "x"})
		return len(fx) == 1 && fx[0].Kind == Log
	}
	if !log(callout.Unavailable, 1000) || log(callout.Unavailable, 1001) || !log(callout.Misconfigured, 1002) || log(callout.Misconfigured, 1003) || !log(callout.Unavailable, 11_000) {
		t.Error("want each class told at once, and not again for ten seconds")
	}
}
