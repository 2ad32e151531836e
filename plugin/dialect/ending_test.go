package dialect

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

const endMarkText = "00112233445566778899aabbccddeeff"

var endUsage = End{Usage: Usage{Input: 5, CachedInput: 2, Output: 7, Reasoning: 3}, Mark: endMarkText}

// running is a stream of an API: its events in order, of which the first ones begin nothing, and of
// which the last of all is its own end.
type running struct {
	name   string
	d      Dialect
	head   ResponseHead
	events []string
	early  int // events after which nothing can be ended yet
	late   int // events at the end after which nothing need be
	end    End
	read   func(stream string) error
}

// separately writes each document as one event.
func separately(f func(...string) string, docs ...string) (all []string) {
	for _, d := range docs {
		all = append(all, f(d))
	}
	return all
}

func sseReader(read func([]sentAs) error) func(string) error {
	return func(stream string) error {
		all, _, err := readSSE(stream)
		if err != nil {
			return err
		}
		return read(all)
	}
}

func runningStreams() []running {
	chunk := func(choices, more string) string {
		return `{"id":"chatcmpl-\u0031","object":"chat.completion.chunk","created":1766000000,"model":"gpt-5","choices":[` + choices + `]` + more + `}`
	}
	chat := func(usage bool) []string {
		more := ""
		if usage {
			more = `,"usage":null`
		}
		all := separately(frames,
			`{"id":"","object":"chat.completion.chunk","created":0,"model":"","choices":[],"prompt_filter_results":[]`+more+`}`,
			chunk(`{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}`, more),
			chunk(`{"index":0,"delta":{"content":"{\"a\": \"\n"},"finish_reason":null}`, more),
			chunk(`{"finish_reason":null,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{\"a"}}]},"index":1}`, more),
			chunk(`{"index":0,"delta":{},"finish_reason":"stop"}`, more),
			chunk(`{"index":1,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\":1}"}}]},"finish_reason":null}`, more),
			chunk(`{"index":1,"delta":{},"finish_reason":"tool_calls"}`, more))
		if usage {
			all = append(all, frames(chunk("", `,"usage":{"prompt_tokens":5,"completion_tokens":9,"total_tokens":14}`)))
		}
		return append(all, frames("[DONE]"))
	}
	report := endUsage
	report.Report = true
	text := func(choices string) string {
		return `{"id":"cmpl-1","object":"text_completion","created":1766000000,"model":"gpt-5","choices":[` + choices + `]}`
	}
	claude := []string{
		`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"claude","stop_reason":null,"usage":{"input_tokens":3,"cache_read_input_tokens":2,"output_tokens":1}}}`,
		clPing, clBegins, clSays("he\\n\\n"), clSays("y"), clStops,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}`,
		clDelta(1, `"type":"input_json_delta","partial_json":"{\"a\": [1"`), `{"type":"content_block_stop","index":1}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":3,"cache_read_input_tokens":2,"output_tokens":9}}`, clEnds,
	}
	n := -1
	resp := func(name, rest string) string {
		n++
		return event(name, fmt.Sprintf(`,"sequence_number":%d`, n)+rest)
	}
	response := func(status string) string {
		return `,"response":{"id":"resp_1","created_at":1766000000,"model":"gpt-5","status":"` + status + `","error":null,"output":[]}`
	}
	responses := []string{
		resp("response.created", response("in_progress")), resp("response.in_progress", response("in_progress")),
		resp("response.output_item.added", `,"output_index":0,"item":{"id":"m_1","type":"message","content":[]}`),
		resp("response.content_part.added", `,"output_index":0,"content_index":0,"item_id":"m_1","part":{"type":"output_text","text":""}`),
		resp("response.output_text.delta", `,"output_index":0,"content_index":0,"item_id":"m_1","delta":"hey"`),
		resp("response.output_text.done", `,"output_index":0,"content_index":0,"item_id":"m_1","text":"hey"`),
		resp("response.completed", response("completed")),
	}
	piece := func(text, more string) string {
		return `{"candidates":[{"content":{"parts":[{"text":"` + text + `"}],"role":"model"}` + more + `}],"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5},"modelVersion":"gemini-3","responseId":"r-1"}`
	}
	gemini := []string{piece("a", `,"index":0`), piece("b]}", ``), piece("c", `,"index":1`), piece("d", `,"finishReason":"STOP"`), piece("e", `,"index":1,"finishReason":"STOP"`)}
	inner := []string{}
	array := []string{}
	for i, d := range gemini {
		inner = append(inner, `{"response":`+d+`}`)
		array = append(array, []string{"[", ",\r\n"}[min(i, 1)]+d)
	}
	array = append(array, "\n]")
	cohere := events(`{"type":"message-start","id":"c","delta":{"message":{"role":"assistant","content":[]}}}`) + "|" +
		strings.Join(separately(events,
			`{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`,
			`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"hey"}}}}`, `{"type":"content-end","index":0}`,
			`{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"t","type":"function","function":{"name":"f","arguments":""}}}}}`,
			`{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{\"a"}}}}}`, `{"type":"tool-call-end","index":0}`,
			`{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":5,"output_tokens":2}}}}`), "|")
	ollama := func(text string) []string {
		line := func(text, more string) string {
			return `{"model":"llama3.2:1b","created_at":"2026-11-01T00:00:00Z",` + text + `,"done":` + more + "}\n"
		}
		return []string{line(text, "false"), line(text, "false"), line(text, `true,"done_reason":"stop","prompt_eval_count":5,"eval_count":9`)}
	}
	isDone := func(d object) bool {
		return d["done"] == true && d["done_reason"] != "" && whole(d, "prompt_eval_count") == 5
	}
	lines := func(ends func(object) bool) func(string) error {
		return func(stream string) error {
			all, err := readLines(stream)
			if err != nil {
				return err
			}
			return lastOnly(all, ends)
		}
	}
	wrapped := func(read func([]sentAs) error) func(string) error {
		return func(stream string) error {
			all, err := readFrames(stream, true)
			if err != nil {
				return err
			}
			return read(all)
		}
	}
	family := func(name string, ends func(object) bool, docs ...string) running {
		return running{"invoke, " + name, bedrockInvoke{}, okFrames, separately(chunks, docs...), 0, 1, endUsage,
			wrapped(func(all []sentAs) error { return lastOnly(all, ends) })}
	}
	has := func(want any, path ...any) func(object) bool {
		return func(d object) bool { return pick(d, path...) != nil && (want == nil || pick(d, path...) == want) }
	}
	crlf := chat(false)
	for i, e := range crlf {
		crlf[i] = strings.ReplaceAll(e, "\n", "\r\n")
	}
	comments := append([]string{": a gateway works\n\n"}, chat(false)...)
	return []running{
		{"chat", OpenAIChat, okSSE, chat(false), 0, 1, endUsage, sseReader(func(all []sentAs) error { return chatReader(all, false, "chat.completion.chunk") })},
		{"chat with usage", OpenAIChat, okSSE, chat(true), 0, 1, report, sseReader(func(all []sentAs) error { return chatReader(all, true, "chat.completion.chunk") })},
		{"chat, CRLF", OpenAIChat, okSSE, crlf, 0, 1, endUsage, sseReader(func(all []sentAs) error { return chatReader(all, false, "chat.completion.chunk") })},
		{"chat, comments", OpenAIChat, okSSE, comments, 1, 1, endUsage, sseReader(func(all []sentAs) error { return chatReader(all, false, "chat.completion.chunk") })},
		{"completions", openAICompletions{}, okSSE, separately(frames, text(`{"text":"a","index":0,"finish_reason":null}`), text(`{"text":"a","index":1,"finish_reason":null}`),
			text(`{"text":"","index":0,"finish_reason":"stop"}`), text(`{"text":"","index":1,"finish_reason":"stop"}`), "[DONE]"), 0, 1, endUsage,
			sseReader(func(all []sentAs) error { return chatReader(all, false, "text_completion") })},
		{"claude", anthropicMessages{}, okSSE, separately(events, claude...), 0, 1, endUsage, sseReader(func(all []sentAs) error { return claudeReader(all, true) })},
		{"responses", openAIResponses{}, okSSE, responses, 0, 1, endUsage, sseReader(responsesReader)},
		{"gemini", gemini0(), okSSE, separately(frames, gemini...), 0, 1, endUsage, sseReader(func(all []sentAs) error { return geminiReader(all, false) })},
		{"gemini, within", gemini0(), okSSE, separately(frames, inner...), 0, 1, endUsage, sseReader(func(all []sentAs) error { return geminiReader(all, true) })},
		{"gemini, array", gemini0(), okJSON, array, 0, 2, endUsage, func(stream string) error {
			all, err := readArray(stream)
			if err != nil {
				return err
			}
			return geminiReader(all, false)
		}},
		{"cohere", cohereChat{}, okSSE, strings.Split(cohere, "|"), 0, 1, endUsage, sseReader(cohereReader)},
		{"cohere v1", cohereChat{}, okNDJSON, []string{`{"is_finished":false,"event_type":"stream-start"}` + "\n", `{"is_finished":false,"event_type":"text-generation","text":"a"}` + "\n",
			`{"is_finished":true,"event_type":"stream-end","finish_reason":"COMPLETE","response":{"text":"a"}}` + "\n"}, 0, 1, endUsage, lines(has("stream-end", "event_type"))},
		{"ollama chat", ollamaChat{}, okNDJSON, ollama(`"message":{"role":"assistant","content":"a\\n"}`), 0, 1, endUsage, lines(isDone)},
		{"ollama generate", ollamaGenerate{}, okNDJSON, ollama(`"response":"a"`), 0, 1, endUsage, lines(func(d object) bool { return isDone(d) && d["response"] != nil })},
		{"converse", bedrockConverse{}, okFrames, []string{awsEvent("messageStart", `{"role":"assistant"}`), converseText("a"), converseText("b"), awsEvent("contentBlockStop", `{"contentBlockIndex":0}`),
			awsEvent("contentBlockStart", `{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"t","name":"f"}}}`), awsEvent("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"toolUse":{"input":"{\"a"}}}`),
			awsEvent("contentBlockStop", `{"contentBlockIndex":1}`), awsEvent("messageStop", `{"stopReason":"end_turn"}`),
			awsEvent("metadata", `{"metrics":{"latencyMs":500},"usage":{"inputTokens":3,"cacheReadInputTokens":2,"outputTokens":9,"totalTokens":14}}`)}, 0, 1, endUsage, func(stream string) error {
			all, err := readFrames(stream, false)
			if err != nil {
				return err
			}
			return converseReader(all)
		}},
		{"invoke, claude", bedrockInvoke{}, okFrames, separately(chunks, claude...), 0, 1, endUsage, wrapped(func(all []sentAs) error { return claudeReader(all, false) })},
		family("nova", has(nil, "metadata", "usage"), `{"messageStart":{"role":"assistant"}}`, `{"contentBlockDelta":{"delta":{"text":"a"},"contentBlockIndex":0}}`,
			`{"contentBlockStop":{"contentBlockIndex":0}}`, `{"messageStop":{"stopReason":"end_turn"}}`, `{"metadata":{"usage":{"inputTokens":3,"outputTokens":9}}}`),
		family("llama", has(nil, "stop_reason"), `{"generation":"a","prompt_token_count":5,"generation_token_count":1,"stop_reason":null}`, `{"generation":"","generation_token_count":2,"stop_reason":"stop"}`),
		family("titan", has(nil, "completionReason"), `{"outputText":"a","index":0,"totalOutputTextTokenCount":null,"completionReason":null,"inputTextTokenCount":5}`,
			`{"outputText":"b","index":0,"totalOutputTextTokenCount":9,"completionReason":"FINISH"}`),
		family("mistral", has(nil, "outputs", 0, "stop_reason"), `{"outputs":[{"text":"a","stop_reason":null}]}`, `{"outputs":[{"text":"","stop_reason":"stop"}]}`),
		family("cohere", has(true, "is_finished"), `{"text":"a","is_finished":false}`, `{"is_finished":true,"finish_reason":"COMPLETE"}`),
		family("openai", has(nil, "choices", 0, "finish_reason"), `{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`),
	}
}

func gemini0() Dialect {
	d, _ := Recognise("POST", "/v1beta/models/gemini-3:streamGenerateContent")
	return d
}

// ended is what the client was given: the whole events of the stream up to the cut, and the ending.
func ended(t *testing.T, s running, body string, pieces []string) (given string, end []byte, ok bool) {
	t.Helper()
	m := s.d.NewMeter(s.head, nil)
	e := m.(Ender)
	n := 0
	for _, p := range pieces {
		m.Write([]byte(p))
		n += len(p)
	}
	if len(pieces) == 0 {
		return "", nil, false
	}
	w, ok := e.Whole()
	if !ok {
		return "", nil, false
	}
	end, ok = e.Ending(s.end)
	return body[:n-len(pieces[len(pieces)-1])+w], end, ok
}

// TestEveryCutEndsWell cuts each stream behind every byte.
func TestEveryCutEndsWell(t *testing.T) {
	for _, s := range runningStreams() {
		t.Run(s.name, func(t *testing.T) {
			body, borders := "", []int{0}
			for _, e := range s.events {
				body += e
				borders = append(borders, len(body))
			}
			if err := s.read(body); err != nil {
				t.Fatalf("the stream itself: %v", err)
			}
			first, lastEnd := borders[s.early+1], borders[len(s.events)-s.late]
			for n := 1; n <= len(body); n++ {
				given, end, ok := ended(t, s, body, []string{body[:n]})
				if !slices.Contains(borders, len(given)) && s.name != "gemini, array" && !strings.Contains(s.name, "comments") && !strings.HasPrefix(given, "{") && !strings.Contains(s.name, "CRLF") {
					t.Fatalf("cut at %d: %d bytes were given, which are no whole events", n, len(given))
				}
				if want := n >= first && n < len(body); ok != want && len(given) >= first && len(given) <= lastEnd {
					t.Fatalf("cut at %d of %d: ended %v", n, len(body), ok)
				}
				if len(given) == len(body) && ok {
					t.Fatalf("a stream that is over is ended once more: %q", end)
				}
				if !ok {
					continue
				}
				if err := s.read(given + string(end)); err != nil {
					t.Fatalf("cut at %d, %q ended with\n%s\n%v", n, given, end, err)
				}
				if strings.Count(string(end), endMarkText) != 1 && !strings.Contains(s.name, "invoke") {
					t.Fatalf("the mark is not in %q", end)
				}
				// The same at other splits, if the cut is possible there.
				for _, at := range []int{n - 1, n / 2, len(given), max(len(given)-1, 0), min(len(given)+1, n)} {
					g2, e2, ok := ended(t, s, body, []string{body[:at], body[at:n]})
					if ok && (g2 != given || !bytes.Equal(e2, end)) {
						t.Fatalf("cut at %d, split at %d: %d bytes and %q, not %d and %q", n, at, len(g2), e2, len(given), end)
					}
					if !ok && at <= len(given) {
						t.Fatalf("cut at %d, split at %d: no ending, with one at %d", n, at, len(given))
					}
				}
			}
			// Every event border is one where the stream can be cut, once it has begun.
			for i := s.early + 1; i <= len(s.events)-s.late; i++ {
				given, _, ok := ended(t, s, body, strings.SplitAfter(body[:borders[i]], ""))
				if !ok && s.name != "gemini, array" || ok && given != body[:borders[i]] {
					t.Errorf("event %d: not ended byte by byte", i)
				}
			}
		})
	}
}

func TestNoEnding(t *testing.T) {
	chunk := delta("a")
	for _, c := range []struct {
		name string
		d    Dialect
		head ResponseHead
		body string
	}{
		{"nothing", OpenAIChat, okSSE, ""},
		{"a whole answer", OpenAIChat, okJSON, `{"choices":[{"index":0,"message":{"content":"a"}`},
		{"a whole answer that is there", OpenAIChat, okJSON, `{"choices":[{"index":0,"message":{"content":"a"}}]}`},
		{"an unread coding", OpenAIChat, ResponseHead{Status: 200, ContentType: "text/event-stream", ContentEncoding: "br"}, frames(chunk)},
		{"an error in band", OpenAIChat, okSSE, frames(chunk, `{"error":{"message":"no"}}`)},
		{"an error by its name", anthropicMessages{}, okSSE, events(clOpens(`"input_tokens":3`), clBegins, clFails)},
		{"no message_start", anthropicMessages{}, okSSE, events(clPing)},
		{"no response.created", openAIResponses{}, okSSE, event("response.in_progress", `,"response":{"id":"r"}`)},
		{"an id that is too long", openAIResponses{}, okSSE, event("response.created", `,"response":{"id":"`+strings.Repeat("i", maxWords+1)+`"}`)},
		{"more choices than are counted", OpenAIChat, okSSE, frames(chunk, `{"choices":[{"index":64,"delta":{}}]}`)},
		{"a choice below the first", OpenAIChat, okSSE, frames(chunk, `{"choices":[{"index":-1,"delta":{}}]}`)},
		{"more blocks than are counted", anthropicMessages{}, okSSE, events(clOpens(""), strings.Replace(clBegins, "0", "1", 1), strings.Replace(clBegins, "0", "2", 1), strings.Replace(clBegins, "0", "3", 1), strings.Replace(clBegins, "0", "4", 1), clBegins)},
		{"an exception", bedrockConverse{}, okFrames, converseText("a") + awsException("throttlingException")},
		{"a broken message", bedrockConverse{}, okFrames, converseText("a") + spoiled(converseText("b"))},
		{"a whole answer of Ollama's", ollamaChat{}, okJSON, ollamaLast(`"prompt_eval_count":5`)},
		{"a blocked prompt", gemini0(), okSSE, frames(`{"promptFeedback":{"blockReason":"SAFETY"}}`)},
		{"an array that is closed", gemini0(), okJSON, `[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}]`},
		{"a drawing", openAIImages{}, okSSE, event("image_generation.partial_image", `,"b64_json":"x"`)},
	} {
		m := c.d.NewMeter(c.head, nil)
		m.Write([]byte(c.body))
		if e, ok := m.(Ender); ok {
			if body, ok := e.Ending(endUsage); ok {
				t.Errorf("%s: %q", c.name, body)
			}
		}
	}
}

// What a frame that is not whole says is not taken for said.
func TestAPartOfAnEventIsNotCounted(t *testing.T) {
	whole := events(clOpens(`"input_tokens":3`))
	for _, part := range []string{"event: content_block_start\ndata: " + clBegins + "\n", "event: message_stop\ndata: " + clEnds, "event: error\ndata: " + clFails + "\n"} {
		m := anthropicMessages{}.NewMeter(okSSE, nil)
		m.Write([]byte(whole))
		m.Write([]byte(part))
		n, ok := m.(Ender).Whole()
		body, ended := m.(Ender).Ending(End{})
		if n != 0 || !ok || !ended || strings.Contains(string(body), "content_block_stop") {
			t.Errorf("%q: %d %v, %q", part, n, ok, body)
		}
		m.Write([]byte("x"))
		if _, ok := m.(Ender).Whole(); ok {
			t.Errorf("%q: it may be cut where the client has a part of it", part)
		}
	}
}

// The words of a stream are said again as they were, and only if they are words.
func TestWordsOfAStream(t *testing.T) {
	for _, c := range []struct{ chunk, want string }{
		{`{"id":"a\"b","model":"m\u00e9","created":7,"choices":[]}`, `{"id":"a\"b","object":"chat.completion.chunk","created":7,"model":"m\u00e9",`},
		{`{"id":null,"model":7,"created":"x","choices":[]}`, `{"id":"","object":"chat.completion.chunk","created":0,"model":"",`},
		{"{\"id\":\"a\xff\",\"model\":\"m\x01\",\"choices\":[]}", `{"id":"","object":"chat.completion.chunk","created":0,"model":"",`},
	} {
		m := OpenAIChat.NewMeter(okSSE, nil)
		m.Write([]byte(frames(c.chunk)))
		if body, ok := m.(Ender).Ending(End{}); !ok || !strings.HasPrefix(string(body), "data: "+c.want) {
			t.Errorf("%q: %q", c.chunk, body)
		}
	}
}

// What is kept for an ending is bounded.
func TestEndingsAreSmall(t *testing.T) {
	if n := unsafe.Sizeof(standing{}); n > 192 {
		t.Errorf("%d bytes for each stream", n)
	}
	m := OpenAIChat.NewMeter(okSSE, nil).(*answerMeter)
	for i := range 100 {
		long := strings.Repeat("x", 3+i*i)
		m.Write([]byte(frames(`{"id":"` + long + `","model":"` + long + `","created":` + strings.Repeat("7", 1+i) + `,"choices":[]}`)))
	}
	n := 0
	for _, w := range m.at.words {
		n += len(w)
	}
	if n > maxWords || m.at.words[0] != "xxx" {
		t.Errorf("%d bytes of words: %q", n, m.at.words)
	}
}

func FuzzEnding(f *testing.F) {
	all := runningStreams()
	for i, s := range all {
		body := strings.Join(s.events, "")
		f.Add(uint8(i), []byte(body), uint16(len(body)/2), uint16(len(body)/3))
	}
	f.Add(uint8(2), []byte(" {0"), uint16(3), uint16(1))
	f.Fuzz(func(t *testing.T, which uint8, body []byte, a, b uint16) {
		s := all[int(which)%len(all)]
		n := int(a) % (len(body) + 1)
		k := int(b) % (n + 1)
		one, two := s.d.NewMeter(s.head, nil), s.d.NewMeter(s.head, nil)
		one.Write(body[:n])
		two.Write(body[:k])
		two.Write(body[k:n])
		w1, ok1 := one.(Ender).Whole()
		w2, ok2 := two.(Ender).Whole()
		if n > 0 && ok2 && ok1 && k < n && w2+k != w1 || w1 > n || w2 > n-k {
			t.Fatalf("%d, and behind %d %d", w1, k, w2)
		}
		e1, ended1 := one.(Ender).Ending(s.end)
		e2, ended2 := two.(Ender).Ending(s.end)
		if ended1 != ended2 || !bytes.Equal(e1, e2) {
			t.Fatalf("%v %q, split %v %q", ended1, e1, ended2, e2)
		}
		if ended1 && len(e1) > 64<<10 {
			t.Fatalf("%d bytes", len(e1))
		}
	})
}
