package dialect

// openAICompletions is OpenAI's first API (POST /v1/completions), which vLLM, llama.cpp, DeepSeek
// and, for code (/v1/fim/completions), Mistral still speak. Its answers are Chat's, with a text where
// Chat has a message.
type openAICompletions struct{ inPath }

func (openAICompletions) Name() string { return "openai-completions" }

func (openAICompletions) Refusal(r Refusal) ([][2]string, []byte) { return openAIRefusal(r) }

func (d openAICompletions) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	f := d.facts()
	f.NoChat = true
	return compRequest.newScanner(f, maxDepth, sink)
}

func (openAICompletions) NewMeter(h ResponseHead, sink Sink) Meter {
	return completionAnswer.newMeter(h, sink)
}

// It is asked after Chat's, whose paths end in the same word.
func recogniseOpenAICompletions(c *call) Dialect {
	if at, ok := c.onOpenAI("completions"); ok {
		return openAICompletions{at}
	}
	return nil
}

// Places of a request body that Chat's have no like of.
const (
	compPrompt uint8 = chatNodes + iota
	compItem
	compToken
	compCap
	compAnswers
	compSuffix
	compNodes
)

var compRequest = request{
	schema: onChat(compSchema[:], chatSchema[:]), texts: onChat(make([]Part, compNodes), chatTexts[:]),
	items: onChat(make([]Item, compNodes), chatItems[:]), set: setCompletions, done: endCompletions,
	asks: &usageOption{chatStreamOptions, chatIncludeUsage},
}

var compSchema = [compNodes]node{
	chatRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
		{"model", chatModel}, {"stream", chatStream}, {"stream_options", chatStreamOptions},
		{"prompt", compPrompt}, {"suffix", compSuffix}, {"max_tokens", compCap}, {"n", compAnswers}, {"best_of", compAnswers},
	}},
	// A text, a list of texts, the tokens of one, or a list of lists of tokens.
	compPrompt:  {text: true, elem: compItem},
	compItem:    {text: true, elem: compToken},
	compToken:   {},
	compCap:     {kinds: kindNumber, want: "a whole number of at least 0"},
	compAnswers: {kinds: kindNumber, want: "a whole number of at least 1"},
	compSuffix:  {text: true},
}

func setCompletions(f *Facts, n uint8, k kinds, p []byte, at Span) string {
	switch n {
	case compPrompt:
		if k == kindString {
			f.Inputs++
		}
	case compItem:
		f.inputItem(k)
	case compToken:
		f.inputToken(k)
	case compCap:
		if k != kindNumber {
			break
		}
		v, ok := parseWhole(p)
		if !ok || v < 0 {
			return "must be " + compSchema[n].want
		}
		// Who wants to see the prompt alone (echo) asks for 0. That is no cap: 1 is the least.
		f.MaxOutput, f.HasMaxOutput = max(v, 1), true
	case compAnswers:
		if k != kindNumber {
			break
		}
		v, ok := asWhole(p)
		if !ok {
			return "must be " + compSchema[n].want
		}
		f.N = max(f.N, v) // all that best_of makes are billed, the n that are shown among them
	default:
		return setChat(f, n, k, p, at)
	}
	return ""
}

// endCompletions asks for n answers to each prompt.
func endCompletions(f *Facts, _ int64) {
	if prompts := max(f.Inputs, 1); f.N <= maxWhole/prompts {
		f.N *= prompts
	} else {
		f.N = maxWhole
	}
}
