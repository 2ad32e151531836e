package tokenizer

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// chat is a request as a dumb reader sees it, to drive a Prompt without a dialect.
type chat struct {
	Messages []map[string]string `json:"messages"`
	Tools    []struct {
		Function struct {
			Name, Description string
			Parameters        schema
		}
	} `json:"tools"`
}

type schema struct {
	Type, Description string
	Enum              []string
	Properties        map[string]schema
	Items             *schema
}

// inner is a text as it stands inside a JSON string.
func inner(s string) []byte {
	b, _ := json.Marshal(s)
	return b[1 : len(b)-1]
}

// pieces hands a text over, whole or in random pieces.
func pieces(p *Prompt, part Part, text []byte, r *rand.Rand) {
	for r != nil && len(text) > 0 && r.IntN(4) != 0 {
		n := r.IntN(min(len(text), 7) + 1)
		p.Text(part, text[:n], false)
		text = text[n:]
	}
	p.Text(part, text, true)
}

func (c *chat) walk(p *Prompt, r *rand.Rand) {
	for _, m := range c.Messages {
		for key, value := range m {
			pieces(p, Text, inner(value), r)
			if key == "name" {
				p.End(Name)
			}
		}
		p.End(Message)
	}
	for _, t := range c.Tools {
		f := t.Function
		pieces(p, ToolName, inner(f.Name), r)
		pieces(p, ToolDescription, inner(f.Description), r)
		f.Parameters.properties(p, r)
		p.End(Tool)
	}
}

func (s *schema) properties(p *Prompt, r *rand.Rand) {
	for name, sub := range s.Properties {
		pieces(p, PropertyName, inner(name), r)
		if sub.Type != "" {
			pieces(p, PropertyType, inner(sub.Type), r)
		}
		if sub.Description != "" {
			pieces(p, PropertyDescription, inner(sub.Description), r)
		}
		for _, v := range sub.Enum {
			pieces(p, EnumValue, inner(v), r)
		}
		if len(sub.Enum) > 0 {
			p.End(Enum)
		}
		sub.properties(p, r)
		if sub.Items != nil {
			sub.Items.properties(p, r)
		}
		p.End(Property)
	}
	if len(s.Properties) > 0 {
		p.End(Properties)
	}
}

func parse(t testing.TB, doc string) *chat {
	t.Helper()
	c := new(chat)
	if err := json.Unmarshal([]byte(doc), c); err != nil {
		t.Fatal(err)
	}
	return c
}

// prompt makes a Prompt for a model. What isn't found counts by o200k_base.
func prompt(t testing.TB, model string) *Prompt {
	t.Helper()
	e, ok := Lookup(model)
	if !ok {
		e = named(t, "o200k_base")
	}
	return NewPrompt(e.NewCounter(), RatesOf(model))
}

// The worked examples of OpenAI's cookbook, How_to_count_tokens_with_tiktoken, whose counts are those
// of the service (read 2026-10).
const (
	cookbookConversation = `{"messages":[
{"role":"system","content":"You are a helpful, pattern-following assistant that translates corporate jargon into plain English."},
{"role":"system","name":"example_user","content":"New synergies will help drive top-line growth."},
{"role":"system","name":"example_assistant","content":"Things working well together will increase revenue."},
{"role":"system","name":"example_user","content":"Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage."},
{"role":"system","name":"example_assistant","content":"Let's talk later when we're less busy about how to do better."},
{"role":"user","content":"This late pivot means we don't have time to boil the ocean for the client deliverable."}]}`

	cookbookTools = `{"messages":[
{"role":"system","content":"You are a helpful assistant that can answer to questions about the weather."},
{"role":"user","content":"What's the weather like in San Francisco?"}],
"tools":[{"type":"function","function":{"name":"get_current_weather","description":"Get the current weather in a given location",
"parameters":{"type":"object","properties":{
"location":{"type":"string","description":"The city and state, e.g. San Francisco, CA"},
"unit":{"type":"string","description":"The unit of temperature to return","enum":["celsius","fahrenheit"]}},
"required":["location"]}}}]}`
)

func TestCookbook(t *testing.T) {
	for _, c := range []struct {
		doc   string
		model string
		want  int
	}{
		{cookbookConversation, "gpt-3.5-turbo-0301", 127},
		{cookbookConversation, "gpt-3.5-turbo-0613", 129},
		{cookbookConversation, "gpt-3.5-turbo", 129},
		{cookbookConversation, "gpt-4-0314", 129},
		{cookbookConversation, "gpt-4-0613", 129},
		{cookbookConversation, "gpt-4", 129},
		{cookbookConversation, "gpt-4o", 124},
		{cookbookConversation, "gpt-4o-mini", 124},
		{cookbookTools, "gpt-3.5-turbo", 105},
		{cookbookTools, "gpt-4", 105},
		{cookbookTools, "gpt-4o", 101},
		{cookbookTools, "gpt-4o-mini", 101},
	} {
		p := prompt(t, c.model)
		doc := parse(t, c.doc)
		for seed := range uint64(40) {
			r := rand.New(rand.NewPCG(seed, 1))
			if seed == 0 {
				r = nil
			}
			doc.walk(p, r)
			if got := p.Total(); got != c.want {
				t.Fatalf("%s, seed %d: %d tokens, the cookbook has %d", c.model, seed, got, c.want)
			}
			p.Reset()
		}
	}
}

