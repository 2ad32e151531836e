package buckettest

import (
	"fmt"
	"math/rand"

	"github.com/emmer-proxy/emmer/bucket"
)

// Check does at random what gateways do, in rounds over limits of all kinds, and keeps its own books:
// of each limit, the sum over the calls of what they hold, used, or lost. It tells the first thing
// that a store must not do, or "":
//   - a grant that a limit had no room for, or a refusal though each had;
//   - a figure that is not what the books say;
//   - a refusal that took something;
//   - a call settled twice, or never though its lease has ended and it is charged;
//   - a parked call that is overtaken, a replay that differs.
//
// A store that can is failed over now and then, to a replica that is behind.
// Nothing refills within a round, so that the books are exact. The store's clock must be driven.
func Check(s Store, seed int64, steps int) string {
	c := &checker{s: s, r: rand.New(rand.NewSource(seed))}
	for done := 0; done < steps; {
		c.open(seed)
		for range 400 {
			c.step()
			done++
			if c.fault != "" {
				return fmt.Sprintf("seed %d, step %d: %s", seed, done, c.fault)
			}
		}
		c.close()
	}
	return c.fault
}

type checker struct {
	s      Store
	r      *rand.Rand
	round  int
	limits []bucket.Limit
	shadow []bool
	queue  []bucket.Millis
	calls  []*one
	seen   bucket.Millis // the latest time
	behind *replica      // nil: there is none
	fault  string
}

// one is a call as its gateway and the books know it.
type one struct {
	id       string
	which    []int // of the limits
	asked    []bucket.Amount
	total    []bucket.Amount // held, extensions included
	deadline bucket.Millis
	told     bucket.Millis // the latest deadline that its gateway was told
	start    bucket.Millis
	state    int // as the store knows it: 0 not granted, 1 granted, 2 settled
	actual   []bucket.Amount
	first    bucket.ReserveReply
	parked   []bool
	lost     bool // its reply didn't arrive: its gateway doesn't know the deadline
}

const checkKeep = 4000

func (c *checker) fail(format string, args ...any) {
	if c.fault == "" {
		c.fault = fmt.Sprintf(format, args...)
	}
}

func (c *checker) open(seed int64) {
	c.round++
	c.calls, c.behind = nil, nil
	now := c.s.Now()
	name := func(kind string) string { return fmt.Sprintf("%s-%d-%d", kind, seed, c.round) }
	most := func() bucket.Amount { return bucket.Amount(20 + c.r.Intn(300)) }
	pool := &bucket.Pool{Rate: 3, Per: bucket.MaxPer, Burst: 300, Shares: []bucket.Share{
		{Name: "a", Rate: 1, Burst: 100, Borrow: true}, {Name: "b", Rate: 1, Burst: bucket.Amount(c.r.Intn(150)), Borrow: c.r.Intn(2) == 0},
	}}
	c.limits = []bucket.Limit{
		slow(name("b"), most()),
		slow(name("bq"), most()),
		{Name: name("w"), Kind: bucket.CalendarWindow, Period: "p", Max: most(), Bounds: [4]bucket.Millis{now - 2*day, now - day, now + day, now + 2*day}},
		rolling(name("r"), most(), 100*hour, 10*hour),
		slots(name("c"), bucket.Amount(1+c.r.Intn(12))),
		{Name: name("s"), Kind: bucket.SharedBucket, Pool: pool, Share: "a"},
		{Name: name("o"), Kind: bucket.Burn, Max: 50, Flag: name("k"), Rule: &bucket.BurnRule{Minutes: 2}},
	}
	c.shadow, c.queue = make([]bool, len(c.limits)), make([]bucket.Millis, len(c.limits))
	for i := range c.limits {
		if c.limits[i].Kind != bucket.Concurrency && c.limits[i].Kind != bucket.Burn {
			c.limits[i].Lost = bucket.Lost(c.r.Intn(2))
		}
		c.shadow[i] = c.r.Intn(5) == 0
	}
	if c.r.Intn(2) == 0 {
		c.queue[1] = bucket.Millis(1+c.r.Intn(60)) * day
	}
}

func (c *checker) items(o *one, amounts []bucket.Amount) []bucket.Item {
	items := make([]bucket.Item, len(o.which))
	for i, w := range o.which {
		items[i] = bucket.Item{Limit: c.limits[w], Amount: amounts[i], Shadow: c.shadow[w], Queue: c.queue[w]}
	}
	return items
}

