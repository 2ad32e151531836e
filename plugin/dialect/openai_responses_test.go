package dialect

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

var responses, _ = Recognise("POST", "/v1/responses")

func scanResponses(w func(func([]byte))) scanned { return scanAs(responses, RequestHead{}, w, 256) }

// What the SDKs send: a conversation with all kinds of parts and items.
const responsesBody = `{"model":"gpt-5","instructions":"Be brief.","max_output_tokens":300,"stream":true,"store":false,
"reasoning":{"effort":"low"},"include":["reasoning.encrypted_content"],"tool_choice":{"type":"function","name":"sum"},
"input":[
 {"role":"user","content":"hello"},
 {"type":"message","role":"user","content":[{"type":"input_text","text":"see"},
  {"type":"input_image","image_url":"data:image/png;base64,aaaa","detail":"low"},
  {"detail":"high","file_id":"file-1","type":"input_image"},
  {"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,bbbb"},
  {"file_id":"file-2","type":"input_file"},
  {"type":"input_audio","input_audio":{"data":"cccc","format":"wav"}}]},
 {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"thought"}],"encrypted_content":"0123456789"},
 {"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"ok","annotations":[]},{"type":"refusal","refusal":"no"}]},
 {"type":"function_call","call_id":"c1","name":"sum","arguments":"{\"a\":1}"},
 {"type":"function_call_output","call_id":"c1","output":"3"},
 {"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"t"},{"type":"input_image","image_url":"http://x"}]},
 {"type":"custom_tool_call","call_id":"c3","name":"run","input":"ls"},
 {"type":"computer_call_output","call_id":"c4","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,dddd"}},
 {"type":"web_search_call","id":"ws","status":"completed","action":{"type":"search","query":"q"}},
 {"type":"image_generation_call","id":"ig","status":"completed","result":"eeee"},
 {"type":"shell_call_output","call_id":"c5","output":[{"stdout":"so","stderr":"se","outcome":{"type":"exit","exit_code":0}}]},
 {"type":"item_reference","id":"msg_1"},
 {"type":"mcp_call","id":"mc","server_label":"s","name":"roll","arguments":"{}","output":"4"}],
"tools":[{"type":"function","name":"sum","description":"adds","parameters":{"type":"object","properties":{"a":{"type":"number"}}},"strict":true},
 {"type":"web_search","search_context_size":"low"}],
"text":{"format":{"type":"json_schema","name":"out","schema":{"type":"object"},"strict":true},"verbosity":"low"}}`

