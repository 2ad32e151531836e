package core

import "github.com/emmer-proxy/emmer/bucket"

// lease is a granted reservation whose exchange still runs.
type lease struct {
	id      string
	cluster string
	items   []bucket.Item
	at      bucket.Millis // when to renew
	over    bool
}

// leases is a queue by time of renewal: every lease is as long as the others, so one that is
// granted or renewed later is due later.
type leases struct {
	byID  map[string]*lease
	queue []*lease
}

func (l *leases) put(j *Job, at bucket.Millis) {
	if l.byID == nil {
		l.byID = map[string]*lease{}
	}
	one := &lease{id: j.ID, cluster: j.Cluster, items: j.Items, at: at}
	l.byID[j.ID] = one
	l.queue = append(l.queue, one)
}

// drop forgets a lease. Its place in the queue is left, empty, until its turn comes.
func (l *leases) drop(id string) {
	if one := l.byID[id]; one != nil {
		one.over, one.items = true, nil
		delete(l.byID, id)
	}
}

// due gives the next lease to renew and puts it behind the others, for again ms later.
func (l *leases) due(now, again bucket.Millis) *lease {
	for len(l.queue) > 0 {
		one := l.queue[0]
		if !one.over && one.at > now {
			return nil
		}
		l.queue[0] = nil
		l.queue = l.queue[1:]
		if one.over {
			continue
		}
		next := *one
		next.at = now + again
		l.byID[one.id] = &next
		l.queue = append(l.queue, &next)
		return &next
	}
	return nil
}

// again asks for a renewal sooner than its turn, after one that failed. The queue is searched: it
// happens only while the store is away.
func (l *leases) again(one *lease, at bucket.Millis) {
	if one.over {
		return
	}
	for i, q := range l.queue {
		if q == one {
			l.queue = append(l.queue[:i], l.queue[i+1:]...)
			break
		}
	}
	one.at = at
	i := len(l.queue)
	for i > 0 && l.queue[i-1].at > at {
		i--
	}
	l.queue = append(l.queue, nil)
	copy(l.queue[i+1:], l.queue[i:])
	l.queue[i] = one
}
