package core

import "github.com/emmer-proxy/emmer/bucket"

// lease is a granted reservation whose exchange still runs.
type lease struct {
	id           string
	cluster      string
	items        []bucket.Item
	at           bucket.Millis // when to renew
	over         bool
	before, next *lease
}

// leases is a list by time of renewal: every lease is as long as the others, so one that is
// granted or renewed later is due later. It is linked, so that an exchange that ends soon, as most
// do, leaves nothing behind.
type leases struct {
	byID        map[string]*lease
	first, last *lease
}

func (l *leases) put(j *Job, at bucket.Millis) {
	if l.byID == nil {
		l.byID = map[string]*lease{}
	}
	one := &lease{id: j.ID, cluster: j.Cluster, items: j.Items, at: at}
	l.byID[j.ID] = one
	l.link(one)
}

// link puts a lease behind all that are due before it or with it.
func (l *leases) link(one *lease) {
	before := l.last
	for before != nil && before.at > one.at {
		before = before.before
	}
	one.before = before
	if before == nil {
		one.next, l.first = l.first, one
	} else {
		one.next, before.next = before.next, one
	}
	if one.next == nil {
		l.last = one
	} else {
		one.next.before = one
	}
}

func (l *leases) unlink(one *lease) {
	if one.before == nil {
		l.first = one.next
	} else {
		one.before.next = one.next
	}
	if one.next == nil {
		l.last = one.before
	} else {
		one.next.before = one.before
	}
	one.before, one.next = nil, nil
}

// drop forgets a lease.
func (l *leases) drop(id string) {
	if one := l.byID[id]; one != nil {
		one.over, one.items = true, nil
		delete(l.byID, id)
		l.unlink(one)
	}
}

// due gives the next lease to renew and puts it behind the others, for again ms later.
func (l *leases) due(now, again bucket.Millis) *lease {
	one := l.first
	if one == nil || one.at > now {
		return nil
	}
	l.move(one, now+again)
	return one
}

// again asks for a renewal sooner than its turn, after one that failed.
func (l *leases) again(one *lease, at bucket.Millis) {
	if !one.over {
		l.move(one, at)
	}
}

func (l *leases) move(one *lease, at bucket.Millis) {
	l.unlink(one)
	one.at = at
	l.link(one)
}