// cookbook is the cookbook's rule for tools, written over whole strings and with nesting added. It
// counts "name:type:description" as one text.
func cookbook(t testing.TB, e Encoding, c *chat, function int) int {
	t.Helper()
	dotless := func(s string) string { return strings.TrimSuffix(s, ".") }
	n := 3
	for _, m := range c.Messages {
		n += 3
		for key, value := range m {
			n += Count(e, value)
			if key == "name" {
				n++
			}
		}
	}
	var properties func(s schema) int
	properties = func(s schema) (n int) {
		if len(s.Properties) > 0 {
			n += 3
		}
		for name, sub := range s.Properties {
			n += 3
			line := name
			if sub.Type != "" {
				line += ":" + sub.Type
			}
			if sub.Description != "" {
				line += ":" + dotless(sub.Description)
			}
			n += Count(e, line)
			if len(sub.Enum) > 0 {
				n -= 3
			}
			for _, v := range sub.Enum {
				n += 3 + Count(e, v)
			}
			n += properties(sub)
			if sub.Items != nil {
				n += properties(*sub.Items)
			}
		}
		return n
	}
	for _, f := range c.Tools {
		n += function + Count(e, f.Function.Name+":"+dotless(f.Function.Description))
		n += properties(f.Function.Parameters)
	}
	if len(c.Tools) > 0 {
		n += 12
	}
	return n
}

const nestedTools = `{"messages":[{"role":"user","content":"caf\u00e9 \"x\"\n..."}],"tools":[
{"function":{"name":"f","description":"Ends with a dot."}},
{"function":{"name":"search_orders","description":"Two dots..","parameters":{"properties":{
 "filter":{"type":"object","description":"Which.","properties":{"state":{"type":"string","enum":["open","closed","lost.in.post"]},
   "dates":{"type":"array","items":{"type":"object","properties":{"from":{"type":"string","description":"é \"quoted\"."},"to":{"type":"string"}}}}}},
 "limit":{"type":"integer"},"bare":{}}}}},
{"function":{"name":"g","description":".","parameters":{"properties":{}}}}]}`

// The reference counts a tool's name and description as one text, the meter as two.
func TestToolsAgreeWithTheReference(t *testing.T) {
	for _, model := range []string{"gpt-4", "gpt-4o"} {
		function := map[string]int{"gpt-4": 10, "gpt-4o": 7}[model]
		for _, text := range []string{cookbookConversation, cookbookTools, nestedTools} {
			doc := parse(t, text)
			e, _ := Lookup(model)
			want := cookbook(t, e, doc, function)
			p := prompt(t, model)
			for seed := range uint64(20) {
				doc.walk(p, rand.New(rand.NewPCG(seed, 2)))
				if got := p.Total(); got != want {
					t.Fatalf("%s seed %d: %d, reference %d for %.60s", model, seed, got, want, text)
				}
				p.Reset()
			}
		}
	}
}

func TestDescriptionsLoseTheLastDotOnly(t *testing.T) {
	e := named(t, "o200k_base")
	for _, s := range []string{"", ".", "..", "a.", "a..", "a.b", "a. ", `a\u002e`, `\n.`, `...x.`} {
		var plain string
		if err := json.Unmarshal([]byte(`"`+s+`"`), &plain); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(s, "2e") { // a dot that was spelled by an escape counts
			plain = strings.TrimSuffix(plain, ".")
		}
		want := Count(e, ":"+plain)
		for i := 0; i <= len(s); i++ {
			for j := i; j <= len(s); j++ {
				p := NewPrompt(e.NewCounter(), Rates{})
				p.Text(ToolDescription, []byte(s[:i]), false)
				p.Text(ToolDescription, []byte(s[i:j]), false)
				p.Text(ToolDescription, []byte(s[j:]), true)
				if got := p.Total(); got != want {
					t.Fatalf("%q split at %d and %d: %d, want %d", s, i, j, got, want)
				}
			}
		}
	}
}

func TestPromptSumsStayInBounds(t *testing.T) {
	huge := int(^uint(0) >> 1)
	for _, n := range []int{huge, -huge, -huge - 1} {
		r := Rates{Message: n, Name: n, Reply: n, Tools: n, Tool: n, Properties: n, Property: n, Enum: n, EnumValue: n, Format: n,
			ToolDescription: n, PropertyDescription: n, ImageBase: n, ImageTile: n, ImageScale: n, ImageEdge: n, ImagePatches: n,
			ImageHigh: n, ImageLow: n, ImageUnknown: n, AudioSecond: n, VideoSecond: n, Page: n, FileUnknown: n}
		for scheme := ImageFixed - 1; scheme <= ImageCrops+1; scheme++ {
			r.ImageScheme = scheme
			p := NewPrompt(named(t, "approx-o200k").NewCounter(), r)
			for range 3 {
				for part := range Parts + 2 {
					p.Text(part, []byte("iVBORw0KGgoAAAANSUhEUgAAA+gAAAPo"), true)
					for item := range Items + 2 {
						p.End(item)
						if got := p.Total(); got < 0 || got > maxTokens || n < 0 && got > 1000 {
							t.Fatalf("total %d with rates of %d", got, n)
						}
					}
				}
			}
		}
	}
}

func TestPromptAllocatesNothing(t *testing.T) {
	p := prompt(t, "gpt-4o")
	text := []byte(`Some text with \"escapes\" and caf\u00e9. `)
	url := []byte("data:image/jpeg;base64,/9j/" + strings.Repeat("4AAQ", 500))
	run := func() {
		for part := range Parts {
			in := text
			if part == MediaURL || part == AudioData || part == FileData {
				in = url
			}
			for len(in) > 0 {
				n := min(len(in), 100)
				p.Text(part, in[:n], false)
				in = in[n:]
			}
			p.Text(part, nil, true)
		}
		for item := range Items {
			p.End(item)
		}
		p.Total()
		p.Reset()
	}
	run()
	if n := testing.AllocsPerRun(50, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
