package dialect

// openAIChat is OpenAI's Chat Completions API (POST /v1/chat/completions), which Azure, vLLM,
// Mistral, Groq, DeepSeek and many gateways speak too.
type openAIChat struct{}

func (openAIChat) Name() string { return "openai-chat" }

func (openAIChat) Refusal(r Refusal) (contentType string, body []byte) { return openAIRefusal(r) }

// chatScanner reads a request.
type chatScanner struct {
	json  jsonScanner
	sink  Sink
	facts Facts
	// ending is the item that ends with the text at hand: one that is a string, not an object.
	ending Item
}

func (openAIChat) NewScanner(maxDepth int, sink Sink) Scanner {
	s := &chatScanner{sink: sink, facts: Facts{N: 1}}
	s.json = newJSONScanner(chatSchema[:], s, maxDepth, false)
	return s
}

func (s *chatScanner) Write(p []byte) *Fault {
	for len(p) > 0 && s.json.fault == nil {
		if s.json.state != docDone {
			p = p[s.json.write(p):]
			continue
		}
		// Behind the document only white space may stand: a decoder that reads on would see more.
		if !isSpace(p[0]) {
			s.json.syntax(0)
			break
		}
		s.json.base++
		p = p[1:]
	}
	return s.json.fault
}

func (s *chatScanner) Close() (Facts, *Fault) {
	if s.json.fault == nil && s.json.state != docDone {
		message := "the body is not valid JSON: it ends too early"
		if s.json.base == 0 {
			message = "the body is empty; send a JSON object"
		}
		s.json.fail("invalid_json", "", message)
	}
	if s.json.fault != nil {
		return Facts{}, s.json.fault
	}
	return s.facts, nil
}

func (s *chatScanner) begin(n uint8, k kinds) string {
	switch n {
	case chatStream:
		s.facts.Stream = k == kindTrue
	case chatIncludeUsage:
		s.facts.IncludeUsage = k == kindTrue
	}
	item := chatItems[n]
	switch {
	case item == 0, k&(kindObject|kindArray) != 0: // ended by end
	case item == Properties, item == Enum: // no such thing
	case k == kindNull && absentIfNull(item):
	case k == kindString && chatSchema[n].text, chatSchema[n].raw&k != 0:
		s.ending = item // ended by its text
	default:
		s.finish(item)
	}
	return ""
}

// absentIfNull says that null means none, and not one without content.
func absentIfNull(item Item) bool {
	switch item {
	case Message, Tool, Property:
		return false
	}
	return true
}

func (s *chatScanner) end(n uint8, k kinds, empty bool) {
	switch item := chatItems[n]; item {
	case Properties:
		if k == kindObject && !empty {
			s.finish(item)
		}
	case Enum:
		if k == kindArray && !empty {
			s.finish(item)
		}
	default:
		s.finish(item)
	}
}

func (s *chatScanner) finish(item Item) {
	if item != 0 && s.sink != nil {
		s.sink.End(item)
	}
}

func (s *chatScanner) key(n uint8, p []byte, last bool) {
	if s.sink == nil {
		return
	}
	part := Schema
	if n == chatProperties {
		part = PropertyName
	}
	s.sink.Text(part, p, last)
}

func (s *chatScanner) text(n uint8, p []byte, last bool) {
	if s.sink != nil {
		s.sink.Text(chatTexts[n], p, last)
	}
	if last && s.ending != 0 {
		s.finish(s.ending)
		s.ending = 0
	}
}

func (s *chatScanner) raw(n uint8, p []byte, last bool) { s.text(n, p, last) }

func (s *chatScanner) value(n uint8, k kinds, p []byte) string {
	switch n {
	case chatModel:
		s.facts.Model = string(unescape(nil, p))
		s.facts.ModelSpan = Span{s.json.start, s.json.start + int64(len(p)) + 2}
	case chatCap, chatN:
		v, ok := parseWhole(p)
		if !ok || v < 1 {
			return "must be " + chatSchema[n].want
		}
		if n == chatN {
			s.facts.N = v
			break
		}
		s.facts.MaxOutput, s.facts.HasMaxOutput = max(s.facts.MaxOutput, v), true
	}
	return ""
}
