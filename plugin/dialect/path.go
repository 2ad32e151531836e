package dialect

import "strings"

// OpenAIChat is OpenAI's Chat Completions API and what is compatible with it. It also serves for
// refusals before a path is known.
var OpenAIChat Dialect = openAIChat{}

// Recognise gives the dialect of a metered call, by its method and its :path (a query is allowed).
//
// A path counts as OpenAI chat if it ends in /chat/completions after every rewriting that some
// server on the way might do: escapes decoded (repeatedly, so an encoded slash or a doubly encoded
// letter does not slip by), backslashes, empty and dot segments, path parameters after ';',
// a slash at the end, letter case. Taking a call for metered that the provider will answer with
// 404 costs nothing; the opposite would be a free call.
//
// Only POST makes a model work; GET and DELETE on the same path read and delete stored answers.
func Recognise(method, path string) (Dialect, bool) {
	if !strings.EqualFold(method, "POST") {
		return nil, false
	}
	seg := segments(path)
	if n := len(seg); n >= 2 && seg[n-2] == "chat" && seg[n-1] == "completions" {
		return OpenAIChat, true
	}
	return nil, false
}

// LLMPath says whether a path looks like part of an LLM API, so that routes.unknown has a say if
// no dialect knows it: one of its segments is a version (v1, v1beta, v2) or a name by which
// gateways and providers root their APIs. Health checks, metrics and web pages are not.
func LLMPath(path string) bool {
	before := ""
	for _, s := range segments(path) {
		switch s {
		case "v1", "v1beta", "v1beta1", "v1alpha", "v2", "v3", "v4",
			"openai", "anthropic", "deployments", "engines", "completions", "messages", "responses",
			"embeddings", "rerank",
			"completion", "infill", "generate", "generate_stream", "invocations", // llama.cpp, TGI, vLLM, Ollama
			"invoke", "invoke-with-response-stream", "converse", "converse-stream": // Bedrock
			return true
		case "chat":
			if before == "api" { // Ollama
				return true
			}
		}
		before = s
	}
	return false
}

// CanonicalPath is the path that Recognise judges by: lower case, without query and parameters.
// It is for comparing, never for forwarding.
func CanonicalPath(path string) string {
	return "/" + strings.Join(segments(path), "/")
}

// maxPathRounds bounds how many layers of percent-encoding are taken off.
const maxPathRounds = 3

// segments gives the canonical segments of a path.
func segments(path string) []string {
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	if !strings.HasPrefix(path, "/") {
		// The absolute form of HTTP/1.1: scheme://authority/path.
		if i := strings.Index(path, "://"); i >= 0 {
			path = path[i+3:]
			path = path[max(strings.IndexByte(path, '/'), 0):]
		}
	}
	b := []byte(path)
	for range maxPathRounds {
		n := decodePercent(b)
		if n == len(b) {
			break
		}
		b = b[:n]
	}
	for i, c := range b {
		switch {
		case c == '\\':
			b[i] = '/'
		case c >= 'A' && c <= 'Z':
			b[i] = c + 'a' - 'A'
		}
	}
	var out []string
	for s := range strings.SplitSeq(string(b), "/") {
		if i := strings.IndexByte(s, ';'); i >= 0 {
			s = s[:i]
		}
		switch s {
		case "", ".":
		case "..":
			if len(out) > 0 {
				out = out[:len(out)-1]
			}
		default:
			out = append(out, s)
		}
	}
	return out
}

// decodePercent takes one layer of escapes off in place and gives the new length.
func decodePercent(b []byte) int {
	n := 0
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c == '%' && i+2 < len(b) {
			hi, ok1 := hexDigit(b[i+1])
			lo, ok2 := hexDigit(b[i+2])
			if ok1 && ok2 {
				c = hi<<4 | lo
				i += 2
			}
		}
		b[n] = c
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
