package config

import "github.com/emmer-proxy/emmer/bucket"

// Claimed says how a verified claim sets a limit's maximum. Limit.Max stands where it sets none.
type Claimed struct {
	Claim  int           // index into Compiled.Claims plus one
	Tiers  []Tier        // what each value of the claim means; nil: the claim is the figure itself
	AtMost bucket.Amount // of figures; what is above it is cut
}

// Tier is a maximum by name.
type Tier struct {
	Value string
	Max   bucket.Amount
}

// MaxOf is the maximum that a claim's value sets; false if it is none of this limit's.
func (c *Compiled) MaxOf(l *Limit, value string) (bucket.Amount, bool) {
	if l.Claimed.Tiers != nil {
		for _, t := range l.Claimed.Tiers {
			if t.Value == value {
				return t.Max, true
			}
		}
		return 0, false
	}
	var n int64
	var ok bool
	if l.Count == CountCost {
		m, err := bucket.ParseMoney(value, c.Currency.Unit)
		n, ok = int64(m), err == nil
	} else {
		n, ok = parseWhole(value)
	}
	if !ok || n < 0 {
		return 0, false
	}
	return min(bucket.Amount(n), l.Claimed.AtMost), true
}

const claimShape = "the path of a claim: a list, what payload_in_metadata says, then the names that lead to it"

// most reads the most that a limit gives: a figure, or a claim that says it.
func (r *reader) most(c *Compiled, l *Limit, n *node) {
	v := n.get("max")
	switch {
	case v == nil:
		r.missing(n, "max", r.amountShape(l))
	case v.kind != kindObject:
		l.Max = r.amount(c, l, v)
	case v.has("tier"):
		r.tiers(c, l, v)
	default:
		r.claimed(c, l, v)
	}
}

func (r *reader) claimed(c *Compiled, l *Limit, n *node) {
	if !r.object(n, "jwt default at_most tier", "") {
		return
	}
	l.Claimed = &Claimed{AtMost: bucket.Amount(l.mostAmount())}
	if v := n.get("jwt"); v != nil {
		l.Claimed.Claim = r.claim(c, v)
	} else {
		r.missing(n, "jwt", claimShape)
	}
	r.fallback(c, l, n)
	if v := n.get("at_most"); v != nil {
		l.Claimed.AtMost = r.amount(c, l, v)
		if l.Claimed.AtMost < l.Max {
			r.fault(v, "at least the default")
		}
	}
}

func (r *reader) tiers(c *Compiled, l *Limit, n *node) {
	l.Claimed = &Claimed{Tiers: []Tier{}}
	for _, kid := range n.kids {
		switch kid.key {
		case "default":
		case "tier":
			if !r.object(kid, "jwt", "") {
				break
			}
			if v := kid.get("jwt"); v != nil {
				l.Claimed.Claim = r.claim(c, v)
			} else {
				r.missing(kid, "jwt", claimShape)
			}
		case "jwt", "at_most":
			r.faultFound(kid, "it beside tier", "it left out")
		case "":
			r.faultFound(kid, "a tier without a name", "the value of the claim that it is for")
		default:
			l.Claimed.Tiers = append(l.Claimed.Tiers, Tier{kid.key, r.amount(c, l, kid)})
		}
	}
	if len(l.Claimed.Tiers) == 0 {
		r.faultFound(n, "no tiers", "a maximum for each value of the claim")
	}
	r.fallback(c, l, n)
}

// fallback reads the maximum of those whose claim sets none.
func (r *reader) fallback(c *Compiled, l *Limit, n *node) {
	if v := n.get("default"); v != nil {
		l.Max = r.amount(c, l, v)
	} else {
		r.missing(n, "default", r.amountShape(l)+", for those without the claim")
	}
}
