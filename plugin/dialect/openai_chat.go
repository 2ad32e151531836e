package dialect

// openAIChat is OpenAI's Chat Completions API (POST /v1/chat/completions), which Azure, vLLM,
// Mistral, Groq, DeepSeek and many gateways speak too.
type openAIChat struct{}

func (openAIChat) Name() string { return "openai-chat" }

func (openAIChat) Refusal(r Refusal) (contentType string, body []byte) { return openAIRefusal(r) }

// Places of a request body that are read. What is not named here is checked for being JSON and
// nothing else.
const (
	chatRoot uint8 = iota + 1
	chatModel
	chatStream
	chatStreamOptions
	chatIncludeUsage
	chatCap
	chatN
	chatMessages
	chatMessage
	chatName
	chatContent
	chatPart
	chatMedia
	chatToolCalls
	chatToolCall
	chatCall
	chatTools
	chatTool
	chatText
	chatRaw
	chatNodes
)

var chatParts = []field{
	{"text", chatText}, {"refusal", chatText},
	{"image_url", chatMedia}, {"image", chatMedia}, {"input_audio", chatMedia},
	{"file", chatMedia}, {"video_url", chatMedia},
}

var chatSchema = [chatNodes]node{
	chatRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
		{"model", chatModel}, {"messages", chatMessages},
		{"stream", chatStream}, {"stream_options", chatStreamOptions},
		{"max_tokens", chatCap}, {"max_completion_tokens", chatCap}, {"n", chatN},
		{"tools", chatTools}, {"functions", chatTools},
		{"response_format", chatRaw}, {"documents", chatRaw},
	}},
	chatModel:         {kinds: kindString, want: "a string", value: true},
	chatStream:        {kinds: kindBool, want: "true or false"},
	chatStreamOptions: {kinds: kindObject, want: "an object", fields: []field{{"include_usage", chatIncludeUsage}}},
	chatIncludeUsage:  {kinds: kindBool, want: "true or false"},
	chatCap:           {kinds: kindNumber, want: "a whole number of at least 1"},
	chatN:             {kinds: kindNumber, want: "a whole number of at least 1"},
	chatMessages:      {kinds: kindArray, want: "an array of messages", elem: chatMessage},
	chatMessage: {text: true, fields: []field{
		{"role", chatText}, {"content", chatContent}, {"name", chatName},
		{"refusal", chatText}, {"reasoning_content", chatText}, {"reasoning", chatText},
		{"tool_calls", chatToolCalls}, {"function_call", chatCall},
	}},
	chatName: {text: true},
	// A string, an array of parts, or (on lenient servers) one part.
	chatContent:   {text: true, elem: chatPart, fields: chatParts},
	chatPart:      {text: true, fields: chatParts},
	chatMedia:     {},
	chatToolCalls: {elem: chatToolCall},
	chatToolCall:  {fields: []field{{"function", chatCall}, {"custom", chatCall}}},
	chatCall: {fields: []field{
		{"name", chatText}, {"arguments", chatText}, {"input", chatText},
	}},
	chatTools: {elem: chatTool},
	// The provider rewrites a tool's schema before the model sees it. Its JSON without white space is
	// somewhat longer than that, which is the right side to err on.
	chatTool: {raw: true},
	// Arguments are a string; some servers take them as an object.
	chatText: {text: true, raw: true},
	chatRaw:  {raw: true},
}

// chatScanner reads a request.
type chatScanner struct {
	json  jsonScanner
	sink  Sink
	facts Facts
}

func (openAIChat) NewScanner(maxDepth int, sink Sink) Scanner {
	s := &chatScanner{sink: sink, facts: Facts{N: 1}}
	s.json = newJSONScanner(chatSchema[:], s, maxDepth, false)
	return s
}

func (s *chatScanner) Write(p []byte) *Fault {
	for len(p) > 0 && s.json.fault == nil {
		if s.json.state != docDone {
			p = p[s.json.write(p):]
			continue
		}
		// Behind the document only white space may stand: a decoder that reads on would see more.
		if !isSpace(p[0]) {
			s.json.syntax(0)
			break
		}
		s.json.base++
		p = p[1:]
	}
	return s.json.fault
}

func (s *chatScanner) Close() (Facts, *Fault) {
	if s.json.fault == nil && s.json.state != docDone {
		message := "the body is not valid JSON: it ends too early"
		if s.json.base == 0 {
			message = "the body is empty; send a JSON object"
		}
		s.json.fail("invalid_json", "", message)
	}
	if s.json.fault != nil {
		return Facts{}, s.json.fault
	}
	return s.facts, nil
}

func (s *chatScanner) begin(n uint8, k kinds) string {
	switch n {
	case chatMessage:
		s.facts.Messages++
	case chatName:
		if k != kindNull {
			s.facts.Names++
		}
	case chatMedia:
		// Images, and sound and files too: each is a bounded figure, never its base64 as text.
		if k != kindNull {
			s.facts.Images++
		}
	case chatTool:
		s.facts.Tools++
	case chatStream:
		s.facts.Stream = k == kindTrue
	case chatIncludeUsage:
		s.facts.IncludeUsage = k == kindTrue
	}
	return ""
}

func (s *chatScanner) end(uint8) {}

func (s *chatScanner) text(_ uint8, p []byte, last bool) {
	if s.sink != nil {
		s.sink.Text(p, last)
	}
}

func (s *chatScanner) raw(_ uint8, p []byte, last bool) { s.text(0, p, last) }

func (s *chatScanner) value(n uint8, k kinds, p []byte) string {
	switch n {
	case chatModel:
		s.facts.Model = string(unescape(nil, p))
		s.facts.ModelSpan = Span{s.json.start, s.json.start + int64(len(p)) + 2}
	case chatCap, chatN:
		v, ok := parseWhole(p)
		if !ok || v < 1 {
			return "must be " + chatSchema[n].want
		}
		if n == chatN {
			s.facts.N = v
			break
		}
		s.facts.MaxOutput, s.facts.HasMaxOutput = max(s.facts.MaxOutput, v), true
	}
	return ""
}
