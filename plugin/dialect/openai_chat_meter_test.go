package dialect

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

var (
	okSSE  = ResponseHead{Status: 200, ContentType: "text/event-stream; charset=utf-8"}
	okJSON = ResponseHead{Status: 200, ContentType: "application/json"}
)

// frames writes each document as one event.
func frames(docs ...string) string {
	var b strings.Builder
	for _, d := range docs {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

func delta(text string) string {
	return `{"choices":[{"index":0,"delta":{"content":"` + text + `"}}],"usage":null}`
}

func usage(prompt, completion int) string {
	return `"usage":{"prompt_tokens":` + strconv.Itoa(prompt) + `,"completion_tokens":` + strconv.Itoa(completion) + `}`
}

const (
	stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	done = "[DONE]"
)

func TestChatMeter(t *testing.T) {
	big := strings.Repeat("x", 300<<10)
	for _, c := range []struct {
		name string
		head ResponseHead
		body string
		want metered
	}{
		{"C01 no usage", okSSE, frames(delta("a"), delta("b"), delta("c"), done),
			metered{Produced: true, Finished: true, Texts: []string{"abc"}}},
		{"C02 usage null everywhere", okSSE, frames(delta("hi"), delta("hi"), done),
			metered{Produced: true, Finished: true, Texts: []string{"hihi"}}},
		{"C04 cumulative", okSSE, frames(`{"choices":[{"delta":{"role":"assistant"}}],`+usage(12, 0)+`}`,
			`{"choices":[{"delta":{"content":"a"}}],`+usage(12, 1)+`}`, `{`+usage(12, 2)+`,"choices":[{"delta":{"content":"b"}}]}`,
			`{"choices":[],`+usage(12, 2)+`}`, done),
			metered{Usage: used(12, 0, 2), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"ab"}}},
		{"C05 zeros first", okSSE, frames(`{"choices":[],`+usage(0, 0)+`}`, delta("a"), `{"choices":[],`+usage(900, 14)+`}`, done),
			metered{Usage: used(900, 0, 14), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"a"}}},
		{"C05 zeros alone", okSSE, frames(`{"choices":[],`+usage(0, 0)+`}`, delta("a")),
			metered{Produced: true, Texts: []string{"a"}}},
		{"a figure from before the end", okSSE, frames(`{"choices":[],`+usage(900, 1)+`}`, delta("a"), delta("b")),
			metered{Usage: used(900, 0, 1), Trust: InputUsage, Produced: true, Texts: []string{"ab"}}},
		{"C07 details after the finish", okSSE, frames(delta("a"), `{"choices":[{"delta":{},"finish_reason":"stop"}],`+usage(50, 9)+`}`,
			`{"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":32}}}`, done),
			metered{Usage: used(50, 32, 9), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"a"}}},
		{"C07 details alone", okSSE, frames(stop, `{`+usage(50, 9)+`}`, `{"usage":{"completion_tokens":9,"prompt_cache_hit_tokens":32}}`, done),
			metered{Usage: used(50, 32, 9), Trust: WholeUsage, Finished: true}},
		{"C08 choices and usage", okSSE, frames(`{"choices":[{"delta":{"role":"assistant","content":null}}],` + usage(30, 4) + `}`),
			metered{Usage: used(30, 0, 4), Trust: WholeUsage}},
		{"C10 Azure's first", okSSE, frames(`{"id":"","model":"","choices":[],"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}],"usage":null}`,
			stop, `{"choices":[],`+usage(3, 1)+`}`),
			metered{Usage: used(3, 0, 1), Trust: WholeUsage, Finished: true}},
		{"C11 no DONE", okSSE, frames(stop, `{"choices":[],`+usage(14, 3)+`}`),
			metered{Usage: used(14, 0, 3), Trust: WholeUsage, Finished: true}},
		{"C16 reasoning inside", okSSE, frames(`{"usage":{"prompt_tokens":10,"completion_tokens":500,"total_tokens":510,"completion_tokens_details":{"reasoning_tokens":420}}}`),
			metered{Usage: Usage{Input: 10, Output: 500, Reasoning: 420}, Trust: WholeUsage}},
		{"reasoning on top", okSSE, frames(`{"usage":{"prompt_tokens":10,"completion_tokens":80,"total_tokens":510,"completion_tokens_details":{"reasoning_tokens":420}}}`),
			metered{Usage: Usage{Input: 10, Output: 500, Reasoning: 420}, Trust: WholeUsage}},
		{"C34 a long line", okSSE, frames(`{"pad":"` + big + `",` + usage(10, 5) + `}`),
			metered{Usage: used(10, 0, 5), Trust: WholeUsage}},
		{"C43 characters", okSSE, frames(`{"c":"你",` + usage(1, 2) + `}`),
			metered{Usage: used(1, 0, 2), Trust: WholeUsage}},
		{"C44 CRLF", okSSE, "data: {" + usage(7, 3) + "}\r\n\r\n",
			metered{Usage: used(7, 0, 3), Trust: WholeUsage}},
		{"C46 bare CR", okSSE, "data: {" + usage(7, 3) + "}\r\rdata: [DONE]\r\r",
			metered{Usage: used(7, 0, 3), Trust: WholeUsage, Finished: true}},
		{"C47 no space", okSSE, "data:{" + usage(7, 3) + "}\n\ndata:[DONE]\n\n",
			metered{Usage: used(7, 0, 3), Trust: WholeUsage, Finished: true}},
		{"C49 comments", okSSE, ": ping\n\ndata: : PROCESSING\n\ndata: {" + usage(7, 3) + "}\n\n: bye\n\n",
			metered{Usage: used(7, 0, 3), Trust: WholeUsage}},
		{"C50 one newline", okSSE, "data: {" + usage(8, 3) + "}\n", metered{Usage: used(8, 0, 3), Trust: WholeUsage}},
		{"C50 none", okSSE, "data: {" + usage(8, 3) + "}", metered{Usage: used(8, 0, 3), Trust: WholeUsage}},
		{"C50 not whole", okSSE, "data: {" + usage(8, 3), metered{}},
		{"C52 one LF", okSSE, "data: {\"k\":0}\ndata: {" + usage(4, 6) + "}\n\n", metered{Usage: used(4, 0, 6), Trust: WholeUsage}},
		{"C52 after a cut line", okSSE, "data: {\"k\":\"abc\ndata: {" + usage(4, 6) + "}\n\n", metered{Usage: used(4, 0, 6), Trust: WholeUsage}},
		{"C52 after a cut object", okSSE, "data: {\"k\":0\ndata:  {" + usage(4, 6) + "}\n\n", metered{Usage: used(4, 0, 6), Trust: WholeUsage}},
		{"C52 after garbage", okSSE, "data: garbage\ndata: {" + usage(4, 6) + "}\n\n", metered{Usage: used(4, 0, 6), Trust: WholeUsage}},
		{"lines of one document", okSSE, "data: {\ndata: \"usage\":{\"prompt_tokens\":4,\ndata: \"completion_tokens\":6}\ndata: }\n\n",
			metered{Usage: used(4, 0, 6), Trust: WholeUsage}},
		{"C53 BOM", okSSE, "\xef\xbb\xbfdata: {" + usage(8, 3) + "}\n\n", metered{Usage: used(8, 0, 3), Trust: WholeUsage}},
		{"C53 two BOMs", okSSE, "\xef\xbb\xbf\xef\xbb\xbfdata: {" + usage(8, 3) + "}\n\n", metered{}},
		{"C55 SSE as text", ResponseHead{Status: 200, ContentType: "text/plain"}, frames(`{` + usage(8, 3) + `}`),
			metered{Usage: used(8, 0, 3), Trust: WholeUsage}},
		{"C55 SSE as JSON", okJSON, ": hi\n\n" + frames(delta("a"), `{`+usage(8, 3)+`}`),
			metered{Usage: used(8, 0, 3), Trust: WholeUsage, Produced: true, Texts: []string{"a"}}},
		{"C55 nothing said", ResponseHead{Status: 200}, "event: message\n" + frames(`{`+usage(8, 3)+`}`),
			metered{Usage: used(8, 0, 3), Trust: WholeUsage}},
		{"C56 JSON as SSE", okSSE, `{"choices":[{"message":{"role":"assistant","content":"hey"},"finish_reason":"stop"}],` + usage(5, 1) + `}`,
			metered{Usage: used(5, 0, 1), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"hey"}}},
		{"C56 error first", okSSE, frames(`{"error":{"message":"overloaded"}}`), metered{Failed: true}},
		{"C56 error event", okSSE, "event: error\n" + frames(`{"message":"overloaded"}`), metered{Failed: true}},
		{"an error after output", okSSE, frames(delta("a"), `{"error":{"message":"overloaded"}}`),
			metered{Produced: true, Texts: []string{"a"}}},
		{"error null", okSSE, frames(`{"error":null,`+usage(5, 1)+`}`, done), metered{Usage: used(5, 0, 1), Trust: WholeUsage, Finished: true}},
		{"C128 Groq", okSSE, frames(`{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":21,"completion_tokens":6,"total_time":0.051}}}`),
			metered{Usage: used(21, 0, 6), Trust: WholeUsage, Finished: true}},

		{"JSON, usage first", okJSON, `{` + usage(5, 9) + `,"choices":[{"message":{"content":"a\"b"}}]}`,
			metered{Usage: used(5, 0, 9), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{`a"b`}}},
		{"JSON, cut behind the usage", okJSON, ` {"choices":[{"message":{"content":"ab"}}],` + usage(5, 9),
			metered{Usage: used(5, 0, 9), Trust: WholeUsage, Produced: true, Texts: []string{"ab"}}},
		{"JSON, cut in the usage", okJSON, `{"choices":[{"message":{"content":"ab"}}],"usage":{"prompt_tokens":5`,
			metered{Produced: true, Texts: []string{"ab"}}},
		{"JSON with a BOM", okJSON, "\xef\xbb\xbf{" + usage(5, 9) + "}", metered{Usage: used(5, 0, 9), Trust: WholeUsage, Finished: true}},
		{"JSON lines", ResponseHead{Status: 200, ContentType: "application/x-ndjson"}, delta("a") + "\n" + delta("b") + "\n{" + usage(5, 9) + "}\n",
			metered{Usage: used(5, 0, 9), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"ab"}}},
		{"bad UTF-8 in an answer", okJSON, "{\"choices\":[{\"message\":{\"content\":\"a\"}}],\"x\":\"\xff\n\"," + usage(5, 9) + "}",
			metered{Usage: used(5, 0, 9), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"a"}}},
		{"an error status", ResponseHead{Status: 429, ContentType: "application/json"}, `{"error":{"message":"slow down"}}`,
			metered{Failed: true, Finished: true}},
		{"C82 an error with usage", ResponseHead{Status: 502}, `{"error":{},` + usage(5, 2) + `}`,
			metered{Usage: used(5, 0, 2), Trust: WholeUsage, Failed: true, Finished: true}},
		{"a 200 that is an error", okJSON, `{"error":{"message":"no"}}`, metered{Failed: true, Finished: true}},
		{"an error page", ResponseHead{Status: 502, ContentType: "text/html"}, "<html>Bad gateway</html>", metered{Failed: true, Opaque: true}},
		{"a picture", ResponseHead{Status: 200, ContentType: "image/png"}, "\x89PNG....", metered{Opaque: true}},
		{"not JSON", okJSON, `{"a":}`, metered{Opaque: true}},
		{"nothing", okJSON, "", metered{}},
		{"no content", ResponseHead{Status: 204}, "", metered{}},
		{"a redirect", ResponseHead{Status: 307}, "", metered{Failed: true}},
		{"gzip", ResponseHead{Status: 200, ContentType: "application/json", ContentEncoding: "gzip"}, "\x1f\x8b....", metered{Opaque: true}},
		{"identity", ResponseHead{Status: 200, ContentEncoding: "identity"}, `{` + usage(1, 1) + `}`,
			metered{Usage: used(1, 0, 1), Trust: WholeUsage, Finished: true}},

		{"output of every kind", okSSE, frames(
			`{"choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"hm","reasoning":"hm"}}]}`,
			`{"choices":[{"index":0,"delta":{"reasoning":"m"}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"on"}},{"index":1,"delta":{"content":"two"}}]}`,
			`{"choices":[{"index":1,"delta":{"content":"!"}}]}`,
			`{"choices":[{"index":0,"delta":{"refusal":"no","tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"a\""}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"x"}]},{"type":"text","text":"y"}]}}]}`,
			`{"choices":[{"index":0,"text":"old"}]}`, done),
			metered{Produced: true, Finished: true, Texts: []string{"hmm", "on", "two!", "no", "f", `{"a":1}`, "xy", "old"}}},

		{"absurd: negative", okSSE, frames(`{` + usage(5, -2) + `}`), metered{}},
		{"absurd: above 2^40", okSSE, frames(`{` + usage(5, 1<<40+1) + `}`), metered{}},
		{"absurd: fraction", okSSE, frames(`{"usage":{"prompt_tokens":5.5,"completion_tokens":1}}`), metered{}},
		{"absurd: words", okSSE, frames(`{"usage":{"prompt_tokens":"5","completion_tokens":1}}`, `{"usage":"none"}`, `{"usage":[1]}`, `{"usage":{}}`), metered{}},
		{"absurd, then right", okSSE, frames(`{`+usage(5, -2)+`}`, `{`+usage(5, 2)+`}`), metered{Usage: used(5, 0, 2), Trust: WholeUsage}},
		{"more cached than read", okSSE, frames(`{"usage":{"prompt_tokens":5,"completion_tokens":1,"cached_tokens":9}}`),
			metered{Usage: used(5, 5, 1), Trust: WholeUsage}},
		{"whole, spelled oddly", okSSE, frames(`{"usage":{"prompt_tokens":5.0e1,"completion_tokens":null}}`), metered{Usage: used(50, 0, 0), Trust: WholeUsage}},
		{"a record beyond the cap", okSSE, frames(`{"usage":{"x":"` + strings.Repeat("x", maxUsageRecord) + `","prompt_tokens":5,"completion_tokens":1}}`), metered{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := meterWhole(c.head, c.body); !reflect.DeepEqual(got, c.want) {
				t.Fatalf("\n got %+v\nwant %+v", got, c.want)
			}
			if len(c.body) < 4096 {
				sameForEverySplit(t, c.body, c.want, func(w func(func([]byte))) metered { return meter(c.head, w) })
			}
		})
	}
}

