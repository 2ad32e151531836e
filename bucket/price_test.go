package bucket

import (
	"math/big"
	"math/rand"
	"strings"
	"testing"
)

func TestCost(t *testing.T) {
	p := Price{Input: 2_500_000_000, CachedInput: 1_250_000_000, Output: 10_000_000_000} // 2.50 1.25 10.00
	tests := []struct {
		name                  string
		p                     Price
		input, cached, output Tokens
		want                  Money
		fails                 bool
	}{
		{"plain", p, 1000, 0, 500, 7_500_000, false},
		{"cached is part of the input", p, 1000, 400, 0, 2_000_000, false},
		{"nothing", p, 0, 0, 0, 0, false},
		{"rounded up once, not for each part", Price{Input: 1, CachedInput: 1, Output: 1}, 2, 1, 1, 1, false},
		{"a single token of a tiny price", Price{Input: 1}, 1, 0, 0, 1, false},
		{"exactly whole", Price{Input: 1}, 1_000_000, 0, 0, 1, false},
		{"one more", Price{Input: 1}, 1_000_001, 0, 0, 2, false},
		{"the largest", Price{Output: MaxAmount}, 0, 0, 1_000_000, MaxAmount, false},
		{"above it", Price{Output: MaxAmount}, 0, 0, 1_000_001, 0, true},
		{"far above it", Price{Input: MaxAmount, CachedInput: MaxAmount, Output: MaxAmount}, 1 << 62, 1 << 61, 1 << 62, 0, true},
		{"more cached than input", p, 10, 11, 0, 0, true},
		{"negative tokens", p, -1, 0, 0, 0, true},
		{"negative price", Price{Input: -1}, 1, 0, 0, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Cost(tt.p, Used{Input: tt.input, CachedInput: tt.cached, Output: tt.output})
			if got != tt.want || (err != nil) != tt.fails {
				t.Errorf("%d, %v; want %d", got, err, tt.want)
			}
		})
	}
}

func TestCostOfEveryKind(t *testing.T) {
	// C23: 1000 tokens written to the cache, 200 for as long as is usual and 800 for an hour, at 5 and 8.
	p := Price{Input: 4_000_000, CacheWrite: 5_000_000, CacheHour: 8_000_000}
	if got, err := Cost(p, Used{Input: 1000, CacheWrite: 200, CacheHour: 800}); got != 7400 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	// 61 s of sound at 0.006 a minute, two pictures at 0.04, a search unit at 0.002, three searches at 0.01.
	p = Price{AudioMinute: 6_000_000, Image: 40_000_000, SearchUnit: 2_000_000, Search: 10_000_000}
	if got, err := Cost(p, Used{Audio: 61_000, Images: 2, SearchUnits: 1, Searches: 3}); got != 6_100_000+80_000_000+2_000_000+30_000_000 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	if got, err := Cost(Price{AudioMinute: 1}, Used{Audio: 1}); got != 1 || err != nil {
		t.Errorf("a millisecond costs %d, %v", got, err)
	}
	if got, err := Cost(Price{Output: 1_000_000, AudioOutput: 3_000_000}, Used{Output: 10, AudioOutput: 4}); got != 18 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	for _, u := range []Used{
		{Input: 10, CachedInput: 6, CacheWrite: 5}, {Input: 10, AudioInput: 11}, {Input: 10, CacheHour: -1},
		{Output: 1, AudioOutput: 2}, {Output: 1, AudioOutput: -1}, {SearchUnits: -1}, {Images: -1}, {Searches: -1}, {Audio: -1},
	} {
		if got, err := Cost(p, u); err == nil {
			t.Errorf("%+v: %d", u, got)
		}
	}
}

