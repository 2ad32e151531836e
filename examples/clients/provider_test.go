package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// provider answers as the providers' documentation says, with few words. Every answer took 12 tokens
// and made 3, unless the prompt has the word "spend": then 1000.
type provider struct {
	addr  string
	calls atomic.Int64
}

func startProvider(t *testing.T) *provider {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{addr: l.Addr().String()}
	server := &http.Server{Handler: p}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return p
}

// asked is what the provider reads of a request: the same few fields in every API.
type asked struct {
	Stream         bool            `json:"stream"`
	StreamOptions  json.RawMessage `json:"stream_options"`
	Tools          json.RawMessage `json:"tools"`
	ResponseFormat json.RawMessage `json:"response_format"`
	Text           json.RawMessage `json:"text"`
	Input          json.RawMessage `json:"input"`
	Texts          []string        `json:"texts"`
	Documents      []any           `json:"documents"`
	Encoding       string          `json:"encoding_format"`
	Config         struct {
		MIME string `json:"responseMimeType"`
	} `json:"generationConfig"`
	Requests []any `json:"requests"`
	out      int
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.calls.Add(1)
	body, _ := io.ReadAll(r.Body)
	var a asked
	if err := json.Unmarshal(body, &a); err != nil {
		http.Error(w, `{"error":{"message":"not JSON"}}`, 400)
		return
	}
	a.out = 3
	if strings.Contains(string(body), "spend") {
		a.out = 1000
	}
	for _, api := range []struct {
		tail   string
		answer func(w http.ResponseWriter, a asked)
	}{
		{"/chat/completions", chat}, {"/responses", responses}, {"/embeddings", embeddings}, {"/messages", messages},
		{"/v2/chat", cohereChat}, {"/v2/embed", cohereEmbed}, {"/v2/rerank", cohereRerank},
		{":generateContent", generate}, {":streamGenerateContent", generateStream}, {":batchEmbedContents", geminiEmbed}, {":embedContent", geminiEmbed},
	} {
		if strings.HasSuffix(r.URL.Path, api.tail) {
			api.answer(w, a)
			return
		}
	}
	http.Error(w, `{"error":{"message":"no such path"}}`, 404)
}

const (
	city  = `{\"city\":\"Paris\"}`
	json1 = "application/json"
)

func reply(w http.ResponseWriter, format string, args ...any) {
	w.Header().Set("content-type", json1)
	fmt.Fprintf(w, format, args...)
}

// stream writes events, each with its name where it has one ("name\ndata"), and lets each go at once.
func stream(w http.ResponseWriter, events ...string) {
	w.Header().Set("content-type", "text/event-stream")
	for _, e := range events {
		if name, data, ok := strings.Cut(e, "\n"); ok {
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
		} else {
			fmt.Fprintf(w, "data: %s\n\n", e)
		}
		w.(http.Flusher).Flush()
	}
}

func chat(w http.ResponseWriter, a asked) {
	usage := fmt.Sprintf(`{"prompt_tokens":12,"completion_tokens":%d,"total_tokens":%d}`, a.out, 12+a.out)
	if a.Stream {
		chunk := func(delta, finish string) string {
			return `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
		}
		events := []string{chunk(`{"role":"assistant","content":""}`, "null"), chunk(`{"content":"Hello"}`, "null"), chunk(`{"content":" there."}`, "null"), chunk("{}", `"stop"`)}
		if strings.Contains(string(a.StreamOptions), `true`) {
			events = append(events, `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":`+usage+`}`)
		}
		stream(w, append(events, "[DONE]")...)
		return
	}
	message, finish := `{"role":"assistant","content":"Hello there.","refusal":null}`, "stop"
	switch {
	case a.ResponseFormat != nil:
		message = `{"role":"assistant","content":"` + city + `","refusal":null}`
	case a.Tools != nil:
		message = `{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"look_up","arguments":"` + city + `"}}]}`
		finish = "tool_calls"
	}
	reply(w, `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":%s,"logprobs":null,"finish_reason":%q}],"usage":%s}`, message, finish, usage)
}

func responses(w http.ResponseWriter, a asked) {
	usage := fmt.Sprintf(`{"input_tokens":12,"input_tokens_details":{"cached_tokens":0},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}`, a.out, 12+a.out)
	text := func(s string) string {
		return `{"id":"msg1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"` + s + `","annotations":[]}]}`
	}
	whole := func(status, output, usage string) string {
		return `{"id":"r1","object":"response","created_at":1,"status":"` + status + `","error":null,"incomplete_details":null,"instructions":null,"metadata":{},"model":"m","output":[` + output + `],"parallel_tool_calls":true,"temperature":1,"tool_choice":"auto","tools":[],"top_p":1,"usage":` + usage + `}`
	}
	if a.Stream {
		event := func(name, rest string) string { return name + "\n" + `{"type":"` + name + `",` + rest + `}` }
		stream(w,
			event("response.created", `"sequence_number":0,"response":`+whole("in_progress", "", "null")),
			event("response.output_item.added", `"sequence_number":1,"output_index":0,"item":{"id":"msg1","type":"message","status":"in_progress","role":"assistant","content":[]}`),
			event("response.content_part.added", `"sequence_number":2,"item_id":"msg1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`),
			event("response.output_text.delta", `"sequence_number":3,"item_id":"msg1","output_index":0,"content_index":0,"delta":"Hello","logprobs":[]`),
			event("response.output_text.delta", `"sequence_number":4,"item_id":"msg1","output_index":0,"content_index":0,"delta":" there.","logprobs":[]`),
			event("response.output_text.done", `"sequence_number":5,"item_id":"msg1","output_index":0,"content_index":0,"text":"Hello there.","logprobs":[]`),
			event("response.content_part.done", `"sequence_number":6,"item_id":"msg1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"Hello there.","annotations":[]}`),
			event("response.output_item.done", `"sequence_number":7,"output_index":0,"item":`+text("Hello there.")),
			event("response.completed", `"sequence_number":8,"response":`+whole("completed", text("Hello there."), usage)))
		return
	}
	output := text("Hello there.")
	switch {
	case strings.Contains(string(a.Text), "json_schema"):
		output = text(city)
	case a.Tools != nil && string(a.Tools) != "[]":
		output = `{"id":"fc1","type":"function_call","status":"completed","call_id":"t1","name":"look_up","arguments":"` + city + `"}`
	}
	reply(w, "%s", whole("completed", output, usage))
}

