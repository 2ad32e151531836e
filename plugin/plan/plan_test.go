package plan

import (
	"math/big"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
	"github.com/emmer-proxy/emmer/tokenizer"
)

// now is 2031-04-25T10:30:00Z.
var now = bucket.Millis(time.Date(2031, 4, 25, 10, 30, 0, 0, time.UTC).UnixMilli())

const models = `{
	"m-1": {"aliases": ["one"], "max_output": 4096, "default_output": 1000, "price": {"input": "10", "cached_input": "1", "output": "40"}},
	"m-2": {},
	"m-3": {"context": 2000, "max_output": 8000, "price": {"input": "1", "output": "1"}}
}`

func compiled(t testing.TB, sections ...string) *config.Compiled {
	t.Helper()
	text := `{"version": 1, "currency": "EUR", "store": {"cluster": "b"}`
	hasModels := false
	for i := 0; i+1 < len(sections); i += 2 {
		text += `, "` + sections[i] + `": ` + sections[i+1]
		hasModels = hasModels || sections[i] == "models"
	}
	if !hasModels {
		text += `, "models": ` + models
	}
	c, err := config.Parse([]byte(text+"}"), nil)
	if err != nil {
		t.Fatalf("%v\nin %s", err, text)
	}
	return c
}

func build(t testing.TB, c *config.Compiled, values []string, body string) *Plan {
	t.Helper()
	p, refusal := Build(c, dialect.OpenAIChat, Caller{Values: values}, []byte(body), now)
	if refusal != nil {
		t.Fatalf("%s: refused: %+v", body, *refusal)
	}
	return p
}

const hello = `"messages": [{"role": "user", "content": "Say hello in five languages."}]`

// promptTokens is what the prompt above counts: the words, the role, and the framing.
func promptTokens(t testing.TB) bucket.Tokens {
	t.Helper()
	e, _ := tokenizer.ForName("approx-o200k")
	r := tokenizer.RatesOf("m-1")
	return bucket.Tokens(tokenizer.Count(e, "user") + tokenizer.Count(e, "Say hello in five languages.") + r.Message + r.Reply)
}

const oneOfEach = `[
	{"name": "tok", "count": "tokens", "bucket": {"rate": "1000/s", "burst": 9000000000000000}},
	{"name": "in", "count": "input_tokens", "bucket": {"rate": "1000/s", "burst": 9000000000000000}},
	{"name": "out", "count": "output_tokens", "bucket": {"rate": "1000/s", "burst": 9000000000000000}},
	{"name": "req", "count": "requests", "bucket": {"rate": "1/s", "burst": 1}},
	{"name": "eur", "count": "cost", "for": {"model": ["m-1", "m-3"]}, "max": "9000000", "window": {"calendar": "month"}}
]`

func amounts(items []bucket.Item) []bucket.Amount {
	out := make([]bucket.Amount, len(items))
	for i := range items {
		out[i] = items[i].Amount
	}
	return out
}

