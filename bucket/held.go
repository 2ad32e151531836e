package bucket

import "strconv"

// held is the state of one limit.
type held struct {
	kind   Kind
	seen   Millis
	leases []lease

	rate   Amount // a bucket's, as it was last touched
	per    Millis
	parts  wide              // used: tokens times per
	shares map[string]*share // of a shared bucket

	promised map[string]Millis // the last start that a bucket has promised, by share
	parked   []parked

	cells map[Millis]Amount // a window's: used in the period or cell that began then
}

// share is the state of one class's part.
type share struct {
	rate  Amount
	parts wide
}

// place is where an amount was taken: a window's period or cell, a shared bucket's share.
type place struct {
	start Millis
	share string
}

// spare is the place of what no share owns. No class is named so: names are escaped.
const spare = "*"

type lease struct {
	id       string
	deadline Millis
	amount   Amount
	at       place
	lost     Lost
}

// parked is a call that waits for its start. last is the end of the cell in which a store counts it.
type parked struct {
	id          string
	share       string
	start, last Millis
}

func newHeld(l Limit) *held {
	h := &held{kind: l.Kind, cells: map[Millis]Amount{}, shares: map[string]*share{}, promised: map[string]Millis{}}
	h.rate, h.per = rateOf(l)
	if l.Kind == SharedBucket {
		for _, s := range l.Pool.Shares {
			h.shares[s.Name] = &share{rate: s.Rate}
		}
	}
	return h
}

