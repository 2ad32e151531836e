package plan

import (
	"strconv"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

const uncapped = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`

func TestLearnedOutputOfCallsWithoutACap(t *testing.T) {
	c := compiled(t, "identity", `{"tenant": {"header": "x-tenant"}, "key": {"header": "x-key"}, "class": {"header": "x-class"}, "org": {"header": "x-org"}}`,
		"models", `{"m": {"max_output": 4000, "default_output": 100}, "fixed": {"learn_output": false, "default_output": 100}, "short": {"context": 500}, "wide": {}}`,
		"unknown_model", `{"use": "m"}`)
	var m Memory
	plan := func(body string, values ...string) *Plan {
		t.Helper()
		for len(values) < 4 {
			values = append(values, "")
		}
		p, refusal := m.Build(c, dialect.OpenAIChat, Caller{Values: values}, []byte(body), now)
		if refusal != nil {
			t.Fatal(refusal.Message)
		}
		return p
	}
	usage := dialect.Usage{Input: 10, Output: 701}
	// No two of these are alike.
	seen := map[string]int{}
	for i, p := range []*Plan{
		plan(uncapped, "a"), plan(uncapped, "b"), plan(uncapped, "", "a"), plan(uncapped, "a", "", "fast"), plan(uncapped, "a", "", "", "o"),
		plan(uncapped), plan(uncapped, "", "", "", "o"), plan(`{"model":"wide","messages":[]}`, "a"), plan(`{"model":"unheard-of","messages":[]}`, "a"),
		plan(uncapped, "a6:class=1:b"), plan(uncapped, "a", "", "b"),
	} {
		a := p.Answer(usage)
		if other, ok := seen[a.Of]; ok || a.Tokens != 701 || len(a.Of) != 32 {
			t.Errorf("%d: %+v, as %d", i, a, other)
		}
		seen[a.Of] = i
	}
	// These are.
	if one, two := plan(uncapped, "a", "k"), plan(uncapped, "a", "l"); one.answers != two.answers {
		t.Error("the keys of a tenant learn apart")
	}
	if one, two := plan(`{"model":"x","messages":[]}`, "a"), plan(`{"model":"y","messages":[]}`, "a"); one.answers != two.answers {
		t.Error("unknown models are many")
	}
	// These teach nothing.
	for _, body := range []string{`{"model":"m","max_tokens":9,"messages":[]}`, `{"model":"fixed","messages":[]}`} {
		p := plan(body, "a")
		if a := p.Answer(usage); a != (bucket.Answer{}) {
			t.Errorf("%s: %+v", body, a)
		}
	}
	of := plan(uncapped, "a").answers
	m.Told(of, 700, now-toldFor+1)
	for _, tt := range []struct {
		p               *Plan
		learned, output bucket.Tokens
	}{
		{plan(uncapped, "a"), 700, 700},
		{plan(`{"model":"m","n":3,"messages":[]}`, "a"), 700, 2100},
		{plan(`{"model":"m","max_tokens":9,"messages":[]}`, "a"), 0, 9},
		{plan(`{"model":"fixed","messages":[]}`, "a"), 0, 100},
		{plan(uncapped, "b"), 0, 100},
	} {
		if tt.p.Learned != tt.learned || tt.p.Output != tt.output {
			t.Errorf("%d learned, %d reserved; want %+v", tt.p.Learned, tt.p.Output, tt)
		}
	}
	if a := plan(`{"model":"m","n":3,"messages":[]}`, "a").Answer(usage); a.Tokens != 234 {
		t.Errorf("of three answers each has %d", a.Tokens)
	}
	m.Told(of, 9000, now)
	if p := plan(uncapped, "a"); p.Learned != 4000 || p.Output != 4000 {
		t.Errorf("%d above the model's most", p.Output)
	}
	short := plan(`{"model":"short","messages":[]}`, "a")
	m.Told(short.answers, 9000, now)
	if p := plan(`{"model":"short","messages":[]}`, "a"); p.Learned != p.Output || p.Output > 500 || p.Output < 400 {
		t.Errorf("%d in a context of 500", p.Output)
	}
	m.Told(of, 700, now-toldFor)
	if p := plan(uncapped, "a"); p.Learned != 0 || p.Output != 100 {
		t.Errorf("a figure of a day ago is believed: %d", p.Output)
	}
	m.Told(of, 700, now+5)
	m.Told(of, 0, now)
	if p := plan(uncapped, "a"); p.Learned != 0 {
		t.Error("the store knows nothing any more, the worker does")
	}
}

// TestLearnedOutputFitsTheSmallestLimit: whatever was learned, the call asks for no more than each limit that
// refuses could give.
func TestLearnedOutputFitsTheSmallestLimit(t *testing.T) {
	for _, tt := range []struct {
		limits string
		output bucket.Tokens
		never  bool
	}{
		{`{"name":"a","by":["key"],"count":"tokens","bucket":{"rate":"500/m","burst":5000}}`, 2000, false},
		{`{"name":"a","by":["key"],"count":"tokens","bucket":{"rate":"500/m","burst":500}}`, 492, false},
		{`{"name":"a","by":["key"],"count":"output_tokens","max":300,"window":{"rolling":"1h"}},{"name":"b","by":["key"],"count":"requests","max":1,"window":{"rolling":"1h"}}`, 300, false},
		{`{"name":"a","by":["key"],"count":"tokens","max":300,"mode":"shadow","window":{"rolling":"1h"}}`, 2000, false},
		{`{"name":"a","by":["key"],"count":"cost","max":"0.0101","window":{"rolling":"1h"}}`, 1006, false}, // 8 tokens at 5 a million, the rest at 10
		{`{"name":"a","by":["key"],"count":"tokens","burn":{"above":"1/m","for":"1m","then":"kill"}},{"name":"b","by":["key"],"count":"concurrency","max":1}`, 2000, false},
		{`{"name":"a","by":["key"],"count":"tokens","max":3,"window":{"rolling":"1h"}}`, 1, true},
	} {
		c := compiled(t, "identity", `{"key": {"header": "x-key"}}`,
			"models", `{"m": {"tokenizer": "o200k_base", "price": {"input": "5", "output": "10"}}}`, "limits", "["+tt.limits+"]")
		var m Memory
		of := ""
		for range 2 {
			p, refusal := m.Build(c, dialect.OpenAIChat, Caller{Values: []string{"k"}}, []byte(uncapped), now)
			if refusal != nil {
				t.Fatal(refusal.Message)
			}
			if of == "" {
				of = p.answers
				m.Told(of, 2000, now)
				continue
			}
			if p.Output != tt.output || p.Learned != tt.output {
				t.Errorf("%s: %d reserved, %d learned; want %d", tt.limits, p.Output, p.Learned, tt.output)
			}
			fits := true
			for i := range p.Items {
				if it := &p.Items[i]; !it.Shadow && it.Limit.Kind != bucket.Burn && it.Amount > capacity(&it.Limit) {
					fits = false
				}
				if want, _ := p.need(p.Limits[i], p.Estimate(p.Output)); p.Items[i].Amount != want {
					t.Errorf("%s: asks for %d, needs %d", tt.limits, p.Items[i].Amount, want)
				}
			}
			if fits == tt.never {
				t.Errorf("%s: %+v", tt.limits, p.Items)
			}
		}
	}
}

// TestRememberedLengthsAreBounded: of ten thousand names a worker keeps 4096, and those that are told
// again and again among them.
func TestRememberedLengthsAreBounded(t *testing.T) {
	var l lengths
	for i := range 10_000 {
		l.put("busy", 7, now)
		l.put(strconv.Itoa(i), bucket.Tokens(i+1), now)
		l.put("nothing"+strconv.Itoa(i), 0, now)
	}
	if len(l.list) != toldMost || len(l.at) != toldMost || cap(l.list) > 2*toldMost {
		t.Errorf("%d, %d, %d", len(l.list), len(l.at), cap(l.list))
	}
	if l.get("busy", now) != 7 || l.get("9999", now) != 10_000 || l.get("0", now) != 0 {
		t.Error("the wrong ones are kept")
	}
	for name, i := range l.at {
		if l.list[i].of != name {
			t.Fatalf("%s is at the place of %s", name, l.list[i].of)
		}
	}
}
