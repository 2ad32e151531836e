package core

import (
	"slices"
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
	denied  refusals    // what the store refused lately
	shares  shares      // what passes while the store is away
	memory  plan.Memory // a stream that plans may keep work in it; only Step lets it learn
	outbox  outbox
	leases  leases
	parked  parkTable
	answers heldTable
	calls   map[uint64]call // in flight, by tag
	next    uint64          // tag of the next call
	drain   bool
	now     bucket.Millis                  // of the present step
	ticked  bucket.Millis                  // when the last tick was
	doubt   bucket.Millis                  // when to look for calls that a fault kept from being sent; 0 = no fault
	said    [callout.Classes]bucket.Millis // when the log last heard of a store fault of a class
	sent    bucket.Millis                  // when the outbox last sent something
	looked  bucket.Millis                  // when the shared data was last read
	spare   [][]Effect                     // to be used again; as many as steps were ever nested
}

// call is a call of the Worker in flight: settlements, or one renewal, or a poll.
type call struct {
	jobs  []*Job
	lease *lease
	poll  []string // the homes of the flags that were asked for
	sent  []script.Call
	full  bool
	at    bucket.Millis
}

const (
	// batchMost is how many settlements share a call: a callout costs Envoy some 260 us, a script 60.
	batchMost = 32
	// batchFull is the same where each may carry the script's whole text, some 25 KB, to its shard.
	batchFull = 8
	// quiet is how long nothing must have been sent for a settlement to go out at once; in a crowd
	// it waits for the next tick and for company.
	quiet bucket.Millis = 50
	// lookEvery is how often the shared data is read.
	lookEvery bucket.Millis = 50
)