func TestCostAgreesWithBigNumbers(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 20_000 {
		n := func() int64 { return r.Int63() >> r.Intn(63) }
		m := func() Money { return Money(n()) }
		p := Price{m(), m(), m(), m(), m(), m(), m(), m(), m(), m(), m()}
		part := func(of *Tokens) Tokens {
			v := *of >> r.Intn(63)
			*of -= v
			return v
		}
		u := Used{Input: Tokens(n()), Output: Tokens(n()), SearchUnits: n(), Images: n(), Searches: n(), Audio: Millis(n())}
		if r.Intn(2) == 0 {
			u.SearchUnits, u.Images, u.Searches, u.Audio = 0, u.Images>>40, 0, u.Audio>>r.Intn(40)
		}
		rest, text := u.Input, u.Output
		u.CachedInput, u.CacheWrite, u.CacheHour, u.AudioInput = part(&rest), part(&rest), part(&rest), part(&rest)
		u.AudioOutput = part(&text)
		sum := new(big.Int)
		for _, x := range [][3]int64{
			{int64(rest), int64(p.Input), 3}, {int64(u.CachedInput), int64(p.CachedInput), 3}, {int64(u.CacheWrite), int64(p.CacheWrite), 3},
			{int64(u.CacheHour), int64(p.CacheHour), 3}, {int64(u.AudioInput), int64(p.AudioInput), 3},
			{int64(text), int64(p.Output), 3}, {int64(u.AudioOutput), int64(p.AudioOutput), 3},
			{u.SearchUnits, int64(p.SearchUnit), 3_000_000}, {u.Images, int64(p.Image), 3_000_000}, {u.Searches, int64(p.Search), 3_000_000},
			{int64(u.Audio), int64(p.AudioMinute), 50},
		} {
			one := new(big.Int).Mul(big.NewInt(x[0]), big.NewInt(x[1]))
			sum.Add(sum, one.Mul(one, big.NewInt(x[2])))
		}
		sum.Add(sum, big.NewInt(2_999_999)).Div(sum, big.NewInt(3_000_000))
		got, err := Cost(p, u)
		if fits := sum.Cmp(big.NewInt(MaxAmount)) <= 0; fits != (err == nil) || fits && sum.Int64() != int64(got) {
			t.Fatalf("%+v %+v: %d, %v; want %v", p, u, got, err, sum)
		}
	}
}

func TestParseMoney(t *testing.T) {
	const nano, micro = 1_000_000_000, 1_000_000
	tests := []struct {
		text string
		unit Money
		want Money
		why  string // part of the error
	}{
		{"2.50", nano, 2_500_000_000, ""},
		{"0.0000004", nano, 400, ""},
		{"0.000000001", nano, 1, ""},
		{"0.0000000010", nano, 1, ""},
		{"0.0000000001", nano, 0, "finer than"},
		{"0.0000001", micro, 0, "finer than"},
		{"0.00000000001", nano, 0, "finer than"},
		{"150", micro, 150_000_000, ""},
		{"5000", nano, 5_000_000_000_000, ""},
		{"007", nano, 7_000_000_000, ""},
		{"9007199.254740991", nano, MaxAmount, ""},
		{"9007199.254740992", nano, 0, "above"},
		{"9007200", nano, 0, "above"},
		{"99999999999999999999999999", nano, 0, "above"},
		{"0", nano, 0, ""},
		{"", nano, 0, "plain decimal"},
		{".", nano, 0, "plain decimal"},
		{".5", nano, 0, "plain decimal"},
		{"5.", nano, 0, "plain decimal"},
		{"1.2.3", nano, 0, "plain decimal"},
		{"-1", nano, 0, "plain decimal"},
		{"+1", nano, 0, "plain decimal"},
		{"1e3", nano, 0, "plain decimal"},
		{" 1", nano, 0, "plain decimal"},
		{"1,5", nano, 0, "plain decimal"},
		{strings.Repeat("x", 1000), nano, 0, "plain decimal"},
		{"1", 0, 0, "unit of money"},
	}
	for _, tt := range tests {
		got, err := ParseMoney(tt.text, tt.unit)
		if got != tt.want || (err == nil) != (tt.why == "") || err != nil && !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%q in 1/%d: %d, %v; want %d, %q", tt.text, tt.unit, got, err, tt.want, tt.why)
		}
		if err != nil && len(err.Error()) > 120 {
			t.Errorf("%q: an error of %d bytes", tt.text, len(err.Error()))
		}
	}
}

func FuzzParseMoney(f *testing.F) {
	for _, s := range []string{"2.50", "0.0000004", "9007199.254740991", "1e9", "."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseMoney(s, 1_000_000_000)
		want, ok := new(big.Rat).SetString(s)
		if err != nil {
			return
		}
		if !ok {
			t.Fatalf("%q was read as %d", s, got)
		}
		want.Mul(want, big.NewRat(1_000_000_000, 1))
		if !want.IsInt() || want.Num().Cmp(big.NewInt(int64(got))) != 0 || got < 0 || got > MaxAmount {
			t.Fatalf("%q was read as %d, is %v", s, got, want)
		}
	})
}

