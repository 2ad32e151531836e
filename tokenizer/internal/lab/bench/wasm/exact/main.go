// Command exact is the two exact counters alone: what they take of a VM.
package main

import (
	"github.com/emmer-proxy/emmer/tokenizer/bpe"
	"github.com/emmer-proxy/emmer/tokenizer/internal/lab/bench/driver"
)

func init() {
	var c bpe.Counter
	driver.Count = func(encoding int, text []byte) int {
		e := bpe.O200K()
		if encoding == 1 {
			e = bpe.CL100K()
		}
		c.Reset(e)
		c.Write(text)
		return c.Finish()
	}
}

func main() {}
