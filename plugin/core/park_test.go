package core

import (
	"math/rand"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
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
	p.put(&place{at: storeTime{"g", 9}, bytes: 1}, 1000)
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

// TestAnswersThatAreLateKeepTheOrder: on a busy machine answers overtake each other. The order is that of
// the starts, and no start is earlier than the soonest answer proves.
func TestAnswersThatAreLateKeepTheOrder(t *testing.T) {
	table := parkTable{most: config.Park{Calls: 20, Bytes: 500}}
	put := func(n uint64, start, answered, came bucket.Millis) {
		table.put(&place{n: n, at: storeTime{"g", 70_000 + start}, now: 70_000 + answered, took: came - answered}, came)
	}
	put(1, 100, 0, 300) // took 300 ms
	put(2, 150, 5, 310)
	put(3, 200, 290, 315)
	var got []uint64
	for now := bucket.Millis(100); now < 400; now++ {
		var fx effects
		if now >= 315 {
			table.tick(now, &killTable{}, false, &fx)
		}
		for _, n := range released(fx) {
			got = append(got, n)
			if start := []bucket.Millis{0, 100, 150, 200}[n]; now <= start+25 {
				t.Errorf("%d started at %d", n, now)
			}
		}
	}
	if len(got) != 3 || got[0] != 1 || got[1] != 2 || got[2] != 3 {
		t.Errorf("in the order %v", got)
	}
	// A limit whose clock is an hour ahead, for whatever reason, brings no other's turn forward by more
	// than its answer took.
	for _, p := range slices.Clone(table.places) {
		table.drop(p)
	}
	put(4, 2000, 400, 420)
	put(5, 3_600_000+2000, 3_600_000, 420)
	for now := bucket.Millis(420); now < 1900; now++ {
		var fx effects
		if table.tick(now, &killTable{}, false, &fx); now < 420+1580 && len(released(fx)) > 0 {
			t.Errorf("at %d let go %v", now, released(fx))
		}
	}
	// A shard is forgotten before the table grows, and what was seen is not believed for long.
	for i := range 3 * skewCap {
		table.see(storeTime{strconv.Itoa(i), 0})
	}
	if len(table.stores) > skewCap {
		t.Errorf("%d shards", len(table.stores))
	}
	table = parkTable{clock: 1000}
	table.see(storeTime{"g", 1000})
	for range 4 {
		table.clock += skewTurn
		table.see(storeTime{"g", table.clock - 70})
	}
	if s := table.stores["g"]; min(s.least, s.before) != 70 {
		t.Errorf("%+v", s)
	}
}

// TestTheParkAgainstAPlainList drives the table and a list that is sorted anew each time.
func TestTheParkAgainstAPlainList(t *testing.T) {
	const skew = 123_456 // of the store's clock
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		best := bucket.Millis(1 << 40) // the least that an answer took
		table := parkTable{most: config.Park{Calls: 20, Bytes: 500}}
		var plain []*place
		starts := func(p *place) bucket.Millis { return p.at.at - skew + best }
		bytes := func() (n int) {
			for _, p := range plain {
				n += p.bytes
			}
			return n
		}
		now, came := bucket.Millis(1000), uint64(0)
		for range 200 {
			now += bucket.Millis(r.Intn(30))
			switch r.Intn(4) {
			case 0, 1:
				took := bucket.Millis(r.Intn(40))
				p := &place{n: came, now: now - took + skew, took: took + bucket.Millis(r.Intn(9)), bytes: r.Intn(60)}
				p.at.at = p.now + bucket.Millis(1+r.Intn(300))
				if ok := len(plain) < 20 && bytes()+p.bytes <= 500; ok != table.room(p.bytes) {
					t.Fatalf("seed %d: room %v", seed, !ok)
				} else if ok {
					came++
					table.put(p, now)
					best = min(best, took)
					plain = append(plain, p)
				}
			case 2:
				if len(plain) > 0 {
					i := r.Intn(len(plain))
					table.drop(plain[i])
					table.drop(plain[i])
					plain = append(plain[:i:i], plain[i+1:]...)
				}
			case 3:
				sort.SliceStable(plain, func(i, j int) bool { return starts(plain[i]) < starts(plain[j]) })
				var want []uint64
				var due []*place
				for _, p := range plain {
					if starts(p) < now {
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

// TestAPartOfAParkedCallIsKeptAlive: a call waits for its turn in one shard, longer than its lease in the
// other one lasts, which is renewed meanwhile; that of the shard it waits for only once it runs.
func TestAPartOfAParkedCallIsKeptAlive(t *testing.T) {
	w := newSharded(t, "closed", "closed")
	s := deciding(t, w)
	now, soon := says(&s.parts[0], bucket.Granted, 0, 0, 100), parkedPart(&s.parts[1], 100_000)
	now.Tag, soon.Tag = 0, 1
	tellAll(w, s.Step(now))
	tellAll(w, s.Step(soon))
	if s.State() != Parked {
		t.Fatalf("state %v", s.State())
	}
	count := func(from, to bucket.Millis) (renewals int, let []uint64) {
		for now := from; now <= to; now += 10 {
			fx := w.Step(Event{Kind: Tick, Now: now})
			let = append(let, released(fx)...)
			for _, c := range settles(callsOf(fx)) {
				renewals++
				w.Step(storeReply(now, c.Tag, done("n."+s.id, int64(bucket.Renewed), 9000, 99_000)))
			}
		}
		return renewals, let
	}
	if n, let := count(1010, 1000+100_000); n != 3 || let != nil { // at 30, 60 and 90 s
		t.Errorf("%d renewals while it waits; let go: %v", n, let)
	}
	if _, let := count(1000+100_010, 1000+100_020); len(let) != 1 {
		t.Fatalf("let go %v at its turn", let)
	}
	tellAll(w, s.Step(Event{Kind: Released, Now: 101_030}))
	if n, _ := count(101_030, 101_030+30_010); n != 2 {
		t.Errorf("%d renewals of two leases when it has run for half of one", n)
	}
}

// parkedPart is a part's answer that grants a start so many ms later.
func parkedPart(p *part, wait int64) Event {
	v := numbers(int64(bucket.Granted), 5000, 65000+wait, 0, 5000+wait)
	for range p.At {
		v = append(v, numbers(-100)...)
	}
	for range p.At {
		v = append(v, numbers(6000)...)
	}
	return storeReply(1002, 0, append(append(v, numbers(0)...), script.Value{Text: p.call.Nonce}))
}