func TestResponsesFacts(t *testing.T) {
	start := int64(strings.Index(responsesBody, `"gpt-5"`))
	want := scanned{
		Facts: Facts{Model: "gpt-5", ModelSpan: Span{start, start + 7}, Stream: true, MaxOutput: 300, HasMaxOutput: true, N: 1,
			TokenIDs: 1 + 2}, // the role of the instructions, and what is encrypted
		Texts: []string{"Be brief.", "/message", "sum",
			"user", "hello", "/message",
			"user", "see", "image: data:image/png;base64,aaaa", "detail: low", "/image", "detail: high", "file ref: file-1", "/image",
			"file ref: a.pdf", "file: data:application/pdf;base64,bbbb", "/file", "file ref: file-2", "/file", "audio: cccc", "format: wav", "/audio", "/message",
			"thought", "/message",
			"assistant", "ok", "no", "/message",
			"sum", `{"a":1}`, "/message", "3", "/message", "t", "image: http://x", "/image", "/message",
			"run", "ls", "/message", "image: data:image/png;base64,dddd", "/image", "/message",
			`{"type":"search","query":"q"}`, "/message", "image: eeee", "/image", "/message", "so", "se", "/message", "/message",
			"roll", "{}", "4", "/message",
			"tool: sum", "tool description: adds", "property: a", "type: number", "/property", "/properties", "/tool",
			"schema: search_context_size", `schema: "low"`, "/tool",
			"tool: out", `schema: {"type":"object"}`, "/response format"},
	}
	if got := scanResponses(func(w func([]byte)) { w([]byte(responsesBody)) }); !reflect.DeepEqual(got, want) {
		t.Fatalf("\n got %+v\nwant %+v", got, want)
	}
	sameForEverySplit(t, responsesBody, want, scanResponses)
	for _, c := range []struct {
		body  string
		facts Facts
		texts []string
	}{
		{`{"input":"hello"}`, Facts{N: 1, TokenIDs: 1}, []string{"hello", "/message"}},
		{`{"input":null,"instructions":null,"background":null,"max_output_tokens":null}`, Facts{N: 1}, nil},
		{`{"background":true,"input":[]}`, Facts{N: 1, Background: true}, nil},
		{`{"background":false,"text":{"format":{"type":"text"}},"tool_choice":"auto"}`, Facts{N: 1}, nil},
		{`{"prompt":{"id":"p","variables":{"name":"ann","pic":{"type":"input_image","image_url":"http://x"}}}}`, Facts{N: 1},
			[]string{"schema: name", "ann", "schema: pic", "image: http://x", "/image"}},
		{`{"input":[{"content":[{"type":"input_image","image_url":null},{"text":"a"}]},"b"]}`, Facts{N: 1}, []string{"/image", "a", "/message", "b", "/message"}},
		{`{"input":[{"output":[{"image_url":{"url":"http://x","detail":"low"}}]}]}`, Facts{N: 1}, []string{"image: http://x", "detail: low", "/image", "/message"}},
	} {
		got := scanResponses(func(w func([]byte)) { w([]byte(c.body)) })
		if got.Fault != nil || got.Facts != c.facts || !slices.Equal(got.Texts, c.texts) {
			t.Errorf("%s:\n got %+v\nwant %+v %q", c.body, got, c.facts, c.texts)
		}
		sameForEverySplit(t, c.body, got, scanResponses)
	}
	for body, param := range map[string]string{
		`{"input":"a","input":"b"}`: "input", `{"max_output_tokens":0}`: "max_output_tokens", `{"max_output_tokens":"9"}`: "max_output_tokens",
		`{"background":"yes"}`: "background", `{"input":[{"content":"a","content":"b"}]}`: "input[0].content",
	} {
		if got := scanResponses(func(w func([]byte)) { w([]byte(body)) }); got.Fault == nil || got.Fault.Status != 400 || got.Fault.Param != param {
			t.Errorf("%s: %+v", body, got.Fault)
		}
	}
}

// referenceResponses is the dumb model: the whole body decoded by encoding/json, walked by recursion.
func referenceResponses(body []byte) (f Facts, all []string, ok bool) {
	if !json.Valid(body) || !utf8.Valid(body) || kindOf(body) != '{' {
		return f, nil, false
	}
	f.N = 1
	json.Unmarshal(at(body, "model"), &f.Model)
	json.Unmarshal(at(body, "stream"), &f.Stream)
	json.Unmarshal(at(body, "background"), &f.Background)
	r := &reference{}
	for _, key := range []string{"input", "instructions"} {
		switch v := at(body, key); kindOf(v) {
		case '"':
			f.TokenIDs++
			r.text(Text, v)
			r.end(Message)
		case '[':
			for _, item := range elements(v) {
				r.responsesItem(item)
			}
		}
	}
	r.responsesTools(at(body, "tools"))
	r.choice(at(body, "tool_choice"))
	if format := at(at(body, "text"), "format"); format != nil {
		r.either(ToolName, at(format, "name"), false)
		r.either(ToolDescription, at(format, "description"), false)
		if s := at(format, "schema"); s != nil && kindOf(s) != 'n' {
			r.raw(Schema, s)
			r.end(ResponseFormat)
		}
	}
	if v := at(at(body, "prompt"), "variables"); kindOf(v) == '{' {
		for _, m := range members(v) {
			r.heard = append(r.heard, partNames[Schema]+": "+m.key)
			r.responsesContent(m.value)
		}
	}
	f.TokenIDs += r.sealed / sealedBytes
	slices.Sort(r.heard)
	return f, r.heard, true
}

