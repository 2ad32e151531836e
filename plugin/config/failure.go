package config

// Failure is what happens to calls while the store can't be asked.
type Failure uint8

const (
	FailClosed Failure = iota // refuse with 503
	FailOpen                  // let through, book afterwards
	FailLocal                 // each worker lets through its own share, and books it afterwards
)

const (
	failureWords = "closed open local"
	// usualShare is the part of a limit, in percent, that a worker may pass under failure local.
	usualShare = 10
)

// failure reads what holds for limits that don't say.
func (r *reader) failure(c *Compiled, n *node) {
	c.LocalShare = usualShare
	if n != nil && r.object(n, "mode local_share", "") {
		c.Failure = Failure(r.word(n.get("mode"), failureWords, ""))
		if v := n.get("local_share"); v != nil {
			c.LocalShare = r.localShare(v)
		}
	}
}

// ownFailure reads what a limit says for itself: a word, or an object.
func (r *reader) ownFailure(c *Compiled, l *Limit, n *node) {
	l.Failure, l.Local = c.Failure, c.LocalShare
	if n != nil {
		mode, share := n, (*node)(nil)
		if n.kind == kindObject {
			if !r.object(n, "mode local_share", "") {
				return
			}
			mode, share = n.get("mode"), n.get("local_share")
		}
		if mode != nil {
			l.Failure = Failure(r.word(mode, failureWords, ""))
		}
		if share != nil {
			l.Local = r.localShare(share)
			if l.Failure != FailLocal {
				r.faultFound(share, "it beside another mode than local", "it left out, or mode: local")
			}
		}
	}
	if l.Failure != FailLocal {
		l.Local = 0
	}
}

func (r *reader) localShare(n *node) int {
	p, ok := numbered(n.text, "%")
	if n.kind != kindString || !ok || p < 1 || p > 100 {
		r.fault(n, shareShape)
		return usualShare
	}
	return int(p)
}
