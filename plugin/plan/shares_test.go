package plan

import (
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

// 540 and 6 a minute for the classes, of which search owns 300 and batch 150; 60 are kept for admin.
const shareLimits = `[{"name": "provider", "by": ["model"], "count": "requests", "bucket": {"rate": "750/m", "burst": 750}, "headroom": "20%",
	"reserved": {"admin": "10%"}, "shares": {"search": "50%", "batch": {"part": "25%", "burst": 150}}, "warn": ["50%"]}]`

const shareClasses = `{"key": {"header": "x-key", "missing": "pass"}, "class": {"header": "x-class", "one_of": ["search", "batch", "admin", "other"], "missing": "pass"}}`

// TestShareOfTheCaller gives each call the bucket of its class, and says what that class can have.
func TestShareOfTheCaller(t *testing.T) {
	c := compiled(t, "identity", shareClasses, "limits", shareLimits)
	for _, x := range []struct {
		class string
		most  bucket.Amount
		of    string
	}{
		{"search", 270 + 120, `390 requests for class "search"`},
		{"batch", 150 + 120, `270 requests for class "batch"`},
		{"admin", 60 + 120, `180 requests for class "admin"`},
		{"other", 120, `120 requests for class "other"`},
		{"", 120, "120 requests, and"},
	} {
		p := build(t, c, []string{"k", x.class}, `{"model": "m-1", `+hello+`}`)
		it := p.Items[0]
		if it.Limit.Kind != bucket.SharedBucket || it.Limit.Share != x.class || it.Limit.Pool != c.Limits[0].Pool ||
			it.Limit.Entity != "model=m-1" || it.Amount != 1 || it.Limit.Check() != nil {
			t.Fatalf("%q: %+v", x.class, it)
		}
		if most := capacity(&it.Limit); most != x.most {
			t.Errorf("%q can have %d, want %d", x.class, most, x.most)
		}
		d := p.Deny(c, bucket.ReserveReply{Outcome: bucket.Denied, Now: now, By: 0, Retry: 700, Remaining: []bucket.Amount{0}})
		if !strings.Contains(d.Refusal.Message, "The limit provider has 0 requests left of "+x.of) || d.Retry != 700 || d.Limit != "provider" {
			t.Errorf("%q is told %q", x.class, d.Refusal.Message)
		}
		never := p.Deny(c, bucket.ReserveReply{Outcome: bucket.NeverFits, Now: now, By: 0, Remaining: []bucket.Amount{0}})
		if want, _, _ := strings.Cut(x.of, ", and"); never.Refusal.Message != "This call needs up to 1 request, and the limit provider never has more than "+want+"." {
			t.Errorf("%q is told %q", x.class, never.Refusal.Message)
		}
		for _, items := range [][]bucket.Item{p.Nothing(), p.Actual(dialect.Usage{Input: 1})} {
			if items[0].Limit != it.Limit {
				t.Errorf("%q settles with %+v", x.class, items[0].Limit)
			}
		}
	}
}

// TestHeadersOfAShare shows a class what it can count on, and how long that takes to come back: by the
// refill of its own, or by that of all where it owns nothing. What others left for now, it can't count on.
func TestHeadersOfAShare(t *testing.T) {
	c := compiled(t, "identity", shareClasses, "limits", shareLimits)
	for _, x := range []struct {
		class            string
		left             bucket.Amount
		limit, remaining string
		reset, warn      string
	}{
		{"search", 389, "390", "389", "223ms", ""},
		{"search", 390, "390", "390", "0s", ""},
		{"search", 400, "390", "390", "0s", ""},
		{"search", -10, "390", "0", "1m28.889s", "provider 50%"},
		{"batch", 135, "270", "135", "1m0s", "provider 50%"},
		{"admin", 120, "180", "120", "1m0s", ""},
		{"other", 110, "120", "110", "1.112s", ""},
	} {
		p := build(t, c, []string{"k", x.class}, `{"model": "m-1", `+hello+`}`)
		got := headersOf(p.Headers(bucket.ReserveReply{Outcome: bucket.Granted, Now: now, By: -1, Remaining: []bucket.Amount{x.left}}))
		want := "x-ratelimit-limit-requests: " + x.limit + "\nx-ratelimit-remaining-requests: " + x.remaining +
			"\nx-ratelimit-reset-requests: " + x.reset + "\nx-emmer-decision: granted\n"
		if x.warn != "" {
			want += "x-emmer-warn: " + x.warn + "\n"
		}
		if got != want {
			t.Errorf("%s with %d left:\n%swant\n%s", x.class, x.left, got, want)
		}
	}
}

// TestClassesInByAndInShares keeps one bucket for each class apart from one that classes share.
func TestClassesInByAndInShares(t *testing.T) {
	c := compiled(t, "identity", shareClasses, "limits", `[
		{"name": "a", "count": "tokens", "bucket": {"rate": "10/s", "burst": 20}, "shares": {"search": "50%", "batch": "25%"}},
		{"name": "b", "by": ["class"], "count": "tokens", "bucket": {"rate": "10/s", "burst": 20}}]`)
	p := build(t, c, []string{"k", "batch"}, `{"model": "m-1", "max_tokens": 5, `+hello+`}`)
	if len(p.Items) != 2 || p.Items[0].Limit.Share != "batch" || p.Items[1].Limit.Share != "" || p.Items[1].Limit.Entity != "class=batch" ||
		p.Items[0].Limit.Entity != "" || p.Never >= 0 {
		t.Errorf("%+v", p.Items)
	}
}
