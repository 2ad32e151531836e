package core

import (
	"fmt"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
)

// TestAWorkerLearnsFromSettledUsageOnly: what the provider reports corrects the next estimates, once
// the settlement was told to the worker; what was estimated itself teaches nothing.
func TestAWorkerLearnsFromSettledUsageOnly(t *testing.T) {
	text := strings.NewReplacer("HOLD", "pair", "FAILURE", "closed", "TARGETS", `{"up": {}}`, `"o200k_base"`, `"approx-o200k"`).Replace(testConfig)
	c, err := config.Parse([]byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	w := NewWorker(c, "tag")
	body := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("hello there ", 100) + `"}],"max_tokens":10}`
	n := uint64(0)
	exchange := func(answer string, tell bool) bucket.Tokens {
		n++
		s := w.NewStream(n)
		s.Step(headersEvent(true))
		s.Step(Event{Kind: GateHeaders, Now: 1000})
		s.Step(bodyEvent(body))
		s.Step(reply(t, s, bucket.Granted))
		s.Step(responseEvent())
		for _, f := range s.Step(Event{Kind: ResponseBody, Now: 1200, Body: []byte(answer), End: true}) {
			if f.Kind == Tell && f.Event.Kind == Settle && tell {
				w.Step(*f.Event)
			}
		}
		return s.plan.Input
	}
	first := exchange(`{"choices":[{"message":{"content":"hi"}}]}`, true)
	usage := fmt.Sprintf(`{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":%d,"completion_tokens":1}}`, first*3/2)
	for range 10 {
		if got := exchange(usage, false); got != first {
			t.Fatalf("%d tokens at first, then %d, though no usage was told", first, got)
		}
	}
	before := first
	for range 100 {
		before = exchange(usage, true)
	}
	if after := exchange(usage, true); after < first*149/100 || after > first*151/100 {
		t.Fatalf("estimated at %d, then %d, then %d", first, before, after)
	}
}
