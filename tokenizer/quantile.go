package tokenizer

import "math/bits"

// Outputs learns how long answers are, for each tenant and model, to reserve by where a call asks for
// no cap. Tenants never share a figure: a key is the pair of names as given.
//
// Its caller keeps one for as long as it lives and hands it to nobody else; tells it by Learn the
// output tokens of answers that ended by themselves (not those that were cut off, refused or failed);
// and reads Quantile when it plans a call. What it makes of the figure (a floor, a ceiling of the
// model's) is its own business. The same calls in the same order give the same figures.
type Outputs struct {
	table table[histogram]
}

// NewOutputs makes an Outputs that remembers that many pairs of tenant and model. Each takes about 400
// bytes. Where there is no more room, the pair goes that was learned from longest ago.
func NewOutputs(pairs int) *Outputs {
	return &Outputs{newTable[histogram](pairs)}
}

// Learn takes the length of an answer in tokens. It gives false for a figure that can't be: nothing
// is learned from it, and the caller may count it.
func (o *Outputs) Learn(tenant, model string, tokens int) bool {
	if tokens < 0 || tokens > maxLearned {
		return false
	}
	h, _ := o.table.put(pair{tenant, model})
	h.learn(tokens)
	return true
}

// Quantile is a number of tokens that perMille (1 to 999) of a thousand answers did not exceed. It is
// never too low for what is remembered, and too high by at most an eighth, or 8 tokens up to 64;
// answers of more than 2^20 tokens count as that many. ok is false below 20 answers, and for a
// quantile so high that less than one answer of those remembered lies above it.
func (o *Outputs) Quantile(tenant, model string, perMille int) (tokens int, ok bool) {
	h := o.table.get(pair{tenant, model})
	if h == nil {
		return 0, false
	}
	return h.quantile(min(max(perMille, 1), 999))
}

// histogram counts answers in steps of at most an eighth: 8 of 8 tokens up to 64, then 8 to each
// octave up to 2^20.
type histogram struct {
	total   uint32
	buckets [bucketsLinear + bucketsOctave*(maxOctave-minOctave)]uint16
}

const (
	minOctave     = 6  // the first octave begins at 2^6
	maxOctave     = 20 // the last ends at 2^20
	bucketsLinear = 8
	bucketsOctave = 8

	// fewest is how many answers a histogram must have seen to speak.
	fewest = 20
	// remembered is how many answers a histogram holds. When it is full, every bucket is halved, so that
	// what is older than some two thousand answers weighs next to nothing.
	remembered = 1024
)

// bucketOf is where a length is counted.
func bucketOf(tokens int) int {
	v := uint32(min(max(tokens, 1), 1<<maxOctave) - 1)
	if v < 1<<minOctave {
		return int(v >> 3)
	}
	octave := bits.Len32(v) - 1
	return bucketsLinear + (octave-minOctave)*bucketsOctave + int(v>>(octave-3)&7)
}

// edgeOf is the greatest length that a bucket counts.
func edgeOf(bucket int) int {
	if bucket < bucketsLinear {
		return (bucket + 1) << 3
	}
	octave := (bucket-bucketsLinear)/bucketsOctave + minOctave
	return (8 + (bucket-bucketsLinear)%bucketsOctave + 1) << (octave - 3)
}

func (h *histogram) learn(tokens int) {
	if h.total >= remembered {
		h.age()
	}
	h.buckets[bucketOf(tokens)]++
	h.total++
}

// age halves all buckets. What an odd one loses goes to the next higher.
func (h *histogram) age() {
	h.total = 0
	var odd uint16
	for i, n := range h.buckets {
		n += odd
		odd = n & 1
		h.buckets[i] = n / 2
		h.total += uint32(n / 2)
	}
}

func (h *histogram) quantile(perMille int) (tokens int, ok bool) {
	if h.total < fewest || uint32(1000-perMille)*h.total < 1000 {
		return 0, false
	}
	rank := (h.total*uint32(perMille) + 999) / 1000 // of the answer, counted from 1
	var below uint32
	for i, n := range h.buckets {
		below += uint32(n)
		if below >= rank {
			return edgeOf(i), true
		}
	}
	return 1 << maxOctave, true
}
