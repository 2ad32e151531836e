package dialect

// openAIChat is OpenAI's Chat Completions API (POST /v1/chat/completions), which Azure, vLLM,
// Mistral, Groq, DeepSeek and many gateways speak too.
type openAIChat struct{ inPath }

func (openAIChat) Name() string { return "openai-chat" }

func (openAIChat) Refusal(r Refusal) ([][2]string, []byte) { return openAIRefusal(r) }

func (d openAIChat) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	return chatRequest.newScanner(d.facts(), maxDepth, sink)
}

func (openAIChat) NewMeter(h ResponseHead, sink Sink) Meter { return chatAnswer.newMeter(h, sink) }

var chatRequest = request{schema: chatSchema[:], texts: chatTexts[:], items: chatItems[:], set: setChat,
	asks: &usageOption{chatStreamOptions, chatIncludeUsage}}

func setChat(f *Facts, n uint8, k kinds, p []byte, at Span) string {
	switch n {
	case chatStream:
		f.Stream = k == kindTrue
	case chatIncludeUsage:
		f.IncludeUsage = k == kindTrue
	case chatModel:
		f.setModel(k, p, at)
	case chatCap, chatN:
		if k != kindNumber {
			break
		}
		v, ok := asWhole(p)
		if !ok {
			return "must be " + chatSchema[n].want
		}
		if n == chatN {
			f.N = v
			break
		}
		f.MaxOutput, f.HasMaxOutput = max(f.MaxOutput, v), true
	}
	return ""
}

func recogniseOpenAIChat(c *call) Dialect {
	if c.ends("deployments", "chat", "completions") || c.ends("engines", "chat", "completions") {
		return nil // the completions of a model that is called chat
	}
	if at, ok := c.onOpenAI("chat", "completions"); ok {
		return openAIChat{at}
	}
	return nil
}
