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
	if e.End {
		// HEAD, 204 and 304 have no body callback.
		s.finish(e.Now, true, fx)
	}
}

func (s *Stream) onResponseBody(e *Event, fx *effects) {
	if s.state != Responding {
		return
	}
	if len(e.Body) > 0 {
		s.meter.Write(e.Body)
	}
	if e.End {
		s.finish(e.Now, true, fx)
	}
}

// UsageHeaders are the headers of the answer whose values Response.Usage is to have.
func (s *Stream) UsageHeaders() []string {
	if d, ok := s.dialect.(dialect.UsageHeaders); ok {
		return d.UsageHeaders()
	}
	return nil
}

// Metering says whether response bytes are still wanted.
func (s *Stream) Metering() bool {
	return s.state == Responding && !s.meter.Opaque()
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
	s.settleAll(now, s.plan.Nothing(), plan.Lesson{}, false, fx)
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
	s.settleAll(now, items, lesson, learns, fx)
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
