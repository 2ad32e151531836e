package core

import (
	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

// Job is a settlement to be booked, or a granted reservation to be kept alive, in one shard.
type Job struct {
	ID       string
	Cluster  string
	Items    []bucket.Item
	Deadline bucket.Millis // of the lease, by the store's clock; 0 = unknown

	layout    script.Layout // of the shard
	drawn     *drawn        // what it took of this worker's shares, if the store was away
	cancels   bool          // nothing was used
	lesson    plan.Lesson   // what the call taught, if learns
	learns    bool
	answer    bucket.Answer // what the store is to learn
	keys      []string      // of the reserve, which the settlement names again
	since, at bucket.Millis // when it was put in, when it is due
	tries     int

	wait bucket.Millis // of a lease: until it counts
}

// outbox holds the settlements that the store has not confirmed. Its order is that of arrival,
// save for repetitions, which wait.
type outbox struct {
	ready   []*Job // first come first served
	waiting []*Job // to be repeated at .at
	flight  int
}

const (
	outboxCap    = 8192 // jobs; some 300 bytes each with two limits
	outboxFlight = 128  // under way at a time, so that a slow store is not flooded

	retryFirst bucket.Millis = 100
	retryMost  bucket.Millis = 5000
)

func (o *outbox) empty() bool { return len(o.ready)+len(o.waiting)+o.flight == 0 }

// room says whether so many jobs and one more find room.
func (o *outbox) room(more int) bool {
	return len(o.ready)+len(o.waiting)+o.flight+more < outboxCap
}

// put takes a job in. False: there is no room. In a long outage each refused call cancels what it may
// have reserved: those take half of the room at most, the rest is for what was used.
func (o *outbox) put(j *Job, now bucket.Millis) bool {
	if !o.room(0) || j.cancels && !o.room(outboxCap/2) {
		return false
	}
	j.since = now
	o.ready = append(o.ready, j)
	return true
}

// beside says whether a job may share a call with those that begin with first. What is repeated does so
// with its own shard's only: one that hangs keeps those behind it in a call from being done.
func (j *Job) beside(first *Job) bool {
	return first == nil || j.Cluster == first.Cluster && (j.tries+first.tries == 0 || j.layout == first.layout)
}

// due takes the next job to send, or nil; only one that may share a call with first, if there is one.
func (o *outbox) due(now bucket.Millis, first *Job) *Job {
	if o.flight >= outboxFlight {
		return nil
	}
	for i, j := range o.waiting {
		if j.at <= now && j.beside(first) {
			o.waiting = append(o.waiting[:i], o.waiting[i+1:]...)
			o.flight++
			return j
		}
	}
	if len(o.ready) == 0 || !o.ready[0].beside(first) {
		return nil
	}
	j := o.ready[0]
	o.ready[0] = nil
	o.ready = o.ready[1:]
	o.flight++
	return j
}

// done ends a job that was under way.
func (o *outbox) done() { o.flight-- }

// retry puts a job in flight back to be sent later, with doubling pauses. False: it is older than
// most and was given up.
func (o *outbox) retry(j *Job, now, most bucket.Millis) bool {
	o.flight--
	if now-j.since > most {
		return false
	}
	pause := min(retryMost, retryFirst<<min(j.tries, 6))
	j.tries++
	j.at = now + pause
	o.waiting = append(o.waiting, j)
	return true
}

// shift makes all due so much later, or earlier, and as much younger or older.
func (o *outbox) shift(by bucket.Millis) {
	for _, list := range [...][]*Job{o.ready, o.waiting} {
		for _, j := range list {
			j.since, j.at = j.since+by, j.at+by
		}
	}
}
