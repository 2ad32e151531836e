package plan

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

const answerLimits = `[
	{"name": "tpm", "count": "tokens", "bucket": {"rate": "60000/m", "burst": 90000}},
	{"name": "out-day", "count": "output_tokens", "max": 5000, "window": {"calendar": "day", "timezone": "Europe/Amsterdam"}},
	{"name": "rpm", "count": "requests", "bucket": {"rate": "60/m", "burst": 60}},
	{"name": "month", "by": ["model"], "count": "cost", "for": {"model": "m-1"}, "max": "50", "window": {"calendar": "month"}},
	{"name": "odd", "count": "requests", "max": 1, "window": {"calendar": "hour"}, "status": 503}
]`

func headersOf(list [][2]string) string {
	var b strings.Builder
	for _, h := range list {
		b.WriteString(h[0] + ": " + h[1] + "\n")
	}
	return b.String()
}

// TestHeadersOfASettledCall gives back what the call did not use, also where that is less than nothing.
func TestHeadersOfASettledCall(t *testing.T) {
	p := build(t, compiled(t, "limits", answerLimits), nil, `{"model": "m-1", `+hello+`}`)
	remaining := []bucket.Amount{80_000, 4_000, 59, 49_000_000_000, 1}
	r := bucket.ReserveReply{Outcome: bucket.Granted, Now: now, By: -1, Remaining: remaining}
	for _, u := range []dialect.Usage{{}, {Input: 9, Output: 2}, {Input: 1000, Output: 4000}} {
		took := p.Actual(u)
		// The dumb way: as if the store had been asked for that much.
		asIf := r
		asIf.Remaining = nil
		for i, left := range remaining {
			asIf.Remaining = append(asIf.Remaining, left+p.Items[i].Amount-took[i].Amount)
		}
		cost, _ := p.Cost(u)
		want := strings.Replace(headersOf(p.Headers(asIf)), "x-emmer-decision: granted\n", "x-gateway-cost-eur: "+decimal(cost, p.currency)+"\n", 1)
		if got := headersOf(p.Settled(r, took, u)); got != want {
			t.Errorf("%+v:\n%swant\n%s", u, got, want)
		}
		if got := headersOf(p.Settled(bucket.ReserveReply{}, nil, u)); got != "x-gateway-cost-eur: "+decimal(cost, p.currency)+"\n" {
			t.Errorf("without the store's answer: %s", got)
		}
	}
	if remaining[0] != 80_000 {
		t.Error("the store's answer was changed")
	}
	p = build(t, compiled(t, "models", `{"bare": {}}`, "limits", "[]"), nil, `{"model": "bare", `+hello+`}`)
	if got := p.Settled(bucket.ReserveReply{}, nil, dialect.Usage{Input: 1}); len(got) != 0 {
		t.Errorf("without a price: %q", got)
	}
}

func TestHeadersOfAGrantedCall(t *testing.T) {
	p := build(t, compiled(t, "limits", answerLimits), nil, `{"model": "m-1", `+hello+`}`)
	for _, x := range []struct {
		remaining []bucket.Amount
		want      string
	}{
		// The bucket has 88,800 of 90,000 and gets 1 each ms; the day has 4,000 left and ends in 11.5 hours.
		{[]bucket.Amount{88_800, 4_000, 59, 49_000_000_000, 1}, `x-ratelimit-limit-tokens: 5000
x-ratelimit-remaining-tokens: 4000
x-ratelimit-reset-tokens: 11h30m0s
x-ratelimit-limit-requests: 60
x-ratelimit-remaining-requests: 59
x-ratelimit-reset-requests: 1s
x-tenant-remaining-budget-eur: 49
x-emmer-decision: granted
`},
		{[]bucket.Amount{-500, 4_000, 0, 0, 1}, `x-ratelimit-limit-tokens: 90000
x-ratelimit-remaining-tokens: 0
x-ratelimit-reset-tokens: 1m30.5s
x-ratelimit-limit-requests: 60
x-ratelimit-remaining-requests: 0
x-ratelimit-reset-requests: 1m0s
x-tenant-remaining-budget-eur: 0
x-emmer-decision: granted
`},
		{nil, "x-emmer-decision: granted\n"},
	} {
		if got := headersOf(p.Headers(bucket.ReserveReply{Outcome: bucket.Granted, Now: now, By: -1, Remaining: x.remaining})); got != x.want {
			t.Errorf("%v:\n%swant\n%s", x.remaining, got, x.want)
		}
	}
}

