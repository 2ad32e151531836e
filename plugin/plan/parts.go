package plan

import (
	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
)

// Part is what a call takes in one shard of the store. Each shard is asked apart from the others.
type Part struct {
	Org     string         // whose shard; empty: of what belongs to no org
	At      []int          // into Items, ascending; none: its kill flags alone concern the call
	Failure config.Failure // closed if one of its limits is, else local if one is
}

// shards begins a part for each shard that the call concerns: of what belongs to no org, and of its
// own. A call of no org has only the first, for all.
func (p *Plan) shards(c *config.Compiled) {
	p.sole[0] = Part{At: make([]int, 0, len(c.Limits)), Failure: config.FailOpen}
	p.Parts = p.sole[:]
	if org := Org(c, p.Caller); org != "" {
		p.Parts = append(p.Parts, Part{Org: org, Failure: config.FailOpen})
	}
}

// Org is the org that has a shard of its own for a call; empty where there is none.
func Org(c *config.Compiled, who Caller) string {
	if c.Store.Shard != config.ShardOrg {
		return ""
	}
	return who.value(c.Org)
}

// OrgOf is the org in whose shard a limit is kept, given values by name, as EntityOf.
func OrgOf(l *config.Limit, values map[string]string) string {
	if !l.OfOrg {
		return ""
	}
	return values["org"]
}

// part is the part that a limit belongs to.
func (p *Plan) part(l *config.Limit) *Part {
	if l.OfOrg {
		return &p.Parts[len(p.Parts)-1]
	}
	return &p.Parts[0]
}

// fails adds a limit's policy: what refuses nothing has none.
func (t *Part) fails(l *config.Limit) {
	switch {
	case l.Shadow || l.Kind == bucket.Burn:
	case l.Failure == config.FailClosed:
		t.Failure = config.FailClosed
	case l.Failure == config.FailLocal && t.Failure == config.FailOpen:
		t.Failure = config.FailLocal
	}
}

// Of are the items of a part, given those of the whole call.
func (t *Part) Of(items []bucket.Item) []bucket.Item {
	if len(t.At) == len(items) {
		return items
	}
	own := make([]bucket.Item, len(t.At))
	for i, at := range t.At {
		own[i] = items[at]
	}
	return own
}

// Merge is what one store with all limits would have answered: granted if each part is, else the
// refusal that binds. replies is parallel to Parts; one with an Outcome of 0 is unknown. Where a
// refusal came together with grants, those are taken to be given back.
func (p *Plan) Merge(replies []bucket.ReserveReply) bucket.ReserveReply {
	all := bucket.ReserveReply{By: -1}
	for i := range replies {
		r := replies[i]
		at := p.Parts[i].At
		if r.Outcome == bucket.Denied || r.Outcome == bucket.NeverFits {
			if r.By < 0 || r.By >= len(at) {
				continue
			}
			r.By = at[r.By]
		}
		if a, b := weight(r.Outcome), weight(all.Outcome); a > b || a == b && a > 0 && binds(&r, &all) {
			all.Outcome, all.By, all.Retry, all.Reason, all.Now = r.Outcome, r.By, r.Retry, r.Reason, r.Now
		}
		all.Start = max(all.Start, r.Start)
		if r.BadOverride > 0 && r.BadOverride <= len(at) && (all.BadOverride == 0 || at[r.BadOverride-1] < all.BadOverride-1) {
			all.BadOverride = at[r.BadOverride-1] + 1
		}
	}
	if weight(all.Outcome) > weight(bucket.Granted) {
		all.Start = 0
	}
	if all.Outcome == bucket.Killed {
		all.BadOverride = 0 // a store that a flag stops looks for none
		return all
	}
	p.figures(replies, &all)
	return all
}

// weight orders outcomes as a store decides: a flag stops what could never fit, and what can never
// fit is not told to wait.
func weight(o bucket.Outcome) int {
	switch o {
	case bucket.Granted, bucket.Replayed:
		return 1
	case bucket.Denied:
		return 2
	case bucket.NeverFits:
		return 3
	case bucket.Killed:
		return 4
	}
	return 0
}

// binds says which of two answers of the same weight is told: of denials the one with the latest time, of
// grants the one with the latest clock, else the first one in the order of the configuration.
func binds(a, b *bucket.ReserveReply) bool {
	switch a.Outcome {
	case bucket.Denied:
		return a.Retry > b.Retry || a.Retry == b.Retry && a.By < b.By
	case bucket.Granted, bucket.Replayed:
		return a.Now > b.Now
	}
	return a.By < b.By
}

// figures puts what is left of each limit, and what it gives, in the order of Items. They are left out
// if a part doesn't tell: half of them would be taken for all.
func (p *Plan) figures(replies []bucket.ReserveReply, all *bucket.ReserveReply) {
	known := 0
	for i := range replies {
		if len(replies[i].Remaining) == len(p.Parts[i].At) {
			known += len(replies[i].Remaining)
		}
	}
	if known != len(p.Items) {
		return
	}
	refused := weight(all.Outcome) > weight(bucket.Granted)
	all.Remaining, all.Max = make([]bucket.Amount, known), make([]bucket.Amount, known)
	for i := range replies {
		r := &replies[i]
		for j, at := range p.Parts[i].At {
			all.Remaining[at], all.Max[at] = r.Remaining[j], capacity(&p.Items[at].Limit)
			if refused && weight(r.Outcome) == weight(bucket.Granted) {
				all.Remaining[at] += p.Items[at].Amount
			}
			if len(r.Max) == len(r.Remaining) {
				all.Max[at] = r.Max[j]
			}
		}
	}
}
