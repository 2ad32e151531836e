package tokenizer

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func near(f Factor, want float64, tolerance float64) bool {
	return math.Abs(float64(f)/float64(One)-want) <= tolerance
}

// Opus 4.7's vocabulary on technical documents: 1.47 times the former. Sizes of calls vary a lot, and
// each call is off by itself.
func TestDriftIsRepairedInTensOfCalls(t *testing.T) {
	for name, size := range map[string]func(r *rand.Rand) int{
		"alike":          func(r *rand.Rand) int { return 1500 + r.IntN(1000) },
		"short":          func(r *rand.Rand) int { return 20 + r.IntN(30) },
		"mixed":          func(r *rand.Rand) int { return []int{40, 400, 4000, 40000}[r.IntN(4)] },
		"one huge first": func(r *rand.Rand) int { return 700 },
	} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 1))
			c := NewCorrection(10)
			if name == "one huge first" {
				c.Learn("qq", "", 900000, 900000)
			}
			soon := 60
			if name == "one huge first" {
				soon = 100 // its weight fades by a sixteenth a call
			}
			for call := 1; call <= 300; call++ {
				n := size(r)
				c.Learn("qq", "", n, int(math.Round(float64(n)*(1.47+(r.Float64()-0.5)*0.1))))
				if f := c.Factor("qq", ""); call >= soon && !near(f, 1.47, 0.03) {
					t.Fatalf("%s, seed %d: %.3f after %d calls", name, seed, float64(f)/float64(One), call)
				}
			}
		}
	}
}

// The bound of Correction's comment, after any history.
func TestOneCallMovesAFactorByAnEighthAtMost(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	any := func() int { return 1 + r.IntN(1<<(1+r.IntN(28))) }
	for range 300 {
		var d drift
		d.factor = FactorLeast + Factor(r.Int64N(int64(FactorMost-FactorLeast)))
		for range 200 {
			old := d.factor
			estimated, reported := any(), any()
			d.learn(int64(estimated), int64(reported))
			own := min(max(Factor(int64(reported)<<16/int64(estimated)), FactorLeast), FactorMost)
			moved, way := d.factor-old, own-old
			if moved*way < 0 || moved*moved*64 > way*way {
				t.Fatalf("from %d to %d by a call of %d", old, d.factor, own)
			}
			if d.factor < FactorLeast || d.factor > FactorMost || d.weight <= 0 || d.weight > 1<<41 {
				t.Fatalf("%+v", d)
			}
		}
	}
}

// drift in big rational numbers.
func TestFactorAgreesWithTheReference(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var d drift
	d.factor = One
	f, weight := big.NewRat(int64(One), 1), new(big.Rat)
	for i := range 2000 {
		e, a := int64(1+r.IntN(100000)), int64(1+r.IntN(100000))
		d.learn(e, a)
		ratio := big.NewRat(min(max(a<<16/e, int64(FactorLeast)), int64(FactorMost)), 1)
		w := big.NewRat(e<<8, 1)
		if weight.Sign() == 0 {
			weight.Mul(w, big.NewRat(7, 1))
		} else {
			weight.Mul(weight, big.NewRat(15, 16))
		}
		if least := new(big.Rat).Mul(weight, big.NewRat(1, 31)); w.Cmp(least) < 0 {
			w = least
		}
		if most := new(big.Rat).Mul(weight, big.NewRat(1, 7)); w.Cmp(most) > 0 {
			w = most
		}
		weight.Add(weight, w)
		way := ratio.Sub(ratio, f)
		f.Add(f, way.Mul(way, w).Quo(way, weight))
		// Rationals grow without end: keep 64 bits behind the point.
		for _, x := range []*big.Rat{f, weight} {
			n := new(big.Int).Lsh(x.Num(), 64)
			x.SetFrac(n.Quo(n, x.Denom()), new(big.Int).Lsh(big.NewInt(1), 64))
		}
		if want, _ := f.Float64(); math.Abs(want-float64(d.factor)) > 70 { // a thousandth
			t.Fatalf("step %d: %d, reference %.1f", i, d.factor, want)
		}
	}
}

