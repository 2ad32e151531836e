package core

import (
	"strconv"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
	"github.com/emmer-proxy/emmer/plugin/callout"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

// Worker is what outlives exchanges in one VM. Streams read its tables; only its Step writes them.
type Worker struct {
	config  *config.Compiled
	tag     string // names this worker in ids; random, from the shell
	layout  script.Layout
	store   callout.Upstash
	kills   killTable
	periods plan.Periods // remembers; a stream that plans may add to it, and nothing depends on it
	outbox  outbox
	leases  leases
	calls   map[uint64]call // in flight, by tag
	next    uint64          // tag of the next call
	drain   bool
	said    bucket.Millis // when the log last heard of a store fault
}

// call is a call of the Worker in flight.
type call struct {
	job   *Job
	lease *lease
	poll  bool
	sent  script.Call
	full  bool
}

// NewWorker makes the worker of one plugin in one VM. tag must differ from that of every other
// worker that ever used the same store: 16 random characters of [0-9a-z].
func NewWorker(c *config.Compiled, tag string) *Worker {
	w := &Worker{
		config: c,
		tag:    tag,
		layout: script.Layout{Namespace: c.Store.Namespace, Tag: "g"},
		store:  callout.Upstash{Authority: c.Store.Cluster, Token: c.Store.Token},
		calls:  map[uint64]call{},
		next:   1,
	}
	if w.store.Authority == "" {
		w.store.Authority = "emmer-store"
	}
	return w
}

// NewStream makes the state of one exchange. n numbers it within this VM.
func (w *Worker) NewStream(n uint64) *Stream {
	return &Stream{w: w, id: w.tag + "-" + strconv.FormatUint(n, 36)}
}

// SharedName is the name of the shared data that this worker's kill flags are kept under.
func (w *Worker) SharedName() string { return "emmer.kills." + w.config.Store.Namespace }

// Step takes one event and says what is to be done.
func (w *Worker) Step(event Event) []Effect {
	var fx effects
	e := &event
	switch e.Kind {
	case Settle:
		w.leases.drop(e.Job.ID)
		if w.outbox.put(e.Job, e.Now) {
			fx.add(Effect{Kind: Wake})
		} else {
			// Policy of a full outbox: the reservation ends by its lease, as `lost` says.
			fx.count("emmer.outbox_dropped")
		}
	case LeaseTaken:
		w.leases.put(e.Job, e.Now+w.config.Lease.For/2)
	case KillSeen:
		w.kills.set(e.Flag)
	case Flush:
		w.send(e.Now, &fx)
	case Tick:
		w.renew(e.Now, &fx)
		w.send(e.Now, &fx)
		w.pollKills(e, &fx)
	case SharedStored:
		if e.OK {
			w.askKills(&fx)
		}
	case StoreReply, StoreUnsent:
		w.onStore(e, &fx)
	case Shutdown:
		w.drain = true
		w.send(e.Now, &fx)
		w.drained(&fx)
	}
	return fx
}

func (w *Worker) drained(fx *effects) {
	if w.drain && w.outbox.empty() {
		fx.add(Effect{Kind: Drained})
	}
}

// callTimeout bounds a call that nobody waits for: longer than a decision's, so that a slow store
// is not asked again and again.
func (w *Worker) callTimeout() bucket.Millis { return max(1000, w.config.Store.Timeout) }

func (w *Worker) call(c call, cluster string, r callout.Request, fx *effects) {
	tag := w.next
	w.next++
	w.calls[tag] = c
	if cluster == "" {
		cluster = w.config.Store.Cluster
	}
	fx.call(StoreCall{Tag: tag, Cluster: cluster, Request: r, Timeout: w.callTimeout()})
}

// send takes from the outbox what is due.
func (w *Worker) send(now bucket.Millis, fx *effects) {
	for {
		j := w.outbox.due(now)
		if j == nil {
			return
		}
		c, err := w.layout.Settle(bucket.SettleRequest{
			ID: j.ID, Deadline: j.Deadline, Lease: w.config.Lease.For, Keep: w.config.Lease.Keep, Cell: w.config.Lease.Cell,
			Items: plan.Fresh(w.config, j.Items, now),
		}, "s."+j.ID)
		if err != nil {
			w.outbox.done(j)
			fx.count("emmer.settle_failed")
			fx.log("settle " + j.ID + ": " + err.Error())
			continue
		}
		w.call(call{job: j, sent: c}, j.Cluster, w.store.Script(c, false), fx)
	}
}

// renew keeps the reservations of long exchanges alive.
func (w *Worker) renew(now bucket.Millis, fx *effects) {
	for {
		l := w.leases.due(now, w.config.Lease.For/2)
		if l == nil {
			return
		}
		c, err := w.layout.Renew(bucket.RenewRequest{
			ID: l.id, Lease: w.config.Lease.For, Keep: w.config.Lease.Keep, Cell: w.config.Lease.Cell,
			Items: plan.Fresh(w.config, l.items, now),
		}, "n."+l.id)
		if err != nil {
			fx.log("renew " + l.id + ": " + err.Error())
			w.leases.drop(l.id)
			continue
		}
		w.call(call{lease: l, sent: c}, l.cluster, w.store.Script(c, false), fx)
	}
}

func (w *Worker) onStore(e *Event, fx *effects) {
	c, ok := w.calls[e.Tag]
	if !ok {
		return
	}
	delete(w.calls, e.Tag)
	r := e.Reply
	if e.Kind == StoreUnsent {
		r = callout.Reply{Class: callout.Unsent, Error: "the host did not send the call"}
	}
	if r.Class == callout.NoScript && !c.full && !c.poll {
		c.full = true
		cluster := ""
		if c.job != nil {
			cluster = c.job.Cluster
		} else {
			cluster = c.lease.cluster
		}
		w.call(c, cluster, w.store.Script(c.sent, true), fx)
		return
	}
	switch {
	case c.poll:
		w.onKills(e.Now, r, fx)
	case c.lease != nil:
		w.onRenewed(c, r, e.Now, fx)
	default:
		w.onSettled(c, r, e.Now, fx)
	}
	w.drained(fx)
}

func (w *Worker) onSettled(c call, r callout.Reply, now bucket.Millis, fx *effects) {
	var got bucket.SettleReply
	var err error
	if r.Class == callout.OK {
		got, err = script.DecodeSettle(c.sent, r.Values)
	}
	if r.Class != callout.OK || err != nil {
		// Whether it was booked is unknown; the id makes a repetition harmless.
		fx.count("emmer.settle_retry")
		w.complain(r, now, fx)
		if !w.outbox.retry(c.job, now, w.config.Lease.For+w.config.Lease.Keep) {
			// Policy: past the lease and its keep the store would refuse it (too old).
			fx.count("emmer.settle_failed")
			fx.log("settle " + c.job.ID + ": given up, the store did not answer in time")
		}
		return
	}
	w.outbox.done(c.job)
	switch got.Outcome {
	case bucket.SettledDuplicate:
		fx.count("emmer.settled_duplicate")
	case bucket.SettledLate:
		fx.count("emmer.settled_late")
	case bucket.SettledUnknown:
		fx.count("emmer.settled_unknown")
	case bucket.SettledTooOld:
		fx.count("emmer.settle_failed")
	default:
		fx.count("emmer.settled")
	}
	w.send(now, fx)
}

func (w *Worker) onRenewed(c call, r callout.Reply, now bucket.Millis, fx *effects) {
	var got bucket.RenewReply
	var err error
	if r.Class == callout.OK {
		got, err = script.DecodeRenew(c.sent, r.Values)
	}
	if r.Class != callout.OK || err != nil {
		fx.count("emmer.renew_retry")
		w.complain(r, now, fx)
		w.leases.again(c.lease, now+w.config.Lease.For/8)
		return
	}
	switch got.Outcome {
	case bucket.Renewed:
		fx.count("emmer.renewed")
	case bucket.RenewedLate:
		fx.count("emmer.renewed_late")
	default:
		fx.count("emmer.renew_lost")
		w.leases.drop(c.lease.id)
	}
}

// complain tells the operator of a faulty store, at most every ten seconds.
func (w *Worker) complain(r callout.Reply, now bucket.Millis, fx *effects) {
	if r.Class != callout.Misconfigured || now-w.said < 10_000 {
		return
	}
	w.said = now
	fx.log("store: " + r.Error)
}