func TestDenials(t *testing.T) {
	c := compiled(t, "limits", answerLimits)
	p := build(t, c, nil, `{"model": "m-1", `+hello+`}`)
	p.Items[0].Amount, p.Items[3].Amount = 1500, 1_250_000_000 // round numbers for the messages
	remaining := []bucket.Amount{120, 4_000, 59, 12_300_000, 0}
	toMay := bucket.Millis(time.Date(2031, 5, 1, 0, 0, 0, 0, time.UTC).UnixMilli()) - now
	for _, x := range []struct {
		by             int
		retry          bucket.Millis
		status         int
		reason         dialect.Reason
		code, message  string
		limit, headers string
	}{
		{0, 1380, 429, dialect.RateLimited, "rate_limit_exceeded",
			"The limit tpm has 120 tokens left of 90000 tokens, and this call needs up to 1500 tokens. Try again in 1.38s.",
			"tpm", "retry-after: 2\nretry-after-ms: 1380\n"},
		{2, 0, 429, dialect.RateLimited, "request_rate_exceeded",
			"The limit rpm has 59 requests left of 60 requests, and this call needs up to 1 request. Try again in 1ms.",
			"rpm", "retry-after: 1\nretry-after-ms: 1\n"},
		{3, toMay, 402, dialect.OverBudget, "insufficient_quota", // C103: the next period's start; C104: the true time
			"The limit month has 0.0123 EUR left of 50 EUR, and this call needs up to 1.25 EUR. Try again at 2031-05-01T00:00:00Z.",
			"month", "retry-after: 480600\nretry-after-ms: 480600000\nx-should-retry: false\n"},
		{4, 1000, 503, dialect.RateLimited, "request_rate_exceeded",
			"The limit odd has 0 requests left of 1 request, and this call needs up to 1 request. Try again at 2031-04-25T10:30:01Z.",
			"odd", "retry-after: 1\nretry-after-ms: 1000\n"},
	} {
		d := p.Deny(c, bucket.ReserveReply{Outcome: bucket.Denied, Now: now, By: x.by, Retry: x.retry, Remaining: remaining})
		if d.Refusal.HTTPStatus() != x.status || d.Refusal.Reason != x.reason || d.Refusal.Code != x.code || d.Refusal.Message != x.message ||
			d.Limit != x.limit || d.By != x.by || d.Decision() != Denied {
			t.Errorf("%+v", d)
		}
		h := headersOf(d.Headers)
		told := map[string]string{"tpm": "-tokens: 90000\n", "rpm": "-requests: 60\n", "month": "-tokens: 90000\n", "odd": "-requests: 1\n"}[x.limit]
		if !strings.HasSuffix(h, "x-emmer-decision: denied\nx-emmer-limit: "+x.limit+"\n"+x.headers) || !strings.Contains(h, "x-ratelimit-limit"+told) {
			t.Errorf("%s", h)
		}
	}
}

// SDKs obey x-should-retry before they look at the status: false is for what a wait of a minute can't
// mend, and nothing is said of the rest.
func TestWhatCannotSucceedSoonSaysSo(t *testing.T) {
	c := compiled(t, "limits", answerLimits)
	p := build(t, c, nil, `{"model": "m-1", `+hello+`}`)
	remaining := []bucket.Amount{120, 4_000, 59, 12_300_000, 0}
	for _, x := range []struct {
		by    int
		retry bucket.Millis
		want  bool
	}{
		{0, 1, false}, {0, 60_000, false}, {0, 60_001, true}, {2, 59_000, false}, {2, 3_600_000, true},
		{3, 1000, true}, // 402 is no status to wait for
		{4, 1000, false}, {4, 60_001, true},
	} {
		d := p.Deny(c, bucket.ReserveReply{Outcome: bucket.Denied, Now: now, By: x.by, Retry: x.retry, Remaining: remaining})
		if got := strings.Contains(headersOf(d.Headers), "x-should-retry: false\n"); got != x.want {
			t.Errorf("%+v:\n%s", x, headersOf(d.Headers))
		}
	}
	for _, d := range []Denial{StoreUnavailable(), QueueFull(5000), Refuse(nil, Internal()), Refuse(nil, UnknownRoute("/v1/x"))} {
		if strings.Contains(headersOf(d.Headers), "x-should-retry") {
			t.Errorf("%d:\n%s", d.Refusal.HTTPStatus(), headersOf(d.Headers))
		}
	}
	if d := QueueFull(300_000); !strings.Contains(headersOf(d.Headers), "x-should-retry: false\n") {
		t.Errorf("a queue that is full for five minutes:\n%s", headersOf(d.Headers))
	}
}

