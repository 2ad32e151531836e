package dialect

// ollama is what Ollama's own APIs have in common: errors that are a sentence, answers that are a
// document on each line unless the request says "stream":false, and figures in the last of them.
type ollama struct{ inPath }

// Refusal writes {"error":"..."}. ollama-python raises ResponseError and ollama-js the same, with the
// status and that sentence (ollama/_types.py, ollama/src/utils.ts).
func (ollama) Refusal(r Refusal) ([][2]string, []byte) {
	b := make([]byte, 0, 32+len(r.Message))
	b = append(b, `{"error":`...)
	b = appendQuoted(b, r.Message)
	return jsonHeaders(), append(b, "}\n"...)
}

type (
	ollamaChat     struct{ ollama } // POST /api/chat
	ollamaGenerate struct{ ollama } // POST /api/generate
	ollamaEmbed    struct{ ollama } // POST /api/embed, and /api/embeddings, its predecessor
)

func (ollamaChat) Name() string     { return "ollama-chat" }
func (ollamaGenerate) Name() string { return "ollama-generate" }
func (ollamaEmbed) Name() string    { return "ollama-embed" }

func recogniseOllama(c *call) Dialect {
	if c.method != "POST" {
		return nil
	}
	if n := len(c.seg); n > 2 && (c.seg[n-3].text == "deployments" || c.seg[n-3].text == "engines") {
		return nil // a model of Azure's that is called api
	}
	o := ollama{inPath{stream: true}}
	switch {
	case c.ends("api", "chat"):
		return ollamaChat{o}
	case c.ends("api", "generate"):
		return ollamaGenerate{o}
	case c.ends("api", "embed"), c.ends("api", "embeddings"):
		return ollamaEmbed{}
	}
	return nil
}

func (d ollamaChat) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	return ollamaRequest.newScanner(d.facts(), maxDepth, sink)
}

func (d ollamaGenerate) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	return ollamaRequest.newScanner(d.facts(), maxDepth, sink)
}

func (ollamaChat) NewMeter(h ResponseHead, sink Sink) Meter { return ollamaAnswer.newMeter(h, sink) }
func (ollamaGenerate) NewMeter(h ResponseHead, sink Sink) Meter {
	return ollamaGenerateAnswer.newMeter(h, sink)
}

// Places of a request beside those of a chat, whose tools and calls are OpenAI's.
const (
	ollOptions = chatNodes + iota
	ollPredict
	ollImages
	ollImage
	ollFormat
	ollTokens
	ollToken
	ollNodes
)

var ollamaRequest = request{schema: ollamaSchema(), texts: ollamaTexts(),
	items: ollamaItems(), set: setOllama}

func ollamaTexts() []Part {
	t := append(chatTexts[:], make([]Part, ollNodes-chatNodes)...)
	t[ollImage], t[ollFormat] = MediaURL, Schema
	return t
}

func ollamaItems() []Item {
	t := append(chatItems[:], make([]Item, ollNodes-chatNodes)...)
	t[ollImage] = Image
	return t
}

const aWholeNumber = "a whole number"

// ollamaSchema reads the bodies of chat and of generate: none has a field that means something else
// in the other.
func ollamaSchema() []node {
	s := append(chatSchema[:], make([]node, ollNodes-chatNodes)...)
	s[chatRoot].fields = []field{
		{"model", chatModel}, {"messages", chatMessages}, {"tools", chatTools}, {"stream", chatStream},
		{"prompt", chatText}, {"suffix", chatText}, {"system", chatText}, {"template", chatText},
		{"images", ollImages}, {"context", ollTokens}, {"format", ollFormat}, {"options", ollOptions},
	}
	s[chatMessage].fields = []field{
		{"role", chatText}, {"content", chatContent}, {"thinking", chatText}, {"images", ollImages},
		{"tool_calls", chatToolCalls}, {"tool_name", chatText},
	}
	s[ollOptions] = node{kinds: kindObject, want: "an object", fields: []field{{"num_predict", ollPredict}}}
	s[ollPredict] = node{kinds: kindNumber, want: aWholeNumber}
	s[ollImages] = node{elem: ollImage}
	s[ollImage] = node{text: true}
	// "json" asks for JSON, a schema for such JSON.
	s[ollFormat] = node{raw: kindObject}
	s[ollTokens] = node{elem: ollToken} // what an earlier answer gave, to go on from there
	s[ollToken] = node{}
	return s
}

func setOllama(f *Facts, n uint8, k kinds, p []byte, at Span) string {
	switch n {
	case chatStream:
		f.Stream = k != kindFalse
	case chatModel:
		f.setModel(k, p, at)
	case ollToken:
		f.TokenIDs++
	case ollPredict:
		if k != kindNumber {
			break
		}
		v, ok := parseWhole(p)
		if !ok {
			return "must be " + aWholeNumber
		}
		// Below 1 there is no end but the model's own.
		f.MaxOutput, f.HasMaxOutput = max(v, 0), true
	}
	return ""
}

// Places of an answer, or of one line of a streamed answer.
const (
	ollaRoot uint8 = iota + 1
	ollaError
	ollaMessage
	ollaText
	ollaThinking
	ollaCalls
	ollaCall
	ollaFunction
	ollaName
	ollaArguments
	ollaReason
	ollaInput
	ollaOutput
	ollaUsage
	ollaModel
	ollaCreated
	ollaNodes
)

// ollamaAnswer reads answers of chat and generate. prompt_eval_count is left out or 0 where the prompt
// was in the model's memory already.
var ollamaAnswer = answer{schema: ollaSchema[:], roles: ollaRoles[:], usage: readEmbeddingUsage,
	figure: setOllamaFigure, event: failsByName, ends: true,
	tail: &ollamaChatEnding}

var ollamaGenerateAnswer = func() answer {
	a := ollamaAnswer
	a.tail = &ollamaGenerateEnding
	return a
}()

var ollaSchema = [ollaNodes]node{
	ollaRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
		{"message", ollaMessage}, {"response", ollaText}, {"thinking", ollaThinking}, {"error", ollaError},
		{"done", ollaReason}, {"prompt_eval_count", ollaInput}, {"eval_count", ollaOutput},
		{"model", ollaModel}, {"created_at", ollaCreated},
	}},
	ollaError: {},
	ollaMessage: {fields: []field{
		{"content", ollaText}, {"thinking", ollaThinking}, {"tool_calls", ollaCalls},
	}},
	ollaText:      {text: true},
	ollaThinking:  {text: true},
	ollaCalls:     {elem: ollaCall},
	ollaCall:      {fields: []field{{"function", ollaFunction}}},
	ollaFunction:  {fields: []field{{"name", ollaName}, {"arguments", ollaArguments}}},
	ollaName:      {text: true},
	ollaArguments: {text: true, raw: kindAny &^ kindString},
	ollaReason:    {},
	ollaInput:     {},
	ollaOutput:    {},
	ollaUsage:     {raw: kindAny},
	ollaModel:     {value: true},
	ollaCreated:   {value: true},
}

var ollaRoles = [ollaNodes]role{
	ollaError: errorRole, ollaReason: finishRole, ollaInput: figureRole, ollaOutput: figureRole, ollaUsage: usageRole,
	ollaText: textRole, ollaThinking: textRole, ollaName: textRole, ollaArguments: textRole,
}

func setOllamaFigure(u *usageRecord, n uint8, v int64) {
	u.seen = true
	if n == ollaInput {
		u.input = v
	} else {
		u.output = v
	}
}
