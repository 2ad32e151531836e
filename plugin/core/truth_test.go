package core

import (
	"slices"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

// TestAPromptThatNoFigureIsGivenForIsEstimated is case C125, for an API whose figures come with each
// piece: the figure for the output holds, unless more of it was seen than a cut stream says.
func TestAPromptThatNoFigureIsGivenForIsEstimated(t *testing.T) {
	frame := `data: {"choices":[{"delta":{"content":"` + strings.Repeat("one ", 50) + `"}}],"usage":{"prompt_tokens":0,"completion_tokens":7}}` + "\n\n"
	for _, c := range []struct {
		name string
		body string
		end  bool
		out  bucket.Tokens
	}{
		{"JSON", `{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":0,"completion_tokens":7}}`, true, 7},
		{"a stream", frame + "data: [DONE]\n\n", true, 7},
		{"a stream that was cut", frame, false, 51},
	} {
		s := reach(t, newWorker(t, "pair", "closed"), true, Responding)
		s.Step(Event{Kind: ResponseBody, Now: 1200, Body: []byte(c.body), End: c.end, AtGate: true})
		s.Step(Event{Kind: StreamDone, Now: 1300})
		u := s.record.usage
		if u.Input != s.plan.Input || u.Input == 0 || u.Output != c.out || s.record.settled != "estimate" {
			t.Errorf("%s: %+v, settled by %s; the prompt is %d", c.name, u, s.record.settled, s.plan.Input)
		}
	}
}

// TestHeadsAreAskedForFigures: only of dialects whose answers have some there.
func TestHeadsAreAskedForFigures(t *testing.T) {
	w := newWorker(t, "flag", "closed")
	s := w.NewStream(1)
	if s.UsageHeaders() != nil {
		t.Error("before a call is known")
	}
	s.Step(headersEvent(false))
	if s.UsageHeaders() != nil {
		t.Error("of OpenAI's")
	}
	s = w.NewStream(2)
	s.Step(Event{Kind: RequestHeaders, Now: 1000, Head: plan.Head{Method: "POST", Path: "/model/m/invoke", Headers: [][2]string{{"x-api-key", "k"}}}})
	if names := s.UsageHeaders(); !slices.Contains(names, "x-amzn-bedrock-output-token-count") {
		t.Errorf("of Bedrock's: %q", names)
	}
}
