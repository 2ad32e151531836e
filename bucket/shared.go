package bucket

// level is what is left of what a share owns, in parts of a token: burst less used, as two numbers of
// which at most one is not 0.
func (h *held) level(s Share) (left, debt wide) {
	full := product(uint64(s.Burst), uint64(h.per))
	var used wide
	if own := h.shares[s.Name]; own != nil {
		used = own.parts
	}
	return full.minus(used), used.minus(full)
}

// spareParts is what the whole has beyond its shares, in parts of a token; not below 0.
func (h *held) spareParts(p *Pool) wide {
	has, owned := product(uint64(p.Burst), uint64(h.per)), h.parts
	for _, s := range p.Shares {
		if s.Reserved {
			continue
		}
		left, debt := h.level(s)
		has, owned = has.add(debt), owned.add(left)
	}
	return has.minus(owned)
}

// available is what a class can have now: what it owns, and the spare if it may borrow.
func (h *held) available(l Limit) Amount {
	s := l.Pool.share(l.Share)
	left, debt := h.level(s)
	if s.Borrow {
		left = left.add(h.spareParts(l.Pool))
	}
	if left.less(debt) {
		return -Amount(debt.minus(left).over(uint64(h.per)).lo)
	}
	return Amount(left.minus(debt).floor(uint64(h.per)))
}

// floor is the quotient a/b rounded down.
func (a wide) floor(b uint64) uint64 {
	return a.minus(wide{0, b - 1}).over(b).lo
}

// takeShared takes from what the class owns, then from the spare, and what is still lacking (of a
// queued or shadowed call) again from its own, into debt.
func (h *held) takeShared(item Item) []part {
	l, n := item.Limit, item.Amount
	s := l.Pool.share(l.Share)
	own := place{share: l.Share}
	if h.shares[l.Share] == nil {
		own.share = spare
	}
	borrowed := h.borrows(s, n, l)
	h.add(n-borrowed, own, l)
	parts := []part{{n - borrowed, own}}
	if borrowed > 0 {
		h.add(borrowed, place{share: spare}, l)
		parts = append(parts, part{borrowed, place{share: spare}})
	}
	return parts
}

// borrows is how much of an amount comes from the spare.
func (h *held) borrows(s Share, n Amount, l Limit) Amount {
	if !s.Borrow || h.shares[s.Name] == nil {
		return 0
	}
	left, _ := h.level(s)
	lacks := n - min(n, Amount(left.floor(uint64(h.per))))
	if n <= h.available(l) {
		return lacks
	}
	return min(lacks, Amount(h.spareParts(l.Pool).floor(uint64(h.per))))
}

// refilledShare is held.refilled for a class: what it owns and what of the spare is there now. A
// later spare is promised to nobody, as its owners may want it back by then.
func (h *held) refilledShare(now Millis, item Item) (Millis, bool) {
	l := item.Limit
	s := l.Pool.share(l.Share)
	need := item.Amount - h.borrows(s, item.Amount, l)
	if s.Rate == 0 || need > s.Burst {
		return 0, false
	}
	return now + least(MaxAmount-now, func(d Millis) bool {
		later := h.copy()
		later.advance(now+d, l)
		left, debt := later.level(s)
		return debt == wide{} && uint64(need) <= left.floor(uint64(h.per))
	}), true
}