// Anthropic's callers look for input and output apart, and for a reset that is a date.
func TestHeadersOfAnthropicsCalls(t *testing.T) {
	d, _ := dialect.Recognise("POST", "/v1/messages")
	c := compiled(t, "limits", `[
		{"name": "tpm", "count": "tokens", "bucket": {"rate": "60000/m", "burst": 90000}},
		{"name": "in", "count": "input_tokens", "bucket": {"rate": "60/m", "burst": 10000}},
		{"name": "out-hour", "count": "output_tokens", "max": 5000, "window": {"calendar": "hour"}},
		{"name": "out-day", "count": "output_tokens", "max": 50000, "window": {"calendar": "day"}},
		{"name": "rpm", "count": "requests", "bucket": {"rate": "60/m", "burst": 60}}
	]`)
	p, refusal := Build(c, d, Caller{}, []byte(`{"model": "m-1", "max_tokens": 5, `+hello+`}`), now)
	if refusal != nil {
		t.Fatal(refusal)
	}
	reply := bucket.ReserveReply{Outcome: bucket.Granted, Now: now, By: -1, Remaining: []bucket.Amount{90_000, 9_999, 5_000, 4_000, 0}}
	const want = `anthropic-ratelimit-tokens-limit: 90000
anthropic-ratelimit-tokens-remaining: 90000
anthropic-ratelimit-tokens-reset: 2031-04-25T10:30:00Z
anthropic-ratelimit-requests-limit: 60
anthropic-ratelimit-requests-remaining: 0
anthropic-ratelimit-requests-reset: 2031-04-25T10:31:00Z
anthropic-ratelimit-input-tokens-limit: 10000
anthropic-ratelimit-input-tokens-remaining: 9999
anthropic-ratelimit-input-tokens-reset: 2031-04-25T10:30:01Z
anthropic-ratelimit-output-tokens-limit: 50000
anthropic-ratelimit-output-tokens-remaining: 4000
anthropic-ratelimit-output-tokens-reset: 2031-04-26T00:00:00Z
x-emmer-decision: granted
`
	if got := headersOf(p.Headers(reply)); got != want {
		t.Errorf("%swant\n%s", got, want)
	}
	reply.Outcome, reply.By, reply.Retry = bucket.Denied, 2, 1000
	if got := headersOf(p.Deny(c, reply).Headers); !strings.Contains(got, "anthropic-ratelimit-output-tokens-limit: 5000\n") {
		t.Errorf("the limit that refused is not told:\n%s", got)
	}
}

func TestKilled(t *testing.T) {
	c := compiled(t, "identity", `{"tenant": {"header": "x-tenant"}}`)
	p := build(t, c, []string{"t1"}, `{"model": "m-1", `+hello+`}`)
	for _, x := range []struct {
		by     int
		reason string
		want   string
	}{
		{0, "0|root@ops|budget review", "All calls are stopped by the operator: budget review."},
		{1, "1900000000000|root@ops|leaked | key.", `Calls for tenant "t1" are stopped by the operator: leaked | key.`},
		{2, "0|root@ops|", `Calls for model "m-1" are stopped by the operator.`},
		{3, "root@ops", `Calls for target "default" are stopped by the operator.`},
		{9, "0|root@ops|a\r\nb", "All calls are stopped by the operator: a  b."},
	} {
		d := p.Deny(c, bucket.ReserveReply{Outcome: bucket.Killed, By: x.by, Reason: x.reason})
		if d.Refusal.HTTPStatus() != 403 || d.Refusal.Message != x.want || headersOf(d.Headers) != "x-emmer-decision: killed\nx-should-retry: false\n" {
			t.Errorf("%+v", d)
		}
		if strings.Contains(d.Refusal.Message, "root") {
			t.Errorf("the actor is told: %s", d.Refusal.Message)
		}
		if x.by < len(p.Kills) {
			if local := KilledLocally(p.Kills[x.by], x.reason); local.Refusal != d.Refusal || local.By != -1 {
				t.Errorf("known locally it reads %+v", local)
			}
		}
	}
	long := KilledLocally("global:all", "0|a|"+strings.Repeat("é", 1000))
	if len(long.Refusal.Message) > maxReason+60 {
		t.Errorf("%d bytes", len(long.Refusal.Message))
	}
}

