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
	return &Job{ID: id, Items: []bucket.Item{{Limit: bucket.Limit{Name: "tpm", Kind: bucket.TokenBucket, Rate: 1, Per: 1, Burst: 10}, Amount: 3}}}
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
		e := Event{Kind: StoreReply, Now: now, Tag: sent[0].Tag, Reply: callout.Reply{Class: failure, Error: "x"}}
		if failure == callout.Unsent {
			e = Event{Kind: StoreUnsent, Now: now, Tag: sent[0].Tag}
		}
		w.Step(e)
		if got := callsOf(w.Step(Event{Kind: Tick, Now: now + 50})); len(got) != 0 {
			t.Fatalf("try %d: repeated at once", i)
		}
		now += 5000
		if sent = settles(callsOf(w.Step(Event{Kind: Tick, Now: now}))); len(sent) != 1 {
			t.Fatalf("try %d: %d calls after the pause", i, len(sent))
		}
	}
	// A forgotten script is sent whole, at once.
	again := callsOf(w.Step(Event{Kind: StoreReply, Now: now, Tag: sent[0].Tag, Reply: callout.Reply{Class: callout.NoScript}}))
	if len(again) != 1 || !strings.Contains(string(again[0].Request.Body[:8]), `"EVAL"`) {
		t.Fatalf("after NOSCRIPT: %d calls", len(again))
	}
	w.Step(Event{Kind: StoreReply, Now: now, Tag: again[0].Tag, Reply: callout.Reply{Class: callout.OK, Values: done("s.a", int64(bucket.SettledLive), 9000, 7)}})
	if !w.outbox.empty() {
		t.Error("the confirmed settlement is still in the outbox")
	}
	// A late duplicate of the answer changes nothing.
	if fx := w.Step(Event{Kind: StoreReply, Now: now, Tag: again[0].Tag, Reply: callout.Reply{Class: callout.OK}}); len(fx) != 0 {
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
	if n := len(callsOf(w.Step(Event{Kind: Flush, Now: 0}))); n != outboxFlight {
		t.Errorf("%d calls at a time, want %d", n, outboxFlight)
	}
}

func TestShutdownDrainsTheOutboxFirst(t *testing.T) {
	w := newWorker(t, "flag", "closed")
	w.Step(Event{Kind: Settle, Now: 0, Job: job(w, "a")})
	fx := w.Step(Event{Kind: Shutdown, Now: 1})
	if got := kinds(fx); got != "call" {
		t.Fatalf("shutdown: %q", got)
	}
	fx = w.Step(Event{Kind: StoreReply, Now: 2, Tag: callsOf(fx)[0].Tag, Reply: callout.Reply{Class: callout.OK, Values: done("s.a", int64(bucket.SettledLive), 9000, 7)}})
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
	w.Step(Event{Kind: StoreReply, Tag: callsOf(w.Step(Event{Kind: Flush, Now: 20}))[0].Tag, Reply: callout.Reply{Class: callout.OK, Values: done("s.b", int64(bucket.SettledLive), 9000, 7)}})
	if got := settles(callsOf(w.Step(Event{Kind: Tick, Now: half - 1}))); len(got) != 0 {
		t.Fatal("renewed before half the lease")
	}
	sent := settles(callsOf(w.Step(Event{Kind: Tick, Now: half + 20})))
	if len(sent) != 1 || !strings.Contains(string(sent[0].Request.Body), "n.a") {
		t.Fatalf("%d renewals, want one, of a", len(sent))
	}
	// The store is away: it is asked again well before the lease ends.
	w.Step(Event{Kind: StoreReply, Now: half + 20, Tag: sent[0].Tag, Reply: callout.Reply{Class: callout.Unavailable}})
	sent = settles(callsOf(w.Step(Event{Kind: Tick, Now: half + 20 + half/4})))
	if len(sent) != 1 {
		t.Fatalf("%d renewals after a failed one", len(sent))
	}
	w.Step(Event{Kind: StoreReply, Now: half + half/2, Tag: sent[0].Tag, Reply: callout.Reply{Class: callout.OK, Values: done("n.a", int64(bucket.Renewed), 9000, 70000)}})
	sent = settles(callsOf(w.Step(Event{Kind: Tick, Now: 3 * half})))
	if len(sent) != 1 {
		t.Fatalf("%d renewals in the next half", len(sent))
	}
	w.Step(Event{Kind: Settle, Now: 3 * half, Job: job(w, "a")})
	w.Step(Event{Kind: StoreReply, Now: 3 * half, Tag: sent[0].Tag, Reply: callout.Reply{Class: callout.OK, Values: done("n.a", int64(bucket.RenewSettled), 9000, 0)}})
	for _, f := range settles(callsOf(w.Step(Event{Kind: Tick, Now: 9 * half}))) {
		if strings.Contains(string(f.Request.Body), "n.a") {
			t.Error("renewed after the end")
		}
	}
}

func TestKillFlagsReachEveryWorkerThroughOnePoll(t *testing.T) {
	a, b := newWorker(t, "flag", "closed"), newWorker(t, "flag", "closed")
	fx := a.Step(Event{Kind: Tick, Now: 10_000})
	if got := kinds(fx); got != "share-if" {
		t.Fatalf("first tick: %q", got)
	}
	lease := fx[0]
	fx = a.Step(Event{Kind: SharedStored, Now: 10_000, OK: true})
	if len(callsOf(fx)) != 1 {
		t.Fatal("the worker that stored the time first must ask the store")
	}
	// The other worker sees the fresh time and stays quiet.
	if got := kinds(b.Step(Event{Kind: Tick, Now: 10_050, Shared: lease.Body, Version: 2})); got != "" {
		t.Fatalf("the other worker did %q", got)
	}
	value := script.KillValue(20_000, "ann", "fire")
	fx = a.Step(Event{Kind: StoreReply, Now: 10_060, Tag: callsOf(fx)[0].Tag, Reply: callout.Reply{Class: callout.OK,
		Values: []script.Value{{Text: "key:k"}, {Text: value}}}})
	if got := kinds(fx); got != "share" {
		t.Fatalf("after the answer: %q", got)
	}
	b.Step(Event{Kind: Tick, Now: 10_100, Shared: fx[0].Body, Version: 3})
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
