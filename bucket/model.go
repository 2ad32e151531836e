package bucket

import "strings"

// Model is the reference for every store: the same answers, told in the plainest way. It keeps lists
// of leases, searches retry times by trying them, and counts a bucket in parts of a token with 128
// bits. Only deadlines are rounded up to the cell, as stores must.
//
// It is not safe for concurrent use, and grows with every record that is not forgotten.
type Model struct {
	// WithOverrides says that reserves and extensions tell of overrides, as script.Layout's field.
	WithOverrides bool

	limits    map[limitKey]*held
	records   map[string]*record
	kills     map[string]string
	overrides map[overrideKey]string
	answers   map[string]*answers
}

// NewModel is a store in which nothing was used.
func NewModel() *Model {
	return &Model{
		limits: map[limitKey]*held{}, records: map[string]*record{},
		kills: map[string]string{}, overrides: map[overrideKey]string{}, answers: map[string]*answers{},
	}
}

type limitKey struct {
	name, span, entity string
	kind               Kind
}

func keyOf(l Limit) limitKey { return limitKey{l.Name, l.Span(), l.Entity, l.Kind} }

type overrideKey struct{ name, entity string }

type record struct {
	settled  bool
	deadline Millis
	start    Millis // of a queued call
	items    []reserved
	left     []Amount
}

// reserved is what a reservation has taken from one limit, in the order of taking.
type reserved struct {
	parts  []part
	lost   Lost
	parked bool // it was this limit that made it wait
}

type part struct {
	amount Amount
	at     place
}

func (r *reserved) total() Amount {
	var sum Amount
	for _, p := range r.parts {
		sum += p.amount
	}
	return sum
}

// SetOverride sets a value, as Override writes it, for an entity of a limit; "" removes it.
func (m *Model) SetOverride(name, entity, value string) {
	if value == "" {
		delete(m.overrides, overrideKey{name, entity})
		return
	}
	m.overrides[overrideKey{name, entity}] = value
}

// effective are the items with the overrides that hold now, and 1 + the index of a bad one.
func (m *Model) effective(now Millis, items []Item) (out []Item, bad int) {
	out = append([]Item{}, items...)
	for i := range out {
		l := &out[i].Limit
		value, set := m.overrides[overrideKey{l.Name, l.Entity}]
		if !set || !m.WithOverrides {
			continue
		}
		o, err := ParseOverride(l.Kind, value)
		switch {
		case err != nil:
			if bad == 0 {
				bad = i + 1
			}
		case o.Until == 0 || o.Until > now:
			*l = o.over(*l)
		}
	}
	return out, bad
}

// SetKill sets a flag, named "scope:id". until 0 has no end.
func (m *Model) SetKill(scopeID string, until Millis, actor, reason string) {
	m.kills[scopeID] = formatInt(int64(until)) + "|" + actor + "|" + reason
}

// Resume removes a flag.
func (m *Model) Resume(scopeID string) { delete(m.kills, scopeID) }

// killed finds the first flag that is set.
func (m *Model) killed(now Millis, kills []string) (by int, reason string) {
	for i, flag := range kills {
		value, set := m.kills[flag]
		if until := untilOf(value); set && (until == 0 || until > now) {
			return i, value
		}
	}
	return -1, ""
}

// Kill is a flag's value, or "".
func (m *Model) Kill(scopeID string) string { return m.kills[scopeID] }