func embeddings(w http.ResponseWriter, a asked) {
	vector := `[0.5,0.25]`
	if a.Encoding == "base64" {
		vector = `"AAAAPwAAgD4="` // the same as little-endian float32
	}
	reply(w, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":%s}],"model":"embed","usage":{"prompt_tokens":12,"total_tokens":12}}`, vector)
}

func messages(w http.ResponseWriter, a asked) {
	if a.Stream {
		event := func(name, rest string) string { return name + "\n" + `{"type":"` + name + `"` + rest + `}` }
		stream(w,
			event("message_start", `,"message":{"id":"msg1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"output_tokens":1}}`),
			event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`),
			event("ping", ""),
			event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"Hello"}`),
			event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":" there."}`),
			event("content_block_stop", `,"index":0`),
			event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":12,"output_tokens":%d}`, a.out)),
			event("message_stop", ""))
		return
	}
	content, reason := `{"type":"text","text":"Hello there."}`, "end_turn"
	if a.Tools != nil && string(a.Tools) != "[]" {
		content, reason = `{"type":"tool_use","id":"t1","name":"look_up","input":{"city":"Paris"}}`, "tool_use"
	}
	reply(w, `{"id":"msg1","type":"message","role":"assistant","model":"m","content":[%s],"stop_reason":%q,"stop_sequence":null,"usage":{"input_tokens":12,"output_tokens":%d}}`, content, reason, a.out)
}

func cohereChat(w http.ResponseWriter, a asked) {
	usage := fmt.Sprintf(`{"billed_units":{"input_tokens":12,"output_tokens":%d},"tokens":{"input_tokens":70,"output_tokens":%d}}`, a.out, a.out)
	if a.Stream {
		stream(w, `{"id":"c1","type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}`,
			`{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`,
			`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Hello"}}}}`,
			`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":" there."}}}}`,
			`{"type":"content-end","index":0}`,
			`{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":`+usage+`}}`, "[DONE]")
		return
	}
	message, finish := `{"role":"assistant","content":[{"type":"text","text":"Hello there."}]}`, "COMPLETE"
	switch {
	case a.ResponseFormat != nil:
		message = `{"role":"assistant","content":[{"type":"text","text":"` + city + `"}]}`
	case a.Tools != nil && string(a.Tools) != "[]":
		message = `{"role":"assistant","tool_plan":"I look it up.","tool_calls":[{"id":"t1","type":"function","function":{"name":"look_up","arguments":"` + city + `"}}]}`
		finish = "TOOL_CALL"
	}
	reply(w, `{"id":"c1","finish_reason":%q,"message":%s,"usage":%s}`, finish, message, usage)
}

func cohereEmbed(w http.ResponseWriter, _ asked) {
	reply(w, `{"id":"e1","response_type":"embeddings_by_type","embeddings":{"float":[[0.5,0.25]]},"texts":["hello"],"meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":12}}}`)
}

func cohereRerank(w http.ResponseWriter, _ asked) {
	reply(w, `{"id":"k1","results":[{"index":1,"relevance_score":0.9},{"index":0,"relevance_score":0.1}],"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":1}}}`)
}

func geminiAnswer(part string, out int, finish string) string {
	return fmt.Sprintf(`{"candidates":[{"content":{"parts":[%s],"role":"model"}%s,"index":0}],"usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":%d,"totalTokenCount":%d},"modelVersion":"m","responseId":"g1"}`, part, finish, out, 12+out)
}

func generate(w http.ResponseWriter, a asked) {
	part := `{"text":"Hello there."}`
	switch {
	case a.Config.MIME == json1:
		part = `{"text":"` + city + `"}`
	case a.Tools != nil:
		part = `{"functionCall":{"name":"look_up","args":{"city":"Paris"}}}`
	}
	reply(w, "%s", geminiAnswer(part, a.out, `,"finishReason":"STOP"`))
}

func generateStream(w http.ResponseWriter, a asked) {
	stream(w, geminiAnswer(`{"text":"Hello"}`, 1, ""), geminiAnswer(`{"text":" there."}`, a.out, `,"finishReason":"STOP"`))
}

func geminiEmbed(w http.ResponseWriter, _ asked) {
	reply(w, `{"embeddings":[{"values":[0.5,0.25]}],"embedding":{"values":[0.5,0.25]}}`)
}
