package dialect

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

func TestRecogniseCohere(t *testing.T) {
	for _, c := range []struct{ method, path, name string }{
		{"POST", "/v2/chat", "cohere-chat"}, {"POST", "/v1/chat?x=1", "cohere-chat"}, {"POST", "/cohere//V2/ch%61t/", "cohere-chat"},
		{"POST", "/v2/embed", "cohere-embed"}, {"POST", "/v1/embed", "cohere-embed"},
		{"POST", "/v2/rerank", "cohere-rerank"}, {"POST", "/v1/rerank", "cohere-rerank"}, {"POST", "/providers/cohere/v2/rerank", "cohere-rerank"},
		{"POST", "/rerank", "tei-rerank"}, {"POST", "/tei/rerank", "tei-rerank"},
		{"POST", "/embed", "tei-embed"}, {"POST", "/embed_all", "tei-embed"}, {"POST", "/embed_sparse", "tei-embed"},
		{"POST", "/api/embed", "ollama-embed"}, {"POST", "/api/chat", "ollama-chat"}, {"POST", "/v1/chat/completions", "openai-chat"},
		{"GET", "/v2/chat", ""}, {"GET", "/rerank", ""}, {"POST", "/chat", ""}, {"POST", "/v3/chat", ""},
		{"POST", "/v1/embed-jobs", ""}, {"POST", "/v1/chat2", ""}, {"POST", "/v1/rerank/x", ""}, {"POST", "/v1/tokenize", ""},
	} {
		d, ok := Recognise(c.method, c.path)
		if ok != (c.name != "") || ok && (d.Name() != c.name || !slices.Contains(Names(), c.name)) {
			t.Errorf("%s %s: %v %v", c.method, c.path, ok, d)
		}
	}
}

const cohereBody = `{"model":"command-a-03-2025","stream":true,"max_tokens":300,"thinking":{"type":"enabled","token_budget":500},
"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO","detail":"low"}}]},
 {"role":"assistant","tool_plan":"look it up","tool_calls":[{"id":"t","type":"function","function":{"name":"look","arguments":"{}"}}],"content":[{"type":"thinking","thinking":"hm"}]},
 {"role":"tool","tool_call_id":"t","content":[{"type":"document","document":{"id":"1","data":{"a": 1}}}]}],
"documents":["one",{"id":"d","data":{"title":"two"}}],
"tools":[{"type":"function","function":{"name":"look","description":"looks","parameters":{"type":"object","properties":{"at":{"type":"string"}}}}}],
"response_format":{"type":"json_object"},"safety_mode":"NONE"}`

const cohereOldBody = `{"model":"command-r","message":"hi","preamble":"Be kind.","chat_history":[{"role":"USER","message":"ho"},{"role":"CHATBOT","message":"hum","tool_calls":[{"name":"f","parameters":{}}]}],
"documents":[{"title":"T","snippet":"S"}],"tools":[{"name":"f","description":"d","parameter_definitions":{"a":{"type":"str"}}}],"tool_results":[{"outputs":[{"x":1}]}],"max_tokens":50}`