// used is what the books say of a limit.
func (c *checker) used(limit int, now bucket.Millis) bucket.Amount {
	var sum bucket.Amount
	for _, o := range c.calls {
		for i, w := range o.which {
			if w != limit {
				continue
			}
			slot := c.limits[w].Kind == bucket.Concurrency
			switch {
			case o.state == 2 && !slot:
				sum += o.actual[i]
			case o.state == 1 && (o.deadline > now || c.limits[w].Lost == bucket.Charge):
				sum += o.total[i]
			}
		}
	}
	return sum
}

func (c *checker) most(limit int) bucket.Amount {
	switch l := c.limits[limit]; l.Kind {
	case bucket.TokenBucket:
		return l.Burst
	case bucket.SharedBucket:
		return l.Pool.Most("a")
	default:
		return l.Max
	}
}

// left is what the books say is left, where they can.
func (c *checker) left(limit int, now bucket.Millis) (bucket.Amount, bool) {
	k := c.limits[limit].Kind
	return c.most(limit) - c.used(limit, now), k != bucket.Burn
}

// last is the last start for which somebody waits in a bucket.
func (c *checker) last(limit int, now bucket.Millis) bucket.Millis {
	var last bucket.Millis
	for _, o := range c.calls {
		for i, w := range o.which {
			if w == limit && o.state == 1 && o.parked[i] && o.start > now {
				last = max(last, o.start)
			}
		}
	}
	return last
}

func (c *checker) step() {
	if c.r.Intn(40) == 0 {
		c.replicate()
		return
	}
	switch c.r.Intn(16) {
	case 0, 1, 2:
		c.s.Pass([]bucket.Millis{1, 10, 100, 700, 2500}[c.r.Intn(5)])
		c.seen = max(c.seen, c.s.Now())
	case 3, 4, 5, 6:
		c.reserve(c.fresh())
	case 7, 8, 9:
		c.settle()
	case 10:
		c.renew()
	case 11, 12:
		c.extend()
	case 13:
		if o := c.any(); o != nil {
			c.reserve(o)
		}
	case 14:
		c.audit()
	case 15:
		c.back()
	}
}

// back is a failover to a clock that is behind. The embedded Redis' TTLs can't go back with it. A limit
// of which nothing is left is removed, with the time that it has seen, and one that was only looked at
// isn't written, so no lease may have ended meanwhile that the books would take for a live one again.
func (c *checker) back() {
	d, ok := c.s.(clocked)
	if _, embedded := c.s.(*Mini); !ok || embedded {
		return
	}
	now := c.s.Now()
	at := now - bucket.Millis(c.r.Intn(300))
	for _, o := range c.calls {
		if o.deadline > at && o.deadline <= c.seen {
			return
		}
	}
	d.SetTime(at)
}

func (c *checker) fresh() *one {
	o := &one{id: fmt.Sprintf("c%d-%d-%d", c.round, len(c.calls), c.r.Int63())}
	for w := range c.limits {
		if c.r.Intn(3) > 0 {
			o.which = append(o.which, w)
			n := bucket.Amount(c.r.Intn(30))
			if c.limits[w].Kind == bucket.Concurrency {
				n = bucket.Amount(c.r.Intn(3))
			}
			o.asked = append(o.asked, n)
		}
	}
	c.r.Shuffle(len(o.which), func(i, j int) {
		o.which[i], o.which[j] = o.which[j], o.which[i]
		o.asked[i], o.asked[j] = o.asked[j], o.asked[i]
	})
	o.parked = make([]bool, len(o.which))
	c.calls = append(c.calls, o)
	return o
}

// any is one of the latest calls that stores still know: what they have forgotten, no gateway speaks of.
func (c *checker) any() *one {
	if len(c.calls) == 0 {
		return nil
	}
	o := c.calls[max(0, len(c.calls)-1-c.r.Intn(12))]
	if o.state > 0 && c.seen > o.deadline+checkKeep {
		return nil
	}
	return o
}

