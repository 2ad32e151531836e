package dialect

import "github.com/tidwall/gjson"

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
	var r usageReader
	r.read(gjson.ParseBytes(raw), usagePaths[:])
	input, output := r.figures[promptTokens], r.figures[completionTokens]
	if !r.found[promptTokens] && !r.found[completionTokens] {
		return usageRecord{}
	}
	cached := max(r.figures[promptCached], r.figures[cacheHit], r.figures[cachedTokens])
	reasoning, total := r.figures[reasoningTokens], r.figures[totalTokens]
	if r.bad {
		return usageRecord{}
	}
	if reasoning > 0 && total == input+output+reasoning {
		output += reasoning
	}
	return usageRecord{seen: true, input: input, cached: cached, output: output, reasoning: reasoning}
}

// Figures of a usage record.
const (
	promptTokens = iota
	completionTokens
	totalTokens
	cacheHit
	cachedTokens
	promptCached
	reasoningTokens
)

// usagePath leads to a figure, or to an object with figures.
type usagePath struct {
	name   string
	figure int
	within []usagePath
}

var usagePaths = [...]usagePath{
	{name: "prompt_tokens", figure: promptTokens},
	{name: "completion_tokens", figure: completionTokens},
	{name: "total_tokens", figure: totalTokens},
	{name: "prompt_cache_hit_tokens", figure: cacheHit},
	{name: "cached_tokens", figure: cachedTokens},
	{name: "prompt_tokens_details", within: []usagePath{{name: "cached_tokens", figure: promptCached}}},
	{name: "completion_tokens_details", within: []usagePath{{name: "reasoning_tokens", figure: reasoningTokens}}},
}

// maxFigures is more than any API's records have.
const maxFigures = 24

type usageReader struct {
	figures [maxFigures]int64
	found   [maxFigures]bool
	bad     bool // a figure is no whole number between 0 and maxUsage
}

// read takes the figures that paths lead to, each from the first place that bears its name. What is
// absent or null reads as 0.
func (r *usageReader) read(object gjson.Result, paths []usagePath) {
	seen := 0
	object.ForEach(func(key, v gjson.Result) bool {
		for i := range paths {
			if paths[i].name != key.Str || seen&(1<<i) != 0 {
				continue
			}
			seen |= 1 << i
			if paths[i].within == nil {
				r.take(paths[i].figure, v)
			} else if v.IsObject() {
				r.read(v, paths[i].within)
			}
		}
		return true
	})
}

func (r *usageReader) take(figure int, v gjson.Result) {
	if v.Type == gjson.Null {
		return
	}
	n, ok := int64(0), false
	if v.Type == gjson.Number {
		n, ok = parseWhole([]byte(v.Raw))
	}
	if !ok || n < 0 || n > maxUsage {
		r.bad = true
		return
	}
	r.figures[figure], r.found[figure] = n, true
}
