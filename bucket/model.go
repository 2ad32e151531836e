package bucket

import "strings"

// Model is the reference for every store: the same answers, told in the plainest way. It keeps lists
// of leases, searches retry times by trying them, and counts a bucket in parts of a token with 128
// bits. Only deadlines are rounded up to the cell, as stores must.
//
// It is not safe for concurrent use, and grows with every record that is not forgotten.
type Model struct {
	limits  map[limitKey]*held
	records map[string]*record
	kills   map[string]string
}

// NewModel is a store in which nothing was used.
func NewModel() *Model {
	return &Model{map[limitKey]*held{}, map[string]*record{}, map[string]string{}}
}

type limitKey struct {
	name, period, entity string
	kind                 Kind
}

func keyOf(l Limit) limitKey { return limitKey{l.Name, l.Period, l.Entity, l.Kind} }

// held is the state of one limit.
type held struct {
	seen   Millis
	leases []lease

	rate  Amount // a bucket's, as it was last touched
	per   Millis
	parts wide // used: tokens times per

	cells map[Millis]Amount // a window's: used in the period that began then
}

type lease struct {
	id       string
	deadline Millis
	amount   Amount
	start    Millis
	lost     Lost
}

type record struct {
	settled  bool
	deadline Millis
	parts    []reserved
	left     []Amount
}

type reserved struct {
	amount Amount
	start  Millis
	lost   Lost
}

// SetKill sets a flag, named "scope:id". until 0 has no end.
func (m *Model) SetKill(scopeID string, until Millis, actor, reason string) {
	m.kills[scopeID] = formatInt(int64(until)) + "|" + actor + "|" + reason
}

// Resume removes a flag.
func (m *Model) Resume(scopeID string) { delete(m.kills, scopeID) }

// Reserve answers a request. An Outcome of 0 says that a window's bounds don't surround now.
func (m *Model) Reserve(now Millis, r ReserveRequest) ReserveReply {
	now = m.clock(now, r.Items)
	reply := ReserveReply{Now: now, By: -1}
	if rec := m.record(r.ID, now, r.Keep); rec != nil {
		if rec.settled || rec.deadline <= now {
			reply.Outcome = Settled
			return reply
		}
		reply.Outcome, reply.Deadline = Replayed, rec.deadline
		reply.Remaining = append([]Amount{}, rec.left...)
		return reply
	}
	for i, flag := range r.Kills {
		value, set := m.kills[flag]
		if until := untilOf(value); set && (until == 0 || until > now) {
			reply.Outcome, reply.By, reply.Reason = Killed, i, value
			return reply
		}
	}
	limits := make([]*held, len(r.Items))
	for _, item := range r.Items {
		if item.Limit.Kind == CalendarWindow && (now < item.Limit.Bounds[0] || now >= item.Limit.Bounds[3]) {
			return ReserveReply{Now: now, By: -1}
		}
	}
	reply.Outcome = Granted
	for i, item := range r.Items {
		limits[i] = m.touch(now, item.Limit)
		reply.Remaining = append(reply.Remaining, limits[i].remaining(now, item.Limit))
		switch {
		case limits[i].fits(now, item):
		case item.Amount > most(item.Limit):
			if reply.Outcome != NeverFits {
				reply.Outcome, reply.By, reply.Retry = NeverFits, i, 0
			}
		case reply.Outcome != NeverFits:
			if wait := limits[i].wait(now, item); reply.Outcome == Granted || wait > reply.Retry {
				reply.Outcome, reply.By, reply.Retry = Denied, i, wait
			}
		}
	}
	if reply.Outcome != Granted {
		return reply
	}
	reply.Deadline = roundUp(now+r.Lease, r.Cell)
	rec := &record{deadline: reply.Deadline}
	for i, item := range r.Items {
		start := current(now, item.Limit)
		limits[i].take(item.Amount, start)
		limits[i].hold(lease{r.ID, reply.Deadline, item.Amount, start, item.Limit.Lost})
		reply.Remaining[i] -= item.Amount
		rec.parts = append(rec.parts, reserved{item.Amount, start, item.Limit.Lost})
	}
	rec.left = append(rec.left, reply.Remaining...)
	m.records[r.ID] = rec
	return reply
}

