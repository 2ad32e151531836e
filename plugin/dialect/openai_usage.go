package dialect

import (
	"github.com/tidwall/gjson"

	"github.com/emmer-proxy/emmer/bucket"
)

// usageRecord is what one or more usage records say.
type usageRecord struct {
	seen                  bool
	input, cached, output int64
}

// maxUsage bounds a figure that can be true: 2^40 tokens.
const maxUsage = 1 << 40

// merge takes the larger of each figure: records are cumulative, so they repeat and are never
// added; the first may only mark the place, the last may only carry details.
func (u *usageRecord) merge(v usageRecord) {
	u.seen = true
	u.input = max(u.input, v.input)
	u.cached = max(u.cached, v.cached)
	u.output = max(u.output, v.output)
}

func (u usageRecord) figures() Usage {
	return Usage{
		Input:       bucket.Tokens(u.input),
		CachedInput: bucket.Tokens(min(u.cached, u.input)),
		Output:      bucket.Tokens(u.output),
	}
}

// readOpenAIUsage reads a usage object that the scanner has found valid. It gives nothing for null,
// for an object without token counts and for one with a figure that cannot be true.
//
// Cached input is part of prompt_tokens. It stands in prompt_tokens_details.cached_tokens (OpenAI),
// prompt_cache_hit_tokens (DeepSeek) or cached_tokens (Moonshot). Reasoning is part of
// completion_tokens, except where the total shows that it came on top (xAI).
func readOpenAIUsage(raw []byte) usageRecord {
	if len(raw) == 0 || raw[0] != '{' {
		return usageRecord{}
	}
	r := usageReader{raw: raw}
	input := r.figure("prompt_tokens")
	output := r.figure("completion_tokens")
	if r.bad || r.found == 0 {
		return usageRecord{}
	}
	cached := max(r.figure("prompt_tokens_details.cached_tokens"),
		r.figure("prompt_cache_hit_tokens"), r.figure("cached_tokens"))
	reasoning := r.figure("completion_tokens_details.reasoning_tokens")
	total := r.figure("total_tokens")
	if r.bad {
		return usageRecord{}
	}
	if reasoning > 0 && total == input+output+reasoning {
		output += reasoning
	}
	return usageRecord{seen: true, input: input, cached: cached, output: output}
}

type usageReader struct {
	raw   []byte
	found int
	bad   bool // a figure is no whole number between 0 and maxUsage
}

// figure reads one count; what is absent or null reads as 0.
func (r *usageReader) figure(path string) int64 {
	v := gjson.GetBytes(r.raw, path)
	if !v.Exists() || v.Type == gjson.Null {
		return 0
	}
	n, ok := int64(0), false
	if v.Type == gjson.Number {
		n, ok = parseWhole([]byte(v.Raw))
	}
	if !ok || n < 0 || n > maxUsage {
		r.bad = true
		return 0
	}
	r.found++
	return n
}