func (r *reference) responsesTools(v json.RawMessage) {
	if kindOf(v) == '[' {
		for _, v := range elements(v) {
			r.tool(v, true)
			r.end(Tool)
		}
	}
}

func (r *reference) responsesItem(v json.RawMessage) {
	r.text(Text, v)
	for _, key := range []string{"role", "name", "namespace", "arguments", "input", "code", "reason", "error"} {
		r.either(Text, at(v, key), true)
	}
	for _, key := range []string{"content", "output", "summary", "outputs"} {
		r.responsesContent(at(v, key))
	}
	for _, key := range []string{"action", "actions", "queries", "results", "operation"} {
		if x := at(v, key); kindOf(x) != 'n' {
			r.raw(Text, x)
		}
	}
	r.seal(at(v, "encrypted_content"))
	r.responsesTools(at(v, "tools"))
	if x := at(v, "result"); x != nil && kindOf(x) != 'n' {
		r.text(MediaURL, x)
		r.end(Image)
	}
	r.end(Message)
}

func (r *reference) responsesContent(v json.RawMessage) {
	r.text(Text, v)
	switch kindOf(v) {
	case '[':
		for _, p := range elements(v) {
			r.text(Text, p)
			r.responsesPart(p)
		}
	case '{':
		r.responsesPart(v)
	}
}

func (r *reference) responsesPart(v json.RawMessage) {
	if kindOf(v) != '{' {
		return
	}
	var is Item
	for _, key := range []string{"text", "refusal", "stdout", "stderr", "logs"} {
		r.either(Text, at(v, key), true)
	}
	for _, m := range members(v) {
		var part Part
		var holds Item
		within := map[string]Part{}
		switch m.key {
		case "image_url", "url":
			part, holds, within = MediaURL, Image, map[string]Part{"url": MediaURL, "detail": MediaDetail}
		case "input_audio":
			part, holds, within = AudioData, Audio, map[string]Part{"data": AudioData, "url": AudioData, "format": AudioFormat}
			delete(within, "url")
		case "file_id", "file_url", "filename":
			part, holds = FileRef, File
		case "file_data":
			part, holds = FileData, File
		case "detail":
			r.text(MediaDetail, m.value)
			continue
		case "encrypted_content":
			r.seal(m.value)
			continue
		default:
			continue
		}
		if kindOf(m.value) == 'n' {
			continue
		}
		if is == 0 {
			is = holds
		}
		r.text(part, m.value)
		for key, p := range within {
			r.text(p, at(m.value, key))
		}
	}
	var kind string
	json.Unmarshal(at(v, "type"), &kind)
	if named := respPartIs([]byte(kind)); named != 0 {
		is = named
	}
	if is != 0 {
		r.end(is)
	}
}

func TestResponsesScannerAgreesWithTheReference(t *testing.T) {
	bodies := []string{responsesBody, `{"input":"x","tools":[{"type":"mcp","server_label":"s","headers":{"a":"b"}},null]}`}
	for seed := range 40 {
		bodies = append(bodies, shuffled(responsesBody, uint64(seed)))
	}
	for _, body := range bodies {
		facts, all, ok := referenceResponses([]byte(body))
		got := scanResponses(func(w func([]byte)) { w([]byte(body)) })
		if !ok || got.Fault != nil {
			t.Fatalf("%s: %v", body, got.Fault)
		}
		slices.Sort(got.Texts)
		if f := got.Facts; f.Model != facts.Model || f.Stream != facts.Stream || f.Background != facts.Background || f.TokenIDs != facts.TokenIDs ||
			!slices.Equal(got.Texts, all) {
			t.Fatalf("%s:\n got %+v\nwant %+v %q", body, got, facts, all)
		}
	}
}

func respUsage(in, cached, out, reasoning int) string {
	return `"usage":{"input_tokens":` + strconv.Itoa(in) + `,"input_tokens_details":{"cached_tokens":` + strconv.Itoa(cached) +
		`},"output_tokens":` + strconv.Itoa(out) + `,"output_tokens_details":{"reasoning_tokens":` + strconv.Itoa(reasoning) +
		`},"total_tokens":` + strconv.Itoa(in+out) + `}`
}

