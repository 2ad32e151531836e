package dialect

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// geminiCall is the dialect of a call that is one.
func geminiCall(t testing.TB, path string) Dialect {
	t.Helper()
	d, ok := Recognise("POST", path)
	if !ok {
		t.Fatal("not recognised:", path)
	}
	return d
}

const geminiPath = "/v1beta/models/gemini-2.5-flash:generateContent"

func TestGeminiPaths(t *testing.T) {
	for _, c := range []struct {
		method, path string
		name         string // "" = not one
		model        string
		span         string
		stream       bool
	}{
		{"POST", geminiPath, "gemini-generate", "gemini-2.5-flash", "gemini-2.5-flash", false},
		{"POST", "/v1/models/Gemini-2.5-Flash:generateContent?key=k", "gemini-generate", "Gemini-2.5-Flash", "Gemini-2.5-Flash", false},
		{"POST", "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", "gemini-generate", "gemini-2.5-flash", "gemini-2.5-flash", true},
		{"POST", "/v1/projects/p/locations/europe-west4/publishers/google/models/gemini-2.5-pro:streamGenerateContent", "gemini-generate", "gemini-2.5-pro", "gemini-2.5-pro", true},
		{"POST", "/v1beta1/projects/p/locations/l/endpoints/123:generateContent", "gemini-generate", "123", "123", false},
		{"POST", "/v1beta/tunedModels/t-1:generateContent", "gemini-generate", "t-1", "t-1", false},
		{"POST", "/v1internal:streamGenerateContent?alt=sse", "gemini-generate", "", "", true},
		{"POST", "/V1BETA/models//gemini-x%3AgenerateContent/", "gemini-generate", "gemini-x", "gemini-x", false},
		{"POST", "/v1beta/models/gemini-x%253agenerateContent", "gemini-generate", "gemini-x", "gemini-x", false},
		{"POST", "/v1beta/models/a%20b:generateContent;x=1", "gemini-generate", "a b", "a%20b", false},
		{"POST", "/v1beta/models%2fgemini-x:generate%43ontent", "gemini-generate", "gemini-x", "gemini-x", false},
		{"POST", "/v1beta/models/a:b:generateContent", "gemini-generate", "a:b", "a:b", false},
		{"POST", "/v1beta/models/gemini-2.5-flash:countTokens", "gemini-count-tokens", "gemini-2.5-flash", "gemini-2.5-flash", false},
		{"POST", "/v1beta/models/gemini-embedding-001:embedContent", "gemini-embed", "gemini-embedding-001", "gemini-embedding-001", false},
		{"POST", "/v1beta/models/gemini-embedding-001:batchEmbedContents", "gemini-embed", "gemini-embedding-001", "gemini-embedding-001", false},
		{"POST", "/v1/projects/p/locations/l/publishers/google/models/text-embedding-005:predict", "gemini-embed", "text-embedding-005", "text-embedding-005", false},
		{"POST", "/v1/projects/p/locations/l/publishers/google/models/textembedding-gecko@003:predict", "gemini-embed", "textembedding-gecko@003", "textembedding-gecko@003", false},
		{"GET", geminiPath, "", "", "", false},
		{"POST", "/v1beta/models/gemini-2.5-flash", "", "", "", false},
		{"POST", "/v1beta/models/gemini-2.5-flash:generateContents", "", "", "", false},
		{"POST", "/v1beta/models/gemini-2.5-flash:generateContent/x", "", "", "", false},
		{"POST", "/v1beta/models/gemini-2.5-flash:batchGenerateContent", "", "", "", false},
		{"POST", "/v1/models/imagen-4:predict", "", "", "", false},
		{"POST", "/v1beta/cachedContents", "", "", "", false},
		{"POST", "/x?y=:generateContent", "", "", "", false},
	} {
		d, ok := Recognise(c.method, c.path)
		if name := ""; ok {
			name = d.Name()
			if name != c.name {
				t.Errorf("%s: %s", c.path, name)
				continue
			}
			s := d.NewScanner(RequestHead{}, 256, nil)
			s.Write([]byte(`{}`))
			f, fault := s.Close()
			if fault != nil || f.Model != c.model || f.Stream != c.stream || c.path[f.ModelInPath.Start:f.ModelInPath.End] != c.span {
				t.Errorf("%s: %+v %v, at %q", c.path, f, fault, c.path[f.ModelInPath.Start:f.ModelInPath.End])
			}
		} else if c.name != "" {
			t.Errorf("%s: not recognised", c.path)
		}
	}
	for _, path := range []string{"/models/imagen-4:predict", "/x/v1internal:generateContent", "/models/m:batchGenerateContent"} {
		if !LLMPath(path) {
			t.Errorf("%s is no path of an LLM", path)
		}
	}
}

