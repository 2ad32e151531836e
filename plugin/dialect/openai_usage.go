package dialect

import "github.com/tidwall/gjson"

// readOpenAIUsage reads a usage object that the scanner has found valid: of Chat and Completions
// (prompt_tokens, completion_tokens), or of Responses, Images and Audio (input_tokens,
// output_tokens). It gives nothing for null, for an object without token counts and for one with a
// figure that cannot be true.
//
// Cached input is part of the input. It stands in prompt_tokens_details.cached_tokens (OpenAI),
// prompt_cache_hit_tokens (DeepSeek) or cached_tokens (Moonshot). Reasoning is part of the output,
// except where the total shows that it came on top: xAI names it, Google's compatible API (and
// gateways that translate its own) only adds it to the total.
func readOpenAIUsage(raw []byte) usageRecord {
	r, ok := readUsage(raw, usagePaths[:])
	if !ok || !r.found[promptTokens] && !r.found[completionTokens] {
		return usageRecord{}
	}
	return r.record()
}

// readEmbeddingUsage reads the usage of embeddings. Some report a total and nothing else (Voyage),
// some both (OpenAI, Jina). Nothing is written, so a larger total is of input too.
func readEmbeddingUsage(raw []byte) usageRecord {
	r, ok := readUsage(raw, usagePaths[:])
	if !ok || !r.found[promptTokens] && !r.found[totalTokens] {
		return usageRecord{}
	}
	input := max(r.figures[promptTokens], r.figures[totalTokens])
	return usageRecord{seen: true, input: input, cached: r.figures[cachedTokens]}
}

// Figures of a usage record.
const (
	promptTokens = iota
	completionTokens
	totalTokens
	cachedTokens
	cacheWrites
	audioHeard
	reasoningTokens
	audioSpoken
	webSearches
)

// soundHeard is found where a length of sound is given, whatever it is. No other API has this figure.
const soundHeard = maxFigures - 1

// usagePath leads to a figure, or to an object with figures. Of several paths to one figure the
// largest counts.
type usagePath struct {
	name   string
	figure int
	within []usagePath
}

var usagePaths = [...]usagePath{
	{name: "prompt_tokens", figure: promptTokens},
	{name: "input_tokens", figure: promptTokens},
	{name: "completion_tokens", figure: completionTokens},
	{name: "output_tokens", figure: completionTokens},
	{name: "total_tokens", figure: totalTokens},
	{name: "prompt_cache_hit_tokens", figure: cachedTokens},
	{name: "cached_tokens", figure: cachedTokens},
	{name: "prompt_tokens_details", within: inputDetails},
	{name: "input_tokens_details", within: inputDetails},
	{name: "input_token_details", within: inputDetails},
	{name: "completion_tokens_details", within: outputDetails},
	{name: "output_tokens_details", within: outputDetails},
	{name: "output_token_details", within: outputDetails},
	{name: "num_search_queries", figure: webSearches},  // Perplexity
	{name: "num_sources_used", figure: webSearches},    // xAI
	{name: "prompt_audio_seconds", figure: soundHeard}, // Mistral
}

var (
	inputDetails = []usagePath{
		{name: "cached_tokens", figure: cachedTokens},
		{name: "cache_write_tokens", figure: cacheWrites},
		{name: "audio_tokens", figure: audioHeard},
	}
	outputDetails = []usagePath{
		{name: "reasoning_tokens", figure: reasoningTokens},
		{name: "audio_tokens", figure: audioSpoken},
	}
)

// readUsage reads the figures of an object; false where it is none, or says what cannot be true.
func readUsage(raw []byte, paths []usagePath) (r usageReader, ok bool) {
	if len(raw) == 0 || raw[0] != '{' {
		return r, false
	}
	r.read(gjson.ParseBytes(raw), paths)
	return r, !r.bad
}

// maxFigures is more than any API's records have.
const maxFigures = 24

type usageReader struct {
	figures [maxFigures]int64
	found   [maxFigures]bool
	bad     bool // a figure is no whole number between 0 and maxUsage
}

func (r *usageReader) record() usageRecord {
	f := &r.figures
	u := usageRecord{seen: true,
		input: f[promptTokens], cached: f[cachedTokens], write: f[cacheWrites], heard: f[audioHeard],
		output: f[completionTokens], reasoning: f[reasoningTokens], spoken: f[audioSpoken],
		searches: f[webSearches],
	}
	// A total above the two is output that was left out, unless it is the cache, told apart from the input.
	if over := f[totalTokens] - u.input - u.output; over > 0 && over != u.cached && over != u.write && over != u.cached+u.write {
		if r.found[soundHeard] {
			u.input, u.heard = u.input+over, over // Mistral leaves the sound out of its prompt
		} else {
			u.output, u.reasoning = u.output+over, max(u.reasoning, over)
		}
	}
	return u
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
	if figure == soundHeard {
		r.found[figure] = true
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
	r.figures[figure], r.found[figure] = max(r.figures[figure], n), true
}
