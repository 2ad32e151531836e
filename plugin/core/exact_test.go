package core

import (
	"fmt"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

// forwarded is an exchange whose answer is to come, of a worker with the settings given.
func forwarded(t *testing.T, mode, settings, body string) *Stream {
	t.Helper()
	w := newWorkerWith(t, mode, "closed", `{"up": {"provider": "openai"}}, "answer": `+settings)
	return forwardedBy(t, w, mode, body)
}

func forwardedBy(t *testing.T, w *Worker, mode, body string) *Stream {
	t.Helper()
	s := w.NewStream(7)
	s.Step(headersEvent(mode == "pair"))
	if mode == "pair" {
		s.Step(Event{Kind: GateHeaders, Now: 1000})
	}
	s.Step(bodyEvent(body))
	s.Step(reply(t, s, bucket.Granted))
	if s.State() != Forwarded {
		t.Fatalf("reached %v", s.State())
	}
	return s
}

// responded is what the client's head is given.
func responded(fx []Effect) string {
	var b strings.Builder
	for _, f := range fx {
		if f.Kind == SetResponseHeader {
			b.WriteString(f.Name + "=" + f.Value + " ")
		}
	}
	return b.String()
}

func holds(fx []Effect) bool { return strings.HasSuffix(kinds(fx), "hold") }

// TestAnySplitOfAHeldAnswerTellsTheSameCost also sees that a first entry which gets the bytes as well, in
// any order, counts none of them again.
func TestAnySplitOfAHeldAnswerTellsTheSameCost(t *testing.T) {
	for _, mode := range []string{"pair", "flag"} {
		for cut := 1; cut < len(answer); cut++ {
			s := forwarded(t, mode, `{}`, chat)
			e := responseEvent()
			e.Gated = mode == "pair"
			if fx := s.Step(e); !holds(fx) || strings.Contains(responded(fx), "cost") {
				t.Fatalf("%s: at the head: %s", mode, kinds(fx))
			}
			told := ""
			for i, piece := range []string{answer[:cut], answer[cut:]} {
				end := i == 1
				fx := s.Step(Event{Kind: ResponseBody, Now: 1200, Body: []byte(piece), End: end, AtGate: mode == "pair"})
				if mode == "flag" {
					if holds(fx) == end {
						t.Fatalf("cut at %d: piece %d: %s", cut, i, kinds(fx))
					}
					told = responded(fx)
					continue
				}
				if holds(fx) || strings.Contains(kinds(fx), "release") != end {
					t.Fatalf("cut at %d: piece %d at the gate: %s", cut, i, kinds(fx))
				}
				if fx := s.Step(Event{Kind: ResponseBody, Now: 1200, Body: []byte(piece), End: end}); kinds(fx) != "hold" {
					t.Fatalf("cut at %d: piece %d behind the head: %s", cut, i, kinds(fx))
				}
				if end {
					fx = s.Step(Event{Kind: AnswerDue, Now: 1201})
					if kinds(fx) != "tell(answer-let) resume-answer" {
						t.Fatalf("due: %s", kinds(fx))
					}
					told = responded(fx)
					if fx := s.Step(Event{Kind: AnswerDue, Now: 1202}); len(fx) != 0 {
						t.Fatalf("due again: %s", kinds(fx))
					}
				}
			}
			// 7 at 1 and 3 at 2 EUR per million. 100 were left; of what was held all but 10 comes back.
			left := fmt.Sprintf("x-ratelimit-remaining-tokens=%d ", 100+s.plan.Items[0].Amount-10)
			if !strings.Contains(told, left) || !strings.HasSuffix(told, "x-gateway-cost-eur=0.000013 ") {
				t.Fatalf("%s, cut at %d: told %s, want %s", mode, cut, told, left)
			}
		}
	}
}

func TestAnswersThatAreNotHeld(t *testing.T) {
	json := dialect.ResponseHead{Status: 200, ContentType: "application/json"}
	with := func(change func(*dialect.ResponseHead)) dialect.ResponseHead {
		h := json
		change(&h)
		return h
	}
	stream := strings.Replace(chat, "{", `{"stream":true,`, 1)
	for _, c := range []struct {
		name, settings, body string
		head                 dialect.ResponseHead
		ungated, ends        bool
		held                 bool
		counted              int
	}{
		{name: "plain", head: json, held: true},
		{name: "of another JSON type", head: with(func(h *dialect.ResponseHead) { h.ContentType = "Application/problem+JSON ; a=b" }), held: true},
		{name: "in gzip", head: with(func(h *dialect.ResponseHead) { h.ContentEncoding = "gzip" }), held: true},
		{name: "as long as the bound", head: with(func(h *dialect.ResponseHead) { h.HasLength, h.Length = true, 2048 }), held: true},
		{name: "longer", head: with(func(h *dialect.ResponseHead) { h.HasLength, h.Length = true, 2049 }), counted: 1},
		{name: "to a call for a stream, with a length", body: stream, head: with(func(h *dialect.ResponseHead) { h.HasLength, h.Length = true, 100 }), held: true},
		{name: "to a call for a stream", body: stream, head: json},
		{name: "an error", head: with(func(h *dialect.ResponseHead) { h.Status = 500 })},
		{name: "moved", head: with(func(h *dialect.ResponseHead) { h.Status = 301 })},
		{name: "without a body", head: json, ends: true},
		{name: "a stream", head: with(func(h *dialect.ResponseHead) { h.ContentType = "text/event-stream" })},
		{name: "lines of JSON", head: with(func(h *dialect.ResponseHead) { h.ContentType = "application/x-ndjson" })},
		{name: "without a type", head: with(func(h *dialect.ResponseHead) { h.ContentType = "" })},
		{name: "in a coding that can't be read", head: with(func(h *dialect.ResponseHead) { h.ContentEncoding = "br" })},
		{name: "past the gate", head: json, ungated: true},
		{name: "switched off", settings: `{"exact_cost": false}`, head: json},
	} {
		if c.settings == "" {
			c.settings = `{"hold": "2KiB"}`
		}
		if c.body == "" {
			c.body = chat
		}
		s := forwarded(t, "pair", c.settings, c.body)
		fx := s.Step(Event{Kind: ResponseHeaders, Now: 1100, Response: c.head, Gated: !c.ungated, End: c.ends})
		if holds(fx) != c.held || s.AtGate() != c.held || counted(fx, "emmer.answer_unheld") != c.counted {
			t.Errorf("%s: %s, counted %d", c.name, kinds(fx), counted(fx, "emmer.answer_unheld"))
		}
	}
}

// TestAHeldAnswerGoesOn in every way in which it may turn out to be none that should wait.
func TestAHeldAnswerGoesOn(t *testing.T) {
	for _, mode := range []string{"pair", "flag"} {
		for name, body := range map[string]string{
			"too long": `{"choices":[{"message":{"content":"` + strings.Repeat("x", 2048), "an event": "data: {", "an array": "[{", "rubbish": "x", "broken": "{]",
		} {
			s := forwarded(t, mode, `{"hold": "2KiB"}`, chat)
			e := responseEvent()
			e.Gated = mode == "pair"
			s.Step(e)
			fx := s.Step(Event{Kind: ResponseBody, Now: 1200, Body: []byte(body), AtGate: mode == "pair"})
			if holds(fx) {
				t.Errorf("%s, %s: held on", mode, name)
			}
			if mode == "pair" {
				if kinds(fx) != "release" {
					t.Errorf("%s, %s: %s", mode, name, kinds(fx))
				}
				if fx := s.Step(Event{Kind: ResponseBody, Now: 1200, Body: []byte(body), AtGate: true}); kinds(fx) != "" {
					t.Errorf("%s, %s, again: %s", mode, name, kinds(fx))
				}
				fx = s.Step(Event{Kind: AnswerDue, Now: 1201})
			}
			if counted(fx, "emmer.answer_unheld") != 1 || responded(fx) != "" {
				t.Errorf("%s, %s: %s, %s", mode, name, kinds(fx), responded(fx))
			}
			// The rest is read where it was begun, and settled once.
			fx = s.Step(Event{Kind: ResponseBody, Now: 1300, End: true, AtGate: mode == "pair"})
			if holds(fx) || jobOf(t, fx) == nil {
				t.Errorf("%s, %s: at the end: %s", mode, name, kinds(fx))
			}
		}
	}
}

// TestHeldAnswersAreBounded in number and in time, whatever the clock does.
func TestHeldAnswersAreBounded(t *testing.T) {
	w := newWorker(t, "flag", "closed")
	due := func(now bucket.Millis) (n int) {
		for _, f := range w.Step(Event{Kind: Tick, Now: now}) {
			if f.Kind == Release && f.Event.Kind == AnswerDue {
				n++
			}
		}
		return n
	}
	var all []*Stream
	for i := range mostHeld + 2 {
		s := forwardedBy(t, w, "flag", chat)
		fx := s.Step(responseEvent())
		for _, f := range fx {
			if f.Kind == Tell {
				w.Step(*f.Event)
			}
		}
		if over := i >= mostHeld; holds(fx) == over || (counted(fx, "emmer.answer_unheld") == 1) != over {
			t.Fatalf("answer %d: %s", i, kinds(fx))
		}
		all = append(all, s)
	}
	if n := due(1100 + 299); n != 0 {
		t.Errorf("%d were let go too early", n)
	}
	if n := due(1100 + 300); n != mostHeld {
		t.Errorf("%d were let go in time, want %d", n, mostHeld)
	}
	if n := due(1100 + 310); n != 0 {
		t.Errorf("%d were let go twice", n)
	}
	if n := due(1100 + 1301); n != mostHeld {
		t.Errorf("%d that did not go were told again, want %d", n, mostHeld)
	}
	for _, s := range all {
		for _, f := range s.Step(Event{Kind: StreamDone, Now: 3000}) {
			if f.Kind == Tell {
				w.Step(*f.Event)
			}
		}
	}
	if n := len(w.answers.list); n != 0 {
		t.Errorf("%d are left of exchanges that are over", n)
	}
	for name, end := range map[string]Event{"a clock set back": {Kind: Tick, Now: 500}, "the end of the plugin": {Kind: Shutdown, Now: 1110}} {
		w := newWorker(t, "flag", "closed")
		for _, f := range forwardedBy(t, w, "flag", chat).Step(responseEvent()) {
			if f.Kind == Tell {
				w.Step(*f.Event)
			}
		}
		if got := kinds(w.Step(end)); !strings.Contains(got, "release") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
