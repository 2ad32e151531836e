package config

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/tokenizer"
)

// sections of a small valid document, in order.
var sections = []string{"version", "currency", "store", "hold", "body", "lease", "failure", "identity", "routes", "models",
	"unknown_model", "targets", "limits", "kill", "park"}

var base = map[string]string{
	"version":  `1`,
	"currency": `"EUR"`,
	"store":    `{"cluster": "bridge", "token": "${TOKEN}"}`,
	"identity": `{"org": {"value": "acme"}, "class": {"header": "x-class", "one_of": ["fast", "slow"], "default": "fast"}}`,
	"models":   `{"m-1": {"aliases": ["m-one"], "price": {"input": "1", "output": "2"}}, "m-2": {}}`,
	"targets":  `{"east": {"provider": "acme", "models": {"m-1": {}}}, "west": {"provider": "umbra"}}`,
	"limits":   `[{"name": "tpm", "by": ["org"], "count": "tokens", "bucket": {"rate": "60000/m", "burst": 90000}}]`,
}

// doc is the small document with some sections replaced, left out (""), or added.
func doc(changes ...string) string {
	of := map[string]string{}
	for k, v := range base {
		of[k] = v
	}
	order := append([]string{}, sections...)
	for i := 0; i+1 < len(changes); i += 2 {
		if _, known := of[changes[i]]; !known && !within(strings.Join(order, " "), changes[i]) {
			order = append(order, changes[i])
		}
		of[changes[i]] = changes[i+1]
	}
	var parts []string
	for _, name := range order {
		if of[name] != "" {
			parts = append(parts, `"`+name+`": `+of[name])
		}
	}
	return "{" + strings.Join(parts, ",\n") + "}"
}

func env(name string) (string, bool) {
	switch name {
	case "TOKEN":
		return "s3cret", true
	case "EMPTY":
		return "", true
	}
	return "", false
}

func parse(t *testing.T, text string) *Compiled {
	t.Helper()
	c, err := Parse([]byte(text), env)
	if err != nil {
		t.Fatalf("%v\nin %s", err, text)
	}
	return c
}

