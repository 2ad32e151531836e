// Package tokenizer counts the tokens of a text, streaming and without allocation, with the
// encoding that belongs to a model.
//
// It knows nothing of prices, limits, requests or the host. Its caller
//   - finds an Encoding by the model's name or by the encoding's own,
//   - takes one Counter and feeds it each text with Write, or with WriteJSON where the text stands
//     escaped inside a JSON string, in pieces of any size,
//   - ends each text with Finish, which gives its count and makes the counter ready for the next;
//     pieces of two texts never merge into one token,
//   - adds Framing for what a chat template puts around the texts.
//
// Every encoding today is an estimate (see package approx); Exact says so and ErrorP95 says how good.
package tokenizer

import "github.com/emmer-proxy/emmer/tokenizer/approx"

// Encoding is a way to cut text into tokens.
type Encoding interface {
	// Name is a stable name for logs and metrics, such as "approx-o200k".
	Name() string
	// Exact says whether counts are those of the provider's own tokenizer.
	Exact() bool
	// ErrorP95 is the 95th percentile of the relative error of a count, in parts per thousand;
	// 0 if Exact.
	ErrorP95() int
	// NewCounter gives a counter of its own, about 100 bytes.
	NewCounter() *Counter
}

type approximate struct {
	name   string
	family *approx.Family
}

func (a *approximate) Name() string  { return a.name }
func (a *approximate) Exact() bool   { return false }
func (a *approximate) ErrorP95() int { return a.family.ErrorP95() }

func (a *approximate) NewCounter() *Counter {
	c := &Counter{family: a.family}
	c.Reset()
	return c
}

var (
	o200k  = &approximate{"approx-o200k", approx.O200K()}
	cl100k = &approximate{"approx-cl100k", approx.CL100K()}
	claude = &approximate{"approx-claude", approx.Claude()}
	gemma  = &approximate{"approx-gemma", approx.Gemma()}
)

// ForName finds an encoding by its name. "o200k_base" and "cl100k_base" answer with the estimate of
// that family, and say so by their Name.
func ForName(name string) (Encoding, bool) {
	switch name {
	case "approx-o200k", "o200k_base":
		return o200k, true
	case "approx-cl100k", "cl100k_base":
		return cl100k, true
	case "approx-claude":
		return claude, true
	case "approx-gemma":
		return gemma, true
	}
	return nil, false
}

// Counter counts texts one after the other. It is made by Encoding.NewCounter.
type Counter struct {
	family *approx.Family
	text   approx.Counter
	esc    unescaper
}

// Reset drops the text so far.
func (c *Counter) Reset() {
	c.text.Reset(c.family)
	c.esc = unescaper{}
}

// Write takes the next bytes of a text.
func (c *Counter) Write(p []byte) {
	if c.esc.open() {
		c.closeEscape()
	}
	c.text.Write(p)
}

// Finish ends the text, gives its count in tokens and is ready for the next text. The count is 0
// only for an empty text and never above the text's length in bytes.
func (c *Counter) Finish() int {
	if c.esc.open() {
		c.closeEscape()
	}
	n := c.text.Count()
	c.text.Reset(c.family)
	return n
}

// Count gives the number of tokens of one text.
func Count(enc Encoding, text string) int {
	c := enc.NewCounter()
	var buf [512]byte
	for len(text) > 0 {
		n := copy(buf[:], text)
		c.Write(buf[:n])
		text = text[n:]
	}
	return c.Finish()
}
