package dialect

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/emmer-proxy/emmer/bucket"
)

func ollamaScan(t testing.TB, path string) func(w func(func([]byte))) scanned {
	d, ok := Recognise("POST", path)
	if !ok {
		t.Fatal(path)
	}
	return func(w func(func([]byte))) scanned { return scanAs(d, RequestHead{}, w, 256) }
}

func TestOllamaPaths(t *testing.T) {
	for path, want := range map[string]string{
		"/api/chat": "ollama-chat", "/API//chat/": "ollama-chat", "/ollama/api/generate?x": "ollama-generate",
		"/api/embed": "ollama-embed", "/api/embeddings": "ollama-embed", "/api%2fchat": "ollama-chat",
		"/api/v1/embeddings": "openai-embeddings", "/api/chat/completions": "openai-chat",
		"/api/tags": "", "/api/show": "", "/chat": "", "/api/chat/x": "", "/api/generate2": "",
	} {
		d, ok := Recognise("POST", path)
		if ok != (want != "") || ok && d.Name() != want {
			t.Errorf("%s: %v", path, d)
		}
		if d, ok := Recognise("GET", path); ok {
			t.Errorf("GET %s: %v", path, d)
		}
	}
	for _, path := range []string{"/api/chat", "/api/embed", "/api/embeddings", "/api/generate"} {
		if !LLMPath(path) {
			t.Error(path)
		}
	}
}

const ollamaBody = `{"model":"llama3.2:1b","stream":false,"messages":[{"role":"system","content":"Be kind."},
{"role":"user","content":"what is it?","images":["iVBORw0KGgo=","R0lGODlh"]},
{"role":"assistant","content":"","thinking":"hm","tool_calls":[{"function":{"name":"f","arguments":{"a": 1}}}]},
{"role":"tool","tool_name":"f","content":"3"}],
"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}}],
"format":{"type": "object"},"options":{"temperature":0,"num_predict":70,"num_ctx":4096},"keep_alive":-1,"think":true}`

func TestOllamaFacts(t *testing.T) {
	scan := ollamaScan(t, "/api/chat")
	got := scan(all(ollamaBody))
	at := int64(strings.Index(ollamaBody, `"llama3.2:1b"`))
	want := scanned{
		Facts: Facts{Model: "llama3.2:1b", ModelSpan: Span{at, at + 13}, MaxOutput: 70, HasMaxOutput: true, N: 1},
		Texts: []string{"system", "Be kind.", "/message", "user", "what is it?", "image: iVBORw0KGgo=", "/image", "image: R0lGODlh", "/image", "/message",
			"assistant", "", "hm", "f", `{"a":1}`, "/message", "tool", "f", "3", "/message",
			"tool: f", "tool description: d", "property: a", "type: integer", "/property", "/properties", "/tool", `schema: {"type":"object"}`},
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("\n got %+v %q\nwant %+v %q", got, got.Texts, want, want.Texts)
	}
	sameForEverySplit(t, ollamaBody, want, scan)

	for _, c := range []struct {
		path, body string
		facts      Facts
		texts      []string
	}{
		{"/api/generate", `{"prompt":"a b","system":"s","suffix":"x","images":["iVBORw0KGgo="],"context":[1,2,3],"format":"json"}`,
			Facts{Stream: true, TokenIDs: 3, N: 1}, []string{"a b", "s", "x", "image: iVBORw0KGgo=", "/image"}},
		{"/api/generate", `{"options":{"num_predict":-1},"stream":true}`, Facts{Stream: true, HasMaxOutput: true, N: 1}, nil},
		{"/api/generate", `{"options":{"num_predict":-2}}`, Facts{Stream: true, HasMaxOutput: true, N: 1}, nil},
		{"/api/generate", `{"options":{"num_predict":0}}`, Facts{Stream: true, HasMaxOutput: true, N: 1}, nil},
		{"/api/generate", `{"options":null,"stream":null,"context":null,"images":null,"format":null}`, Facts{Stream: true, N: 1}, nil},
		{"/api/embed", `{"input":["a","b"],"truncate":true}`, Facts{NoChat: true, NoOutput: true, Inputs: 2, N: 1}, []string{"a", "b"}},
		{"/api/embed", `{"input":"a"}`, Facts{NoChat: true, NoOutput: true, Inputs: 1, N: 1}, []string{"a"}},
		{"/api/embeddings", `{"prompt":"a"}`, Facts{NoChat: true, NoOutput: true, Inputs: 1, N: 1}, []string{"a"}},
		{"/api/embeddings", `{"input":[[1,2],[3]]}`, Facts{NoChat: true, NoOutput: true, Inputs: 2, TokenIDs: 3, N: 1}, nil},
	} {
		scan := ollamaScan(t, c.path)
		got := scan(all(c.body))
		if got.Fault != nil || got.Facts != c.facts || !slices.Equal(got.Texts, c.texts) {
			t.Errorf("%s\n got %+v\nwant %+v %q", c.body, got, c.facts, c.texts)
		}
		sameForEverySplit(t, c.body, got, scan)
	}
	for _, c := range []struct{ body, code, param string }{
		{`{"model":"a","Model":"b"}`, "misspelled_key", "model"}, // its decoder takes both, the last wins
		{`{"options":{"num_predict":5,"num_predict":900}}`, "duplicate_key", "options.num_predict"},
		{`{"options":{"num_predict":1.5}}`, "invalid_value", "options.num_predict"},
		{`{"options":{"num_predict":"5"}}`, "invalid_type", "options.num_predict"},
		{`{"stream":"no"}`, "invalid_type", "stream"},
	} {
		if got := scan(all(c.body)); got.Fault == nil || got.Fault.Code != c.code || got.Fault.Param != c.param {
			t.Errorf("%s: %v", c.body, got.Fault)
		}
	}
}