func TestWorstCase(t *testing.T) {
	c := compiled(t, "limits", oneOfEach)
	in := promptTokens(t)
	for _, x := range []struct {
		name, fields string
		out          bucket.Tokens
		cost         bucket.Amount // nano-EUR; m-1 costs 10,000 a token of input and 40,000 of output
	}{
		{"nothing asked: the default", `"model": "m-1"`, 1000, bucket.Amount(in)*10_000 + 40_000_000},
		{"asked", `"model": "m-1", "max_tokens": 50`, 50, bucket.Amount(in)*10_000 + 2_000_000},
		{"n multiplies", `"model": "m-1", "max_tokens": 50, "n": 4`, 200, bucket.Amount(in)*10_000 + 8_000_000},
		{"the larger of two caps", `"model": "m-1", "max_tokens": 50, "max_completion_tokens": 70`, 70, bucket.Amount(in)*10_000 + 2_800_000},
		{"clamped to the ceiling", `"model": "m-1", "max_tokens": 999999999`, 4096, bucket.Amount(in)*10_000 + 163_840_000},
		{"clamped, then times n", `"model": "m-1", "max_tokens": 999999999, "n": 3`, 3 * 4096, bucket.Amount(in)*10_000 + 491_520_000},
		{"null is absent", `"model": "m-1", "max_tokens": null`, 1000, bucket.Amount(in)*10_000 + 40_000_000},
		{"an exact whole number", `"model": "m-1", "max_tokens": 5e1`, 50, bucket.Amount(in)*10_000 + 2_000_000},
	} {
		p := build(t, c, nil, `{`+x.fields+`, `+hello+`}`)
		want := []bucket.Amount{bucket.Amount(in + x.out), bucket.Amount(in), bucket.Amount(x.out), 1, x.cost}
		if p.Input != in || p.Output != x.out || !reflect.DeepEqual(amounts(p.Items), want) {
			t.Errorf("%s: input %d, output %d, amounts %v; want %d, %d, %v", x.name, p.Input, p.Output, amounts(p.Items), in, x.out, want)
		}
	}
	// Without a stated ceiling the cap asked for stands, and no product of it overflows.
	p, refusal := Build(c, dialect.OpenAIChat, Caller{}, []byte(`{"model": "m-2", "max_tokens": 9007199254740991, "n": 9007199254740991, `+hello+`}`), now)
	if refusal != nil || p.Output != bucket.MaxAmount || p.Items[0].Amount != bucket.MaxAmount || p.Never != -1 {
		t.Errorf("an absurd cap: %+v, %+v", p, refusal)
	}
}

// C76: where only requests are counted, nobody needs a cap; C74: a call without one takes its
// default and not all there is.
func TestCallsWithoutCap(t *testing.T) {
	c := compiled(t, "limits", `[{"name": "r", "count": "requests", "bucket": {"rate": "1/m", "burst": 1}}]`)
	if p := build(t, c, nil, `{"model": "m-2", `+hello+`}`); !reflect.DeepEqual(amounts(p.Items), []bucket.Amount{1}) {
		t.Errorf("%+v", p.Items)
	}
	c = compiled(t, "models", `{"m": {"max_output": 4096}}`, "limits", `[{"name": "t", "count": "tokens", "bucket": {"rate": "1/s", "burst": 1000000}}]`)
	if p := build(t, c, nil, `{"model": "m", `+hello+`}`); p.Output != 1024 {
		t.Errorf("%d", p.Output)
	}
}

// What a context leaves bounds the answer, less the usual error of the estimate.
func TestContext(t *testing.T) {
	c := compiled(t)
	long := `{"model": "m-3", "max_tokens": 8000, "messages": [{"role": "user", "content": "` + strings.Repeat("word and ", 400) + `"}]}`
	p := build(t, c, nil, long)
	m := p.Model
	if p.Input < 500 || p.Input > 1500 {
		t.Fatalf("input %d", p.Input)
	}
	if want := 2000 - p.Input + p.Input*bucket.Tokens(m.Encoding.ErrorP95())/1000; p.Output != want {
		t.Errorf("output %d, want %d", p.Output, want)
	}
	full := `{"model": "m-3", "max_tokens": 8000, "messages": [{"role": "user", "content": "` + strings.Repeat("word and ", 4000) + `"}]}`
	if p := build(t, c, nil, full); p.Output != 8000 {
		t.Errorf("a prompt that may not fit the context: output %d", p.Output)
	}
}

const identities = `{"key": {"header": "x-key", "missing": "pass"}, "team": {"header": "x-team", "missing": "pass"}}`

