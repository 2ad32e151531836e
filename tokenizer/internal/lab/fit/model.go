package main

import (
	"math"
	"math/rand/v2"
)

// The layout of a table, as package approx reads it: weights of pairs of classes, then of the last
// three characters by hash, apart for those that end in ASCII, then of single characters beyond it.
const (
	row      = 64
	pairs    = row * row
	grams    = 1 << 14
	others   = 1 << 13
	singles  = 1 << 12
	weights  = pairs + grams + others + singles
	fraction = 6 // weights are in units of 2^-fraction tokens

	gramBits = 21 // of the last three characters
	gramMul  = 0x9e3779b97f4a7c15
	charMul  = 0xd6e8feb86659fd93
)

// bounds of a weight: a pair's is a byte, others are signed ones.
const (
	pairMax = 255.0 / (1 << fraction) // just below 4
	gramMin = -128.0 / (1 << fraction)
	gramMax = 127.0 / (1 << fraction)
)

// share is how often a document has a feature.
type share struct {
	feature uint32
	n       float32
}

// features counts the features of a text.
func features(text string, scratch []float32) []share {
	var touched []uint32
	add := func(i int) {
		if scratch[i] == 0 {
			touched = append(touched, uint32(i))
		}
		scratch[i]++
	}
	prev, last := classNewline, uint64(0)
	for _, r := range text {
		k := int(classes[r])
		add(prev*row + k)
		last = last<<7 ^ uint64(r)
		hash := last & (1<<gramBits - 1) * gramMul
		if r < 0x80 {
			add(pairs + int(hash>>50))
		} else {
			add(pairs + grams + int(hash>>51))
			add(pairs + grams + others + int(uint64(r)*charMul>>52))
		}
		prev = k
	}
	out := make([]share, len(touched))
	for i, f := range touched {
		out[i] = share{f, scratch[f]}
		scratch[f] = 0
	}
	return out
}

// sample is a document as the fit sees it.
type sample struct {
	shares []share
	tokens float64
}

func (s sample) estimate(w []float32) float64 {
	var sum float32
	for _, x := range s.shares {
		sum += w[x.feature] * x.n
	}
	return float64(sum)
}

// The fit's settings, found by trying.
const (
	epochs    = 80
	batch     = 128
	firstRate = 0.01 // of learning; it falls to 0 along a cosine
	pairPull  = 3e-6 // to the start values
	gramPull  = 3e-7 // to 0
	softening = 10   // tokens added to a document's own, so that short ones don't outweigh the rest
)

// fit finds weights that make the estimates' relative errors small: Adam on the squares of the
// errors, weights kept inside their bounds and drawn to their start values. The same documents give
// the same weights.
func fit(samples []sample) []float32 {
	start := startValues(samples)
	w := append([]float32{}, start...)
	mean, square, grad := make([]float32, weights), make([]float32, weights), make([]float32, weights)
	rng := rand.New(rand.NewPCG(seed, 0))
	order := make([]int, len(samples))
	for i := range order {
		order[i] = i
	}
	decay1, decay2 := 1.0, 1.0
	for epoch := range epochs {
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		rate := float32(firstRate * (1 + math.Cos(math.Pi*float64(epoch)/epochs)) / 2)
		for from := 0; from < len(order); from += batch {
			part := order[from:min(from+batch, len(order))]
			clear(grad)
			for _, i := range part {
				s := samples[i]
				scale := s.tokens + softening
				slope := float32((s.estimate(w) - s.tokens) / (scale * scale) / float64(len(part)))
				for _, x := range s.shares {
					grad[x.feature] += slope * x.n
				}
			}
			decay1 *= 0.9
			decay2 *= 0.999
			fix1, fix2 := float32(1/(1-decay1)), float32(1/(1-decay2))
			for i := range w {
				pull, low, high := float32(pairPull), float32(0), float32(pairMax)
				if i >= pairs {
					pull, low, high = gramPull, gramMin, gramMax
				}
				g := grad[i] + pull*(w[i]-start[i])
				mean[i] += 0.1 * (g - mean[i])
				square[i] += 0.001 * (g*g - square[i])
				w[i] -= rate * mean[i] * fix1 / (float32(math.Sqrt(float64(square[i]*fix2))) + 1e-8)
				w[i] = min(max(w[i], low), high)
			}
		}
	}
	return w
}

// startValues are, for a pair, the tokens per character of the documents that hold it, and 0 for a
// gram.
func startValues(samples []sample) []float32 {
	tokens, chars := make([]float64, pairs), make([]float64, pairs)
	for _, s := range samples {
		length := 0.0
		for _, x := range s.shares {
			if x.feature < pairs {
				length += float64(x.n)
			}
		}
		for _, x := range s.shares {
			if x.feature < pairs {
				tokens[x.feature] += float64(x.n) * s.tokens / length
				chars[x.feature] += float64(x.n)
			}
		}
	}
	// A pair that was never seen is taken for a third of a token.
	const doubt, unseen = 3, 0.33
	w := make([]float32, weights)
	for i := range tokens {
		w[i] = float32((tokens[i] + doubt*unseen) / (chars[i] + doubt))
	}
	return w
}

// encode writes weights as package approx reads them: a byte each.
func encode(w []float32) []byte {
	out := make([]byte, len(w))
	for i, x := range w {
		n := math.Round(float64(x) * (1 << fraction))
		if i < pairs {
			out[i] = uint8(n)
		} else {
			out[i] = byte(int8(n))
		}
	}
	return out
}