const geminiBody = `{"system_instruction":{"parts":{"text":"Be \"kind\"."}},
"contents":[{"role":"user","parts":[{"text":"caf\u00e9 \ud83d\ude00"},
   {"inlineData":{"mimeType":"image\/png","data":"iVBORw0KGgo="}},{"file_data":{"file_uri":"https://x/files/y","mime_type":"video/mp4"}}]},
 {"role":"model","parts":[{"functionCall":{"id":"1","name":"sum","args":{"a": [1, 2]}},"thoughtSignature":"c2lnbmF0dXJl"}]},
 {"role":"user","parts":[{"functionResponse":{"name":"sum","response":{"result":3},"parts":[{"inlineData":{"data":"UklGRg==","mimeType":"audio/wav"}}]}}]},
 {"parts":[{"executableCode":{"language":"PYTHON","code":"1+1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"2"}}]}],
"tools":[{"functionDeclarations":[{"name":"sum","description":"Adds.","parameters":{"type":"OBJECT","properties":{"a":{"type":"ARRAY","items":{"type":"NUMBER"},"max_items":"5"},
   "b":{"any_of":[{"type":"STRING","enum":["x","y"]}],"nullable":true}},"required":["a"],"propertyOrdering":["a","b"]}}]},{"googleSearch":{}}],
"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},
"generationConfig":{"temperature":0.5,"maxOutputTokens":"700","candidate_count":2,"thinkingConfig":{"thinkingBudget":-1},"responseMimeType":"application/json","responseSchema":{"type":"OBJECT"}},
"safetySettings":[],"labels":{"model":"no"}}`

func geminiScan(t testing.TB, path string) func(w func(func([]byte))) scanned {
	d := geminiCall(t, path)
	return func(w func(func([]byte))) scanned { return scanAs(d, RequestHead{}, w, 256) }
}

func all(body string) func(func([]byte)) { return func(w func([]byte)) { w([]byte(body)) } }