func TestEverySettingOfThisVersion(t *testing.T) {
	text, err := os.ReadFile("testdata/full.json")
	if err != nil {
		t.Fatal(err)
	}
	c := parse(t, string(text))

	if c.Currency != (Currency{"EUR", 1_000_000_000}) || c.KillPoll != 500 || c.Park != (Park{500, 32 << 20}) || c.Failure != FailOpen || c.LocalShare != 20 || c.UnknownRoute != Pass || c.Background != Pass ||
		c.Answer != (Answer{false, 128 << 10, 250}) {
		t.Errorf("top: %+v", c)
	}
	wantStore := Store{Cluster: "emmer-bridge", Protocol: "upstash", Token: "s3cret", Timeout: 80, Namespace: "emmer_eu", Shard: ShardOrg}
	if !reflect.DeepEqual(c.Store, wantStore) {
		t.Errorf("store: %+v", c.Store)
	}
	if c.Hold != HoldFlag || c.Mismatch != MismatchPass || c.Body != (Body{256 << 10, 64, 4 << 20, 512 << 10}) || c.Lease != (Lease{90_000, 600_000, 9_000}) {
		t.Errorf("hold %v %v, body %+v, lease %+v", c.Hold, c.Mismatch, c.Body, c.Lease)
	}

	root := []string{"metadata", "filter_metadata", "envoy.filters.http.jwt_authn"}
	wantClaims := [][]string{append(root, "payload", "tenant_id"), append(root[:3:3], "payload", "role"),
		append(root[:3:3], "payload", "plan"), append(root[:3:3], "payload", "budget")}
	if !reflect.DeepEqual(c.Claims, wantClaims) {
		t.Errorf("claims: %q", c.Claims)
	}
	wantIdentities := []Identity{
		{Name: "org", Sources: []Source{{Value: "acme"}}},
		{Name: "tenant", Sources: []Source{{Claim: 1}}, Missing: Deny},
		{Name: "key", Sources: []Source{{Header: "authorization", Strip: "Bearer", Hash: true}, {Header: "x-api-key", Hash: true}, {Query: "key", Hash: true}}},
		{Name: "team", Sources: []Source{{Header: "x-team"}, {Claim: 2}}, Missing: Pass},
		{Name: "class", Sources: []Source{{Header: "x-traffic-class"}}, OneOf: []string{"interactive-search", "batch-ingestion", "admin"},
			Default: "interactive-search", Guards: []Guard{{"admin", 2, "gateway-admin"}}},
	}
	if !reflect.DeepEqual(c.Identities, wantIdentities) {
		t.Errorf("identities:\n%+v\nwant\n%+v", c.Identities, wantIdentities)
	}

	if len(c.Models) != 8 || c.UnknownModel != c.Models[0] {
		t.Fatalf("models: %+v", c.Models)
	}
	m := c.Models[0]
	if m.Name != "gpt-4o" || m.Context != 128000 || m.MaxOutput != 16384 || m.DefaultOutput != 2048 || m.Priced != PricedInput|PricedOutput ||
		m.Price != (bucket.Price{Input: 2_500_000_000, CachedInput: 1_250_000_000, CacheWrite: 2_500_000_000, CacheHour: 2_500_000_000,
			AudioInput: 2_500_000_000, Output: 10_000_000_000, AudioOutput: 10_000_000_000}) ||
		m.Encoding.Name() != "o200k_base" || !reflect.DeepEqual(m.Aliases, []string{"gpt-4o-2024-11-20", "4o"}) {
		t.Errorf("gpt-4o: %+v", m)
	}
	if m := c.Models[1]; m.MaxOutput != 512 || m.DefaultOutput != 512 || m.Priced != 0 || m.Encoding.Name() != "approx-claude" {
		t.Errorf("claude-tiny: %+v", m)
	}
	images := tokenizer.RatesOf("gpt-4-turbo")
	images.ImageScheme, images.ImageBase, images.ImageTile, images.ImageLow, images.ImageUnknown = tokenizer.ImageFixed, 1000, 0, 100, 2000
	if m := c.Models[2]; m.Encoding.Name() != "cl100k_base" || m.Rates != images {
		t.Errorf("my-deployment: %s, %+v, want %+v", m.Encoding.Name(), m.Rates, images)
	}
	all := tokenizer.Rates{
		Message: 5, Name: -1, Reply: 7, Tools: 100, Tool: 8, ToolDescription: 1, Properties: 2, Property: 4, PropertyDescription: 3,
		Enum: -2, EnumValue: 6, Format: 9, ImageScheme: tokenizer.ImagePatches28, ImageScale: 1200, ImageEdge: 1568,
		ImagePatches: 1500, ImageHigh: 2500, ImageUnknown: 1600, AudioSecond: 25, VideoSecond: 250, Page: 1200, FileUnknown: 12000,
	}
	if m := c.Models[3]; m.Encoding.Name() != "approx-gemma" || m.Rates != all {
		t.Errorf("house-model: %s, %+v, want %+v", m.Encoding.Name(), m.Rates, all)
	}
	for i, want := range []struct {
		price  bucket.Price
		priced Priced
	}{
		{bucket.Price{Input: 3_000_000_000, CachedInput: 300_000_000, CacheWrite: 3_750_000_000, CacheHour: 6_000_000_000,
			AudioInput: 3_000_000_000, Output: 15_000_000_000, AudioOutput: 15_000_000_000, Search: 10_000_000}, PricedInput | PricedOutput},
		{bucket.Price{Input: 4_000_000_000, CachedInput: 4_000_000_000, CacheWrite: 4_000_000_000, CacheHour: 4_000_000_000,
			AudioInput: 32_000_000_000, Output: 16_000_000_000, AudioOutput: 64_000_000_000, AudioMinute: 6_000_000}, PricedInput | PricedOutput | PricedAudio},
		{bucket.Price{Image: 40_000_000}, PricedImages},
		{bucket.Price{SearchUnit: 2_000_000}, PricedUnits},
	} {
		if m := c.Models[4+i]; m.Price != want.price || m.Priced != want.priced {
			t.Errorf("%s: %+v %b", m.Name, m.Price, m.Priced)
		}
	}

	if len(c.Targets) != 2 {
		t.Fatalf("targets: %+v", c.Targets)
	}
	if e := c.Targets[0]; e.Name != "openai-eu" || e.Provider != "openai" || e.Region != "eu" || e.Cached != CachedApart || !e.AskUsage || len(e.Models) != 2 ||
		e.Models[0].Model != m || e.Models[0].Price != m.Price || e.Models[0].Priced != m.Priced || e.Models[0].SendName != "" ||
		e.Models[1].SendName != "my-deployment" || e.Models[1].Price.Output != 600_000_000 || e.Models[1].Price.CachedInput != 150_000_000 {
		t.Errorf("openai-eu: %+v", e)
	}
	if d := c.Targets[1]; d.Name != "spare" || d.Cached != CachedAsUsual || d.AskUsage || d.Models != nil {
		t.Errorf("spare: %+v", d)
	}

	amsterdam, err := time.LoadLocation("Europe/Amsterdam")
	if err != nil {
		t.Fatal(err)
	}
	winter := time.Date(2031, 4, 25, 0, 0, 0, 0, amsterdam).UnixMilli()
	limits := c.Limits
	if len(limits) != 9 {
		t.Fatalf("%d limits", len(limits))
	}
	if b := limits[4].Window.Bounds(bucket.Millis(winter)); b[2] != bucket.Millis(time.Date(2031, 5, 1, 0, 0, 0, 0, amsterdam).UnixMilli()) {
		t.Errorf("the month after 25 April 2031 begins at %d", b[2])
	}
	for _, l := range limits {
		l.Window.Zone = nil
	}
	tenant, key, class := Key{"tenant", 1}, Key{"key", 2}, Key{"class", 4}
	want := []*Limit{
		{Name: "key-tpm", By: []Key{key}, For: []Match{{class, []string{"interactive-search", "batch-ingestion"}}, {Key{"model", -1}, []string{"gpt-4o"}}},
			Count: CountTokens, Kind: bucket.TokenBucket, Rate: 1, Per: 1, Burst: 90000, Failure: FailClosed, Status: 429,
			Queue: &Queue{Class: 4, Classes: []Wait{{"interactive-search", 50}, {"batch-ingestion", 300_000}}}},
		{Name: "rps", Count: CountRequests, Kind: bucket.TokenBucket, Rate: 1, Per: 100, Burst: 20, Lost: bucket.Charge, Failure: FailOpen, Status: 503, Queue: &Queue{Any: 2000}},
		{Name: "provider", By: []Key{{"target", -1}, {"model", -1}, {"provider", -1}, {"dialect", -1}}, Count: CountInputTokens,
			Kind: bucket.CalendarWindow, Max: 100_000_000, Window: bucket.Calendar{Unit: bucket.Day, Starts: 1}, Period: "day@UTC", Failure: FailLocal, Local: 20, Status: 429},
		{Name: "out", By: []Key{tenant}, Count: CountOutputTokens, Kind: bucket.CalendarWindow, Max: 4_194_304,
			Window: bucket.Calendar{Unit: bucket.Week, Starts: 7}, Period: "week@Asia/Kathmandu/7", Failure: FailLocal, Local: 5, Status: 429},
		{Name: "tenant-month", By: []Key{tenant}, For: []Match{{Key{"model", -1}, []string{"gpt-4o"}}}, Count: CountCost, Kind: bucket.CalendarWindow,
			Max: 50_000_000_000, Claimed: &Claimed{Claim: 3, Tiers: []Tier{{"standard", 50_000_000_000}, {"enterprise", 500_000_000_000}}}, Window: bucket.Calendar{Unit: bucket.Month, Starts: 1}, Period: "month@Europe/Amsterdam", Lost: bucket.Charge, Failure: FailClosed, Status: 402},
		{Name: "key-hour", By: []Key{key}, Count: CountCost, For: []Match{{Key{"model", -1}, []string{"gpt-4o"}}}, Kind: bucket.RollingWindow,
			Max: 5_000_000_000, Claimed: &Claimed{Claim: 4, AtMost: 20_000_000_000}, Span: 3_600_000, Cell: 60_000, Lost: bucket.Charge, Failure: FailOpen, Status: 402},
		{Name: "key-parallel", By: []Key{key}, Count: CountConcurrency, Kind: bucket.Concurrency, Max: 20, Shadow: true, Warn: []int{80, 95}, Failure: FailOpen, Status: 429},
		{Name: "burn", By: []Key{tenant}, For: []Match{{Key{"model", -1}, []string{"gpt-4o"}}}, Count: CountCost, Kind: bucket.Burn, Max: 10_000_000_000,
			Rule: &bucket.BurnRule{Minutes: 2, Reason: "limit burn: above 10/m for 2m"}, Failure: FailOpen, Status: 403},
		{Name: "provider-tpm", By: []Key{{"target", -1}, {"model", -1}}, Count: CountTokens, Kind: bucket.SharedBucket, Class: 4, Failure: FailOpen, Status: 429,
			Pool: &bucket.Pool{Rate: 570, Per: 20, Burst: 1_710_000, Shares: []bucket.Share{
				{Name: "admin", Rate: 30, Burst: 90_000, Borrow: true, Reserved: true},
				{Name: "interactive-search", Rate: 399, Burst: 1_110_000, Borrow: true},
				{Name: "batch-ingestion", Rate: 171, Burst: 600_000, Borrow: true}}}},
	}
	for i := range want {
		want[i].OfOrg = len(want[i].By) > 0 && want[i].By[0].Identity >= 0 // a tenant or a key
		if !reflect.DeepEqual(limits[i], want[i]) {
			t.Errorf("limit %d:\n%+v\nwant\n%+v", i, limits[i], want[i])
		}
	}
}

