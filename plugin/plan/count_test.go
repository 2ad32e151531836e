package plan

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
	"github.com/emmer-proxy/emmer/tokenizer"
)

// The worked examples of OpenAI's cookbook, How_to_count_tokens_with_tiktoken (read 2026-10), and the
// numbers that it gives, which are also those of the API.
const (
	cookbookChat = `{"model":"MODEL","messages":[
 {"role":"system","content":"You are a helpful, pattern-following assistant that translates corporate jargon into plain English."},
 {"role":"system","name":"example_user","content":"New synergies will help drive top-line growth."},
 {"role":"system","name":"example_assistant","content":"Things working well together will increase revenue."},
 {"role":"system","name":"example_user","content":"Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage."},
 {"role":"system","name":"example_assistant","content":"Let's talk later when we're less busy about how to do better."},
 {"role":"user","content":"This late pivot means we don't have time to boil the ocean for the client deliverable."}]}`
	cookbookTools = `{"model":"MODEL","messages":[
 {"role":"system","content":"You are a helpful assistant that can answer to questions about the weather."},
 {"role":"user","content":"What's the weather like in San Francisco?"}],
"tools":[{"type":"function","function":{"name":"get_current_weather","description":"Get the current weather in a given location",
 "parameters":{"type":"object","properties":{
  "location":{"type":"string","description":"The city and state, e.g. San Francisco, CA"},
  "unit":{"type":"string","description":"The unit of temperature to return","enum":["celsius","fahrenheit"]}},
 "required":["location"]}}}]}`
)

const countModels = `{
	"gpt-4o": {"max_output": 100}, "gpt-4": {"max_output": 100}, "gpt-3.5-turbo": {"max_output": 100}, "gpt-4o-mini": {"max_output": 100},
	"gpt-4.1-mini": {"max_output": 100}, "claude-sonnet-4-5": {"max_output": 100}, "gemini-2.5-pro": {"max_output": 100},
	"o200k-estimate": {"tokenizer": "approx-o200k", "max_output": 100, "prompt": {"like": "gpt-4o"}},
	"dear": {"tokenizer": "o200k_base", "max_output": 100, "prompt": {"per_message": 10, "reply": 0, "tool": 100, "image": {"flat": 1000}}}
}`

func counted(t testing.TB, c *config.Compiled, body, model string) (bucket.Tokens, Method) {
	t.Helper()
	p := build(t, c, nil, strings.ReplaceAll(body, "MODEL", model))
	return p.Raw, p.Method
}

func TestCookbookExamples(t *testing.T) {
	c := compiled(t, "models", countModels)
	for _, x := range []struct {
		name, body, model string
		want              bucket.Tokens
	}{
		{"conversation", cookbookChat, "gpt-4o", 124}, {"conversation", cookbookChat, "gpt-4o-mini", 124},
		{"conversation", cookbookChat, "gpt-4", 129}, {"conversation", cookbookChat, "gpt-3.5-turbo", 129},
		{"tools", cookbookTools, "gpt-4o", 101}, {"tools", cookbookTools, "gpt-4o-mini", 101},
		{"tools", cookbookTools, "gpt-4", 105}, {"tools", cookbookTools, "gpt-3.5-turbo", 105},
		// Six messages at 10 in place of 3, and no 3 for the reply; two at 10, and a tool at 100 in place of 7.
		{"overridden", cookbookChat, "dear", 124 + 6*7 - 3}, {"overridden", cookbookTools, "dear", 101 + 2*7 - 3 + 93},
	} {
		if got, how := counted(t, c, x.body, x.model); got != x.want || how != Exact {
			t.Errorf("%s, %s: %d (%v), want %d", x.name, x.model, got, how, x.want)
		}
		for seed := range uint64(20) {
			if got, _ := counted(t, c, shuffled(t, x.body, seed), x.model); got != x.want {
				t.Errorf("%s, %s, fields in another order: %d, want %d\n%s", x.name, x.model, got, x.want, shuffled(t, x.body, seed))
			}
		}
		escaped := escapedAll(x.body)
		if got, _ := counted(t, c, escaped, x.model); got != x.want {
			t.Errorf("%s, %s, all characters as escapes: %d, want %d", x.name, x.model, got, x.want)
		}
	}
}

