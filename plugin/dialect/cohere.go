package dialect

// cohereChat is Cohere's Chat API, v2 (POST /v2/chat) and v1 (POST /v1/chat), whose prompt is one
// message and a history.
type cohereChat struct{ inPath }

func (cohereChat) Name() string { return "cohere-chat" }

func (cohereChat) Refusal(r Refusal) ([][2]string, []byte) { return cohereRefusal(r) }

func (d cohereChat) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	return cohereRequest.newScanner(d.facts(), maxDepth, sink)
}

func (cohereChat) NewMeter(h ResponseHead, sink Sink) Meter { return cohereAnswer.newMeter(h, sink) }

func recogniseCohere(c *call) Dialect {
	if c.method != "POST" {
		return nil
	}
	versioned := len(c.seg) > 1 && (c.seg[len(c.seg)-2].text == "v1" || c.seg[len(c.seg)-2].text == "v2")
	switch {
	case versioned && c.ends("chat"):
		return cohereChat{}
	case versioned && c.ends("embed"):
		return cohereEmbed{}
	case c.ends("rerank"):
		return rerank{search{tei: !versioned}}
	case c.ends("embed"), c.ends("embed_all"), c.ends("embed_sparse"):
		return cohereEmbed{search{tei: true}}
	}
	return nil
}

// cohereRefusal writes {"message"}. Cohere's SDKs choose their error by the status (cohere 7.3 for Python,
// 8.1 for TypeScript): 400 BadRequestError, 401 UnauthorizedError, 403 ForbiddenError, 404
// NotFoundError, 429 TooManyRequestsError, 500 InternalServerError, 503 ServiceUnavailableError, and
// ApiError for 402, 413 and 415. After 429 and 5xx they try again whatever a header says, for a minute
// at most.
func cohereRefusal(r Refusal) (headers [][2]string, body []byte) {
	b := append(make([]byte, 0, 20+len(r.Message)), `{"message":`...)
	b = appendQuoted(b, r.Message)
	b = append(b, "}\n"...)
	return jsonHeaders(), b
}

// Places of a request, beside those that OpenAI's Chat has too: v2 is its messages and tools.
const (
	coMessages = chatNodes + iota
	coMessage
	coContent
	coDocument
	coThinking
	coHistory
	coTurn
	coText
	coJSON
	coNodes
)

var coParts = append([]field{{"document", coDocument}}, chatParts...)

var cohereRequest = request{schema: cohereSchema, texts: cohereTexts, items: cohereItems, set: setChat}

var cohereSchema = onChat([]node{
	chatRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
		{"model", chatModel}, {"messages", coMessages}, {"stream", chatStream}, {"max_tokens", chatCap},
		{"thinking", coThinking}, {"tools", chatTools}, {"response_format", chatFormat}, {"documents", coDocument},
		{"message", coTurn}, {"chat_history", coHistory}, {"preamble", coText}, {"tool_results", coJSON},
	}},
	coMessages: {kinds: kindArray, want: "an array of messages", elem: coMessage},
	coMessage: {text: true, fields: []field{
		{"role", coText}, {"content", coContent}, {"tool_calls", chatToolCalls}, {"tool_plan", coText},
	}},
	coContent:  {text: true, elem: coContent, fields: coParts},
	coDocument: {raw: kindAny}, // a string, or an object whose fields the model is shown
	coThinking: {fields: []field{{"token_budget", chatCap}}},
	coHistory:  {elem: coTurn},
	// A turn of v1. The present one is a string.
	coTurn: {text: true, fields: []field{{"role", coText}, {"message", coText}, {"tool_calls", coJSON}, {"tool_results", coJSON}}},
	coText: {text: true, raw: kindAny &^ (kindString | kindNull)},
	coJSON: {raw: kindAny &^ kindNull},

	coNodes: {},
}[:coNodes], chatSchema[:])

var cohereTexts = onChat([]Part{coNodes: 0}[:coNodes], chatTexts[:])

var cohereItems = onChat([]Item{coMessage: Message, coTurn: Message, coNodes: 0}[:coNodes], chatItems[:])
