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

const (
	claudeID     = "anthropic.claude-3-5-sonnet-20240620-v1%3A0"
	conversePath = "/model/" + claudeID + "/converse"
	invokePath   = "/model/" + claudeID + "/invoke"
)

func bedrockCall(t testing.TB, path string) Dialect {
	t.Helper()
	d, ok := Recognise("POST", path)
	if !ok {
		t.Fatal("not recognised:", path)
	}
	return d
}

func bedrockScan(t testing.TB, path string) func(w func(func([]byte))) scanned {
	d := bedrockCall(t, path)
	return func(w func(func([]byte))) scanned { return scanAs(d, RequestHead{}, w, 256) }
}

func TestBedrockPaths(t *testing.T) {
	const arn = "arn:aws:bedrock:eu-west-1:123:inference-profile/eu.anthropic.claude-x-v1:0"
	for _, c := range []struct {
		method, path, name, model, span string
		stream                          bool
	}{
		{"POST", conversePath, "bedrock-converse", "anthropic.claude-3-5-sonnet-20240620-v1:0", claudeID, false},
		{"POST", "/model/meta.llama3-8b-instruct-v1:0/converse-stream", "bedrock-converse", "meta.llama3-8b-instruct-v1:0", "meta.llama3-8b-instruct-v1:0", true},
		{"POST", invokePath, "bedrock-invoke", "anthropic.claude-3-5-sonnet-20240620-v1:0", claudeID, false},
		{"POST", "/bedrock/model/eu.Amazon.nova/invoke-with-response-stream?x", "bedrock-invoke", "eu.Amazon.nova", "eu.Amazon.nova", true},
		{"POST", "/model/" + strings.NewReplacer(":", "%3A", "/", "%2F").Replace(arn) + "/converse", "bedrock-converse", arn, strings.NewReplacer(":", "%3A", "/", "%2F").Replace(arn), false},
		{"POST", "/model/" + strings.ReplaceAll(arn, "/", "%2f") + "/invoke", "bedrock-invoke", arn, strings.ReplaceAll(arn, "/", "%2f"), false},
		{"POST", "/model/" + arn + "/invoke", "bedrock-invoke", arn, arn, false},
		{"POST", "//MODEL/m//Converse/", "bedrock-converse", "m", "m", false},
		{"POST", "/model/m/count-tokens", "bedrock-count-tokens", "m", "m", false},
		{"GET", conversePath, "", "", "", false},
		{"POST", "/model/converse", "", "", "", false},
		{"POST", "/converse", "", "", "", false},
		{"POST", "/models/m/converse", "", "", "", false},
		{"POST", "/model/m/converse/x", "", "", "", false},
		{"POST", "/model/m/converses", "", "", "", false},
		{"POST", "/model/m/invoke-with-bidirectional-stream", "", "", "", false},
		{"POST", "/async-invoke", "", "", "", false},
		{"POST", "/guardrail/g/version/1/apply", "", "", "", false},
	} {
		d, ok := Recognise(c.method, c.path)
		if ok != (c.name != "") || ok && d.Name() != c.name {
			t.Errorf("%s %s: %v", c.method, c.path, d)
			continue
		}
		if !ok {
			continue
		}
		s := d.NewScanner(RequestHead{}, 256, nil)
		s.Write([]byte(`{}`))
		f, fault := s.Close()
		if fault != nil || f.Model != c.model || f.Stream != c.stream || !f.Sealed || c.path[f.ModelInPath.Start:f.ModelInPath.End] != c.span {
			t.Errorf("%s: %+v %v", c.path, f, fault)
		}
	}
	for _, path := range []string{"/async-invoke", "/model/m/invoke-with-bidirectional-stream"} {
		if !LLMPath(path) {
			t.Error(path)
		}
	}
}

