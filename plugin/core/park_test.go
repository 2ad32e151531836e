package core

import (
	"math/rand"
	"sort"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/callout"
	"github.com/emmer-proxy/emmer/plugin/config"
)

// waiting brings a stream to wait for its turn, so many ms from 1002 on, and hands on what it tells.
func waiting(t *testing.T, w *Worker, n uint64, wait int64) *Stream {
	t.Helper()
	s := w.NewStream(n)
	s.Step(headersEvent(false))
	s.Step(bodyEvent(chat))
	tellAll(w, s.Step(parkedReply(t, s, wait)))
	return s
}

// tellAll gives the Worker what a stream tells it, and answers with what it asks for.
func tellAll(w *Worker, fx []Effect) (out []Effect) {
	for _, f := range fx {
		if f.Kind == Tell {
			out = append(out, w.Step(*f.Event)...)
		}
	}
	return out
}

// released are the exchanges that a step lets go, in order.
func released(fx []Effect) (out []uint64) {
	for _, f := range fx {
		if f.Kind == Release {
			out = append(out, uint64(f.N))
		}
	}
	return out
}

func TestACallWaitsForItsTurnAndNoLonger(t *testing.T) {
	w := newWorker(t, "flag", "closed")
	s := waiting(t, w, 7, 700)
	if s.State() != Parked {
		t.Fatalf("state %v", s.State())
	}
	for now := bucket.Millis(1003); now <= 1002+700; now += 7 {
		if got := released(w.Step(Event{Kind: Tick, Now: now})); got != nil {
			t.Fatalf("let go at %d, after %d ms", now, now-1002)
		}
	}
	fx := w.Step(Event{Kind: Tick, Now: 1002 + 701})
	if got := released(fx); len(got) != 1 || got[0] != 7 {
		t.Fatalf("let go %v", got)
	}
	e := *fx[len(fx)-1].Event
	e.Now = 1710
	fx = s.Step(e)
	if got := kinds(fx); got != "tell(left-queue) tell(lease-taken) set(content-length=82) set(x-emmer-target=up) resume" {
		t.Errorf("then: %q", got)
	}
	tellAll(w, fx)
	if s.waited != 1710-1001 || s.record.queued != 1710-1002 || len(w.parked.places) != 0 || w.parked.bytes != 0 {
		t.Errorf("waited %d ms, of which %d in the queue; %d wait", s.waited, s.record.queued, len(w.parked.places))
	}
	// The lease counts from the start, and so does its renewal.
	for now := bucket.Millis(1720); now < 1710+w.config.Lease.For/2; now += 10 {
		if calls := settles(callsOf(w.Step(Event{Kind: Tick, Now: now}))); len(calls) != 0 {
			t.Fatalf("renewed at %d", now)
		}
	}
	if calls := settles(callsOf(w.Step(Event{Kind: Tick, Now: 1710 + w.config.Lease.For/2}))); len(calls) != 1 {
		t.Errorf("%d renewals at half its lease", len(calls))
	}
}

// TestLateReleasesAreSaidAgain: a fault may lose what a tick asked for, and the call must not wait
// for ever.
func TestLateReleasesAreSaidAgain(t *testing.T) {
	w := newWorker(t, "flag", "closed")
	waiting(t, w, 7, 50)
	told := 0
	for now := bucket.Millis(1010); now <= 3500; now += 10 {
		told += len(released(w.Step(Event{Kind: Tick, Now: now})))
	}
	if told != 3 {
		t.Errorf("told %d times in 2.4 s, want 3", told)
	}
}

// TestNoStepOfTheClockBringsATurnForward: a clock that somebody sets on or back neither starts calls
// early nor keeps them.
func TestNoStepOfTheClockBringsATurnForward(t *testing.T) {
	for _, step := range []bucket.Millis{0, 3_600_000, -900} {
		w := newWorker(t, "flag", "closed")
		waiting(t, w, 7, 5000)
		passed := bucket.Millis(0)
		for now := bucket.Millis(1002); ; now += 10 {
			if passed == 1000 {
				now += step
			}
			if released(w.Step(Event{Kind: Tick, Now: now})) != nil {
				break
			}
			if passed += 10; passed > 10_000 {
				break
			}
		}
		if earliest := 5000 - bucket.Millis(1000); passed < earliest || passed > 5020 {
			t.Errorf("clock set by %d ms: the turn came after %d", step, passed)
		}
	}
}