// shuffled gives the members of each object in another order.
func shuffled(t testing.TB, doc string, seed uint64) string {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	var walk func(v any) string
	walk = func(v any) string {
		var parts []string
		switch v := v.(type) {
		case map[string]any:
			var keys []string
			for k := range v {
				keys = append(keys, k)
			}
			r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			for _, k := range keys {
				parts = append(parts, walk(k)+": "+walk(v[k]))
			}
			return "{" + strings.Join(parts, " ,") + "}"
		case []any:
			for _, e := range v {
				parts = append(parts, walk(e))
			}
			return "[" + strings.Join(parts, ",\n") + "]"
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var v any
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		t.Fatal(err)
	}
	return walk(v)
}

// escapedAll spells every character of every string but the model's name as \uXXXX.
func escapedAll(doc string) string {
	var b strings.Builder
	in := false
	for i := 0; i < len(doc); i++ {
		if strings.HasPrefix(doc[i:], "MODEL") {
			b.WriteString("MODEL")
			i += 4
			continue
		}
		if doc[i] == '"' {
			in = !in
		} else if in {
			fmt.Fprintf(&b, `\u%04x`, doc[i])
			continue
		}
		b.WriteByte(doc[i])
	}
	return b.String()
}

// TestCountAgreesWithADirectOne computes the input of random requests from decoded values, by
// tokenizer.Count and the rates, without the scanner and without tokenizer.Prompt.
func TestCountAgreesWithADirectOne(t *testing.T) {
	c := compiled(t, "models", countModels)
	r := rand.New(rand.NewPCG(7, 7))
	words := []string{"order", "zürich", "42", "a.b", "你好", "the last one.", "x\n\ty", `say "no"`, "😀", "", "e.g. this..", "CamelCase"}
	text := func() string {
		var parts []string
		for range 1 + r.IntN(5) {
			parts = append(parts, words[r.IntN(len(words))])
		}
		return strings.Join(parts, " ")
	}
	for i := range 300 {
		model := []string{"gpt-4o", "gpt-4", "o200k-estimate", "claude-sonnet-4-5", "gemini-2.5-pro", "dear"}[i%6]
		m, _ := c.Model(model)
		rates, e := m.Rates, m.Encoding
		want := rates.Reply
		count := func(s string) string { want += tokenizer.Count(e, s); return s }
		described := func(s string, each int) string {
			want += tokenizer.Count(e, ":"+strings.TrimSuffix(s, ".")) + each
			return s
		}
		var schema func(depth int) map[string]any
		schema = func(depth int) map[string]any {
			s := map[string]any{"additionalProperties": false, "required": []string{"a"}}
			if n := r.IntN(4); n > 0 {
				want += rates.Properties
				p := map[string]any{}
				for j := range n {
					want += rates.Property
					one := map[string]any{}
					if depth < 2 && r.IntN(3) == 0 {
						one = schema(depth + 1)
					}
					want += tokenizer.Count(e, ":string")
					one["type"] = "string"
					if r.IntN(2) == 0 {
						one["description"] = described(text(), rates.PropertyDescription)
					}
					if r.IntN(3) == 0 {
						want += rates.Enum + 2*rates.EnumValue
						one["enum"] = []string{count(text()), count(text())}
					}
					p[count(fmt.Sprintf("%s %d", words[r.IntN(len(words))], j))] = one
				}
				s["properties"] = p
			}
			return s
		}
		var messages, tools []any
		for range r.IntN(6) {
			want += rates.Message
			msg := map[string]any{"role": count("user")}
			if r.IntN(2) == 0 {
				msg["content"] = count(text())
			} else {
				msg["content"] = []any{map[string]any{"type": "text", "text": count(text())}, map[string]any{"type": "text", "text": count(text())}}
			}
			if r.IntN(3) == 0 {
				want += rates.Name
				msg["name"] = count("ann")
			}
			messages = append(messages, msg)
		}
		for range r.IntN(3) {
			if len(tools) == 0 {
				want += rates.Tools
			}
			want += rates.Tool
			f := map[string]any{"name": count("look_up"), "strict": true}
			if r.IntN(2) == 0 {
				f["description"] = described(text(), rates.ToolDescription)
			}
			s := schema(0)
			s["type"] = "object"
			f["parameters"] = s
			tools = append(tools, map[string]any{"type": "function", "function": f})
		}
		body, err := json.Marshal(map[string]any{"model": model, "messages": messages, "tools": tools})
		if err != nil {
			t.Fatal(err)
		}
		p := build(t, c, nil, string(body))
		if p.Raw != bucket.Tokens(max(want, 0)) || (p.Method == Exact) != e.Exact() {
			t.Fatalf("%s: %d (%v), want %d\n%s", model, p.Raw, p.Method, want, body)
		}
		factor := int64(1000)
		if model == "claude-sonnet-4-5" {
			factor = 1100 // tokenizer.Seed
		}
		if in := int64(p.Input); in < int64(p.Raw)*factor/1000 || in > int64(p.Raw)*factor/1000+2 {
			t.Fatalf("%s: %d became %d", model, p.Raw, in)
		}
	}
}

// picture is a PNG of that size as a data URL: its head, and as many bytes as are asked for.
func picture(w, h, size int) string {
	b := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), make([]byte, 8)...)
	binary.BigEndian.PutUint32(b[16:], uint32(w))
	binary.BigEndian.PutUint32(b[20:], uint32(h))
	b = append(b, 8, 2, 0, 0, 0)
	for i := 0; len(b) < size; i++ {
		b = append(b, byte(i*i))
	}
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(b)
}

