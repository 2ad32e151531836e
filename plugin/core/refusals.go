package core

import (
	"math/bits"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

// refusalCap bounds the table. An entry has some 300 bytes, and 16 more for each limit of the call
// that was refused.
const refusalCap = 4096

// refusalKey names what was refused: too much for now, or for ever, of one count.
type refusalKey struct {
	count plan.CountID
	never bool
}

// refusal is a store's answer to a call that it refused, as far as others may be refused by it.
//
// It holds for calls of at least its amount, until the earlier of the time when the store said that
// the call would fit, and one poll. Then one call may ask again, while the others go on being
// refused until it has its answer. A smaller amount asks as well, but only a few times in a poll where
// that is in vain. So a client that never listens causes about one script for each poll and worker,
// beside those that were under way before the first answer and those that grant or settle a call.
type refusal struct {
	key     refusalKey
	amount  bucket.Amount
	asked   bool          // one call asks again
	smaller int           // how often in a row, and within a poll each, less than before was refused
	queue   bucket.Millis // how long the call could have waited; one that can wait longer may fit
	cap     bucket.Amount // what the limit was configured to give; a claim may set more for another call

	at    bucket.Millis // when the store said so
	until bucket.Millis // until when nobody asks again
	fits  bucket.Millis // when the call would fit
	gone  bucket.Millis // when it is forgotten

	reply bucket.ReserveReply // as the store gave it
	whole plan.CountID        // the list of items that the figures of reply belong to

	before, next *refusal
}

// refusals is the memory of refusals: a list in the order of what the store said last.
type refusals struct {
	byKey       map[refusalKey]*refusal
	first, last *refusal
}

func (t *refusals) any() bool { return len(t.byKey) > 0 }

// put remembers. False: the table was full, and the oldest entry made room. Policy: its next call
// asks the store, so that memory is bounded before scripts are.
func (t *refusals) put(r *refusal) bool {
	if t.byKey == nil {
		t.byKey = map[refusalKey]*refusal{}
	}
	if old := t.byKey[r.key]; old != nil {
		if r.at < old.until && !old.asked {
			switch {
			case r.amount > old.amount:
				return true // asked before the other was known, which says more
			case r.amount < old.amount:
				r.smaller = old.smaller + 1
			default:
				r.smaller = old.smaller
			}
		}
		t.drop(old)
	}
	kept := len(t.byKey) < refusalCap
	if !kept {
		t.drop(t.first)
	}
	t.byKey[r.key] = r
	r.before = t.last
	if t.last == nil {
		t.first = r
	} else {
		t.last.next = r
	}
	t.last = r
	return kept
}

func (t *refusals) drop(r *refusal) {
	delete(t.byKey, r.key)
	if r.before == nil {
		t.first = r.next
	} else {
		r.before.next = r.next
	}
	if r.next == nil {
		t.last = r.before
	} else {
		r.next.before = r.before
	}
	r.before, r.next = nil, nil
}

// expire forgets what is over, from the oldest on. One that is not over keeps those behind it for a
// while: they are as old or younger.
func (t *refusals) expire(now bucket.Millis) {
	for t.first != nil && t.first.over(now) {
		t.drop(t.first)
	}
}

// over says that it is to be forgotten. A clock that was set back must not keep it.
func (r *refusal) over(now bucket.Millis) bool { return now >= r.gone || now < r.at }

// covers says whether an item is refused by it, if it still holds.
func (r *refusal) covers(it *bucket.Item, now bucket.Millis) bool {
	return !r.over(now) && it.Queue <= r.queue && plan.Capacity(&it.Limit) <= r.cap &&
		(it.Amount >= r.amount || r.smaller >= smallerMost && it.Amount > r.left(&it.Limit, now))
}

// smallerMost is how many smaller and smaller amounts may ask in vain within a poll before anything
// above what the store had left is refused.
const smallerMost = 4

// left is the most that the store may have left now, if nothing was given back.
func (r *refusal) left(l *bucket.Limit, now bucket.Millis) bucket.Amount {
	if r.key.never || r.reply.By >= len(r.reply.Remaining) {
		return r.amount
	}
	left := r.reply.Remaining[r.reply.By]
	if l.Kind == bucket.SharedBucket {
		return r.amount // what others leave is known to the store only
	}
	if rate, per := plan.Refill(l); per > 0 {
		hi, lo := bits.Mul64(uint64(now-r.at), uint64(rate))
		if hi >= uint64(per) {
			return r.amount
		}
		q, _ := bits.Div64(hi, lo, uint64(per))
		return min(r.amount, left+1+bucket.Amount(min(q, bucket.MaxAmount)))
	}
	return left
}

// later is how much later than at fits an amount above the refused one would fit (one below it fits by
// then): exact to a millisecond for a bucket, at its class's rate for a shared one; the next period of a
// calendar window. Of a rolling window, where it depends on what was taken when, it is left to the
// next answer of the store.
func (r *refusal) later(it *bucket.Item) bucket.Millis {
	l := &it.Limit
	rate, per := plan.Refill(l)
	switch {
	case it.Amount <= r.amount:
	case rate > 0:
		hi, lo := bits.Mul64(uint64(it.Amount-r.amount), uint64(per))
		lo, carry := bits.Add64(lo, uint64(rate)-1, 0)
		if hi += carry; hi < uint64(rate) {
			q, _ := bits.Div64(hi, lo, uint64(rate))
			return bucket.Millis(min(q, bucket.MaxAmount))
		}
	case l.Kind == bucket.CalendarWindow:
		at := r.reply.Now + r.reply.Retry
		for _, start := range l.Bounds {
			if start >= at {
				return start - at
			}
		}
	}
	return 0
}

// find says how the store would refuse the items of a call, as far as it is remembered. asks: the
// memory of some counts is so old that this call is to ask the store for all.
func (t *refusals) find(tag string, items []bucket.Item, now bucket.Millis) (reply bucket.ReserveReply, ok bool, asks []refusalKey) {
	reply.By = -1
	for i := range items {
		it := &items[i]
		if !plan.Enforced(it) || it.Amount == 0 {
			continue
		}
		count := plan.IDOf(tag, &it.Limit)
		for _, never := range [...]bool{true, false} {
			r := t.byKey[refusalKey{count, never}]
			if r == nil || !r.covers(it, now) {
				continue
			}
			if now >= r.until {
				asks = append(asks, r.key)
				continue
			}
			one := r.answer(items, i, tag, now)
			// As a store does: what can never fit wins, then the latest time.
			if !ok || one.Outcome == bucket.NeverFits && reply.Outcome != bucket.NeverFits ||
				one.Outcome == reply.Outcome && one.Retry > reply.Retry {
				reply, ok = one, true
			}
		}
	}
	return reply, ok, asks
}

// answer is the store's reply as it would be now for item i of a list.
func (r *refusal) answer(items []bucket.Item, i int, tag string, now bucket.Millis) bucket.ReserveReply {
	reply := r.reply
	reply.By, reply.Now = i, reply.Now+now-r.at
	if plan.WholeOf(tag, items) != r.whole {
		reply.Remaining, reply.Max = nil, nil // of counts that are others' in part
	}
	it, most := &items[i], r.cap
	if by := r.reply.By; by < len(r.reply.Max) {
		most = r.reply.Max[by]
	}
	if own := plan.Capacity(&it.Limit); own < r.cap && most == r.cap {
		// A claim sets less for this call than for the one that was refused, and no override sets the same
		// for both. The figures are the other's.
		most, reply.Remaining, reply.Max = own, nil, nil
	}
	if r.key.never {
		return reply
	}
	if it.Amount > most {
		reply.Outcome, reply.Retry = bucket.NeverFits, 0
		return reply
	}
	// The store's time is when the call would not have to wait for longer than it may. One that may wait
	// less long is told the latest: where a lease ends before, it is a little sooner.
	reply.Retry = max(1, r.fits-now+r.later(it)+r.queue-it.Queue)
	return reply
}

// refused is what a worker should remember of a store's answer to items in a shard, or nil.
func (w *Worker) refused(tag string, items []bucket.Item, got bucket.ReserveReply, now bucket.Millis) *refusal {
	never := got.Outcome == bucket.NeverFits
	if !never && got.Outcome != bucket.Denied || got.By < 0 || got.By >= len(items) || !plan.Enforced(&items[got.By]) {
		return nil
	}
	it := &items[got.By]
	poll := w.config.KillPoll
	r := &refusal{
		key:    refusalKey{plan.IDOf(tag, &it.Limit), never},
		amount: it.Amount, queue: it.Queue, cap: plan.Capacity(&it.Limit),
		at: now, until: now + poll, gone: now + 2*poll,
		reply: got, whole: plan.WholeOf(tag, items),
	}
	if !never {
		r.fits = now + max(got.Retry, 1)
		r.until, r.gone = min(r.until, r.fits), min(r.gone, r.fits)
	}
	return r
}

// remember tells the Worker that the store has refused a part.
func (s *Stream) remember(p *part, got bucket.ReserveReply, fx *effects) {
	now := s.askedAt + s.waited
	if r := s.w.refused(p.layout.Tag, p.Of(s.plan.Items), got, now); r != nil {
		fx.tell(Event{Kind: StoreRefused, Now: now, Refusal: r})
	}
}

// refuseRemembered refuses by what the store said lately, without asking it.
func (s *Stream) refuseRemembered(now bucket.Millis, fx *effects) bool {
	w := s.w
	if !w.denied.any() {
		return false
	}
	replies := make([]bucket.ReserveReply, len(s.plan.Parts))
	refused := false
	var asks []refusalKey
	for i := range s.plan.Parts {
		p := &s.plan.Parts[i]
		reply, ok, keys := w.denied.find(w.shard(p).Tag, p.Of(s.plan.Items), now)
		if asks = append(asks, keys...); ok {
			replies[i], refused = reply, true
		}
	}
	if !refused {
		for _, key := range asks {
			fx.tell(Event{Kind: RefusalAsked, Now: now, Refusal: &refusal{key: key}})
		}
		return false
	}
	reply := replies[0]
	if len(replies) > 1 {
		reply = s.plan.Merge(replies)
	}
	if reply.Outcome == bucket.NeverFits && s.plan.Learned > 0 {
		return false // what was learned is made to fit, by what the store says
	}
	s.record.from = "memory"
	fx.count("emmer.refused_from_memory")
	s.refuse(s.plan.Deny(w.config, reply), fx)
	return true
}

// onRefusal takes in that a call was refused by the store, or that one is about to ask it again.
func (w *Worker) onRefusal(e *Event, fx *effects) {
	switch e.Kind {
	case StoreRefused:
		if !w.denied.put(e.Refusal) {
			fx.count("emmer.refusal_forgotten")
		}
	case RefusalOver:
		w.refusalOver(e.Job)
	case RefusalAsked:
		if r := w.denied.byKey[e.Refusal.key]; r != nil {
			// Should its answer never come, the next one asks when it must have come.
			r.asked, r.until = true, e.Now+w.config.Store.Timeout
			r.gone = max(r.gone, r.until+w.config.KillPoll)
			if !r.key.never {
				r.until, r.gone = min(r.until, r.fits), min(r.gone, r.fits)
			}
		}
	}
}

// grantedAgain tells the Worker of a part that was granted, if the like may be remembered as refused.
func (s *Stream) grantedAgain(p *part, fx *effects) {
	if s.w.denied.any() {
		fx.tell(Event{Kind: RefusalOver, Now: s.askedAt + s.waited, Job: s.job(p, p.Of(s.plan.Items))})
	}
}

// refusalOver forgets what a grant has shown to be over.
func (w *Worker) refusalOver(j *Job) {
	for i := range j.Items {
		count := plan.IDOf(j.layout.Tag, &j.Items[i].Limit)
		for _, never := range [...]bool{true, false} {
			if r := w.denied.byKey[refusalKey{count, never}]; r != nil && j.Items[i].Amount >= r.amount {
				w.denied.drop(r)
			}
		}
	}
}

// gaveBack lets the next call ask the store: a settlement of this worker may have made room.
func (w *Worker) gaveBack(j *Job, now bucket.Millis) {
	if !w.denied.any() {
		return
	}
	for i := range j.Items {
		if r := w.denied.byKey[refusalKey{plan.IDOf(j.layout.Tag, &j.Items[i].Limit), false}]; r != nil {
			r.until = min(r.until, now)
		}
	}
}
