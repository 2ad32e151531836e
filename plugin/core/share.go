package core

import (
	"math/bits"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

// share is what this worker passes of one count while its shard of the store can't be asked: a limit of
// the same kind with a part of the figures, kept in the VM. Its amounts are rounded down, against
// the caller: of less than one nothing passes. Nobody waits in it for a turn, and nobody borrows: of a
// shared bucket a class has its part of what is its own.
type share struct {
	shard   plan.CountID
	kind    bucket.Kind
	rate    uint64        // bucket: refilled in per, in hundredths of a token
	per     uint64        // bucket, ms times 100
	window  bucket.Millis // rolling: how far back it looks, and what it counts in
	cell    bucket.Millis
	ends    bucket.Millis // calendar window: of its period
	running int           // calls that are not settled

	used  bucket.Amount // bucket: not refilled yet; calendar window: in its period; concurrency: now
	rest  uint64        // bucket: what came back of the next token, in parts of per
	at    bucket.Millis // bucket: when that was so; calendar window: start of its period
	cells []shareCell   // rolling: ascending
}

type shareCell struct {
	start bucket.Millis
	used  bucket.Amount
}

// shareOf is the share of a limit, of which nothing was used.
func shareOf(l *bucket.Limit, percent int, now bucket.Millis) share {
	s := share{kind: l.Kind, window: l.Window, cell: l.Cell}
	if rate, per := ownRate(l); rate > 0 {
		// A rate times its period is below 2^53.
		s.rate, s.per = uint64(rate)*uint64(percent), uint64(per)*100
	}
	s.advance(l, now)
	return s
}

// partOf is a percentage of what a limit gives, to the call's class.
func partOf(l *bucket.Limit, percent int) bucket.Amount {
	most := l.Max
	switch l.Kind {
	case bucket.TokenBucket:
		most = l.Burst
	case bucket.SharedBucket:
		most = 0
		for _, c := range l.Pool.Shares {
			if c.Name == l.Share {
				most = c.Burst
			}
		}
	}
	return most * bucket.Amount(percent) / 100 // below 2^53 x 100
}

// ownRate is the rate of a bucket, or of the call's class in a shared one.
func ownRate(l *bucket.Limit) (bucket.Amount, bucket.Millis) {
	switch l.Kind {
	case bucket.TokenBucket:
		return l.Rate, l.Per
	case bucket.SharedBucket:
		for _, c := range l.Pool.Shares {
			if c.Name == l.Share {
				return c.Rate, l.Pool.Per
			}
		}
	}
	return 0, 0
}

// advance lets time pass. A clock that was set back refills nothing.
func (s *share) advance(l *bucket.Limit, now bucket.Millis) {
	switch s.kind {
	case bucket.TokenBucket, bucket.SharedBucket:
		s.refill(now)
	case bucket.CalendarWindow:
		if l == nil {
			return
		}
		for i := 0; i+1 < len(l.Bounds); i++ {
			if l.Bounds[i] <= now && now < l.Bounds[i+1] && l.Bounds[i] > s.at {
				s.at, s.ends, s.used = l.Bounds[i], l.Bounds[i+1], 0
			}
		}
	}
}

func (s *share) refill(now bucket.Millis) {
	past := uint64(max(now-s.at, 0))
	s.at = max(s.at, now)
	if s.used == 0 || s.per == 0 {
		s.rest = 0
		return
	}
	hi, lo := bits.Mul64(past, s.rate)
	lo, carry := bits.Add64(lo, s.rest, 0)
	hi += carry
	if hi >= s.per {
		s.used, s.rest = 0, 0
		return
	}
	back, rest := bits.Div64(hi, lo, s.per)
	if back >= uint64(s.used) {
		s.used, s.rest = 0, 0
		return
	}
	s.used, s.rest = s.used-bucket.Amount(back), rest
}

// taken is what counts now.
func (s *share) taken(now bucket.Millis) bucket.Amount {
	if s.kind != bucket.RollingWindow {
		return s.used
	}
	sum := bucket.Amount(0)
	for _, c := range s.cells {
		if s.counts(c.start, now) {
			sum += c.used
		}
	}
	return sum
}

// counts says whether what was used in a cell counts still: until its end and a window.
func (s *share) counts(start, now bucket.Millis) bool { return now < start+s.cell+s.window }

// wait is how long until an amount fits into most, if nobody else acts; 0 is now. It fits at all, or
// nobody knows when: calls at once end when they end.
func (s *share) wait(amount, most bucket.Amount, now bucket.Millis) (bucket.Millis, bool) {
	short := s.taken(now) + amount - most
	if short <= 0 {
		return 0, true
	}
	switch s.kind {
	case bucket.TokenBucket, bucket.SharedBucket:
		if s.rate == 0 {
			return 0, false
		}
		hi, lo := bits.Mul64(uint64(short), s.per)
		lo, borrow := bits.Sub64(lo, s.rest, 0)
		hi -= borrow
		lo, carry := bits.Add64(lo, s.rate-1, 0)
		if hi += carry; hi >= s.rate {
			return 0, false
		}
		ms, _ := bits.Div64(hi, lo, s.rate)
		return bucket.Millis(min(ms, bucket.MaxAmount)), true
	case bucket.CalendarWindow:
		return max(s.ends-now, 1), true
	case bucket.RollingWindow:
		for _, c := range s.cells {
			if s.counts(c.start, now) {
				if short -= c.used; short <= 0 {
					return c.start + s.cell + s.window - now, true
				}
			}
		}
	}
	return 0, true
}

// take takes an amount that fits, and says where: the start of the period or cell.
func (s *share) take(amount bucket.Amount, now bucket.Millis) bucket.Millis {
	s.running++
	if s.kind != bucket.RollingWindow {
		s.used += amount
		return s.at
	}
	start := now - now%s.cell
	n := len(s.cells)
	if n > 0 && s.cells[n-1].start >= start {
		start = s.cells[n-1].start // a clock that was set back
		s.cells[n-1].used += amount
		return start
	}
	kept := s.cells[:0]
	for _, c := range s.cells {
		if s.counts(c.start, now) {
			kept = append(kept, c)
		}
	}
	s.cells = append(kept, shareCell{start, amount})
	return start
}

// settle puts what was used in the place of what was taken at a place.
func (s *share) settle(taken, used bucket.Amount, at bucket.Millis) {
	s.running = max(s.running-1, 0)
	switch s.kind {
	case bucket.Concurrency:
		s.used = max(0, s.used-taken)
	case bucket.TokenBucket, bucket.SharedBucket:
		s.used = max(0, s.used+used-taken)
	case bucket.CalendarWindow:
		if s.at == at {
			s.used = max(0, s.used+used-taken)
		}
	case bucket.RollingWindow:
		for i := range s.cells {
			if c := &s.cells[i]; c.start == at {
				c.used = max(0, c.used+used-taken)
			}
		}
	}
}

// idle says that a new share would say the same.
func (s *share) idle(now bucket.Millis) bool {
	s.advance(nil, now)
	return s.running == 0 && (s.taken(now) == 0 || s.kind == bucket.CalendarWindow && now >= s.ends)
}