func TestLimitsThatACallMeets(t *testing.T) {
	c := compiled(t, "identity", identities, "targets", `{"east": {"provider": "acme", "models": {"m-1": {"name": "dep\"1"}}}, "west": {"provider": "umbra"}}`, "limits", `[
		{"name": "all", "count": "requests", "bucket": {"rate": "60000/m", "burst": 9}, "lost": "charge"},
		{"name": "per-key", "by": ["key"], "count": "requests", "max": 7, "window": {"calendar": "day"}},
		{"name": "pair", "by": ["key", "team"], "count": "requests", "bucket": {"rate": "7/d", "burst": 9}},
		{"name": "built-in", "by": ["target", "model", "provider", "dialect"], "count": "requests", "bucket": {"rate": "1/s", "burst": 9}},
		{"name": "only-one", "for": {"model": "one"}, "count": "requests", "bucket": {"rate": "1/s", "burst": 9}},
		{"name": "only-red", "for": {"team": ["red", "blu*"]}, "count": "requests", "bucket": {"rate": "1/s", "burst": 9}},
		{"name": "both", "for": {"team": "red", "provider": "umbra"}, "count": "requests", "bucket": {"rate": "1/s", "burst": 9}}
	]`)
	for _, x := range []struct {
		key, team, model string
		target, provider string
		limits, entities []string
	}{
		{"k", "red", "m-1", "east", "acme", []string{"all", "per-key", "pair", "built-in", "only-one", "only-red"},
			[]string{"", "key=k", "key=k,team=red", "target=east,model=m-1,provider=acme,dialect=openai-chat", "", ""}},
		{"a,team=b", "50%", "M-2-2031-01-05", "west", "umbra", []string{"all", "per-key", "pair", "built-in"},
			[]string{"", "key=a%2Cteam=b", "key=a%2Cteam=b,team=50%25", "target=west,model=m-2,provider=umbra,dialect=openai-chat"}},
		{"", "blue", "m-2", "west", "umbra", []string{"all", "per-key", "pair", "built-in", "only-red"},
			[]string{"", "key=", "key=,team=blue", "target=west,model=m-2,provider=umbra,dialect=openai-chat", ""}},
		{"k", "red", "m-2", "west", "umbra", []string{"all", "per-key", "pair", "built-in", "only-red", "both"},
			[]string{"", "key=k", "key=k,team=red", "target=west,model=m-2,provider=umbra,dialect=openai-chat", "", ""}},
	} {
		p := build(t, c, []string{x.key, x.team}, `{"model": "`+x.model+`", `+hello+`}`)
		var limits, entities []string
		for i := range p.Items {
			limits, entities = append(limits, p.Items[i].Limit.Name), append(entities, p.Items[i].Limit.Entity)
			if p.Limits[i].Name != p.Items[i].Limit.Name {
				t.Errorf("item %d is of another limit", i)
			}
			if err := p.Items[i].Limit.Check(); err != nil {
				t.Errorf("%s: %v", p.Items[i].Limit.Name, err)
			}
		}
		if !reflect.DeepEqual(limits, x.limits) || !reflect.DeepEqual(entities, x.entities) {
			t.Errorf("%s %s %s meets\n%q %q\nwant\n%q %q", x.key, x.team, x.model, limits, entities, x.limits, x.entities)
		}
		if p.Target.Name != x.target || p.Target.Provider != x.provider {
			t.Errorf("%s goes to %+v", x.model, p.Target)
		}
		wantKills := []string{"global:all"}
		if x.key != "" {
			wantKills = append(wantKills, "key:"+x.key)
		}
		wantKills = append(wantKills, "team:"+x.team)
		if head := HeadKills(c, Caller{Values: []string{x.key, x.team}}); !reflect.DeepEqual(head, wantKills) {
			t.Errorf("kills %q, want %q", head, wantKills)
		}
		wantKills = append(wantKills, "model:"+p.Model.Name, "provider:"+x.provider, "target:"+x.target)
		if !reflect.DeepEqual(p.Kills, wantKills) {
			t.Errorf("kills %q, want %q", p.Kills, wantKills)
		}
	}
	p := build(t, c, nil, `{"model": "m-1", `+hello+`}`)
	if l := p.Items[0].Limit; l != (bucket.Limit{Name: "all", Kind: bucket.TokenBucket, Lost: bucket.Charge, Rate: 1, Per: 1, Burst: 9}) {
		t.Errorf("%+v", l)
	}
	day := bucket.Millis(86_400_000)
	today := now / day * day
	if l := p.Items[1].Limit; l.Max != 7 || l.Period != "day@UTC" || l.Bounds != [4]bucket.Millis{today - day, today, today + day, today + 2*day} {
		t.Errorf("%+v", l)
	}
}

