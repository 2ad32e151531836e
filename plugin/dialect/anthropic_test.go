package dialect

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var claude = anthropicMessages{}

func TestRecogniseAnthropic(t *testing.T) {
	const vertex = "/v1/projects/p/locations/eu/publishers/anthropic/models/"
	for _, c := range []struct {
		method, path, name string
		model              string
		stream             bool
	}{
		{"POST", "/v1/messages", "anthropic-messages", "", false},
		{"POST", "/v1/messages?beta=true", "anthropic-messages", "", false},
		{"POST", "/anthropic/v1/messages/", "anthropic-messages", "", false},
		{"POST", "/anthropic/messages", "anthropic-messages", "", false},
		{"POST", "/messages", "anthropic-messages", "", false},
		{"POST", "//V1/%6dessages;x", "anthropic-messages", "", false},
		{"POST", "/v1/messages/count_tokens", "anthropic-count-tokens", "", false},
		{"POST", "/v1/messages/count_tokens/..", "anthropic-messages", "", false},
		{"POST", "/v1/messages/./count%5Ftokens?beta=true", "anthropic-count-tokens", "", false},
		{"POST", vertex + "claude-sonnet-4-5@20250929:rawPredict", "anthropic-messages", "claude-sonnet-4-5@20250929", false},
		{"POST", vertex + "claude-Sonnet-4-5%4020250929%3AstreamRawPredict?alt=sse", "anthropic-messages", "claude-Sonnet-4-5@20250929", true},
		{"POST", vertex + "count-tokens:rawPredict", "anthropic-count-tokens", "", false},
		{"POST", vertex + "claude-3:rawPredictx", "", "", false},
		{"POST", vertex + "claude-3:predict", "", "", false},
		{"POST", vertex + "claude-3", "", "", false},
		{"POST", "/v1/projects/p/locations/eu/publishers/mistralai/models/m:rawPredict", "", "", false},
		{"POST", "/models/claude:rawPredict", "", "", false},
		{"GET", "/v1/messages", "", "", false},
		{"GET", vertex + "claude-3:rawPredict", "", "", false},
		{"POST", "/v1/messages/batches", "", "", false},
		{"GET", "/v1/messages/batches/b/results", "", "", false},
		{"POST", "/v1/messages/count_tokens2", "", "", false},
		{"POST", "/v1/messages2", "", "", false},
		{"POST", "/v1/threads/t/messages", "", "", false},
		{"POST", "/v1/complete", "", "", false},
	} {
		d, ok := Recognise(c.method, c.path)
		if ok != (c.name != "") {
			t.Errorf("%s %s: %v", c.method, c.path, ok)
			continue
		}
		if !ok {
			continue
		}
		got, is := d.(anthropicMessages)
		if !is || d.Name() != c.name || got.model != c.model || got.stream != c.stream {
			t.Errorf("%s %s: %+v", c.method, c.path, d)
		}
		if !slices.Contains(Names(), d.Name()) {
			t.Errorf("%s is not among the names", d.Name())
		}
		if c.model != "" {
			if raw := c.path[got.at.Start:got.at.End]; !strings.HasPrefix(raw, "claude-") || strings.Contains(raw, ":") {
				t.Errorf("%s: the model stands at %q", c.path, raw)
			}
		}
	}
}

