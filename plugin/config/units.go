package config

import (
	"strconv"
	"strings"

	"github.com/emmer-proxy/emmer/bucket"
)

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// A conversion of YAML to a protobuf Struct makes a float of every number and may write it as
// 4.194304e+06, so a number is read by its digits and its exponent, exactly, and is a whole one
// or none. No float is involved.
func parseWhole(s string) (int64, bool) {
	digits := make([]byte, 0, 24)
	scale, i := 0, 0
	for ; i < len(s) && digit(s[i]); i++ {
		digits = append(digits, s[i])
	}
	if i == 0 || len(s) > 64 {
		return 0, false
	}
	if i < len(s) && s[i] == '.' {
		from := i + 1
		for i = from; i < len(s) && digit(s[i]); i++ {
			digits = append(digits, s[i])
		}
		if i == from {
			return 0, false
		}
		scale = from - i
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		exp, err := strconv.Atoi(s[i+1:])
		if err != nil || exp < -1000 || exp > 1000 {
			return 0, false
		}
		scale += exp
		i = len(s)
	}
	if i != len(s) {
		return 0, false
	}
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
		scale++
	}
	for len(digits) > 0 && digits[0] == '0' {
		digits = digits[1:]
	}
	if len(digits) == 0 {
		return 0, true
	}
	if scale < 0 || len(digits)+scale > 18 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return 0, false
	}
	for ; scale > 0; scale-- {
		n *= 10
	}
	return n, true
}

var durations = []struct {
	suffix string
	unit   bucket.Millis
}{ // ms before m and s, so that the longer suffix is tried first
	{"ms", 1}, {"s", 1000}, {"m", 60_000}, {"h", 3_600_000}, {"d", 86_400_000},
}

// numbered reads a plain number in front of a suffix.
func numbered(s, suffix string) (int64, bool) {
	s, ok := strings.CutSuffix(s, suffix)
	if !ok || s == "" || len(s) > 10 {
		return 0, false
	}
	for i := 0; i < len(s); i++ {
		if !digit(s[i]) {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

func parseDuration(s string) (bucket.Millis, bool) {
	for _, d := range durations {
		if n, ok := numbered(s, d.suffix); ok {
			return bucket.Millis(n) * d.unit, true // below 10^10 * 8.64*10^7
		}
	}
	return 0, false
}

func showDuration(d bucket.Millis) string {
	for i := len(durations) - 1; i > 0; i-- {
		if u := durations[i]; d >= u.unit && d%u.unit == 0 {
			return decimal(int64(d/u.unit)) + u.suffix
		}
	}
	return decimal(int64(d)) + "ms"
}

func parseSize(s string) (int64, bool) {
	if n, ok := numbered(s, "KiB"); ok {
		return n << 10, true
	}
	if n, ok := numbered(s, "MiB"); ok {
		return n << 20, true
	}
	return 0, false
}

func showSize(b int) string {
	if b >= 1<<20 && b%(1<<20) == 0 {
		return strconv.Itoa(b>>20) + "MiB"
	}
	return strconv.Itoa(b>>10) + "KiB"
}

// splitRate cuts 60000/m into its number and the milliseconds of its unit.
func splitRate(s string) (number string, per bucket.Millis, ok bool) {
	number, unit, ok := strings.Cut(s, "/")
	if !ok {
		return "", 0, false
	}
	for _, d := range durations[1:] {
		if d.suffix == unit {
			return number, d.unit, true
		}
	}
	return "", 0, false
}

// ISO 4217 gives these currencies no minor unit.
const noMinorUnit = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"

// currency is the code with its unit; a code is three capital letters.
func currency(code string) (Currency, bool) {
	if len(code) != 3 {
		return Currency{}, false
	}
	for i := 0; i < 3; i++ {
		if code[i] < 'A' || code[i] > 'Z' {
			return Currency{}, false
		}
	}
	if within(noMinorUnit, code) {
		return Currency{code, 1_000_000}, true
	}
	return Currency{code, 1_000_000_000}, true
}