// A script that took from one key twice would see the first taking only in part.
func TestOneKeyIsTakenFromOnce(t *testing.T) {
	c := compiled(t, "limits", `[{"name": "a", "count": "requests", "bucket": {"rate": "1/s", "burst": 9}}, {"name": "b", "count": "requests", "bucket": {"rate": "1/s", "burst": 9}}]`)
	c.Limits = append(c.Limits, c.Limits[0])
	if p := build(t, c, nil, `{"model": "m-1", `+hello+`}`); len(p.Items) != 2 || len(p.Limits) != 2 {
		t.Errorf("%+v", p.Items)
	}
}

// Every two different lists of values give different entities.
func FuzzEntities(f *testing.F) {
	f.Add("a", "b", "a,team=b", "")
	f.Add("%2C", ",", ",", "%2C")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		by := []config.Key{{Name: "key", Identity: 0}, {Name: "team", Identity: 1}}
		one := (&Plan{Caller: Caller{Values: []string{a, b}}}).entity(by)
		two := (&Plan{Caller: Caller{Values: []string{c, d}}}).entity(by)
		if (one == two) != (a == c && b == d) {
			t.Fatalf("%q %q and %q %q: %q, %q", a, b, c, d, one, two)
		}
	})
}

func TestModelsAndTargets(t *testing.T) {
	const targets = `{"east": {"models": {"m-1": {"name": "dep\"1", "price": {"input": "5", "output": "5"}}}}, "west": {"models": {"m-1": {}, "m-2": {}}}}`
	c := compiled(t, "targets", targets, "unknown_model", `{"use": "m-1"}`)
	for _, x := range []struct {
		asked, model, target string
		known                bool
		input                bucket.Money
		body                 string // around the model's name
	}{
		{"m-1", "m-1", "east", true, 5_000_000_000, `"dep\"1"`},
		{"openrouter/acme/M-1-2031-01-05", "m-1", "east", true, 5_000_000_000, `"dep\"1"`},
		{`\u006d-1`, "m-1", "east", true, 5_000_000_000, `"dep\"1"`},
		{"m-2", "m-2", "west", true, 0, `"m-2"`},
		{"never-heard-of", "m-1", "east", false, 5_000_000_000, `"never-heard-of"`}, // C110: never 0
	} {
		body := `{"stream" :true, "model": "` + x.asked + `", ` + hello + `}` + "\n"
		p := build(t, c, nil, body)
		if p.Model.Name != x.model || p.Target.Name != x.target || p.Known != x.known || p.Price.Input != x.input {
			t.Errorf("%s: %s at %s, known %v, price %+v", x.asked, p.Model.Name, p.Target.Name, p.Known, p.Price)
		}
		got, ok := p.Edited([]byte(body))
		if want := `{"stream" :true, "model": ` + x.body + `, ` + hello + `}` + "\n"; !ok || string(got) != want {
			t.Errorf("%s is forwarded as %s, want %s", x.asked, got, want)
		}
	}
	same := []byte(`{"model": "m-2", ` + hello + `}`)
	if got, ok := build(t, c, nil, string(same)).Edited(same); !ok || &got[0] != &same[0] {
		t.Error("a body without edits was copied")
	}
	for _, x := range []struct{ c, body, want string }{
		{`{"use": "m-1"}`, `{"model": "m-3", ` + hello + `}`, `The model "m-3" is served by no target.`},
		{`"deny"`, `{"model": "m-9", ` + hello + `}`, `The model "m-9" is not known here.`},
		{`"deny"`, `{"model": "` + strings.Repeat("é", 500) + `", ` + hello + `}`, `The model "` + strings.Repeat("é", 32) + `..." is not known here.`},
	} {
		_, refusal := Build(compiled(t, "targets", targets, "unknown_model", x.c), dialect.OpenAIChat, Caller{}, []byte(x.body), now)
		if refusal == nil || refusal.HTTPStatus() != 404 || refusal.Code != "model_not_found" || refusal.Param != "model" || refusal.Message != x.want {
			t.Errorf("%s: %+v", x.body, refusal)
		}
	}
}

