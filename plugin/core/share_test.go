package core

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

// scaled is the limit that a share is meant to be, for the model.
func scaled(l bucket.Limit, percent int) bucket.Limit {
	most := partOf(&l, percent)
	l.Max, l.Burst = most, most
	if l.Kind == bucket.TokenBucket {
		l.Rate, l.Per = bucket.ReduceRate(l.Rate*bucket.Amount(percent), l.Per*100)
	}
	return l
}

// TestAShareAgreesWithTheModel lets calls come and be settled at any times: a share says what the
// reference model says of a limit with a part of the figures.
func TestAShareAgreesWithTheModel(t *testing.T) {
	const day = 86_400_000
	limits := []bucket.Limit{
		{Kind: bucket.TokenBucket, Rate: 7, Per: 90, Burst: 1000},
		{Kind: bucket.TokenBucket, Rate: 1, Per: 60_000, Burst: 50},
		{Kind: bucket.CalendarWindow, Max: 1000},
		{Kind: bucket.RollingWindow, Max: 1000, Window: 60_000, Cell: 1200},
		{Kind: bucket.Concurrency, Max: 37},
	}
	for seed := range int64(400) {
		r := rand.New(rand.NewSource(seed))
		l := limits[int(seed)%len(limits)]
		l.Name, l.Lost = "l", bucket.Charge
		percent := 1 + r.Intn(100)
		m := bucket.NewModel()
		now := bucket.Millis(day) * 1000
		bounds := func() {
			start := now - now%day
			l.Bounds = [4]bucket.Millis{start - day, start, start + day, start + 2*day}
		}
		bounds()
		s := shareOf(&l, percent, now)
		type call struct {
			id    string
			taken bucket.Amount
			at    bucket.Millis
		}
		var open []call
		pauses := []int{1, 3, 200, 5000, 70_000, day}
		for step := range 300 {
			now += bucket.Millis(r.Intn(pauses[r.Intn(len(pauses)-r.Intn(2))]))
			bounds()
			like := scaled(l, percent)
			if n := len(open); n > 0 && r.Intn(2) == 0 {
				c := open[n-1]
				open = open[:n-1]
				if l.Kind == bucket.CalendarWindow && c.at != l.Bounds[1] {
					continue // what an older period is settled with concerns nobody
				}
				used := bucket.Amount(r.Intn(int(c.taken) + 1))
				if l.Kind == bucket.TokenBucket {
					used = bucket.Amount(r.Intn(2*int(c.taken) + 1)) // debt
				}
				m.Settle(now, bucket.SettleRequest{ID: c.id, Lease: 1000 * day, Keep: day, Cell: 1, Items: []bucket.Item{{Limit: like, Amount: used}}})
				s.advance(&l, now)
				s.settle(c.taken, used, c.at)
				continue
			}
			most := like.Max
			amount := bucket.Amount(1 + r.Intn(max(1, int(most))))
			if l.Kind == bucket.Concurrency {
				amount = 1
			}
			if amount > most {
				continue // not even one: asked for in TestALocalShare
			}
			id := fmt.Sprint("c", step)
			want := m.Reserve(now, bucket.ReserveRequest{ID: id, Lease: 1000 * day, Keep: day, Cell: 1, Items: []bucket.Item{{Limit: like, Amount: amount}}})
			s.advance(&l, now)
			wait, ok := s.wait(amount, most, now)
			fits := s.taken(now) <= most-amount
			if fits != (want.Outcome == bucket.Granted) || !ok {
				t.Fatalf("seed %d, step %d, %+v %d%%: %d fits %v, the model says %+v", seed, step, l, percent, amount, fits, want)
			}
			if fits {
				open = append(open, call{id, amount, s.take(amount, now)})
			} else if l.Kind != bucket.Concurrency && wait != want.Retry {
				t.Fatalf("seed %d, step %d, %+v %d%%: %d waits %d, the model says %d", seed, step, l, percent, amount, wait, want.Retry)
			}
		}
	}
}

func TestAShareOfTheLargestFigures(t *testing.T) {
	now := bucket.Millis(1 << 41)
	l := bucket.Limit{Kind: bucket.TokenBucket, Rate: bucket.MaxAmount / 86_400_000, Per: 86_400_000, Burst: bucket.MaxAmount}
	s := shareOf(&l, 100, now)
	s.take(bucket.MaxAmount, now)
	if wait, ok := s.wait(1, bucket.MaxAmount, now); !ok || wait != 1 {
		t.Errorf("the first token comes in %d, %v", wait, ok)
	}
	if wait, ok := s.wait(bucket.MaxAmount, bucket.MaxAmount, now); !ok || wait < 7_400_000_000_000 {
		t.Errorf("all come in %d, %v", wait, ok)
	}
	s.advance(&l, bucket.MaxAmount)
	if s.used != 0 || s.rest != 0 {
		t.Errorf("after 285,000 years: %+v", s)
	}
	s.advance(&l, 0)
	if s.at != bucket.MaxAmount {
		t.Error("a clock that was set back turned back the share")
	}
}

func TestAShareOfAClass(t *testing.T) {
	now := bucket.Millis(1 << 41)
	pool := &bucket.Pool{Rate: 10, Per: 1000, Burst: 100, Shares: []bucket.Share{{Name: "a", Rate: 6, Burst: 60, Borrow: true}}}
	a := bucket.Limit{Kind: bucket.SharedBucket, Pool: pool, Share: "a"}
	if most := partOf(&a, 50); most != 30 {
		t.Errorf("half of a's own 60 is %d", most)
	}
	s := shareOf(&a, 50, now)
	s.take(30, now)
	if wait, ok := s.wait(3, 30, now); !ok || wait != 1000 {
		t.Errorf("3 more come in %d, %v", wait, ok)
	}
	other := bucket.Limit{Kind: bucket.SharedBucket, Pool: pool, Share: "b"}
	if most := partOf(&other, 50); most != 0 {
		t.Errorf("a class with nothing of its own has %d", most)
	}
}