func TestDefaults(t *testing.T) {
	c := parse(t, `{"version": 1, "currency": "JPY", "store": {"cluster": {"property": ["xds", "cluster_name"]}}, "models": {"m": {}}}`)
	if !reflect.DeepEqual(c.Store, Store{ClusterProperty: []string{"xds", "cluster_name"}, Protocol: "upstash", Timeout: 50, Namespace: "emmer"}) {
		t.Errorf("store: %+v", c.Store)
	}
	if c.Currency.Unit != 1_000_000 {
		t.Errorf("yen have no minor unit, so their money counts in millionths, not in %d", c.Currency.Unit)
	}
	if c.Hold != HoldPair || c.Mismatch != MismatchDeny || c.Body != (Body{1 << 20, 256, 8 << 20, 1 << 20}) || c.Lease != (Lease{60_000, 900_000, 6_000}) ||
		c.Failure != FailClosed || c.LocalShare != 10 || c.UnknownRoute != Deny || c.Background != Deny || c.KillPoll != 250 || c.Park != (Park{1000, 64 << 20}) || c.UnknownModel != nil || len(c.Limits) != 0 {
		t.Errorf("%+v", c)
	}
	if len(c.Targets) != 1 || c.Targets[0].Name != "default" || c.Targets[0].Cached != CachedAsUsual {
		t.Errorf("targets: %+v", c.Targets)
	}
	if m := c.Models[0]; m.DefaultOutput != 1024 || m.Encoding == nil {
		t.Errorf("model: %+v", m)
	}
}