func TestCohereFacts(t *testing.T) {
	for _, c := range []struct {
		body string
		want scanned
	}{
		{cohereBody, scanned{Facts: Facts{Model: "command-a-03-2025", ModelSpan: Span{9, 28}, Stream: true, MaxOutput: 500, HasMaxOutput: true, N: 1},
			Texts: []string{"system", "Be kind.", "/message", "user", "hi", "image: data:image/png;base64,iVBO", "detail: low", "/image", "/message",
				"assistant", "look it up", "look", "{}", "hm", "/message", "tool", `{"id":"1","data":{"a":1}}`, "/message",
				`["one",{"id":"d","data":{"title":"two"}}]`,
				"tool: look", "tool description: looks", "property: at", "type: string", "/property", "/properties", "/tool"}}},
		{cohereOldBody, scanned{Facts: Facts{Model: "command-r", ModelSpan: Span{9, 20}, MaxOutput: 50, HasMaxOutput: true, N: 1},
			Texts: []string{"hi", "/message", "Be kind.", "USER", "ho", "/message", "CHATBOT", "hum", `[{"name":"f","parameters":{}}]`, "/message",
				`[{"title":"T","snippet":"S"}]`, "tool: f", "tool description: d", "schema: parameter_definitions", `schema: {"a":{"type":"str"}}`, "/tool",
				`[{"outputs":[{"x":1}]}]`}}},
	} {
		sameForEverySplit(t, c.body, c.want, func(w func(func([]byte))) scanned { return scanAs(cohereChat{}, RequestHead{}, w, 256) })
	}
	for _, body := range []string{`{"max_tokens":0}`, `{"max_tokens":5,"max_tokens":6}`, `{"messages":{}}`, `{"thinking":{"token_budget":-1}}`, `[]`} {
		got := scanAs(cohereChat{}, RequestHead{}, func(w func([]byte)) { w([]byte(body)) }, 256)
		if got.Fault == nil || got.Fault.Status != 400 {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

func TestSearchFacts(t *testing.T) {
	for _, c := range []struct {
		d    Dialect
		body string
		want scanned
	}{
		{rerank{}, `{"model":"m","query":"which?","documents":["one","two",{"title":"T","text":"three","n":4}],"top_n":2,"rank_fields":["title"]}`,
			scanned{Facts: Facts{Model: "m", ModelSpan: Span{9, 12}, N: 1, NoChat: true, NoOutput: true, Documents: 3, Chunks: 3},
				Texts: []string{"query: which?", "one", "/document", "two", "/document", "schema: title", "T", "schema: text", "three", "schema: n", "4", "/document"}}},
		{rerank{search{tei: true}}, `{"query":"q","texts":["a","b"],"raw_scores":false}`, // C130
			scanned{Facts: Facts{N: 1, NoChat: true, NoOutput: true, Unnamed: true, Documents: 2, Chunks: 2},
				Texts: []string{"query: q", "a", "/document", "b", "/document"}}},
		{rerank{}, `{"documents":[{"image":"iVBO"},null,7],"query":{"text":"q"}}`,
			scanned{Facts: Facts{N: 1, NoChat: true, NoOutput: true, Documents: 3, Chunks: 3},
				Texts: []string{"image: iVBO", "/image", "/document", "/document", "/document", "query: q"}}},
		{rerank{}, `{"documents":["` + strings.Repeat("x", 1500) + `","` + strings.Repeat("x", 1501) + `"]}`,
			scanned{Facts: Facts{N: 1, NoChat: true, NoOutput: true, Documents: 2, Chunks: 3},
				Texts: []string{strings.Repeat("x", 1500), "/document", strings.Repeat("x", 1501), "/document"}}},
		{cohereEmbed{}, `{"model":"embed-v4.0","input_type":"search_query","texts":["a","b"],"output_dimension":512}`,
			scanned{Facts: Facts{Model: "embed-v4.0", ModelSpan: Span{9, 21}, N: 1, NoChat: true, NoOutput: true, Inputs: 2}, Texts: []string{"a", "b"}}},
		{cohereEmbed{}, `{"images":["data:image/png;base64,iVBO"],"inputs":[{"content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"http://x/y"}}]},{"content":[]}]}`,
			scanned{Facts: Facts{N: 1, NoChat: true, NoOutput: true, Inputs: 3},
				Texts: []string{"image: data:image/png;base64,iVBO", "/image", "a", "image: http://x/y", "/image"}}},
		{cohereEmbed{search{tei: true}}, `{"inputs":"one","normalize":true}`,
			scanned{Facts: Facts{N: 1, NoChat: true, NoOutput: true, Unnamed: true, Inputs: 1}, Texts: []string{"one"}}},
		{cohereEmbed{search{tei: true}}, `{"inputs":["one",["two","three"]]}`,
			scanned{Facts: Facts{N: 1, NoChat: true, NoOutput: true, Unnamed: true, Inputs: 2}, Texts: []string{"one", "two", "three"}}},
	} {
		sameForEverySplit(t, c.body, c.want, func(w func(func([]byte))) scanned { return scanAs(c.d, RequestHead{}, w, 256) })
	}
}

func TestCohereMeter(t *testing.T) {
	whole := func(u Usage, texts ...string) metered {
		return metered{Usage: u, Trust: WholeUsage, Produced: len(texts) > 0, Finished: true, Texts: texts}
	}
	const billed = `{"billed_units":{"input_tokens":11.0,"output_tokens":4.0},"tokens":{"input_tokens":499.0,"output_tokens":6.0},"cached_tokens":8.0}`
	ends := `{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":` + billed + `}}`
	text := func(s string) string {
		return `{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"` + s + `"}}}}`
	}
	for _, c := range []struct {
		name string
		d    Dialect
		head ResponseHead
		body string
		want metered
	}{
		{"v2", cohereChat{}, okJSON, `{"id":"c","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"hey"}],
			"tool_plan":"so","tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{}"}}]},"usage":` + billed + `}`,
			whole(used(11, 8, 4), "hmhey", "so", "f", "{}")},
		{"v2 stream", cohereChat{}, okSSE, events(`{"type":"message-start","id":"c","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}`,
			`{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"so"}}}`,
			`{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"t","type":"function","function":{"name":"f","arguments":""}}}}}`,
			`{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{\"a\""}}}}}`,
			`{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":":1}"}}}}}`,
			`{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`, text("he"), text("y"),
			`{"type":"citation-start","index":0,"delta":{"message":{"citations":{"text":"not output"}}}}`, ends),
			whole(used(11, 8, 4), "so", "f", `{"a":1}`, "hey")},
		{"v2 stream, cut", cohereChat{}, okSSE, events(text("he"), text("y")), metered{Produced: true, Texts: []string{"hey"}}},
		{"v2 stream, failed", cohereChat{}, okSSE, events(`{"type":"message-end","delta":{"finish_reason":"ERROR","error":"broken"}}`), metered{Failed: true, Finished: true}},
		{"v2 stream, failed late", cohereChat{}, okSSE, events(text("he"), `{"type":"message-end","delta":{"finish_reason":"ERROR","error":"broken"}}`),
			metered{Produced: true, Finished: true, Texts: []string{"he"}}},
		{"v1", cohereChat{}, okJSON, `{"text":"hey","generation_id":"g","tool_calls":[{"name":"f","parameters":{"a": 1}}],"finish_reason":"COMPLETE","meta":{"api_version":{"version":"1"},"billed_units":{"input_tokens":5,"output_tokens":2},"tokens":{"input_tokens":70,"output_tokens":2}}}`,
			whole(used(5, 0, 2), "hey", "f", `{"a":1}`)},
		{"v1 stream", cohereChat{}, ResponseHead{Status: 200, ContentType: "application/stream+json"}, `{"is_finished":false,"event_type":"stream-start"}
{"is_finished":false,"event_type":"text-generation","text":"he"}
{"is_finished":false,"event_type":"text-generation","text":"y"}
{"is_finished":true,"event_type":"stream-end","finish_reason":"COMPLETE","response":{"text":"hey","meta":{"billed_units":{"input_tokens":5,"output_tokens":2}}}}
`, whole(used(5, 0, 2), "hey")},
		{"tokens alone", cohereChat{}, okJSON, `{"usage":{"tokens":{"input_tokens":7,"output_tokens":2}}}`, whole(used(7, 0, 2))},
		{"nothing billed", cohereChat{}, okJSON, `{"message":{"content":[{"text":"a"}]},"usage":{"billed_units":{},"cached_tokens":0}}`,
			metered{Produced: true, Finished: true, Texts: []string{"a"}}},
		{"an error", cohereChat{}, ResponseHead{Status: 429}, `{"message":"slow down"}`, metered{Failed: true, Finished: true}},
		{"absurd", cohereChat{}, okJSON, `{"usage":{"billed_units":{"input_tokens":1.5,"output_tokens":2}}}`, metered{Finished: true}},
		{"negative", cohereChat{}, okJSON, `{"usage":{"billed_units":{"input_tokens":-1,"output_tokens":2}}}`, metered{Finished: true}},

		{"embed", cohereEmbed{}, okJSON, `{"id":"e","embeddings":{"float":[[0.1,-2e-3]]},"texts":["a"],"meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":9}}}`, whole(used(9, 0, 0))},
		{"embed pictures", cohereEmbed{}, okJSON, `{"embeddings":{},"meta":{"billed_units":{"images":1,"image_tokens":300,"text_tokens":5}}}`, whole(used(305, 0, 0))},
		{"C124 units", rerank{}, okJSON, `{"results":[{"index":0,"relevance_score":0.9}],"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":2}}}`, whole(Usage{SearchUnits: 2})},
		{"C124 Jina, Voyage", rerank{}, okJSON, `{"object":"list","data":[],"usage":{"total_tokens":88}}`, whole(used(88, 0, 0))},
		{"C124 nothing", rerank{}, okJSON, `{"results":[],"meta":{"billed_units":{}}}`, metered{Finished: true}},
		{"C130 a bare array", rerank{search{tei: true}}, okJSON, `[{"index":1,"score":0.99},{"index":0,"score":0.1}]`, metered{Finished: true}},
		{"TEI's embeddings", cohereEmbed{search{tei: true}}, okJSON, ` [[0.1,-2.5e-3],[1,2]]`, metered{Finished: true}},
		{"TEI, cut", cohereEmbed{search{tei: true}}, okJSON, `[[0.1,-2.5e-3],`, metered{}},
		{"TEI, too long", cohereEmbed{search{tei: true}}, ResponseHead{Status: 413}, `{"error":"Input validation error","error_type":"Validation"}`, metered{Failed: true, Finished: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sameForEverySplit(t, c.body, c.want, func(w func(func([]byte))) metered { return meterAs(c.d, c.head, w) })
		})
	}
}

// cohereUsageReference is the dumb model of a record: what is billed, or else what was read.
func cohereUsageReference(raw string) (u Usage) {
	var v struct {
		Billed map[string]int64 `json:"billed_units"`
		Read   map[string]int64 `json:"tokens"`
	}
	json.Unmarshal([]byte(raw), &v)
	of := func(name string) int64 {
		if n, ok := v.Billed[name]; ok {
			return n
		}
		return v.Read[name]
	}
	u.Input, u.Output, u.SearchUnits = bucket.Tokens(of("input_tokens")), bucket.Tokens(of("output_tokens")), v.Billed["search_units"]
	return u
}

func TestCohereMeterAgreesWithTheReference(t *testing.T) {
	for seed := range 1 << 5 {
		var billed, read []string
		for i, name := range []string{"input_tokens", "output_tokens", "search_units"} {
			if seed&(1<<i) != 0 {
				billed = append(billed, `"`+name+`":`+strconv.Itoa(3+i+seed%7))
			}
		}
		for i, name := range []string{"input_tokens", "output_tokens"} {
			if seed&(8<<i) != 0 {
				read = append(read, `"`+name+`":`+strconv.Itoa(20+i+seed%5))
			}
		}
		raw := `{"billed_units":{` + strings.Join(billed, ",") + `},"tokens":{` + strings.Join(read, ",") + `}}`
		got := meterAs(rerank{}, okJSON, func(w func([]byte)) { w([]byte(`{"meta":` + raw + `}`)) })
		if want := cohereUsageReference(raw); got.Usage != want || got.Trust != NoUsage != (want != Usage{}) {
			t.Fatalf("%s:\n got %+v\nwant %+v", raw, got, want)
		}
	}
}

func TestCohereRefusals(t *testing.T) {
	for _, c := range []struct {
		d    Dialect
		r    Refusal
		want string
	}{
		{cohereChat{}, Refusal{Reason: RateLimited, Message: `later "x"`}, `{"message":"later \"x\""}`},
		{cohereEmbed{}, Refusal{Reason: Killed, Message: "no"}, `{"message":"no"}`},
		{rerank{}, Refusal{Reason: BadRequest, Message: "no"}, `{"message":"no"}`},
		{rerank{search{tei: true}}, Refusal{Reason: RateLimited, Message: "no"}, `{"error":"no","error_type":"Overloaded"}`},
		{cohereEmbed{search{tei: true}}, Refusal{Reason: Unavailable, Message: "no"}, `{"error":"no","error_type":"Backend"}`},
		{cohereEmbed{search{tei: true}}, Refusal{Reason: NotFound, Message: "no"}, `{"error":"no","error_type":"Validation"}`},
	} {
		headers, b := c.d.Refusal(c.r)
		if strings.TrimSpace(string(b)) != c.want || !json.Valid(b) || !reflect.DeepEqual(headers, jsonHeaders()) {
			t.Errorf("%s, want %s", b, c.want)
		}
	}
}

// cohereReferenceScan is the dumb model of what is heard of a request to d, and of how many texts and
// documents it has.
func cohereReferenceScan(d Dialect, body []byte) (f Facts, heard []string) {
	r := &reference{}
	json.Unmarshal(at(body, "model"), &f.Model)
	switch d.(type) {
	case cohereChat:
		r.cohereChat(body)
	case cohereEmbed:
		if v := at(body, "texts"); kindOf(v) == '[' {
			for _, e := range elements(v) {
				f.Inputs++
				r.text(Text, e)
			}
		}
		if v := at(body, "images"); kindOf(v) == '[' {
			for _, e := range elements(v) {
				f.Inputs++
				r.media(Image, e, MediaURL, nil)
			}
		}
		f.Inputs += r.cohereInputs(at(body, "inputs"))
	case rerank:
		r.query(at(body, "query"))
		for _, key := range []string{"documents", "texts"} {
			for _, e := range elements(at(body, key)) {
				f.Documents++
				if !r.text(Text, e) && kindOf(e) == '{' {
					for _, m := range members(e) {
						if m.key == "image" || m.key == "image_url" {
							r.media(Image, m.value, MediaURL, map[string]Part{"url": MediaURL})
							continue
						}
						r.heard = append(r.heard, partNames[Schema]+": "+m.key)
						r.either(Text, m.value, false)
					}
				}
				r.end(Document)
			}
		}
	}
	slices.Sort(r.heard)
	return f, r.heard
}

func (r *reference) query(v json.RawMessage) {
	if !r.text(Query, v) && kindOf(v) == '{' {
		r.query(at(v, "text"))
		r.media(Image, at(v, "image"), MediaURL, map[string]Part{"url": MediaURL})
	}
}

func (r *reference) cohereInputs(v json.RawMessage) (n int64) {
	if r.text(Text, v) {
		return 1
	}
	if kindOf(v) != '[' {
		return 0
	}
	for _, e := range elements(v) {
		n++
		r.cohereParts(e)
		r.cohereParts(at(e, "content"))
	}
	return n
}

func (r *reference) cohereParts(v json.RawMessage) {
	switch kindOf(v) {
	case '[':
		for _, e := range elements(v) {
			r.cohereParts(e)
		}
	case '{':
		r.text(Text, at(v, "text"))
		for _, key := range []string{"image_url", "image"} {
			r.media(Image, at(v, key), MediaURL, map[string]Part{"url": MediaURL})
		}
	default:
		r.text(Text, v)
	}
}

func (r *reference) cohereContent(v json.RawMessage) {
	switch kindOf(v) {
	case '[':
		for _, e := range elements(v) {
			r.cohereContent(e)
		}
	case '{':
		r.part(v)
		r.raw(Text, at(v, "document"))
	default:
		r.text(Text, v)
	}
}

func (r *reference) cohereTurn(v json.RawMessage) {
	if !r.text(Text, v) && kindOf(v) == '{' {
		for _, key := range []string{"role", "message"} {
			r.either(Text, at(v, key), false)
		}
		for _, key := range []string{"tool_calls", "tool_results"} {
			if m := at(v, key); kindOf(m) != 'n' {
				r.raw(Text, m)
			}
		}
	}
	r.end(Message)
}

func (r *reference) cohereChat(body []byte) {
	for _, v := range elements(at(body, "messages")) {
		if !r.text(Text, v) && kindOf(v) == '{' {
			r.either(Text, at(v, "role"), false)
			r.either(Text, at(v, "tool_plan"), false)
			r.cohereContent(at(v, "content"))
			if calls := at(v, "tool_calls"); kindOf(calls) == '[' {
				for _, c := range elements(calls) {
					for _, of := range []string{"function", "custom"} {
						for _, key := range []string{"name", "arguments", "input"} {
							r.either(Text, at(at(c, of), key), true)
						}
					}
				}
			}
		}
		r.end(Message)
	}
	if v := at(body, "message"); v != nil {
		r.cohereTurn(v)
	}
	if v := at(body, "chat_history"); kindOf(v) == '[' {
		for _, e := range elements(v) {
			r.cohereTurn(e)
		}
	}
	r.either(Text, at(body, "preamble"), false)
	if v := at(body, "tool_results"); kindOf(v) != 'n' {
		r.raw(Text, v)
	}
	r.raw(Text, at(body, "documents"))
	if v := at(body, "tools"); kindOf(v) == '[' {
		for _, e := range elements(v) {
			r.tool(e, true)
			r.end(Tool)
		}
	}
	r.format(at(body, "response_format"))
}

var cohereDialects = []Dialect{cohereChat{}, cohereEmbed{}, cohereEmbed{search{tei: true}}, rerank{}, rerank{search{tei: true}}}

func FuzzCohereScanner(f *testing.F) {
	for i, s := range []string{cohereBody, cohereOldBody, `{"inputs":[["a"],{"content":[{"text":"b"}]}],"texts":["c"],"images":[1]}`,
		`{"query":"q","documents":["a",{"t":1,"image":{"url":"u"}},null],"texts":[]}`, `{"query":{"text":{"text":"q"}}}`, shuffled(cohereBody, 5), shuffled(cohereOldBody, 5)} {
		for which := range cohereDialects {
			f.Add([]byte(s), uint16(3*i), uint8(which))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, cut uint16, which uint8) {
		d := cohereDialects[int(which)%len(cohereDialects)]
		n := int(cut) % (len(body) + 1)
		whole := scanAs(d, RequestHead{}, func(w func([]byte)) { w(body) }, 256)
		split := scanAs(d, RequestHead{}, func(w func([]byte)) { w(bytes.Clone(body[:n])); w(bytes.Clone(body[n:])) }, 256)
		if !reflect.DeepEqual(whole, split) {
			t.Fatalf("cut at %d:\n%+v\n%+v", n, whole, split)
		}
		if whole.Fault != nil {
			return
		}
		if !json.Valid(body) {
			t.Fatal("taken, but it is no JSON")
		}
		facts, all := cohereReferenceScan(d, body)
		if f := whole.Facts; f.Model != facts.Model || f.Inputs != facts.Inputs || f.Documents != facts.Documents {
			t.Fatalf("facts\n got %+v\nwant %+v", f, facts)
		}
		if heard := slices.Sorted(slices.Values(whole.Texts)); !slices.Equal(heard, all) {
			t.Fatalf("%s\nheard\n got %q\nwant %q", body, heard, all)
		}
		if f := whole.Facts; f.Chunks < f.Documents || f.Chunks > f.Documents+int64(len(body)) {
			t.Fatalf("%+v", f)
		}
	})
}

func FuzzCohereMeter(f *testing.F) {
	f.Add([]byte(`{"message":{"content":[{"text":"a"}]},"usage":{"billed_units":{"input_tokens":5,"search_units":1},"tokens":{"output_tokens":2}}}`), uint16(3), uint8(0), false)
	f.Add([]byte(events(`{"type":"message-end","delta":{"usage":{"tokens":{"input_tokens":1,"output_tokens":1}}}}`)), uint16(3), uint8(0), true)
	f.Add([]byte(`[[1,2],{"usage":{"total_tokens":8}}]`), uint16(3), uint8(2), false)
	f.Fuzz(func(t *testing.T, body []byte, cut uint16, which uint8, stream bool) {
		d, head := cohereDialects[int(which)%len(cohereDialects)], okJSON
		if stream {
			head = okSSE
		}
		n := int(cut) % (len(body) + 1)
		whole := meterAs(d, head, func(w func([]byte)) { w(body) })
		split := meterAs(d, head, func(w func([]byte)) { w(bytes.Clone(body[:n])); w(bytes.Clone(body[n:])) })
		if !reflect.DeepEqual(whole, split) {
			t.Fatalf("cut at %d:\n%+v\n%+v", n, whole, split)
		}
		if u := whole.Usage; u.Input < 0 || u.Output < 0 || u.SearchUnits < 0 || u.CachedInput > u.Input {
			t.Fatalf("%+v", u)
		}
	})
}
