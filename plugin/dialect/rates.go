package dialect

// RateHeaders are the names under which callers of an API look for what is left of their limits.
type RateHeaders struct {
	Requests, Tokens RateNames
	// Input and Output are empty where an API has no names for them: then Tokens stands for all.
	Input, Output RateNames
	// Dated says that a reset is a point in time, by RFC 3339; else it is a span, as in 1m30s.
	Dated bool
}

// RateNames are the headers of one limit: how much it gives, what is left of that, and when it is full
// again.
type RateNames struct{ Limit, Remaining, Reset string }

// RateHeaders are OpenAI's, which most providers have (developers.openai.com, rate limits, read 2026-10).
// An API with others has its own method.
func (inPath) RateHeaders() RateHeaders { return openAIRates }

var openAIRates = RateHeaders{
	Requests: RateNames{"x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"},
	Tokens:   RateNames{"x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"},
}

// anthropicRates: platform.claude.com, rate limits, read 2026-10.
var anthropicRates = RateHeaders{
	Requests: RateNames{"anthropic-ratelimit-requests-limit", "anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"},
	Tokens:   RateNames{"anthropic-ratelimit-tokens-limit", "anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"},
	Input:    RateNames{"anthropic-ratelimit-input-tokens-limit", "anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"},
	Output:   RateNames{"anthropic-ratelimit-output-tokens-limit", "anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"},
	Dated:    true,
}