// A cost limit's unit: 50 EUR are 50 * 10^9, 0.5 EUR an hour are 1250 in 9 ms.
func TestMoneyOfLimits(t *testing.T) {
	const models = `{"m": {"price": {"input": "1", "output": "0"}}}`
	c := parse(t, doc("models", models, "targets", "", "limits",
		`[{"name": "b", "count": "cost", "bucket": {"rate": "0.50/h", "burst": "0.000000001"}},
		{"name": "w", "count": "cost", "max": "9007199.254740991", "window": {"calendar": "year", "starts": 4}}]`))
	if l := c.Limits[0]; l.Rate != 1250 || l.Per != 9 || l.Burst != 1 || l.Status != 429 || l.Lost != bucket.Refund {
		t.Errorf("%+v", l)
	}
	if l := c.Limits[1]; l.Max != bucket.MaxAmount || l.Period != "year@UTC/4" {
		t.Errorf("%+v", l)
	}
}

// A rolling window is cut into 50 to 60 cells that are equally long.
func TestCellsOfRollingWindows(t *testing.T) {
	for window, cell := range map[string]bucket.Millis{
		"1s": 20, "7s": 125, "31s": 620, "1m": 1000, "1h": 60_000, "24h": 24 * 60_000, "30d": 12 * 3_600_000, "2591999s": 51_839_980,
	} {
		c := parse(t, doc("limits", `[{"name": "w", "count": "tokens", "max": 1, "window": {"rolling": "`+window+`"}}]`))
		if l := c.Limits[0]; l.Kind != bucket.RollingWindow || l.Cell != cell || l.Span%l.Cell != 0 || l.Span/l.Cell < 50 || l.Span/l.Cell > 60 || l.Lost != bucket.Refund {
			t.Errorf("%s: %d ms in cells of %d, %d of them", window, l.Span, l.Cell, l.Span/l.Cell)
		}
	}
}

