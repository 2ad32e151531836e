// Package tokenizer counts the tokens of a text, streaming and without allocation, with the
// encoding that belongs to a model.
//
// It knows nothing of limits, money, configuration or the host. Its caller
//   - finds an Encoding by the model's name or by the encoding's own,
//   - takes one Counter and feeds it each text with Write, or with WriteJSON where the text stands
//     escaped inside a JSON string, in pieces of any size,
//   - may give the counter a Budget, after which it estimates what it would count exactly,
//   - ends each text with Finish, which gives its count and makes the counter ready for the next;
//     pieces of two texts never merge into one token,
//   - takes a Prompt in place of a bare counter where what a chat template puts around the texts
//     counts too: markers, tools, images, sound and files.
//
// OpenAI's encodings are counted exactly (package bpe), others are estimated from a fitted table
// (package approx); Exact says which, ErrorP95 how good. What is learned from reported usage stands
// in Correction, which is plain state that a caller keeps.
package tokenizer

import (
	"github.com/emmer-proxy/emmer/tokenizer/approx"
	"github.com/emmer-proxy/emmer/tokenizer/bpe"
)

// Encoding is a way to cut text into tokens.
type Encoding interface {
	// Name is a stable name for logs and metrics, such as "o200k_base" or "approx-claude".
	Name() string
	// Exact says whether counts are those of the provider's own tokenizer.
	Exact() bool
	// ErrorP95 is the 95th percentile of the relative error of a count, in parts per thousand;
	// 0 if Exact.
	ErrorP95() int
	// NewCounter gives a counter of its own, below 1 KB.
	NewCounter() *Counter
}

type encoding struct {
	name   string
	exact  *bpe.Encoding // nil if the encoding is an estimate
	family *approx.Family
}

func (e *encoding) Name() string { return e.name }
func (e *encoding) Exact() bool  { return e.exact != nil }

func (e *encoding) ErrorP95() int {
	if e.exact != nil {
		return 0
	}
	return e.family.ErrorP95()
}

func (e *encoding) NewCounter() *Counter {
	c := &Counter{enc: e, left: unlimited, sure: e.exact != nil}
	c.Reset()
	return c
}

var (
	o200k  = &encoding{"o200k_base", bpe.O200K(), approx.O200K()}
	cl100k = &encoding{"cl100k_base", bpe.CL100K(), approx.CL100K()}
	// The ranks of gpt-oss: those of o200k_base, with other special tokens, which no text holds.
	harmony = &encoding{"o200k_harmony", bpe.O200K(), approx.O200K()}

	approxO200K  = &encoding{"approx-o200k", nil, approx.O200K()}
	approxCL100K = &encoding{"approx-cl100k", nil, approx.CL100K()}
	claude       = &encoding{"approx-claude", nil, approx.Claude()}
	gemma        = &encoding{"approx-gemma", nil, approx.Gemma()}

	all = []*encoding{o200k, cl100k, harmony, approxO200K, approxCL100K, claude, gemma}
)

// Names lists what ForName knows.
func Names() []string {
	names := make([]string, len(all))
	for i, e := range all {
		names[i] = e.name
	}
	return names
}

// ForName finds an encoding by its name.
func ForName(name string) (Encoding, bool) {
	for _, e := range all {
		if e.name == name {
			return e, true
		}
	}
	return nil, false
}

// unlimited is more bytes than any text has.
const unlimited = 1 << 62

// Counter counts texts one after the other. It is made by Encoding.NewCounter. Text that looks like
// a special token ("<|endoftext|>") counts as the plain text that a provider makes of it.
type Counter struct {
	enc   *encoding
	exact bpe.Counter
	text  approx.Counter
	esc   unescaper
	left  int64 // bytes that may still be counted exactly
	part  int   // tokens of the current text that were counted before the budget ended
	over  bool  // the current text goes on as an estimate
	sure  bool  // all texts so far were counted exactly
}

// Reset drops the text so far.
func (c *Counter) Reset() {
	if c.enc.exact != nil {
		c.exact.Reset(c.enc.exact)
	}
	c.text.Reset(c.enc.family)
	c.esc = unescaper{}
	c.part, c.over = 0, false
}

// Budget lets the counter count that many more bytes of text exactly, unescaped and over all texts
// together. From there on, in the middle of a text if need be, it estimates with the table of the
// same vocabulary, at about five times the speed. Without a call there is no end. It belongs before
// the first text of a request.
func (c *Counter) Budget(bytes int) {
	c.left = int64(max(bytes, 0))
	c.sure = c.enc.exact != nil
}

// Exact says whether everything since the last call of Budget was counted exactly.
func (c *Counter) Exact() bool { return c.sure }

// Write takes the next bytes of a text.
func (c *Counter) Write(p []byte) {
	if c.esc.open() {
		c.closeEscape()
	}
	c.write(p)
}

func (c *Counter) write(p []byte) {
	if c.enc.exact == nil {
		c.text.Write(p)
		return
	}
	if !c.over {
		if int64(len(p)) <= c.left {
			c.left -= int64(len(p))
			c.exact.Write(p)
			return
		}
		c.exact.Write(p[:c.left])
		p = p[c.left:]
		c.part = c.exact.Finish()
		c.left, c.over, c.sure = 0, true, false
	}
	c.text.Write(p)
}

func (c *Counter) closeEscape() {
	var room [longestEscape]byte
	c.write(c.esc.close(room[:0]))
}

// Finish ends the text, gives its count in tokens and is ready for the next text. The count is 0
// only for an empty text and never above the text's length in bytes.
func (c *Counter) Finish() int {
	if c.esc.open() {
		c.closeEscape()
	}
	if c.enc.exact != nil && !c.over {
		return c.exact.Finish()
	}
	n := c.part + c.text.Count()
	c.text.Reset(c.enc.family)
	c.part, c.over = 0, false
	return n
}

// Count gives the number of tokens of one text.
func Count(enc Encoding, text string) int {
	c := enc.NewCounter()
	var buf [4096]byte
	for len(text) > 0 {
		n := copy(buf[:], text)
		c.Write(buf[:n])
		text = text[n:]
	}
	return c.Finish()
}