func (c *checker) reserve(o *one) {
	q := bucket.ReserveRequest{ID: o.id, Lease: bucket.Millis(1 + c.r.Intn(3000)), Keep: checkKeep, Cell: 100, Items: c.items(o, o.asked)}
	r, err := c.s.Reserve(q)
	if err != nil {
		c.fail("reserve: %v", err)
		return
	}
	now := r.Now
	switch {
	case o.state == 1 && o.deadline > now:
		if r.Outcome != bucket.Replayed || r.Deadline != o.deadline || r.Start != o.start || fmt.Sprint(r.Remaining) != fmt.Sprint(o.first.Remaining) {
			c.fail("a replay of %+v says %+v", o.first, r)
		}
		return
	case o.state > 0:
		if r.Outcome != bucket.Settled {
			c.fail("an id that is used up (state %d) says %+v", o.state, r)
		}
		return
	}
	room, wait, waits := true, bucket.Millis(0), false
	for i, w := range o.which {
		left, known := c.left(w, now)
		if !known {
			continue
		}
		granted := bucket.Amount(0)
		if r.Outcome == bucket.Granted {
			granted = o.asked[i]
		}
		if c.limits[w].Kind != bucket.SharedBucket && r.Remaining[i] != left-granted {
			c.fail("%s has %d left, says the store, and the books %d: %+v", c.limits[w].Name, r.Remaining[i], left-granted, r)
		}
		if o.asked[i] == 0 || c.shadow[w] {
			continue
		}
		if c.limits[w].Kind == bucket.SharedBucket {
			room = room && (r.Outcome != bucket.Granted || r.Remaining[i] >= 0)
			continue
		}
		last := c.last(w, now)
		if last > 0 {
			wait = max(wait, last)
		}
		if o.asked[i] > left || last > 0 {
			waits = true
			if c.limits[w].Kind == bucket.TokenBucket && c.queue[w] > 0 && o.asked[i] <= c.most(w) {
				o.parked[i] = r.Start > 0
			} else {
				room = false
			}
		}
	}
	switch r.Outcome {
	case bucket.Granted:
		if !room {
			c.fail("granted without room: %+v", r)
		}
		if r.Start > 0 && !waits {
			c.fail("waits for nothing: %+v", r)
		}
		if wait > 0 && r.Start < wait-100 {
			c.fail("starts at %d, before %d, which is promised", r.Start, wait)
		}
		o.state, o.deadline, o.start, o.first = 1, r.Deadline, r.Start, r
		o.total = append([]bucket.Amount{}, o.asked...)
		for i, w := range o.which {
			if c.limits[w].Kind == bucket.Burn {
				o.total[i] = 0
			}
		}
		if o.lost = c.r.Intn(6) == 0; !o.lost {
			o.told = r.Deadline
		}
	case bucket.Denied, bucket.NeverFits:
		w := o.which[r.By]
		left, _ := c.left(w, now)
		if c.shadow[w] || c.limits[w].Kind == bucket.Burn || c.limits[w].Kind != bucket.SharedBucket && o.asked[r.By] <= left && c.last(w, now) == 0 {
			c.fail("refused by %s, which has room: %+v", c.limits[w].Name, r)
		}
		c.audit()
	default:
		c.fail("%+v", r)
	}
}

func (c *checker) settle() {
	o := c.any()
	if o == nil {
		return
	}
	actual := make([]bucket.Amount, len(o.which))
	q := bucket.SettleRequest{ID: o.id, Deadline: o.told, Lease: 1000, Keep: checkKeep, Cell: 100}
	switch {
	case o.lost || o.told == 0: // the outcome of its reserve is unknown, so it is cancelled
		q.Deadline = 0
	default:
		for i := range actual {
			actual[i] = bucket.Amount(c.r.Intn(45))
		}
	}
	q.Items = c.items(o, actual)
	for range 1 + c.r.Intn(2) {
		r, err := c.s.Settle(q)
		if err != nil {
			c.fail("settle: %v", err)
			return
		}
		want := bucket.SettledUnknown
		switch {
		case o.state == 2:
			want = bucket.SettledDuplicate
		case o.state == 1 && o.deadline > r.Now:
			want = bucket.SettledLive
		case o.state == 1:
			want = bucket.SettledLate
		case q.Deadline > 0 && r.Now > q.Deadline+checkKeep:
			want = bucket.SettledTooOld
		}
		if r.Outcome != want {
			c.fail("settle of a call in state %d: %+v, want outcome %d", o.state, r, want)
			return
		}
		if want == bucket.SettledDuplicate || want == bucket.SettledTooOld {
			return
		}
		if o.state == 0 && q.Deadline == 0 {
			o.deadline = r.Now + 1000
		}
		o.deadline = max(o.deadline, q.Deadline)
		o.state, o.actual = 2, actual
		for i, w := range o.which {
			if left, known := c.left(w, r.Now); known && c.limits[w].Kind != bucket.SharedBucket && r.Remaining[i] != left {
				c.fail("after a settle %s has %d left, says the store, and the books %d", c.limits[w].Name, r.Remaining[i], left)
			}
		}
	}
}

