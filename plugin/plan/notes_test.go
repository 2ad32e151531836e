package plan

import (
	"reflect"
	"strconv"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

func TestThresholds(t *testing.T) {
	percents := []int{50, 80, 100}
	for _, x := range []struct {
		most, left, amount bucket.Amount
		percent            int
		crossed            bool
	}{
		{100, 51, 49, 0, false},
		{100, 50, 1, 50, true},
		{100, 49, 1, 50, false},
		{100, 20, 40, 80, true}, // 40 to 80: two at once, one is told
		{100, 0, 20, 100, true},
		{100, 0, 0, 100, false},
		{100, -30, 10, 100, false}, // a shadow, or a bucket in debt
		{3, 1, 1, 50, true},        // two thirds
		{0, 0, 1, 0, false},        // nothing of nothing is no share
		{bucket.MaxAmount, -bucket.MaxAmount, bucket.MaxAmount, 100, false},
		{bucket.MaxAmount, 0, bucket.MaxAmount, 100, true},
	} {
		if percent, crossed := reached(percents, x.most, x.left, x.amount); percent != x.percent || crossed != x.crossed {
			t.Errorf("%+v: %d, %v", x, percent, crossed)
		}
	}
}

const noteLimits = `[
	{"name": "shadow", "count": "tokens", "max": 2000, "window": {"rolling": "1m"}, "mode": "shadow", "warn": ["50%"]},
	{"name": "plain", "count": "requests", "max": 2, "window": {"rolling": "1m"}},
	{"name": "warned", "count": "requests", "max": 2, "window": {"rolling": "1m"}, "warn": ["50%", "90%"]}]`

func TestNotes(t *testing.T) {
	p := build(t, compiled(t, "limits", noteLimits), nil, `{"model": "m-1", `+hello+`}`)
	granted := bucket.ReserveReply{Outcome: bucket.Granted, Now: now, Remaining: []bucket.Amount{-1, 0, 1}}
	want := []Note{{Limit: "shadow", Shadow: true, Over: true, Percent: 50, Crossed: true}, {Limit: "warned", Percent: 50, Crossed: true}}
	if got := p.Notes(granted); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := warnings(want); got != "warned 50%" {
		t.Errorf("clients are told %q", got)
	}
	// An override has raised them: 4 of 5 are left.
	granted.Remaining, granted.Max = []bucket.Amount{90_000, 0, 4}, []bucket.Amount{100_000, 2, 5}
	if got := p.Notes(granted); got != nil {
		t.Errorf("%+v", got)
	}
	for _, outcome := range []bucket.Outcome{bucket.Denied, bucket.NeverFits} {
		if got := p.Notes(bucket.ReserveReply{Outcome: outcome, Remaining: []bucket.Amount{-1, 0, 0}}); got != nil {
			t.Errorf("of a refused call: %+v", got)
		}
	}
	if got := p.Notes(bucket.ReserveReply{Outcome: bucket.Granted}); got != nil {
		t.Errorf("without figures: %+v", got)
	}
	if !p.Items[0].Shadow || p.Items[1].Shadow || !p.Nothing()[0].Shadow {
		t.Error("the store is told wrongly which limits only shadow")
	}
}

// A shadow that can't be looked after stops nobody.
func TestFailureOfShadows(t *testing.T) {
	for limits, want := range map[string]config.Failure{
		`[{"name": "s", "count": "tokens", "max": 9, "window": {"calendar": "day"}, "mode": "shadow", "failure": "closed"}]`: config.FailOpen,
		`[{"name": "s", "count": "tokens", "max": 9, "window": {"calendar": "day"}, "mode": "shadow"},
			{"name": "a", "count": "requests", "max": 9, "window": {"calendar": "day"}, "failure": "open"}]`: config.FailOpen,
		`[{"name": "s", "count": "tokens", "max": 9, "window": {"calendar": "day"}, "mode": "shadow", "failure": "open"},
			{"name": "a", "count": "requests", "max": 9, "window": {"calendar": "day"}}]`: config.FailClosed,
	} {
		if p := build(t, compiled(t, "limits", limits), nil, `{"model": "m-1", `+hello+`}`); len(p.Parts) != 1 || p.Parts[0].Failure != want {
			t.Errorf("%s: %v", limits, p.Parts)
		}
	}
}

// Tenants need no entry in the configuration: what a claim says holds for each of them by itself, and
// the default for those that have none.
func TestTenThousandTenants(t *testing.T) {
	c := compiled(t, "identity", `{"tenant": {"jwt": ["payload", "tenant"]}}`, "limits", `[{"name": "day", "by": ["tenant"], "count": "tokens",
		"max": {"jwt": ["payload", "limit"], "default": 5000, "at_most": 9000}, "window": {"calendar": "day"}}]`)
	memory := new(Memory)
	entities := map[string]bool{}
	for i := range 10_000 {
		claims := []Claim{{Value: "t" + strconv.Itoa(i), OK: true}, {}}
		want, ignored := bucket.Amount(5000), 0
		switch i % 4 {
		case 1:
			want = bucket.Amount(i)
			claims[1] = Claim{Value: strconv.Itoa(i), OK: true}
		case 2:
			ignored = 1
			claims[1] = Claim{Value: "t" + strconv.Itoa(i), OK: true}
		}
		want = min(want, 9000)
		who, refusal := Identify(c, Head{Method: "POST", Path: "/v1/chat/completions", Claims: claims})
		if refusal != nil {
			t.Fatalf("%+v", refusal)
		}
		p, refusal := memory.Build(c, dialect.OpenAIChat, who, []byte(`{"model": "m-1", "max_tokens": 1, `+hello+`}`), now)
		if refusal != nil && want > 100 {
			t.Fatalf("tenant %d: %+v", i, refusal)
		}
		l := p.Items[0].Limit
		if l.Max != want || len(p.Ignored) != ignored || l.Entity != "tenant=t"+strconv.Itoa(i) {
			t.Fatalf("tenant %d has %d of %d, ignored %q", i, l.Max, want, p.Ignored)
		}
		entities[l.Entity] = true
	}
	if len(entities) != 10_000 || len(c.Limits) != 1 || len(memory.periods) != 1 {
		t.Errorf("%d tenants, %d limits, %d periods", len(entities), len(c.Limits), len(memory.periods))
	}
}
