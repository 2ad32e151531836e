package config

import "github.com/emmer-proxy/emmer/bucket"

// Queue says how long calls may wait for their turn at a limit.
type Queue struct {
	Any     bucket.Millis // of every call; 0 where Classes is set
	Class   int           // index into Compiled.Identities: whose value a call's class is
	Classes []Wait        // a class that is not among them waits not at all
}

// Wait is how long the calls of a class may wait.
type Wait struct {
	Class string
	For   bucket.Millis
}

// Of is how long calls of a caller may wait, whose identities are given.
func (q *Queue) Of(values []string) bucket.Millis {
	if q == nil {
		return 0
	}
	for _, w := range q.Classes {
		if q.Class < len(values) && values[q.Class] == w.Class {
			return w.For
		}
	}
	return q.Any
}

// Park bounds the calls that wait for their turn in one worker of the host, whose memory holds their
// bodies.
type Park struct {
	Calls int
	Bytes int // of their bodies
}

// maxQueue is the longest that a call may wait. The host's own timeouts must be longer still.
const maxQueue bucket.Millis = 3_600_000

func (r *reader) queue(c *Compiled, l *Limit, n *node) {
	if l.Kind != bucket.TokenBucket && l.Kind != bucket.SharedBucket {
		r.faultFound(n, "it beside something else than a bucket", "it left out: only where a rate refills does a call have a turn to wait for")
		return
	}
	l.Queue = &Queue{}
	if n.kind != kindObject {
		l.Queue.Any = r.duration(n, 300_000, 1, maxQueue)
		return
	}
	key, ok := c.key(className)
	if !ok {
		r.faultFound(n, "classes, and no identity named class", "one time for all calls, such as 300s, or that identity")
		return
	}
	l.Queue.Class = key.Identity
	known, want := c.values(key)
	for _, kid := range n.kids {
		fits := known == nil && kid.key != ""
		for _, v := range known {
			fits = fits || v.spelling == kid.key
		}
		if !fits {
			r.faultFound(kid, "a class that no call has", want)
		}
		if fits && !l.meets(key, kid.key) {
			r.faultFound(kid, "a class that the limit is not for", "it left out, or in for.class too")
		}
		l.Queue.Classes = append(l.Queue.Classes, Wait{kid.key, r.duration(kid, 300_000, 1, maxQueue)})
	}
	if len(n.kids) == 0 {
		r.faultFound(n, "no class", "a time for at least one, or it left out")
	}
}

func (r *reader) park(c *Compiled, n *node) {
	c.Park = Park{Calls: 1000, Bytes: 64 << 20}
	if n != nil && r.object(n, "calls bytes", "") {
		c.Park.Calls = int(r.count(n.get("calls"), 1000, 1, 100_000))
		c.Park.Bytes = r.size(n.get("bytes"), 64<<20, 1<<10, 1<<30)
	}
}