func TestGeminiFacts(t *testing.T) {
	scan := geminiScan(t, geminiPath)
	got := scan(all(geminiBody))
	want := scanned{
		Facts: Facts{Model: "gemini-2.5-flash", ModelInPath: Span{15, 31}, MaxOutput: 700, HasMaxOutput: true, N: 2},
		Texts: []string{`Be "kind".`, "/message", "user", "café 😀", "format: image/png", "file: iVBORw0KGgo=", "/file",
			"file ref: https://x/files/y", "format: video/mp4", "/file", "/message",
			"model", "sum", `{"a":[1,2]}`, "/message",
			"user", "sum", `{"result":3}`, "file: UklGRg==", "format: audio/wav", "/file", "/message", "1+1", "2", "/message",
			"tool: sum", "tool description: Adds.", "property: a", "type: ARRAY", "type: NUMBER", "schema: max_items", `schema: "5"`, "/property",
			"property: b", "type: STRING", "value: x", "value: y", "/enum", "schema: nullable", "schema: true", "/property", "/properties", "/tool",
			`schema: {"type":"OBJECT"}`, "/response format"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("\n got %+v %q\nwant %+v %q", got, got.Texts, want, want.Texts)
	}
	sameForEverySplit(t, geminiBody, want, scan)
}

func TestGeminiTakesOneValueForAList(t *testing.T) {
	scan := geminiScan(t, geminiPath)
	for _, c := range []struct {
		body  string
		texts []string
	}{
		{`{"contents":{"role":"user","parts":{"text":"hi"}}}`, []string{"user", "hi", "/message"}},
		{`{"contents":[{"parts":[{"text":"a"},{"text":"b"}]}],"tools":{"function_declarations":{"name":"f","parametersJsonSchema":{"type":"object","anyOf":[{"type":"string"}]}}}}`,
			[]string{"a", "b", "/message", "tool: f", "type: string", "/tool"}},
		{`{"generateContentRequest":{"model":"models/other","contents":[{"parts":[{"text":"a"}]}]}}`, []string{"a", "/message"}},
		{`{"contents":null,"tools":null,"systemInstruction":null,"generationConfig":null}`, []string{"/message", "/message"}},
		{`{"contents":[{"parts":[{"text":"ab\ud83d"},{"inlineData":null},{"functionCall":{"name":"f","args":null}}]}]}`, []string{"ab\ufffd", "f", "/message"}},
	} {
		got := scan(all(c.body))
		if got.Fault != nil || got.Facts.Model != "gemini-2.5-flash" || !slices.Equal(got.Texts, c.texts) {
			t.Errorf("%s: %q %v, want %q", c.body, got.Texts, got.Fault, c.texts)
		}
		sameForEverySplit(t, c.body, got, scan)
	}
	got := geminiScan(t, "/v1internal:generateContent")(all(`{"model":"gemini-2.5-pro","request":{"contents":[{"parts":[{"text":"a"}]}]}}`))
	if got.Facts.Model != "gemini-2.5-pro" || !slices.Equal(got.Texts, []string{"a", "/message"}) {
		t.Errorf("Code Assist: %+v", got)
	}
}

func TestGeminiRefusesTwoSpellingsOfOneField(t *testing.T) {
	scan := geminiScan(t, geminiPath)
	for _, c := range []struct{ body, code, param string }{
		{`{"generationConfig":{"maxOutputTokens":5},"generation_config":{"max_output_tokens":9000}}`, "duplicate_key", "generationConfig"},
		{`{"generationConfig":{"max_output_tokens":5,"maxOutputTokens":9000}}`, "duplicate_key", "generationConfig.maxOutputTokens"},
		{`{"generationConfig":{"max\u005foutput_tokens":5,"maxOutputTokens":9000}}`, "duplicate_key", "generationConfig.maxOutputTokens"},
		{`{"system_instruction":{"parts":{"text":"a"}},"systemInstruction":{"parts":{"text":"b"}}}`, "duplicate_key", "systemInstruction"},
		{`{"contents":[{"parts":[{"inline_data":{},"inlineData":{}}]}]}`, "duplicate_key", "contents[0].parts[0].inlineData"},
		{`{"generationConfig":{"max_outputTokens":5}}`, "misspelled_key", "generationConfig.maxOutputTokens"},
		{`{"generationConfig":{"MAX_OUTPUT_TOKENS":5}}`, "misspelled_key", "generationConfig.maxOutputTokens"},
		{`{"generationConfig":{"maxoutputtokens":5}}`, "misspelled_key", "generationConfig.maxOutputTokens"},
		{`{"generationConfig":{"maxOutputTokens":0}}`, "invalid_value", "generationConfig.maxOutputTokens"},
		{`{"generationConfig":{"maxOutputTokens":"0"}}`, "invalid_value", "generationConfig.maxOutputTokens"},
		{`{"generationConfig":{"maxOutputTokens":"5e1"}}`, "invalid_value", "generationConfig.maxOutputTokens"},
		{`{"generationConfig":{"maxOutputTokens":""}}`, "invalid_value", "generationConfig.maxOutputTokens"},
		{`{"generationConfig":{"maxOutputTokens":-1}}`, "invalid_value", "generationConfig.maxOutputTokens"},
		{`{"generationConfig":{"maxOutputTokens":true}}`, "invalid_type", "generationConfig.maxOutputTokens"},
		{`{"generationConfig":{"candidateCount":1.5}}`, "invalid_value", "generationConfig.candidateCount"},
		{`{"generationConfig":[]}`, "invalid_type", "generationConfig"},
		{`[]`, "invalid_type", ""},
	} {
		got := scan(all(c.body))
		if got.Fault == nil || got.Fault.Status != 400 || got.Fault.Code != c.code || got.Fault.Param != c.param {
			t.Errorf("%s: %+v, want %s %s", c.body, got.Fault, c.code, c.param)
		}
		sameForEverySplit(t, c.body, got, scan)
	}
}

func TestGeminiEmbedFacts(t *testing.T) {
	for _, c := range []struct {
		path, body string
		inputs     int64
		texts      []string
	}{
		{"/v1beta/models/gemini-embedding-001:embedContent", `{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"a"},{"text":"b"}]},"title":"t","outputDimensionality":256}`, 1, []string{"a", "b", "t"}},
		{"/v1beta/models/gemini-embedding-001:batchEmbedContents", `{"requests":[{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"a"}]}},{"content":{"parts":{"text":"b"}},"task_type":"RETRIEVAL_DOCUMENT"}]}`, 2, []string{"a", "b"}},
		{"/v1/publishers/google/models/text-embedding-005:predict", `{"instances":[{"content":"a","title":"t"},{"content":"b"},{"content":"c"}],"parameters":{"autoTruncate":true}}`, 3, []string{"a", "t", "b", "c"}},
		{"/v1/publishers/google/models/multimodalembedding@001:predict", `{"instances":[{"text":"a","image":{"bytesBase64Encoded":"iVBORw0KGgo=","mimeType":"image/png"}}]}`, 1,
			[]string{"a", "file: iVBORw0KGgo=", "format: image/png", "/file"}},
	} {
		scan := geminiScan(t, c.path)
		got := scan(all(c.body))
		f := got.Facts
		if got.Fault != nil || f.Inputs != c.inputs || !f.NoChat || !f.NoOutput || f.Free || !slices.Equal(got.Texts, c.texts) {
			t.Errorf("%s: %+v %q", c.path, f, got.Texts)
		}
		sameForEverySplit(t, c.body, got, scan)
	}
	if got := geminiScan(t, "/v1beta/models/m:countTokens")(all(geminiBody)); !got.Facts.Free || got.Fault != nil {
		t.Errorf("countTokens: %+v", got.Facts)
	}
}

var geminiSeeds = []string{
	geminiBody, `{"contents":{"role":"user","parts":{"text":"hi"}}}`, `{"contents":["x",{"parts":["y",5,null]}],"system_instruction":"z"}`,
	`{"tools":{"function_declarations":{"name":"f","parameters":{"properties":{"a":[1],"b":5},"enum":{"x":1},"$defs":{"T":[{"type":"x"}]}}}}}`,
	`{"tools":[{"functionDeclarations":[{"name":"f","description":"d","response":{"type":"STRING"},"parameters":{"anyOf":[[{"description":5}]],"properties":5,"defs":"x"}},5]}]}`,
	`{"request":{"contents":[{"parts":[{"text":"a","inline_data":{"data":"eA=="}}]}],"generation_config":{"response_schema":{"a":[1]}}}}`,
	`{"generationConfig":{"maxOutputTokens":"5","candidateCount":2}}`, `{"contents":[{"parts":[{"functionResponse":{"response":[1],"parts":[{"text":"x"}]}}]}]}`,
}

func TestGeminiScannerAgreesWithTheReference(t *testing.T) {
	scan := geminiScan(t, geminiPath)
	for _, body := range append(geminiSeeds, shuffled(geminiBody, 1), shuffled(geminiBody, 2)) {
		want, ok := referenceGemini([]byte(body))
		got := scan(all(body))
		slices.Sort(got.Texts)
		if !ok || got.Fault != nil || !slices.Equal(got.Texts, want) {
			t.Errorf("%s: %v\n got %q\nwant %q", body, got.Fault, got.Texts, want)
		}
	}
}

func FuzzGeminiScanner(f *testing.F) {
	for _, s := range geminiSeeds {
		f.Add([]byte(s), uint16(3))
	}
	scan := geminiScan(f, geminiPath)
	f.Fuzz(func(t *testing.T, body []byte, cut uint16) {
		n := int(cut) % (len(body) + 1)
		whole := scan(all(string(body)))
		split := scan(func(w func([]byte)) { w(bytes.Clone(body[:n])); w(bytes.Clone(body[n:])) })
		if !reflect.DeepEqual(whole, split) {
			t.Fatalf("cut at %d:\n%+v\n%+v", n, whole, split)
		}
		want, ok := referenceGemini(body)
		if !ok || whole.Fault != nil {
			if ok && whole.Fault.Code == "invalid_json" || !ok && whole.Fault == nil {
				t.Fatalf("%v", whole.Fault)
			}
			return
		}
		if heard := slices.Sorted(slices.Values(whole.Texts)); !slices.Equal(heard, want) {
			t.Fatalf("heard\n got %q\nwant %q", heard, want)
		}
	})
}

func TestGeminiRefusal(t *testing.T) {
	type body struct {
		Error struct {
			Code            int
			Message, Status string
			Details         []map[string]any
		}
	}
	for _, c := range []struct {
		r      Refusal
		code   int
		status string
		retry  string
	}{
		{Refusal{Reason: RateLimited, Message: "later \"x\"", Retry: 1500}, 429, "RESOURCE_EXHAUSTED", "2s"},
		{Refusal{Reason: OverBudget}, 402, "RESOURCE_EXHAUSTED", ""},
		{Refusal{Reason: OverBudget, Status: 429, Retry: 1000}, 429, "RESOURCE_EXHAUSTED", "1s"},
		{Refusal{Reason: Killed}, 403, "PERMISSION_DENIED", ""},
		{Refusal{Reason: Unavailable, Retry: 1}, 503, "UNAVAILABLE", "1s"},
		{Refusal{Reason: BadRequest, Code: "duplicate_key", Param: "contents", Message: "m"}, 400, "INVALID_ARGUMENT", ""},
		{Refusal{Reason: TooLarge}, 413, "INVALID_ARGUMENT", ""},
		{Refusal{Reason: Unsupported}, 415, "INVALID_ARGUMENT", ""},
		{Refusal{Reason: Unauthorized}, 401, "UNAUTHENTICATED", ""},
		{Refusal{Reason: NotFound}, 404, "NOT_FOUND", ""},
		{Refusal{Reason: Internal}, 500, "INTERNAL", ""},
	} {
		headers, b := geminiCall(t, geminiPath).Refusal(c.r)
		var got body
		if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(headers, jsonHeaders()) {
			t.Fatalf("%s: %v", b, err)
		}
		retry := ""
		for _, d := range got.Error.Details {
			if kind, _ := d["@type"].(string); strings.HasSuffix(kind, "google.rpc.RetryInfo") {
				retry = d["retryDelay"].(string)
			}
		}
		if e := got.Error; e.Code != c.code || e.Status != c.status || e.Message != c.r.Message || retry != c.retry {
			t.Errorf("%s, want %+v", b, c)
		}
	}
}
