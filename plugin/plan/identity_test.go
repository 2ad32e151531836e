package plan

import (
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/plugin/config"
)

func identifying(t *testing.T, identity string) *config.Compiled {
	t.Helper()
	return compiled(t, "identity", identity)
}

// kHash is the first 16 bytes of SHA-256("K") in hex.
const kHash = "86be9a55762d316a3026c2836d044f5f"

func TestOneKeyIsOneIdentity(t *testing.T) {
	c := identifying(t, `{"key": [{"header": "authorization", "strip": "Bearer", "hash": true}, {"header": "x-api-key", "hash": true}, {"query": "key", "hash": true}]}`)
	for _, x := range []struct {
		name, path string
		headers    [][2]string
		want       string
		status     int
	}{
		{"bearer", "/v1", [][2]string{{"authorization", "Bearer K"}}, kHash, 0},
		{"any case and spaces", "/v1", [][2]string{{"Authorization", " bearer  K\t"}}, kHash, 0},
		{"tab", "/v1", [][2]string{{"authorization", "BEARER\tK"}}, kHash, 0},
		{"another header", "/v1", [][2]string{{"x-api-key", " K "}}, kHash, 0},
		{"query", "/v1?a=b&key=%4B&c", nil, kHash, 0},
		{"an encoded name", "/v1?ke%79=K", nil, kHash, 0},
		{"twice the same", "/v1?key=K&key=%4b", [][2]string{{"authorization", "Bearer K"}, {"authorization", "bearer  K"}}, kHash, 0},
		{"an empty line beside it", "/v1", [][2]string{{"authorization", ""}, {"authorization", "Bearer K"}}, kHash, 0},
		{"the first source wins", "/v1?key=other", [][2]string{{"x-api-key", "another"}, {"authorization", "Bearer K"}}, kHash, 0},
		{"an empty header yields nothing", "/v1?key=K", [][2]string{{"authorization", " "}, {"x-api-key", ""}}, kHash, 0},

		{"another scheme before it", "/v1", [][2]string{{"authorization", "x Bearer K"}}, "", 401},
		{"no scheme", "/v1", [][2]string{{"authorization", "K"}, {"x-api-key", "K"}}, "", 401},
		{"no token", "/v1", [][2]string{{"authorization", "Bearer "}}, "", 401},
		{"another scheme", "/v1", [][2]string{{"authorization", "Basic K"}}, "", 401},
		{"two tokens", "/v1", [][2]string{{"authorization", "Bearer K K"}}, "", 401},
		{"joined by a proxy", "/v1", [][2]string{{"authorization", "Bearer K,Bearer L"}}, "", 401},
		{"joined tokens", "/v1", [][2]string{{"authorization", "Bearer K,L"}}, "", 401},
		{"scheme run together", "/v1", [][2]string{{"authorization", "BearerK"}}, "", 401},
		{"nothing", "/v1", nil, "", 401},
		{"nothing but names alike", "/v1?keys=K&xkey=K#key=K", [][2]string{{"x-api-keys", "K"}}, "", 401},
		{"two lines", "/v1", [][2]string{{"authorization", "Bearer K"}, {"authorization", "Bearer L"}}, "", 400},
		{"two values in the query", "/v1?key=K&key=L", nil, "", 400},
		{"two values on a line", "/v1", [][2]string{{"x-api-key", "K, L"}}, "", 400},
	} {
		who, refusal := Identify(c, Head{Path: x.path, Headers: x.headers})
		status := 0
		if refusal != nil {
			status = refusal.HTTPStatus()
			if refusal.Code == "" || refusal.Message == "" {
				t.Errorf("%s: %+v", x.name, refusal)
			}
		}
		if got := who.Values[0]; status != x.status || got != x.want {
			t.Errorf("%s: %q, status %d; want %q, %d", x.name, got, status, x.want, x.status)
		}
	}
}

// C106: a filter that appends its header to what a client sent.
func TestConflictingHeaders(t *testing.T) {
	c := identifying(t, `{"tenant": {"header": "x-tenant"}}`)
	for _, x := range []struct {
		lines  []string
		want   string
		status int
	}{
		{[]string{"real"}, "real", 0}, {[]string{"real", "real"}, "real", 0}, {[]string{"real, real"}, "real", 0}, {[]string{"real,"}, "real", 0},
		{[]string{"victim, real"}, "", 400}, {[]string{"victim,real"}, "", 400}, {[]string{"victim", "real"}, "", 400}, {[]string{"real", "real, victim"}, "", 400},
		{[]string{","}, "", 401}, {[]string{""}, "", 401},
	} {
		var h Head
		for _, line := range x.lines {
			h.Headers = append(h.Headers, [2]string{"x-tenant", line})
		}
		who, refusal := Identify(c, h)
		status := 0
		if refusal != nil {
			status = refusal.HTTPStatus()
		}
		if who.Values[0] != x.want || status != x.status {
			t.Errorf("%q: %q, %d", x.lines, who.Values[0], status)
		}
	}
}

