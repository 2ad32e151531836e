package tokenizer

import "strings"

// models maps the beginning of a model's name to its encoding; the longest match wins, and what
// follows it must be the end or one of - . : @ so that "gpt-4" does not claim "gpt-4o".
//
// Source: the model tables of the npm package gpt-tokenizer 4.0.0 (OpenAI), google/genai's
// _local_tokenizer_loader.py (Gemini). Read in 2026-10.
var models = []struct {
	prefix string
	enc    *encoding
}{
	{"gpt-3.5", cl100k},
	{"gpt-35", cl100k}, // Azure's spelling
	{"gpt-4", cl100k},
	{"gpt-4o", o200k},
	{"gpt-4.1", o200k},
	{"gpt-4.5", o200k},
	{"gpt-41", o200k},
	{"gpt-45", o200k},
	{"gpt-5", o200k},
	{"gpt-6", o200k},
	{"gpt-oss", harmony},
	{"gpt-audio", o200k},
	{"gpt-image", o200k},
	{"gpt-realtime", o200k},
	{"chatgpt", o200k},
	{"codex", o200k},
	{"computer-use", o200k},
	{"o1", o200k},
	{"o3", o200k},
	{"o4", o200k},
	{"text-embedding-3", cl100k},
	{"text-embedding-ada", cl100k},
	{"claude", claude},
	{"gemini", gemma},
	{"gemma", gemma},
	{"gemma2", gemma},
	{"gemma3", gemma},
	{"text-embedding-004", gemma}, // Google's
	{"text-embedding-005", gemma},
}

// Lookup finds the encoding of a model by the name that requests use: dated variants, fine-tunes
// ("ft:gpt-4o:org"), provider prefixes ("openai/gpt-4o", "eu.anthropic.claude-3-haiku") and any case.
func Lookup(model string) (Encoding, bool) {
	i := longest(len(models), bareName(model), func(i int) string { return models[i].prefix })
	if i < 0 {
		return nil, false
	}
	return models[i].enc, true
}

// longest is the index of the longest of n prefixes that begins a name and ends with a word of it,
// or -1.
func longest(n int, name string, prefix func(int) string) int {
	best, length := -1, 0
	for i := range n {
		if p := prefix(i); len(p) > length && strings.HasPrefix(name, p) && endsWord(name[len(p):]) {
			best, length = i, len(p)
		}
	}
	return best
}

// bareName is a model's name in lower case, without what routers and fine-tunes put before it.
func bareName(model string) string {
	name := strings.ToLower(model)
	name = name[strings.LastIndexByte(name, '/')+1:]
	name = strings.TrimPrefix(name, "ft:")
	for _, vendor := range [...]string{"anthropic.", "meta.", "mistral.", "amazon.", "openai."} {
		if i := strings.Index(name, vendor); i >= 0 {
			name = name[i+len(vendor):]
		}
	}
	return name
}

func endsWord(rest string) bool {
	if rest == "" {
		return true
	}
	switch rest[0] {
	case '-', '.', ':', '@':
		return true
	}
	return false
}
