package plan

import (
	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
	"github.com/emmer-proxy/emmer/tokenizer"
)

// Method is how a text was counted.
type Method uint8

const (
	Uncounted Method = iota
	Exact            // with the model's own encoding
	Mixed            // with it up to body.count_exact, and by estimate from there on
	Approx           // by estimate
)

var methods = [...]string{"", "exact", "mixed", "approx"}

// String is the word that the access log has for it.
func (m Method) String() string { return methods[m] }

// doubt is by how much a count may be too high, in parts per thousand.
func (m Method) doubt(e tokenizer.Encoding) bucket.Tokens {
	switch m {
	case Exact:
		return 10 // what stands around the texts is an estimate still
	case Mixed:
		return 80 // more than the 95th percentile of any table that takes over
	}
	return bucket.Tokens(e.ErrorP95())
}

var tokenizerParts = [dialect.Parts]tokenizer.Part{
	dialect.Text:                tokenizer.Text,
	dialect.ToolName:            tokenizer.ToolName,
	dialect.ToolDescription:     tokenizer.ToolDescription,
	dialect.PropertyName:        tokenizer.PropertyName,
	dialect.PropertyType:        tokenizer.PropertyType,
	dialect.PropertyDescription: tokenizer.PropertyDescription,
	dialect.EnumValue:           tokenizer.EnumValue,
	dialect.Schema:              tokenizer.Schema,
	dialect.MediaURL:            tokenizer.MediaURL,
	dialect.MediaDetail:         tokenizer.MediaDetail,
	dialect.AudioData:           tokenizer.AudioData,
	dialect.AudioFormat:         tokenizer.AudioFormat,
	dialect.FileData:            tokenizer.FileData,
	dialect.FileRef:             tokenizer.FileRef,
	dialect.Query:               tokenizer.Text,
}

var tokenizerItems = [dialect.Items]tokenizer.Item{
	dialect.Message:        tokenizer.Message,
	dialect.Name:           tokenizer.Name,
	dialect.Tool:           tokenizer.Tool,
	dialect.Properties:     tokenizer.Properties,
	dialect.Property:       tokenizer.Property,
	dialect.Enum:           tokenizer.Enum,
	dialect.ResponseFormat: tokenizer.ResponseFormat,
	dialect.Image:          tokenizer.Image,
	dialect.Audio:          tokenizer.Audio,
	dialect.File:           tokenizer.File,
	dialect.Document:       0, // nothing beside its text
}

// prompt is a sink that counts what a model is given. It keeps none of it, and may be used again.
type prompt struct {
	encoding tokenizer.Encoding
	rates    tokenizer.Rates
	counter  *tokenizer.Counter
	sum      *tokenizer.Prompt
	before   int           // what was counted when the query at hand began
	query    bucket.Tokens // of queries
	begun    bool          // a query has begun and not ended
}

// counts says whether the prompt counts as m does.
func (p *prompt) counts(m *config.Model) bool { return p.encoding == m.Encoding && p.rates == m.Rates }

// become makes the prompt count as m does.
func (p *prompt) become(m *config.Model) {
	p.encoding, p.rates = m.Encoding, m.Rates
	p.counter = m.Encoding.NewCounter()
	p.sum = tokenizer.NewPrompt(p.counter, m.Rates)
}

// begin drops all that was counted. That many bytes of text may be counted exactly.
func (p *prompt) begin(exact int) {
	p.sum.Reset()
	p.counter.Budget(exact)
	p.query, p.begun = 0, false
}

func (p *prompt) Text(part dialect.Part, b []byte, last bool) {
	if part == dialect.Query && !p.begun {
		p.before, p.begun = p.sum.Bare(), true
	}
	p.sum.Text(tokenizerParts[part], b, last)
	if part == dialect.Query && last {
		p.query, p.begun = plus(p.query, bucket.Tokens(p.sum.Bare()-p.before)), false
	}
}

func (p *prompt) End(item dialect.Item) { p.sum.End(tokenizerItems[item]) }

// total is the count of a chat, or of texts that are none, and how it came about.
func (p *prompt) total(chat bool) (bucket.Tokens, Method) {
	how := Approx
	if p.encoding.Exact() {
		how = Exact
		if !p.counter.Exact() {
			how = Mixed
		}
	}
	n := p.sum.Bare()
	if chat {
		n = p.sum.Total()
	}
	return capped(bucket.Tokens(n)), how
}
