package buckettest

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

// A walk does at random what gateways do, on two stores at once, and stops at the first
// difference. One seed is one walk.
type walk struct {
	r      *rand.Rand
	now    bucket.Millis
	keep   bucket.Millis
	open   []call // reserved, or believed to be
	last   string // what was done last
	fault  error
	nextID int
	limits []bucket.Limit
	plain  bool // buckets and calendar windows alone, and no overrides: every second walk
	queues bool // few buckets, in which many wait and leave: every fourth
}

type call struct {
	id       string
	deadline bucket.Millis
	items    []bucket.Item
	kills    []string
	lease    bucket.Millis
}

func (w *walk) pick(n int) int { return w.r.Intn(n) }

func (w *walk) amount(l bucket.Limit) bucket.Amount {
	switch {
	case l.Kind == bucket.Concurrency:
		return bucket.Amount(w.pick(4))
	case w.queues:
		return bucket.Amount(w.pick(60))
	}
	switch w.pick(12) {
	case 0:
		return 0
	case 1:
		return bucket.Amount(w.pick(400))
	case 2:
		if w.pick(12) == 0 {
			return bucket.MaxAmount - bucket.Amount(w.pick(3))
		}
	}
	return bucket.Amount(w.pick(40))
}

func (w *walk) any(kind bucket.Kind) *bucket.Limit {
	for {
		if l := &w.limits[w.pick(len(w.limits))]; l.Kind == kind {
			return l
		}
	}
}

// change alters what an operator may alter: rates, bursts, maxima, shares, what becomes of lost leases.
func (w *walk) change() {
	b := w.any(bucket.TokenBucket)
	switch w.pick(6) {
	case 0:
		rate := bucket.Amount(1 + w.pick(50))
		per := []bucket.Millis{1, 7, 1000, 60_000, 3_600_000, 86_400_000}[w.pick(6)]
		b.Rate, b.Per = bucket.ReduceRate(rate, per)
	case 1:
		b.Burst = bucket.Amount(w.pick(200))
	case 2:
		w.any(bucket.CalendarWindow).Max = bucket.Amount(w.pick(300))
		w.any(bucket.RollingWindow).Max = bucket.Amount(w.pick(300))
		w.any(bucket.Concurrency).Max = bucket.Amount(w.pick(8))
		w.any(bucket.Burn).Max = bucket.Amount(w.pick(60))
	case 3:
		w.limits[w.pick(len(w.limits))].Lost = bucket.Lost(w.pick(2))
	case 4, 5:
		l := w.any(bucket.SharedBucket)
		l.Pool = w.pool(l.Name)
	}
	if w.pick(30) == 0 {
		b.Burst = bucket.MaxAmount
		w.any(bucket.CalendarWindow).Max = bucket.MaxAmount
		w.any(bucket.RollingWindow).Max = bucket.MaxAmount
	}
}

// pool divides at random, always among the same classes. What is reserved stays so: a lease that has
// ended is given back to the whole or not, as the call says that comes next, and a store that denied
// has not written what it gave back.
func (w *walk) pool(name string) *bucket.Pool {
	p := &bucket.Pool{Per: []bucket.Millis{1, 7, 100, 1000, 60_000}[w.pick(5)]}
	for _, class := range []string{"a", "b:{x}", "r"} {
		s := bucket.Share{
			Name: class, Rate: bucket.Amount(w.pick(20)), Burst: bucket.Amount(w.pick(80)),
			Borrow: w.pick(3) > 0, Reserved: class == "r" && name == "shared",
		}
		p.Shares = append(p.Shares, s)
		if !s.Reserved {
			p.Rate, p.Burst = p.Rate+s.Rate, p.Burst+s.Burst
		}
	}
	p.Rate += bucket.Amount(1 + w.pick(2)*w.pick(10))
	p.Burst += bucket.Amount(w.pick(2) * w.pick(60))
	return p
}

// bounds are those of periods of a given length, now and then by the clock of another time.
func (w *walk) bounds(length, skew bucket.Millis) [4]bucket.Millis {
	start := (w.now + skew) / length * length
	return [4]bucket.Millis{start - length, start, start + length, start + 2*length}
}

func (w *walk) items() []bucket.Item {
	var skew bucket.Millis
	if w.pick(8) == 0 {
		skew = bucket.Millis(w.pick(8000) - 4000)
	}
	for i := range w.limits {
		l := &w.limits[i]
		if l.Kind == bucket.CalendarWindow {
			length := bucket.Millis(4000)
			if l.Name == "window1" {
				length = 60_000
			}
			l.Bounds = w.bounds(length, skew)
		}
	}
	all := append([]bucket.Limit{}, w.limits...)
	w.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var items []bucket.Item
	for _, l := range all[:w.pick(len(all)+1)] {
		if w.plain && l.Kind != bucket.TokenBucket && l.Kind != bucket.CalendarWindow {
			continue
		}
		if w.queues && l.Name != "rate0" && l.Name != "shared" {
			continue
		}
		if len(items) == 5 {
			break
		}
		if l.Kind == bucket.SharedBucket {
			l.Share = []string{"a", "b:{x}", "r", "none"}[w.pick(4)]
		}
		item := bucket.Item{Limit: l, Amount: w.amount(l), Shadow: !w.plain && w.pick(10) == 0}
		if !w.plain && (w.queues || w.pick(2) == 0) {
			item.Queue = []bucket.Millis{50, 700, 4000, 100_000}[w.pick(4)]
		}
		items = append(items, item)
	}
	return items
}

