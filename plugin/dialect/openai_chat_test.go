package dialect

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const chatBody = ` {"model" : "gpt-4o","stream":true,"stream_options":{"include_usage":true},"n":2,
"messages":[{"role":"system","content":"Be \"kind\".\n"},
 {"role":"user","name":"ann","content":[{"type":"text","text":"caf\u00e9 \ud83d\ude00 你好"},
  {"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo=","detail":"low"}}]},
 {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"sum","arguments":"{\"a\":1}"}}]},
 {"role":"tool","tool_call_id":"c1","content":"3"}],
"tools":[{"type":"function","function":{"name":"sum","description":"adds, up","parameters":{"type":"object", "x":[1, -2.5e3,true,null]}}}],
"response_format":{"type":"json_object"},
"max_tokens":50,"max_completion_tokens":70,"ignored":{"deep":[[[{}]]],"model":"not this"}}
`

func TestChatFacts(t *testing.T) {
	got := scanWhole(chatBody)
	start := int64(strings.Index(chatBody, `"gpt-4o"`))
	want := scanned{
		Facts: Facts{Model: "gpt-4o", ModelSpan: Span{start, start + int64(len(`"gpt-4o"`))}, Stream: true,
			IncludeUsage: true, MaxOutput: 70, HasMaxOutput: true, N: 2},
		Texts: []string{"system", "Be \"kind\".\n", "/message",
			"user", "ann", "/name", "café 😀 你好", "image: data:image/png;base64,iVBORw0KGgo=", "detail: low", "/image", "/message",
			"assistant", "sum", `{"a":1}`, "/message", "tool", "3", "/message",
			"tool: sum", "tool description: adds, up", "schema: x", "schema: [1,-2.5e3,true,null]", "/tool"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("\n got %+v\nwant %+v", got, want)
	}
	sameForEverySplit(t, chatBody, want, func(w func(func([]byte))) scanned { return scan(w, 256) })
}

func TestChatCapsAreExactWholeNumbers(t *testing.T) {
	for _, c := range []struct {
		value string
		want  int64 // 0 = absent, -1 = refused
	}{
		{"50", 50}, {"50.0", 50}, {"5e1", 50}, {"0.5e2", 50}, {"5000E-2", 50}, {"50.000e0", 50}, {"null", 0},
		{"999999999", 999999999}, {"9007199254740991", 1<<53 - 1}, {"1e15", 1e15},
		{`"50"`, -1}, {"true", -1}, {"0", -1}, {"-0", -1}, {"0.0", -1}, {"-7", -1}, {"1e999", -1}, {"1.5", -1}, {"5e-1", -1},
		{"9007199254740992", -1}, {"1e16", -1}, {"1e99999999999999999999", -1}, {"1e-99999999999999999999", -1},
		{"[50]", -1}, {"{}", -1}, {strings.Repeat("9", 2000), -1},
	} {
		for _, key := range []string{"max_tokens", "max_completion_tokens", "n"} {
			body := `{"model":"m","` + key + `":` + c.value + `}`
			got := scanWhole(body)
			sameForEverySplit(t, body[:min(len(body), 100)], scanWhole(body[:min(len(body), 100)]),
				func(w func(func([]byte))) scanned { return scan(w, 256) })
			if c.want < 0 {
				if got.Fault == nil || got.Fault.Status != 400 || got.Fault.Param != key || !strings.Contains(got.Fault.Message, key) {
					t.Errorf("%s: fault %+v, want 400 that names %s", body, got.Fault, key)
				}
				continue
			}
			value, has := got.Facts.MaxOutput, got.Facts.HasMaxOutput
			want := c.want
			if key == "n" {
				value, has, want = got.Facts.N, c.want != 0, max(c.want, 1)
			}
			if got.Fault != nil || value != want || has != (c.want != 0) {
				t.Errorf("%s: %d, %v, %v", body, value, has, got.Fault)
			}
		}
	}
}

func TestChatRefusesWhatTwoDecodersMayReadDifferently(t *testing.T) {
	for _, c := range []struct{ body, code, param string }{
		{`{"model":"cheap","max_tokens":5,"model":"dear","max_tokens":9000}`, "duplicate_key", "model"},
		{`{"model":"cheap","mod\u0065l":"dear"}`, "duplicate_key", "model"},
		{`{"\u006d\u006F\u0064\u0065\u006c":"cheap","model":"dear"}`, "duplicate_key", "model"},
		{`{"messages":[{"content":"a"},{"role":"user","content":"a","content":"b"}]}`, "duplicate_key", "messages[1].content"},
		{`{"stream_options":{"include_usage":true,"include_usage":false}}`, "duplicate_key", "stream_options.include_usage"},
		{`{"model":"cheap","Model":"dear"}`, "misspelled_key", "model"},
		{`{"max_tokens":5,"MAX_TO\u212aEN\u017f":9000}`, "misspelled_key", "max_tokens"},
		{`{"messages":[{"Content":"a"}]}`, "misspelled_key", "messages[0].content"},
		{`{"model":"m"} {"model":"n"}`, "invalid_json", ""},
		{`{"model":"m"}x`, "invalid_json", ""},
		{"{\"mod\xffel\":\"m\"}", "invalid_json", ""},
		{"{\"x\":\"\xc0\xa2\"}", "invalid_json", ""},
		{"{\"x\":\"\xed\xa0\x80\"}", "invalid_json", ""},
		{"{\"x\":\"\xe4\xbd\"}", "invalid_json", ""},
		{"\xef\xbb\xbf{}", "invalid_json", ""},
		{"{\"x\":\"a\nb\"}", "invalid_json", ""},
		{`{"x":"\q"}`, "invalid_json", ""},
		{`{"x":"\u12g4"}`, "invalid_json", ""},
		{`{"x":01}`, "invalid_json", ""},
		{`{"x":1.}`, "invalid_json", ""},
		{`{"x":.5}`, "invalid_json", ""},
		{`{"x":+1}`, "invalid_json", ""},
		{`{"x":-}`, "invalid_json", ""},
		{`{"x":1e}`, "invalid_json", ""},
		{`{"x":NaN}`, "invalid_json", ""},
		{`{"x":tru}`, "invalid_json", ""},
		{`{"x":[1,]}`, "invalid_json", ""},
		{`{"x":1,}`, "invalid_json", ""},
		{`{"x" 1}`, "invalid_json", ""},
		{`{x:1}`, "invalid_json", ""},
		{`{"x":[1}}`, "invalid_json", ""},
		{`{"x":1`, "invalid_json", ""},
		{``, "invalid_json", ""},
		{`   `, "invalid_json", ""},
		{`[]`, "invalid_type", ""},
		{`"text"`, "invalid_type", ""},
		{`5`, "invalid_type", ""},
		{`null`, "invalid_type", ""},
		{`{"model":7}`, "invalid_type", "model"},
		{`{"stream":"true"}`, "invalid_type", "stream"},
		{`{"stream":1}`, "invalid_type", "stream"},
		{`{"messages":"hi"}`, "invalid_type", "messages"},
		{`{"model":"` + strings.Repeat("m", 2000) + `"}`, "invalid_value", "model"},
	} {
		got := scanWhole(c.body)
		if got.Fault == nil || got.Fault.Status != 400 || got.Fault.Code != c.code || got.Fault.Param != c.param || got.Fault.Message == "" {
			t.Errorf("%.60q: %+v, want %s %s", c.body, got.Fault, c.code, c.param)
		}
		sameForEverySplit(t, c.body[:min(len(c.body), 200)], scanWhole(c.body[:min(len(c.body), 200)]),
			func(w func(func([]byte))) scanned { return scan(w, 256) })
	}
}

func TestChatTakesWhatIsOdd(t *testing.T) {
	for _, c := range []struct {
		body  string
		facts Facts
		texts []string
	}{
		{`{}`, Facts{N: 1}, nil},
		{`{"model":null,"stream":null,"n":null,"messages":null,"stream_options":null}`, Facts{N: 1}, nil},
		{`{"model ":"m","modell":"m"}`, Facts{N: 1}, nil}, // keys match exactly
		{`{"model":"a\u0062\/c"}`, Facts{N: 1, Model: "ab/c", ModelSpan: Span{9, 21}}, nil},
		{`{"messages":[{"role":"user","content":"ab\ud83d"}]}`, Facts{N: 1}, []string{"user", "ab\ufffd", "/message"}},
		{`{"messages":["hi",{"content":["a",{"text":"b"}]},{"content":{"text":"c"}}]}`, Facts{N: 1}, []string{"hi", "/message", "a", "b", "/message", "c", "/message"}},
		{`{"messages":[{"content":[{"input_audio":{"data":"UklGRg=="}},{"file":{"file_data":"data:application/pdf;base64,JVBE"}},{"image_url":"http://x/y.png"},{"image_url":null}]}]}`,
			Facts{N: 1}, []string{"audio: UklGRg==", "/audio", "file: data:application/pdf;base64,JVBE", "/file", "image: http://x/y.png", "/image", "/message"}},
		{`{"messages":[{"tool_calls":[{"function":{"arguments":{"a": [1, 2]}}},{"custom":{"name":"f","input":"x"}}],"function_call":{"name":"g","arguments":""}}]}`,
			Facts{N: 1}, []string{`{"a":[1,2]}`, "f", "x", "g", "", "/message"}},
		{`{"functions":[{"name":"f"}],"tools":[ {"a":1} , "b" ,3,null]}`, Facts{N: 1},
			[]string{"tool: f", "/tool", "schema: a", "schema: 1", "/tool", `schema: "b"`, "/tool", "schema: 3", "/tool", "schema: null", "/tool"}},
		{`{"tool_choice":{"type":"function","function":{"name":"f"}},"function_call":"none"}`, Facts{N: 1}, []string{"f"}},
		{`{"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}},{"name":"g"}]}}}`, Facts{N: 1}, []string{"f", "g"}},
		{`{"messages":[{"reasoning_details":[{"type":"reasoning.text","text":"hm"},{"type":"reasoning.encrypted","data":"aaaaaaaaaabbbbb"}]}]}`,
			Facts{N: 1, TokenIDs: 3}, []string{"hm", "/message"}},
		{`{"messages":[{"content":[{"type":"audio_url","audio_url":{"url":"http://x/y.wav"}},{"type":"document_url","document_url":{"url":"http://x/y.pdf"}}]}]}`,
			Facts{N: 1}, []string{"audio: http://x/y.wav", "/audio", "file: http://x/y.pdf", "/file", "/message"}},
		{`{"messages":[null,5,{"name":null},{"name":7,"content":[{"image_url":{}},{"image":9},{"file":null}]}]}`, Facts{N: 1},
			[]string{"/message", "/message", "/message", "/name", "/image", "/image", "/message"}},
	} {
		got := scanWhole(c.body)
		if got.Fault != nil || !reflect.DeepEqual(got.Facts, c.facts) || !slices.Equal(got.Texts, c.texts) {
			t.Errorf("%s:\n got %+v\nwant %+v %q", c.body, got, c.facts, c.texts)
		}
		sameForEverySplit(t, c.body, got, func(w func(func([]byte))) scanned { return scan(w, 256) })
	}
}

func TestChatDepthIsCapped(t *testing.T) {
	for _, open := range []string{"[", `{"a":`} {
		s := OpenAIChat.NewScanner(RequestHead{}, 256, nil)
		s.Write([]byte(`{"x":`))
		var fault *Fault
		for range 100000 {
			fault = s.Write([]byte(open))
		}
		if fault == nil || fault.Code != "json_too_deep" || fault.Status != 400 {
			t.Fatalf("%s: %+v", open, fault)
		}
		if again := s.Write([]byte("x")); again != fault {
			t.Fatal("another fault after the first")
		}
		if n := cap(s.(*requestScanner).json.stack); n > 512 {
			t.Fatalf("the stack has room for %d frames", n)
		}
	}
	deep := func(n int) string {
		return `{"x":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `,"model":"m"}`
	}
	for _, c := range []struct {
		depth, nest int
		ok          bool
	}{{8, 8, true}, {8, 9, false}, {0, 512, true}, {0, 513, false}, {9999, 513, false}} {
		body := deep(c.nest)
		if got := scan(func(w func([]byte)) { w([]byte(body)) }, c.depth); (got.Fault == nil) != c.ok {
			t.Errorf("%+v: %v", c, got.Fault)
		}
	}
}

func TestChatHoldsNoBody(t *testing.T) {
	s := OpenAIChat.NewScanner(RequestHead{}, 256, nil)
	s.Write([]byte(`{"model":"m","messages":[{"content":"`))
	chunk := bytes.Repeat([]byte(`word \n \u00e9 {[ `), 1000)
	space := bytes.Repeat([]byte(" "), 16<<10)
	if n := testing.AllocsPerRun(50, func() { s.Write(chunk) }); n != 0 {
		t.Fatalf("%v allocations for a piece of text", n)
	}
	s.Write([]byte(`"}],"` + strings.Repeat("k", 100000) + `":`))
	if n := testing.AllocsPerRun(50, func() { s.Write(space) }); n != 0 {
		t.Fatalf("%v allocations for white space", n)
	}
	s.Write([]byte(`1}`))
	if f, fault := s.Close(); fault != nil || f.Model != "m" {
		t.Fatal(f, fault)
	}
	if n := cap(s.(*requestScanner).json.held); n > 2*maxHeld {
		t.Fatalf("%d bytes held", n)
	}
}

var chatSeeds = []string{
	chatBody, `{}`, `{"messages":[{"role":"user","content":"ab\ud83d"}]}`, `{"model":"m","mod\u0065l":"n"}`,
	`{"messages":["hi",{"content":["a",{"text":"b"}]},{"content":{"text":"c","image":1}}]}`, `{"x":[[[[]]]]}`,
	`{"messages":[{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}],"function_call":{"arguments":"x"}}],"n":1}`,
	toolBody, shuffled(toolBody, 1), oddTools,
	"{\"x\":\"\xe4\xbd\xa0\"}", `{"max_tokens":5e1,"n":2.0,"stream":false}`, `[`, `{"a":-0.1E+5}`,
}

func FuzzChatScanner(f *testing.F) {
	for _, s := range append(slices.Clone(chatSeeds), `{"stream":true}`, `{ "stream":true,"stream_options":{}}`, `{"stream_options":null,"stream":true}`) {
		f.Add([]byte(s), uint16(3))
	}
	f.Fuzz(func(t *testing.T, body []byte, cut uint16) {
		whole := scan(func(w func([]byte)) { w(body) }, 256)
		n := int(cut) % (len(body) + 1)
		split := scan(func(w func([]byte)) { w(bytes.Clone(body[:n])); w(bytes.Clone(body[n:])) }, 256)
		if !reflect.DeepEqual(whole, split) {
			t.Fatalf("cut at %d:\n%+v\n%+v", n, whole, split)
		}
		facts, all, ok := referenceScan(body)
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
		if a := got.AskUsage; a.With != "" {
			edited := string(body[:a.At.Start]) + a.With + string(body[a.At.End:])
			if asks := scanWhole(edited); asks.Fault != nil || !asks.Facts.IncludeUsage || !asks.Facts.Stream || !slices.Equal(asks.Texts, whole.Texts) {
				t.Fatalf("asked for its usage it is %q: %+v", edited, asks)
			}
			got.AskUsage = Splice{}
		}
		got.ModelSpan, got.MaxOutput, got.HasMaxOutput, got.N = Span{}, 0, false, 1
		if got != facts {
			t.Fatalf("facts\n got %+v\nwant %+v", got, facts)
		}
		if s := whole.Facts.ModelSpan; s.End > 0 {
			var model string
			if json.Unmarshal(body[s.Start:s.End], &model) != nil || model != whole.Facts.Model {
				t.Fatalf("the span holds %q", body[s.Start:s.End])
			}
		}
		if heard := slices.Sorted(slices.Values(whole.Texts)); !slices.Equal(heard, all) {
			t.Fatalf("heard\n got %q\nwant %q", heard, all)
		}
	})
}

func chatBench() []byte {
	var b strings.Builder
	b.WriteString(`{"model":"gpt-4o","stream":true,"messages":[`)
	for i := 0; b.Len() < 100<<10; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"role":"user","content":"`)
		for range 8 {
			b.WriteString(`The meter reads every chunk as it passes, and says \"nothing\" of what it saw.\n\tfor i := range frames { count(frames[i]) }\n`)
		}
		b.WriteString(`"}`)
	}
	b.WriteString(`],"max_tokens":100}`)
	return []byte(b.String())
}

func BenchmarkChatScanner(b *testing.B) {
	for name, body := range map[string][]byte{
		"english": chatBench(),
		"chinese": []byte(`{"messages":[{"content":"` + strings.Repeat("每个数据块经过时都被读取。", 3000) + `"}]}`),
		"nested":  []byte(`{"x":` + strings.Repeat(`{"key":[1,true,"v",null]},"y":`, 0) + `[` + strings.Repeat(`{"key":[1,true,"v",null]},`, 4000) + `1]}`),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				s := OpenAIChat.NewScanner(RequestHead{}, 256, nil)
				if f := s.Write(body); f != nil {
					b.Fatal(f)
				}
				if _, f := s.Close(); f != nil {
					b.Fatal(f)
				}
			}
		})
	}
}