func TestBodiesThatAreRefused(t *testing.T) {
	c := compiled(t, "body", `{"depth": 8}`)
	for _, x := range []struct {
		body   string
		status int
		param  string
	}{
		{`{` + hello + `}`, 400, "model"}, {``, 400, ""}, {`[]`, 400, ""}, {`{"model": "m-1"`, 400, ""},
		{`{"model": "m-1", "model": "m-2", ` + hello + `}`, 400, "model"},
		{`{"model": "m-1", "max_tokens": -7, ` + hello + `}`, 400, "max_tokens"},
		{`{"model": "m-1", "x": ` + strings.Repeat("[", 9) + strings.Repeat("]", 9) + `}`, 400, ""},
	} {
		p, refusal := Build(c, dialect.OpenAIChat, Caller{}, []byte(x.body), now)
		if refusal == nil || refusal.HTTPStatus() != x.status || refusal.Code == "" || refusal.Message == "" || x.param != "" && refusal.Param != x.param {
			t.Errorf("%s: %+v", x.body, refusal)
			continue
		}
		if d := Refuse(p, *refusal); d.Decision() != "bad_request" || d.Limit != "" || d.Retry != 0 {
			t.Errorf("%s: %+v", x.body, d)
		}
	}
}

func TestFailurePolicy(t *testing.T) {
	limit := func(name, model, failure string) string {
		return `{"name": "` + name + `", "for": {"model": "` + model + `"}, "count": "requests", "bucket": {"rate": "1/s", "burst": 1}, "failure": "` + failure + `"}`
	}
	c := compiled(t, "failure", `{"mode": "open"}`, "limits", `[`+limit("a", "m-1", "closed")+`,`+limit("b", "m-1", "open")+`,`+limit("c", "m-2", "open")+`]`)
	d := compiled(t, "limits", `[`+limit("a", "m-1", "open")+`]`)
	for _, x := range []struct {
		c     *config.Compiled
		model string
		want  config.Failure
	}{{c, "m-1", config.FailClosed}, {c, "m-2", config.FailOpen}, {d, "m-1", config.FailOpen}} {
		if p := build(t, x.c, nil, `{"model": "`+x.model+`", `+hello+`}`); len(p.Parts) != 1 || p.Parts[0].Failure != x.want {
			t.Errorf("%s: %v, want %v", x.model, p.Parts, x.want)
		}
	}
	if p := build(t, c, nil, `{"model": "m-3", `+hello+`}`); len(p.Parts) != 0 {
		t.Errorf("a call without limits asks the store for %v", p.Parts)
	}
}

