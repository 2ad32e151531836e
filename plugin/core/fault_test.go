package core

import (
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

// TestASettlementThatAFaultLostIsToldAgain drops what the step that settled asked for, as a fault in
// it does.
func TestASettlementThatAFaultLostIsToldAgain(t *testing.T) {
	w := newWorker(t, "flag", "closed")
	s := reach(t, w, false, Responding)
	lost := s.Step(Event{Kind: StreamDone, Now: 2000})
	told := s.Step(Event{Kind: Recovered, Now: 2001})
	job := func(fx []Effect) (j *Job) {
		for _, f := range fx {
			if f.Kind == Tell && f.Event.Kind == Settle {
				j = f.Event.Job
			}
		}
		return j
	}
	a, b := job(lost), job(told)
	if a == nil || b == nil || a == b || a.ID != b.ID || len(a.Items) != len(b.Items) || a.Items[0].Amount != b.Items[0].Amount {
		t.Fatalf("settled as %+v, and after the fault as %+v", a, b)
	}
}

// TestCallsThatAFaultLostAreMadeAgain loses 3 batches of settlements on their way to the host. The
// outbox has room for what comes, and sends the lost ones again.
func TestCallsThatAFaultLostAreMadeAgain(t *testing.T) {
	w := newWorker(t, "flag", "closed")
	now := bucket.Millis(1000)
	for range outboxFlight {
		w.Step(Event{Kind: Settle, Now: now, Job: job(w, "x")})
	}
	if n := len(settles(callsOf(w.Step(Event{Kind: Flush, Now: now})))); n == 0 {
		t.Fatal("nothing was sent")
	}
	w.Step(Event{Kind: Recovered, Now: now})
	w.Step(Event{Kind: Settle, Now: now, Job: job(w, "new")})
	if got := settles(callsOf(w.Step(Event{Kind: Tick, Now: now + 10}))); len(got) != 0 {
		t.Fatalf("%d calls beside a full outbox", len(got))
	}
	now += 2 * w.callTimeout()
	jobs := 0
	for range 100 {
		for _, c := range settles(callsOf(w.Step(Event{Kind: Tick, Now: now}))) {
			jobs += len(w.calls[c.Tag].jobs)
		}
		now += 10
	}
	if want := outboxFlight; jobs != want {
		t.Fatalf("%d settlements are under way again, want %d", jobs, want)
	}
	if w.outbox.flight != outboxFlight || len(w.outbox.ready)+len(w.outbox.waiting) != 1 {
		t.Errorf("%d in flight, %d ready and %d waiting", w.outbox.flight, len(w.outbox.ready), len(w.outbox.waiting))
	}
}

// TestAPlaceInTheQueueThatAFaultKeptIsGivenBack loses what the step asked for in which a call left the
// queue: no place is kept for ever, nor the end of the plugin with it.
func TestAPlaceInTheQueueThatAFaultKeptIsGivenBack(t *testing.T) {
	for name, e := range map[string]Event{
		"its turn came":   {Kind: Released, Now: 1800},
		"a flag rose":     {Kind: Released, Now: 1800, Flag: KillFlag{Field: "key:k", Value: "0|ann|fire"}},
		"the plugin ends": {Kind: Released, Now: 1800, End: true},
		"it was answered": responseEvent(),
		"its client left": {Kind: StreamDone, Now: 1800},
	} {
		w := newWorker(t, "flag", "closed")
		s := waiting(t, w, 7, 700)
		s.Step(e)
		tellAll(w, s.Step(Event{Kind: Recovered, Now: 1801}))
		if len(w.parked.places) != 0 || w.parked.bytes != 0 {
			t.Errorf("%s: %d places are kept", name, len(w.parked.places))
		}
	}
}