func TestChatMeterSpeaksWhileItReads(t *testing.T) {
	m := OpenAIChat.NewMeter(okSSE, nil)
	m.Write([]byte("data: {" + usage(7, 3) + "}\r\n\r"))
	if u, trust := m.Usage(); trust != WholeUsage || u != used(7, 0, 3) {
		t.Fatal(u, trust)
	}
	m.Write([]byte("\ndata: [DONE]\r\n"))
	if !m.Finished() {
		t.Fatal("not finished after [DONE]")
	}
	m.Close()
	m.Write([]byte(frames(`{` + usage(70, 3) + `}`)))
	if u, _ := m.Usage(); u != used(7, 0, 3) {
		t.Fatal("read on after Close:", u)
	}
}

func TestChatMeterHoldsNothing(t *testing.T) {
	chunk := []byte(frames(delta("word")))
	long := bytes.Repeat([]byte("x"), 64<<10)
	m := OpenAIChat.NewMeter(okSSE, discard{})
	m.Write(chunk)
	if n := testing.AllocsPerRun(100, func() { m.Write(chunk) }); n != 0 {
		t.Errorf("%v allocations for a frame", n)
	}
	m.Write([]byte(`data: {"x":"`))
	if n := testing.AllocsPerRun(100, func() { m.Write(long) }); n != 0 {
		t.Errorf("%v allocations for a part of a frame", n)
	}
	deep := bytes.Repeat([]byte(`{"a":[`), 50000)
	for _, head := range []string{"", "data: "} {
		m := OpenAIChat.NewMeter(okSSE, nil).(*answerMeter)
		m.Write([]byte(head))
		m.Write(deep)
		m.Close()
		if cap(m.json.stack) > 512 || cap(m.json.held) > 2*maxHeld {
			t.Errorf("%d frames, %d bytes held", cap(m.json.stack), cap(m.json.held))
		}
	}
}