func TestNeverFits(t *testing.T) {
	c := compiled(t, "limits", answerLimits)
	p := build(t, c, nil, `{"model": "m-2", "max_tokens": 5001, `+hello+`}`) // the store may know of an override
	const want = "This call needs up to 5001 output tokens, and the limit out-day never has more than 5000 output tokens. Ask for less output or send a shorter prompt."
	reply := bucket.ReserveReply{Outcome: bucket.NeverFits, By: 1, Now: now, Remaining: make([]bucket.Amount, 4)}
	for _, most := range [][]bucket.Amount{nil, {90_000, 5000, 60, 1}} {
		reply.Max = most
		if d := p.Deny(c, reply); d.Refusal.HTTPStatus() != 400 || d.Refusal.Message != want || d.Limit != "out-day" || d.By != 1 || d.Retry != 0 ||
			d.Decision() != NeverFits || headersOf(d.Headers) != "x-emmer-decision: never_fits\nx-emmer-limit: out-day\n" {
			t.Errorf("%+v", d)
		}
	}
	reply.Max[1] = 4000
	if d := p.Deny(c, reply); !strings.Contains(d.Refusal.Message, "the limit out-day never has more than 4000 output tokens") {
		t.Errorf("of a limit that an override lowered: %s", d.Refusal.Message)
	}
	over := compiled(t, "models", `{"m": {"price": {"input": "9000000", "output": "9000000"}}}`, "limits",
		`[{"name": "eur", "count": "cost", "max": "9000000", "window": {"calendar": "year"}}]`)
	p, refusal := Build(over, dialect.OpenAIChat, Caller{}, []byte(`{"model": "m", "max_tokens": 9007199254740991, `+hello+`}`), now)
	if refusal == nil || p.Never != 0 || !strings.Contains(refusal.Message, "the limit eur never has more than 9000000 EUR") {
		t.Errorf("a cost beyond all numbers: %+v", refusal)
	}
}

func TestRefusalsWithoutStore(t *testing.T) {
	d := StoreUnavailable()
	if d.Refusal.HTTPStatus() != 503 || headersOf(d.Headers) != "x-emmer-decision: unavailable\nretry-after: 1\nretry-after-ms: 1000\n" {
		t.Errorf("%+v", d)
	}
	for _, x := range []struct {
		r        dialect.Refusal
		status   int
		decision string
	}{
		{UnknownRoute("/v1/x"), 404, "not_found"}, {BodyTooLarge(1 << 20), 413, "too_large"}, {BodyMissing(), 400, "bad_request"},
		{UnsupportedEncoding("br"), 415, "unsupported"}, {UnsupportedType("text/plain"), 415, "unsupported"},
		{Misconfigured(), 503, Unavailable}, {Internal(), 500, "internal"},
		{FromFault(&dialect.Fault{Status: 413, Code: "c", Message: "m"}), 413, "too_large"},
		{FromFault(&dialect.Fault{Status: 400, Code: "c", Message: "m"}), 400, "bad_request"},
	} {
		d := Refuse(nil, x.r)
		if d.Refusal.HTTPStatus() != x.status || d.Decision() != x.decision || x.r.Code == "" || x.r.Message == "" || d.By != -1 {
			t.Errorf("%+v: %s", d, d.Decision())
		}
		if hasRetry := strings.Contains(headersOf(d.Headers), "retry-after"); hasRetry != (x.status == 503) {
			t.Errorf("%d with retry-after %v", x.status, hasRetry)
		}
	}
	p := build(t, compiled(t), nil, `{"model": "m-1", `+hello+`}`)
	for _, r := range []bucket.ReserveReply{{}, {Outcome: bucket.Settled, By: -1}, {Outcome: bucket.Denied, By: 7}, {Outcome: bucket.NeverFits, By: -1}} {
		if d := p.Deny(nil, r); d.Refusal.HTTPStatus() != 503 {
			t.Errorf("%+v: %+v", r, d)
		}
	}
}