// referenceOllama gives, sorted, what the model heard of a chat or of a prompt.
func referenceOllama(body []byte) ([]string, bool) {
	if !json.Valid(body) || !utf8.Valid(body) || kindOf(body) != '{' {
		return nil, false
	}
	r := &reference{}
	images := func(v json.RawMessage) {
		for _, image := range elements(v) {
			if r.text(MediaURL, image) || kindOf(image) != 'n' {
				r.end(Image)
			}
		}
	}
	for _, key := range []string{"prompt", "suffix", "system", "template"} {
		r.either(Text, at(body, key), true)
	}
	images(at(body, "images"))
	for _, m := range elements(at(body, "messages")) {
		r.text(Text, m)
		for _, key := range []string{"role", "thinking", "tool_name"} {
			r.either(Text, at(m, key), true)
		}
		r.content(at(m, "content"))
		images(at(m, "images"))
		for _, c := range elements(at(m, "tool_calls")) {
			for _, key := range []string{"function", "custom"} {
				for _, part := range []string{"name", "arguments", "input"} {
					r.either(Text, at(at(c, key), part), true)
				}
			}
		}
		r.end(Message)
	}
	for _, v := range elements(at(body, "tools")) {
		r.tool(v, true)
		r.end(Tool)
	}
	if f := at(body, "format"); kindOf(f) == '{' {
		r.raw(Schema, f)
	}
	slices.Sort(r.heard)
	return r.heard, true
}

func FuzzOllamaScanner(f *testing.F) {
	for _, s := range []string{ollamaBody, shuffled(ollamaBody, 3), `{"prompt":"a","images":["x",null,5],"context":[1,"2"],"format":"json"}`,
		`{"messages":["a",{"content":["b"],"images":["x"]}],"options":{"num_predict":-1}}`} {
		f.Add([]byte(s), uint16(3))
		if want, ok := referenceOllama([]byte(s)); ok {
			got := ollamaScan(f, "/api/chat")(all(s))
			slices.Sort(got.Texts)
			if got.Fault != nil || !slices.Equal(got.Texts, want) {
				f.Errorf("%s: %v\n got %q\nwant %q", s, got.Fault, got.Texts, want)
			}
		}
	}
	scan := ollamaScan(f, "/api/chat")
	f.Fuzz(func(t *testing.T, body []byte, cut uint16) {
		n := int(cut) % (len(body) + 1)
		whole := scan(all(string(body)))
		split := scan(func(w func([]byte)) { w(bytes.Clone(body[:n])); w(bytes.Clone(body[n:])) })
		if !reflect.DeepEqual(whole, split) {
			t.Fatalf("cut at %d:\n%+v\n%+v", n, whole, split)
		}
		want, ok := referenceOllama(body)
		if ok && whole.Fault != nil && whole.Fault.Code == "invalid_json" || !ok && whole.Fault == nil {
			t.Fatalf("%v, but JSON: %v", whole.Fault, ok)
		}
		if heard := slices.Sorted(slices.Values(whole.Texts)); whole.Fault == nil && !slices.Equal(heard, want) {
			t.Fatalf("heard\n got %q\nwant %q", heard, want)
		}
	})
}

