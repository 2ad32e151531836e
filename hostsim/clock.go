package hostsim

import (
	"sort"
	"sync"
	"time"
)

// Clock is the time of a host. Real time and ManualClock implement it.
type Clock interface {
	Now() time.Time
	// AfterFunc runs f once, d from now, unless the timer is stopped before.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is what Clock.AfterFunc returns.
type Timer interface {
	// Stop says whether it kept f from running.
	Stop() bool
}

type realClock struct{}

func (realClock) Now() time.Time                            { return time.Now() }
func (realClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// ManualClock stands still until Advance moves it. Network traffic stays real.
type ManualClock struct {
	mu     sync.Mutex
	now    time.Time
	serial int
	timers []*manualTimer
}

type manualTimer struct {
	clock *ManualClock
	at    time.Time
	order int
	f     func()
}

// NewManualClock returns a clock that shows start.
func NewManualClock(start time.Time) *ManualClock { return &ManualClock{now: start} }

// Now returns what the clock shows.
func (c *ManualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc arms a timer; f runs inside the Advance that passes its time.
func (c *ManualClock) AfterFunc(d time.Duration, f func()) Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial++
	t := &manualTimer{clock: c, at: c.now.Add(d), order: c.serial, f: f}
	c.timers = append(c.timers, t)
	return t
}

// Stop disarms the timer.
func (t *manualTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	for i, other := range t.clock.timers {
		if other == t {
			t.clock.timers = append(t.clock.timers[:i], t.clock.timers[i+1:]...)
			return true
		}
	}
	return false
}

// Advance moves the clock by d and runs every timer that comes due, in order of time, also those armed by others on
// the way. When it returns, the callbacks of the module that those timers started have returned. It must not be
// called from Options.Log.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	until := c.now.Add(d)
	for {
		sort.Slice(c.timers, func(i, j int) bool {
			a, b := c.timers[i], c.timers[j]
			if !a.at.Equal(b.at) {
				return a.at.Before(b.at)
			}
			return a.order < b.order
		})
		if len(c.timers) == 0 || c.timers[0].at.After(until) {
			break
		}
		t := c.timers[0]
		c.timers = c.timers[1:]
		if t.at.After(c.now) {
			c.now = t.at
		}
		c.mu.Unlock()
		t.f()
		c.mu.Lock()
	}
	c.now = until
	c.mu.Unlock()
}
