package redisgw

import (
	"errors"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// pump is how often TTLs are brought up to the real clock. A key may live one pump too long, or,
// written just before a pump, end as much too early.
const pump = 10 * time.Millisecond

// clock moves both clocks of the embedded Redis together. miniredis (v2.40) lets no TTL run by
// itself, FastForward does not move TIME, and SetTime ends no TTL.
type clock struct {
	mini   *miniredis.Miniredis
	driven bool

	mu      sync.Mutex
	now     time.Time
	done    chan struct{}
	stopped chan struct{}
}

func (c *clock) start(m *miniredis.Miniredis, at time.Time) {
	c.mini = m
	if !at.IsZero() {
		c.driven, c.now = true, at
		m.SetTime(at)
		return
	}
	c.done, c.stopped = make(chan struct{}), make(chan struct{})
	go c.run()
}

// run lets TTLs follow the real clock; TIME does so by itself.
func (c *clock) run() {
	defer close(c.stopped)
	tick := time.NewTicker(pump)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-c.done:
			return
		case <-tick.C:
			now := time.Now()
			c.mini.FastForward(now.Sub(last))
			last = now
		}
	}
}

func (c *clock) stop() {
	if c.done != nil {
		close(c.done)
		<-c.stopped
		c.done = nil
	}
}

// ErrNotDriven is returned where the clock follows the real one, or the Redis is not embedded.
var ErrNotDriven = errors.New("redisgw: the clock is not driven")

// SetTime moves the embedded Redis' clock, and ends what is due by then. Backwards it moves TIME
// alone: what has ended stays so, as on a server whose clock is set back.
func (g *Gateway) SetTime(t time.Time) error {
	c := &g.clock
	if !c.driven {
		return ErrNotDriven
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(t)
	return nil
}

// Advance moves the embedded Redis' clock by d.
func (g *Gateway) Advance(d time.Duration) error {
	c := &g.clock
	if !c.driven {
		return ErrNotDriven
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(c.now.Add(d))
	return nil
}

func (c *clock) set(t time.Time) {
	c.mini.SetTime(t)
	if d := t.Sub(c.now); d > 0 {
		c.mini.FastForward(d)
	}
	c.now = t
}

// Now is the clock of the embedded Redis; over a given Redis it is the real clock.
func (g *Gateway) Now() time.Time {
	c := &g.clock
	if !c.driven {
		return time.Now()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}