const converseBody = `{"system":[{"text":"Be kind."},{"cachePoint":{"type":"default"}}],
"messages":[{"role":"user","content":[{"text":"caf\u00e9"},{"image":{"format":"png","source":{"bytes":"iVBORw0KGgo="}}},
  {"document":{"format":"pdf","name":"report","source":{"bytes":"JVBERi0x"}}},{"video":{"format":"mp4","source":{"s3Location":{"uri":"s3://b/v.mp4"}}}}]},
 {"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"c2ln"}}},{"toolUse":{"toolUseId":"t1","name":"sum","input":{"a": 1}}}]},
 {"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"json":{"r": 3}},{"text":"three"},{"image":{"format":"gif","source":{"bytes":"R0lGODlh"}}}],"status":"success"}},{"guardContent":{"text":{"text":"g"}}}]}],
"inferenceConfig":{"maxTokens":70,"temperature":0.5,"stopSequences":["x"]},
"additionalModelRequestFields":{"top_k":5,"max_tokens":900,"thinking":{"type":"enabled","budget_tokens":500}},
"promptVariables":{"who":{"text":"ann"}},
"toolConfig":{"tools":[{"toolSpec":{"name":"sum","description":"Adds.","inputSchema":{"json":{"type":"object","properties":{"a":{"type":"integer"}}}}}},{"cachePoint":{"type":"default"}}],"toolChoice":{"auto":{}}},
"outputConfig":{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"schema":"{}","name":"n"}}}}}`

