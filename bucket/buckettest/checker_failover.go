package buckettest

import "slices"

// replicated is a store of which a copy can be kept, to go on from it later: as a replica does that
// becomes the master, and has not heard of what was acknowledged last.
type replicated interface{ Copy() (goOn func()) }

// replica is a copy of a store and what the books said when it was made.
type replica struct {
	goOn  func()
	calls []one
}

// replicate makes a replica, or lets the one that is there take over. What was reserved since then is
// unknown, and settles in full; what was settled since is held again, until its lease ends. Both are what
// section "What is inexact, by choice" of the README says of a failover, and no more.
func (c *checker) replicate() {
	s, ok := c.s.(replicated)
	if !ok {
		return
	}
	if c.behind == nil || c.r.Intn(3) == 0 {
		c.behind = &replica{goOn: s.Copy()}
		for _, o := range c.calls {
			o := *o
			o.parked = slices.Clone(o.parked)
			c.behind.calls = append(c.behind.calls, o)
		}
		return
	}
	c.behind.goOn()
	for i, o := range c.calls {
		then := one{id: o.id, which: o.which, asked: o.asked, parked: make([]bool, len(o.which))}
		if i < len(c.behind.calls) {
			then = c.behind.calls[i]
		}
		then.told, then.lost = o.told, o.lost // its gateway is where it was
		*o = then
	}
	c.behind = nil
	c.audit()
}

// forgotten says of a call that is not granted that its gateway was told otherwise.
func (o *one) forgotten() bool { return o.state == 0 && o.told > 0 && !o.lost }
