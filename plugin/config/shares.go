package config

import (
	"slices"
	"strings"

	"github.com/emmer-proxy/emmer/bucket"
)

// className is the identity whose values are the classes that a bucket is divided among, and that may
// wait for their turns.
const className = "class"

const (
	dividers    = "headroom reserved shares"
	shareShape  = "a whole share from 1% to 100%"
	shareObject = "part burst borrow"
	// mostClasses is how many a store divides one bucket among.
	mostClasses = 12
)

// undivided refuses what divides a bucket beside other kinds of limits.
func (r *reader) undivided(n *node, beside string) {
	for _, field := range strings.Fields(dividers) {
		if v := n.get(field); v != nil {
			r.faultFound(v, "it beside "+beside, "it left out, because only a bucket can be divided")
		}
	}
}

// divided reads what is kept back of a bucket and how the rest is divided: headroom comes off first,
// then what is reserved, and the shares are parts of what is left. The bucket is sound if it had no
// fault.
func (r *reader) divided(c *Compiled, l *Limit, n *node, sound bool) {
	before, cut := len(r.faults), int64(0)
	if v := n.get("headroom"); v != nil {
		p, ok := numbered(v.text, "%")
		if cut = p; v.kind != kindString || !ok || cut < 1 || cut > 99 {
			r.fault(v, "a whole share from 1% to 99%, which is left unused")
		}
	}
	var all []portion
	if v := n.get("reserved"); v != nil {
		all = r.portions(c, l, v, true, nil)
	}
	if v := n.get("shares"); v != nil {
		all = r.portions(c, l, v, false, all)
	}
	if !sound || len(r.faults) > before || cut == 0 && len(all) == 0 {
		return
	}
	if r.divide(c, l, n.get("bucket"), cut, all); l.Pool != nil {
		r.served(c, l, n.get("shares"))
	}
}

// portion is a share as it is written.
type portion struct {
	bucket.Share
	part  int64         // percent
	burst bucket.Amount // of its own, or 0
	n     *node
}

// portions reads the classes of reserved or shares; more are those that were read before.
func (r *reader) portions(c *Compiled, l *Limit, n *node, reserved bool, more []portion) []portion {
	if n.kind != kindObject || len(n.kids) == 0 {
		r.fault(n, "an object of classes and the share of each, such as 30%")
		return more
	}
	key, _ := c.key(className)
	if key.Identity < 0 || len(c.Identities[key.Identity].OneOf) == 0 {
		r.faultFound(n, "classes, and no identity named class with one_of", "identity.class, with one_of to list the classes")
		return more
	}
	l.Class = key.Identity
	for _, by := range l.By {
		if by == key {
			r.faultFound(n, "classes, and class in by", "class left out of by, because classes can share only what they count together")
		}
	}
	sum := int64(0)
	for _, kid := range n.kids {
		p := portion{Share: bucket.Share{Name: kid.key, Reserved: reserved, Borrow: true}, n: kid}
		switch {
		case !has(c.Identities[key.Identity].OneOf, kid.key):
			r.faultFound(kid, "a class that is not in one_of of class", "one of "+strings.Join(c.Identities[key.Identity].OneOf, ", "))
		case !l.meets(key, kid.key):
			r.faultFound(kid, "a class that the limit is not for", "it left out, or in for.class too")
		}
		for _, other := range more {
			if other.Name == kid.key {
				r.faultFound(kid, "a class that is reserved for", "it in either reserved or shares")
			}
		}
		v := kid
		if kid.kind == kindObject {
			if !r.object(kid, shareObject, "") {
				continue
			}
			p.Borrow = r.flag(kid.get("borrow"), true)
			if b := kid.get("burst"); b != nil {
				p.burst = r.amount(c, l, b)
			}
			if v = kid.get("part"); v == nil {
				r.missing(kid, "part", shareShape)
				continue
			}
		}
		var ok bool
		if p.part, ok = numbered(v.text, "%"); v.kind != kindString || !ok || p.part < 1 || p.part > 100 {
			r.fault(v, shareShape)
			continue
		}
		sum += p.part
		more = append(more, p)
	}
	most := int64(100)
	if reserved {
		most = 99
	}
	if sum > most {
		r.faultFound(n, decimal(sum)+"% together", "at most "+decimal(most)+"%")
	}
	if len(more) > mostClasses {
		r.faultFound(n, decimal(int64(len(more)))+" classes, with those reserved for", "at most "+decimal(mostClasses))
	}
	return more
}

// meets says whether a call with this value of an identity can meet the limit.
func (l *Limit) meets(key Key, value string) bool {
	for _, m := range l.For {
		if m.Key == key && !m.Fits(value) {
			return false
		}
	}
	return true
}

// served refuses a division that leaves some class nothing at all: each of its calls would be refused
// for ever. Without shares what is not reserved is for all.
func (r *reader) served(c *Compiled, l *Limit, n *node) {
	if n == nil {
		return
	}
	id := &c.Identities[l.Class]
	classes := id.OneOf
	if id.Missing == Pass && id.Default == "" {
		classes = append(slices.Clone(classes), "")
	}
	for _, class := range classes {
		if !l.meets(Key{id.Name, l.Class}, class) || l.Pool.Most(class) > 0 {
			continue
		}
		if class == "" {
			r.faultFound(n, "nothing left for calls without a class", "a default for class, or less than 100% together")
		} else {
			r.faultFound(n, "nothing left for class "+class, "a share for it, or less than 100% together")
		}
	}
}
