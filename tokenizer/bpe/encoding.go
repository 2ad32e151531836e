// Package bpe counts the tokens of a text exactly as OpenAI's tiktoken does, for the encodings
// o200k_base and cl100k_base: streaming, without allocation, in time linear in the text.
//
// A text is cut into pieces (words, runs of digits, of punctuation, of white space) by the rules of
// the encoding, and the bytes of each piece merge pair by pair in the order of the vocabulary. The
// package knows nothing of models, of messages or of JSON, and it gives counts, never ids.
//
// Its caller
//   - calls Reset with an Encoding before the first text,
//   - writes each text in pieces of any size, cut anywhere,
//   - ends each text with Finish, which gives its count.
//
// What looks like a special token, such as <|endoftext|>, counts as the plain text that it is. Bytes
// that are no UTF-8 count as symbols, one byte each.
//
// Only the open piece is kept, so a piece of more than 512 bytes (a run of letters, of punctuation or
// of white space) is merged in overlapping windows. That is no theorem, but no test has told it from
// merging the piece whole, with the most contrary texts that could be found. The one known limit: in
// o200k_base, more than 500 bytes of nothing but capitals right behind Chinese letters can count as
// one token too many.
//
// The work space remembers pieces of up to 30 bytes of the texts that it counted. It never gives them
// out, but how long a count takes depends on them.
package bpe

// Encoding is one of the vocabularies with its rules for cutting texts. There is one value of each.
type Encoding struct {
	table  table
	steps  *[16][16]uint8 // the rules; see rules.go
	byCase bool           // the rules of o200k, which cut before a capital and behind a contraction
	name   string
	tag    uint64 // tells its pieces from the other's in the caches
}

// Name is the encoding's own name, such as "o200k_base".
func (e *Encoding) Name() string { return e.name }

// O200K is o200k_base: GPT-4o, GPT-4.1, GPT-5, the o series. The plain text of o200k_harmony has the
// same tokens. It is a function, so that the linker drops a table that nobody asks for.
func O200K() *Encoding { return o200k.get(newO200K) }

// CL100K is cl100k_base: GPT-4, GPT-3.5, text-embedding-3.
func CL100K() *Encoding { return cl100k.get(newCL100K) }

var o200k, cl100k single

func newO200K() *Encoding {
	return &Encoding{name: "o200k_base", tag: 1, table: newTable(o200kData, 15), steps: &o200kSteps, byCase: true}
}

func newCL100K() *Encoding {
	return &Encoding{name: "cl100k_base", tag: 2, table: newTable(cl100kData, 14), steps: &cl100kSteps}
}
