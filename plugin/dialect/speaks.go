package dialect

import (
	"slices"
	"strings"
)

// Speaks gives the dialect to refuse a call in that no dialect knows: that of the API that its path
// seems to be of, so that the caller's SDK reads the reason; OpenAI's where nothing tells.
func Speaks(path string) Dialect {
	before := ""
	for _, s := range segments(path) {
		switch {
		case s.text == "anthropic", s.text == "messages" && before == "v1":
			return anthropicMessages{}
		case s.text == "cohere", s.text == "embed-jobs", before == "v2" && s.text != "openai":
			return cohereChat{}
		case strings.HasPrefix(s.text, "v1beta"), s.text == "google" && before == "publishers":
			return geminiGenerate{}
		case before == "model", s.text == "async-invoke", s.text == "model-invocation-job":
			return bedrockConverse{}
		}
		if _, verb, ok := cutVerb(s.text); ok && slices.Contains(geminiVerbs[:], verb) {
			return geminiGenerate{}
		}
		before = s.text
	}
	return OpenAIChat
}

// Batch says whether a path is about calls that are answered together and later, which nothing that
// comes back on it can meter.
func Batch(path string) bool {
	for _, s := range segments(path) {
		switch _, verb, _ := cutVerb(s.text); {
		case s.text == "batches", s.text == "model-invocation-job", s.text == "async-invoke",
			verb == "batchgeneratecontent", verb == "asyncbatchembedcontent":
			return true
		}
	}
	return false
}