// event writes one event as OpenAI does: its name, and its type in the data too.
func event(name, rest string) string {
	return "event: " + name + "\ndata: {\"type\":\"" + name + "\"" + rest + "}\n\n"
}

func textDelta(text string) string {
	return event("response.output_text.delta", `,"item_id":"m","output_index":0,"content_index":0,"delta":"`+text+`"`)
}

var respBegin = event("response.created", `,"response":{"id":"r","status":"in_progress","error":null,"output":[],"instructions":"said before","usage":null}`) +
	event("response.output_item.added", `,"output_index":0,"item":{"type":"message","content":[]}`) +
	event("response.content_part.added", `,"output_index":0,"part":{"type":"output_text","text":""}`)

func respEnd(name, status, usage string) string {
	return event("response.output_text.done", `,"output_index":0,"text":"said before"`) +
		event("response.output_item.done", `,"output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"said before"}]}`) +
		event(name, `,"response":{"id":"r","status":"`+status+`","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"said before"}]}],`+usage+`}`)
}

func TestResponsesMeter(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	for _, c := range []struct {
		name string
		head ResponseHead
		body string
		want metered
	}{
		{"a stream", okSSE, respBegin + textDelta("one") + textDelta(" two") + respEnd("response.completed", "completed", respUsage(52, 10, 9, 4)),
			metered{Usage: Usage{Input: 52, CachedInput: 10, Output: 9, Reasoning: 4}, Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"one two"}}},
		{"C31 incomplete", okSSE, respBegin + textDelta("one") + respEnd("response.incomplete", "incomplete", respUsage(52, 0, 900, 0)),
			metered{Usage: used(52, 0, 900), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"one"}}},
		{"C31 failed", okSSE, respBegin + textDelta("one") + event("response.failed", `,"response":{"status":"failed","error":{"code":"server_error","message":"x"},`+respUsage(52, 0, 3, 0)+`}`),
			metered{Usage: used(52, 0, 3), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"one"}}},
		{"C31 failed without output", okSSE, respBegin + event("response.failed", `,"response":{"status":"failed","error":{"code":"server_error"},"usage":null}`),
			metered{Failed: true, Finished: true}},
		{"C31 cancelled", okSSE, respBegin + textDelta("one") + respEnd("response.cancelled", "cancelled", respUsage(52, 0, 1, 0)),
			metered{Usage: used(52, 0, 1), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"one"}}},
		{"C32 no usage", okSSE, respBegin + textDelta("one two") + respEnd("response.completed", "completed", `"usage":null`),
			metered{Produced: true, Finished: true, Texts: []string{"one two"}}},
		{"C34 a long line", okSSE, "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"content\":[{\"text\":\"" + long + "\"}]}]," + respUsage(10, 0, 5, 0) + "}}\n\n",
			metered{Usage: used(10, 0, 5), Trust: WholeUsage, Finished: true}},
		{"C35 a large context", okJSON, `{"id":"r","status":"completed","error":null,"output":[],` + respUsage(100000, 0, 50, 0) + `}`,
			metered{Usage: used(100000, 0, 50), Trust: WholeUsage, Finished: true}},
		{"cut", okSSE, respBegin + textDelta("one") + textDelta(" two"),
			metered{Produced: true, Texts: []string{"one two"}}},
		{"every kind of delta", okSSE, event("response.reasoning_summary_text.delta", `,"output_index":0,"summary_index":0,"delta":"hm"`) +
			event("response.output_text.delta", `,"output_index":1,"delta":"a"`) + event("response.refusal.delta", `,"output_index":1,"delta":"b"`) +
			event("response.function_call_arguments.delta", `,"output_index":2,"delta":"{\"x\""`) + event("response.function_call_arguments.delta", `,"output_index":2,"delta":":1}"`) +
			event("response.function_call_arguments.done", `,"output_index":2,"name":"f","arguments":"{\"x\":1}"`),
			metered{Produced: true, Texts: []string{"hm", "ab", `{"x":1}`}}},
		{"an error event", okSSE, event("error", `,"code":"rate_limit_exceeded","message":"slow down","param":null`), metered{Failed: true}},
		{"JSON", okJSON, `{"id":"r","object":"response","status":"completed","error":null,"instructions":"not this","output":[
			{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},
			{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi","annotations":[]},{"type":"refusal","refusal":"no"}]},
			{"type":"function_call","name":"f","arguments":"{}"}],"text":{"format":{"type":"text"}},"tools":[{"name":"g"}],` + respUsage(7, 1, 5, 2) + `}`,
			metered{Usage: Usage{Input: 7, CachedInput: 1, Output: 5, Reasoning: 2}, Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"hmhinof{}"}}},
		{"C29 tools of the provider's", okJSON, `{"output":[{"type":"web_search_call","status":"completed"},{"type":"web_search_call","status":"completed"}],"tool_usage":{"web_search":{"num_requests":3},
			"image_gen":{"input_tokens":10,"output_tokens":272,"total_tokens":282,"output_tokens_details":{"image_tokens":272}}},` + respUsage(7, 1, 5, 2) + `}`,
			metered{Usage: Usage{Input: 17, CachedInput: 1, Output: 277, Reasoning: 2, Searches: 3}, Trust: WholeUsage, Finished: true}},
		{"tools, streamed", okSSE, respBegin + textDelta("one") + respEnd("response.completed", "completed", respUsage(52, 0, 9, 4)+`,"tool_usage":{"web_search":{"num_requests":1},"image_gen":null}`),
			metered{Usage: Usage{Input: 52, Output: 9, Reasoning: 4, Searches: 1}, Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"one"}}},
		{"absurd tools", okJSON, `{"output":[],"tool_usage":{"web_search":{"num_requests":-3},"image_gen":{"output_tokens":1.5}},` + respUsage(7, 0, 5, 0) + `}`,
			metered{Usage: used(7, 0, 5), Trust: WholeUsage, Finished: true}},
		{"JSON that failed", okJSON, `{"status":"failed","error":{"code":"server_error"},"output":[],"usage":null}`, metered{Failed: true, Finished: true}},
		{"zeros", okJSON, `{"output":[],` + respUsage(0, 0, 0, 0) + `}`, metered{Finished: true}},
		{"absurd", okJSON, `{"output":[],` + respUsage(-4, 0, 5, 0) + `}`, metered{Finished: true}},
		{"absurd details", okJSON, `{"output":[],` + respUsage(4, -1, 5, 0) + `}`, metered{Finished: true}},
		{"an error status", ResponseHead{Status: 400}, `{"error":{"message":"no"}}`, metered{Failed: true, Finished: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := meterAs(responses, c.head, func(w func([]byte)) { w([]byte(c.body)) })
			if !reflect.DeepEqual(got, c.want) {
				t.Fatalf("\n got %+v\nwant %+v", got, c.want)
			}
			if len(c.body) < 8192 {
				sameForEverySplit(t, c.body, c.want, func(w func(func([]byte))) metered { return meterAs(responses, c.head, w) })
			}
		})
	}
}

func TestCountingInputTokensIsFree(t *testing.T) {
	d, ok := Recognise("POST", "/v1/responses/input_tokens")
	if !ok || d.Name() != "openai-input-tokens" {
		t.Fatal(d)
	}
	body := func(text string) func(func([]byte)) { return func(w func([]byte)) { w([]byte(text)) } }
	if got := scanAs(d, RequestHead{}, body(`{"model":"m","input":"hello"}`), 256); got.Fault != nil || !got.Facts.Free || got.Facts.Model != "m" {
		t.Errorf("%+v", got)
	}
	if got := meterAs(d, okJSON, body(`{"object":"response.input_tokens","input_tokens":8200}`)); got.Usage != (Usage{}) || got.Trust != WholeUsage {
		t.Errorf("%+v", got)
	}
	if got := meterAs(d, ResponseHead{Status: 500}, body(`{"error":{}}`)); !got.Failed || got.Trust != NoUsage {
		t.Errorf("%+v", got)
	}
}