// C77: base64 is never counted as text.
func TestCountOfImages(t *testing.T) {
	c := compiled(t, "models", countModels)
	body := func(image string) string {
		return `{"model":"MODEL","messages":[{"role":"user","content":[{"type":"text","text":"What is it?"},{"type":"image_url","image_url":` + image + `}]}]}`
	}
	for _, x := range []struct {
		model, image string
		want         bucket.Tokens
	}{
		// Tiles: 1024x1024 becomes 768x768, 2 by 2 tiles of 170 and 85.
		{"gpt-4o", `{"url":"` + picture(1024, 1024, 0) + `"}`, 765},
		{"gpt-4o", `{"detail":"high","url":"` + picture(1024, 1024, 200_000) + `"}`, 765},
		{"gpt-4o", `{"url":"` + strings.ReplaceAll(picture(1024, 1024, 5000), "/", `\/`) + `"}`, 765},
		{"gpt-4o", `{"url":"` + picture(1024, 1024, 0) + `","detail":"low"}`, 85},
		{"gpt-4o", `{"detail":"low","url":"` + picture(1024, 1024, 0) + `"}`, 85},
		{"gpt-4o", `{"url":"` + picture(512, 512, 0) + `"}`, 255},
		{"gpt-4o", `"` + picture(512, 512, 0) + `"`, 255},
		// Patches: 32 by 32 of them, times 1.62.
		{"gpt-4.1-mini", `{"url":"` + picture(1024, 1024, 0) + `"}`, 1659},
		// 37 by 37 of 28 pixels.
		{"claude-sonnet-4-5", `{"url":"` + picture(1024, 1024, 0) + `"}`, 1369},
		{"dear", `{"url":"` + picture(1024, 1024, 100_000) + `"}`, 1000},
		{"gpt-4o", `{"url":"https://example.com/a.png"}`, bucket.Tokens(tokenizer.RatesOf("gpt-4o").ImageUnknown)},
	} {
		without, _ := counted(t, c, `{"model":"MODEL","messages":[{"role":"user","content":"What is it?"}]}`, x.model)
		if got, _ := counted(t, c, body(x.image), x.model); got-without != x.want {
			t.Errorf("%s, %.60s...: %d, want %d", x.model, x.image, got-without, x.want)
		}
	}
}