// NewWorker makes the worker of one plugin in one VM. tag must differ from that of every other
// worker that ever used the same store: 16 random characters of [0-9a-z].
func NewWorker(c *config.Compiled, tag string) *Worker {
	w := &Worker{
		config: c,
		tag:    tag,
		layout: script.Layout{Namespace: c.Store.Namespace, WithOverrides: true}.Of(""),
		store:  callout.Upstash{Authority: c.Store.Cluster, Token: c.Store.Token},
		parked: parkTable{most: c.Park},
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
	return &Stream{w: w, n: n, id: w.tag + "-" + strconv.FormatUint(n, 36)}
}

// WantsShared says whether a Tick now should bring the shared data.
func (w *Worker) WantsShared(now bucket.Millis) bool {
	return now-w.looked >= lookEvery || now < w.looked
}

// SharedName is the name of the shared data that this worker's kill flags are kept under.
func (w *Worker) SharedName() string { return "emmer.kills." + w.config.Store.Namespace }

// Recycle gives back what a Step of this worker or of one of its streams returned, once it was
// applied; the next Step may use its memory. Nothing breaks where it is not called.
func (w *Worker) Recycle(fx []Effect) {
	if cap(fx) > 0 && cap(fx) <= 64 {
		clear(fx)
		w.spare = append(w.spare, fx[:0])
	}
}

func (w *Worker) lend() effects {
	n := len(w.spare)
	if n == 0 {
		return nil
	}
	fx := w.spare[n-1]
	w.spare = w.spare[:n-1]
	return fx
}

// Step takes one event and says what is to be done.
func (w *Worker) Step(event Event) []Effect {
	fx := w.lend()
	e := &event
	w.now = e.Now
	switch e.Kind {
	case Settle:
		w.leases.drop(leaseOf(e.Job))
		if e.Job.learns {
			w.memory.Learn(e.Job.lesson)
		}
		if e.Job.drawn != nil {
			w.shares.settle(e.Job.drawn, e.Job.Items)
		}
		if !w.outbox.put(e.Job, e.Now) {
			// Policy of a full outbox: the reservation ends by its lease, as `lost` says.
			fx.count("emmer.outbox_dropped")
		} else if w.sent == 0 || e.Now-w.sent >= quiet || e.Now < w.sent {
			w.sent = e.Now
			fx.add(Effect{Kind: Wake})
		}
	case LeaseTaken:
		w.leases.put(e.Job, e.Now+e.Job.wait+w.config.Lease.For/2)
	case Drawn, StoreAway, StoreBack:
		w.onLocal(e)
	case StoreRefused, RefusalAsked, RefusalOver:
		w.onRefusal(e, &fx)
	case Queued:
		w.parked.put(e.Place, e.Now)
	case AnswerHeld:
		w.answers.list = append(w.answers.list, e.Held)
	case AnswerLet:
		w.answers.drop(e.Held)
	case LeftQueue:
		w.parked.drop(e.Place)
		w.drained(&fx)
	case OrgSeen:
		w.kills.orgs.see(e.Home, e.Now, 0)
	case KillSeen:
		w.kills.set(e.Flag)
	case Flush:
		w.send(e.Now, &fx)
	case Tick:
		w.setBack(w.ticked - e.Now)
		w.ticked = e.Now
		w.denied.expire(e.Now)
		w.shares.sweep(e.Now)
		w.presumeLost(&fx)
		w.renew(e.Now, &fx)
		w.send(e.Now, &fx)
		if e.OK {
			w.looked = e.Now
			w.pollKills(e, &fx)
		}
		w.parked.tick(e.Now, &w.kills, w.drain, &fx)
		w.answers.tick(e.Now, w.drain, &fx)
	case StoreFault:
		w.complain(e.Class, e.Text, e.Cluster, e.Now, &fx)
	case SharedStored:
		if e.OK {
			w.askKills(&fx)
		}
	case StoreReply, StoreUnsent:
		w.onStore(e, &fx)
	case Recovered:
		w.doubt = e.Now + 2*w.callTimeout()
	case Shutdown:
		w.drain = true
		w.parked.tick(e.Now, &w.kills, true, &fx)
		w.answers.tick(e.Now, true, &fx)
		w.send(e.Now, &fx)
		w.drained(&fx)
	}
	return fx
}

// setBack keeps what is due in so many ms due in as many, after somebody set the clock back by by: else
// leases would end, and settlements grow old, until the clock is where it was.
func (w *Worker) setBack(by bucket.Millis) {
	if by <= 0 {
		return
	}
	w.leases.shift(-by)
	w.outbox.shift(-by)
	if w.doubt != 0 {
		w.doubt = max(1, w.doubt-by)
	}
	for tag, c := range w.calls {
		c.at -= by
		w.calls[tag] = c
	}
}

func (w *Worker) drained(fx *effects) {
	if w.drain && w.outbox.empty() && len(w.parked.places) == 0 {
		fx.add(Effect{Kind: Drained})
	}
}

// callTimeout bounds a call that nobody waits for: longer than a decision's, so that a slow store
// is not asked again and again.
func (w *Worker) callTimeout() bucket.Millis { return max(1000, w.config.Store.Timeout) }

func (w *Worker) call(c call, cluster string, r callout.Request, fx *effects) {
	tag := w.next
	w.next++
	c.at = w.now
	w.calls[tag] = c
	if cluster == "" {
		cluster = w.config.Store.Cluster
	}
	fx.call(StoreCall{Tag: tag, Cluster: cluster, Request: r, Timeout: w.callTimeout()})
}

// send takes from the outbox what is due, in as few calls as it can.
func (w *Worker) send(now bucket.Millis, fx *effects) {
	for {
		c := call{}
		var first *Job
		for len(c.jobs) < batchMost {
			j := w.outbox.due(now, first)
			if j == nil {
				break
			}
			one, err := j.layout.SettleAt(j.keys, bucket.SettleRequest{
				ID: j.ID, Deadline: j.Deadline, Lease: w.config.Lease.For, Keep: w.config.Lease.Keep, Cell: w.config.Lease.Cell,
				Answer: j.answer, Items: plan.Fresh(w.config, j.Items, now),
			}, "s."+j.ID)
			if err != nil {
				w.outbox.done()
				fx.count("emmer.settle_failed")
				fx.log("settle " + j.ID + ": " + err.Error())
				continue
			}
			if first == nil {
				first = j
			}
			c.jobs, c.sent = append(c.jobs, j), append(c.sent, one)
		}
		if len(c.jobs) == 0 {
			return
		}
		w.sent = now
		w.settle(c, fx)
	}
}

func (w *Worker) settle(c call, fx *effects) {
	r := w.store.Script(c.sent[0], c.full)
	if len(c.sent) > 1 {
		r = w.store.Pipeline(c.sent, c.full)
	}
	w.call(c, c.jobs[0].Cluster, r, fx)
}

// presumeLost takes calls that got no answer in twice their time for calls that were never sent: a
// fault loses the effects of its step. The host answers every other call.
func (w *Worker) presumeLost(fx *effects) {
	if w.doubt == 0 || w.now < w.doubt {
		return
	}
	since := w.doubt - 2*w.callTimeout()
	w.doubt = 0
	var tags []uint64
	w.outbox.flight = 0
	for tag, c := range w.calls {
		w.outbox.flight += len(c.jobs)
		if c.at <= since {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	for _, tag := range tags {
		w.onStore(&Event{Kind: StoreUnsent, Now: w.now, Tag: tag}, fx)
	}
}

// renew keeps the reservations of long exchanges alive.
func (w *Worker) renew(now bucket.Millis, fx *effects) {
	for {
		l := w.leases.due(now, w.config.Lease.For/2)
		if l == nil {
			return
		}
		c, err := l.layout.Renew(bucket.RenewRequest{
			ID: l.id, Lease: w.config.Lease.For, Keep: w.config.Lease.Keep, Cell: w.config.Lease.Cell,
			Items: plan.Fresh(w.config, l.items, now),
		}, "n."+l.id)
		if err != nil {
			fx.log("renew " + l.id + ": " + err.Error())
			w.leases.drop(l.name())
			continue
		}
		w.call(call{lease: l, sent: []script.Call{c}}, l.cluster, w.store.Script(c, false), fx)
	}
}

func (w *Worker) onStore(e *Event, fx *effects) {
	c, ok := w.calls[e.Tag]
	if !ok {
		return
	}
	delete(w.calls, e.Tag)
	unsent := callout.Reply{Class: callout.Unsent, Error: "the host did not send the call"}
	if len(c.jobs) > 0 {
		replies := []callout.Reply{unsent}
		switch {
		case e.Kind == StoreReply && len(c.jobs) == 1:
			replies[0] = callout.Read(e.Status, e.Body)
		case e.Kind == StoreReply:
			replies = callout.ReadPipeline(e.Status, e.Body, len(c.jobs))
		}
		w.onSettled(c, replies, e.Now, fx)
		w.drained(fx)
		return
	}
	if len(c.poll) > 1 && e.Kind == StoreReply {
		w.onKills(c.poll, callout.ReadPipeline(e.Status, e.Body, len(c.poll)), e.Now, fx)
		return
	}
	r := unsent
	if e.Kind == StoreReply {
		r = callout.Read(e.Status, e.Body)
	}
	switch {
	case len(c.poll) > 0:
		w.onKills(c.poll, []callout.Reply{r}, e.Now, fx)
	case r.Class == callout.NoScript && !c.full:
		c.full = true
		w.call(c, c.lease.cluster, w.store.Script(c.sent[0], true), fx)
	default:
		w.onRenewed(c, r, e.Now, fx)
	}
}

// onSettled books the answers to settlements. replies has one for each job, or one for all.
func (w *Worker) onSettled(c call, replies []callout.Reply, now bucket.Millis, fx *effects) {
	again := call{full: true}
	for i, j := range c.jobs {
		r := replies[min(i, len(replies)-1)]
		if r.Class == callout.NoScript && !c.full {
			again.jobs, again.sent = append(again.jobs, j), append(again.sent, c.sent[i])
			continue
		}
		var got bucket.SettleReply
		var err error
		if r.Class == callout.OK {
			got, err = script.DecodeSettle(c.sent[i], r.Values)
		}
		if r.Class == callout.OK && err == nil {
			w.outbox.done()
			fx.count(settledCounter(got.Outcome))
			if j.answer.Tokens > 0 && got.Outcome != bucket.SettledDuplicate && got.Outcome != bucket.SettledTooOld {
				w.memory.Told(j.answer.Of, got.Learned, now)
			}
			w.gaveBack(j, now)
			if w.shares.any() {
				w.shares.answered(shardID(j.layout.Tag), now)
			}
			for _, i := range got.Tripped {
				w.burnt(j.Items[i], w.home(j.layout), fx)
			}
			continue
		}
		// Whether it was booked is unknown; the id makes a repetition harmless.
		fx.count("emmer.settle_retry")
		w.shares.fault(shardID(j.layout.Tag))
		w.complain(r.Class, faultText(r, err), j.Cluster, now, fx)
		if !w.outbox.retry(j, now, w.config.Lease.For+w.config.Lease.Keep) {
			// Policy: past the lease and its keep the store would refuse it (too old).
			fx.count("emmer.settle_failed")
			fx.log("settle " + j.ID + ": given up, the store did not answer in time")
		}
	}
	for n := len(again.jobs); n > 0; n = len(again.jobs) {
		n = min(n, batchFull)
		w.settle(call{full: true, jobs: again.jobs[:n:n], sent: again.sent[:n:n]}, fx)
		again.jobs, again.sent = again.jobs[n:], again.sent[n:]
	}
	if w.drain {
		w.send(now, fx)
	}
}

// burnt takes in that a settlement has raised a kill flag. The other workers hear of it by the poll.
func (w *Worker) burnt(it bucket.Item, home string, fx *effects) {
	name, value := plan.BurnFlag(it)
	field := script.FieldOf(name)
	if f, ok := parseFlag(home, field, value); ok {
		w.kills.set(f)
	}
	fx.count("emmer.burn_tripped")
	fx.log("calls for " + field + " are stopped: " + it.Limit.Rule.Reason)
}

func settledCounter(o bucket.SettleOutcome) string {
	switch o {
	case bucket.SettledDuplicate:
		return "emmer.settled_duplicate"
	case bucket.SettledLate:
		return "emmer.settled_late"
	case bucket.SettledUnknown:
		return "emmer.settled_unknown"
	case bucket.SettledTooOld:
		return "emmer.settle_failed"
	}
	return "emmer.settled"
}

func (w *Worker) onRenewed(c call, r callout.Reply, now bucket.Millis, fx *effects) {
	var got bucket.RenewReply
	var err error
	if r.Class == callout.OK {
		got, err = script.DecodeRenew(c.sent[0], r.Values)
	}
	if r.Class != callout.OK || err != nil {
		fx.count("emmer.renew_retry")
		w.complain(r.Class, faultText(r, err), c.lease.cluster, now, fx)
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
		w.leases.drop(c.lease.name())
	}
}

func faultText(r callout.Reply, err error) string {
	if err != nil {
		return err.Error()
	}
	return r.Error
}

// complain tells the operator of a store that can't be used, at most every ten seconds for each class
// of fault: an outage must not hide a wrong setting. The counters say how often.
func (w *Worker) complain(class callout.Class, text, cluster string, now bucket.Millis, fx *effects) {
	said := &w.said[class]
	if *said != 0 && now >= *said && now-*said < 10_000 {
		return
	}
	*said = now
	if cluster == "" {
		cluster = w.config.Store.Cluster
	}
	fx.log("store: " + text + " (cluster " + cluster + ")")
}
