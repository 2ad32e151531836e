package bucket

import (
	"errors"
	"math/bits"
	"strconv"
)

// Price is what a model costs.
type Price struct {
	// Money per 1,000,000 tokens of each kind.
	Input       Money
	CachedInput Money // input that the provider read from its cache
	CacheWrite  Money // input that it wrote to its cache
	CacheHour   Money // input that it wrote to its cache for an hour
	AudioInput  Money
	Output      Money
	AudioOutput Money

	SearchUnit  Money // each, of reranking
	Image       Money // each, made
	Search      Money // each, of the web
	AudioMinute Money // of sound that was heard
}

// Used is what a call used of all that has a price.
type Used struct {
	Input                                          Tokens
	CachedInput, CacheWrite, CacheHour, AudioInput Tokens // parts of Input, apart from each other
	Output                                         Tokens
	AudioOutput                                    Tokens // part of Output
	SearchUnits, Images, Searches                  int64
	Audio                                          Millis
}

var errCost = errors.New("cost is above 2^53-1")

// What a cost is added up in: parts of a Money of which every price is a whole number, 1,000,000
// tokens as well as 60,000 ms.
const (
	costParts   = 3_000_000
	perMillion  = costParts / 1_000_000
	perMinute   = costParts / 60_000
	mostCostSum = MaxAmount * costParts >> 64 // the high half of the largest sum
)

// Cost is what a call costs, rounded up once. It fails on a negative figure, on parts that are more
// than their whole, and where the cost is above MaxAmount.
func Cost(p Price, u Used) (Money, error) {
	type part struct {
		n     int64
		price Money
		times uint64
	}
	rest, text := u.Input, u.Output-u.AudioOutput
	for _, n := range [...]Tokens{u.CachedInput, u.CacheWrite, u.CacheHour, u.AudioInput} {
		if n < 0 || n > rest {
			return 0, errors.New("the parts of the input are negative or more than the input")
		}
		rest -= n
	}
	if u.AudioOutput < 0 || text < 0 {
		return 0, errors.New("spoken output is negative or more than the output")
	}
	var sum wide
	for _, x := range [...]part{
		{int64(rest), p.Input, perMillion}, {int64(u.CachedInput), p.CachedInput, perMillion},
		{int64(u.CacheWrite), p.CacheWrite, perMillion}, {int64(u.CacheHour), p.CacheHour, perMillion},
		{int64(u.AudioInput), p.AudioInput, perMillion},
		{int64(text), p.Output, perMillion}, {int64(u.AudioOutput), p.AudioOutput, perMillion},
		{u.SearchUnits, p.SearchUnit, costParts}, {u.Images, p.Image, costParts}, {u.Searches, p.Search, costParts},
		{int64(u.Audio), p.AudioMinute, perMinute},
	} {
		if x.price < 0 {
			return 0, errors.New("a price is negative")
		}
		if x.n < 0 {
			return 0, errors.New("a figure of usage is negative")
		}
		one := product(uint64(x.n), uint64(x.price))
		if one.hi > mostCostSum {
			return 0, errCost
		}
		// Below 2^75 each, and a factor below 2^22.
		if one = one.times(x.times); one.hi > mostCostSum {
			return 0, errCost
		}
		sum = sum.add(one)
	}
	sum = sum.add(wide{0, costParts - 1})
	if sum.hi >= costParts {
		return 0, errCost
	}
	cost, _ := bits.Div64(sum.hi, sum.lo, costParts)
	if cost > MaxAmount {
		return 0, errCost
	}
	return Money(cost), nil
}

// ParseMoney reads a decimal string such as "2.50" exactly. unit is how many units of Money make
// one whole: 10^9, or 10^6 for a currency without a minor unit. It fails on a sign, an exponent, a
// digit that is finer than the unit, and an amount above MaxAmount.
func ParseMoney(decimal string, unit Money) (Money, error) {
	bad := func(why string) (Money, error) {
		if len(decimal) > 40 {
			decimal = decimal[:40] + "..."
		}
		return 0, errors.New("amount " + strconv.Quote(decimal) + " " + why)
	}
	if unit < 1 || unit > MaxAmount {
		return 0, errors.New("unit of money " + strconv.FormatInt(int64(unit), 10) + " is not between 1 and 2^53-1")
	}
	var (
		value    uint64
		scale    = uint64(unit) // worth of the digit to come, after the point
		digits   int
		fraction bool
	)
	for i := 0; i < len(decimal); i++ {
		c := decimal[i]
		switch {
		case c == '.' && !fraction && digits > 0:
			fraction = true
			if over, low := bits.Mul64(value, uint64(unit)); over == 0 && low <= MaxAmount {
				value = low
			} else {
				return bad("is above 2^53-1 units")
			}
			digits = 0
		case c < '0' || c > '9':
			return bad("is not a plain decimal number such as 2.50")
		case !fraction:
			digits++
			value = value*10 + uint64(c-'0')
			if value > MaxAmount {
				return bad("is above 2^53-1 units")
			}
		default:
			digits++
			if c != '0' && (scale == 0 || scale%10 != 0) {
				return bad("is finer than 1/" + strconv.FormatInt(int64(unit), 10))
			}
			scale /= 10
			value += uint64(c-'0') * scale
		}
	}
	if digits == 0 {
		return bad("is not a plain decimal number such as 2.50")
	}
	if !fraction {
		over, low := bits.Mul64(value, uint64(unit))
		if over != 0 {
			return bad("is above 2^53-1 units")
		}
		value = low
	}
	if value > MaxAmount {
		return bad("is above 2^53-1 units")
	}
	return Money(value), nil
}

// wide is an unsigned number of 128 bits: products of two amounts, exactly.
type wide struct{ hi, lo uint64 }

func product(a, b uint64) wide {
	hi, lo := bits.Mul64(a, b)
	return wide{hi, lo}
}

func (a wide) add(b wide) wide {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return wide{hi, lo}
}

// less says whether a < b.
func (a wide) less(b wide) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

// minus is a-b, or 0 where b is larger.
func (a wide) minus(b wide) wide {
	if a.less(b) {
		return wide{}
	}
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(a.hi, b.hi, borrow)
	return wide{hi, lo}
}

// over is the quotient a/b rounded up. b is not 0.
func (a wide) over(b uint64) wide {
	hi := a.hi / b
	lo, rest := bits.Div64(a.hi%b, a.lo, b)
	q := wide{hi, lo}
	if rest > 0 {
		q = q.add(wide{0, 1})
	}
	return q
}

// times is a*b. The caller knows that it fits 128 bits.
func (a wide) times(b uint64) wide {
	p := product(a.lo, b)
	p.hi += a.hi * b
	return p
}
