package script

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:24])
}

func TestKeys(t *testing.T) {
	l := Layout{Namespace: "emmer"}
	month := bucket.Limit{Name: "tenant-month", Kind: bucket.CalendarWindow, Period: "month@Europe/Amsterdam", Entity: "acme"}
	for _, tt := range []struct{ got, want string }{
		{l.Ctl(), "emmer:1:{g}:ctl"},
		{l.Record("a_B-9"), "emmer:1:{g}:r:a_B-9"},
		{l.Record("a:b}"), "emmer:1:{g}:r:a%3Ab%7D"},
		{l.Limit(month), "emmer:1:{g}:l:tenant-month:w:month%40Europe%2FAmsterdam:acme"},
		{l.Limit(bucket.Limit{Name: "key-tpm", Kind: bucket.TokenBucket, Entity: "k 1"}), "emmer:1:{g}:l:key-tpm:b::k%201"},
		{Layout{Namespace: "a{b}", Tag: "x}{y"}.Ctl(), "a%7Bb%7D:1:{x%7D%7By}:ctl"},
		{l.Record(strings.Repeat("x", 64)), "emmer:1:{g}:r:" + strings.Repeat("x", 64)},
		{l.Record(strings.Repeat("x", 65)), "emmer:1:{g}:r:%h" + sum(strings.Repeat("x", 65))},
		{l.Record(strings.Repeat(":", 22)), "emmer:1:{g}:r:%h" + sum(strings.Repeat(":", 22))},
		{l.Overrides(), "emmer:1:{g}:ovr"},
		{OverrideField("tenant-month", "a|b"), "tenant-month|a%7Cb"},
		{l.Limit(bucket.Limit{Name: "h", Kind: bucket.RollingWindow, Window: 3_600_000, Cell: 300_000, Entity: "k"}), "emmer:1:{g}:l:h:r:3600000.300000:k"},
		{l.Limit(bucket.Limit{Name: "h", Kind: bucket.Concurrency, Entity: "k"}), "emmer:1:{g}:l:h:c::k"},
		{l.Limit(bucket.Limit{Name: "h", Kind: bucket.Burn, Entity: "k"}), "emmer:1:{g}:l:h:o::k"},
		{l.Limit(bucket.Limit{Name: "h", Kind: bucket.SharedBucket, Entity: "k"}), "emmer:1:{g}:l:h:s::k"},
		{KillField("global", "all"), "global:all"},
		{KillField("model", "org/model:free"), "model:org/model:free"},
		{KillField("tenant", "a b"), "tenant:a%20b"},
		{KillField("tenant", "a%20b"), "tenant:a%2520b"},
		{FieldOf("model:org/model:free"), "model:org/model:free"},
		{FieldOf("tenant:a b"), "tenant:a%20b"},
		{FieldOf("tenant:\xff"), "tenant:%FF"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

// Whatever an entity, a name or an id is, a key has the same number of separators, one pair of
// braces, a bounded length, and two texts have two keys.
func FuzzKeys(f *testing.F) {
	long := strings.Repeat("x", 9000)
	for _, s := range [][2]string{{"a", "b"}, {"", "a"}, {"a:b", "a%3Ab"}, {"{x}", "}{"}, {long, long + "y"}, {"\x00", "\xff"}, {"%h00", "%hff"}, {strings.Repeat(":", 40), strings.Repeat("%3A", 40)}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		l := Layout{Namespace: "n"}
		keys := func(text string) []string {
			return []string{
				Layout{Namespace: text}.Ctl(),
				l.Record(text),
				l.Limit(bucket.Limit{Name: text, Kind: bucket.TokenBucket, Entity: "e"}),
				l.Limit(bucket.Limit{Name: "n", Kind: bucket.CalendarWindow, Period: text, Entity: "e"}),
				l.Limit(bucket.Limit{Name: "n", Kind: bucket.CalendarWindow, Period: "p", Entity: text}),
				Layout{Namespace: "n", Tag: "x" + text}.Ctl(),
			}
		}
		x, y := keys(a), keys(b)
		seen := map[string]bool{}
		for i, key := range append(x, y...) {
			parts := strings.Split(key, ":")
			want := []int{4, 5, 8, 8, 8, 4}[i%6]
			if len(parts) != want || strings.Count(key, "{") != 1 || strings.Count(key, "}") != 1 || len(key) > 110 || !strings.HasPrefix(parts[2], "{") || !strings.HasSuffix(parts[2], "}") {
				t.Fatalf("%q", key)
			}
			for _, c := range []byte(key) {
				if c <= ' ' || c > '~' || c == '"' || c == '\\' { // JSON needs no escape in a key
					t.Fatalf("%q", key)
				}
			}
			seen[key] = true
		}
		for i := range x {
			if (x[i] == y[i]) != (a == b) {
				t.Fatalf("%q and %q: %q and %q", a, b, x[i], y[i])
			}
		}
		if fa, fb := KillField("s", a), KillField("s", b); (fa == fb) != (a == b) || len(fa) > 140 {
			t.Fatalf("%q and %q: %q and %q", a, b, fa, fb)
		}
	})
}

func TestKillValue(t *testing.T) {
	for _, tt := range []struct {
		until         bucket.Millis
		actor, reason string
		want          string
	}{
		{0, "ann", "spent", "0|ann|spent"},
		{1_900_000_000_000, "a|b", "x|y\x00é", "1900000000000|a?b|x|y???"},
		{-5, "", "", "0||"},
		{1, "a", strings.Repeat("r", 500), "1|a|" + strings.Repeat("r", 200)},
	} {
		got := KillValue(tt.until, tt.actor, tt.reason)
		if got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
		until, actor, reason, ok := ParseKill(got)
		if !ok || KillValue(until, actor, reason) != got {
			t.Errorf("%q is read as %d %q %q %v", got, until, actor, reason, ok)
		}
	}
	for _, bad := range []string{"", "x", "1", "1|a", "x|a|b", "-1|a|b", "+1|a|b", "|a|b", "123456789012345678901|a|b"} {
		if _, _, _, ok := ParseKill(bad); ok {
			t.Errorf("%q is a kill value", bad)
		}
	}
}

// TestTagsOfOrgs: no org, whatever it is called, gets the tag of all or that of another, nor another slot's.
func TestTagsOfOrgs(t *testing.T) {
	l := Layout{Namespace: "ns", WithOverrides: true}
	if got := l.Of("").Ctl(); got != "ns:1:{g}:ctl" {
		t.Error(got)
	}
	if got := l.Of("acme").Ctl(); got != "ns:1:{o.acme}:ctl" {
		t.Error(got)
	}
	seen := map[string]string{l.Of("").Ctl(): ""}
	for _, org := range []string{"g", "o.", "o.g", "a", "}", "{g}", "a}:ctl", "a:1:{g}", "%7D", "\x00", "a b", strings.Repeat("a", 62), strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("}", 100)} {
		key := l.Of(org).Ctl()
		if other, twice := seen[key]; twice {
			t.Errorf("%q has the keys of %q", org, other)
		}
		seen[key] = org
		tag := strings.TrimSuffix(strings.TrimPrefix(key, "ns:1:{"), "}:ctl")
		if len(tag) > longestPart || strings.ContainsAny(tag, "{}:\t\n ") || !l.Of(org).WithOverrides {
			t.Errorf("%q has the tag %q", org, tag)
		}
	}
}
