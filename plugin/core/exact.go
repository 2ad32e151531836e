package core

import (
	"slices"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

// A plain answer in JSON says at its end what it cost. Its head waits for that, so that the headers
// can say it, within bounds: whatever is large, slow or something else goes on without. With one entry the
// body is kept behind its head as it comes. With two, a held head keeps the body from the first entry,
// but not from the gate, which sees it before and reads it in its stead.

// heldAnswer is an answer whose head waits.
type heldAnswer struct {
	n     uint64 // the exchange
	at    bucket.Millis
	until bucket.Millis
	bytes int           // of its body, so far
	due   bool          // it was told to go on
	again bucket.Millis // when the Worker tells it once more
}

// heldTable is what a worker holds. The bytes are the host's: answer.hold of each at the most, or what
// its own buffers take, if that is less.
type heldTable struct{ list []*heldAnswer }

// mostHeld is how many answers wait at once.
const mostHeld = 1024

func (t *heldTable) room() bool { return len(t.list) < mostHeld }

func (t *heldTable) drop(h *heldAnswer) {
	if i := slices.Index(t.list, h); i >= 0 {
		t.list = slices.Delete(t.list, i, i+1)
	}
}

// tick lets go what has waited for too long, and all if the plugin ends. A clock that was set back tells
// nothing of how long that is. What a fault keeps from reaching an exchange is said again.
func (t *heldTable) tick(now bucket.Millis, ends bool, fx *effects) {
	for _, h := range t.list {
		if now < h.until && now >= h.at && !ends || h.again > now && h.again-now <= 1000 {
			continue
		}
		h.again = now + 1000
		fx.add(Effect{Kind: Release, N: int64(h.n), Event: &Event{Kind: AnswerDue}})
	}
}

// holdsAnswer says whether the head of this answer is to wait. Policy for what can't be, though its kind
// could: it goes on without the cost, and is counted.
func (s *Stream) holdsAnswer(e *Event, fx *effects) bool {
	c, h, facts := &s.w.config.Answer, &e.Response, &s.plan.Facts
	switch {
	case !c.ExactCost || e.End || h.Status < 200 || h.Status > 299 || !dialect.JSON(h.ContentType):
		return false
	case s.plan.Priced == 0 || facts.Free || facts.Background:
		return false // there is no cost, or this answer doesn't tell it
	case facts.Stream && !h.HasLength, s.filter != nil, s.meter.Opaque():
		return false // it may be a stream under another name, or says nothing that can be read
	case s.w.config.Hold == config.HoldPair && !e.Gated:
		return false // behind a held head this entry sees nothing of the body, and no gate sees it before
	case h.HasLength && h.Length > int64(c.Hold), !s.w.answers.room(), s.w.drain:
		fx.count("emmer.answer_unheld")
		return false
	}
	return true
}

// keepOrLetGo says what becomes of a held answer of which this half has read some more.
func (s *Stream) keepOrLetGo(e *Event, fx *effects) {
	s.waits.bytes += len(e.Body)
	switch {
	case s.state == Answered:
	case s.waits.bytes > s.w.config.Answer.Hold, !s.meter.Plain(), s.meter.Opaque():
		// Policy for one that is too large, or no plain answer after all: it goes on, and may be long.
	case s.atGate:
		return
	default:
		fx.hold()
		return
	}
	switch {
	case !s.atGate:
		s.tellCost(fx) // and the head goes with this piece
	case !s.waits.due:
		// The head waits at the other half. To let it go from this callback crashed Envoy 1.40.
		s.waits.due = true
		fx.add(Effect{Kind: Release, N: int64(s.n), Event: &Event{Kind: AnswerDue}})
	}
}

// keepBehind keeps a piece of the body behind its held head, where this half is not the one that reads
// it: on a host that brings it to an entry which holds a head.
func (s *Stream) keepBehind(e *Event, fx *effects) {
	if s.waits != nil && !e.AtGate {
		fx.hold()
	}
}

// onAnswerDue lets the held head go: its cost is known by now, or has taken too long.
func (s *Stream) onAnswerDue(fx *effects) {
	if s.waits != nil {
		s.tellCost(fx)
		fx.add(Effect{Kind: ResumeAnswer})
	}
}

// tellCost ends the wait of a held head.
func (s *Stream) tellCost(fx *effects) {
	s.dropWait(fx)
	if s.state != Answered {
		fx.count("emmer.answer_unheld")
		return
	}
	reply := s.reply
	if !s.leased {
		reply = bucket.ReserveReply{} // which tells of no limit as a whole
	}
	for _, h := range s.plan.Settled(reply, s.record.actual, s.record.usage) {
		fx.add(Effect{Kind: SetResponseHeader, Name: h[0], Value: h[1]})
	}
}

func (s *Stream) dropWait(fx *effects) {
	fx.tell(Event{Kind: AnswerLet, Held: s.waits})
	s.waits = nil
}
