package core

import (
	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
)

// lease is a granted reservation in one shard whose exchange still runs.
type lease struct {
	id           string
	layout       script.Layout
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
	byID        map[leaseID]*lease
	first, last *lease
}

// leaseID names a lease: a reservation has the same id in each shard that it touches.
type leaseID struct{ id, tag string }

func leaseOf(j *Job) leaseID { return leaseID{j.ID, j.layout.Tag} }

func (l *lease) name() leaseID { return leaseID{l.id, l.layout.Tag} }

func (l *leases) put(j *Job, at bucket.Millis) {
	if l.byID == nil {
		l.byID = map[leaseID]*lease{}
	}
	one := &lease{id: j.ID, layout: j.layout, cluster: j.Cluster, items: j.Items, at: at}
	l.byID[leaseOf(j)] = one
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
func (l *leases) drop(id leaseID) {
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

// shift makes all due so much later, or earlier.
func (l *leases) shift(by bucket.Millis) {
	for one := l.first; one != nil; one = one.next {
		one.at += by
	}
}