type discard struct{}

func (discard) Text(Part, []byte, bool) {}
func (discard) End(Item)                {}

// referenceUsage is the dumb model of a stream of well-formed events, one line each.
func referenceUsage(docs []string) (u Usage, seen bool) {
	for _, d := range docs {
		var v struct {
			Usage *struct {
				Prompt     *int64 `json:"prompt_tokens"`
				Completion *int64 `json:"completion_tokens"`
			} `json:"usage"`
		}
		if json.Unmarshal([]byte(d), &v) != nil || v.Usage == nil {
			continue
		}
		if p := v.Usage.Prompt; p != nil && bucket.Tokens(*p) > u.Input {
			u.Input, seen = bucket.Tokens(*p), true
		}
		if c := v.Usage.Completion; c != nil && bucket.Tokens(*c) > u.Output {
			u.Output, seen = bucket.Tokens(*c), true
		}
	}
	return u, seen
}

func TestChatMeterAgreesWithTheReference(t *testing.T) {
	for seed := range 200 {
		var docs []string
		for i := range 5 {
			docs = append(docs, `{"k":`+strconv.Itoa(i)+`,`+usage((seed*7+i*3)%11, (seed*5+i*i)%13)+`}`)
		}
		want, seen := referenceUsage(docs)
		got := meterWhole(okSSE, frames(docs...))
		if got.Usage != want || got.Trust == WholeUsage != seen {
			t.Fatalf("%q: got %+v, want %+v %v", docs, got, want, seen)
		}
	}
}

