// Package counters makes a counting function of each system that is compared.
package counters

import "github.com/emmer-proxy/emmer/tokenizer"

// Emmer counts with encodings of this project, by name, each with one counter for all texts.
func Emmer(names ...string) func(encoding int, text []byte) int {
	counters := make([]*tokenizer.Counter, len(names))
	return func(encoding int, text []byte) int {
		c := counters[encoding]
		if c == nil {
			e, ok := tokenizer.ForName(names[encoding])
			if !ok {
				return -1
			}
			c = e.NewCounter()
			counters[encoding] = c
		}
		c.Write(text)
		return c.Finish()
	}
}
