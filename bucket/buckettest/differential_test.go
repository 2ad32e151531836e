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
	r       *rand.Rand
	now     bucket.Millis
	keep    bucket.Millis
	open    []call // reserved, or believed to be
	last    string // what was done last
	nextID  int
	rates   [3]bucket.Limit
	windows [2]bucket.Limit
}

type call struct {
	id       string
	deadline bucket.Millis
	items    []bucket.Item
	kills    []string
	lease    bucket.Millis
}

func (w *walk) pick(n int) int { return w.r.Intn(n) }

func (w *walk) amount() bucket.Amount {
	switch w.pick(12) {
	case 0:
		return 0
	case 1:
		return bucket.Amount(w.pick(400))
	case 2:
		return bucket.MaxAmount - bucket.Amount(w.pick(3))
	}
	return bucket.Amount(w.pick(40))
}

// change alters what an operator may alter: rates, bursts, maxima, what becomes of lost leases.
func (w *walk) change() {
	b := &w.rates[w.pick(len(w.rates))]
	switch w.pick(4) {
	case 0:
		rate := bucket.Amount(1 + w.pick(50))
		per := []bucket.Millis{1, 7, 1000, 60_000, 3_600_000, 86_400_000}[w.pick(6)]
		b.Rate, b.Per = bucket.ReduceRate(rate, per)
	case 1:
		b.Burst = bucket.Amount(w.pick(200))
	case 2:
		w.windows[w.pick(2)].Max = bucket.Amount(w.pick(300))
	case 3:
		b.Lost = bucket.Lost(w.pick(2))
		w.windows[w.pick(2)].Lost = bucket.Lost(w.pick(2))
	}
	if w.pick(30) == 0 {
		b.Burst = bucket.MaxAmount
		w.windows[w.pick(2)].Max = bucket.MaxAmount
	}
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
	w.windows[0].Bounds = w.bounds(4000, skew)
	w.windows[1].Bounds = w.bounds(60_000, skew)
	all := append(append([]bucket.Limit{}, w.rates[:]...), w.windows[:]...)
	w.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var items []bucket.Item
	for _, l := range all[:w.pick(len(all)+1)] {
		items = append(items, bucket.Item{Limit: l, Amount: w.amount()})
	}
	return items
}

// current gives old items the settings that hold now, as a gateway with a new configuration would.
func (w *walk) current(items []bucket.Item) []bucket.Item {
	out := append([]bucket.Item{}, items...)
	for i := range out {
		for _, l := range append(append([]bucket.Limit{}, w.rates[:]...), w.windows[:]...) {
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
				out[i].Limit = l
			}
		}
	}
	return out
}

// step does one thing on a store and tells what came of it.
func (w *walk) step() func(Store) string {
	w.last = ""
	tell := func(q any) { w.last = fmt.Sprintf("%+v", q) }
	say := func(v any, err error) string {
		if err != nil {
			return "fault"
		}
		return fmt.Sprintf("%+v", v)
	}
	switch w.pick(20) {
	case 0:
		w.change()
		return func(Store) string { return "" }
	case 1, 2, 3:
		d := []bucket.Millis{1, 3, 50, 900, 5_000, 70_000, 1_000_000, 100 - w.now%100}[w.pick(8)] // the last: to where a lease may end
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
		all := append(append([]bucket.Limit{}, w.rates[:]...), w.windows[:]...)
		l := all[w.pick(len(all))]
		if l.Kind == bucket.CalendarWindow {
			l.Bounds = w.bounds(l.Bounds[2]-l.Bounds[1], 0)
		}
		return func(s Store) string { return say(s.Level(l)) }
	case 8, 9, 10:
		if c := w.old(); c != nil {
			q := bucket.RenewRequest{ID: c.id, Lease: bucket.Millis(1 + w.pick(3000)), Keep: w.keep, Cell: 100, Items: w.current(c.items)}
			tell(q)
			return func(s Store) string { return say(s.Renew(q)) }
		}
	case 11, 12, 13, 14:
		if c := w.old(); c != nil {
			q := bucket.SettleRequest{ID: c.id, Deadline: c.deadline, Lease: c.lease, Keep: w.keep, Cell: 100, Items: w.current(c.items)}
			for i := range q.Items {
				q.Items[i].Amount = w.amount()
			}
			if w.pick(6) == 0 { // a cancel whose sender doesn't know the deadline
				q.Deadline = 0
				for i := range q.Items {
					q.Items[i].Amount = 0
				}
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
	w := &walk{r: rand.New(rand.NewSource(seed)), now: Epoch, keep: 4000}
	for i := range w.rates {
		w.rates[i] = bucket.Limit{Name: fmt.Sprint("rate", i), Entity: "e:{x}", Kind: bucket.TokenBucket, Rate: 3, Per: 100, Burst: 100}
	}
	for i := range w.windows {
		w.windows[i] = bucket.Limit{Name: fmt.Sprint("window", i), Period: "p", Entity: "e", Kind: bucket.CalendarWindow, Max: 200, Lost: bucket.Lost(i)}
	}
	w.items()
	return w
}

// differ walks until a and b answer differently, and tells where, or "". A Level's Now is the raw
// clock in one and clamped in the other, so clocks only go forward here.
func differ(seed int64, steps int, a, b Store) string {
	w := newWalk(seed)
	for i := range steps {
		do := w.step()
		if x, y := do(a), do(b); x != y {
			return fmt.Sprintf("seed %d step %d\n model %s\n store %s\n%s", seed, i, x, y, w.last)
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
