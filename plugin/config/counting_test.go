package config

import (
	"testing"

	"github.com/emmer-proxy/emmer/tokenizer"
)

// TestWhoseRatesAModelHas: its name tells, or an alias, or the tokenizer that it is configured with;
// else it has those of an open model.
func TestWhoseRatesAModelHas(t *testing.T) {
	for _, x := range []struct{ model, settings, encoding, like string }{
		{"gpt-4o", `{}`, "o200k_base", "gpt-4o"},
		{"openai/gpt-4-turbo", `{}`, "cl100k_base", "gpt-4"},
		{"main", `{"aliases": ["first", "gpt-4.1-mini", "gpt-4"]}`, "o200k_base", "gpt-4.1-mini"},
		{"main", `{"tokenizer": "o200k_base"}`, "o200k_base", "gpt-4o"},
		{"main", `{"tokenizer": "cl100k_base"}`, "cl100k_base", "gpt-4"},
		{"main", `{"tokenizer": "o200k_harmony"}`, "o200k_harmony", "gpt-oss"},
		{"main", `{"tokenizer": "approx-claude"}`, "approx-claude", "claude"},
		{"main", `{"tokenizer": "approx-gemma"}`, "approx-gemma", "gemini"},
		{"main", `{"tokenizer": "approx-o200k"}`, "approx-o200k", "gpt-4o"},
		{"main", `{"tokenizer": "approx-cl100k"}`, "approx-cl100k", "gpt-4"},
		{"llama-3", `{"tokenizer": "approx-cl100k"}`, "approx-cl100k", "llama-3"},
		{"main", `{}`, "approx-o200k", ""},
		{"gpt-4o", `{"tokenizer": "approx-o200k"}`, "approx-o200k", "gpt-4o"},
		{"gpt-4o", `{"tokenizer": "cl100k_base", "prompt": {"like": "claude-3-opus"}}`, "cl100k_base", "claude-3-opus"},
	} {
		m := parse(t, doc("models", `{"m-1": {}, "`+x.model+`": `+x.settings+`}`)).Models[1]
		if m.Encoding.Name() != x.encoding || m.Rates != tokenizer.RatesOf(x.like) {
			t.Errorf("%s %s: %s, %+v", x.model, x.settings, m.Encoding.Name(), m.Rates)
		}
	}
	for _, name := range tokenizer.Names() {
		if m := parse(t, doc("models", `{"m-1": {"tokenizer": "`+name+`"}}`)).Models[0]; m.Encoding.Name() != name {
			t.Errorf("%s: %s", name, m.Encoding.Name())
		}
	}
}

func TestWaysToCountImages(t *testing.T) {
	base := tokenizer.RatesOf("gpt-4.1-mini") // patches
	for _, x := range []struct {
		image string
		want  func(*tokenizer.Rates)
	}{
		{`{}`, func(*tokenizer.Rates) {}},
		{`{"unknown": 5}`, func(r *tokenizer.Rates) { r.ImageUnknown = 5 }},
		{`{"tiles": {"base": 1, "tile": 2}}`, func(r *tokenizer.Rates) {
			r.ImageScheme, r.ImageBase, r.ImageTile, r.ImageLow, r.ImageScale, r.ImagePatches = tokenizer.ImageTiles, 1, 2, 1, 0, 0
		}},
		{`{"crops": {"crop": 2}, "low": 9}`, func(r *tokenizer.Rates) {
			r.ImageScheme, r.ImageTile, r.ImageLow, r.ImageScale, r.ImagePatches = tokenizer.ImageCrops, 2, 9, 0, 0
		}},
		{`{"low": 9, "patches": {}}`, func(r *tokenizer.Rates) { r.ImageLow, r.ImageScale, r.ImagePatches = 9, 1000, 0 }},
	} {
		want := base
		x.want(&want)
		m := parse(t, doc("models", `{"m-1": {}, "gpt-4.1-mini": {"prompt": {"image": `+x.image+`}}}`)).Models[1]
		if m.Rates != want {
			t.Errorf("%s:\n got %+v\nwant %+v", x.image, m.Rates, want)
		}
	}
}
