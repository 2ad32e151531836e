package config

import (
	"reflect"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

const claimedLimits = `[
	{"name": "figure", "count": "tokens", "max": {"jwt": ["payload", "limit"], "default": 50, "at_most": 500}, "window": {"calendar": "day"}},
	{"name": "open", "count": "concurrency", "max": {"jwt": ["payload", "limit"], "default": 5}},
	{"name": "money", "for": {"model": "m-1"}, "count": "cost", "max": {"jwt": ["payload", "eur"], "default": "50", "at_most": "500"}, "window": {"rolling": "1h"}},
	{"name": "tier", "for": {"model": "m-1"}, "count": "cost", "max": {"tier": {"jwt": ["payload", "plan"]}, "standard": "50", "enterprise": "500", "default": "5"}, "window": {"calendar": "month"}}]`

func TestMaximaOfClaims(t *testing.T) {
	c := parse(t, doc("limits", claimedLimits))
	const eur = bucket.Amount(1_000_000_000)
	want := []Limit{
		{Max: 50, Claimed: &Claimed{Claim: 1, AtMost: 500}},
		{Max: 5, Claimed: &Claimed{Claim: 1, AtMost: bucket.MaxSlots}},
		{Max: 50 * eur, Claimed: &Claimed{Claim: 2, AtMost: 500 * eur}},
		{Max: 5 * eur, Claimed: &Claimed{Claim: 3, Tiers: []Tier{{"standard", 50 * eur}, {"enterprise", 500 * eur}}}},
	}
	for i, w := range want {
		if l := c.Limits[i]; l.Max != w.Max || !reflect.DeepEqual(l.Claimed, w.Claimed) {
			t.Errorf("%s: %d, %+v", l.Name, l.Max, l.Claimed)
		}
	}
	for _, x := range []struct {
		limit int
		claim string
		most  bucket.Amount
		ok    bool
	}{
		{0, "120", 120, true}, {0, "0", 0, true}, {0, "1.2e2", 120, true}, {0, "500", 500, true}, {0, "501", 500, true}, {0, "999999999999999999", 500, true},
		{0, "1.5", 0, false}, {0, "-1", 0, false}, {0, "", 0, false}, {0, "many", 0, false}, {0, "\x01", 0, false}, {0, "0x10", 0, false},
		{1, "3000000000", bucket.MaxSlots, true},
		{2, "0.5", eur / 2, true}, {2, "0", 0, true}, {2, "600", 500 * eur, true}, {2, "1e3", 0, false}, {2, "-2", 0, false}, {2, "0.0000000001", 0, false}, {2, "NaN", 0, false},
		{3, "standard", 50 * eur, true}, {3, "enterprise", 500 * eur, true}, {3, "Standard", 0, false}, {3, "default", 0, false}, {3, "", 0, false}, {3, "50", 0, false},
	} {
		if most, ok := c.MaxOf(c.Limits[x.limit], x.claim); most != x.most || ok != x.ok {
			t.Errorf("%s of %q: %d, %v; want %d, %v", c.Limits[x.limit].Name, x.claim, most, ok, x.most, x.ok)
		}
	}
}

// Whatever a token says, the maximum is one that a store can keep.
func FuzzMaxOf(f *testing.F) {
	for _, s := range []string{"", "0", "120", "-1", "1e99", "0.5", "standard", "99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, claim string) {
		c := parse(t, doc("limits", claimedLimits))
		for _, l := range c.Limits {
			most, ok := c.MaxOf(l, claim)
			if most < 0 || int64(most) > l.mostAmount() || l.Claimed.AtMost > 0 && most > l.Claimed.AtMost || !ok && most != 0 {
				t.Fatalf("%s of %q: %d, %v", l.Name, claim, most, ok)
			}
		}
	})
}