func TestClaimsDefaultsAndGuards(t *testing.T) {
	c := identifying(t, `{
		"org": {"value": "acme"},
		"tenant": {"jwt": ["payload", "tenant_id"]},
		"team": {"from": [{"jwt": ["payload", "team"]}, {"header": "x-team"}], "missing": "pass"},
		"class": {"header": "x-class", "one_of": ["fast", "slow", "admin"], "default": "fast", "guard": {"admin": {"jwt": ["payload", "role"], "equals": "gateway-admin"}}},
		"tier": {"header": "x-tier", "one_of": ["a", "b"], "missing": "pass", "guard": {"b": {"jwt": ["payload", "role"], "equals": "gateway-admin"}}}
	}`)
	if len(c.Claims) != 3 {
		t.Fatalf("%q", c.Claims)
	}
	tenant, team, admin := Claim{"t1", true}, Claim{"red", true}, Claim{"gateway-admin", true}
	none := Claim{}
	for _, x := range []struct {
		claims  []Claim
		headers [][2]string
		want    string
		status  int
	}{
		{[]Claim{tenant, team, none}, nil, "acme t1 red fast ", 0},
		{[]Claim{tenant, none, none}, [][2]string{{"x-team", "blue"}, {"x-class", "slow"}, {"x-tier", "a"}}, "acme t1 blue slow a", 0},
		{[]Claim{tenant, none, none}, [][2]string{{"x-class", "unheard"}}, "acme t1  fast ", 0},
		{[]Claim{tenant, none, none}, [][2]string{{"x-class", "admin"}}, "acme t1  fast ", 0},
		{[]Claim{tenant, none, {"admin", true}}, [][2]string{{"x-class", "admin"}}, "acme t1  fast ", 0},
		{[]Claim{tenant, none, {"gateway-admin", false}}, [][2]string{{"x-class", "admin"}}, "acme t1  fast ", 0},
		{[]Claim{tenant, none, admin}, [][2]string{{"x-class", "admin"}, {"x-tier", "b"}}, "acme t1  admin b", 0},
		{[]Claim{tenant, none, none}, [][2]string{{"x-tier", "b"}}, "acme t1  fast ", 403},
		{[]Claim{tenant, none, none}, [][2]string{{"x-tier", "c"}}, "acme t1  fast ", 403},
		{[]Claim{none, none, none}, nil, "acme    ", 401},
		{[]Claim{{"", true}, none, none}, nil, "acme    ", 401},
		{nil, nil, "acme    ", 401},
	} {
		who, refusal := Identify(c, Head{Headers: x.headers, Claims: x.claims})
		status := 0
		if refusal != nil {
			status = refusal.HTTPStatus()
		}
		if got := strings.Join(who.Values, " "); got != x.want || status != x.status {
			t.Errorf("%v %v: %q, %d; want %q, %d", x.claims, x.headers, got, status, x.want, x.status)
		}
	}
}

func TestLongValuesAreHashed(t *testing.T) {
	c := identifying(t, `{"team": {"header": "x-team"}}`)
	for n, want := range map[int]int{1: 1, 256: 256, 257: 39, 100_000: 39} {
		who, refusal := Identify(c, Head{Headers: [][2]string{{"x-team", strings.Repeat("a", n)}}})
		if refusal != nil || len(who.Values[0]) != want {
			t.Errorf("%d bytes became %d: %+v", n, len(who.Values[0]), refusal)
		}
	}
	one, _ := Identify(c, Head{Headers: [][2]string{{"x-team", strings.Repeat("a", 257) + "x"}}})
	two, _ := Identify(c, Head{Headers: [][2]string{{"x-team", strings.Repeat("a", 257) + "y"}}})
	if one.Values[0] == two.Values[0] {
		t.Error("two long values are one")
	}
}

func FuzzIdentify(f *testing.F) {
	c, err := config.Parse([]byte(`{"version": 1, "currency": "EUR", "store": {"cluster": "b"}, "models": {"m": {}}, "identity": {
		"key": [{"header": "authorization", "strip": "Bearer"}, {"header": "x-key"}, {"query": "key"}], "team": {"header": "x-team", "missing": "pass"}}}`), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("/v1?key=a%2", "Bearer K", "a,b", "")
	f.Add("?key=%zz&key=+", "", "", ",,")
	f.Fuzz(func(t *testing.T, path, authorization, key, team string) {
		who, refusal := Identify(c, Head{Path: path, Headers: [][2]string{{"authorization", authorization}, {"x-key", key}, {"x-team", team}}})
		if refusal != nil {
			return
		}
		if who.Values[0] == "" {
			t.Fatal("nobody passed as somebody")
		}
		for _, v := range who.Values {
			if len(v) > maxValue {
				t.Fatalf("%d bytes", len(v))
			}
		}
		if strings.ContainsAny(who.Values[1], ",") {
			t.Fatalf("a list passed as one value: %q", who.Values[1])
		}
	})
}
