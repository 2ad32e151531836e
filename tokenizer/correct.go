package tokenizer

// Factor is true tokens for each estimated one, in parts of One.
type Factor int64

const (
	One Factor = 1 << 16
	// FactorLeast and FactorMost bound every Factor: no vocabulary in use is further from ours.
	FactorLeast = One / 2
	FactorMost  = One * 2
)

// Apply gives the corrected number of tokens, rounded up, from 0 to 2^53.
func (f Factor) Apply(tokens int) int {
	f = min(max(f, FactorLeast), FactorMost)
	n := min(max(int64(tokens), 0), maxTokens)
	// In two parts, so that nothing overflows.
	whole, rest := n>>16, n&0xffff
	return int(min(whole*int64(f)+(rest*int64(f)+int64(One)-1)>>16, maxTokens))
}

// PerMille is the factor in parts per thousand, for a gauge.
func (f Factor) PerMille() int { return int((f*1000 + One/2) / One) }

// seeds are factors to begin with, by the beginning of a model's name. They are relative to the
// encoding that Lookup gives, or to o200k where it gives none.
var seeds = [...]struct {
	prefix   string
	perMille int
}{
	// npm ai-tokenizer 1.0.6 (read 2026-10) counts Claude 3 to 4.5 as 1.1 times the vocabulary of Claude 2,
	// which is the one that approx-claude is fitted to.
	{"claude", 1463}, // of the newest, see below
	{"claude-2", 1000},
	{"claude-instant", 1000},
	{"claude-3", 1100},
	{"claude-opus-4", 1100},
	{"claude-sonnet-4", 1100},
	{"claude-haiku-4", 1100},
	// The vocabulary since Opus 4.7: 1.0 to 1.35 times the former (Anthropic, 2026-04); 1.33 over real
	// texts (claudecodecamp.com, 2026-04), from 1.00 for Chinese or Russian over 1.13 to 1.33 for code to 1.46
	// for English prose (sol.ava.dev, 2026-04-17).
	{"claude-opus-4-7", 1463},
	{"claude-opus-4.7", 1463},
	{"claude-opus-4-8", 1463},
	{"claude-opus-4.8", 1463},
	{"claude-sonnet-4-7", 1463},
	{"claude-sonnet-4.7", 1463},
	{"claude-sonnet-4-8", 1463},
	{"claude-sonnet-4.8", 1463},
	// Gemini 2 and 3 have Gemma 3's vocabulary, which is that of the encoding; Gemini 3.1 and 3.5 have
	// Gemma 4's (google/genai, _local_tokenizer_loader.py, read 2026-10), whose drift is not known.
	{"gemini", 1000},
	// Sums over classes of text against o200k (our own, 2026-10): DeepSeek 3 1.03 to 1.17, Qwen 3 1.00
	// to 1.42 (digits), Llama 3 1.00 to 1.17; ai-tokenizer has 1.1 for Llama 4, Kimi K2 and MiniMax.
	{"deepseek", 1060},
	{"qwen", 1060},
	{"qwen2", 1060},
	{"qwen2.5", 1060},
	{"qwen3", 1060},
	{"llama", 1100},
	{"meta-llama", 1100},
	{"kimi", 1100},
	{"minimax", 1100},
}

// Seed is the factor of a model as long as nothing is learned.
func Seed(model string) Factor {
	perMille := 1000
	if i := longest(len(seeds), bareName(model), func(i int) string { return seeds[i].prefix }); i >= 0 {
		perMille = seeds[i].perMille
	}
	return (One*Factor(perMille) + 500) / 1000
}

// Correction learns, for each model and class of traffic, how far the estimates of its input are off,
// from what providers report. It is for estimates only: a count that is exact needs none.
//
// Its caller keeps one for as long as it lives and hands it to nobody else (a worker has its own and
// learns what its own traffic shows); reads it by Factor when it plans a call; and after a call tells
// it by Learn the estimate before the correction and what the provider counted in the same way: for
// OpenAI prompt_tokens, for Anthropic input_tokens with both cache figures, for Gemini
// promptTokenCount. Calls that were not answered, or whose input was rewritten by others, are not to
// be told. The same calls in the same order give the same factors.
//
// The factor is a mean weighted by tokens over some sixteen calls. One call moves it by at most an
// eighth of the way to that call's own factor, whatever its size, and that factor is bounded too.
type Correction struct {
	table table[drift]
}

type drift struct {
	factor Factor
	weight int64 // of what was learned, in 1/256 tokens
}

// NewCorrection makes a Correction that remembers that many pairs of model and class. Each takes about
// 150 bytes. Where there is no more room, the pair goes that was learned from longest ago.
func NewCorrection(pairs int) *Correction {
	return &Correction{newTable[drift](pairs)}
}

// Factor is what estimates are to be multiplied by: what was learned for the pair, else for the model
// in any class, else Seed.
func (c *Correction) Factor(model, class string) Factor {
	if d := c.table.get(pair{model, class}); d != nil {
		return d.factor
	}
	if d := c.table.get(pair{model, ""}); d != nil {
		return d.factor
	}
	return Seed(model)
}

// maxLearned is the largest count that is taken for one: far above any context.
const maxLearned = 1 << 28

// Learn takes what a call was estimated at and what its provider reports. It gives false for
// figures that can't be: nothing is learned from them, and the caller may count them.
func (c *Correction) Learn(model, class string, estimated, reported int) bool {
	if estimated <= 0 || estimated > maxLearned || reported <= 0 || reported > maxLearned {
		return false
	}
	start := c.Factor(model, class)
	c.learn(pair{model, class}, start, estimated, reported)
	if class != "" {
		c.learn(pair{model, ""}, start, estimated, reported)
	}
	return true
}

func (c *Correction) learn(key pair, start Factor, estimated, reported int) {
	d, fresh := c.table.put(key)
	if fresh {
		*d = drift{factor: start}
	}
	d.learn(int64(estimated), int64(reported))
}

// Of the weight of what was learned, a sixteenth is forgotten with each call. A call weighs as its
// tokens, but at least a 31st of the rest, so that small calls are heard after large ones, and at most
// a seventh, which makes it an eighth of the sum.
const (
	forget   = 16
	lightest = 31
	heaviest = 7
)

func (d *drift) learn(estimated, reported int64) {
	ratio := int64(min(max(Factor(reported<<16/estimated), FactorLeast), FactorMost))
	w := estimated << 8
	if d.weight == 0 { // what the start factor rests on weighs as seven calls
		d.weight = w * heaviest
	} else {
		d.weight -= d.weight / forget
	}
	w = min(max(w, d.weight/lightest, 1), max(d.weight/heaviest, 1))
	sum := d.weight + w
	d.factor += Factor((ratio - int64(d.factor)) * w / sum) // below 2^17 * 2^38
	d.weight = sum
}