// Reserve answers a request. An Outcome of 0 says that a window's bounds don't surround now.
func (m *Model) Reserve(now Millis, r ReserveRequest) ReserveReply {
	now = m.clock(now, r.Items)
	reply := ReserveReply{Now: now, By: -1}
	if rec := m.record(r.ID, now, r.Keep); rec != nil {
		if rec.settled || rec.deadline <= now {
			reply.Outcome = Settled
			return reply
		}
		reply.Outcome, reply.Deadline, reply.Start = Replayed, rec.deadline, rec.start
		reply.Remaining = append([]Amount{}, rec.left...)
		return reply
	}
	if by, reason := m.killed(now, r.Kills); by >= 0 {
		reply.Outcome, reply.By, reply.Reason = Killed, by, reason
		return reply
	}
	if !surrounded(now, r.Items) {
		return ReserveReply{Now: now, By: -1}
	}
	items, bad := m.effective(now, r.Items)
	for i := range items {
		if items[i].Limit.Kind == Burn {
			items[i].Amount = 0
		}
	}
	asked := m.ask(now, items, nil)
	reply.Outcome, reply.By, reply.Retry, reply.Remaining = Granted, asked.by, asked.retry, asked.remaining
	if m.WithOverrides {
		reply.Max, reply.BadOverride = asked.most, bad
	}
	switch {
	case asked.never:
		reply.Outcome = NeverFits
		return reply
	case asked.by >= 0:
		reply.Outcome = Denied
		return reply
	}
	start := asked.start
	reply.Deadline = roundUp(start+r.Lease, r.Cell)
	rec := &record{deadline: reply.Deadline}
	if start > now {
		rec.start, reply.Start = start, start
	}
	for i, item := range items {
		h := asked.limits[i]
		res := reserved{parts: h.take(now, item), lost: lostOf(item.Limit)}
		for _, p := range res.parts {
			h.hold(lease{r.ID, reply.Deadline, p.amount, p.at, res.lost})
		}
		if asked.starts[i] > now {
			res.parked = true
			h.park(parked{r.ID, item.Limit.Share, start, roundUp(start+1, r.Cell) - 1})
		}
		if item.Limit.Kind != Burn {
			reply.Remaining[i] = max(-MaxAmount, reply.Remaining[i]-item.Amount)
		}
		rec.items = append(rec.items, res)
	}
	rec.left = append(rec.left, reply.Remaining...)
	m.records[r.ID] = rec
	return reply
}

// asked is what the limits say to a list of amounts.
type asked struct {
	limits          []*held
	remaining, most []Amount
	starts          []Millis
	start           Millis // when all could start
	by              int    // who denies, or -1
	never           bool
	retry           Millis
}