func ollamaLine(text string) string {
	return `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"` + text + `"},"done":false}` + "\n"
}

func ollamaLast(figures string) string {
	return `{"model":"m","message":{"role":"assistant","content":""},"done_reason":"stop","done":true,"total_duration":5191566416,"load_duration":2154458` + figures + "}\n"
}

var okNDJSON = ResponseHead{Status: 200, ContentType: "application/x-ndjson"}

func TestOllamaMeter(t *testing.T) {
	both := `,"prompt_eval_count":26,"prompt_eval_duration":383809000,"eval_count":298,"eval_duration":4799921000`
	for _, c := range []struct {
		name, path string
		head       ResponseHead
		body       string
		want       metered
	}{
		{"stream", "/api/chat", okNDJSON, ollamaLine("a") + ollamaLine("b") + ollamaLast(both),
			metered{Usage: used(26, 0, 298), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"ab"}}},
		{"stream, CRLF, no last newline", "/api/chat", okNDJSON, strings.TrimSpace(strings.ReplaceAll(ollamaLine("a")+ollamaLast(both), "\n", "\r\n")),
			metered{Usage: used(26, 0, 298), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"a"}}},
		{"whole", "/api/chat", okJSON, `{"message":{"role":"assistant","content":"ab","thinking":"hm","tool_calls":[{"function":{"name":"f","arguments":{"a": 1}}}]},"done":true` + both + `}`,
			metered{Usage: used(26, 0, 298), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"ab", "hm", "f", `{"a":1}`}}},
		{"generate", "/api/generate", okNDJSON, `{"response":"a","done":false}` + "\n" + `{"response":"","done":true,"context":[1,2,3]` + both + `}`,
			metered{Usage: used(26, 0, 298), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"a"}}},
		{"C125 no prompt_eval_count", "/api/chat", okNDJSON, ollamaLine("a") + `{"done":true,"eval_count":7}`,
			metered{Usage: used(0, 0, 7), Trust: OutputUsage, Produced: true, Finished: true, Texts: []string{"a"}}},
		{"C125 a prompt_eval_count of 0", "/api/chat", okNDJSON, ollamaLine("a") + ollamaLast(`,"prompt_eval_count":0,"eval_count":7`),
			metered{Usage: used(0, 0, 7), Trust: OutputUsage, Produced: true, Finished: true, Texts: []string{"a"}}},
		{"cut", "/api/chat", okNDJSON, ollamaLine("a") + ollamaLine("b"), metered{Produced: true, Texts: []string{"ab"}}},
		{"cut in a line", "/api/chat", okNDJSON, ollamaLine("a") + ollamaLine("b")[:100], metered{Produced: true, Texts: []string{"ab"}}},
		{"no figures", "/api/chat", okNDJSON, ollamaLine("a") + ollamaLast(""), metered{Produced: true, Finished: true, Texts: []string{"a"}}},
		{"null figures", "/api/chat", okNDJSON, ollamaLine("a") + ollamaLast(`,"prompt_eval_count":null,"eval_count":null`), metered{Produced: true, Finished: true, Texts: []string{"a"}}},
		{"a model was loaded", "/api/generate", okJSON, `{"model":"m","response":"","done":true}`, metered{Finished: true}},
		{"error", "/api/chat", ResponseHead{Status: 404}, `{"error":"model \"x\" not found"}`, metered{Failed: true, Finished: true}},
		{"error in a 200", "/api/chat", okNDJSON, `{"error":"out of memory"}`, metered{Failed: true, Finished: true}},
		{"error after output", "/api/chat", okNDJSON, ollamaLine("a") + `{"error":"an error was encountered"}` + "\n", metered{Produced: true, Finished: true, Texts: []string{"a"}}},
		{"absurd: negative", "/api/chat", okNDJSON, ollamaLast(`,"prompt_eval_count":-1,"eval_count":-7`), metered{Finished: true}},
		{"absurd: above 2^40", "/api/chat", okNDJSON, ollamaLast(`,"prompt_eval_count":26,"eval_count":1099511627777`), metered{Usage: used(26, 0, 0), Trust: WholeUsage, Finished: true}},
		{"absurd: words", "/api/chat", okNDJSON, ollamaLast(`,"prompt_eval_count":"26","eval_count":[7]`), metered{Finished: true}},
		{"embed", "/api/embed", okJSON, `{"model":"m","embeddings":[[0.1,-2e-5],[3]],"total_duration":14143917,"load_duration":1019500,"prompt_eval_count":8}`,
			metered{Usage: used(8, 0, 0), Trust: WholeUsage, Finished: true}},
		{"embeddings", "/api/embeddings", okJSON, `{"embedding":[0.1]}`, metered{Finished: true}},
		{"embeddings of OpenAI's kind", "/api/embeddings", okJSON, `{"data":[],"usage":{"prompt_tokens":8,"total_tokens":8}}`, metered{Usage: used(8, 0, 0), Trust: WholeUsage, Finished: true}},
		{"embed, error", "/api/embed", ResponseHead{Status: 400}, `{"error":"input too long"}`, metered{Failed: true, Finished: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _ := Recognise("POST", c.path)
			run := func(w func(func([]byte))) metered { return meterAs(d, c.head, w) }
			if got := run(all(c.body)); !reflect.DeepEqual(got, c.want) {
				t.Fatalf("\n got %+v\nwant %+v", got, c.want)
			}
			sameForEverySplit(t, c.body, c.want, run)
		})
	}
}

