package bucket

import (
	"errors"
	"math/bits"
	"strconv"
)

// pricedUnits is how many units a Price is for.
const pricedUnits = 1_000_000

// Price is what a model costs: Money per 1,000,000 tokens of each kind.
type Price struct {
	Input       Money
	CachedInput Money // input that the provider read from its cache
	Output      Money
}

var errCost = errors.New("cost is above 2^53-1")

// Cost is what a call costs, rounded up once. input includes cached. It fails on a negative figure,
// on more cached than input, and where the cost is above MaxAmount.
func Cost(p Price, input, cached, output Tokens) (Money, error) {
	if p.Input < 0 || p.CachedInput < 0 || p.Output < 0 {
		return 0, errors.New("a price is negative")
	}
	if input < 0 || cached < 0 || output < 0 {
		return 0, errors.New("a number of tokens is negative")
	}
	if cached > input {
		return 0, errors.New("more cached input than input")
	}
	var sum wide
	for _, part := range [...]struct {
		n     Tokens
		price Money
	}{{input - cached, p.Input}, {cached, p.CachedInput}, {output, p.Output}} {
		// Two such products may pass 2^128 only above 2^63 each: three of 2^126 stay below.
		sum = sum.add(product(uint64(part.n), uint64(part.price)))
	}
	sum = sum.add(wide{0, pricedUnits - 1})
	if sum.hi >= pricedUnits {
		return 0, errCost
	}
	cost, _ := bits.Div64(sum.hi, sum.lo, pricedUnits)
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
