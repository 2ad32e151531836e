package tokenizer

import (
	"math"
	"testing"
)

// Published examples, and what was measured on the services.
func TestImageCosts(t *testing.T) {
	for _, c := range []struct {
		model string
		w, h  int64
		high  bool
		want  int64
	}{
		// OpenAI's guide (images-vision, read 2026-10).
		{"gpt-4o", 1024, 1024, true, 765},
		{"gpt-4o", 2048, 4096, true, 1105},
		{"gpt-4.1-mini", 1024, 1024, false, 1659}, // 1024 patches
		{"gpt-4.1-mini", 1800, 2400, false, 2353}, // 1452 patches, 2,352.24 tokens
		// community.openai.com t/1262691 (2025-05), less the text of 12 (10 for o3).
		{"gpt-4o", 128, 64, true, 255},
		{"gpt-4o-mini", 128, 64, true, 8500},
		{"gpt-4.1-mini", 128, 64, true, 13},
		{"gpt-4.1-nano", 128, 64, true, 20},
		{"o4-mini", 128, 64, true, 14},
		// JOHNISKING/image-token-cost (2026-10).
		{"gpt-5.5", 256, 256, false, 77},
		{"gpt-5.5", 512, 512, false, 308},
		{"gpt-5.5", 768, 768, false, 692},
		{"gpt-5.5", 1024, 1024, false, 1229},
		{"gpt-5.5", 1280, 720, false, 1104},
		{"gpt-5.5", 1920, 1080, false, 2448},
		{"gpt-5.5", 1080, 1920, false, 2448},
		{"gpt-5.5", 2560, 1440, false, 4320},
		{"gpt-5.5", 3840, 2160, false, 9792},
		{"gpt-5.5", 4032, 3024, false, 11868},
		{"gpt-6", 4032, 3024, false, 14364},
		{"gpt-6", 1920, 1080, true, 2448},
		{"gpt-6", 2560, 1440, true, 2931},
		{"gpt-6", 3840, 2160, true, 2931},
		{"gpt-6", 4032, 3024, true, 2942},
		// The same, less the prompt of 65 (Claude Haiku 4.5) and 77 (Claude 5.5). The tool had shrunk what
		// is larger than 2,000 pixels and said so in 32 or 40 more tokens.
		{"claude-haiku-4-5", 256, 256, false, 100},
		{"claude-haiku-4-5", 1024, 1024, false, 1369},
		{"claude-haiku-4-5", 1280, 720, false, 1196},
		{"claude-haiku-4-5", 1920, 1080, false, 1560},
		{"claude-haiku-4-5", 2000, 1125, false, 1657 - 65 - 32},
		{"claude-haiku-4-5", 2000, 1500, false, 1661 - 65 - 32},
		{"claude-opus-5-5", 1024, 1024, false, 1369},
		{"claude-opus-5-5", 1920, 1080, false, 2691},
		{"claude-opus-5-5", 2000, 1125, false, 3069 - 77 - 40},
		{"claude-opus-5-5", 2000, 1500, false, 4005 - 77 - 40},
		// Google's guide (image-understanding, read 2026-10): 3 by 2 crops of 360.
		{"gemini-2.5-flash", 384, 384, false, 258},
		{"gemini-2.5-flash", 960, 540, false, 6 * 258},
		{"gemini-3-pro", 4032, 3024, false, 1120},
	} {
		r := RatesOf(c.model)
		if got := r.imageOf(c.w, c.h, c.high); got != c.want {
			t.Errorf("%s: %d by %d, high %v: %d tokens, want %d", c.model, c.w, c.h, c.high, got, c.want)
		}
	}
}

// The rule of OpenAI's guide in its own terms: a factor, then whole patches.
func referencePatches32(w, h, budget float64) int64 {
	n := math.Ceil(w/32) * math.Ceil(h/32)
	if n <= budget {
		return int64(n)
	}
	r := math.Sqrt(32 * 32 * budget / (w * h))
	a, b := w*r/32, h*r/32
	r *= min(math.Floor(a)/a, math.Floor(b)/b)
	return int64(math.Ceil(math.Round(w*r/32*1e6)/1e6) * math.Ceil(math.Round(h*r/32*1e6)/1e6))
}

// The largest copy that fits, by trying all.
func referencePatches28(w, h, edge, budget int64) int64 {
	w, h = shrink(w, h, edge)
	long, short := max(w, h), min(w, h)
	for side := long; ; side-- {
		other := short
		if side < long {
			other = max((short*side+long/2)/long, 1)
		}
		if n := over(side, 28) * over(other, 28); n <= budget || side == 1 {
			return n
		}
	}
}