// ask asks each limit for its item's amount, or for needs where that is given, and takes nothing.
func (m *Model) ask(now Millis, items []Item, needs []Amount) asked {
	a := asked{by: -1, start: now}
	for i, item := range items {
		if needs != nil {
			item.Amount, item.Queue = needs[i], 0
		}
		h := m.touch(now, item.Limit)
		a.limits = append(a.limits, h)
		if needs != nil { // who runs already doesn't wait for those who are to start
			h = h.copy()
			h.parked = nil
		}
		if item.Limit.Kind == Burn {
			a.remaining = append(a.remaining, 0)
		} else {
			a.remaining = append(a.remaining, h.remaining(now, item.Limit))
		}
		a.most = append(a.most, most(item.Limit))
		start, ok := h.startOf(now, item)
		a.starts = append(a.starts, start)
		switch {
		case ok:
			a.start = max(a.start, start)
		case item.Amount > most(item.Limit):
			if !a.never {
				a.never, a.by, a.retry = true, i, 0
			}
		case !a.never:
			if wait := h.wait(now, item); a.by < 0 || wait > a.retry {
				a.by, a.retry = i, wait
			}
		}
	}
	return a
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
	items, _ := m.effective(now, r.Items)
	for i, item := range items {
		h := m.touch(now, item.Limit)
		var res reserved
		if rec != nil {
			res = rec.items[i]
			h.release(r.ID)
			if res.parked && rec.start > now {
				h.unpark(r.ID)
			}
		}
		more := h.settle(now, item, res, reply.Outcome == SettledLive || res.lost == Charge)
		reply.Remaining = append(reply.Remaining, h.remaining(now, item.Limit))
		if more && m.trips(now, h, item.Limit) {
			reply.Tripped = append(reply.Tripped, i)
		}
	}
	if a := r.Answer; a.Tokens > 0 {
		if m.answers[a.Of] == nil {
			m.answers[a.Of] = newAnswers()
		}
		reply.Learned = m.answers[a.Of].learn(now, a.Tokens)
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
	items, _ := m.effective(now, r.Items)
	rec.deadline = reply.Deadline
	for i, item := range items {
		h, res := m.touch(now, item.Limit), &rec.items[i]
		h.release(r.ID)
		if reply.Outcome == RenewedLate && res.lost == Refund { // it had been given back
			item.Amount = res.total()
			res.parts = h.take(now, item)
		}
		h.holdAll(r.ID, reply.Deadline, res)
	}
	return reply
}

// Extend answers a request. An Outcome of 0 is a fault of the request, as in Reserve.
func (m *Model) Extend(now Millis, r ExtendRequest) ExtendReply {
	now = m.clock(now, r.Items)
	rec := m.record(r.ID, now, r.Keep)
	reply := ExtendReply{Now: now, By: -1}
	switch {
	case rec == nil:
		reply.Outcome = ExtendUnknown
		return reply
	case rec.settled:
		reply.Outcome = ExtendSettled
		return reply
	}
	if by, reason := m.killed(now, r.Kills); by >= 0 {
		reply.Outcome, reply.By, reply.Reason = ExtendKilled, by, reason
		return reply
	}
	live := rec.deadline > now
	if !live && r.Lease == 0 {
		reply.Outcome = ExtendEnded
		return reply
	}
	if !m.sound(now, r.Items, rec) || !surrounded(now, r.Items) {
		return ExtendReply{Now: now, By: -1}
	}
	items, bad := m.effective(now, r.Items)
	needs := make([]Amount, len(items))
	for i, item := range items {
		res := &rec.items[i]
		needs[i] = max(0, item.Amount-res.total())
		if !live && res.lost == Refund {
			needs[i] += res.total()
		}
	}
	asked := m.ask(now, items, needs)
	reply.Outcome, reply.By, reply.Retry, reply.Remaining = Extended, asked.by, asked.retry, asked.remaining
	if m.WithOverrides {
		reply.Max, reply.BadOverride = asked.most, bad
	}
	if asked.by >= 0 {
		reply.Outcome = ExtendDenied
		return reply
	}
	if !live {
		reply.Outcome = ExtendedLate
	}
	if r.Lease > 0 {
		rec.deadline = max(rec.deadline, roundUp(now+r.Lease, r.Cell))
	}
	reply.Deadline = rec.deadline
	for i, item := range items {
		h, res := asked.limits[i], &rec.items[i]
		h.release(r.ID)
		if !live && res.lost == Refund {
			res.parts = nil
		}
		item.Amount = needs[i]
		if needs[i] > 0 || len(res.parts) == 0 {
			for _, p := range h.take(now, item) {
				if last := len(res.parts) - 1; last >= 0 && res.parts[last].at == p.at {
					res.parts[last].amount += p.amount
				} else {
					res.parts = append(res.parts, p)
				}
			}
		}
		h.holdAll(r.ID, rec.deadline, res)
		if item.Limit.Kind != Burn {
			reply.Remaining[i] = max(-MaxAmount, reply.Remaining[i]-needs[i])
		} else {
			reply.Remaining[i] = h.remaining(now, item.Limit)
			if needs[i] > 0 && m.trips(now, h, item.Limit) {
				reply.Tripped = append(reply.Tripped, i)
			}
		}
	}
	return reply
}

// trips raises a burn observer's flag where its rule says so, and tells whether it did.
func (m *Model) trips(now Millis, h *held, l Limit) bool {
	if l.Kind != Burn || !h.burns(now, l) {
		return false
	}
	if by, _ := m.killed(now, []string{l.Flag}); by == 0 {
		return false // it is up already
	}
	var until Millis
	if l.Rule.For > 0 {
		until = now + l.Rule.For
	}
	m.SetKill(l.Flag, until, "burn", l.Rule.Reason)
	return true
}

// Level is what is left of a limit; a bucket in debt is negative.
func (m *Model) Level(now Millis, l Limit) Amount {
	h := m.look(l).copy()
	now = max(now, h.seen)
	items, _ := m.effective(now, []Item{{Limit: l}})
	l = items[0].Limit
	h.advance(now, l)
	h.scale(l)
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

// Clock is now, or the latest time that the limit has seen.
func (m *Model) Clock(now Millis, l Limit) Millis { return m.clock(now, []Item{{Limit: l}}) }

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
	return rec == nil || len(rec.items) == len(items)
}

// surrounded says that the bounds of all calendar windows are around now.
func surrounded(now Millis, items []Item) bool {
	for _, item := range items {
		if b := item.Limit.Bounds; item.Limit.Kind == CalendarWindow && (now < b[0] || now >= b[3]) {
			return false
		}
	}
	return true
}

// look finds a limit without changing anything.
func (m *Model) look(l Limit) *held {
	if h := m.limits[keyOf(l)]; h != nil {
		return h
	}
	return newHeld(l)
}

// touch brings a limit to now and lets its present settings rule from there.
func (m *Model) touch(now Millis, l Limit) *held {
	h := m.look(l)
	m.limits[keyOf(l)] = h
	h.advance(now, l)
	h.scale(l)
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
