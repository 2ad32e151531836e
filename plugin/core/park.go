package core

import (
	"cmp"
	"slices"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

// place is a call's place in the queue of its worker: the store has granted it a start in the future.
type place struct {
	n     uint64        // the exchange
	at    storeTime     // its start, in the shard where that is latest
	now   bucket.Millis // what that shard's clock said in its answer
	took  bucket.Millis // from the question to the answer
	wait  bucket.Millis // at least from the answer to the start, for other shards' sake
	bytes int           // of its body, which the host holds
	kills []string      // flags that stop it
	home  string        // of those of its org
	open  bool          // a part of the store is broken, whose policy is open

	least bucket.Millis // by the table's clock: not due before
	due   bucket.Millis // by the table's clock
	order uint64        // of its arrival
	told  bool          // the exchange was told that its turn has come
	again bucket.Millis // when to tell it once more
}

// parkTable holds the calls that wait for their turn, first those whose turn comes first; of the same
// turn, first those that came first. A call stays in it until its exchange says that it has left, so
// that the bounds hold for what the host holds.
type parkTable struct {
	most   config.Park
	places []*place
	bytes  int
	came   uint64
	clock  bucket.Millis // since the first call; it never stands back and never leaps
	last   bucket.Millis // the worker's time when the clock was last looked at
	flags  uint64        // what was known of kill flags when all were last looked up
	stores map[string]skew
}

// storeTime is a time by the clock of a shard.
type storeTime struct {
	tag string
	at  bucket.Millis
}

// skew is how much more the table's clock shows than a shard's: the least that was seen of late. Answers
// take their time, so that it is never less than the truth, and the answer that came soonest says it best.
type skew struct {
	least, before bucket.Millis // of this turn of skewTurn, and of the one before
	since         bucket.Millis
}

const (
	// skewTurn is how long what was seen stands at the least, and half of how long at the most: clocks drift.
	skewTurn bucket.Millis = 10_000
	// skewCap bounds the shards that are remembered. One that is forgotten is measured anew.
	skewCap = 256
)

// see takes in what a shard's clock says now. True: those that wait for a start there start earlier.
func (t *parkTable) see(at storeTime) bool {
	seen := t.clock - at.at
	s, known := t.stores[at.tag]
	switch {
	case !known && len(t.stores) >= skewCap:
		clear(t.stores)
		fallthrough
	case !known:
		s = skew{seen, seen, t.clock}
	case t.clock-s.since > skewTurn:
		s = skew{s.least, s.least, t.clock}
		s.least = seen
	}
	sooner := known && seen < min(s.least, s.before)
	s.least = min(s.least, seen)
	if t.stores == nil {
		t.stores = map[string]skew{}
	}
	t.stores[at.tag] = s
	return sooner
}

// turn is when a call may start. Both clocks count whole milliseconds, of which each may hide almost
// one more: hence one more.
func (t *parkTable) turn(p *place) bucket.Millis {
	s := t.stores[p.at.tag]
	return max(p.least, p.at.at+min(s.least, s.before)+1)
}

// leap is the most that the worker's clock may go on from one tick to the next. What is beyond it was
// set by somebody, or the worker stood still: neither must start calls before their turn.
const leap bucket.Millis = 1000

func (t *parkTable) advance(now bucket.Millis) {
	if t.last != 0 {
		t.clock += min(max(now-t.last, 0), leap)
	}
	t.last = now
}

func (t *parkTable) room(bytes int) bool {
	return len(t.places) < t.most.Calls && bytes <= t.most.Bytes-t.bytes
}

// offer takes from what a call asks of the store that it may wait, if there is no room for it here:
// it is then refused in one call, with the time when it would not have to wait. False: it did so.
func (t *parkTable) offer(items []bucket.Item, bytes int) bool {
	if t.room(bytes) {
		return true
	}
	took := false
	for i := range items {
		took = took || items[i].Queue > 0
		items[i].Queue = 0
	}
	return !took
}

// frees is how long until there is room for so many bytes, if nobody else comes.
func (t *parkTable) frees(bytes int) bucket.Millis {
	calls, held := len(t.places), t.bytes
	for _, p := range t.places {
		calls, held = calls-1, held-p.bytes
		if calls < t.most.Calls && bytes <= t.most.Bytes-held {
			return max(p.due-t.clock, 1)
		}
	}
	return 1
}

// put adds a call whose answer has just come.
func (t *parkTable) put(p *place, now bucket.Millis) {
	t.advance(now)
	if t.see(storeTime{p.at.tag, p.now}) {
		for _, other := range t.places {
			if other.at.tag == p.at.tag {
				other.due = t.turn(other)
			}
		}
		slices.SortFunc(t.places, earlier)
	}
	t.came++
	p.order = t.came
	// The script ran after it was asked for, whatever its clock said: the clock of a limit may be ahead
	// of its shard's.
	p.least = t.clock - p.took + p.at.at - p.now
	if p.wait > 0 {
		p.least = max(p.least, t.clock+p.wait+1)
	}
	p.due = t.turn(p)
	t.places = slices.Insert(t.places, t.index(p), p)
	t.bytes += p.bytes
}

// drop removes a call that is in the table.
func (t *parkTable) drop(p *place) {
	if i := t.index(p); i < len(t.places) && t.places[i] == p {
		t.places = slices.Delete(t.places, i, i+1)
		t.bytes -= p.bytes
	}
}

func (t *parkTable) index(p *place) int {
	i, _ := slices.BinarySearchFunc(t.places, p, earlier)
	return i
}

func earlier(a, b *place) int {
	if a.due != b.due {
		return cmp.Compare(a.due, b.due)
	}
	return cmp.Compare(a.order, b.order)
}

// tell says to an exchange that its turn has come, or e's reason why none will come. What a fault
// keeps from reaching it is said again after a second.
func (t *parkTable) tell(p *place, e Event, fx *effects) {
	if p.told && t.clock < p.again {
		return
	}
	p.told, p.again = true, t.clock+1000
	e.Kind = Released
	fx.add(Effect{Kind: Release, N: int64(p.n), Event: &e})
}

// tick lets go the calls whose turn has come, and those that a new kill flag stops.
func (t *parkTable) tick(now bucket.Millis, kills *killTable, ends bool, fx *effects) {
	t.advance(now)
	search := t.flags != kills.changes && kills.any()
	t.flags = kills.changes
	for _, p := range t.places {
		if ends {
			t.tell(p, Event{End: true}, fx)
			continue
		}
		if search {
			if f, ok := kills.find(p.kills, p.home, now); ok {
				t.tell(p, Event{Flag: f}, fx)
				continue
			}
		}
		if p.due <= t.clock {
			t.tell(p, Event{}, fx)
		} else if !search {
			break
		}
	}
}

// wait is how long until the call may begin: each part's start as its own shard counts, from now on.
func (s *Stream) wait() bucket.Millis {
	if p := s.latest(); p != nil {
		return p.wait()
	}
	return 0
}

// latest is the part whose start is latest, nil where none is granted.
func (s *Stream) latest() *part {
	var last *part
	for i := range s.parts {
		if p := &s.parts[i]; p.state == granted && (last == nil || p.wait() > last.wait()) {
			last = p
		}
	}
	return last
}

func (p *part) wait() bucket.Millis { return max(p.reply.Start-p.reply.Now, 0) }

// park makes a call wait that the store has granted a start in the future. open: as of admit.
func (s *Stream) park(now bucket.Millis, open bool, fx *effects) {
	if !s.w.parked.room(s.size) {
		// Policy of a full table: the call gives back its place, and is refused.
		fx.count("emmer.queue_full")
		s.cancel(now, fx)
		s.refuse(plan.QueueFull(s.w.parked.frees(s.size)), fx)
		return
	}
	fx.count("emmer.queued")
	s.state, s.parkedAt = Parked, now
	last := s.latest()
	s.place = &place{n: s.n, bytes: s.size, kills: s.plan.Kills, home: s.home, open: open,
		at: storeTime{last.layout.Tag, last.reply.Start}, now: last.reply.Now, took: s.waited}
	for i := range s.parts {
		p := &s.parts[i]
		if p.state != granted || p == last {
			continue
		}
		s.place.wait = max(s.place.wait, p.wait())
		// A lease counts from its own part's start: where another part makes the call wait for long, it
		// is renewed by that. Else it is as the call begins: half a lease from then there is time for another try.
		if last.wait()-p.wait() > s.w.config.Lease.For/8 {
			j := s.job(p, p.Of(s.plan.Items))
			j.wait, p.leased = p.wait(), true
			fx.tell(Event{Kind: LeaseTaken, Now: now, Job: j})
		}
	}
	fx.tell(Event{Kind: Queued, Now: now, Place: s.place})
}

// noQueue counts a denial of a call that might have waited.
func (s *Stream) noQueue(fx *effects) {
	switch by := s.reply.By; {
	case s.reply.Outcome != bucket.Denied:
	case s.unqueued:
		// Policy of a full table: nobody waits who is not in it.
		fx.count("emmer.queue_full")
	case by >= 0 && by < len(s.plan.Items) && s.plan.Items[by].Queue > 0:
		fx.count("emmer.queue_too_long")
	}
}

// leave ends the wait, whatever becomes of the call. A settlement must be told before.
func (s *Stream) leave(now bucket.Millis, fx *effects) {
	s.waited, s.record.queued = max(0, now-s.askedAt), max(0, now-s.parkedAt)
	fx.add(Effect{Kind: Count, Name: "emmer.queued_ms", N: int64(s.record.queued)})
	if s.place != nil { // or a fault struck before there was one
		fx.tell(Event{Kind: LeftQueue, Now: now, Place: s.place})
	}
}

// onReleased goes on with a call that waited: its turn has come, or a kill flag has risen, or the
// plugin ends, whose policy is to refuse what waits.
func (s *Stream) onReleased(e *Event, fx *effects) {
	if s.state != Parked {
		return
	}
	flag, stopped := e.Flag, e.Flag.Field != ""
	if !stopped {
		flag, stopped = s.w.kills.find(s.plan.Kills, s.home, e.Now)
	}
	if stopped || e.End {
		s.cancel(e.Now, fx)
	}
	s.leave(e.Now, fx)
	switch {
	case e.End:
		fx.count("emmer.queue_ended")
		s.refuse(plan.Refuse(nil, plan.Misconfigured()), fx)
	case stopped:
		fx.count("emmer.killed_locally")
		s.refuse(plan.KilledLocally(flag.Field, flag.Value), fx)
	default:
		s.admit(e.Now, s.place.open, fx)
		s.grant(false, fx)
	}
}