// current gives old items the settings that hold now, as a gateway with a new configuration would.
func (w *walk) current(items []bucket.Item) []bucket.Item {
	out := append([]bucket.Item{}, items...)
	for i := range out {
		for _, l := range w.limits {
			if l.Name != out[i].Limit.Name {
				continue
			}
			// Bounds may be old, but not so old that one store has dropped their last period when another,
			// which wrote nothing because it denied, has not.
			b := out[i].Limit.Bounds
			old := l.Kind == bucket.CalendarWindow && w.now >= b[3]+b[1]-b[0]
			if old {
				l.Bounds = w.bounds(l.Bounds[1]-l.Bounds[0], 0)
			}
			if old || w.pick(2) == 0 {
				l.Share = out[i].Limit.Share
				out[i].Limit = l
			}
		}
	}
	return out
}

// override is a value that an operator, or a mistake of one, may set.
func (w *walk) override(l bucket.Limit) string {
	if w.pick(8) == 0 {
		return []string{"x", "5", "|0", "5|", "5|x", "-5|0", "1/2|0", "0/1/1|0", "1/86400001/1|0", "5.5|0", "9007199254740992|0", "10/20/30|0", "7|0", "4294967296|0"}[w.pick(14)]
	}
	o := bucket.Override{Until: w.now + []bucket.Millis{-5, 0, 1, 900, 20_000}[w.pick(5)]}
	if w.pick(3) == 0 {
		o.Until = 0
	}
	if l.Kind == bucket.TokenBucket {
		o.Rate, o.Per, o.Burst = bucket.Amount(1+w.pick(50)), []bucket.Millis{1, 1000, 60_000}[w.pick(3)], bucket.Amount(w.pick(300))
	} else {
		o.Max = bucket.Amount(w.pick(300))
	}
	return o.String()
}

// step does one thing on a store and tells what came of it.
func (w *walk) step() func(Store) string {
	w.last = ""
	tell := func(q any) { w.last = fmt.Sprintf("%+v", q) }
	say := func(v any, err error) string {
		if err != nil {
			w.fault = err
			return "fault"
		}
		return fmt.Sprintf("%T%+v", v, v)
	}
	switch w.pick(24) {
	case 0:
		if !w.queues {
			w.change()
		}
		return func(Store) string { return "" }
	case 1, 2, 3:
		d := []bucket.Millis{100 - w.now%100, 1, 3, 50, 900, 5_000, 70_000, 1_000_000}[w.pick(8)] // the first: to where a lease may end
		if w.queues {
			d = min(d, 2000)
		}
		w.now += d
		return func(s Store) string { s.Pass(d); return "" }
	case 4:
		flag, until := fmt.Sprintf("k:%d", w.pick(3)), bucket.Millis(0)
		if w.pick(3) > 0 {
			until = w.now + []bucket.Millis{-500, 0, 1, 3, 50, 900, 2000}[w.pick(7)]
		}
		return func(s Store) string { return say(nil, s.SetKill(flag, until, "op", "why")) }
	case 5, 6:
		flag := fmt.Sprintf("k:%d", w.pick(3))
		return func(s Store) string { return say(nil, s.Resume(flag)) }
	case 7:
		l := w.limits[w.pick(len(w.limits))]
		if l.Kind == bucket.SharedBucket {
			l.Share = []string{"a", "b:{x}", "r", "none"}[w.pick(4)]
		}
		if l.Kind == bucket.CalendarWindow {
			l.Bounds = w.bounds(l.Bounds[2]-l.Bounds[1], 0)
		}
		tell(l)
		return func(s Store) string { return say(s.Level(l)) }
	case 20:
		l := w.limits[w.pick(len(w.limits))]
		value := ""
		if w.pick(2) == 0 {
			value = w.override(l)
		}
		return func(s Store) string { return say(nil, s.SetOverride(l.Name, l.Entity, value)) }
	case 21:
		flag := fmt.Sprintf("k:%d", w.pick(3))
		return func(s Store) string { return say(s.Kill(flag)) }
	case 22, 23, 10:
		if c := w.old(); c != nil {
			q := bucket.ExtendRequest{ID: c.id, Lease: bucket.Millis(w.pick(2) * (1 + w.pick(3000))), Keep: w.keep, Cell: 100, Items: w.current(c.items)}
			for i := range q.Items {
				if w.pick(3) > 0 {
					q.Items[i].Amount += w.amount(q.Items[i].Limit)
				}
				q.Items[i].Amount = min(q.Items[i].Amount, bucket.MaxAmount)
			}
			if w.pick(3) == 0 {
				q.Kills = []string{"k:0"}
			}
			tell(q)
			return func(s Store) string { return say(s.Extend(q)) }
		}
	case 8, 9:
		if c := w.old(); c != nil {
			q := bucket.RenewRequest{ID: c.id, Lease: bucket.Millis(1 + w.pick(3000)), Keep: w.keep, Cell: 100, Items: w.current(c.items)}
			tell(q)
			return func(s Store) string { return say(s.Renew(q)) }
		}
	case 11, 12, 13, 14:
		if c := w.old(); c != nil {
			q := bucket.SettleRequest{ID: c.id, Deadline: c.deadline, Lease: c.lease, Keep: w.keep, Cell: 100, Items: w.current(c.items)}
			for i := range q.Items {
				q.Items[i].Amount = w.amount(q.Items[i].Limit)
			}
			if w.pick(6) == 0 || w.queues && w.pick(2) == 0 { // a cancel whose sender doesn't know the deadline
				q.Deadline = 0
				for i := range q.Items {
					q.Items[i].Amount = 0
				}
			}
			if !w.plain && w.nextID%3 > 0 {
				q.Answer = bucket.Answer{Of: fmt.Sprint("a:", w.nextID%2), Tokens: 1 + bucket.Tokens(w.nextID*7919)<<(w.nextID%12)}
			}
			tell(q)
			return func(s Store) string { return say(s.Settle(q)) }
		}
	}
	c := call{id: fmt.Sprintf("id-%d", w.nextID), items: w.items(), lease: bucket.Millis(1 + w.pick(3000))}
	w.nextID++
	if again := w.old(); again != nil && w.pick(5) == 0 { // a replay
		c = *again
		c.items = w.current(c.items)
	}
	for i := w.pick(3); i > 0; i-- {
		c.kills = append(c.kills, fmt.Sprintf("k:%d", i))
	}
	c.deadline = (w.now + c.lease + 99) / 100 * 100
	w.open = append(w.open, c)
	if w.pick(15) == 0 {
		return func(Store) string { return "" } // a reserve that is still on its way when its cancel comes
	}
	q := bucket.ReserveRequest{ID: c.id, Lease: c.lease, Keep: w.keep, Cell: 100, Kills: c.kills, Items: c.items}
	tell(q)
	return func(s Store) string { return say(s.Reserve(q)) }
}