func (c *checker) renew() {
	o := c.any()
	if o == nil || o.state != 1 && !o.forgotten() {
		return
	}
	r, err := c.s.Renew(bucket.RenewRequest{ID: o.id, Lease: bucket.Millis(1 + c.r.Intn(3000)), Keep: checkKeep, Cell: 100, Items: c.items(o, o.asked)})
	if err != nil {
		c.fail("renew: %v", err)
		return
	}
	switch {
	case o.state == 0:
		if r.Outcome != bucket.RenewUnknown {
			c.fail("renew of a call that was lost: %+v", r)
		}
	case r.Outcome != bucket.Renewed && r.Outcome != bucket.RenewedLate || r.Deadline < o.deadline:
		c.fail("renew of a call until %d: %+v", o.deadline, r)
	default:
		o.deadline = r.Deadline
		o.told = max(o.told, r.Deadline)
	}
}

func (c *checker) extend() {
	o := c.any()
	if o == nil || o.state != 1 && !o.forgotten() {
		return
	}
	if o.state == 0 {
		o.total = o.asked
	}
	totals := append([]bucket.Amount{}, o.total...)
	for i, w := range o.which {
		if c.limits[w].Kind == bucket.Concurrency {
			totals[i] += bucket.Amount(c.r.Intn(2))
		} else {
			totals[i] += bucket.Amount(c.r.Intn(20))
		}
	}
	q := bucket.ExtendRequest{ID: o.id, Lease: bucket.Millis(c.r.Intn(2) * (1 + c.r.Intn(3000))), Keep: checkKeep, Cell: 100, Items: c.items(o, totals)}
	for range 1 + c.r.Intn(2) {
		r, err := c.s.Extend(q)
		if err != nil {
			c.fail("extend: %v", err)
			return
		}
		if o.state == 0 {
			if r.Outcome != bucket.ExtendUnknown {
				c.fail("extension of a call that was lost: %+v", r)
			}
			return
		}
		switch r.Outcome {
		case bucket.Extended, bucket.ExtendedLate:
			for i, w := range o.which {
				left, known := c.left(w, r.Now)
				more := totals[i] - o.total[i]
				if o.deadline <= r.Now && c.limits[w].Lost == bucket.Refund {
					more = totals[i]
				}
				if known && more > 0 && more > left && !c.shadow[w] && c.limits[w].Kind != bucket.SharedBucket {
					c.fail("extended without room in %s: %+v, it had %d", c.limits[w].Name, r, left)
				}
			}
			o.total, o.deadline = totals, r.Deadline
			o.told = max(o.told, r.Deadline)
		case bucket.ExtendDenied:
			c.audit()
			return
		case bucket.ExtendEnded:
			if q.Lease > 0 || o.deadline > r.Now {
				c.fail("%+v", r)
			}
			return
		default:
			c.fail("extend: %+v", r)
			return
		}
		c.audit()
	}
}

// audit compares each limit with the books.
func (c *checker) audit() {
	for w, l := range c.limits {
		level, err := c.s.Level(l)
		if err != nil {
			c.fail("level: %v", err)
			return
		}
		left, known := c.left(w, level.Now)
		if l.Kind == bucket.SharedBucket {
			c.auditPool(l, w, level.Now)
		} else if known && level.Remaining != left {
			c.fail("%s has %d left, says the store, and the books %d", l.Name, level.Remaining, left)
		}
	}
}

// auditPool adds up what the shares own and what is spare: together the whole less what is used.
func (c *checker) auditPool(l bucket.Limit, w int, now bucket.Millis) {
	p := *l.Pool
	p.Shares = append([]bucket.Share{}, p.Shares...)
	sum := bucket.Amount(0)
	for i := range p.Shares {
		p.Shares[i].Borrow = false
	}
	for _, class := range []string{"a", "b", "nobody's"} {
		one := l
		one.Pool, one.Share = &p, class
		level, err := c.s.Level(one)
		if err != nil {
			c.fail("level: %v", err)
			return
		}
		sum += level.Remaining
	}
	if want := p.Burst - c.used(w, now); sum != want {
		c.fail("%s has %d in its shares and the spare, and the books say %d", l.Name, sum, want)
	}
}

// close lets all leases end and looks once more.
func (c *checker) close() {
	c.s.Pass(20_000)
	c.audit()
}