func FuzzChatMeter(f *testing.F) {
	f.Add([]byte(frames(delta("a"), `{`+usage(5, 2)+`}`, done)), uint16(7), true)
	f.Add([]byte(`{"choices":[{"message":{"content":"a"}}],`+usage(5, 2)+`}`), uint16(3), false)
	f.Add([]byte("\xef\xbb\xbfdata: {\"k\":0}\r\ndata: {"+usage(4, 6)+"}\r\n\r\nevent: error\rdata: [1"), uint16(2), true)
	f.Fuzz(func(t *testing.T, body []byte, cut uint16, stream bool) {
		head := okJSON
		if stream {
			head = okSSE
		}
		n := int(cut) % (len(body) + 1)
		whole := meter(head, func(w func([]byte)) { w(body) })
		split := meter(head, func(w func([]byte)) { w(bytes.Clone(body[:n])); w(bytes.Clone(body[n:])) })
		if !reflect.DeepEqual(whole, split) {
			t.Fatalf("cut at %d:\n%+v\n%+v", n, whole, split)
		}
		if u := whole.Usage; u.Input < 0 || u.Output < 0 || u.CachedInput < 0 || u.CachedInput > u.Input {
			t.Fatalf("%+v", u)
		}
	})
}

func BenchmarkChatMeter(b *testing.B) {
	frame := []byte(frames(`{"id":"chatcmpl-9","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"usage":null}`))
	m := OpenAIChat.NewMeter(okSSE, discard{})
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		m.Write(frame)
	}
}
