// Package approx estimates how many tokens a text has, from one fitted table for each family of
// vocabularies: the count is the sum, over neighbouring characters, of the weight of their pair of
// classes, plus a weight for the place inside a run of letters.
//
// It knows nothing of models, JSON or messages. Its caller
//   - calls Reset with a family before the first text,
//   - writes UTF-8 in pieces of any size; the split never changes the count,
//   - asks Count and resets for the next text.
//
// The weights were fitted to counts of 7,152 documents in 34 classes of text (prose in 20 languages,
// source code, JSON, logs, white space, base64). On held-out documents the mean error is 2 to 3 %,
// the 95th percentile is Family.ErrorP95. A script that the fit has not seen can be off by 60 %.
package approx

import (
	_ "embed"
	"sync"
)

// classData is 0x110000/128 page numbers, then pages of 128 classes (Unicode 15.0).
//
//go:embed class.bin
var classData string

//go:embed o200k.bin
var o200kData string

//go:embed cl100k.bin
var cl100kData string

//go:embed claude.bin
var claudeData string

//go:embed gemma.bin
var gemmaData string

const (
	classes  = 98 // classes of characters
	stride   = 128
	runPlace = classes * stride // where the weights of places in a letter run begin
	maxPlace = 15               // places beyond it share one weight
	fraction = 12               // weights are in units of 2^-12 tokens

	pages = 0x110000 >> 7

	startClass   = 78 // what precedes the first character
	invalidClass = 95 // bytes that are no UTF-8
)

// weights holds a table unpacked. Its size is a power of two, so that a masked index needs no bounds check.
type weights [1 << 14]int16

// Family is a set of vocabularies that share one table.
type Family struct {
	name    string
	p95     int
	weights func() *weights
}

// Name is the family's name, such as "o200k".
func (f *Family) Name() string { return f.name }

// ErrorP95 is the 95th percentile of the relative error on held-out documents of about 2 KB, in
// parts per thousand, against the vocabulary that the family was fitted to.
func (f *Family) ErrorP95() int { return f.p95 }

// O200K is OpenAI's o200k_base: gpt-4o, gpt-4.1, o-series, gpt-5.
func O200K() *Family { return o200k }

// CL100K is OpenAI's cl100k_base: gpt-4, gpt-3.5, text-embedding-3.
func CL100K() *Family { return cl100k }

// Claude is fitted to Claude 2's vocabulary, the last that its maker published. Later models are
// known to count up to 1.5 times as much on Western text; callers correct that by reported usage.
func Claude() *Family { return claude }

// Gemma is fitted to Gemma 3's vocabulary, which Gemini 2 uses.
func Gemma() *Family { return gemma }

var (
	o200k  = family("o200k", 59, o200kData)
	cl100k = family("cl100k", 64, cl100kData)
	claude = family("claude", 66, claudeData)
	gemma  = family("gemma", 51, gemmaData)
)

// family unpacks its table at first use: 32 KiB that a VM only pays for families it meets.
func family(name string, p95 int, data string) *Family {
	return &Family{name: name, p95: p95, weights: sync.OnceValue(func() *weights {
		w := new(weights)
		for i := 0; i+1 < len(data); i += 2 {
			w[i/2] = int16(uint16(data[i]) | uint16(data[i+1])<<8)
		}
		return w
	})}
}

// asciiClass is the class table's part for ASCII.
var asciiClass = func() (t [128]uint8) {
	for i := range t {
		t[i] = classOf(uint32(i))
	}
	return t
}()

// letterMask is all ones for a class of letters that forms runs, else zero.
var letterMask = func() (t [stride]uint32) {
	for i := 1; i <= 52; i++ { // ASCII letters
		t[i] = maxPlace
	}
	t[80], t[81], t[82] = maxPlace, maxPlace, maxPlace // other letters of alphabets
	return t
}()

// classOf gives the class of a code point; what is above U+10FFFF is invalid.
func classOf(cp uint32) uint8 {
	page := cp >> 7
	if page >= pages {
		return invalidClass
	}
	return classData[pages+int(classData[page])<<7+int(cp&127)]
}