// What was used is priced by hand; C122: 1200 in, of these 1000 cached, 50 out, at 10, 1 and 40 a
// token are 5000.
func TestActual(t *testing.T) {
	c := compiled(t, "limits", oneOfEach)
	p := build(t, c, nil, `{"model": "m-1", `+hello+`}`)
	used := dialect.Usage{Input: 1200, CachedInput: 1000, Output: 50}
	if got := amounts(p.Actual(used)); !reflect.DeepEqual(got, []bucket.Amount{1250, 1200, 50, 1, 5_000_000}) {
		t.Errorf("%v", got)
	}
	if cost, ok := p.Cost(used); cost != 5_000_000 || !ok {
		t.Errorf("%d, %v", cost, ok)
	}
	if got := amounts(p.Nothing()); !reflect.DeepEqual(got, []bucket.Amount{0, 0, 0, 0, 0}) {
		t.Errorf("%v", got)
	}
	if got := amounts(p.Actual(dialect.Usage{})); !reflect.DeepEqual(got, []bucket.Amount{0, 0, 0, 1, 0}) {
		t.Errorf("%v", got)
	}
	if u := p.Estimate(7); u != (dialect.Usage{Input: promptTokens(t), Output: 7}) {
		t.Errorf("%+v", u)
	}

	// A provider that reports cached input beside the input, not within it.
	c = compiled(t, "limits", oneOfEach, "targets", `{"t": {"cached_in_input": false}}`)
	p = build(t, c, nil, `{"model": "m-1", `+hello+`}`)
	if got := amounts(p.Actual(dialect.Usage{Input: 200, CachedInput: 1000, Output: 50})); !reflect.DeepEqual(got, []bucket.Amount{1250, 1200, 50, 1, 5_000_000}) {
		t.Errorf("%v", got)
	}
	p = build(t, compiled(t), nil, `{"model": "m-2", `+hello+`}`)
	if cost, ok := p.Cost(used); cost != 0 || ok {
		t.Errorf("a cost without a price: %d, %v", cost, ok)
	}
}

// Whatever a provider reports, the list keeps its order and limits, and amounts stay in bounds; a
// reference with big numbers says which.
func TestActualOfAnyUsage(t *testing.T) {
	c := compiled(t, "limits", oneOfEach)
	p := build(t, c, nil, `{"model": "m-1", `+hello+`}`)
	source := rand.New(rand.NewPCG(1, 2))
	number := func() bucket.Tokens {
		switch n := source.Int64N(8); n {
		case 0:
			return bucket.Tokens(-source.Int64())
		case 1:
			return bucket.Tokens(source.Int64())
		case 2:
			return bucket.MaxAmount
		default:
			return bucket.Tokens(source.Int64N(1 << (5 * n)))
		}
	}
	clip := func(n *big.Int) bucket.Amount {
		if n.Sign() < 0 {
			return 0
		}
		if n.Cmp(big.NewInt(bucket.MaxAmount)) > 0 {
			return bucket.MaxAmount
		}
		return bucket.Amount(n.Int64())
	}
	bigOf := func(a bucket.Amount) *big.Int { return big.NewInt(int64(a)) }
	for range 20_000 {
		u := dialect.Usage{Input: number(), CachedInput: number(), Output: number()}
		items := p.Actual(u)
		in, out := clip(big.NewInt(int64(u.Input))), clip(big.NewInt(int64(u.Output)))
		cached := min(clip(big.NewInt(int64(u.CachedInput))), in)
		sum := new(big.Int).Mul(bigOf(in-cached), big.NewInt(10_000))
		sum.Add(sum, new(big.Int).Mul(bigOf(cached), big.NewInt(1_000)))
		sum.Add(sum, new(big.Int).Mul(bigOf(out), big.NewInt(40_000)))
		want := []bucket.Amount{clip(new(big.Int).Add(bigOf(in), bigOf(out))), in, out, 1, clip(sum)}
		if !reflect.DeepEqual(amounts(items), want) {
			t.Fatalf("%+v: %v, want %v", u, amounts(items), want)
		}
		for i := range items {
			if items[i].Limit != p.Items[i].Limit {
				t.Fatalf("item %d changed its limit", i)
			}
		}
	}
}

func TestOutputCounts(t *testing.T) {
	p := build(t, compiled(t), nil, `{"model": "m-1", `+hello+`}`)
	e := p.Model.Encoding
	const first, second = `Hello \"wörld\",\n`, `how are you?`
	want := bucket.Tokens(tokenizer.Count(e, "Hello \"wörld\",\n") + tokenizer.Count(e, second))
	for cut := range len(first) + 1 {
		o := p.NewOutput()
		o.Text(dialect.Text, []byte(first[:cut]), false)
		o.Text(dialect.Text, []byte(first[cut:]), true)
		o.Text(dialect.Text, []byte(second), false)
		if got := o.Tokens(); got != want {
			t.Errorf("cut at %d: %d, want %d", cut, got, want)
		}
		if again := o.Tokens(); again != want {
			t.Errorf("asked again: %d, want %d", again, want)
		}
	}
	if got := p.NewOutput().Tokens(); got != 0 {
		t.Errorf("nothing counts %d", got)
	}
}