func TestVariables(t *testing.T) {
	for text, want := range map[string]string{
		`x`: "x", `${TOKEN}`: "s3cret", `a${TOKEN}b${TOKEN}`: "as3cretbs3cret", `$${TOKEN}`: "${TOKEN}", `$TOKEN`: "$TOKEN", `a$`: "a$",
		`$$${TOKEN}`: "$${TOKEN}", `$${${TOKEN}}`: "${s3cret}",
	} {
		c := parse(t, doc("store", `{"cluster": "`+text+`"}`))
		if c.Store.Cluster != want {
			t.Errorf("%s became %q, want %q", text, c.Store.Cluster, want)
		}
	}
}

// What a fault shows goes to logs.
func TestSecretsAreNotShown(t *testing.T) {
	for _, store := range []string{
		`{"cluster": "b", "token": "a\u0001-hidden"}`, `{"cluster": "b", "token": 4711471147114711}`, `{"cluster": "b", "token": true}`,
		`{"cluster": "b", "namespace": "${TOKEN}!"}`,
	} {
		_, err := Parse([]byte(doc("store", store)), env)
		if err == nil || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "4711") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", store, err)
		}
	}
}

func TestCaps(t *testing.T) {
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	many := `[` + strings.TrimSuffix(strings.Repeat(`{"name": "x", "count": "tokens"},`, maxLimits+1), ",") + `]`
	for text, want := range map[string]string{
		deep:                               "config: found values nested deeper than 16; want at most that",
		strings.Repeat(" ", maxDocument+1): "config: found 1048577 bytes; want at most 1048576",
		"{\"version\": 1, \xff}":           "config: found bytes that are not UTF-8; want JSON in UTF-8",
		"{":                                "config: found text that is not JSON; want a JSON object",
		"":                                 "config: found text that is not JSON; want a JSON object",
		"[1]":                              "config: found a list; want a JSON object",
		doc("limits", many):                "limits: found 65 limits; want at most 64",
	} {
		_, err := Parse([]byte(text), env)
		if err == nil || err.Error() != want {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

func TestFaultsAreOfTypeFaults(t *testing.T) {
	_, err := Parse([]byte(doc("version", "2")), nil)
	var faults Faults
	if !errors.As(err, &faults) || len(faults) != 2 || faults[0].Path != "version" || faults[1].Path != "store.token" {
		t.Errorf("%#v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(doc()))
	if full, err := os.ReadFile("testdata/full.json"); err == nil {
		f.Add(full)
	}
	f.Add([]byte(doc("limits", claimedLimits)))
	for _, c := range slices.Concat(faultCases, shareFaults) {
		f.Add([]byte(doc(c.section, c.text)))
	}
	f.Add([]byte(`{"models":{"":{}, "":{}}, "limits":[null,{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text, env)
		if (c == nil) == (err == nil) {
			t.Fatalf("%v with error %v", c, err)
		}
		again, second := Parse(text, env)
		if err != nil {
			if err.Error() != second.Error() {
				t.Fatalf("two readings:\n%v\n%v", err, second)
			}
			return
		}
		if len(again.Limits) != len(c.Limits) {
			t.Fatal("two readings differ")
		}
		for _, l := range c.Limits {
			b := bucket.Limit{Name: l.Name, Period: l.Period, Kind: l.Kind, Lost: l.Lost, Rate: l.Rate, Per: l.Per, Burst: l.Burst, Max: l.Max,
				Window: l.Span, Cell: l.Cell, Rule: l.Rule, Flag: "global:all", Pool: l.Pool}
			if l.Kind == bucket.CalendarWindow {
				b.Bounds = l.Window.Bounds(1_900_000_000_000)
			}
			if err := b.Check(); err != nil {
				t.Fatalf("limit %s passed but can't be carried out: %v", l.Name, err)
			}
			if l.Claimed != nil && l.Claimed.Claim == 0 {
				t.Fatalf("limit %s depends on no claim", l.Name)
			}
			if l.Count == 0 || l.Status == 0 {
				t.Fatalf("limit without count or status: %+v", l)
			}
		}
		for _, m := range c.Models {
			if m.Encoding == nil || m.DefaultOutput < 1 {
				t.Fatalf("model %+v", m)
			}
			if got, known := c.Model(m.Name); got != m || !known {
				t.Fatalf("%q is not found under its own name", m.Name)
			}
		}
	})
}