// Fractions of big numbers say which limit is closest to its end.
func TestTheLimitClosestToItsEnd(t *testing.T) {
	source := rand.New(rand.NewPCG(5, 6))
	p := &Plan{Items: make([]bucket.Item, 2)}
	for range 20_000 {
		r := bucket.ReserveReply{}
		var share [2]*big.Rat
		for i := range share {
			most := bucket.Amount(source.Int64N(1 << source.Int64N(53)))
			left := most - bucket.Amount(source.Int64N(1<<source.Int64N(53)))
			r.Max, r.Remaining = append(r.Max, most), append(r.Remaining, left)
			share[i] = big.NewRat(int64(max(left, 0)), int64(max(most, 1)))
		}
		if got, want := p.tighter(0, 1, r), share[0].Cmp(share[1]) < 0; got != want {
			t.Fatalf("%v left of %v: %v, want %v", r.Remaining, r.Max, got, want)
		}
	}
}

// A big number says how long a bucket takes to be full.
func TestResetOfBuckets(t *testing.T) {
	source := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		l := bucket.Limit{Kind: bucket.TokenBucket, Rate: 1 + bucket.Amount(source.Int64N(1<<source.Int64N(53))),
			Per: 1 + bucket.Millis(source.Int64N(86_400_000)), Burst: bucket.Amount(source.Int64N(1 << source.Int64N(53)))}
		left := l.Burst - bucket.Amount(source.Int64N(1<<source.Int64N(53)))
		want := new(big.Int).Mul(big.NewInt(int64(l.Burst-left)), big.NewInt(int64(l.Per)))
		want.Add(want, big.NewInt(int64(l.Rate)-1)).Div(want, big.NewInt(int64(l.Rate)))
		if most := big.NewInt(int64(longest)); want.Cmp(most) > 0 {
			want = most
		}
		if got := reset(l, left, now); int64(got) != want.Int64() {
			t.Fatalf("%+v with %d left: %d, want %d", l, left, got, want)
		}
	}
}

// What was just taken counts in a rolling window until its cell has passed.
func TestResetOfRollingWindows(t *testing.T) {
	l := bucket.Limit{Kind: bucket.RollingWindow, Max: 100, Window: 3_600_000, Cell: 60_000}
	for at, want := range map[bucket.Millis]bucket.Millis{now: 3_660_000, now + 1: 3_659_999, now + 59_999: 3_600_001} {
		if got := reset(l, 99, at); got != want {
			t.Errorf("%d ms into a cell: %d, want %d", at-now, got, want)
		}
		if got := reset(l, 100, at); got != 0 {
			t.Errorf("nothing was taken, and it is full in %d", got)
		}
	}
}

func TestSpans(t *testing.T) {
	for ms, want := range map[bucket.Millis]string{0: "0s", -5: "0s", 120: "120ms", 1000: "1s", 1500: "1.5s", 360_000: "6m0s", 86_400_000: "24h0m0s", bucket.MaxAmount: span(longest)} {
		if got := span(ms); got != want {
			t.Errorf("%d is %s, want %s", ms, got, want)
		}
		if d, err := time.ParseDuration(span(ms)); err != nil || d < 0 {
			t.Errorf("%s: %v", span(ms), err)
		}
	}
}

func TestMoneyInWords(t *testing.T) {
	eur, jpy := config.Currency{Code: "EUR", Unit: 1_000_000_000}, config.Currency{Code: "JPY", Unit: 1_000_000}
	for _, x := range []struct {
		m    bucket.Money
		c    config.Currency
		want string
	}{{0, eur, "0 EUR"}, {1, eur, "0.000000001 EUR"}, {50_000_000_000, eur, "50 EUR"}, {2_500_000_000, eur, "2.5 EUR"}, {1_000_010, jpy, "1.00001 JPY"}} {
		got := money(x.m, x.c)
		if got != x.want {
			t.Errorf("%d is %s, want %s", x.m, got, x.want)
		}
		back, err := bucket.ParseMoney(strings.Fields(got)[0], x.c.Unit)
		if err != nil || back != x.m {
			t.Errorf("%s reads as %d, %v", got, back, err)
		}
	}
}
