package dialect

import "strings"

// openAIImages is OpenAI's Images API: POST /v1/images/generations, and /edits and /variations, whose
// bodies are forms. Azure, xAI and Together speak it too.
type openAIImages struct{ inPath }

func (openAIImages) Name() string { return "openai-images" }

func (openAIImages) Refusal(r Refusal) ([][2]string, []byte) { return openAIRefusal(r) }

func (d openAIImages) NewScanner(h RequestHead, maxDepth int, sink Sink) Scanner {
	f := d.facts()
	f.NoChat = true
	if isForm(h.ContentType) {
		return imageForm.newScanner(h, f, sink)
	}
	return imageRequest.newScanner(f, maxDepth, sink)
}

func (openAIImages) NewMeter(h ResponseHead, sink Sink) Meter { return imageAnswer.newMeter(h, sink) }

func recogniseOpenAIImages(c *call) Dialect {
	for _, name := range [...]string{"generations", "edits", "variations"} {
		if at, ok := c.onOpenAI("images", name); ok {
			return openAIImages{at}
		}
	}
	return nil
}

// Places of a request body.
const (
	imgRoot uint8 = iota + 1
	imgModel
	imgPrompt
	imgCount
	imgPartial
	imgQuality
	imgStream
	imgSource
	imgSourceURL
	imgNodes
)

var imageRequest = request{
	schema: []node{
		imgRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
			{"model", imgModel}, {"prompt", imgPrompt}, {"n", imgCount}, {"partial_images", imgPartial},
			{"quality", imgQuality}, {"stream", imgStream},
			{"image", imgSource}, {"images", imgSource}, {"mask", imgSource},
		}},
		imgModel:     {kinds: kindString, want: "a string", value: true},
		imgPrompt:    {text: true},
		imgCount:     {kinds: kindNumber, want: "a whole number of at least 1"},
		imgPartial:   {kinds: kindNumber, want: "a whole number from 0 to 10"},
		imgQuality:   {value: true},
		imgStream:    {kinds: kindBool, want: "true or false"},
		imgSource:    {text: true, elem: imgSource, fields: []field{{"image_url", imgSourceURL}, {"url", imgSourceURL}}},
		imgSourceURL: {text: true},
	},
	texts: []Part{imgSource: MediaURL, imgSourceURL: MediaURL, imgNodes: 0},
	items: []Item{imgSource: Image, imgNodes: 0},
	set: func(f *Facts, n uint8, k kinds, p []byte, at Span) string {
		switch {
		case n == imgModel:
			f.setModel(k, p, at)
		case n == imgStream:
			f.Stream = k == kindTrue
		case n == imgQuality && k == kindString:
			return setImage(f, "quality", string(unescape(nil, p)))
		case n == imgCount && k == kindNumber, n == imgPartial && k == kindNumber:
			return setImage(f, [...]string{imgCount: "n", imgPartial: "partial_images"}[n], string(p))
		}
		return ""
	},
	done: func(f *Facts, _ int64) { endImages(f) },
}

var imageForm = form{
	fields: []formField{
		{name: "model"}, {name: "n"}, {name: "quality"}, {name: "stream"}, {name: "partial_images"},
		{name: "prompt", kind: formText},
		{name: "image", kind: formFile, item: Image, many: true}, {name: "image[]", kind: formFile, item: Image, many: true},
		{name: "mask", kind: formFile, item: Image},
	},
	set: func(f *Facts, name, value string, at Span) string {
		switch name {
		case "n", "partial_images":
			if !isNumber(value) {
				return "must be a whole number"
			}
			return setImage(f, name, value)
		case "quality":
			return setImage(f, name, value)
		}
		return setForm(f, name, value, at)
	},
	file: func(*Facts, string, int64, []byte) {},
	done: endImages,
}

// setImage takes what the length of an answer follows from. Until endImages, MaxOutput is the tokens of
// one picture's quality and N those of its partial ones.
func setImage(f *Facts, name, value string) string {
	switch name {
	case "quality":
		switch value {
		case "low":
			f.MaxOutput, f.HasMaxOutput = imageTokens[0], true
		case "medium":
			f.MaxOutput, f.HasMaxOutput = imageTokens[1], true
		case "standard", "hd": // of models that are billed by the picture
			f.NoOutput = true
		}
	case "n", "partial_images":
		v, ok := parseWhole([]byte(value))
		if !ok || name == "n" && v < 1 || v < 0 || v > maxImages {
			return "must be a whole number, at least 1 for n"
		}
		if name == "n" {
			f.Images = v
		} else {
			f.N = 1 + v
		}
	}
	return ""
}

const (
	maxImages     = 1000 // more than any provider makes in a call
	partialTokens = 100  // of each partial picture (OpenAI's guide to image generation, read 2026-10)
)

// imageTokens are those of a picture of gpt-image-1 in low, medium and high quality, of the size that
// takes most (the same guide).
var imageTokens = [...]int64{408, 1584, 6240}

func endImages(f *Facts) {
	f.Images = max(f.Images, 1)
	each := imageTokens[2]
	if f.HasMaxOutput {
		each = f.MaxOutput
	}
	f.MaxOutput, f.HasMaxOutput = each+partialTokens*(f.N-1), true
	f.N = f.Images
	if strings.HasPrefix(f.Model, "dall-e") {
		f.NoOutput = true
	}
	if f.NoOutput {
		f.MaxOutput, f.HasMaxOutput = 0, false
	}
}

// isNumber says whether s is digits, which all numbers of a form are.
func isNumber(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// Places of an answer, or of an event of a streamed one.
const (
	imgAnsRoot uint8 = iota + 1
	imgAnsType
	imgAnsUsage
	imgAnsError
	imgAnsData
	imgAnsPicture
	imgAnsBytes
	imgAnsNodes
)

var imageAnswer = answer{
	schema: []node{
		imgAnsRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
			{"type", imgAnsType}, {"usage", imgAnsUsage}, {"error", imgAnsError}, {"data", imgAnsData}, {"b64_json", imgAnsBytes},
		}},
		imgAnsType:    {value: true},
		imgAnsUsage:   {raw: kindAny},
		imgAnsError:   {},
		imgAnsData:    {elem: imgAnsPicture},
		imgAnsPicture: {},
		imgAnsBytes:   {},
	},
	roles: []role{imgAnsType: typeRole, imgAnsUsage: usageRole, imgAnsError: errorRole, imgAnsPicture: pictureRole, imgAnsBytes: producedRole},
	usage: readOpenAIUsage,
	event: func(name string) mark {
		switch name {
		case "image_generation.completed", "image_edit.completed":
			return endMark
		}
		return failsByName(name)
	},
}
