package script

import (
	"errors"
	"strconv"

	"github.com/emmer-proxy/emmer/bucket"
)

// Value is one element of a script's reply, which is a flat array.
type Value struct {
	Text  string
	Int   int64
	IsInt bool
}

// ErrNonce says that a reply belongs to another call. The outcome of this one is unknown.
var ErrNonce = errors.New("the store's reply is for another call")

// errShape wraps nothing: a reply of another shape is from another script or another program.
func errShape(what string) error { return errors.New("the store's reply has " + what) }

// Level is how a limit stands.
type Level struct {
	Remaining bucket.Amount // below zero: debt
	Reserved  bucket.Amount // in live reservations; it is among what is used
	Now       bucket.Millis
}

// DecodeReserve reads the reply to a call of Layout.Reserve.
func DecodeReserve(c Call, v []Value) (bucket.ReserveReply, error) {
	// outcome, now, deadline, by, retry, then remaining for each item or the reason, the nonce
	r := reader{c: c, v: v}
	r.open(6)
	outcome := bucket.Outcome(r.number(0, int64(bucket.Granted), int64(bucket.NeverFits)))
	reply := bucket.ReserveReply{
		Outcome:  outcome,
		Now:      r.millis(1),
		Deadline: r.millis(2),
		Retry:    r.millis(4),
		By:       -1,
	}
	switch outcome {
	case bucket.Denied, bucket.NeverFits:
		reply.By = int(r.number(3, 1, int64(c.Items))) - 1
		reply.Remaining, reply.Max, reply.BadOverride = r.limits(5)
	case bucket.Granted, bucket.Replayed:
		reply.Start, reply.Retry = reply.Retry, 0
		if outcome == bucket.Replayed {
			reply.Remaining = r.remaining(5)
		} else {
			reply.Remaining, reply.Max, reply.BadOverride = r.limits(5)
		}
	case bucket.Killed:
		reply.By = int(r.number(3, 1, int64(c.Kills))) - 1
		reply.Reason = r.text(5)
		r.ends(6)
	case bucket.Settled:
		r.ends(5)
	}
	if r.err != nil {
		return bucket.ReserveReply{}, r.err
	}
	return reply, nil
}

// DecodeSettle reads the reply to a call of Layout.Settle.
func DecodeSettle(c Call, v []Value) (bucket.SettleReply, error) {
	r := reader{c: c, v: v}
	r.open(3)
	reply := bucket.SettleReply{
		Outcome: bucket.SettleOutcome(r.number(0, int64(bucket.SettledLive), int64(bucket.SettledTooOld))),
		Now:     r.millis(1),
	}
	switch reply.Outcome {
	case bucket.SettledDuplicate, bucket.SettledTooOld:
		r.ends(2)
	default:
		reply.Remaining = r.figures(2)
		reply.Tripped = r.tripped(2 + c.Items)
		after := 2 + c.Items + len(c.Burns)
		if c.Learns {
			reply.Learned = bucket.Tokens(r.number(after, 0, bucket.LongestAnswer))
			after++
		}
		r.ends(after)
	}
	if r.err != nil {
		return bucket.SettleReply{}, r.err
	}
	return reply, nil
}

// DecodeExtend reads the reply to a call of Layout.Extend.
func DecodeExtend(c Call, v []Value) (bucket.ExtendReply, error) {
	r := reader{c: c, v: v}
	r.open(6)
	outcome := bucket.ExtendOutcome(r.number(0, int64(bucket.Extended), int64(bucket.ExtendEnded)))
	reply := bucket.ExtendReply{Outcome: outcome, Now: r.millis(1), Deadline: r.millis(2), Retry: r.millis(4), By: -1}
	switch outcome {
	case bucket.Extended, bucket.ExtendedLate, bucket.ExtendDenied:
		if outcome == bucket.ExtendDenied {
			reply.By = int(r.number(3, 1, int64(c.Items))) - 1
		}
		after := 5 + c.Items
		reply.Remaining = r.figures(5)
		if c.Max {
			reply.Max, reply.BadOverride = r.figures(after), int(r.number(after+c.Items, 0, int64(c.Items)))
			after += c.Items + 1
		}
		reply.Tripped = r.tripped(after)
		r.ends(after + len(c.Burns))
	case bucket.ExtendKilled:
		reply.By = int(r.number(3, 1, int64(c.Kills))) - 1
		reply.Reason = r.text(5)
		r.ends(6)
	default:
		r.ends(5)
	}
	if r.err != nil {
		return bucket.ExtendReply{}, r.err
	}
	return reply, nil
}