func FuzzBuild(f *testing.F) {
	for _, s := range []string{
		`{"model": "m-1", ` + hello + `}`, `{"model": "m-1", "max_tokens": 1e15, "n": 9e15, ` + hello + `}`,
		`{"model":"x/M-2-20310105","tools":[{"a":1}],"messages":[{"name":"n","content":[{"type":"image_url","image_url":{}}]}]}`,
		`{"model":"\ud800"}`, `{`, "",
	} {
		f.Add([]byte(s), "k", int64(now/1000))
	}
	c := compiled(f, "identity", identities, "targets", `{"east": {"models": {"m-1": {"name": "z"}}}, "west": {}}`, "unknown_model", `{"use": "m-3"}`,
		"limits", strings.TrimSuffix(oneOfEach, "]")+`, {"name": "k", "by": ["key", "model"], "count": "tokens", "max": 5000, "window": {"calendar": "week", "timezone": "Asia/Tokyo"}},
			{"name": "r", "by": ["key"], "count": "output_tokens", "max": {"jwt": ["payload", "limit"], "default": 5000}, "window": {"rolling": "7s"}},
			{"name": "p", "by": ["key"], "count": "concurrency", "max": {"tier": {"jwt": ["payload", "limit"]}, "a": 1, "default": 2}, "mode": "shadow"},
			{"name": "b", "by": ["key"], "count": "tokens", "burn": {"above": "1/m", "for": "30m", "then": "kill"}}]`)
	f.Fuzz(func(t *testing.T, body []byte, key string, seconds int64) {
		at := bucket.Millis(seconds%(1<<32)) * 1000
		if at < 0 {
			at = -at
		}
		p, refusal := Build(c, dialect.OpenAIChat, Caller{Values: []string{key, ""}, Claims: []Claim{{Value: key, OK: true}}}, body, at+1)
		if p == nil {
			t.Fatal("no plan")
		}
		if refusal != nil {
			if refusal.HTTPStatus() < 400 || refusal.Message == "" || refusal.Code == "" {
				t.Fatalf("%+v", refusal)
			}
			Refuse(p, *refusal)
			return
		}
		if len(p.Items) != len(p.Limits) || p.Input < 0 || p.Output < 1 {
			t.Fatalf("%+v", p)
		}
		for i := range p.Items {
			if a := p.Items[i].Amount; a < 0 || a > bucket.MaxAmount {
				t.Fatalf("amount %d of %s", a, p.Limits[i].Name)
			}
			if err := p.Items[i].Limit.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if got, ok := p.Edited(body); !ok || len(got) != p.Length(len(body)) {
			t.Fatalf("%d bytes, where %d were told: %v", len(got), p.Length(len(body)), ok)
		}
		p.Actual(p.Estimate(p.Output))
	})
}

func BenchmarkBuild(b *testing.B) {
	c := compiled(b, "identity", identities, "limits", strings.TrimSuffix(oneOfEach, "]")+`, {"name": "k", "by": ["key", "model"], "count": "tokens", "max": 50000000, "window": {"calendar": "month", "timezone": "Europe/Amsterdam"}}]`)
	for _, size := range []int{1 << 10, 100 << 10} {
		body := []byte(`{"model": "m-1", "messages": [{"role": "user", "content": "` + strings.Repeat("The quick brown fox jumps over the lazy dog, again. ", size/52) + `"}]}`)
		b.Run(strconv.Itoa(size>>10)+"KiB", func(b *testing.B) {
			memory := new(Memory)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, refusal := memory.Build(c, dialect.OpenAIChat, Caller{Values: []string{"k", ""}}, body, now); refusal != nil {
					b.Fatal(refusal)
				}
			}
		})
	}
}
