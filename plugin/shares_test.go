package main

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// sharedFifty is 40 a second for two classes, of which search owns 28 and batch 12, and 10 kept for admin; bursts
// are those of one second.
const sharedFifty = `[{"name": "provider", "by": ["key"], "count": "requests", "bucket": {"rate": "100/s", "burst": 100}, "headroom": "50%",
	"reserved": {"admin": "20%"}, "shares": {"search": "70%", "batch": "30%"}}]`

// crowd is what a class asks for, as fast as it gets it.
type crowd struct {
	granted, refused, other atomic.Int64
}

// press calls until the context ends, in a few lines at once. Who is refused tries again soon, so that
// the class takes all it is given.
func (c *crowd) press(ctx context.Context, st *stand, gateway int, site, key, class string, done *sync.WaitGroup) {
	for range 3 {
		done.Add(1)
		go func() {
			defer done.Done()
			pause := time.NewTicker(20 * time.Millisecond)
			defer pause.Stop()
			for ctx.Err() == nil {
				switch a := st.call(gateway, site, key, small, "x-class", class); a.status {
				case 200:
					c.granted.Add(1)
				case 429:
					c.refused.Add(1)
					select {
					case <-pause.C:
					case <-ctx.Done():
					}
				default:
					c.other.Add(1)
				}
			}
		}()
	}
}

const small = `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hello"}]}`

func near(got, want, percent float64) bool {
	return got >= want*(100-percent)/100 && got <= want*(100+percent)/100
}

// TestShares lets classes press a bucket on the true clock, each through a gateway of its own: both busy, each gets
// its share; one idle, the other gets all; and whoever has a reserve is not refused within its rate meanwhile. That
// the scripts divide exactly is in buckettest, on a clock that is driven.
func TestShares(t *testing.T) {
	s := &site{name: "shares", hold: "pair", limits: sharedFifty,
		identity: `, "class": {"header": "x-class", "one_of": ["search", "batch", "admin"]}`}
	st := newStand(t, 2, 1, s)
	st.call(0, s.name, "warm", small, "x-class", "search")
	st.call(1, s.name, "warm", small, "x-class", "search")

	t.Run("both busy", func(t *testing.T) {
		var search, batch crowd
		var lines sync.WaitGroup
		from := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		search.press(ctx, st, 0, s.name, "both", "search", &lines)
		batch.press(ctx, st, 1, s.name, "both", "batch", &lines)
		tick := time.NewTicker(125 * time.Millisecond) // 8 a second
		defer tick.Stop()
		admitted := 0
		for ctx.Err() == nil {
			select {
			case <-tick.C:
				if a := st.call(0, s.name, "both", small, "x-class", "admin"); a.status != 200 {
					t.Errorf("admin, the %d. time: %d %s", admitted+1, a.status, a.body)
				}
				admitted++
			case <-ctx.Done():
			}
		}
		lines.Wait()
		took := time.Since(from).Seconds()
		a, b := float64(search.granted.Load()), float64(batch.granted.Load())
		t.Logf("in %.2f s: search %.0f, batch %.0f (%.1f %% of all), %.0f expected; refused %d and %d; admin %d", took, a, b, 100*b/(a+b),
			40+40*took, search.refused.Load(), batch.refused.Load(), admitted)
		if !near(a, 0.7*(a+b), 3) || !near(b, 0.3*(a+b), 3) {
			t.Errorf("search got %.0f and batch %.0f", a, b)
		}
		if !near(a+b, 40+40*took, 3) {
			t.Errorf("both got %.0f, want %.0f", a+b, 40+40*took)
		}
		if search.refused.Load() == 0 || batch.refused.Load() == 0 || search.other.Load()+batch.other.Load() > 0 || admitted < 30 {
			t.Errorf("refused: %d and %d; other answers: %d and %d; admin called %d times", search.refused.Load(), batch.refused.Load(),
				search.other.Load(), batch.other.Load(), admitted)
		}
	})
	t.Run("one idle", func(t *testing.T) {
		var batch crowd
		var lines sync.WaitGroup
		from := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
		defer cancel()
		batch.press(ctx, st, 1, s.name, "one", "batch", &lines)
		lines.Wait()
		took := time.Since(from).Seconds()
		got := float64(batch.granted.Load())
		t.Logf("in %.2f s: %.0f, %.0f expected; refused %d", took, got, 12+40*took, batch.refused.Load())
		if !near(got, 12+40*took, 3) || batch.refused.Load() == 0 || batch.other.Load() > 0 {
			t.Errorf("batch got %.0f of %.0f, and other answers %d times", got, 12+40*took, batch.other.Load())
		}
	})
}