// What the SDKs send, with every kind of block that the reference of the API has.
const claudeBody = `{"model":"claude-sonnet-4-5","max_tokens":4096,"stream":true,"temperature":0.5,
"thinking":{"type":"enabled","budget_tokens":2048},"metadata":{"user_id":"u"},"stop_sequences":["END"],
"system":[{"type":"text","text":"Be kind.","cache_control":{"type":"ephemeral","ttl":"1h"}}],
"messages":[{"role":"user","content":"hi"},
 {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"redacted_thinking","data":"0123456789"},
  {"type":"text","text":"ok","citations":[{"cited_text":"not counted"}]},
  {"type":"tool_use","id":"t1","name":"look","input":{"at": ["a", 1]}}]},
 {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":false,"content":[{"type":"text","text":"seen"},
   {"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},
   {"type":"document","source":{"type":"url","url":"https://x/y.pdf"},"title":"Y","context":"about y"}]},
  {"type":"tool_result","tool_use_id":"t2","content":"plain"},
  {"source":{"url":"https://x/z.png","type":"url"},"type":"image"},
  {"type":"document","source":{"type":"text","media_type":"text/plain","data":"words"}},
  {"type":"document","source":{"type":"file","file_id":"file_1"}},
  {"type":"document","source":{"type":"content","content":[{"type":"text","text":"inner"},{"type":"image","source":{"type":"file","file_id":"file_2"}}]}},
  {"type":"search_result","source":"https://s","title":"S","content":[{"type":"text","text":"found"}]},
  {"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","title":"W","url":"https://w","encrypted_content":"0123456789"}]},
  {"type":"web_fetch_tool_result","tool_use_id":"f","content":{"type":"web_fetch_result","url":"https://f","content":{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}}},
  {"type":"code_execution_tool_result","tool_use_id":"c","content":{"type":"code_execution_result","stdout":"out","stderr":"err","return_code":0,"content":[]}}]}],
"tools":[{"name":"look","description":"looks","input_schema":{"type":"object","properties":{"at":{"type":"string","description":"where"}},"required":["at"]},"cache_control":{"type":"ephemeral"}},
 {"type":"web_search_20250305","name":"web_search","max_uses":3}],
"tool_choice":{"type":"auto"},"output_config":{"effort":"high","format":{"type":"json_schema","schema":{"type":"object"}}}}`

var claudeHeard = []string{"Be kind.", "user", "hi", "/message",
	"assistant", "hm", "ok", "look", `{"at":["a",1]}`, "/message",
	"user", "seen", "format: image/png", "file: iVBORw0KGgo=", "/image", "image: https://x/y.pdf", "Y", "about y", "/file",
	"plain", "image: https://x/z.png", "/image", "format: text/plain", "file: words", "/file", "file ref: file_1", "/file",
	"inner", "file ref: file_2", "/image", "https://s", "S", "found", "W", "https://w",
	"https://f", "format: application/pdf", "file: JVBERi0=", "/file", "out", "err", "/message",
	"tool: look", "tool description: looks", "property: at", "type: string", "description: where", "/property", "/properties", "/tool",
	"tool: web_search", "schema: max_uses", "schema: 3", "/tool",
	`schema: {"type":"object"}`, "/response format"}

func TestClaudeFacts(t *testing.T) {
	start := int64(strings.Index(claudeBody, `"claude-`))
	want := scanned{
		Facts: Facts{Model: "claude-sonnet-4-5", ModelSpan: Span{start, start + int64(len(`"claude-sonnet-4-5"`))},
			Stream: true, MaxOutput: 4096, HasMaxOutput: true, N: 1, TokenIDs: 4}, // 20 bytes that only Anthropic can read
		Texts: claudeHeard,
	}
	got := scanAs(claude, RequestHead{}, func(w func([]byte)) { w([]byte(claudeBody)) }, 256)
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("\n got %+v\nwant %+v", got, want)
	}
	sameForEverySplit(t, claudeBody, want, func(w func(func([]byte))) scanned { return scanAs(claude, RequestHead{}, w, 256) })
}

func TestClaudeOrderOfMembersDoesNotMatter(t *testing.T) {
	want := scanClaude(claudeBody)
	slices.Sort(want.Texts)
	for seed := range uint64(20) {
		got := scanClaude(shuffled(claudeBody, seed))
		slices.Sort(got.Texts)
		got.Facts.ModelSpan = want.Facts.ModelSpan
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d:\n got %+v\nwant %+v", seed, got, want)
		}
	}
}

func scanClaude(body string) scanned {
	return scanAs(claude, RequestHead{}, func(w func([]byte)) { w([]byte(body)) }, 256)
}

