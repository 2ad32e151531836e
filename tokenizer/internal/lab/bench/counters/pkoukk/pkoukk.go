// Package pkoukk counts with github.com/pkoukk/tiktoken-go.
package pkoukk

import (
	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// New counts with encodings by name.
func New(names ...string) func(encoding int, text []byte) int {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	open := make([]*tiktoken.Tiktoken, len(names))
	return func(encoding int, text []byte) int {
		if open[encoding] == nil {
			e, err := tiktoken.GetEncoding(names[encoding])
			if err != nil {
				return -1
			}
			open[encoding] = e
		}
		return len(open[encoding].EncodeOrdinary(string(text)))
	}
}