// TestExactCountHasABudget passes it in the middle of a text.
func TestExactCountHasABudget(t *testing.T) {
	body := func(n int, model string) string {
		return `{"model":"` + model + `","messages":[{"role":"user","content":"` + strings.Repeat("one more word. ", n) + `"},{"role":"user","content":"The end."}]}`
	}
	whole := compiled(t, "models", countModels)
	tight := compiled(t, "models", countModels, "body", `{"count_exact": "1KiB"}`)
	for _, x := range []struct {
		c     *config.Compiled
		n     int
		model string
		want  Method
	}{{whole, 500, "gpt-4o", Exact}, {tight, 60, "gpt-4o", Exact}, {tight, 500, "gpt-4o", Mixed}, {tight, 500, "claude-sonnet-4-5", Approx}, {whole, 60, "o200k-estimate", Approx}} {
		p := build(t, x.c, nil, body(x.n, x.model))
		exact := build(t, whole, nil, body(x.n, x.model)).Input
		if p.Method != x.want || p.Input < exact*9/10 || p.Input > exact*11/10 {
			t.Errorf("%s, %d words: %d (%v), exactly %d, want %v", x.model, x.n, p.Input, p.Method, exact, x.want)
		}
		// The budget is one of each call.
		var m Memory
		for range 3 {
			again, refusal := m.Build(x.c, dialect.OpenAIChat, Caller{}, []byte(body(x.n, x.model)), now)
			if refusal != nil || again.Input != p.Input || again.Method != p.Method {
				t.Fatalf("again: %d (%v), at first %d (%v)", again.Input, again.Method, p.Input, p.Method)
			}
		}
	}
}

// TestPartsHaveTheSameNames: the enums of both rooms are one, but for what only searches have: a query
// is text, and a document costs nothing beside its own.
func TestPartsHaveTheSameNames(t *testing.T) {
	const parts, items = int(dialect.Query), int(dialect.Document)
	if parts != int(tokenizer.Parts) || items != int(tokenizer.Items) || len(tokenizerParts) != parts+1 || len(tokenizerItems) != items+1 {
		t.Fatalf("%d parts of %d, %d items of %d", len(tokenizerParts), tokenizer.Parts, len(tokenizerItems), tokenizer.Items)
	}
	for i, part := range tokenizerParts[:parts] {
		if int(part) != i {
			t.Errorf("part %d is %d", i, part)
		}
	}
	for i, item := range tokenizerItems[:items] {
		if int(item) != i {
			t.Errorf("item %d is %d", i, item)
		}
	}
	if tokenizerParts[parts] != tokenizer.Text || tokenizerItems[items] != 0 {
		t.Errorf("a query is part %d, a document item %d", tokenizerParts[parts], tokenizerItems[items])
	}
}

// C77: a picture inside of a tool's result costs what a picture does, not what its base64 would as text,
// and neither nothing; a document that is plain text costs what its text does.
func TestPicturesAndTextsWithinAToolsResult(t *testing.T) {
	claude, _ := dialect.Recognise("POST", "/v1/messages")
	c := compiled(t, "models", `{"claude-sonnet-4-5": {"max_output": 1000}}`)
	count := func(block string) bucket.Tokens {
		body := `{"model": "claude-sonnet-4-5", "max_tokens": 5, "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [` + block + `]}]}]}`
		p, refusal := Build(c, claude, Caller{}, []byte(body), now)
		if refusal != nil {
			t.Fatal(refusal)
		}
		return p.Input
	}
	for _, x := range []struct {
		block       string
		least, most bucket.Tokens
	}{
		{`{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "` + strings.Repeat("iVBORw0K", 190_000) + `"}}`, 1000, 5000},
		{`{"source": {"url": "https://x/y.png", "type": "url"}, "type": "image"}`, 1000, 5000},
		{`{"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}}`, 10_000, 50_000},
		{`{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Subject: ` + strings.Repeat("a word or two. ", 10_000) + `"}}`, 30_000, 70_000},
		{`{"type": "text", "text": "hi"}`, 5, 50},
	} {
		if n := count(x.block); n < x.least || n > x.most {
			t.Errorf("%.120s: %d tokens, want %d to %d", x.block, n, x.least, x.most)
		}
	}
}
