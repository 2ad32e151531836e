package core

import (
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/callout"
)

// sharing is a worker of a store in shards, with 65 tokens a year, enough for 3 calls, as its share of what belongs to no org. Who
// has the key small finds no share in its org's shard.
func sharing(t *testing.T) *Worker {
	t.Helper()
	return newSharded(t, "local", "local",
		`{"name": "all", "by": ["model"], "count": "tokens", "bucket": {"rate": "10/d", "burst": 650}, "failure": "local"}`,
		`{"name": "own", "by": ["key"], "for": {"key": "small"}, "count": "tokens", "bucket": {"rate": "6000/m", "burst": 500}, "failure": {"mode": "local", "local_share": "1%"}}`)
}

// outage brings a call of a key to the decision, while no shard gives an answer.
func outage(w *Worker, key string, now bucket.Millis) *testExchange {
	exchanges++
	x := &testExchange{w: w, s: w.NewStream(exchanges)}
	h := ofOrg("acme")
	h.Now, h.Head.Headers[0][1] = now, key
	x.step(h)
	b := bodyEvent(chat)
	b.Now = now
	x.step(b)
	for i := range x.s.parts {
		x.step(storeFails(now, uint64(i), callout.Unavailable))
	}
	return x
}

func passesInOutage(w *Worker, now bucket.Millis) (n int) {
	for range 5 {
		if outage(w, "k", now).s.State() == Forwarded {
			n++
		}
	}
	return n
}

// TestWhatWasNotDrawnIsNotGivenBack: a call of two shards, both away, that one has no share for draws
// nothing of the other's share, and gives nothing back to it.
func TestWhatWasNotDrawnIsNotGivenBack(t *testing.T) {
	w, now := sharing(t), bucket.Millis(1_000_000_000_000)
	if n := passesInOutage(w, now); n != 3 {
		t.Fatalf("%d of a share of 3 passed", n)
	}
	for range 3 {
		x := outage(w, "small", now)
		if x.s.State() != Refused || counted(x.fx, "emmer.local_too_small") != 1 {
			t.Fatalf("%v %+v", x.s.State(), x.s.record)
		}
	}
	if n := passesInOutage(w, now); n != 0 {
		t.Errorf("%d more passed after refusals that took nothing", n)
	}
	if w.shares.running != 3 {
		t.Errorf("%d calls are thought to run, want 3", w.shares.running)
	}
}

// TestADrawThatAFaultLostIsNotGivenBack loses what the step asked for that would have drawn.
func TestADrawThatAFaultLostIsNotGivenBack(t *testing.T) {
	w, now := sharing(t), bucket.Millis(1_000_000_000_000)
	if n := passesInOutage(w, now); n != 3 {
		t.Fatalf("%d of a share of 3 passed", n)
	}
	w = sharing(t)
	kept := []*testExchange{outage(w, "k", now), outage(w, "k", now)}
	for n := range uint64(2) {
		lost := &testExchange{w: w, s: w.NewStream(99 + n)}
		h := ofOrg("acme")
		h.Now = now
		lost.step(h)
		b := bodyEvent(chat)
		b.Now = now
		lost.step(b)
		for i := range lost.s.parts {
			_ = lost.s.Step(storeFails(now, uint64(i), callout.Unavailable))
		}
		lost.step(Event{Kind: Recovered, Now: now})
	}
	if n := passesInOutage(w, now); n != 1 {
		t.Errorf("%d more passed beside %d that did, of a share of 3", n, len(kept))
	}
}

// TestACallOfAnEarlierOutageGivesNothingBackToALaterOne: its share was made whole meanwhile.
func TestACallOfAnEarlierOutageGivesNothingBackToALaterOne(t *testing.T) {
	w, now := sharing(t), bucket.Millis(1_000_000_000_000)
	var long []*testExchange
	for range 3 {
		long = append(long, outage(w, "k", now))
	}
	// The store answers for longer than calm.
	for end := now + 2*calm; now < end; now += 500 {
		for _, tag := range []string{w.layout.Tag, long[0].s.parts[len(long[0].s.parts)-1].layout.Tag} {
			w.Step(Event{Kind: StoreBack, Now: now, Drawn: &drawn{shard: shardID(tag)}})
		}
		w.Step(Event{Kind: Tick, Now: now})
	}
	if n := passesInOutage(w, now); n != 3 {
		t.Fatalf("%d of a new share of 3 passed", n)
	}
	for _, x := range long { // which took nothing after all
		r := responseEvent()
		r.Now, r.Response.Status = now, 500
		x.step(r)
		x.step(Event{Kind: ResponseBody, Now: now, Body: []byte(`{"error":{}}`), End: true})
		x.step(Event{Kind: StreamDone, Now: now})
	}
	if n := passesInOutage(w, now); n != 0 {
		t.Errorf("%d more passed in the second outage", n)
	}
}

// TestAFaultCountsWhateverBecomesOfItsCall: a shard that gives no answer is not calm, though other limits
// refuse the calls that see it, or though nobody but the outbox asks it.
func TestAFaultCountsWhateverBecomesOfItsCall(t *testing.T) {
	for _, seen := range []string{"by a call that is refused", "by a settlement"} {
		w, now := sharing(t), bucket.Millis(1_000_000_000_000)
		if n := passesInOutage(w, now); n != 3 {
			t.Fatalf("%d of a share of 3 passed", n)
		}
		w.Step(Event{Kind: StoreBack, Now: now, Drawn: &drawn{shard: shardID(w.layout.Tag)}})
		for end := now + 2*calm; now < end; now += 500 {
			if seen == "by a settlement" {
				w.Step(Event{Kind: Settle, Now: now, Job: job(w, "x")})
			}
			for _, c := range settles(callsOf(w.Step(Event{Kind: Tick, Now: now}))) {
				w.Step(storeFails(now, c.Tag, callout.Unavailable))
			}
			if seen == "by a settlement" {
				continue
			}
			x := &testExchange{w: w, s: w.NewStream(7)}
			h := ofOrg("acme")
			h.Now, h.Head.Headers[0][1] = now, "small"
			x.step(h)
			b := bodyEvent(chat)
			b.Now = now
			x.step(b)
			if x.s.State() == Refused {
				continue // from memory
			}
			x.step(storeFails(now, 0, callout.Unavailable))
			denied := says(&x.s.parts[1], bucket.Denied, 1, 100, 0)
			denied.Now, denied.Tag = now, 1
			x.step(denied)
			if x.s.State() != Refused || x.s.record.from != "" {
				t.Fatalf("%v %+v", x.s.State(), x.s.record)
			}
		}
		if n := passesInOutage(w, now); n != 0 {
			t.Errorf("%d more passed after faults seen %s", n, seen)
		}
	}
}
