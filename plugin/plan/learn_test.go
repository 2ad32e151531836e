package plan

import (
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/dialect"
	"github.com/emmer-proxy/emmer/tokenizer"
)

func TestLearningCorrectsEstimatesOnly(t *testing.T) {
	c := compiled(t, "identity", `{"class": {"header": "x-class"}}`,
		"models", `{"claude-opus-4-7": {}, "gpt-4o": {}, "house": {}}`, "unknown_model", `{"use": "house"}`,
		"targets", `{"all": {"cached_in_input": false}}`)
	text := strings.Repeat("Say hello in five languages. ", 50)
	var m Memory
	plan := func(model, class, text string) *Plan {
		p, refusal := m.Build(c, dialect.OpenAIChat, Caller{Values: []string{class}}, []byte(`{"model":"`+model+`","messages":[{"role":"user","content":"`+text+`"}]}`), now)
		if refusal != nil {
			t.Fatal(refusal.Message)
		}
		return p
	}
	if p := plan("claude-opus-4-7", "slow", text); p.Method != Approx || p.Factor != tokenizer.Seed("claude-opus-4-7") || p.Input <= p.Raw {
		t.Fatalf("%+v", p)
	}
	// Nothing is learned of an exact count, a short prompt, an unknown model, or a plan without a model.
	for _, p := range []*Plan{plan("gpt-4o", "slow", text), plan("house", "slow", "hi"), plan("other", "slow", text), {}} {
		if _, ok := p.Lesson(dialect.Usage{Input: 5000}); ok {
			t.Errorf("%+v", p)
		}
	}
	// A provider that counts half as much again, in part as cached, which it reports apart.
	first := plan("house", "slow", text)
	truth := first.Raw * 3 / 2
	for range 200 {
		l, ok := plan("house", "slow", text).Lesson(dialect.Usage{Input: truth - 100, CachedInput: 100, Output: 7})
		if !ok {
			t.Fatal("nothing to learn")
		}
		m.Learn(l)
	}
	p := plan("house", "slow", text)
	if p.Raw != first.Raw || p.Input < truth*99/100 || p.Input > truth*101/100 {
		t.Errorf("%d of %d, truly %d", p.Input, p.Raw, truth)
	}
	if other := plan("house", "fast", text); other.Input != p.Input {
		t.Errorf("a class of which nothing is known: %d, want that of the model, %d", other.Input, p.Input)
	}
	if claude := plan("claude-opus-4-7", "slow", text); claude.Factor != tokenizer.Seed("claude-opus-4-7") {
		t.Errorf("another model learned: %d", claude.Factor)
	}
	if exact := plan("gpt-4o", "slow", text); exact.Input != exact.Raw || exact.Method != Exact {
		t.Errorf("an exact count was corrected: %+v", exact)
	}
	// However absurd the reports, a prompt never counts above twice or below half.
	for range 200 {
		m.Learn(Lesson{"house", "slow", int(first.Raw), 1 << 40})
		m.Learn(Lesson{"house", "slow", int(first.Raw), 1 << 27})
	}
	if p := plan("house", "slow", text); p.Input > 2*p.Raw+1 || p.Input < p.Raw*19/10 {
		t.Errorf("%d of %d", p.Input, p.Raw)
	}
	if again := plan("house", "slow", ""); again.Input > 2*again.Raw || again.Input < bucket.Tokens(again.Raw) {
		t.Errorf("%d of %d", again.Input, again.Raw)
	}
}
