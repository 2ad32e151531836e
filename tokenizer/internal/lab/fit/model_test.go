package main

import (
	"math"
	"os"
	"testing"

	"github.com/emmer-proxy/emmer/tokenizer/approx"
)

// The features that the fit weighs are those that the counter adds up.
func TestFeaturesAreTheCounters(t *testing.T) {
	scratch := make([]float32, weights)
	texts := []string{"", "a", "Hello, world!\n\n  12 + 30", "съешь ещё этих булок", "快速的棕色狐狸，caf\u00e9 👩🏽‍💻 हिन्दी", "\ufffd\u0000\U0010ffff"}
	for _, d := range generated() {
		if d.Held {
			texts = append(texts, d.Text)
		}
	}
	for _, family := range families {
		data, err := os.ReadFile("../../../approx/" + family + ".bin")
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			sum := 0
			for _, s := range features(text, scratch) {
				w := int(data[s.feature])
				if s.feature >= pairs {
					w = int(int8(data[s.feature]))
				}
				sum += w * int(s.n)
			}
			want := int(math.Floor(float64(sum)/(1<<fraction) + 0.5))
			want = max((len(text)+127)/128, min(want, len(text)))
			var c approx.Counter
			c.Reset(familyOf(family))
			c.Write([]byte(text))
			if got := c.Count(); got != want {
				t.Fatalf("%s %.40q: the counter says %d, the features say %d", family, text, got, want)
			}
		}
	}
}

// Weights that are there to be found are found, inside their bounds.
func TestFitFindsWeights(t *testing.T) {
	scratch := make([]float32, weights)
	var samples []sample
	for _, d := range generated()[:400] {
		samples = append(samples, sample{features(d.Text, scratch), float64(len(d.Text)) / 3})
	}
	w := fit(samples)
	for _, s := range samples {
		if e := math.Abs(s.estimate(w)-s.tokens) / s.tokens; e > 0.1 {
			t.Errorf("an estimate of %.1f for %.1f tokens", s.estimate(w), s.tokens)
		}
	}
	for i, x := range w {
		if i < pairs && (x < 0 || x > pairMax) || i >= pairs && (x < gramMin || x > gramMax) {
			t.Errorf("weight %d is %f", i, x)
		}
	}
}