func TestClaudeCapsAndOddBodies(t *testing.T) {
	for _, c := range []struct {
		body, param string // of the fault, if one
		facts       Facts
		texts       []string
	}{
		{`{}`, "", Facts{N: 1}, nil}, // absent: the provider refuses it
		{`{"max_tokens":0}`, "", Facts{N: 1, HasMaxOutput: true}, nil},
		{`{"max_tokens":5e1,"thinking":{"type":"disabled"}}`, "", Facts{N: 1, MaxOutput: 50, HasMaxOutput: true}, nil},
		{`{"max_tokens":100,"thinking":{"budget_tokens":900}}`, "", Facts{N: 1, MaxOutput: 900, HasMaxOutput: true}, nil},
		{`{"max_tokens":null,"thinking":null,"stream":null,"system":null}`, "", Facts{N: 1}, nil},
		{`{"max_tokens":-1}`, "max_tokens", Facts{}, nil},
		{`{"max_tokens":1.5}`, "max_tokens", Facts{}, nil},
		{`{"max_tokens":"50"}`, "max_tokens", Facts{}, nil},
		{`{"max_tokens":5,"max_tokens":9000}`, "max_tokens", Facts{}, nil},
		{`{"max_tokens":5,"Max_Tokens":9000}`, "max_tokens", Facts{}, nil},
		{`{"thinking":{"budget_tokens":-5}}`, "thinking.budget_tokens", Facts{}, nil},
		{`{"thinking":5}`, "thinking", Facts{}, nil},
		{`{"stream":1}`, "stream", Facts{}, nil},
		{`{"model":7}`, "model", Facts{}, nil},
		{`{"messages":"hi"}`, "messages", Facts{}, nil},
		{`{"messages":[{"content":[{"type":"image","type":"text"}]}]}`, "messages[0].content[0].type", Facts{}, nil},
		{`{"system":"s","messages":[{"content":{"type":"text","text":"a"}},"b",null]}`, "", Facts{N: 1}, []string{"s", "a", "/message", "b", "/message", "/message"}},
		{`{"messages":[{"content":[{"source":{"data":null}},{"source":{"data":""}},{"type":7,"source":7},"x",{"type":"image"}]}]}`, "",
			Facts{N: 1}, []string{"file: ", "/file", "x", "/image", "/message"}},
		{`{"output_format":{"type":"json_schema","schema":{"a":1}},"tools":[null]}`, "", Facts{N: 1},
			[]string{`schema: {"a":1}`, "/response format", "schema: null", "/tool"}},
	} {
		got := scanClaude(c.body)
		if c.param != "" {
			if got.Fault == nil || got.Fault.Status != 400 || got.Fault.Param != c.param {
				t.Errorf("%s: %+v, want a fault of %s", c.body, got, c.param)
			}
		} else if got.Fault != nil || got.Facts != c.facts || !slices.Equal(got.Texts, c.texts) {
			t.Errorf("%s:\n got %+v\nwant %+v %q", c.body, got, c.facts, c.texts)
		}
		sameForEverySplit(t, c.body, got, func(w func(func([]byte))) scanned { return scanAs(claude, RequestHead{}, w, 256) })
	}
}

