package dialect

import "strings"

// geminiEmbed is embedContent, batchEmbedContents and, for models that embed, Vertex's predict. Most
// answers say nothing of what was used.
type geminiEmbed struct{ gemini }

func (geminiEmbed) Name() string { return "gemini-embed" }

func (d geminiEmbed) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	f := d.facts()
	f.NoChat, f.NoOutput = true, true
	return geminiEmbedRequest.newScanner(f, maxDepth, sink)
}

func (geminiEmbed) NewMeter(h ResponseHead, sink Sink) Meter {
	return geminiEmbedAnswer.newMeter(h, sink)
}

// embeds says whether Vertex's predict makes embeddings with a model: text-embedding-005,
// textembedding-gecko@003, multimodalembedding@001.
func embeds(model string) bool { return strings.Contains(model, "embed") }

const (
	gemeRoot uint8 = iota + 1
	gemeRequests
	gemeRequest
	gemeContent
	gemeParts
	gemePart
	gemeText
	gemeBlob
	gemeBlobData
	gemeMediaType
	gemeFile
	gemeFileURI
	gemeNodes
)

var (
	gemePartFields = []field{{"text", gemeText}, {"inlineData", gemeBlob}, {"fileData", gemeFile}}
	// predict's instances have the text itself in content, or (multimodal) one in text.
	gemeRequestFields = []field{{"content", gemeContent}, {"title", gemeText}, {"text", gemeText},
		{"image", gemeBlob}, {"video", gemeBlob}}
	gemeContentFields = []field{{"parts", gemeParts}}
)

var geminiEmbedRequest = request{schema: gemeSchema[:], texts: gemeTexts[:], items: gemeItems[:], set: setGeminiEmbed}

var gemeSchema = [gemeNodes]node{
	gemeRoot: {kinds: kindObject, want: "a JSON object", snake: true, fields: []field{
		{"requests", gemeRequests}, {"instances", gemeRequests}, {"content", gemeContent}, {"title", gemeText},
	}},
	gemeRequests:  {kinds: kindArray, want: "an array", elem: gemeRequest},
	gemeRequest:   {kinds: kindObject, want: "an object", snake: true, fields: gemeRequestFields},
	gemeContent:   {text: true, fields: gemeContentFields, snake: true},
	gemeParts:     {text: true, elem: gemePart, fields: gemePartFields, snake: true},
	gemePart:      {text: true, fields: gemePartFields, snake: true},
	gemeText:      {text: true},
	gemeBlob:      {snake: true, fields: []field{{"mimeType", gemeMediaType}, {"data", gemeBlobData}, {"bytesBase64Encoded", gemeBlobData}, {"gcsUri", gemeFileURI}}},
	gemeBlobData:  {text: true},
	gemeMediaType: {text: true},
	gemeFile:      {snake: true, fields: []field{{"mimeType", gemeMediaType}, {"fileUri", gemeFileURI}}},
	gemeFileURI:   {text: true},
}

var gemeTexts = [gemeNodes]Part{gemeBlobData: FileData, gemeMediaType: AudioFormat, gemeFileURI: FileRef}

var gemeItems = [gemeNodes]Item{gemeBlob: File, gemeFile: File}

// setGeminiEmbed counts texts: one for each request of a batch, and one for a request without.
func setGeminiEmbed(f *Facts, n uint8, k kinds, _ []byte, _ Span) string {
	if n == gemeRequest || n == gemeRoot {
		f.Inputs++
	}
	if n == gemeRequests && k == kindArray {
		f.Inputs-- // the root is none of its own
	}
	return ""
}

const (
	gemeaRoot uint8 = iota + 1
	gemeaUsage
	gemeaError
	gemeaPredictions
	gemeaPrediction
	gemeaEmbeddings
	gemeaStatistics
	gemeaTokens
	gemeaNodes
)

var geminiEmbedAnswer = answer{schema: gemeaSchema[:], roles: gemeaRoles[:], usage: readGeminiUsage,
	event: failsByName, figure: addGeminiFigure}

var gemeaSchema = [gemeaNodes]node{
	gemeaRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
		{"usageMetadata", gemeaUsage}, {"error", gemeaError}, {"predictions", gemeaPredictions},
	}},
	gemeaUsage:       {raw: kindAny},
	gemeaError:       {},
	gemeaPredictions: {elem: gemeaPrediction},
	gemeaPrediction:  {fields: []field{{"embeddings", gemeaEmbeddings}}},
	gemeaEmbeddings:  {fields: []field{{"statistics", gemeaStatistics}}},
	gemeaStatistics:  {fields: []field{{"token_count", gemeaTokens}}},
	gemeaTokens:      {},
}

var gemeaRoles = [gemeaNodes]role{gemeaUsage: usageRole, gemeaError: errorRole, gemeaTokens: figureRole}

// addGeminiFigure adds up the tokens of the texts of one call, which predict reports one by one.
func addGeminiFigure(u *usageRecord, _ uint8, v int64) {
	u.seen, u.input = true, min(u.input+v, maxUsage)
}
