package plan

import (
	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

// take lists the limits that the call meets and what it needs of each.
func (p *Plan) take(c *config.Compiled, t *Memory, now bucket.Millis) *dialect.Refusal {
	worst := p.Estimate(p.Output)
	p.Limits, p.Items = make([]*config.Limit, 0, len(c.Limits)), make([]bucket.Item, 0, len(c.Limits))
	p.shards(c)
	var refusal *dialect.Refusal
	for _, l := range c.Limits {
		if !p.meets(l) {
			continue
		}
		part := p.part(l)
		part.fails(l)
		limit := limitOf(l, p.entity(l.By), t, now)
		if l.Pool != nil {
			limit.Share = p.Caller.value(l.Class)
		}
		if l.Claimed != nil {
			limit.Max = p.claimed(c, l)
		}
		if l.Kind == bucket.Burn && len(l.By) > 0 {
			id := p.named(l.By[0])
			if id == "" {
				continue // nobody whose calls a flag could stop
			}
			limit.Flag = l.By[0].Name + ":" + id
		}
		item := bucket.Item{Limit: limit, Shadow: l.Shadow}
		if !l.Shadow { // who refuses nothing makes nobody wait
			item.Queue = l.Queue.Of(p.Caller.Values)
		}
		if p.listed(item.Limit) {
			continue
		}
		amount, ok := p.need(l, worst)
		ok = ok && (l.Count != config.CountCost || p.covered(worst))
		if amount == 0 && rare(l.Count) {
			continue // a chat makes no picture
		}
		if !ok && l.Shadow {
			continue // nothing that could be counted
		}
		item.Amount = amount
		part.At = append(part.At, len(p.Items))
		p.Limits, p.Items = append(p.Limits, l), append(p.Items, item)
		switch {
		case l.Shadow:
		case !ok && !p.covered(worst) && refusal == nil:
			refusal = &dialect.Refusal{Reason: dialect.NotFound, Code: "unpriced_model", Param: "model",
				Message: "The model " + shown(p.Facts.Model) + " has no price here for a call of this kind, and the limit " + l.Name + " needs one."}
		case !ok && p.Never < 0 && refusal == nil:
			p.Never = len(p.Items) - 1
			r := p.neverFits(p.Never, bucket.ReserveReply{})
			refusal = &r
		}
	}
	if len(p.Items) == 0 {
		p.Parts = nil
	}
	if refusal == nil {
		p.fit()
	}
	return refusal
}

// claimed is the maximum that the caller's claim sets, or the default.
func (p *Plan) claimed(c *config.Compiled, l *config.Limit) bucket.Amount {
	claim := numbered(p.Caller.Claims, l.Claimed.Claim)
	if !claim.OK {
		return l.Max
	}
	most, ok := c.MaxOf(l, claim.Value)
	if !ok {
		p.Ignored = append(p.Ignored, l.Name)
		return l.Max
	}
	return most
}

// need is what a call takes from a limit before it runs.
func (p *Plan) need(l *config.Limit, worst dialect.Usage) (bucket.Amount, bool) {
	switch l.Kind {
	case bucket.Concurrency:
		return 1, true
	case bucket.Burn:
		return 0, true // it looks at what was used
	}
	return p.amount(l.Count, worst)
}

// took is what a call that is over has taken from a limit.
func (p *Plan) took(l *config.Limit, u dialect.Usage) bucket.Amount {
	if l.Kind == bucket.Concurrency {
		return 0
	}
	// A cost above what a store can keep is kept as the most that it can.
	amount, _ := p.amount(l.Count, u)
	return amount
}

// listed says that a limit with the same key is in the list already: a script must not take from
// one key twice.
func (p *Plan) listed(l bucket.Limit) bool {
	for i := range p.Items {
		if have := &p.Items[i].Limit; have.Name == l.Name && have.Entity == l.Entity &&
			have.Kind == l.Kind && have.Period == l.Period {
			return true
		}
	}
	return false
}

func limitOf(l *config.Limit, entity string, t *Memory, now bucket.Millis) bucket.Limit {
	b := bucket.Limit{Name: l.Name, Period: l.Period, Entity: entity, Kind: l.Kind, Lost: l.Lost,
		Rate: l.Rate, Per: l.Per, Burst: l.Burst, Max: l.Max, Window: l.Span, Cell: l.Cell, Rule: l.Rule, Pool: l.Pool}
	if l.Kind == bucket.CalendarWindow {
		b.Bounds = t.bounds(l, now)
	}
	if l.Kind == bucket.Burn {
		b.Flag = "global:all"
	}
	return b
}

// capacity is the most that a limit ever has to give: of a shared bucket, to the call's class.
func capacity(l *bucket.Limit) bucket.Amount {
	switch l.Kind {
	case bucket.TokenBucket:
		return l.Burst
	case bucket.SharedBucket:
		return l.Pool.Most(l.Share)
	}
	return l.Max
}
