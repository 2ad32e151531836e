package core

import (
	"strconv"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/dialect"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

func (s *Stream) onResponseHeaders(e *Event, fx *effects) {
	if e.Ungated {
		fx.count("emmer.mismatch")
		fx.log("a provider was reached past emmer.gate: heads of refused calls get there too; list emmer.gate behind emmer in every chain, or set hold.mode to flag")
	}
	switch s.state {
	case Reading, Deciding, Parked:
		// Another filter or the host itself answered before the decision, or before the call's turn.
		if s.state == Parked {
			fx.count("emmer.queue_cut")
			s.cancel(e.Now, fx)
			s.leave(e.Now, fx)
		}
		s.state = Preempted
		s.record.decision = "preempted"
		return
	case Forwarded:
	default:
		return
	}
	s.state = Responding
	s.record.status = e.Response.Status
	s.output = s.plan.NewOutput()
	s.meter = dialect.NewMeter(s.dialect, e.Response, s.output)
	if s.leased {
		for _, h := range s.plan.Headers(s.reply) {
			fx.add(Effect{Kind: SetResponseHeader, Name: h[0], Value: h[1]})
		}
	}
	fx.add(Effect{Kind: SetResponseHeader, Name: latencyHeader, Value: strconv.FormatInt(int64(s.waited), 10)})
	if s.record.decision != plan.Granted || !s.leased {
		fx.add(Effect{Kind: SetResponseHeader, Name: "x-emmer-decision", Value: s.record.decision})
	}
	if s.plan.Asks && !e.End {
		s.filterUsage(e.Response, fx)
	}
	if s.holdsAnswer(e, fx) {
		s.atGate = e.Gated
		s.waits = &heldAnswer{n: s.n, at: e.Now, until: e.Now + s.w.config.Answer.HoldFor}
		fx.tell(Event{Kind: AnswerHeld, Now: e.Now, Held: s.waits})
		fx.hold()
	}
	if e.End {
		// HEAD, 204 and 304 have no body callback.
		s.finish(e.Now, true, fx)
	}
}

// filterUsage sees to it that a stream which was made to report its usage reports it to us alone.
// Policy: an error passes as it is, and so does an answer of a stated length, unless it is labelled as a
// stream: the length is then left out. Labels lie, but no stream knows its length. A stream in a
// coding, which we did not ask for, passes too: the client sees one frame more than it wanted.
func (s *Stream) filterUsage(h dialect.ResponseHead, fx *effects) {
	stream := dialect.EventStream(h.ContentType)
	if h.Status < 200 || h.Status > 299 || h.HasLength && !stream {
		return
	}
	if coding, ok := dialect.Coding(h.ContentEncoding); !ok || coding != 0 {
		fx.count("emmer.usage_left")
		return
	}
	s.filter = dialect.NewUsageFilter()
	if h.HasLength {
		fx.add(Effect{Kind: RemoveResponseHeader, Name: "content-length"})
	}
}

// editResponse takes the frame that is not the caller's out of a piece of the answer.
func (s *Stream) editResponse(e *Event, fx *effects) {
	removed := s.filter.Removed()
	out := s.filter.Write(e.Body)
	if e.End {
		out = append(out[:len(out):len(out)], s.filter.Close()...)
	}
	if s.filter.Removed() > removed {
		fx.count("emmer.usage_removed")
	}
	if len(out) != len(e.Body) || len(out) > 0 && &out[0] != &e.Body[0] {
		fx.add(Effect{Kind: EditResponse, Body: out})
	}
}

// loseHeld tells of the beginning of a frame that was held when the answer ended in trailers, where a
// body can't be written to any more (Envoy 1.40). Without its end no client takes it for an event.
func (s *Stream) loseHeld(fx *effects) {
	if s.filter != nil && len(s.filter.Close()) > 0 {
		fx.count("emmer.usage_tail_lost")
	}
	s.filter = nil
}

func (s *Stream) onResponseBody(e *Event, fx *effects) {
	if e.AtGate != s.atGate || s.state != Responding {
		s.keepBehind(e, fx)
		return
	}
	if s.filter != nil {
		s.editResponse(e, fx)
	}
	if len(e.Body) > 0 {
		s.meter.Write(e.Body)
	}
	if e.End {
		s.finish(e.Now, true, fx)
	}
	if s.waits != nil {
		s.keepOrLetGo(e, fx)
	}
}

func (s *Stream) onResponseTrailers(e *Event, fx *effects) {
	if e.AtGate != s.atGate || s.state != Responding {
		s.keepBehind(e, fx)
		return
	}
	s.loseHeld(fx)
	s.finish(e.Now, true, fx)
	if s.waits != nil {
		s.keepOrLetGo(e, fx)
	}
}

// UsageHeaders are the headers of the answer whose values Response.Usage is to have.
func (s *Stream) UsageHeaders() []string {
	if d, ok := s.dialect.(dialect.UsageHeaders); ok {
		return d.UsageHeaders()
	}
	return nil
}

// AtGate says that the gate's half is to read the answer.
func (s *Stream) AtGate() bool { return s.atGate }

// Metering says whether response bytes are still wanted of this half.
func (s *Stream) Metering(atGate bool) bool {
	return s.state == Responding && atGate == s.atGate && (s.filter != nil || !s.meter.Opaque())
}

// finish ends the metering of an answer. whole: the provider ended it, not an abort.
func (s *Stream) finish(now bucket.Millis, whole bool, fx *effects) {
	s.meter.Close()
	s.settle(now, whole, fx)
	s.state = Answered
}

func (s *Stream) onDone(e *Event, fx *effects) {
	switch s.state {
	case Deciding, Preempted:
		s.cancel(e.Now, fx)
		if s.state == Deciding {
			s.record.decision = "aborted"
			fx.count("emmer.aborted_undecided")
		}
	case Parked:
		// Its place is free again at once: one settlement of zeros.
		s.cancel(e.Now, fx)
		s.leave(e.Now, fx)
		s.record.decision = "aborted"
		fx.count("emmer.queue_left")
	case Reading:
		s.record.decision = "aborted"
	case Forwarded:
		// The client left before the answer began. The provider had the prompt.
		s.settle(e.Now, false, fx)
	case Responding:
		s.finish(e.Now, false, fx)
	}
	if s.waits != nil {
		s.dropWait(fx)
	}
	if s.state != Passing && s.state != Fresh {
		fx.add(Effect{Kind: SetState, Name: "emmer", Body: s.record.json(s)})
	}
	s.state = Closed
}

// cancel gives back a reservation whose call never went upstream. It is also right where the
// reserve's outcome is unknown: the id is then closed for a reserve that arrives later.
func (s *Stream) cancel(now bucket.Millis, fx *effects) {
	if s.settled || !s.held() {
		return
	}
	s.settled = true
	s.record.settled = "cancelled"
	s.settleAll(now, s.plan.Nothing(), plan.Lesson{}, false, bucket.Answer{}, fx)
}

// settle books what the call truly used, once.
func (s *Stream) settle(now bucket.Millis, whole bool, fx *effects) {
	if s.settled {
		return
	}
	s.settled = true
	usage, how := s.truth(whole, fx)
	s.record.usage, s.record.settled = usage, how
	if how == "estimate" {
		fx.count("emmer.estimated")
		if s.meter != nil && s.meter.Opaque() {
			fx.count("emmer.opaque")
		}
	}
	if !s.held() {
		return // no limit applied
	}
	items := s.plan.Actual(usage)
	s.record.actual = items
	var lesson plan.Lesson
	learns := false
	if how == "usage" {
		lesson, learns = s.plan.Lesson(usage)
	}
	answer := bucket.Answer{}
	if s.ended(whole) {
		answer = s.plan.Answer(usage)
	}
	s.settleAll(now, items, lesson, learns, answer, fx)
}

// ended says that a provider ended its answer by itself, and that its length is known.
func (s *Stream) ended(whole bool) bool {
	return s.meter != nil && (whole || s.meter.Finished()) && !s.meter.Failed() && !s.meter.Opaque()
}

// truth is the usage to book: the provider's figure if it gave one, nothing for an error without
// output, else the estimate of the prompt plus what was seen of the answer.
func (s *Stream) truth(whole bool, fx *effects) (dialect.Usage, string) {
	if s.meter == nil {
		return s.plan.Estimate(0), "estimate"
	}
	seen := s.output.Tokens()
	if s.meter.Opaque() {
		// Policy for an answer that, whole or from some point on, can't be read (in a coding that we
		// did not ask for, or broken): the worst case that was reserved, or what was seen if that is more.
		seen = max(seen, s.plan.Output)
	}
	u, trust := s.meter.Usage()
	if trust != dialect.NoUsage && s.plan.Absurd(u) {
		// Policy for figures that can't be true: as if there were none.
		fx.count("emmer.absurd_usage")
		u, trust = dialect.Usage{}, dialect.NoUsage
	}
	pictures := u.Images
	switch u = s.plan.Asked(u); trust {
	case dialect.InputUsage:
		u.Output = max(u.Output, seen)
		return u, "estimate"
	case dialect.WholeUsage, dialect.OutputUsage:
		if trust == dialect.OutputUsage {
			// Policy for a prompt that no figure is given for: its estimate.
			u.Input = s.plan.Input
		}
		if !whole && !s.meter.Finished() && seen > u.Output {
			// A running figure of a stream that was cut: more was delivered than it says.
			u.Output = seen
			return u, "estimate"
		}
		if trust == dialect.OutputUsage {
			return u, "estimate"
		}
		return u, "usage"
	}
	switch {
	case s.meter.Failed() && !s.meter.Produced():
		return dialect.Usage{}, "refund"
	case s.plan.Facts.Background, s.plan.Facts.Images > 0:
		// Told by another call, or pictures, which don't show what they took: the worst case that was
		// reserved.
		seen = s.plan.Output
	}
	u = s.plan.Estimate(seen)
	if pictures > 0 {
		u.Images = pictures
	}
	return u, "estimate"
}
