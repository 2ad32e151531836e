package core

import (
	"strconv"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
	"github.com/emmer-proxy/emmer/plugin/callout"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

// part is what a call takes in one shard of the store. All parts are asked at once, under the same id;
// the call is decided when each has answered, or has failed to.
type part struct {
	*plan.Part
	layout script.Layout
	call   script.Call
	state  partState
	full   bool // the script's whole text was sent
	less   bool // it was asked again, for less
	leased bool // the Worker was told of it while the call waited for its turn
	reply  bucket.ReserveReply
	drawn  *drawn // what it takes of this worker's shares, where the store is away
}

type partState uint8

const (
	unsent  partState = iota // the store was not reached: it holds nothing of ours
	asked                    // an answer is awaited
	granted                  // the store holds what was asked for
	refused                  // it holds nothing
	unknown                  // it may hold what was asked for
	watched                  // only its flags were asked for, and none stops the call, or none was heard of
)

// held says that the store holds, or may hold, a reservation of ours.
func (p *part) held() bool {
	return !p.watches() && (p.state == asked || p.state == granted || p.state == unknown)
}

// watches says that the call takes nothing there, but kill flags may stand there that stop it.
func (p *part) watches() bool { return len(p.At) == 0 }

// broken says that the store gave no usable answer.
func (p *part) broken() bool { return p.state == unsent || p.state == unknown }

// reserve asks the store. False: nothing was asked, so that the call is decided already.
func (s *Stream) reserve(now bucket.Millis, fx *effects) bool {
	c := s.w.config
	s.askedAt, s.deadline = now, now+c.Store.Timeout
	if s.parts = s.alone[:]; len(s.plan.Parts) != 1 {
		s.parts = make([]part, len(s.plan.Parts))
	}
	s.flags = flagFields(s.plan.Kills)
	for i := range s.parts {
		p := &s.parts[i]
		p.Part, p.layout = &s.plan.Parts[i], s.w.shard(&s.plan.Parts[i])
		if p.watches() {
			s.ask(i, c.Store.Timeout, fx)
			continue
		}
		call, err := s.reserveCall(p)
		if err != nil {
			s.failed(p, callout.Reply{Class: callout.Misconfigured, Error: err.Error()}, fx)
			continue
		}
		p.call = call
		s.ask(i, c.Store.Timeout, fx)
	}
	return s.awaiting()
}

func (s *Stream) reserveCall(p *part) (script.Call, error) {
	l := &s.w.config.Lease
	return p.layout.Reserve(bucket.ReserveRequest{
		ID: s.id, Lease: l.For, Keep: l.Keep, Cell: l.Cell, Kills: s.flags, Items: p.Of(s.plan.Items),
	}, "r."+s.id)
}

// shard is where a part of a call is kept.
func (w *Worker) shard(p *plan.Part) script.Layout { return w.layout.Of(p.Org) }

func (s *Stream) ask(i int, timeout bucket.Millis, fx *effects) {
	p := &s.parts[i]
	p.state = asked
	c := StoreCall{Tag: uint64(i), Cluster: s.cluster, Timeout: timeout}
	if p.watches() {
		// A script without limits would leave a record; a look at the flags leaves nothing to settle.
		c.Request = s.w.store.Command(append([]string{"HMGET", p.layout.Ctl()}, s.flags...)...)
	} else {
		c.Request = s.w.store.Script(p.call, p.full)
	}
	fx.call(c)
}

// awaiting says that an answer of the store is awaited.
func (s *Stream) awaiting() bool {
	for i := range s.parts {
		if s.parts[i].state == asked {
			return true
		}
	}
	return false
}

// held says that the store holds, or may hold, something of ours.
func (s *Stream) held() bool {
	for i := range s.parts {
		if s.parts[i].held() {
			return true
		}
	}
	return false
}

func (s *Stream) onStore(e *Event, fx *effects) {
	if e.Tag >= uint64(len(s.parts)) || s.parts[e.Tag].state != asked {
		return
	}
	p := &s.parts[e.Tag]
	s.waited = max(0, e.Now-s.askedAt)
	reply := callout.Reply{Class: callout.Unsent, Error: "the host did not send the call to cluster " + s.cluster + ": it is unknown, has no healthy host or is full"}
	if e.Kind == StoreReply {
		reply = callout.Read(e.Status, e.Body)
	}
	if reply.Class == callout.NoScript && !p.full && s.state == Deciding {
		if left := s.deadline - e.Now; left > 0 {
			p.full = true
			fx.count("emmer.script_loaded")
			s.ask(int(e.Tag), left, fx)
			return
		}
	}
	if reply.Class == callout.NoScript {
		reply.Class = callout.Unavailable
	}
	p.state = unknown
	if reply.Class == callout.Unsent && !p.full {
		p.state = unsent // after NOSCRIPT nothing was done either, but a cancel costs little
	}
	if s.state != Deciding {
		// The exchange went on without us; give back what may have been taken.
		s.cancel(e.Now, fx)
		return
	}
	if p.watches() {
		s.look(p, reply, e.Now, fx)
	} else {
		s.take(int(e.Tag), p, reply, fx)
	}
	if !s.awaiting() {
		s.conclude(false, fx)
	}
}

// take takes in the store's answer to one part, which tag is the index of.
func (s *Stream) take(tag int, p *part, reply callout.Reply, fx *effects) {
	if reply.Class != callout.OK {
		s.failed(p, reply, fx)
		return
	}
	got, err := script.DecodeReserve(p.call, reply.Values)
	switch {
	case err != nil:
		s.failed(p, callout.Reply{Class: callout.Unavailable, Error: err.Error()}, fx)
		return
	case got.Outcome == bucket.Settled:
		s.failed(p, callout.Reply{Class: callout.Unavailable, Error: "the reservation was cancelled before it was made"}, fx)
		return
	case got.Outcome == bucket.Granted || got.Outcome == bucket.Replayed:
		p.state = granted
		s.grantedAgain(p, fx)
	case got.Outcome == bucket.NeverFits && s.askLess(tag, p, got, fx):
		return
	default:
		p.state = refused
		s.remember(p, got, fx)
	}
	p.reply = got
	s.answered(p, fx)
	if got.BadOverride > 0 {
		fx.count("emmer.bad_override")
	}
	s.tellKilled(p, fx)
}

// askLess asks once more, for what an override lets a limit give, where it was only by what was learned
// that the call could never fit: nothing was taken, so the id is as good as new. Else a figure that an override
// comes after would refuse its own kind for good.
func (s *Stream) askLess(tag int, p *part, got bucket.ReserveReply, fx *effects) bool {
	left := s.deadline - s.askedAt - s.waited
	if p.less || left <= 0 || s.state != Deciding || !s.plan.Lessen(p.Part, got.Max) {
		return false
	}
	call, err := s.reserveCall(p)
	if err != nil {
		return false
	}
	p.less, p.call = true, call
	fx.count("emmer.output_lessened")
	s.ask(tag, left, fx)
	return true
}

// look takes in the kill flags of a shard that the call takes nothing from.
func (s *Stream) look(p *part, r callout.Reply, now bucket.Millis, fx *effects) {
	p.state = watched
	if r.Class == callout.OK && len(r.Values) != len(s.flags) {
		r = callout.Reply{Class: callout.Unavailable, Error: "the store's reply has " + strconv.Itoa(len(r.Values)) + " flags, not " + strconv.Itoa(len(s.flags))}
	}
	if r.Class != callout.OK {
		// Policy, as of a poll that fails: the flags last known stay in force.
		s.failed(p, r, fx)
		return
	}
	for i, v := range r.Values {
		f, ok := parseFlag("", "", v.Text)
		if v.Text == "" || ok && f.over(now) {
			continue
		}
		// A value that is none stops calls for good, as in the scripts.
		p.state = refused
		p.reply = bucket.ReserveReply{Outcome: bucket.Killed, By: i, Reason: v.Text}
		s.tellKilled(p, fx)
		return
	}
}

// tellKilled tells the Worker of the flag that a part was refused for.
func (s *Stream) tellKilled(p *part, fx *effects) {
	by := p.reply.By
	if p.reply.Outcome != bucket.Killed || by < 0 || by >= len(s.plan.Kills) {
		return
	}
	if f, ok := parseFlag(s.w.home(p.layout), s.flags[by], p.reply.Reason); ok {
		fx.tell(Event{Kind: KillSeen, Flag: f})
	}
}

// failed tells of a part that gave no usable answer.
func (s *Stream) failed(p *part, r callout.Reply, fx *effects) {
	fx.count("emmer.store_" + r.Class.String())
	fx.tell(Event{Kind: StoreFault, Now: s.askedAt + s.waited, Cluster: s.cluster, Class: r.Class, Text: r.Error})
	if s.w.shares.any() {
		fx.tell(Event{Kind: StoreAway, Now: s.askedAt + s.waited, Drawn: &drawn{shard: shardID(p.layout.Tag)}})
	}
}

// conclude decides once no answer is awaited. inCallback: as of grant.
func (s *Stream) conclude(inCallback bool, fx *effects) {
	now := s.askedAt + s.waited
	denied, closed, open, local := false, false, false, false
	for i := range s.parts {
		p := &s.parts[i]
		denied = denied || p.state == refused
		closed = closed || p.broken() && p.Failure == config.FailClosed
		open = open || p.broken() && p.Failure != config.FailClosed
		local = local || p.broken() && p.Failure == config.FailLocal
	}
	s.reply = s.merged()
	switch {
	case denied:
		s.noQueue(fx)
		s.cancel(now, fx)
		s.refuse(s.plan.Deny(s.w.config, s.reply), fx)
	case closed:
		// Failure policy closed: nothing passes unreserved.
		s.cancel(now, fx)
		s.refuse(plan.StoreUnavailable(), fx)
	case local && !s.passLocally(now, fx):
	case s.wait() > 0:
		s.park(now, open, fx)
	default:
		s.admit(now, open, fx)
		s.grant(inCallback, fx)
	}
}

// merged is what one store would have answered.
func (s *Stream) merged() bucket.ReserveReply {
	if len(s.parts) == 1 {
		return s.parts[0].reply
	}
	replies := make([]bucket.ReserveReply, len(s.parts))
	for i := range s.parts {
		replies[i] = s.parts[i].reply
	}
	return s.plan.Merge(replies)
}

// admit keeps alive what was granted. open: a part is broken.
func (s *Stream) admit(now bucket.Millis, open bool, fx *effects) {
	s.record.decision = plan.Granted
	switch {
	case s.record.from == "local":
		// Failure policy local: as open, within this worker's share.
		s.record.decision = "passed_local"
		fx.count("emmer.passed_local")
	case open:
		// Failure policy open: the call passes and is booked under its id when the store is back.
		s.record.decision = "passed_open"
		fx.count("emmer.passed_open")
	default:
		s.leased = true
		s.note(fx)
	}
	for i := range s.parts {
		p := &s.parts[i]
		if p.state == unsent {
			p.state = unknown // its settlement is to be sent all the same
		}
		if p.state == granted && !p.leased {
			fx.tell(Event{Kind: LeaseTaken, Now: now, Job: s.job(p, p.Of(s.plan.Items))})
		}
	}
}

// job is what the Worker is to know of a part: a lease to renew, or a settlement.
func (s *Stream) job(p *part, items []bucket.Item) *Job {
	return &Job{ID: s.id, Cluster: s.cluster, Items: items, Deadline: p.reply.Deadline, layout: p.layout, keys: p.call.Keys,
		drawn: p.drawn, cancels: s.record.settled == "cancelled"}
}

// settleAll tells the Worker to book what each part that is held has truly used.
func (s *Stream) settleAll(now bucket.Millis, items []bucket.Item, lesson plan.Lesson, learns bool, answer bucket.Answer, fx *effects) {
	s.jobs = s.only[:0]
	last := len(s.parts) - 1
	for last > 0 && !s.parts[last].held() {
		last--
	}
	for i := range s.parts {
		p := &s.parts[i]
		if !p.held() {
			continue
		}
		j := s.job(p, p.Of(items))
		if i == last {
			j.answer = answer // in the org's own shard, if it has one
		}
		j.lesson, j.learns = lesson, learns
		learns = false // once a call
		s.jobs = append(s.jobs, j)
		fx.tell(Event{Kind: Settle, Now: now, Job: j})
	}
}
