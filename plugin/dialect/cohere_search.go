package dialect

// search is what both APIs for search have in common: their models write nothing, and
// text-embeddings-inference names none and refuses in its own way.
type search struct {
	inPath
	tei bool
}

func (d search) facts() Facts {
	f := d.inPath.facts()
	f.NoChat, f.NoOutput, f.Unnamed = true, true, d.tei
	return f
}

func (d search) Refusal(r Refusal) ([][2]string, []byte) {
	if d.tei {
		return teiRefusal(r)
	}
	return cohereRefusal(r)
}

func (search) NewMeter(h ResponseHead, sink Sink) Meter { return searchAnswer.newMeter(h, sink) }

// cohereEmbed is Cohere's Embed API, v2 (POST /v2/embed) and v1 (POST /v1/embed), and that of Hugging
// Face's text-embeddings-inference (POST /embed, /embed_all, /embed_sparse), which names no model and
// reports nothing.
type cohereEmbed struct{ search }

func (d cohereEmbed) Name() string {
	if d.tei {
		return "tei-embed"
	}
	return "cohere-embed"
}

func (d cohereEmbed) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	return cohereEmbedRequest.newScanner(d.facts(), maxDepth, sink)
}

// Places of a request to embed.
const (
	ceRoot uint8 = iota + 1
	ceModel
	ceTexts
	ceText
	ceImages
	ceAlone
	ceImage
	ceImageURL
	ceInputs
	ceInput
	cePart
	cePartText
	ceNodes
)

var ceParts = []field{{"text", cePartText}, {"image_url", ceImage}, {"image", ceImage}}

var cohereEmbedRequest = request{
	schema: []node{
		ceRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
			{"model", ceModel}, {"texts", ceTexts}, {"images", ceImages}, {"inputs", ceInputs},
		}},
		ceModel:  {kinds: kindString, want: "a string", value: true},
		ceTexts:  {elem: ceText},
		ceText:   {text: true},
		ceImages: {elem: ceAlone},
		ceAlone:  {text: true},
		// A data URL, or an object with one.
		ceImage:    {text: true, fields: []field{{"url", ceImageURL}}},
		ceImageURL: {text: true},
		// Of v2, each with its content; of TEI a text, or a list of texts and of pairs of texts.
		ceInputs:   {text: true, elem: ceInput},
		ceInput:    {text: true, elem: cePart, fields: append([]field{{"content", cePart}}, ceParts...)},
		cePart:     {text: true, elem: cePart, fields: ceParts},
		cePartText: {text: true},
	},
	texts: []Part{ceAlone: MediaURL, ceImage: MediaURL, ceImageURL: MediaURL, ceNodes: 0},
	items: []Item{ceAlone: Image, ceImage: Image, ceNodes: 0},
	set:   setCohereEmbed,
}

func setCohereEmbed(f *Facts, n uint8, k kinds, p []byte, at Span) string {
	switch n {
	case ceModel:
		f.setModel(k, p, at)
	case ceText, ceAlone, ceInput:
		f.Inputs++
	case ceInputs:
		if k == kindString {
			f.Inputs++
		}
	}
	return ""
}

// rerank is Cohere's Rerank API, v2 and v1 (POST /v2/rerank, /v1/rerank), which Jina, Voyage, vLLM and
// Infinity speak too, and that of text-embeddings-inference (POST /rerank). Each document is read
// together with the query.
type rerank struct{ search }

func (d rerank) Name() string {
	if d.tei {
		return "tei-rerank"
	}
	return "cohere-rerank"
}

func (d rerank) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	return rerankRequest.newScanner(d.facts(), maxDepth, sink)
}

// Places of a request to rank.
const (
	rrRoot uint8 = iota + 1
	rrModel
	rrQuery
	rrDocuments
	rrDocument
	rrText
	rrImage
	rrImageURL
	rrNodes
)

var rerankRequest = request{
	schema: []node{
		rrRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
			{"model", rrModel}, {"query", rrQuery}, {"documents", rrDocuments}, {"texts", rrDocuments},
		}},
		rrModel:     {kinds: kindString, want: "a string", value: true},
		rrQuery:     {text: true, fields: []field{{"text", rrQuery}, {"image", rrImage}}},
		rrDocuments: {kinds: kindArray, want: "an array of documents", elem: rrDocument},
		// A string, or an object of fields that the model is shown.
		rrDocument: {text: true, other: rrText, fields: []field{{"image", rrImage}, {"image_url", rrImage}}},
		rrText:     {text: true, raw: kindAny &^ (kindString | kindNull)},
		rrImage:    {text: true, fields: []field{{"url", rrImageURL}}},
		rrImageURL: {text: true},
	},
	texts: []Part{rrQuery: Query, rrImage: MediaURL, rrImageURL: MediaURL, rrNodes: 0},
	items: []Item{rrDocument: Document, rrImage: Image, rrNodes: 0},
	set:   setRerank,
}

func setRerank(f *Facts, n uint8, k kinds, p []byte, at Span) string {
	switch n {
	case rrModel:
		f.setModel(k, p, at)
	case rrDocument:
		f.Documents++
	}
	return ""
}

// Places of an answer to either.
const (
	seaRoot uint8 = iota + 1
	seaUsage
	seaError
	seaNodes
)

// searchAnswer reads answers that are numbers, of which TEI's are a bare array.
var searchAnswer = answer{
	schema: []node{
		seaRoot:  {kinds: kindObject | kindArray, want: "an object or an array", fields: []field{{"meta", seaUsage}, {"usage", seaUsage}, {"error", seaError}}},
		seaUsage: {raw: kindAny},
		seaError: {},
	},
	roles: []role{seaUsage: usageRole, seaError: errorRole},
	usage: readCohereUsage,
	event: failsByName,
}

// teiRefusal writes {"error","error_type"}, the types being those of text-embeddings-inference 1.8.
func teiRefusal(r Refusal) (headers [][2]string, body []byte) {
	b := append(make([]byte, 0, 60+len(r.Message)), `{"error":`...)
	b = appendQuoted(b, r.Message)
	kind := `,"error_type":"Validation"}`
	switch status := r.HTTPStatus(); {
	case status == 429:
		kind = `,"error_type":"Overloaded"}`
	case status >= 500:
		kind = `,"error_type":"Backend"}`
	}
	b = append(b, kind...)
	return jsonHeaders(), append(b, '\n')
}
