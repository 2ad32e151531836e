package config

import (
	"math/big"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

func TestWholeNumbers(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
		ok   bool
	}{
		{"0", 0, true}, {"7", 7, true}, {"1e+08", 100_000_000, true}, {"4.194304e+06", 4_194_304, true}, {"1.0", 1, true}, {"100e-2", 1, true},
		{"0.0", 0, true}, {"0e999", 0, true}, {"9007199254740991", 9007199254740991, true}, {"0012", 12, true}, {"1E3", 1000, true},
		{"1.5e0", 0, false}, {"1.5", 0, false}, {"1e-1", 0, false}, {"-1", 0, false}, {"+1", 0, false}, {"", 0, false}, {"e5", 0, false}, {".5e1", 0, false},
		{"5.", 0, false}, {"1e", 0, false}, {"1e999", 0, false}, {"1e999999999999", 0, false}, {"9223372036854775808", 0, false}, {"1_000", 0, false},
		{" 1", 0, false}, {"1 ", 0, false}, {"0x10", 0, false}, {"NaN", 0, false}, {"1e5e5", 0, false},
	} {
		if got, ok := parseWhole(c.text); got != c.want || ok != c.ok {
			t.Errorf("%q is %d, %v; want %d, %v", c.text, got, ok, c.want, c.ok)
		}
	}
}

// A rational number says what the digits mean.
func FuzzWholeNumbers(f *testing.F) {
	for _, s := range []string{"1e+08", "4.194304e+06", "1.5e0", "0", "100e-2", "999999999999999999", "12.340e2", "1e18"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := parseWhole(s)
		if len(s) > 40 || strings.Trim(s, "0123456789.eE+-") != "" {
			if ok && strings.Trim(s, "0123456789.eE+-") != "" {
				t.Fatalf("%q was read", s)
			}
			return
		}
		if at := strings.IndexAny(s, "eE"); at >= 0 && len(s)-at > 4 {
			return // the model would compute numbers that parseWhole need not read
		}
		r, valid := new(big.Rat).SetString(s)
		if ok {
			if !valid || !r.IsInt() || r.Num().Cmp(big.NewInt(got)) != 0 {
				t.Fatalf("%q is %v, read as %d", s, r, got)
			}
		} else if valid && r.IsInt() && r.Sign() >= 0 && r.Num().Cmp(big.NewInt(1e17)) < 0 &&
			s[0] >= '0' && s[0] <= '9' && !strings.Contains(s, ".e") && !strings.Contains(s, ".E") && s[len(s)-1] != '.' && len(r.Num().String()) < 18 &&
			len(strings.TrimLeft(s, "0")) < 20 {
			t.Fatalf("%q is %v, but was refused", s, r)
		}
	})
}

func TestDurationsAndSizes(t *testing.T) {
	for text, want := range map[string]int64{"50ms": 50, "60s": 60_000, "15m": 900_000, "2h": 7_200_000, "1d": 86_400_000, "0s": 0} {
		if got, ok := parseDuration(text); int64(got) != want || !ok {
			t.Errorf("%s is %d, %v", text, got, ok)
		}
		if want > 0 {
			if again, ok := parseDuration(showDuration(mustDuration(t, text))); !ok || int64(again) != want {
				t.Errorf("%s is shown as %s", text, showDuration(mustDuration(t, text)))
			}
		}
	}
	for _, text := range []string{"", "s", "1", "1.5s", "-1s", "1 s", "1S", "99999999999d", "1min"} {
		if d, ok := parseDuration(text); ok {
			t.Errorf("%q was read as %d", text, d)
		}
	}
	for text, want := range map[string]int64{"1KiB": 1024, "8MiB": 8 << 20} {
		if got, ok := parseSize(text); got != want || !ok {
			t.Errorf("%s is %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "1", "1KB", "1.5MiB", "-1KiB", "KiB"} {
		if b, ok := parseSize(text); ok {
			t.Errorf("%q was read as %d", text, b)
		}
	}
}

func mustDuration(t *testing.T, text string) (d bucket.Millis) {
	t.Helper()
	d, ok := parseDuration(text)
	if !ok {
		t.Fatal(text)
	}
	return d
}

func TestSpellingsOfModels(t *testing.T) {
	c := parse(t, doc("models", `{"m-2": {"aliases": ["em-two"]}, "M-2": {}, "x/m-2": {}, "acme/z": {}, "d-2030-01-01": {}, "d": {}}`, "targets", "",
		"unknown_model", `{"use": "d"}`))
	for name, want := range map[string]string{
		"m-2": "m-2", "M-2": "M-2", "m-2-2031-01-05": "m-2", "m-2-20310105": "m-2", "m-2@20310105": "m-2", "openrouter/acme/m-2": "m-2", "x/m-2": "x/m-2",
		"y/x/m-2": "x/m-2", "openrouter/acme/M-2-2031-01-05": "M-2", "acme/Z": "acme/z", "q/ACME/z-20310105": "acme/z",
		strings.Repeat("a/", 8) + "m-2": "m-2", "d-2030-01-01": "d-2030-01-01", "d-2030-01-02": "d", "D-2030-01-01": "d-2030-01-01",
	} {
		if m, known := c.Model(name); m == nil || m.Name != want || !known {
			t.Errorf("%s is %+v, %v; want %s", name, m, known, want)
		}
	}
	for _, name := range []string{"", "m-3", "m-2-2031-1-5", "m-2@2031-01-05", "m-2@latest", "m-2/", "/", "-2031-01-05", "m-2-", "z", "m-2-2031010", strings.Repeat("a/", 9) + "m-2", "x/" + strings.Repeat("a", 251) + "/m-2", strings.Repeat("a/", 500_000) + "m-2"} {
		if m, known := c.Model(name); known || m == nil || m.Name != "d" {
			t.Errorf("%s is %+v, %v; want it unknown, counted as d", name, m, known)
		}
	}
	if m, known := parse(t, doc()).Model("m-3"); m != nil || known {
		t.Errorf("without unknown_model: %+v, %v", m, known)
	}
}
