package dialect

// openAIEmbeddings is OpenAI's Embeddings API (POST /v1/embeddings), which Azure, Mistral, Jina,
// vLLM and TEI speak too, and Voyage with relatives of its own: texts in, numbers out.
type openAIEmbeddings struct{ inPath }

func (openAIEmbeddings) Name() string { return "openai-embeddings" }

func (openAIEmbeddings) Refusal(r Refusal) ([][2]string, []byte) { return openAIRefusal(r) }

func (d openAIEmbeddings) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	f := d.facts()
	f.NoChat, f.NoOutput = true, true
	return embRequest.newScanner(f, maxDepth, sink)
}

func (openAIEmbeddings) NewMeter(h ResponseHead, sink Sink) Meter {
	return embAnswer.newMeter(h, sink)
}

func recogniseOpenAIEmbeddings(c *call) Dialect {
	for _, name := range [...]string{"embeddings", "multimodalembeddings", "contextualizedembeddings"} {
		if at, ok := c.onOpenAI(name); ok {
			return openAIEmbeddings{at}
		}
	}
	return nil
}

// Places of a request body.
const (
	embRoot uint8 = iota + 1
	embModel
	embInput
	embItem
	embToken
	embPiece
	embText
	embImage
	embImageURL
	embMessages
	embNodes
)

// Parts of an input that is no text alone: Jina's {"text"} and {"image"}, Voyage's content of
// {"text"}, {"image_url"} and {"image_base64"}.
var embParts = []field{
	{"text", embText}, {"content", embPiece}, {"image", embImage}, {"image_url", embImage}, {"image_base64", embImage},
	{"video_url", embImage}, {"video_base64", embImage}, {"pdf", embImage},
}

var embRequest = request{
	schema: []node{
		embRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
			{"model", embModel}, {"input", embInput}, {"inputs", embInput}, {"messages", embMessages},
		}},
		embModel: {kinds: kindString, want: "a string", value: true},
		// A text, a list of texts, the tokens of one, or a list of lists of tokens.
		embInput: {text: true, elem: embItem, fields: embParts},
		embItem:  {text: true, elem: embToken, fields: embParts},
		// Of a list of tokens; or of texts, where documents come in chunks.
		embToken:    {text: true, elem: embPiece, fields: embParts},
		embPiece:    {text: true, elem: embPiece, fields: embParts},
		embText:     {text: true},
		embImage:    {text: true, fields: []field{{"url", embImageURL}}},
		embImageURL: {text: true},
		// vLLM embeds a conversation.
		embMessages: {elem: embPiece},
	},
	texts: []Part{embImage: MediaURL, embImageURL: MediaURL, embNodes: 0},
	items: []Item{embImage: Image, embNodes: 0},
	set:   setEmbeddings,
}

func setEmbeddings(f *Facts, n uint8, k kinds, p []byte, at Span) string {
	switch n {
	case embModel:
		f.setModel(k, p, at)
	case embInput:
		if k&(kindString|kindObject) != 0 {
			f.Inputs++
		}
	case embItem:
		f.inputItem(k)
	case embToken:
		f.inputToken(k)
	case embMessages:
		f.Inputs = max(f.Inputs, 1)
	}
	return ""
}

// Places of an answer.
const (
	embAnsRoot uint8 = iota + 1
	embAnsUsage
	embAnsError
	embAnsNodes
)

var embAnswer = answer{
	schema: []node{
		embAnsRoot:  {kinds: kindObject, want: "a JSON object", fields: []field{{"usage", embAnsUsage}, {"error", embAnsError}}},
		embAnsUsage: {raw: kindAny},
		embAnsError: {},
	},
	roles: []role{embAnsUsage: usageRole, embAnsError: errorRole},
	usage: readEmbeddingUsage,
	event: failsByName,
}
