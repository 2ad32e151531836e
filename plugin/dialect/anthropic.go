package dialect

// anthropicMessages is Anthropic's Messages API (POST /v1/messages), which DeepSeek, Moonshot, vLLM
// and many gateways speak too, and its form on Google's Vertex AI, where the path names the model.
// POST /v1/messages/count_tokens asks how long a prompt is and costs nothing.
type anthropicMessages struct {
	inPath
	counts bool // tokens; no model works
}

func (d anthropicMessages) Name() string {
	if d.counts {
		return "anthropic-count-tokens"
	}
	return "anthropic-messages"
}

func (anthropicMessages) Refusal(r Refusal) ([][2]string, []byte) { return anthropicRefusal(r) }

func (anthropicMessages) CacheApart() bool { return true }

func (anthropicMessages) RateHeaders() RateHeaders { return anthropicRates }

func (d anthropicMessages) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	facts := d.facts()
	facts.Free = d.counts
	return claudeRequest.newScanner(facts, maxDepth, sink)
}

func (d anthropicMessages) NewMeter(h ResponseHead, sink Sink) Meter {
	if d.counts {
		return claudeCount.newMeter(h, sink)
	}
	return claudeAnswer.newMeter(h, sink)
}

// A batch (POST .../messages/batches) is none of these: its answer comes hours later by other calls,
// so no reservation can be settled with it. Like every path that no dialect knows it is refused, or
// passes unmetered where routes.unknown says pass. .../threads/{id}/messages is OpenAI's.
func recogniseAnthropic(c *call) Dialect {
	if c.method != "POST" {
		return nil
	}
	switch {
	case c.ends("v1", "messages"), c.ends("anthropic", "messages"), len(c.seg) == 1 && c.ends("messages"):
		return anthropicMessages{}
	case c.ends("messages", "count_tokens"):
		return anthropicMessages{counts: true}
	}
	return recogniseVertexClaude(c)
}

// recogniseVertexClaude knows .../publishers/anthropic/models/{model}:rawPredict and
// :streamRawPredict. The model count-tokens is a service, and the body names the model.
func recogniseVertexClaude(c *call) Dialect {
	of, verb := c.verb()
	if verb != "rawpredict" && verb != "streamrawpredict" || len(c.seg) < 4 {
		return nil
	}
	before := call{seg: c.seg[:len(c.seg)-1]}
	if !before.ends("publishers", "anthropic", "models") {
		return nil
	}
	if of.text == "count-tokens" {
		return anthropicMessages{counts: true}
	}
	return anthropicMessages{inPath: inPath{model: c.named(of), at: of.at, stream: verb == "streamrawpredict"}}
}

var claudeRequest = request{schema: claudeSchema, texts: claudeTexts, items: claudeItems, set: setClaude, media: &claudeMedia}

func setClaude(f *Facts, n uint8, k kinds, p []byte, at Span) string {
	switch n {
	case clStream:
		f.Stream = f.Stream || k == kindTrue
	case clModel:
		f.setModel(k, p, at)
	case clMax, clBudget:
		if k != kindNumber {
			break
		}
		// 0 fills the cache and writes nothing, where the provider knows that; where it doesn't, the model
		// writes what it likes. What is absent is the provider's to refuse.
		v, ok := parseWhole(p)
		if !ok || v < 0 {
			return "must be " + claudeSchema[n].want
		}
		f.MaxOutput, f.HasMaxOutput = max(f.MaxOutput, v), true
	}
	return ""
}

// anthropicRefusal writes {"type":"error","error":{"type","message"}}. Anthropic's SDKs choose their
// error by the status (_make_status_error of anthropic 2.14 for Python, APIError.generate of that for
// TypeScript): 400 BadRequestError, 401 AuthenticationError, 403 PermissionDeniedError, 404
// NotFoundError, 413 RequestTooLargeError, 429 RateLimitError, 503 ServiceUnavailableError, other 5xx
// InternalServerError, and APIStatusError for 402 and 415.
func anthropicRefusal(r Refusal) (headers [][2]string, body []byte) {
	b := make([]byte, 0, 80+len(r.Message))
	b = append(b, `{"type":"error","error":{"type":`...)
	b = appendQuoted(b, anthropicErrorType(r.HTTPStatus()))
	b = append(b, `,"message":`...)
	b = appendQuoted(b, r.Message)
	b = append(b, "}}\n"...)
	return jsonHeaders(), b
}

// anthropicErrorType is the type that Anthropic's API gives an error of that status
// (platform.claude.com, errors, read 2026-10).
func anthropicErrorType(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 402:
		return "billing_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	case 504:
		return "timeout_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}