func TestClaudeOnVertexAndCounting(t *testing.T) {
	path := "/v1/projects/p/locations/eu/publishers/anthropic/models/claude-opus-4-1@20250805:streamRawPredict"
	d, _ := Recognise("POST", path)
	body := `{"anthropic_version":"vertex-2023-10-16","model":"another","max_tokens":9,"stream":false,"messages":[]}`
	s := d.NewScanner(RequestHead{}, 256, nil)
	s.Write([]byte(body))
	f, fault := s.Close()
	if fault != nil || f.Model != "claude-opus-4-1@20250805" || f.ModelSpan != (Span{}) || !f.Stream ||
		path[f.ModelInPath.Start:f.ModelInPath.End] != f.Model || f.MaxOutput != 9 {
		t.Fatalf("%+v %v", f, fault)
	}
	d, _ = Recognise("POST", "/v1/messages/count_tokens")
	s = d.NewScanner(RequestHead{}, 256, nil)
	s.Write([]byte(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
	if f, fault = s.Close(); fault != nil || !f.Free || f.Model != "m" {
		t.Fatalf("%+v %v", f, fault)
	}
}

// claudeReference is the dumb model of what is heard of messages and system.
func (r *reference) claudeContent(v json.RawMessage) {
	switch kindOf(v) {
	case '[':
		for _, b := range elements(v) {
			if !r.text(Text, b) {
				r.claudeBlock(b)
			}
		}
	case '{':
		r.claudeBlock(v)
	default:
		r.text(Text, v)
	}
}

func (r *reference) claudeBlock(v json.RawMessage) {
	if kindOf(v) != '{' {
		return
	}
	for _, key := range []string{"text", "thinking", "name", "input", "title", "context", "url", "stdout", "stderr"} {
		r.either(Text, at(v, key), false)
	}
	if lines := at(v, "lines"); kindOf(lines) == '[' {
		for _, line := range elements(lines) {
			r.either(Text, line, false)
		}
	}
	r.claudeContent(at(v, "content"))
	source, item := at(v, "source"), Item(0)
	r.text(Text, source)
	for key, part := range map[string]Part{"data": FileData, "url": MediaURL, "file_id": FileRef} {
		if m := at(source, key); m != nil && kindOf(m) != 'n' {
			item = File
			r.text(part, m)
		}
	}
	r.text(AudioFormat, at(source, "media_type"))
	r.claudeContent(at(source, "content"))
	var kind string
	if json.Unmarshal(at(v, "type"), &kind); kind == "image" {
		item = Image
	}
	if item != 0 {
		r.end(item)
	}
}

func (r *reference) claudeTool(v json.RawMessage) {
	if kindOf(v) != '{' {
		r.raw(Schema, v)
		return
	}
	for _, m := range members(v) {
		switch m.key {
		case "type", "strict", "cache_control", "defer_loading", "allowed_callers", "eager_input_streaming":
		case "name":
			r.either(ToolName, m.value, false)
		case "description":
			r.either(ToolDescription, m.value, false)
		case "input_schema":
			r.schema(m.value, true)
		default:
			r.keyword(m)
		}
	}
}

func claudeReferenceScan(body []byte) (f Facts, all []string, ok bool) {
	if !json.Valid(body) || !utf8.Valid(body) || kindOf(body) != '{' {
		return f, nil, false
	}
	f.N = 1
	json.Unmarshal(at(body, "model"), &f.Model)
	json.Unmarshal(at(body, "stream"), &f.Stream)
	r := &reference{}
	r.claudeContent(at(body, "system"))
	for _, v := range elements(at(body, "messages")) {
		if !r.text(Text, v) && kindOf(v) == '{' {
			r.either(Text, at(v, "role"), false)
			r.claudeContent(at(v, "content"))
		}
		r.end(Message)
	}
	if tools := at(body, "tools"); kindOf(tools) == '[' {
		for _, v := range elements(tools) {
			r.claudeTool(v)
			r.end(Tool)
		}
	}
	for _, v := range []json.RawMessage{at(body, "output_format"), at(at(body, "output_config"), "format")} {
		if k := kindOf(v); k != 0 && k != 'n' {
			r.raw(Schema, at(v, "schema"))
			r.end(ResponseFormat)
		}
	}
	slices.Sort(r.heard)
	return f, r.heard, true
}

func TestClaudeScannerAgreesWithTheReference(t *testing.T) {
	for _, body := range claudeSeeds {
		claudeAgrees(t, []byte(body), 7)
	}
}

var claudeSeeds = []string{claudeBody, shuffled(claudeBody, 3), `{}`,
	`{"system":"s","messages":[{"content":{"type":"text","text":"a"}},"b",null]}`,
	`{"messages":[{"content":[{"source":{"data":1,"url":[],"file_id":{}}},{"type":"image","content":[{"source":"x","lines":["a",{"b":1}]}]}]}]}`,
	`{"tools":[1,"a",[2],{"name":5,"input_schema":[1],"x":null}],"output_format":3}`, `{"messages":[{"content":"ab\ud83d"}]}`}

func claudeAgrees(t *testing.T, body []byte, cut int) {
	t.Helper()
	whole := scanClaude(string(body))
	n := cut % (len(body) + 1)
	split := scanAs(claude, RequestHead{}, func(w func([]byte)) { w(bytes.Clone(body[:n])); w(bytes.Clone(body[n:])) }, 256)
	if !reflect.DeepEqual(whole, split) {
		t.Fatalf("cut at %d:\n%+v\n%+v", n, whole, split)
	}
	facts, all, ok := claudeReferenceScan(body)
	if !ok {
		if whole.Fault == nil {
			t.Fatal("taken, but it is no JSON object in UTF-8")
		}
		return
	}
	if whole.Fault != nil {
		if whole.Fault.Code == "invalid_json" {
			t.Fatalf("refused: %v", whole.Fault)
		}
		return
	}
	got := whole.Facts
	got.ModelSpan, got.MaxOutput, got.HasMaxOutput, got.TokenIDs = Span{}, 0, false, 0
	if got != facts {
		t.Fatalf("facts\n got %+v\nwant %+v", got, facts)
	}
	if heard := slices.Sorted(slices.Values(whole.Texts)); !slices.Equal(heard, all) {
		t.Fatalf("%s\nheard\n got %q\nwant %q", body, heard, all)
	}
}

func FuzzClaudeScanner(f *testing.F) {
	for _, s := range claudeSeeds {
		f.Add([]byte(s), uint16(3))
	}
	f.Fuzz(func(t *testing.T, body []byte, cut uint16) { claudeAgrees(t, body, int(cut)) })
}

func TestAnthropicRefusal(t *testing.T) {
	for _, c := range []struct {
		r      Refusal
		status int
		typ    string
	}{
		{Refusal{Reason: RateLimited, Message: "later \"x\"\xff"}, 429, "rate_limit_error"}, // RateLimitError
		{Refusal{Reason: OverBudget}, 402, "billing_error"},                                 // APIStatusError
		{Refusal{Reason: OverBudget, Status: 429}, 429, "rate_limit_error"},                 // RateLimitError
		{Refusal{Reason: Killed}, 403, "permission_error"},                                  // PermissionDeniedError
		{Refusal{Reason: Unavailable}, 503, "api_error"},                                    // ServiceUnavailableError
		{Refusal{Reason: BadRequest, Code: "duplicate_key"}, 400, "invalid_request_error"},  // BadRequestError
		{Refusal{Reason: TooLarge}, 413, "request_too_large"},                               // RequestTooLargeError
		{Refusal{Reason: Unsupported}, 415, "invalid_request_error"},                        // APIStatusError
		{Refusal{Reason: Unauthorized}, 401, "authentication_error"},                        // AuthenticationError
		{Refusal{Reason: Unauthorized, Status: 403}, 403, "permission_error"},               // PermissionDeniedError
		{Refusal{Reason: NotFound}, 404, "not_found_error"},                                 // NotFoundError
		{Refusal{Reason: Internal}, 500, "api_error"},                                       // InternalServerError
		{Refusal{Reason: RateLimited, Status: 504}, 504, "timeout_error"},                   // DeadlineExceededError
		{Refusal{Reason: RateLimited, Status: 529}, 529, "overloaded_error"},                // OverloadedError
	} {
		headers, b := claude.Refusal(c.r)
		var got struct {
			Type  string
			Error struct{ Type, Message string }
		}
		if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(headers, jsonHeaders()) {
			t.Fatalf("%s: %v", b, err)
		}
		if want := strings.ToValidUTF8(c.r.Message, "\ufffd"); got.Type != "error" || got.Error.Type != c.typ || got.Error.Message != want || c.r.HTTPStatus() != c.status {
			t.Errorf("%s: want %+v", b, c)
		}
	}
}