func TestTheParkIsBounded(t *testing.T) {
	for _, most := range []config.Park{{Calls: 3, Bytes: 1 << 20}, {Calls: 100, Bytes: 3*len(chat) + 10}} {
		w := newWorker(t, "flag", "closed")
		w.parked.most = most
		w.Step(Event{Kind: Tick, Now: 1000})
		// All are decided before any is granted, so that none knows that there will be no room.
		var streams []*Stream
		for n := range uint64(5) {
			s := w.NewStream(n)
			s.Step(headersEvent(false))
			s.Step(bodyEvent(chat))
			streams = append(streams, s)
		}
		for i, s := range streams {
			fx := s.Step(parkedReply(t, s, int64(9000-i)))
			tellAll(w, fx)
			switch {
			case i < 3 && s.State() != Parked:
				t.Errorf("%+v: call %d is %v", most, i, s.State())
			case i >= 3 && kinds(fx) != "tell(settle) answer(429) hold":
				t.Errorf("%+v: call %d: %q", most, i, kinds(fx))
			case i >= 3 && s.record.retry != 8998+1: // when the first one leaves
				t.Errorf("%+v: call %d may come again after %d ms", most, i, s.record.retry)
			}
		}
		if len(w.parked.places) != 3 || w.parked.bytes != 3*len(chat) {
			t.Errorf("%+v: %d calls wait, with %d bytes", most, len(w.parked.places), w.parked.bytes)
		}
	}
}

func TestACallForWhichThereIsNoRoomAsksForNoPlace(t *testing.T) {
	p := &parkTable{most: config.Park{Calls: 1, Bytes: 100}}
	items := func() []bucket.Item { return []bucket.Item{{Queue: 50}, {}} }
	if it := items(); !p.offer(it, 100) || it[0].Queue != 50 {
		t.Error("with room")
	}
	if it := items(); p.offer(it, 101) || it[0].Queue != 0 {
		t.Error("too large")
	}
	if !p.offer([]bucket.Item{{}}, 101) {
		t.Error("who would not wait anyway is not concerned")
	}
	p.put(&place{wait: 9, bytes: 1}, 1000)
	if it := items(); p.offer(it, 1) || it[0].Queue != 0 {
		t.Error("full")
	}
}

// TestTheEndOfThePluginEndsTheWait: a host that ends the plugin waits until nothing is left to send, so
// that what waits for its turn is refused and its place given back first.
func TestTheEndOfThePluginEndsTheWait(t *testing.T) {
	w := newWorker(t, "flag", "closed")
	refused, left := waiting(t, w, 1, 60_000), waiting(t, w, 2, 70_000)
	fx := w.Step(Event{Kind: Shutdown, Now: 1100})
	if got := released(fx); len(got) != 2 || strings.Contains(kinds(fx), "drained") {
		t.Fatalf("at the end: %q", kinds(fx))
	}
	said := *fx[0].Event
	fx = refused.Step(said)
	if got := kinds(fx); got != "tell(settle) tell(left-queue) answer(503) hold" {
		t.Errorf("refused by %q", got)
	}
	out := append(tellAll(w, fx), tellAll(w, left.Step(Event{Kind: StreamDone, Now: 1101}))...)
	if strings.Contains(kinds(out), "drained") || len(w.parked.places) != 0 {
		t.Errorf("before the settlements were sent: %q, and %d wait", kinds(out), len(w.parked.places))
	}
	// Both settlements are confirmed: now the plugin may end.
	out = nil
	for _, c := range settles(callsOf(w.Step(Event{Kind: Tick, Now: 1110}))) {
		out = append(out, w.Step(storeFails(1120, c.Tag, callout.Unsent))...)
	}
	if strings.Contains(kinds(out), "drained") {
		t.Error("over with settlements that were not sent")
	}
	for _, c := range settles(callsOf(w.Step(Event{Kind: Tick, Now: 5000}))) {
		ok := done("s.tag-1", int64(bucket.SettledLive), 9000, 7)
		two := done("s.tag-2", int64(bucket.SettledLive), 9000, 7)
		out = append(out, w.Step(Event{Kind: StoreReply, Now: 5010, Tag: c.Tag, Status: "200", Body: []byte("[" + result(ok) + "," + result(two) + "]")})...)
	}
	if !strings.HasSuffix(kinds(out), "drained") {
		t.Errorf("with nothing left: %q", kinds(out))
	}
}

