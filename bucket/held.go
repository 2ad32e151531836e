package bucket

import "strconv"

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// roundUp is the next multiple of cell that is not before at.
func roundUp(at, cell Millis) Millis { return (at + cell - 1) / cell * cell }

// most is the largest amount that a limit can ever grant.
func most(l Limit) Amount {
	if l.Kind == TokenBucket {
		return l.Burst
	}
	return l.Max
}

// kept are the starts of the oldest period that still counts, and of the one that runs now as far
// as the bounds know.
func kept(now Millis, l Limit) (oldest, current Millis) {
	oldest, current = l.Bounds[0], l.Bounds[0]
	for i := 1; i < len(l.Bounds); i++ {
		if l.Bounds[i] <= now {
			oldest, current = l.Bounds[i-1], l.Bounds[i]
		}
	}
	return oldest, current
}

// current is the start of the period that runs now; a bucket has none.
func current(now Millis, l Limit) Millis {
	if l.Kind == TokenBucket {
		return 0
	}
	_, start := kept(now, l)
	return start
}

func (h *held) copy() *held {
	c := *h
	c.leases = append([]lease{}, h.leases...)
	c.cells = map[Millis]Amount{}
	for start, used := range h.cells {
		c.cells[start] = used
	}
	return &c
}

// advance lets time pass: a bucket refills, ended leases give back what they must, periods that no
// settle can name any more are dropped.
func (h *held) advance(now Millis, l Limit) {
	if l.Kind == TokenBucket {
		h.parts = h.parts.minus(product(uint64(now-h.seen), uint64(h.rate)))
	}
	h.seen = now
	var live []lease
	for _, lease := range h.leases {
		if lease.deadline > now {
			live = append(live, lease)
		} else if lease.lost == Refund {
			h.give(lease.amount, lease.start)
		}
	}
	h.leases = live
	if l.Kind == CalendarWindow {
		oldest, _ := kept(now, l)
		for start := range h.cells {
			if start < oldest {
				delete(h.cells, start)
			}
		}
	}
}

// take books an amount as used; start is 0 for a bucket.
func (h *held) take(n Amount, start Millis) {
	if start == 0 {
		full := product(MaxAmount, uint64(h.per))
		h.parts = h.parts.add(product(uint64(n), uint64(h.per)))
		if full.less(h.parts) {
			h.parts = full
		}
		return
	}
	if n > 0 {
		h.cells[start] = min(h.cells[start]+n, MaxAmount)
	}
}

// give takes an amount off what is used, which stays at least 0.
func (h *held) give(n Amount, start Millis) {
	if start == 0 {
		h.parts = h.parts.minus(product(uint64(n), uint64(h.per)))
		return
	}
	if h.cells[start] > n {
		h.cells[start] -= n
	} else {
		delete(h.cells, start)
	}
}

func (h *held) hold(l lease) {
	if l.amount > 0 {
		h.leases = append(h.leases, l)
	}
}

// release ends the lease of an id without giving anything back.
func (h *held) release(id string) {
	for i, lease := range h.leases {
		if lease.id == id {
			h.leases = append(h.leases[:i:i], h.leases[i+1:]...)
			return
		}
	}
}

// remaining is what is left; a begun token is used.
func (h *held) remaining(now Millis, l Limit) Amount {
	if l.Kind == TokenBucket {
		return l.Burst - Amount(h.parts.over(uint64(h.per)).lo)
	}
	return l.Max - h.cells[current(now, l)]
}

// fits says whether an amount could be taken now. Nothing always fits, even into debt.
func (h *held) fits(now Millis, item Item) bool {
	return item.Amount == 0 || item.Amount <= h.remaining(now, item.Limit)
}

// wait is the least time after which the amount fits, if only time passes. As time only ever gives
// back, halving finds it.
func (h *held) wait(now Millis, item Item) Millis {
	no, yes := Millis(0), MaxAmount-now
	for yes-no > 1 {
		at := no + (yes-no)/2
		later := h.copy()
		if h.fitsAt(later, now+at, item) {
			yes = at
		} else {
			no = at
		}
	}
	return yes
}

// fitsAt says whether the amount would fit at a later time, on a copy that may be spoiled.
func (h *held) fitsAt(later *held, at Millis, item Item) bool {
	l := item.Limit
	if l.Kind == CalendarWindow {
		// In a later period nothing has been used.
		_, now := kept(h.seen, l)
		for _, start := range l.Bounds {
			if start > now && start <= at {
				return true
			}
		}
	}
	later.advance(at, l)
	return later.fits(at, item)
}