func TestConverseFacts(t *testing.T) {
	scan := bedrockScan(t, conversePath)
	got := scan(all(converseBody))
	want := scanned{
		Facts: Facts{Model: "anthropic.claude-3-5-sonnet-20240620-v1:0", ModelInPath: Span{7, int64(7 + len(claudeID))}, Sealed: true,
			MaxOutput: 900, HasMaxOutput: true, N: 1},
		Texts: []string{"Be kind.", "user", "café", "image: iVBORw0KGgo=", "/image", "format: pdf", "file ref: report", "file: JVBERi0x", "/file",
			"format: mp4", "file ref: s3://b/v.mp4", "/file", "/message",
			"assistant", "hm", "sum", `{"a":1}`, "/message",
			"user", `{"r":3}`, "three", "image: R0lGODlh", "/image", "g", "/message", "schema: who", "ann",
			"tool: sum", "tool description: Adds.", "property: a", "type: integer", "/property", "/properties", "/tool",
			"type: {}", "tool: n", "/response format"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("\n got %+v %q\nwant %+v %q", got, got.Texts, want, want.Texts)
	}
	sameForEverySplit(t, converseBody, want, scan)
}

func TestInvokeFacts(t *testing.T) {
	model := func(id string) string { return "/model/" + id + "/invoke" }
	for _, c := range []struct {
		name, path, body string
		facts            Facts // but the model's
		texts            []string
	}{
		{"Anthropic", invokePath, `{"anthropic_version":"bedrock-2023-05-31","max_tokens":512,"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}],"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}]}`,
			Facts{MaxOutput: 512, HasMaxOutput: true},
			[]string{"s", "user", "hi", "format: image/png", "file: iVBORw0KGgo=", "/image", "/message", "tool: f", "tool description: d", "/tool"}},
		{"Nova", model("amazon.nova-lite-v1:0"), `{"schemaVersion":"messages-v1","system":[{"text":"s"}],"messages":[{"role":"user","content":[{"text":"hi"},{"image":{"format":"png","source":{"bytes":"iVBORw0KGgo="}}}]}],"inferenceConfig":{"max_new_tokens":50}}`,
			Facts{MaxOutput: 50, HasMaxOutput: true}, []string{"s", "user", "hi", "image: iVBORw0KGgo=", "/image", "/message"}},
		{"Llama", model("meta.llama3-8b-instruct-v1:0"), `{"prompt":"hi","max_gen_len":50,"images":["iVBORw0KGgo="]}`,
			Facts{MaxOutput: 50, HasMaxOutput: true}, []string{"hi", "image: iVBORw0KGgo=", "/image"}},
		{"Mistral", model("mistral.mistral-7b-instruct-v0:2"), `{"prompt":"<s>[INST] hi [/INST]","max_tokens":50}`,
			Facts{MaxOutput: 50, HasMaxOutput: true}, []string{"<s>[INST] hi [/INST]"}},
		{"OpenAI", model("openai.gpt-oss-20b-1:0"), `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"http://x/y.png"}}]},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}],"max_completion_tokens":50,"n":2}`,
			Facts{MaxOutput: 50, HasMaxOutput: true, N: 2}, []string{"user", "hi", "image: http://x/y.png", "/image", "/message", "assistant", "f", "{}", "/message"}},
		{"AI21", model("ai21.j2-ultra-v1"), `{"prompt":"hi","maxTokens":50}`, Facts{MaxOutput: 50, HasMaxOutput: true}, []string{"hi"}},
		{"Titan", model("amazon.titan-text-express-v1"), `{"inputText":"hi","textGenerationConfig":{"maxTokenCount":50}}`,
			Facts{MaxOutput: 50, HasMaxOutput: true}, []string{"hi"}},
		{"Titan's embeddings", model("amazon.titan-embed-text-v2:0"), `{"inputText":"hi","dimensions":256}`,
			Facts{NoChat: true, NoOutput: true, Inputs: 1}, []string{"hi"}},
		{"Cohere's embeddings", model("cohere.embed-english-v3"), `{"texts":["a","b"],"input_type":"search_query"}`,
			Facts{NoChat: true, NoOutput: true, Inputs: 2}, []string{"a", "b"}},
		{"Cohere's embeddings of all kinds", model("cohere.embed-v4:0"), `{"inputs":[{"content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}],"images":["data:image/png;base64,iVBORw0KGgo="]}`,
			Facts{NoChat: true, NoOutput: true, Inputs: 2}, []string{"a", "image: data:image/png;base64,iVBORw0KGgo=", "/image", "image: data:image/png;base64,iVBORw0KGgo=", "/image"}},
		{"Cohere's rerank", model("cohere.rerank-v3-5:0"), `{"query":"q","documents":["a",{"text":"b"}],"top_n":1,"api_version":2}`,
			Facts{NoChat: true, NoOutput: true, Documents: 2}, []string{"q", "a", `{"text":"b"}`}},
		{"Cohere's chat", model("cohere.command-r-v1:0"), `{"message":"hi","chat_history":[{"role":"USER","message":"a"}],"documents":[{"text":"d"}],"max_tokens":50}`,
			Facts{MaxOutput: 50, HasMaxOutput: true}, []string{"hi", "USER", "a", "/message", `{"text":"d"}`}},
		{"pictures", model("amazon.nova-canvas-v1:0"), `{"taskType":"TEXT_IMAGE","textToImageParams":{"text":"a cat"},"imageGenerationConfig":{"numberOfImages":3}}`,
			Facts{Images: 3}, []string{"a cat"}},
	} {
		scan := bedrockScan(t, c.path)
		got := scan(all(c.body))
		f := got.Facts
		f.Model, f.ModelInPath, f.Sealed = "", Span{}, false
		c.facts.N = max(c.facts.N, 1)
		if got.Fault != nil || f != c.facts || !slices.Equal(got.Texts, c.texts) {
			t.Errorf("%s: %v\n got %+v %q\nwant %+v %q", c.name, got.Fault, f, got.Texts, c.facts, c.texts)
		}
		sameForEverySplit(t, c.body, got, scan)
	}
	for _, c := range []struct{ path, body, code, param string }{
		{conversePath, `{"inferenceConfig":{"maxTokens":5,"maxTokens":900}}`, "duplicate_key", "inferenceConfig.maxTokens"},
		{conversePath, `{"inferenceConfig":{"maxtokens":900}}`, "misspelled_key", "inferenceConfig.maxTokens"},
		{conversePath, `{"inferenceConfig":{"maxTokens":-1}}`, "invalid_value", "inferenceConfig.maxTokens"},
		{conversePath, `{"inferenceConfig":{"maxTokens":"5"}}`, "invalid_type", "inferenceConfig.maxTokens"},
		{conversePath, `{"messages":{}}`, "invalid_type", "messages"},
		{invokePath, `{"max_tokens":1.5}`, "invalid_value", "max_tokens"},
		{invokePath, `{"imageGenerationConfig":{"numberOfImages":0}}`, "invalid_value", "imageGenerationConfig.numberOfImages"},
		{invokePath, `{"a"`, "invalid_json", ""},
	} {
		if got := bedrockScan(t, c.path)(all(c.body)); got.Fault == nil || got.Fault.Code != c.code || got.Fault.Param != c.param {
			t.Errorf("%s: %v", c.body, got.Fault)
		}
	}
	got := bedrockScan(t, "/model/m/count-tokens")(all(`{"input":{"invokeModel":{"body":"e30="}}}`))
	if got.Fault != nil || !got.Facts.Free {
		t.Errorf("count-tokens: %+v %v", got.Facts, got.Fault)
	}
}

// converseReference is the dumb model of the scanner of Converse's requests.
type converseReference struct{ reference }

func (r *converseReference) some(v json.RawMessage) { r.either(Text, v, false) }

func (r *converseReference) blocks(v json.RawMessage) {
	if v == nil {
		return
	}
	r.text(Text, v)
	list := []json.RawMessage{v}
	if kindOf(v) == '[' {
		list = elements(v)
		for _, b := range list {
			r.text(Text, b)
		}
	}
	for _, b := range list {
		r.some(at(b, "text"))
		r.some(at(b, "json"))
		r.image(at(b, "image"))
		for _, kind := range []string{"document", "video", "audio"} {
			r.file(at(b, kind))
		}
		for _, kind := range []string{"toolUse", "toolResult", "citationsContent", "searchResult"} {
			u := at(b, kind)
			for _, key := range []string{"name", "input", "title", "source"} {
				r.some(at(u, key))
			}
			r.blocks(at(u, "content"))
		}
		guard := at(b, "guardContent")
		r.some(at(at(guard, "text"), "text"))
		r.image(at(guard, "image"))
		r.some(at(at(at(b, "reasoningContent"), "reasoningText"), "text"))
	}
}

func (r *converseReference) image(v json.RawMessage) {
	if v == nil || kindOf(v) == 'n' {
		return
	}
	source := at(v, "source")
	r.text(MediaURL, at(source, "bytes"))
	r.text(MediaURL, at(at(source, "s3Location"), "uri"))
	r.end(Image)
}

func (r *converseReference) file(v json.RawMessage) {
	if v == nil || kindOf(v) == 'n' {
		return
	}
	source := at(v, "source")
	r.text(AudioFormat, at(v, "format"))
	r.text(FileRef, at(v, "name"))
	r.some(at(v, "context"))
	r.text(FileData, at(source, "bytes"))
	r.text(FileRef, at(at(source, "s3Location"), "uri"))
	r.some(at(source, "text"))
	r.blocks(at(source, "content"))
	r.end(File)
}

// referenceConverse gives, sorted, what the model heard of a body with messages, a system prompt and
// tools.
func referenceConverse(body []byte) ([]string, bool) {
	if !json.Valid(body) || !utf8.Valid(body) || kindOf(body) != '{' {
		return nil, false
	}
	r := &converseReference{}
	r.blocks(at(body, "system"))
	for _, m := range elements(at(body, "messages")) {
		r.text(Text, m)
		r.some(at(m, "role"))
		r.blocks(at(m, "content"))
		r.end(Message)
	}
	for _, tool := range elements(at(at(body, "toolConfig"), "tools")) {
		spec := at(tool, "toolSpec")
		if spec == nil {
			continue
		}
		r.either(ToolName, at(spec, "name"), false)
		r.either(ToolDescription, at(spec, "description"), false)
		if schema := at(at(spec, "inputSchema"), "json"); schema != nil {
			r.schema(schema, true)
		}
		r.end(Tool)
	}
	slices.Sort(r.heard)
	return r.heard, true
}

var converseSeeds = []string{
	`{"system":[{"text":"s"}],"messages":[{"role":"user","content":[{"text":"a"},{"image":{"source":{"bytes":"eA=="}}},{"toolResult":{"content":[{"json":{"a": 1}},{"text":"b"}]}}]}]}`,
	`{"messages":["x",{"content":"y"},{"content":{"text":"z"}},{"content":["w",5,null]}],"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object","properties":{"a":{"enum":["x"]}}}}}},{"cachePoint":{}}]}}`,
	`{"messages":[{"content":[{"document":{"name":"n","source":{"content":[{"text":"a"}],"text":"b"}}},{"guardContent":{"text":{"text":"g"},"image":{}}},{"reasoningContent":{"reasoningText":{"text":"r"}}}]}]}`,
}

func FuzzConverseScanner(f *testing.F) {
	scan := bedrockScan(f, conversePath)
	for _, s := range converseSeeds {
		f.Add([]byte(s), uint16(3))
		want, _ := referenceConverse([]byte(s))
		got := scan(all(s))
		slices.Sort(got.Texts)
		if got.Fault != nil || !slices.Equal(got.Texts, want) {
			f.Errorf("%s: %v\n got %q\nwant %q", s, got.Fault, got.Texts, want)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, cut uint16) {
		n := int(cut) % (len(body) + 1)
		whole := scan(all(string(body)))
		split := scan(func(w func([]byte)) { w(bytes.Clone(body[:n])); w(bytes.Clone(body[n:])) })
		if !reflect.DeepEqual(whole, split) {
			t.Fatalf("cut at %d:\n%+v\n%+v", n, whole, split)
		}
		want, ok := referenceConverse(body)
		if ok && whole.Fault != nil && whole.Fault.Code == "invalid_json" || !ok && whole.Fault == nil {
			t.Fatalf("%v", whole.Fault)
		}
		for _, other := range []string{"promptVariables", "additionalModelRequestFields", "outputConfig"} {
			if at(body, other) != nil {
				return // beyond the reference
			}
		}
		if heard := slices.Sorted(slices.Values(whole.Texts)); whole.Fault == nil && !slices.Equal(heard, want) {
			t.Fatalf("heard\n got %q\nwant %q", heard, want)
		}
	})
}

func TestBedrockRefusal(t *testing.T) {
	for _, c := range []struct {
		r    Refusal
		code string
	}{
		{Refusal{Reason: RateLimited, Message: "later \"x\""}, "ThrottlingException"},
		{Refusal{Reason: OverBudget}, "ServiceQuotaExceededException"},
		{Refusal{Reason: Killed}, "AccessDeniedException"},
		{Refusal{Reason: Unauthorized}, "AccessDeniedException"},
		{Refusal{Reason: Unavailable}, "ServiceUnavailableException"},
		{Refusal{Reason: BadRequest}, "ValidationException"},
		{Refusal{Reason: TooLarge}, "ValidationException"},
		{Refusal{Reason: Unsupported}, "ValidationException"},
		{Refusal{Reason: NotFound}, "ResourceNotFoundException"},
		{Refusal{Reason: Internal}, "InternalServerException"},
	} {
		headers, b := bedrockCall(t, conversePath).Refusal(c.r)
		var got map[string]string
		want := [][2]string{{"content-type", "application/json"}, {"x-amzn-errortype", c.code}}
		if err := json.Unmarshal(b, &got); err != nil || len(got) != 1 || got["message"] != c.r.Message || !reflect.DeepEqual(headers, want) {
			t.Errorf("%s %v", b, headers)
		}
	}
}