// DecodeRenew reads the reply to a call of Layout.Renew.
func DecodeRenew(c Call, v []Value) (bucket.RenewReply, error) {
	r := reader{c: c, v: v}
	r.open(4)
	reply := bucket.RenewReply{
		Outcome:  bucket.RenewOutcome(r.number(0, int64(bucket.Renewed), int64(bucket.RenewUnknown))),
		Now:      r.millis(1),
		Deadline: r.millis(2),
	}
	r.ends(3)
	if r.err != nil {
		return bucket.RenewReply{}, r.err
	}
	return reply, nil
}

// DecodeLevel reads the reply to a call of Layout.Level.
func DecodeLevel(c Call, v []Value) (Level, error) {
	r := reader{c: c, v: v}
	r.open(4)
	level := Level{
		Now:       r.millis(0),
		Remaining: bucket.Amount(r.number(1, -2*bucket.MaxAmount, bucket.MaxAmount)),
		Reserved:  bucket.Amount(r.number(2, 0, bucket.MaxAmount)),
	}
	r.ends(3)
	if r.err != nil {
		return Level{}, r.err
	}
	return level, nil
}

// reader takes a reply apart and keeps the first error.
type reader struct {
	c   Call
	v   []Value
	err error
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = errShape(what)
	}
}

// open checks the least length and the nonce, before anything else is believed.
func (r *reader) open(least int) {
	n := len(r.v)
	if n == 0 {
		r.fail("no elements")
		return
	}
	if last := r.v[n-1]; last.IsInt || last.Text != r.c.Nonce || r.c.Nonce == "" {
		r.err = ErrNonce
		return
	}
	if n < least {
		r.fail("too few elements: " + strconv.Itoa(n))
	}
}

func (r *reader) number(i int, least, most int64) int64 {
	if r.err != nil {
		return least
	}
	if i >= len(r.v)-1 {
		r.fail("too few elements: " + strconv.Itoa(len(r.v)))
		return least
	}
	n, ok := r.v[i].Int, r.v[i].IsInt
	if !ok { // a dialect that knows only strings
		n, ok = wholeNumber(r.v[i].Text)
	}
	if !ok || n < least || n > most {
		r.fail("an element " + strconv.Itoa(i) + " that is no such number")
		return least
	}
	return n
}

func (r *reader) millis(i int) bucket.Millis { return bucket.Millis(r.number(i, 0, bucket.MaxAmount)) }

func (r *reader) text(i int) string {
	if r.err != nil {
		return ""
	}
	if i >= len(r.v)-1 || r.v[i].IsInt {
		r.fail("an element " + strconv.Itoa(i) + " that is no text")
		return ""
	}
	return r.v[i].Text
}

// ends checks that the nonce is element i.
func (r *reader) ends(i int) {
	if r.err == nil && len(r.v) != i+1 {
		r.fail(strconv.Itoa(len(r.v)) + " elements, not " + strconv.Itoa(i+1))
	}
}

// remaining is a figure for each item, and the nonce.
func (r *reader) remaining(from int) []bucket.Amount {
	r.ends(from + r.c.Items)
	return r.figures(from)
}

// figures is an amount for each item.
func (r *reader) figures(from int) []bucket.Amount {
	if r.err != nil {
		return nil
	}
	out := make([]bucket.Amount, r.c.Items)
	for i := range out {
		out[i] = bucket.Amount(r.number(from+i, -2*bucket.MaxAmount, bucket.MaxAmount))
	}
	return out
}

// limits are what is left, what each limit gives at the most, and which override is none; and the nonce.
func (r *reader) limits(from int) (left, most []bucket.Amount, bad int) {
	if !r.c.Max {
		return r.remaining(from), nil, 0
	}
	n := r.c.Items
	r.ends(from + 2*n + 1)
	return r.figures(from), r.figures(from + n), int(r.number(from+2*n, 0, int64(n)))
}

// tripped says which burn observers have raised their flag.
func (r *reader) tripped(from int) (items []int) {
	for i, item := range r.c.Burns {
		if r.number(from+i, 0, 1) == 1 {
			items = append(items, item)
		}
	}
	return items
}

// wholeNumber reads an integer as the scripts write it.
func wholeNumber(s string) (int64, bool) {
	if len(s) == 0 || len(s) > 17 {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || s[0] == '+' {
		return 0, false
	}
	return n, true
}
