package bucket

import (
	"errors"
	"strconv"
	"strings"
)

// Override is a figure for one entity in place of its limit's.
type Override struct {
	Max   Amount // of windows, concurrency and burn observers
	Rate  Amount // of a token bucket, with Per and Burst
	Per   Millis
	Burst Amount
	Until Millis // holds before this time; 0 is for ever
}

// String is the value that a store keeps: max|until, or rate/per/burst|until for a bucket.
func (o Override) String() string {
	until := "|" + strconv.FormatInt(int64(o.Until), 10)
	if o.Per == 0 {
		return strconv.FormatInt(int64(o.Max), 10) + until
	}
	return strconv.FormatInt(int64(o.Rate), 10) + "/" + strconv.FormatInt(int64(o.Per), 10) + "/" +
		strconv.FormatInt(int64(o.Burst), 10) + until
}

var errOverride = errors.New("override: not max|until, nor rate/per/burst|until for a bucket")

// ParseOverride reads a value for a kind of limit. A SharedBucket has none: its figures depend on
// one another.
func ParseOverride(kind Kind, value string) (Override, error) {
	figures, until, found := strings.Cut(value, "|")
	o := Override{}
	at, ok := plainNumber(until)
	if !found || !ok {
		return o, errOverride
	}
	o.Until = Millis(at)
	if kind != TokenBucket {
		most, ok := plainNumber(figures)
		o.Max = Amount(most)
		if !ok || kind == SharedBucket || kind == Concurrency && most > MaxSlots {
			return Override{}, errOverride
		}
		return o, nil
	}
	rate, rest, _ := strings.Cut(figures, "/")
	per, burst, _ := strings.Cut(rest, "/")
	a, ok1 := plainNumber(rate)
	s, ok2 := plainNumber(per)
	b, ok3 := plainNumber(burst)
	o.Rate, o.Per, o.Burst = Amount(a), Millis(s), Amount(b)
	if !ok1 || !ok2 || !ok3 || (Limit{Kind: TokenBucket, Rate: o.Rate, Per: o.Per, Burst: o.Burst}).Check() != nil {
		return Override{}, errOverride
	}
	return o, nil
}

// plainNumber reads digits only, up to MaxAmount.
func plainNumber(s string) (int64, bool) {
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' || i == 16 {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, s != "" && n <= MaxAmount
}

// over is the limit with the override in place.
func (o Override) over(l Limit) Limit {
	if l.Kind == TokenBucket {
		l.Rate, l.Per, l.Burst = o.Rate, o.Per, o.Burst
	} else {
		l.Max = o.Max
	}
	return l
}