// Settle answers a request. An Outcome of 0 is a fault of the request: bounds that begin after
// now, or other items than the reserve had.
func (m *Model) Settle(now Millis, r SettleRequest) SettleReply {
	now = m.clock(now, r.Items)
	reply := SettleReply{Now: now}
	rec := m.record(r.ID, now, r.Keep)
	switch {
	case rec != nil && rec.settled:
		reply.Outcome = SettledDuplicate
		return reply
	case rec == nil && r.Deadline > 0 && now > r.Deadline+r.Keep:
		reply.Outcome = SettledTooOld
		return reply
	case !m.sound(now, r.Items, rec):
		return reply
	}
	end := r.Deadline
	reply.Outcome = SettledUnknown
	if rec != nil {
		end = max(end, rec.deadline)
		reply.Outcome = SettledLate
		if rec.deadline > now {
			reply.Outcome = SettledLive
		}
	}
	if end == 0 {
		end = now + r.Lease
	}
	m.records[r.ID] = &record{settled: true, deadline: end}
	for i, item := range r.Items {
		limit := m.touch(now, item.Limit)
		start, before := current(now, item.Limit), Amount(0)
		if rec != nil {
			part := rec.parts[i]
			start = part.start
			limit.release(r.ID)
			if reply.Outcome == SettledLive || part.lost == Charge {
				before = part.amount // still among the used
			}
		}
		change := item.Amount - before
		if oldest, _ := kept(now, item.Limit); item.Limit.Kind == CalendarWindow && start < oldest {
			start, change = current(now, item.Limit), max(0, change)
		}
		if change >= 0 {
			limit.take(change, start)
		} else {
			limit.give(-change, start)
		}
		reply.Remaining = append(reply.Remaining, limit.remaining(now, item.Limit))
	}
	return reply
}

// Renew answers a request. An Outcome of 0 is a fault of the request, as in Settle.
func (m *Model) Renew(now Millis, r RenewRequest) RenewReply {
	now = m.clock(now, r.Items)
	rec := m.record(r.ID, now, r.Keep)
	switch {
	case rec == nil:
		return RenewReply{RenewUnknown, now, 0}
	case rec.settled:
		return RenewReply{RenewSettled, now, 0}
	}
	reply := RenewReply{Renewed, now, roundUp(now+r.Lease, r.Cell)}
	if rec.deadline <= now {
		reply.Outcome = RenewedLate
	} else if reply.Deadline <= rec.deadline {
		reply.Deadline = rec.deadline
		return reply
	}
	if !m.sound(now, r.Items, rec) {
		return RenewReply{Now: now}
	}
	rec.deadline = reply.Deadline
	for i, item := range r.Items {
		limit, part := m.touch(now, item.Limit), &rec.parts[i]
		limit.release(r.ID)
		if reply.Outcome == RenewedLate && part.lost == Refund {
			part.start = current(now, item.Limit)
			limit.take(part.amount, part.start)
		}
		limit.hold(lease{r.ID, rec.deadline, part.amount, part.start, part.lost})
	}
	return reply
}

// Level is what is left of a limit; a bucket in debt is negative.
func (m *Model) Level(now Millis, l Limit) Amount {
	h := m.look(l).copy()
	now = max(now, h.seen)
	h.advance(now, l)
	return h.remaining(now, l)
}

// Reserved is what of a limit is held by live reservations, MaxAmount at the most.
func (m *Model) Reserved(now Millis, l Limit) Amount {
	h := m.look(l)
	var sum Amount
	for _, lease := range h.leases {
		if lease.deadline > max(now, h.seen) {
			sum = min(sum+lease.amount, MaxAmount)
		}
	}
	return sum
}

// clock is now, or the latest time that one of the limits has seen.
func (m *Model) clock(now Millis, items []Item) Millis {
	for _, item := range items {
		now = max(now, m.look(item.Limit).seen)
	}
	return now
}

// record is what is known of an id until its deadline and keep.
func (m *Model) record(id string, now, keep Millis) *record {
	if rec := m.records[id]; rec != nil && now <= rec.deadline+keep {
		return rec
	}
	return nil
}

func (m *Model) sound(now Millis, items []Item, rec *record) bool {
	for _, item := range items {
		if item.Limit.Kind == CalendarWindow && now < item.Limit.Bounds[0] {
			return false
		}
	}
	return rec == nil || len(rec.parts) == len(items)
}

// look finds a limit without changing anything.
func (m *Model) look(l Limit) *held {
	if h := m.limits[keyOf(l)]; h != nil {
		return h
	}
	return &held{rate: l.Rate, per: l.Per, cells: map[Millis]Amount{}}
}

// touch brings a limit to now and lets its present settings rule from there.
func (m *Model) touch(now Millis, l Limit) *held {
	h := m.look(l)
	m.limits[keyOf(l)] = h
	h.advance(now, l)
	if l.Kind == TokenBucket && (h.rate != l.Rate || h.per != l.Per) {
		h.parts = h.parts.times(uint64(l.Per)).over(uint64(h.per))
		h.rate, h.per = l.Rate, l.Per
	}
	return h
}

func untilOf(value string) Millis {
	digits, _, _ := strings.Cut(value, "|")
	var n Millis
	for _, c := range []byte(digits) {
		n = n*10 + Millis(c-'0')
	}
	return n
}
