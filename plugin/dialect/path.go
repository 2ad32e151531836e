package dialect

import (
	"slices"
	"strings"
)

// OpenAIChat is OpenAI's Chat Completions API and what is compatible with it. It also serves for
// refusals before a path is known.
var OpenAIChat Dialect = openAIChat{}

// Recognise gives the dialect of a metered call, by its method and its :path (a query is allowed).
//
// A path counts as one of an API if it ends as that API's paths do after every rewriting that some
// server on the way might do: escapes decoded (repeatedly, so an encoded slash or a doubly encoded
// letter does not slip by), backslashes, empty and dot segments, path parameters after ';', control
// characters and spaces at the end, a slash at the end, letter case. Taking a call for metered that the
// provider will answer with 404 costs nothing; the opposite would be a free call. Of several readings
// (see readings) the first that is known counts; Ambiguous says whether another is known too.
func Recognise(method, path string) (Dialect, bool) {
	for _, segments := range readings(path) {
		if d := recognise(method, path, segments); d != nil {
			return d, true
		}
	}
	return nil, false
}

// Ambiguous says whether servers may read a path as different metered calls, or as calls of different
// models, so that it can't be known which of them would be paid.
func Ambiguous(method, path string) bool {
	all := readings(path)
	if len(all) == 1 {
		return false
	}
	var first Dialect
	for _, segments := range all {
		d := recognise(method, path, segments)
		switch {
		case d == nil:
		case first == nil:
			first = d
		case d.Name() != first.Name() || modelInPath(d) != modelInPath(first):
			return true
		}
	}
	return false
}

func modelInPath(d Dialect) string {
	if p, ok := d.(interface{ facts() Facts }); ok {
		return p.facts().Model
	}
	return ""
}

func recognise(method, path string, segments []segment) Dialect {
	c := call{method: strings.ToUpper(method), path: path, seg: segments}
	for _, recognise := range recognisers {
		if d := recognise(&c); d != nil {
			return d
		}
	}
	return nil
}

// recognisers are those of all dialects. The first that knows a call has it.
var recognisers = [...]func(c *call) Dialect{
	recogniseOllama, // before OpenAI's, which end in embeddings too
	recogniseOpenAI,
	recogniseGemini,
	recogniseBedrock,
	recogniseAnthropic,
	recogniseCohere,
}

// Names are the names of all dialects.
func Names() []string {
	return []string{
		"openai-chat", "openai-embeddings", "openai-responses", "openai-input-tokens", "openai-completions",
		"openai-images", "openai-audio", "openai-speech",
		"gemini-generate", "gemini-count-tokens", "gemini-embed",
		"anthropic-messages", "anthropic-count-tokens",
		"bedrock-converse", "bedrock-invoke", "bedrock-count-tokens",
		"cohere-chat", "cohere-embed", "cohere-rerank", "tei-embed", "tei-rerank",
		"ollama-chat", "ollama-generate", "ollama-embed",
	}
}

// call is the first line of a request.
type call struct {
	method string // in capitals
	path   string // as it was sent
	seg    []segment
}

// segment is a part of a path between slashes.
type segment struct {
	text string // canonical: decoded, in lower case
	at   Span   // where it stands in the path as it was sent, parameters left out
	from []int  // where in it each byte of text was
}

// ends says whether the path ends in these segments.
func (c *call) ends(texts ...string) bool {
	from := len(c.seg) - len(texts)
	if from < 0 {
		return false
	}
	for i, t := range texts {
		if c.seg[from+i].text != t {
			return false
		}
	}
	return true
}

// verb parts the last segment at its last colon, as Google's APIs do: what the call is about, and
// what is to be done with it, in lower case.
func (c *call) verb() (of segment, verb string) {
	if len(c.seg) == 0 {
		return segment{}, ""
	}
	s := c.seg[len(c.seg)-1]
	text, verb, ok := cutVerb(s.text)
	if !ok {
		return s, ""
	}
	i := len(text)
	return segment{text, Span{s.at.Start, int64(s.from[i])}, s.from[:i]}, verb
}