func TestOllamaMeterAgreesWithTheReference(t *testing.T) {
	d, _ := Recognise("POST", "/api/chat")
	for seed := range 100 {
		body := ""
		var want Usage
		for i := range 4 {
			in, out := 1+(seed*7+i*3)%11, 1+(seed*5+i*i)%13
			body += `{"prompt_eval_count":` + strconv.Itoa(in) + `,"eval_count":` + strconv.Itoa(out) + "}\n"
			var v struct {
				In  bucket.Tokens `json:"prompt_eval_count"`
				Out bucket.Tokens `json:"eval_count"`
			}
			json.Unmarshal([]byte(strings.Split(body, "\n")[i]), &v)
			want.Input, want.Output = max(want.Input, v.In), max(want.Output, v.Out)
		}
		if got := meterAs(d, okNDJSON, all(body)); got.Usage != want {
			t.Fatalf("%s: %+v", body, got)
		}
	}
}

func FuzzOllamaMeter(f *testing.F) {
	f.Add([]byte(ollamaLine("a")+ollamaLast(`,"prompt_eval_count":26,"eval_count":298`)), uint16(7))
	f.Add([]byte(`{"error":"x"}`), uint16(7))
	f.Add([]byte(`{"message":{"content":"0000000\0`), uint16(124))
	d, _ := Recognise("POST", "/api/chat")
	f.Fuzz(func(t *testing.T, body []byte, cut uint16) {
		n := int(cut) % (len(body) + 1)
		whole := meterAs(d, okNDJSON, all(string(body)))
		split := meterAs(d, okNDJSON, func(w func([]byte)) { w(bytes.Clone(body[:n])); w(bytes.Clone(body[n:])) })
		if !reflect.DeepEqual(whole, split) {
			t.Fatalf("cut at %d:\n%+v\n%+v", n, whole, split)
		}
		if u := whole.Usage; u.Input < 0 || u.Output < 0 {
			t.Fatalf("%+v", u)
		}
	})
}

func TestOllamaRefusal(t *testing.T) {
	d, _ := Recognise("POST", "/api/chat")
	headers, b := d.Refusal(Refusal{Reason: RateLimited, Message: "later \"x\"\n"})
	var got map[string]string
	if err := json.Unmarshal(b, &got); err != nil || len(got) != 1 || got["error"] != "later \"x\"\n" || !reflect.DeepEqual(headers, jsonHeaders()) {
		t.Fatalf("%s %v", b, headers)
	}
}
