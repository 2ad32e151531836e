package config

import "github.com/emmer-proxy/emmer/bucket"

const (
	burnShape = "a rate a minute such as 60000/m"
	mostBurn  = 30 // minutes
)

// burn reads an observer: it refuses no call, and raises the kill flag of whom it counts for.
func (r *reader) burn(c *Compiled, l *Limit, n *node) {
	l.Kind, l.Rule = bucket.Burn, &bucket.BurnRule{Minutes: 1}
	if by := n.get("by"); by != nil && (len(l.By) > 1 || len(l.By) == 1 && l.By[0].Name == "dialect") {
		r.fault(by, "at most one name beside burn, of an identity, target, model or provider: it is their flag that is raised")
	}
	for _, field := range []string{"max", "bucket", "headroom", "reserved", "shares", "window", "warn", "status", "lost", "failure", "on_overrun", "mode", "queue"} {
		if v := n.get(field); v != nil {
			r.faultFound(v, "it beside burn", "it left out, because burn refuses nothing by itself")
		}
	}
	if l.Count == CountConcurrency {
		r.faultFound(n.get("count"), "concurrency beside burn", "something that is used up")
	}
	n = n.get("burn")
	if !r.object(n, "above for then", "") {
		return
	}
	want := burnShape + ", from 1 to " + decimal(bucket.MaxAmount)
	if l.Count == CountCost {
		want = "a rate of money a minute such as \"10/m\", above 0"
	}
	above := n.get("above")
	if above == nil {
		r.missing(n, "above", want)
	} else if most, per, ok := r.rate(c, l, above); ok && per == 60_000 {
		l.Max = most
	} else {
		r.fault(above, want)
	}
	long := n.get("for")
	if long == nil {
		r.missing(n, "for", "a time from 1m to 30m")
	}
	d := r.duration(long, 60_000, 60_000, mostBurn*60_000)
	if d%60_000 != 0 {
		r.fault(long, "whole minutes")
	}
	if l.Rule.Minutes = int(d / 60_000); above != nil {
		l.Rule.Reason = "limit " + l.Name + ": above " + above.text + " for " + showDuration(d)
	}
	if then := n.get("then"); then == nil {
		r.missing(n, "then", "kill")
	} else {
		r.word(then, "kill", "")
	}
}