// cutVerb parts a segment at its last colon.
func cutVerb(s string) (of, verb string, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// named gives a segment in the letters in which it was sent, decoded as its text was.
func (c *call) named(s segment) string {
	b := []byte(c.path[s.at.Start:s.at.End])
	for range maxPathRounds {
		n := decodePercent(b, nil)
		if n == len(b) {
			break
		}
		b = b[:n]
	}
	b = slices.DeleteFunc(b, isControl)
	return strings.Trim(string(b), " ")
}

// LLMPath says whether a path looks like part of an LLM API, so that routes.unknown has a say if
// no dialect knows it: one of its segments is a version (v1, v1beta, v2) or a name by which
// gateways and providers root their APIs. Health checks, metrics and web pages are not.
func LLMPath(path string) bool { return slices.ContainsFunc(readings(path), llmPath) }

func llmPath(segments []segment) bool {
	before := ""
	for _, s := range segments {
		switch s.text {
		case "v1", "v1beta", "v1beta1", "v1alpha", "v2", "v3", "v4",
			"openai", "anthropic", "deployments", "engines", "completions", "messages", "responses",
			"embeddings", "rerank",
			"completion", "infill", "generate", "generate_stream", "invocations", // llama.cpp, TGI, vLLM, Ollama
			"invoke", "invoke-with-response-stream", "invoke-with-bidirectional-stream", "async-invoke", "model-invocation-job",
			"converse", "converse-stream", "count-tokens": // Bedrock
			return true
		case "chat", "embed":
			if before == "api" { // Ollama
				return true
			}
		}
		if _, verb, ok := cutVerb(s.text); ok && slices.Contains(geminiVerbs[:], verb) {
			return true
		}
		before = s.text
	}
	return false
}

// Free says whether a call on the path of an LLM API costs nothing, by itself and in what it makes the
// provider do, so that it may pass where unknown calls may not: lists of models, moderation, and answers
// that the provider keeps, to be read, labelled, cancelled or deleted. So it must be however the path is read.
func Free(method, path string) bool {
	return !slices.ContainsFunc(readings(path), func(segments []segment) bool {
		c := call{method: strings.ToUpper(method), path: path, seg: segments}
		return !c.free()
	})
}

func (c *call) free() bool {
	n := len(c.seg)
	switch c.method {
	case "GET", "HEAD", "OPTIONS", "DELETE":
		for i, s := range c.seg {
			switch {
			case s.text == "models", s.text == "responses" && i+1 < n,
				s.text == "completions" && i > 0 && c.seg[i-1].text == "chat":
				return true
			}
		}
	case "POST":
		return c.ends("moderations") || n > 2 &&
			(c.seg[n-1].text == "cancel" && c.seg[n-3].text == "responses" || c.seg[n-3].text == "chat" && c.seg[n-2].text == "completions")
	}
	return false
}

// CanonicalPath is the path that Recognise judges by first: lower case, without query and parameters.
// It is for comparing, never for forwarding.
func CanonicalPath(path string) string {
	var b strings.Builder
	for _, s := range segments(path) {
		b.WriteByte('/')
		b.WriteString(s.text)
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

// decodePercent takes one layer of escapes off in place and gives the new length. Where each byte
// came from, if at is given, stays told.
func decodePercent(b []byte, at []int) int {
	n := 0
	for i := 0; i < len(b); i++ {
		c, from := b[i], i
		if c == '%' && i+2 < len(b) {
			hi, ok1 := hexDigit(b[i+1])
			lo, ok2 := hexDigit(b[i+2])
			if ok1 && ok2 {
				c = hi<<4 | lo
				i += 2
			}
		}
		b[n] = c
		if at != nil {
			at[n] = at[from]
		}
		n++
	}
	return n
}

func hexDigit(b byte) (byte, bool) {
	switch {
	case b >= '0' && b <= '9':
		return b - '0', true
	case b >= 'a' && b <= 'f':
		return b - 'a' + 10, true
	case b >= 'A' && b <= 'F':
		return b - 'A' + 10, true
	}
	return 0, false
}