func TestCorrectionRefuses(t *testing.T) {
	c := NewCorrection(4)
	for _, v := range [][2]int{{0, 5}, {5, 0}, {-1, 5}, {5, -1}, {math.MinInt, math.MinInt}, {math.MaxInt, 5}, {5, math.MaxInt}, {maxLearned + 1, maxLearned + 1}} {
		if c.Learn("claude-3", "x", v[0], v[1]) {
			t.Errorf("%v was learned", v)
		}
	}
	if f := c.Factor("claude-3", "x"); f != Seed("claude-3") {
		t.Errorf("%v after nothing was learned", f)
	}
	if !c.Learn("claude-3", "x", maxLearned, 1) || !c.Learn("claude-3", "x", 1, maxLearned) {
		t.Error("a possible figure is refused")
	}
}

func TestFactorOfAClass(t *testing.T) {
	c := NewCorrection(10)
	for range 200 {
		c.Learn("m", "chat", 1000, 1500)
		c.Learn("m", "batch", 1000, 900)
	}
	if f := c.Factor("m", "chat"); !near(f, 1.5, 0.01) {
		t.Errorf("chat: %v", f.PerMille())
	}
	if f := c.Factor("m", "batch"); !near(f, 0.9, 0.01) {
		t.Errorf("batch: %v", f.PerMille())
	}
	if f := c.Factor("m", "admin"); !near(f, 1.2, 0.03) {
		t.Errorf("a class that never called: %v", f.PerMille())
	}
	if f := c.Factor("other", "chat"); f != One {
		t.Errorf("a model that was never called: %v", f.PerMille())
	}
}

func TestSeeds(t *testing.T) {
	for model, want := range map[string]int{
		"gpt-4o": 1000, "unheard-of": 1000, "": 1000,
		"claude-2.1": 1000, "claude-3-5-sonnet-20241022": 1100, "anthropic.claude-sonnet-4-5-20250929-v1:0": 1100, "claude-opus-4.6": 1100,
		"claude-opus-4-7": 1463, "anthropic/claude-opus-4.8": 1463, "claude-opus-5-5": 1463,
		"gemini-3-pro": 1000, "Qwen/Qwen3-32B": 1060, "deepseek-chat": 1060, "meta-llama/Llama-4-Scout": 1100,
	} {
		if got := Seed(model).PerMille(); got != want {
			t.Errorf("%s: %d, want %d", model, got, want)
		}
	}
}

func TestApply(t *testing.T) {
	for _, n := range []int{math.MinInt, -1, 0, 1, 2, 1000, 1<<16 - 1, 1 << 16, 1<<16 + 1, maxTokens - 1, maxTokens, math.MaxInt} {
		for _, f := range []Factor{math.MinInt64, 0, FactorLeast, One - 1, One, One + 1, FactorMost, math.MaxInt64} {
			got := f.Apply(n)
			g := min(max(f, FactorLeast), FactorMost)
			want := new(big.Int).Mul(big.NewInt(min(max(int64(n), 0), maxTokens)), big.NewInt(int64(g)))
			want.Add(want, big.NewInt(int64(One)-1)).Rsh(want, 16)
			if want.Cmp(big.NewInt(maxTokens)) > 0 {
				want.SetInt64(maxTokens)
			}
			if int64(got) != want.Int64() {
				t.Errorf("%d times %d: %d, want %v", n, f, got, want)
			}
		}
	}
}

func FuzzCorrection(f *testing.F) {
	f.Add(int64(100), int64(147), int64(5), int64(1))
	f.Fuzz(func(t *testing.T, e1, r1, e2, r2 int64) {
		c := NewCorrection(1)
		for range 3 {
			c.Learn("m", "a", int(e1), int(r1))
			c.Learn("m", "", int(e2), int(r2))
			if f := c.Factor("m", "a"); f < FactorLeast || f > FactorMost {
				t.Fatalf("%d", f)
			}
		}
	})
}