func TestPatchesAgreeWithTheReference(t *testing.T) {
	for _, budget := range []int64{1536, 2500, 10000} {
		for w := int64(1); w < 9000; w += 193 {
			for h := int64(1); h < 9000; h += 211 {
				if max(w, h) > 40*min(w, h) {
					continue // no whole patch is left of the shorter side
				}
				if got, want := patches32(w, h, 0, budget), referencePatches32(float64(w), float64(h), float64(budget)); got != want {
					t.Fatalf("%d by %d, %d patches at most: %d, reference %d", w, h, budget, got, want)
				}
			}
		}
	}
	for w := int64(1); w < 5000; w += 173 {
		for h := int64(1); h < 5000; h += 181 {
			for _, c := range [][2]int64{{1568, 1568}, {2576, 4784}} {
				if got, want := patches28(w, h, c[0], c[1]), referencePatches28(w, h, c[0], c[1]); got != want {
					t.Fatalf("%d by %d: %d, reference %d", w, h, got, want)
				}
			}
		}
	}
}

// No image of any shape costs more than its scheme's bound, and the figure for an unknown size is
// not below what an ordinary one of 1024 by 1024 costs.
func TestImagesAreBounded(t *testing.T) {
	sides := []int64{1, 2, 27, 28, 29, 384, 385, 512, 768, 1024, 1568, 2048, 4032, 6000, 65535, 1 << 20, 1 << 32}
	for i := range families {
		r := families[i].rates
		most := int64(0)
		for _, w := range sides {
			for _, h := range sides {
				for _, high := range []bool{false, true} {
					n := r.imageOf(w, h, high)
					if n <= 0 {
						t.Errorf("%s: %d by %d costs %d", families[i].prefix, w, h, n)
					}
					if min(w, h)*4 >= max(w, h) && max(w, h) <= 6000 {
						most = max(most, n)
					}
				}
			}
		}
		if most > 60000 {
			t.Errorf("%s: an image costs up to %d", families[i].prefix, most)
		}
		if n := r.imageOf(1024, 1024, false); int64(r.ImageUnknown) < n {
			t.Errorf("%s: 1024 by 1024 costs %d, an unknown image %d", families[i].prefix, n, r.ImageUnknown)
		}
	}
}

func TestRoot(t *testing.T) {
	for _, n := range []int64{0, 1, 2, 3, 4, 8, 9, 15, 16, 17, 1<<40 - 1, 1 << 40, 1<<40 + 1, 1 << 60, math.MaxInt64} {
		x := root(n)
		if x*x > n || n < 1<<61 && (x+1)*(x+1) <= n {
			t.Errorf("root of %d: %d", n, x)
		}
	}
}

func TestRatesOf(t *testing.T) {
	for _, c := range []struct {
		model string
		want  *Rates
	}{
		{"gpt-4o-2024-11-20", &gpt4o}, {"gpt-4o-mini-2024-07-18", &gpt4oMini}, {"ft:gpt-4o-mini:acme::x", &gpt4oMini},
		{"gpt-4-turbo", &gpt4}, {"gpt-4", &gpt4}, {"gpt-3.5-turbo-0301", &gpt35of0301}, {"gpt-3.5-turbo", &gpt4},
		{"openai/gpt-5", &gpt5}, {"gpt-5.1", &gpt5}, {"gpt-5.2-2025-12-11", &gpt52}, {"gpt-5.4-mini", &gpt5Mini}, {"gpt-5.5", &gpt54},
		{"o3-mini", &oSeries}, {"o4-mini", &o4Mini},
		{"claude-3-5-sonnet-20241022", &claude4}, {"claude-3.7-sonnet", &claude4}, {"anthropic/claude-3-haiku", &claude3Haiku},
		{"eu.anthropic.claude-sonnet-4-5-20250929-v1:0", &claude45}, {"claude-opus-4-1@20250805", &claude4}, {"Claude-Opus-4.6", &claude45},
		{"claude-opus-4-7", &claude47}, {"claude-opus-5-5", &claude47}, {"claude-sonnet-5", &claude47},
		{"models/gemini-2.5-pro", &gemini2}, {"gemini-3-pro-preview", &gemini3}, {"gemini-1.5-flash", &gemini1},
		{"deepseek-chat", &deepseek}, {"meta.llama3-1-70b-instruct-v1:0", &llama}, {"meta-llama/Llama-4-Scout", &llama4}, {"Llama-3.3-70B", &llama},
		{"us.amazon.nova-lite-v1:0", &nova}, {"mistral.mistral-large-2402-v1:0", &mistral}, {"grok-4-fast", &grok4},
		{"", &openModel}, {"qwen3-32b", &openModel}, {"gpt-4omega", &openModel}, {"o12", &openModel},
	} {
		if RatesOf(c.model) != *c.want {
			t.Errorf("%q has other rates", c.model)
		}
	}
}

// Every model that has an encoding has a row of its own, so that none falls through by a spelling.
func TestEveryKnownModelHasRates(t *testing.T) {
	for _, m := range models {
		if len(m.prefix) > 14 && m.prefix[:14] == "text-embedding" || m.prefix == "gpt-image" {
			continue // not asked by chat
		}
		if RatesOf(m.prefix) == openModel {
			t.Errorf("%s has no rates", m.prefix)
		}
	}
}