// old is one of the latest calls, often the same again.
func (w *walk) old() *call {
	if len(w.open) == 0 {
		return nil
	}
	if len(w.open) > 12 {
		w.open = w.open[len(w.open)-12:]
	}
	return &w.open[w.pick(len(w.open))]
}

func newWalk(seed int64) *walk {
	w := &walk{r: rand.New(rand.NewSource(seed)), now: Epoch, keep: 4000, plain: seed%2 == 0, queues: seed%4 == 3}
	for i := range 3 {
		w.limits = append(w.limits, bucket.Limit{Name: fmt.Sprint("rate", i), Entity: "e:{x}", Kind: bucket.TokenBucket, Rate: 3, Per: 100, Burst: 100})
	}
	for i := range 2 {
		w.limits = append(w.limits, bucket.Limit{Name: fmt.Sprint("window", i), Period: "p", Entity: "e", Kind: bucket.CalendarWindow, Max: 200, Lost: bucket.Lost(i)},
			bucket.Limit{Name: fmt.Sprint("rolling", i), Entity: "e", Kind: bucket.RollingWindow, Max: 200, Lost: bucket.Lost(i), Cell: 500, Window: []bucket.Millis{1000, 60_000}[i]})
	}
	w.limits = append(w.limits,
		bucket.Limit{Name: "slots", Entity: "e", Kind: bucket.Concurrency, Max: 5},
		bucket.Limit{Name: "burn", Entity: "e", Kind: bucket.Burn, Max: 20, Flag: "k:1", Rule: &bucket.BurnRule{Minutes: 1 + w.pick(3), For: bucket.Millis(w.pick(2) * 20_000), Reason: "too much"}},
		bucket.Limit{Name: "shared", Entity: "e", Kind: bucket.SharedBucket, Pool: w.pool("shared")},
		bucket.Limit{Name: "shared2", Entity: "e", Kind: bucket.SharedBucket, Pool: w.pool("shared2"), Lost: bucket.Charge})
	w.items()
	return w
}

// differ walks until a and b answer differently, and tells where, or "".
func differ(seed int64, steps int, a, b Store) string {
	w := newWalk(seed)
	for _, s := range []Store{a, b} {
		s.(interface{ overridable(bool) }).overridable(!w.plain)
	}
	for i := range steps {
		do := w.step()
		if x, y := do(a), do(b); x != y {
			return fmt.Sprintf("seed %d step %d\n model %s\n store %s\n%s\n%v", seed, i, x, y, w.last, w.fault)
		}
	}
	return ""
}

func TestScriptsAgreeWithModel(t *testing.T) {
	for seed := int64(1); seed <= 12; seed++ {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			m := NewMini(t)
			if d := differ(seed, 700, NewModel(), m); d != "" {
				t.Error(d)
			}
			checkKeys(t, m.Redis, m.Now())
		})
	}
}
