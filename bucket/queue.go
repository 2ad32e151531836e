package bucket

// startOf says when an item could start if its amount were booked now, and whether that is soon
// enough. Nothing always fits, even into debt.
func (h *held) startOf(now Millis, item Item) (start Millis, ok bool) {
	l := item.Limit
	if item.Amount == 0 || item.Shadow || l.Kind == Burn {
		return now, true
	}
	fits := item.Amount <= h.remaining(now, l)
	if l.Kind != TokenBucket && l.Kind != SharedBucket {
		return now, fits
	}
	start = now
	if !fits {
		if item.Queue == 0 {
			return 0, false
		}
		if start, ok = h.refilled(now, item); !ok {
			return 0, false
		}
	}
	start = max(start, h.promise(now, l.Share))
	return start, start-now <= item.Queue
}

// refilled is when refill alone has made room for an amount. What leases may give back doesn't
// count: they may be used up.
func (h *held) refilled(now Millis, item Item) (Millis, bool) {
	bare := h.copy()
	bare.leases = nil
	if item.Limit.Kind == SharedBucket {
		return bare.refilledShare(now, item)
	}
	if item.Amount > item.Limit.Burst {
		return 0, false
	}
	return now + least(MaxAmount-now, func(d Millis) bool {
		later := bare.copy()
		later.advance(now+d, item.Limit)
		return item.Amount <= later.remaining(now+d, item.Limit)
	}), true
}

// promise is the start before which nobody may start, or 0: the last one promised, or less far where
// the calls that wait are known to start earlier.
func (h *held) promise(now Millis, share string) Millis {
	var last Millis
	for _, p := range h.parked {
		if p.share == share {
			last = max(last, p.last)
		}
	}
	if last = min(last, h.promised[share]); last > now {
		return last
	}
	return 0
}

func (h *held) park(p parked) {
	h.promised[p.share] = p.start
	h.parked = append(h.parked, p)
}

func (h *held) unpark(id string) {
	for i, p := range h.parked {
		if p.id == id {
			h.parked = append(h.parked[:i:i], h.parked[i+1:]...)
			return
		}
	}
}

// wait is the least time after which an item is granted, if only time passes. As time only ever
// gives back, halving finds it.
func (h *held) wait(now Millis, item Item) Millis {
	return least(MaxAmount-now, func(d Millis) bool {
		at, l := now+d, item.Limit
		if l.Kind == CalendarWindow {
			// In a later period nothing has been used.
			_, current := kept(now, l)
			for _, start := range l.Bounds {
				if start > current && start <= at {
					return true
				}
			}
		}
		later := h.copy()
		later.advance(at, l)
		_, ok := later.startOf(at, item)
		return ok
	})
}

// least is the smallest d up to most for which a condition holds that, once true, stays true.
func least(most Millis, holds func(Millis) bool) Millis {
	no, yes := Millis(0), most
	for yes-no > 1 {
		if at := no + (yes-no)/2; holds(at) {
			yes = at
		} else {
			no = at
		}
	}
	return yes
}