func rateOf(l Limit) (Amount, Millis) {
	if l.Kind == SharedBucket {
		return l.Pool.Rate, l.Pool.Per
	}
	return l.Rate, l.Per
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// roundUp is the next multiple of cell that is not before at.
func roundUp(at, cell Millis) Millis { return (at + cell - 1) / cell * cell }

// most is the largest amount that a limit can grant, if nobody else acts.
func most(l Limit) Amount {
	switch l.Kind {
	case TokenBucket:
		return l.Burst
	case SharedBucket:
		return l.Pool.Most(l.Share)
	}
	return l.Max
}

// lostOf is what becomes of a lost amount. A slot is free then, whatever its limit says, and what an
// observer has seen stays seen.
func lostOf(l Limit) Lost {
	switch l.Kind {
	case Concurrency:
		return Refund
	case Burn:
		return Charge
	}
	return l.Lost
}

// kept are the starts of the oldest period or cell that still counts, and of the one that runs now,
// as far as a calendar's bounds know.
func kept(now Millis, l Limit) (oldest, current Millis) {
	switch l.Kind {
	case RollingWindow:
		return now - l.Cell - l.Window + 1, now / l.Cell * l.Cell
	case Burn:
		current = now / BurnCell * BurnCell
		return current - Millis(l.Rule.Minutes)*60_000 + 1, current
	}
	oldest, current = l.Bounds[0], l.Bounds[0]
	for i := 1; i < len(l.Bounds); i++ {
		if l.Bounds[i] <= now {
			oldest, current = l.Bounds[i-1], l.Bounds[i]
		}
	}
	return oldest, current
}

// celled says that a limit is counted in periods or cells.
func celled(l Limit) bool {
	return l.Kind == CalendarWindow || l.Kind == RollingWindow || l.Kind == Burn
}

func (h *held) copy() *held {
	c := *h
	c.leases = append([]lease{}, h.leases...)
	c.parked = append([]parked{}, h.parked...)
	c.cells = map[Millis]Amount{}
	for start, used := range h.cells {
		c.cells[start] = used
	}
	c.shares = map[string]*share{}
	for name, s := range h.shares {
		one := *s
		c.shares[name] = &one
	}
	return &c
}

// advance lets time pass: a bucket refills, ended leases give back what they must, periods that no
// settle can name any more and cells that no longer count are dropped.
func (h *held) advance(now Millis, l Limit) {
	past := uint64(now - h.seen)
	h.parts = h.parts.minus(product(past, uint64(h.rate)))
	for _, s := range h.shares {
		s.parts = s.parts.minus(product(past, uint64(s.rate)))
	}
	h.seen = now
	var live []lease
	for _, lease := range h.leases {
		if lease.deadline > now {
			live = append(live, lease)
		} else if lease.lost == Refund {
			h.give(lease.amount, lease.at, l)
		}
	}
	h.leases = live
	var waiting []parked
	for _, p := range h.parked {
		if p.last >= now {
			waiting = append(waiting, p)
		}
	}
	h.parked = waiting
	if celled(l) {
		oldest, _ := kept(now, l)
		for start := range h.cells {
			if start < oldest {
				delete(h.cells, start)
			}
		}
	}
}

// scale lets new rates rule from now on.
func (h *held) scale(l Limit) {
	rate, per := rateOf(l)
	if per != h.per {
		h.parts = h.parts.times(uint64(per)).over(uint64(h.per))
		for _, s := range h.shares {
			s.parts = s.parts.times(uint64(per)).over(uint64(h.per))
		}
	}
	h.rate, h.per = rate, per
	if l.Kind != SharedBucket {
		return
	}
	was := h.shares
	h.shares = map[string]*share{}
	for _, s := range l.Pool.Shares {
		h.shares[s.Name] = &share{rate: s.Rate}
		if old := was[s.Name]; old != nil {
			h.shares[s.Name].parts = old.parts
		}
	}
}

// add books an amount as used.
func (h *held) add(n Amount, at place, l Limit) {
	fill := func(parts *wide, most uint64) {
		full := product(most, uint64(h.per))
		*parts = parts.add(product(uint64(n), uint64(h.per)))
		if full.less(*parts) {
			*parts = full
		}
	}
	switch l.Kind {
	case TokenBucket:
		fill(&h.parts, MaxAmount)
	case SharedBucket:
		s := h.shares[at.share]
		if s != nil {
			fill(&s.parts, MaxPool)
		}
		if s == nil || !l.Pool.share(at.share).Reserved {
			fill(&h.parts, MaxPool)
		}
	case Concurrency:
	default:
		if n > 0 {
			h.cells[at.start] = min(h.cells[at.start]+n, MaxAmount)
		}
	}
}

// give takes an amount off what is used, which stays at least 0.
func (h *held) give(n Amount, at place, l Limit) {
	parts := product(uint64(n), uint64(h.per))
	switch l.Kind {
	case TokenBucket:
		h.parts = h.parts.minus(parts)
	case SharedBucket:
		s := h.shares[at.share]
		if s != nil {
			s.parts = s.parts.minus(parts)
		}
		if s == nil || !l.Pool.share(at.share).Reserved {
			h.parts = h.parts.minus(parts)
		}
	case Concurrency:
	default:
		if h.cells[at.start] > n {
			h.cells[at.start] -= n
		} else {
			delete(h.cells, at.start)
		}
	}
}

// take books an item's amount now and says where.
func (h *held) take(now Millis, item Item) []part {
	if item.Limit.Kind == SharedBucket {
		return h.takeShared(item)
	}
	at := place{}
	if celled(item.Limit) {
		_, at.start = kept(now, item.Limit)
	}
	h.add(item.Amount, at, item.Limit)
	return []part{{item.Amount, at}}
}

// settle books the actual amount of an item in the places where it was reserved, the last given back
// first, and says whether more is used than was booked before. counted: what was reserved is still
// among the used.
func (h *held) settle(now Millis, item Item, res reserved, counted bool) (more bool) {
	l, rest := item.Limit, item.Amount
	if l.Kind == SharedBucket && !counted { // others may have what it had borrowed
		h.take(now, item)
		return false
	}
	_, current := kept(now, l)
	here := place{start: current, share: l.Share}
	if l.Kind == TokenBucket || l.Kind == Concurrency {
		here.start = 0
	}
	for i, p := range res.parts {
		actual := min(rest, p.amount)
		if i == len(res.parts)-1 && l.Kind != Burn && l.Kind != SharedBucket {
			actual = rest // an overrun belongs to the period that was reserved in
		}
		rest -= actual
		at, before := p.at, Amount(0)
		if counted {
			before = p.amount
		}
		if oldest, _ := kept(now, l); celled(l) && at.start < oldest {
			at = here
			actual = max(before, actual)
		}
		if actual >= before {
			h.add(actual-before, at, l)
			more = more || actual > before
		} else {
			h.give(before-actual, at, l)
		}
	}
	if len(res.parts) == 0 || rest > 0 {
		h.add(rest, here, l)
		more = more || rest > 0
	}
	return more
}

func (h *held) hold(l lease) {
	if l.amount > 0 && h.kind != Burn {
		h.leases = append(h.leases, l)
	}
}

func (h *held) holdAll(id string, deadline Millis, r *reserved) {
	for _, p := range r.parts {
		h.hold(lease{id, deadline, p.amount, p.at, r.lost})
	}
}

// release ends the leases of an id without giving anything back.
func (h *held) release(id string) {
	var others []lease
	for _, lease := range h.leases {
		if lease.id != id {
			others = append(others, lease)
		}
	}
	h.leases = others
}

// remaining is what is left; a begun token is used.
func (h *held) remaining(now Millis, l Limit) Amount {
	_, current := kept(now, l)
	var used Amount
	switch l.Kind {
	case TokenBucket:
		return l.Burst - Amount(h.parts.over(uint64(h.per)).lo)
	case SharedBucket:
		return h.available(l)
	case CalendarWindow:
		return l.Max - h.cells[current]
	case Concurrency:
		for _, lease := range h.leases {
			used = min(used+lease.amount, MaxAmount)
		}
	case Burn, RollingWindow:
		for start, n := range h.cells {
			if l.Kind == RollingWindow || start > current-60_000 {
				used = min(used+n, MaxAmount)
			}
		}
	}
	return l.Max - used
}

// burns says that each of a rule's minutes is above its limit.
func (h *held) burns(now Millis, l Limit) bool {
	_, current := kept(now, l)
	for minute := range Millis(l.Rule.Minutes) {
		var used Amount
		for start, n := range h.cells {
			if start > current-60_000*(minute+1) && start <= current-60_000*minute {
				used = min(used+n, MaxAmount)
			}
		}
		if used <= l.Max {
			return false
		}
	}
	return true
}
