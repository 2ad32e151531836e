package config

import "github.com/emmer-proxy/emmer/bucket"

// divide works the figures out. Rates stay exact: they get a longer period until all are whole
// numbers, and are rounded down where that would be too long. Bursts are rounded down, but not to 0.
func (r *reader) divide(c *Compiled, l *Limit, n *node, cut int64, all []portion) {
	burst := max(percent(l.Burst, 100-cut), 1)
	if len(all) > 0 && burst > bucket.MaxPool {
		what := "below 2^49"
		if l.Count == CountCost {
			what += " of 1/" + decimal(int64(c.Currency.Unit)) + " " + c.Currency.Code
		}
		r.fault(n.get("burst"), "what is "+what+" after headroom, because no more can be divided")
		return
	}
	longer := finer(l, cut, all)
	pool := &bucket.Pool{Rate: percent(l.Rate*bucket.Amount(longer), 100-cut), Per: l.Per * longer, Burst: burst}
	if pool.Rate < 1 {
		r.fault(n.get("rate"), "a rate of which headroom leaves at least 1 a day")
		return
	}
	if len(all) == 0 {
		l.Burst = burst
		l.Rate, l.Per = bucket.ReduceRate(pool.Rate, pool.Per)
		return
	}
	if !r.rates(pool, all) || !r.bursts(n.get("burst"), pool, all) {
		return
	}
	for i := range all {
		pool.Shares = append(pool.Shares, all[i].Share)
	}
	reduce(pool)
	l.Kind, l.Rate, l.Per, l.Burst, l.Pool = bucket.SharedBucket, 0, 0, 0, pool
}

// rates divides the rate of a pool that is still the whole.
func (r *reader) rates(pool *bucket.Pool, all []portion) bool {
	whole, ok := pool.Rate, true
	for _, reserved := range [2]bool{true, false} { // shares are parts of what is not reserved
		for i := range all {
			p := &all[i]
			if p.Reserved != reserved {
				continue
			}
			if p.Rate = percent(whole, p.part); p.Rate < 1 {
				r.fault(p.n, "a share of the rate that is at least 1 a day")
				ok = false
			}
			if reserved {
				pool.Rate -= p.Rate
			}
		}
		whole = pool.Rate
	}
	return ok
}

// bursts divides the burst of a pool that is still the whole. Where bursts of their own leave too
// little for the parts of the other classes, those divide what is left.
func (r *reader) bursts(n *node, pool *bucket.Pool, all []portion) bool {
	const small = "so much that each class has at least 1 of it"
	whole := pool.Burst
	for i := range all {
		p := &all[i]
		if !p.Reserved {
			continue
		}
		if p.Burst = max(percent(whole, p.part), 1); p.burst > 0 {
			p.Burst = p.burst
		}
		if pool.Burst -= p.Burst; pool.Burst < 1 {
			if p.burst == 0 {
				r.fault(n, small)
			} else {
				r.fault(p.n.get("burst"), "less than the "+decimal(int64(pool.Burst+p.Burst))+" that there is to be divided")
			}
			return false
		}
	}
	rest, parts := pool.Burst, bucket.Amount(0)
	for i := range all {
		p := &all[i]
		if p.Reserved {
			continue
		}
		if p.burst == 0 {
			parts += bucket.Amount(p.part)
			continue
		}
		if p.burst > rest {
			r.fault(p.n.get("burst"), "at most the "+decimal(int64(rest))+" that there is left to be divided")
			return false
		}
		p.Burst, rest = p.burst, rest-p.burst
	}
	left := rest
	for i := range all {
		p := &all[i]
		if p.Reserved || p.burst > 0 {
			continue
		}
		p.Burst = max(min(percent(pool.Burst, p.part), rest*bucket.Amount(p.part)/parts), 1)
		if left -= p.Burst; left < 0 {
			r.fault(n, small)
			return false
		}
	}
	return true
}

func percent(n bucket.Amount, p int64) bucket.Amount { return n * bucket.Amount(p) / 100 } // below 2^53 times 100

// finer is by how much a bucket's period must be longer so that all parts of its rate are whole
// numbers, or as much as is possible.
func finer(l *Limit, cut int64, all []portion) bucket.Millis {
	const whole = 1_000_000 // three shares of one another, in percent each
	longer, free := int64(1), int64(100)
	add := func(a, b int64) {
		part := int64(l.Rate) % whole * ((100 - cut) * a * b % whole) % whole
		d := whole / gcd(part, whole)
		longer *= d / gcd(longer, d)
	}
	add(100, 100)
	for i := range all {
		if all[i].Reserved {
			add(all[i].part, 100)
			free -= all[i].part
		}
	}
	add(free, 100)
	for i := range all {
		if !all[i].Reserved {
			add(free, all[i].part)
		}
	}
	// The longest period that a store takes, and the square that keeps rate times period below 2^53.
	most, product := int64(bucket.MaxPer/l.Per), bucket.MaxAmount/(int64(l.Rate)*int64(l.Per))
	longer = min(longer, most)
	if longer*longer > product {
		for low, high := int64(1), longer; ; {
			middle := low + (high-low)/2
			switch {
			case high-low < 2:
				return bucket.Millis(low)
			case middle*middle > product:
				high = middle
			default:
				low = middle
			}
		}
	}
	return bucket.Millis(longer)
}

// reduce makes the period of a pool as short as its rates allow.
func reduce(p *bucket.Pool) {
	d := gcd(int64(p.Rate), int64(p.Per))
	for i := range p.Shares {
		d = gcd(int64(p.Shares[i].Rate), d)
	}
	p.Rate, p.Per = p.Rate/bucket.Amount(d), p.Per/bucket.Millis(d)
	for i := range p.Shares {
		p.Shares[i].Rate /= bucket.Amount(d)
	}
}

// gcd is the greatest common divisor; b is not 0.
func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