func TestAKillFlagEndsTheWait(t *testing.T) {
	w := newWorker(t, "flag", "closed")
	s, other := waiting(t, w, 1, 60_000), waiting(t, w, 2, 60_000)
	other.place.kills = []string{"key:other"}
	w.Step(Event{Kind: KillSeen, Flag: KillFlag{Field: "key:k", Value: "0|ann|fire"}})
	fx := w.Step(Event{Kind: Tick, Now: 1010})
	if got := released(fx); len(got) != 1 || got[0] != 1 {
		t.Fatalf("let go %v", got)
	}
	e := *fx[0].Event
	fx = s.Step(e)
	tellAll(w, fx)
	if got := kinds(fx); got != "tell(settle) tell(left-queue) answer(403) hold" || s.record.settled != "cancelled" {
		t.Errorf("%q, settled %q", got, s.record.settled)
	}
	if got := released(w.Step(Event{Kind: Tick, Now: 1020})); got != nil {
		t.Errorf("then let go %v", got)
	}
	if len(w.parked.places) != 1 {
		t.Errorf("%d wait", len(w.parked.places))
	}
}

// TestTheParkAgainstAPlainList drives the table and a list that is sorted anew each time.
func TestTheParkAgainstAPlainList(t *testing.T) {
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		table := parkTable{most: config.Park{Calls: 20, Bytes: 500}}
		var plain []*place
		bytes := func() (n int) {
			for _, p := range plain {
				n += p.bytes
			}
			return n
		}
		now, came := bucket.Millis(1000), uint64(0)
		ends := map[*place]bucket.Millis{}
		for range 200 {
			now += bucket.Millis(r.Intn(30))
			switch r.Intn(4) {
			case 0, 1:
				p := &place{n: came, wait: bucket.Millis(1 + r.Intn(300)), bytes: r.Intn(60)}
				if ok := len(plain) < 20 && bytes()+p.bytes <= 500; ok != table.room(p.bytes) {
					t.Fatalf("seed %d: room %v", seed, !ok)
				} else if ok {
					came++
					table.put(p, now)
					plain, ends[p] = append(plain, p), now+p.wait
				}
			case 2:
				if len(plain) > 0 {
					i := r.Intn(len(plain))
					table.drop(plain[i])
					table.drop(plain[i])
					plain = append(plain[:i:i], plain[i+1:]...)
				}
			case 3:
				sort.SliceStable(plain, func(i, j int) bool { return ends[plain[i]] < ends[plain[j]] })
				var want []uint64
				var due []*place
				for _, p := range plain {
					if ends[p] < now {
						want, due = append(want, p.n), append(due, p)
					}
				}
				var fx effects
				table.tick(now, &killTable{}, false, &fx)
				got := released(fx)
				if len(got) != len(want) {
					t.Fatalf("seed %d: let go %v, want %v", seed, got, want)
				}
				for i := range got {
					if got[i] != want[i] {
						t.Fatalf("seed %d: let go %v, want %v", seed, got, want)
					}
				}
				for _, p := range due {
					table.drop(p)
				}
				plain = plain[len(due):]
			}
			if len(plain) != len(table.places) || bytes() != table.bytes {
				t.Fatalf("seed %d: %d with %d bytes, want %d with %d", seed, len(table.places), table.bytes, len(plain), bytes())
			}
		}
	}
}