func TestWide(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	value := func(w wide) *big.Int {
		v := new(big.Int).SetUint64(w.hi)
		return v.Lsh(v, 64).Add(v, new(big.Int).SetUint64(w.lo))
	}
	for range 10_000 {
		a, b := wide{r.Uint64() >> 30, r.Uint64()}, wide{r.Uint64() >> (30 + r.Intn(34)), r.Uint64()}
		n := r.Uint64()>>(35+r.Intn(28)) + 1
		if a.less(b) != (value(a).Cmp(value(b)) < 0) {
			t.Fatalf("%v < %v", a, b)
		}
		diff := new(big.Int).Sub(value(a), value(b))
		if diff.Sign() < 0 {
			diff.SetInt64(0)
		}
		quotient, rest := new(big.Int).QuoRem(value(a), new(big.Int).SetUint64(n), new(big.Int))
		if rest.Sign() > 0 {
			quotient.Add(quotient, big.NewInt(1))
		}
		for i, pair := range [][2]*big.Int{
			{value(a.add(b)), new(big.Int).Add(value(a), value(b))},
			{value(a.minus(b)), diff},
			{value(a.over(n)), quotient},
			{value(a.times(n)), new(big.Int).Mul(value(a), new(big.Int).SetUint64(n))},
		} {
			if pair[0].Cmp(pair[1]) != 0 {
				t.Fatalf("operation %d of %v, %v, %d: %v, want %v", i, a, b, n, pair[0], pair[1])
			}
		}
	}
}

func TestLimitCheck(t *testing.T) {
	bucket := Limit{Kind: TokenBucket, Rate: 1, Per: 1, Burst: 1}
	window := Limit{Kind: CalendarWindow, Max: 1, Bounds: [4]Millis{1, 2, 3, 4}}
	tests := []struct {
		want   string
		limit  Limit
		change func(*Limit)
	}{
		{"", bucket, func(*Limit) {}},
		{"", window, func(*Limit) {}},
		{"", bucket, func(l *Limit) { l.Burst = MaxAmount; l.Rate, l.Per = 104_249_991, MaxPer }},
		{"rate: times", bucket, func(l *Limit) { l.Rate, l.Per = 104_249_992, MaxPer }},
		{"rate: 0", bucket, func(l *Limit) { l.Rate = 0 }},
		{"per: 86400001", bucket, func(l *Limit) { l.Per = MaxPer + 1 }},
		{"burst: -1", bucket, func(l *Limit) { l.Burst = -1 }},
		{"max: 9007199254740992", window, func(l *Limit) { l.Max = MaxAmount + 1 }},
		{"bounds: not", window, func(l *Limit) { l.Bounds[2] = 2 }},
		{"bounds: -1", window, func(l *Limit) { l.Bounds[0] = -1 }},
		{"", Limit{Kind: RollingWindow, Window: 120, Cell: 1}, func(*Limit) {}},
		{"window: 121", Limit{Kind: RollingWindow, Window: 121, Cell: 1}, func(*Limit) {}},
		{"window: not a multiple", Limit{Kind: RollingWindow, Window: 5, Cell: 2}, func(*Limit) {}},
		{"cell: 0", Limit{Kind: RollingWindow, Window: 5}, func(*Limit) {}},
		{"max: 2147483648", Limit{Kind: Concurrency, Max: 1 << 31}, func(*Limit) {}},
		{"rule: missing", Limit{Kind: Burn}, func(*Limit) {}},
		{"minutes: 31", Limit{Kind: Burn, Flag: "a:b", Rule: &BurnRule{Minutes: 31}}, func(*Limit) {}},
		{"flag: empty", Limit{Kind: Burn, Rule: &BurnRule{Minutes: 1}}, func(*Limit) {}},
		{"pool: missing", Limit{Kind: SharedBucket}, func(*Limit) {}},
		{"kind:", window, func(l *Limit) { l.Kind = 9 }},
		{"lost:", window, func(l *Limit) { l.Lost = 2 }},
	}
	for _, tt := range tests {
		l := tt.limit
		tt.change(&l)
		err := l.Check()
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", l, err, tt.want)
		}
	}
	if rate, per := ReduceRate(2_000_000, 60_000); rate != 100 || per != 3 {
		t.Errorf("2,000,000 a minute is %d in %d ms", rate, per)
	}
}
