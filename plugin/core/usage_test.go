package core

import (
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

const (
	streamed  = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hello there"}]}`
	aFrame    = `data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}` + "\n\n"
	useFrame  = `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}` + "\n\n"
	doneFrame = "data: [DONE]\n\n"
)

// askedFor is an exchange of a target that is to be asked for usage, forwarded.
func askedFor(t *testing.T, body string, headers ...[2]string) (s *Stream, fx []Effect) {
	t.Helper()
	w := newWorkerWith(t, "pair", "closed", `{"up": {"include_usage": "inject"}}`)
	s = w.NewStream(7)
	s.Step(headersEvent(true, headers...))
	s.Step(Event{Kind: GateHeaders, Now: 1000})
	s.Step(bodyEvent(body))
	return s, s.Step(reply(t, s, bucket.Granted))
}

func TestUsageIsAskedForAndTakenOut(t *testing.T) {
	s, fx := askedFor(t, streamed, [2]string{"accept-encoding", "gzip"})
	if got := kinds(fx); !strings.Contains(got, "remove(accept-encoding)") || !strings.Contains(got, "replace") {
		t.Errorf("granted: %s", got)
	}
	if got, ok := s.Edited([]byte(streamed)); !ok || string(got) != `{"stream_options":{"include_usage":true},`+streamed[1:] {
		t.Errorf("forwarded: %s", got)
	}
	fx = s.Step(Event{Kind: ResponseHeaders, Now: 1100, Response: dialect.ResponseHead{Status: 200, ContentType: "Text/Event-Stream ; charset=utf-8", HasLength: true}})
	if got := kinds(fx); got != "unrespond" {
		t.Errorf("at the head of the answer: %s", got)
	}
	seen := ""
	for _, piece := range []string{aFrame, aFrame[:5], aFrame[5:], useFrame[:9], useFrame[9:], doneFrame, ""} {
		fx = s.Step(Event{Kind: ResponseBody, Now: 1200, Body: []byte(piece), End: piece == ""})
		out := piece
		for _, f := range fx {
			if f.Kind == EditResponse {
				out = string(f.Body)
			}
		}
		seen += out
	}
	if seen != aFrame+aFrame+doneFrame {
		t.Errorf("the client sees %q", seen)
	}
	if s.record.settled != "usage" || s.record.usage.Output != 3 {
		t.Errorf("settled: %+v", s.record)
	}
}

func TestWhereUsageIsNotAskedFor(t *testing.T) {
	for name, body := range map[string]string{
		"no stream": chat, "asked for already": strings.Replace(streamed, "{", `{"stream_options":{"include_usage":true},`, 1),
	} {
		s, fx := askedFor(t, body)
		if s.plan.Asks || len(s.plan.Edits) > 0 || counted(fx, "emmer.usage_unasked") > 0 {
			t.Errorf("%s: %+v", name, s.plan.Edits)
		}
		if fx := s.Step(Event{Kind: ResponseHeaders, Now: 1100, Response: dialect.ResponseHead{Status: 200, ContentType: "text/event-stream"}}); s.filter != nil {
			t.Errorf("%s: %s", name, kinds(fx))
		}
	}
	w := newWorkerWith(t, "flag", "closed", `{"up": {"include_usage": "inject"}}`)
	for name, c := range map[string]struct {
		auth string
		size int
	}{"signed": {"AWS4-HMAC-SHA256 SignedHeaders=accept-encoding;host", 0}, "no room": {"Bearer x", 1<<20 - 10}} {
		s := w.NewStream(8)
		fx := s.Step(headersEvent(false, [2]string{"authorization", c.auth}, [2]string{"accept-encoding", "br"}))
		if left := !strings.Contains(kinds(fx), "accept-encoding"); left != (name == "signed") {
			t.Errorf("%s: %s", name, kinds(fx))
		}
		fx = s.Step(bodyEvent(strings.Replace(streamed, "{", "{"+strings.Repeat(" ", max(0, c.size-len(streamed))), 1)))
		if kinds(fx) != "call hold" || s.plan.Asks || len(s.plan.Edits) > 0 || counted(fx, "emmer.usage_unasked") != 1 {
			t.Errorf("%s: %s, %+v", name, kinds(fx), s.plan.Edits)
		}
	}
}

func TestAnswersThatKeepTheirBytes(t *testing.T) {
	for name, h := range map[string]dialect.ResponseHead{
		"an error":    {Status: 400, ContentType: "text/event-stream"},
		"JSON":        {Status: 200, ContentType: "application/json", HasLength: true},
		"in a coding": {Status: 200, ContentType: "text/event-stream", ContentEncoding: "gzip"},
	} {
		s, _ := askedFor(t, streamed)
		fx := s.Step(Event{Kind: ResponseHeaders, Now: 1100, Response: h})
		if s.filter != nil || kinds(fx) != "" || counted(fx, "emmer.usage_left") != len(h.ContentEncoding)/4 {
			t.Errorf("%s: %s", name, kinds(fx))
		}
	}
	s, _ := askedFor(t, streamed)
	s.Step(Event{Kind: ResponseHeaders, Now: 1100, Response: dialect.ResponseHead{Status: 200, ContentType: "text/event-stream"}})
	s.Step(Event{Kind: ResponseBody, Now: 1200, Body: []byte(aFrame + useFrame[:20])})
	if fx := s.Step(Event{Kind: ResponseTrailers, Now: 1200, End: true}); counted(fx, "emmer.usage_tail_lost") != 1 {
		t.Error("what trailers cut off is not told of")
	}
}
