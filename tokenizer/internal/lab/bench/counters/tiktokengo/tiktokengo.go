// Package tiktokengo counts with github.com/tiktoken-go/tokenizer.
package tiktokengo

import "github.com/tiktoken-go/tokenizer"

// New counts with encodings by name.
func New(names ...string) func(encoding int, text []byte) int {
	open := make([]tokenizer.Codec, len(names))
	return func(encoding int, text []byte) int {
		if open[encoding] == nil {
			e, err := tokenizer.Get(tokenizer.Encoding(names[encoding]))
			if err != nil {
				return -1
			}
			open[encoding] = e
		}
		n, err := open[encoding].Count(string(text))
		if err != nil {
			return -1
		}
		return n
	}
}
