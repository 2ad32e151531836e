package plan

import (
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

const rareModels = `{
	"rank": {"price": {"search_unit": "0.002"}},
	"draw": {"price": {"image": "0.04"}},
	"hear": {"price": {"audio_minute": "0.006"}},
	"embed": {"price": {"input": "0.02"}},
	"chat": {"context": 1000, "price": {"input": "4", "cache_write": "5", "cache_write_1h": "8", "cached_input": "1", "audio_input": "6", "output": "10", "audio_output": "20", "web_search": "0.01"}}
}`

// planned is a plan of a call with these facts, past its body.
func planned(t *testing.T, c *config.Compiled, model string, f dialect.Facts, input, output bucket.Tokens) *Plan {
	t.Helper()
	m, known := c.Model(model)
	return &Plan{Facts: f, Model: m, Known: known, Target: &defaultTarget, Price: m.Price, Priced: m.Priced, Input: input, Output: output, currency: c.Currency}
}

func TestWhatCallsAreBilledBy(t *testing.T) {
	c := compiled(t, "models", rareModels)
	for _, x := range []struct {
		name, model string
		facts       dialect.Facts
		in, out     bucket.Tokens
		covered     bool
		cost        bucket.Money
	}{
		{"a chat", "chat", dialect.Facts{}, 100, 10, true, 500_000},
		{"a chat of a model that embeds", "embed", dialect.Facts{}, 100, 10, false, 0},
		{"texts to embed", "embed", dialect.Facts{}, 100, 0, true, 2_000},
		{"100 documents", "rank", dialect.Facts{Documents: 100}, 9000, 0, true, 2_000_000},
		{"101 documents", "rank", dialect.Facts{Documents: 101}, 9000, 0, true, 4_000_000},
		{"documents by tokens", "embed", dialect.Facts{Documents: 101}, 100, 0, true, 2_000},
		{"documents of a model that draws", "draw", dialect.Facts{Documents: 1}, 100, 0, false, 0},
		{"three pictures", "draw", dialect.Facts{Images: 3}, 100, 0, true, 120_000_000},
		{"a picture by tokens", "chat", dialect.Facts{Images: 1}, 100, 10, true, 500_000},
		{"a picture of a model that embeds", "embed", dialect.Facts{Images: 1}, 100, 0, false, 0},
		{"90 s of sound", "hear", dialect.Facts{AudioMillis: 90_000}, 0, 10, true, 9_000_000},
		{"a chat of a model that hears", "hear", dialect.Facts{}, 10, 10, false, 0},
	} {
		p := planned(t, c, x.model, x.facts, x.in, x.out)
		worst := p.Estimate(p.Output)
		if got := p.covered(worst); got != x.covered {
			t.Errorf("%s: covered %v", x.name, got)
		}
		if got, ok := p.Cost(worst); x.covered && (got != x.cost || !ok) {
			t.Errorf("%s: costs %d, %v; want %d", x.name, got, ok, x.cost)
		}
	}
}

func TestPartsOfUsageArePriced(t *testing.T) {
	p := planned(t, compiled(t, "models", rareModels), "chat", dialect.Facts{}, 0, 0)
	for _, x := range []struct {
		name string
		u    dialect.Usage
		want bucket.Money
	}{
		{"C23", dialect.Usage{Input: 1000, CacheWrite: 200, CacheHour: 800}, 7_400_000},
		{"C122", dialect.Usage{Input: 1200, CachedInput: 1000, Output: 50}, 800_000 + 1_000_000 + 500_000},
		{"C29", dialect.Usage{Input: 1000, Output: 100, Searches: 3}, 4_000_000 + 1_000_000 + 30_000_000},
		{"sound", dialect.Usage{Input: 100, AudioInput: 40, Output: 10, AudioOutput: 4}, 240_000 + 240_000 + 60_000 + 80_000},
		{"parts that overlap", dialect.Usage{Input: 100, AudioInput: 60, CachedInput: 90}, 360_000 + 40_000},
		{"more parts than there is", dialect.Usage{Input: 10, CacheHour: 90, Output: 1, AudioOutput: 5}, 80_000 + 20_000},
	} {
		if got, ok := p.Cost(x.u); got != x.want || !ok {
			t.Errorf("%s: %d, %v; want %d", x.name, got, ok, x.want)
		}
	}
}

func TestUsageThatNoCallCanHave(t *testing.T) {
	c := compiled(t, "models", rareModels)
	p := planned(t, c, "chat", dialect.Facts{N: 2}, 0, 0)
	for _, x := range []struct {
		u    dialect.Usage
		want bool
	}{
		{dialect.Usage{Input: 1000, Output: 2000}, false},
		{dialect.Usage{Input: 1001}, true},
		{dialect.Usage{Output: 2001}, true},
		{dialect.Usage{Input: 4000, Searches: 3}, false}, // the context was read four times
		{dialect.Usage{Input: 4001, Searches: 3}, true},
		{dialect.Usage{Input: bucket.MaxAmount, Searches: bucket.MaxAmount}, true},
	} {
		if got := p.Absurd(x.u); got != x.want {
			t.Errorf("%+v: %v", x.u, got)
		}
	}
	if p := planned(t, c, "chat", dialect.Facts{Inputs: 3}, 0, 0); p.Absurd(dialect.Usage{Input: 3000}) || !p.Absurd(dialect.Usage{Input: 3001}) {
		t.Error("each input has a context of its own")
	}
	if planned(t, c, "embed", dialect.Facts{}, 0, 0).Absurd(dialect.Usage{Input: 1 << 40}) {
		t.Error("absurd beyond a context that is not stated")
	}
}

func TestRareMeasures(t *testing.T) {
	p := planned(t, compiled(t, "models", rareModels), "rank", dialect.Facts{Documents: 250, Images: 2, AudioMillis: 1001}, 5, 0)
	for _, x := range []struct {
		count config.Measure
		want  bucket.Amount
	}{{config.CountSearchUnits, 3}, {config.CountImages, 2}, {config.CountAudioSeconds, 2}} {
		if got, ok := p.amount(x.count, p.Estimate(0)); got != x.want || !ok {
			t.Errorf("%d: %d, %v", x.count, got, ok)
		}
		if got, _ := p.amount(x.count, dialect.Usage{}); got != 0 {
			t.Errorf("%d of nothing: %d", x.count, got)
		}
	}
	if got := p.Asked(dialect.Usage{SearchUnits: 7}); got.SearchUnits != 7 || got.Images != 2 {
		t.Errorf("%+v", got)
	}
}

func TestARenameInThePath(t *testing.T) {
	const path = "/openai/deployments/d1/chat/completions?api-version=z"
	for _, x := range []struct {
		facts dialect.Facts
		want  string
		edits int
	}{
		{dialect.Facts{ModelInPath: dialect.Span{Start: 20, End: 22}}, "/openai/deployments/my%20dep%2F1/chat/completions?api-version=z", 0},
		{dialect.Facts{ModelInPath: dialect.Span{Start: 20, End: 22}, Sealed: true}, "", 0},
		{dialect.Facts{ModelInPath: dialect.Span{Start: 20, End: 200}}, "", 0},
		{dialect.Facts{ModelSpan: dialect.Span{Start: 9, End: 14}}, "", 1},
	} {
		p := &Plan{Facts: x.facts, Caller: Caller{Body: dialect.RequestHead{Path: path}}}
		p.rename("my dep/1")
		if p.Path != x.want || len(p.Edits) != x.edits {
			t.Errorf("%+v: %q, %d edits", x.facts, p.Path, len(p.Edits))
		}
	}
}

// C22: Anthropic's figure of the input leaves the cache out, and the meter adds it; servers that speak
// its API and count otherwise are told by the target's setting.
func TestWhoCountsTheCacheAsInput(t *testing.T) {
	claude, _ := dialect.Recognise("POST", "/v1/messages")
	for _, x := range []struct {
		d      dialect.Dialect
		target string
		want   bucket.Tokens
	}{
		{dialect.OpenAIChat, `{}`, 2503}, {dialect.OpenAIChat, `{"cached_in_input": true}`, 2503}, {dialect.OpenAIChat, `{"cached_in_input": false}`, 4003},
		{claude, `{}`, 2503}, {claude, `{"cached_in_input": false}`, 2503}, {claude, `{"cached_in_input": true}`, 3},
	} {
		c := compiled(t, "limits", `[{"name": "in", "count": "input_tokens", "bucket": {"rate": "1000/m", "burst": 100000}}]`, "targets", `{"t": `+x.target+`}`)
		p, refusal := Build(c, x.d, Caller{}, []byte(`{"model": "m-1", "max_tokens": 5, `+hello+`}`), now)
		if refusal != nil {
			t.Fatal(refusal)
		}
		u := dialect.Usage{Input: 2503, CachedInput: 1500, CacheWrite: 200, CacheHour: 800, Output: 20}
		if got := p.Actual(u)[0].Amount; got != bucket.Amount(x.want) {
			t.Errorf("%s, %s: %d, want %d", x.d.Name(), x.target, got, x.want)
		}
	}
}
