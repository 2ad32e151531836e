package dialect

func (ollamaEmbed) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	return ollamaEmbedRequest.newScanner(Facts{NoChat: true, NoOutput: true}, maxDepth, sink)
}

func (ollamaEmbed) NewMeter(h ResponseHead, sink Sink) Meter {
	return ollamaEmbedAnswer.newMeter(h, sink)
}

// ollamaEmbedRequest is that of OpenAI's embeddings, which gateways have on /api/embeddings too, with
// the prompt that stood there first.
var ollamaEmbedRequest = func() request {
	r := embRequest
	r.schema = append([]node(nil), embRequest.schema...)
	r.schema[embRoot].fields = append([]field{{"prompt", embInput}}, r.schema[embRoot].fields...)
	return r
}()

var ollamaEmbedAnswer = func() answer {
	a := ollamaAnswer
	a.ends = false
	a.schema = append([]node(nil), a.schema...)
	a.schema[ollaRoot].fields = []field{{"prompt_eval_count", ollaInput}, {"usage", ollaUsage}, {"error", ollaError}}
	return a
}()
