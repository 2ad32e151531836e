package core

import (
	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

// Failure policy local: while the store gives no usable answer, each worker decides by its own share
// of a limit. What passes is booked under its id when the store is back, as under open. So a limit is
// passed by at most the share times the workers of all gateways, in each outage.
const (
	// sharesMost bounds the table, some 250 bytes an entry and 16 for each cell of a rolling window.
	sharesMost = 4096
	// calm is how long the store must have answered without a fault for shares to be whole again: one
	// that comes and goes must not give a new one each time.
	calm bucket.Millis = 10_000
	// sweepEvery is how often the table is looked through for what is over.
	sweepEvery bucket.Millis = 1000
)

// shares are what this worker passes of each count.
type shares struct {
	byID    map[plan.CountID]*share
	away    map[plan.CountID]bucket.Millis // by shard: since when it answers again, 0 = it doesn't; none without a share
	running int                            // calls that passed and are not settled
	swept   bucket.Millis
}

func (t *shares) any() bool { return len(t.byID) > 0 }

// shardID names a shard in few bytes.
func shardID(tag string) plan.CountID { return plan.IDOf(tag, &bucket.Limit{}) }

// drawn is what a part of a call takes from shares.
type drawn struct {
	shard plan.CountID
	from  []draw
	fresh int // shares that are to be made for it
	taken bool
	over  bool
}

type draw struct {
	id      plan.CountID
	item    int           // of the part
	limit   *bucket.Limit // until it is drawn
	percent int
	amount  bucket.Amount
	share   *share        // that it was drawn from, which may be gone from the table by its end
	at      bucket.Millis // where in the share
}

// verdict is what shares say to a part of a call.
type verdict struct {
	closed     string        // nothing passes: the counter of why
	by         int           // the item that doesn't fit, or -1
	left, most bucket.Amount // of its share
	retry      bucket.Millis
}

// ask says whether the items of a part fit into this worker's shares, and what they would draw. It takes
// nothing. limits are those of the plan, at the places that the part has.
func (t *shares) ask(tag string, p *plan.Part, items []bucket.Item, limits []*config.Limit, now bucket.Millis) (verdict, *drawn) {
	d := &drawn{shard: shardID(tag)}
	v := verdict{by: -1}
	for i, at := range p.At {
		it, l := &items[at], limits[at]
		if l.Failure != config.FailLocal || !plan.Enforced(it) || it.Amount == 0 {
			continue
		}
		id, most := plan.IDOf(tag, &it.Limit), partOf(&it.Limit, l.Local)
		var s share
		if known := t.byID[id]; known != nil {
			s = *known // its cells are only read
			s.advance(&it.Limit, now)
		} else {
			s = shareOf(&it.Limit, l.Local, now)
			d.fresh++
		}
		d.from = append(d.from, draw{id: id, item: i, limit: &it.Limit, percent: l.Local, amount: it.Amount})
		wait, ok := s.wait(it.Amount, most, now)
		if it.Amount > most || !ok {
			// Policy: what the share never has is refused as under closed, for only the store could grant it.
			return verdict{closed: "emmer.local_too_small", by: -1}, nil
		}
		if taken := s.taken(now); taken > most-it.Amount && (v.by < 0 || wait > v.retry) {
			v.by, v.retry, v.left, v.most = at, wait, max(most-taken, 0), most
		}
	}
	return v, d
}

// room says whether so many new shares find room.
func (t *shares) room(fresh int) bool { return len(t.byID)+fresh <= sharesMost }

// draw takes what was asked for, in the same callback of the host.
func (t *shares) draw(d *drawn, now bucket.Millis) {
	if t.byID == nil {
		t.byID, t.away = map[plan.CountID]*share{}, map[plan.CountID]bucket.Millis{}
	}
	t.running++
	d.taken = true
	for i := range d.from {
		f := &d.from[i]
		s := t.byID[f.id]
		if s == nil {
			fresh := shareOf(f.limit, f.percent, now)
			s = &fresh
			s.shard = d.shard
			t.byID[f.id] = s
		}
		s.advance(f.limit, now)
		f.share, f.at, f.limit = s, s.take(f.amount, now), nil
	}
	t.away[d.shard] = 0
}

// settle puts what a call has used in the place of what it drew, once. A call that was refused after all, or
// that a fault kept from drawing, gives nothing back; nor does one of an earlier outage to a new share.
func (t *shares) settle(d *drawn, used []bucket.Item) {
	if d.over || !d.taken {
		return
	}
	d.over = true
	t.running = max(t.running-1, 0)
	for i := range d.from {
		f := &d.from[i]
		if s := t.byID[f.id]; s != nil && s == f.share {
			s.settle(f.amount, used[f.item].Amount, f.at)
		}
	}
}

// fault notes that a shard gave no answer, answered that it gave one.
func (t *shares) fault(shard plan.CountID) {
	if _, ok := t.away[shard]; ok {
		t.away[shard] = 0
	}
}

func (t *shares) answered(shard plan.CountID, now bucket.Millis) {
	if since, ok := t.away[shard]; ok && (since == 0 || since > now) {
		t.away[shard] = now
	}
}

// sweep drops shares that are whole again, and those of shards that have answered for long enough.
func (t *shares) sweep(now bucket.Millis) {
	if !t.any() || now-t.swept < sweepEvery && now >= t.swept {
		return
	}
	t.swept = now
	kept := map[plan.CountID]bool{}
	for id, s := range t.byID {
		since := t.away[s.shard]
		back := since > 0 && now-since >= calm
		// A call at once that runs counts until it ends.
		if s.idle(now) || back && (s.kind != bucket.Concurrency || s.running == 0) {
			delete(t.byID, id)
		} else {
			kept[s.shard] = true
		}
	}
	for shard := range t.away {
		if !kept[shard] {
			delete(t.away, shard)
		}
	}
}

// onLocal takes in what streams say of shares.
func (w *Worker) onLocal(e *Event) {
	switch e.Kind {
	case Drawn:
		w.shares.draw(e.Drawn, e.Now)
	case StoreAway:
		w.shares.fault(e.Drawn.shard)
	case StoreBack:
		w.shares.answered(e.Drawn.shard, e.Now)
	}
}

// answered tells the Worker that the store has answered, if shares are in use.
func (s *Stream) answered(p *part, fx *effects) {
	if s.w.shares.any() {
		fx.tell(Event{Kind: StoreBack, Now: s.askedAt + s.waited, Drawn: &drawn{shard: shardID(p.layout.Tag)}})
	}
}

// passLocally decides by this worker's shares, for the parts that are broken and whose policy is local.
// False: the call was refused.
func (s *Stream) passLocally(now bucket.Millis, fx *effects) bool {
	w := s.w
	worst := verdict{by: -1}
	fresh := 0
	var all []*drawn
	for i := range s.parts {
		p := &s.parts[i]
		if !p.broken() || p.Failure != config.FailLocal {
			continue
		}
		v, d := w.shares.ask(p.layout.Tag, p.Part, s.plan.Items, s.plan.Limits, now)
		if d != nil {
			fresh += d.fresh
		}
		switch {
		case v.closed != "":
		case !w.shares.room(fresh):
			// Policy of a full table: who is not in it is refused, as under closed.
			v.closed = "emmer.local_full"
		case !w.outbox.room(w.shares.running + len(all)):
			// Policy: what could not be booked afterwards doesn't pass.
			v.closed = "emmer.local_unbooked"
		}
		if v.closed != "" {
			fx.count(v.closed)
			s.cancel(now, fx)
			s.refuse(plan.StoreUnavailable(), fx)
			return false
		}
		if v.by >= 0 && (worst.by < 0 || v.retry > worst.retry) {
			worst = v
		}
		p.drawn, all = d, append(all, d)
	}
	s.record.from = "local"
	if worst.by >= 0 {
		for i := range s.parts {
			s.parts[i].drawn = nil
		}
		fx.count("emmer.refused_local")
		s.cancel(now, fx)
		s.refuse(s.plan.DenyLocal(worst.by, worst.left, worst.most, worst.retry, now), fx)
		return false
	}
	for i := range s.parts {
		p := &s.parts[i]
		if p.drawn == nil {
			continue
		}
		p.state = unknown // its settlement is to be sent in any case
		fx.tell(Event{Kind: Drawn, Now: now, Drawn: p.drawn})
		for _, f := range p.drawn.from {
			if s.record.local != "" {
				s.record.local += ","
			}
			s.record.local += s.plan.Limits[p.At[f.item]].Name
		}
	}
	return true
}
