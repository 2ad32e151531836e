package plan

import (
	"strconv"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
)

// Note is what an admitted call should be noted for at one limit.
type Note struct {
	Limit   string
	Shadow  bool // the limit refuses nothing and tells clients nothing
	Over    bool // it would have refused the call
	Percent int  // the highest threshold that the call reached, 0 for none
	Crossed bool // the call before it had not
}

// Notes are what a store's grant is to be noted for, in the order of Limits; nil mostly.
func (p *Plan) Notes(r bucket.ReserveReply) (notes []Note) {
	if r.Outcome != bucket.Granted && r.Outcome != bucket.Replayed || len(r.Remaining) != len(p.Items) {
		return nil
	}
	for i, l := range p.Limits {
		if !l.Shadow && l.Warn == nil {
			continue
		}
		n := Note{Limit: l.Name, Shadow: l.Shadow}
		left, amount := r.Remaining[i], p.Items[i].Amount
		n.Over = l.Shadow && left < 0 && amount > 0
		n.Percent, n.Crossed = reached(l.Warn, p.most(i, r), left, amount)
		if n.Over || n.Percent > 0 {
			notes = append(notes, n)
		}
	}
	return notes
}

// reached is the highest threshold that is reached where so much is left of most, and whether the
// amount that was taken last has made it so. All are below 2^54, and thresholds at most 100.
func reached(percents []int, most, left, amount bucket.Amount) (percent int, crossed bool) {
	for _, p := range percents {
		if at := most * bucket.Amount(p); most > 0 && (most-left)*100 >= at {
			percent, crossed = p, (most-left-amount)*100 < at
		}
	}
	return percent, crossed
}

// most is the most that a limit gives, as the store said it, which knows of overrides.
func (p *Plan) most(i int, r bucket.ReserveReply) bucket.Amount {
	if i < len(r.Max) {
		return r.Max[i]
	}
	return capacity(&p.Items[i].Limit)
}

// overridden is a limit with the most that the store says, and how fast it refills for this call. Of an override of a rate it says nothing.
func (p *Plan) overridden(i int, r bucket.ReserveReply) bucket.Limit {
	l := p.Items[i].Limit
	l.Rate, l.Per = refill(&l)
	l.Max, l.Burst = p.most(i, r), p.most(i, r)
	return l
}

// warnings names the limits that are close to their end, for a client: "tenant-month 80%, key 95%".
func warnings(notes []Note) string {
	out := ""
	for _, n := range notes {
		if n.Percent == 0 || n.Shadow {
			continue
		}
		if out != "" {
			out += ", "
		}
		out += n.Limit + " " + strconv.Itoa(n.Percent) + "%"
	}
	return out
}

// told says whether clients are told of a limit in the headers about rates and budgets. Calls at a
// time are no rate, what few calls use has no header, and observers refuse nothing.
func told(l *config.Limit) bool {
	return !l.Shadow && l.Kind != bucket.Concurrency && l.Kind != bucket.Burn && !rare(l.Count)
}
