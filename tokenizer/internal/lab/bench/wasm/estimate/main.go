// Command estimate is the estimating counter alone, with all its families: what it takes of a VM.
package main

import (
	"github.com/emmer-proxy/emmer/tokenizer/approx"
	"github.com/emmer-proxy/emmer/tokenizer/internal/lab/bench/driver"
)

func init() {
	var c approx.Counter
	families := []*approx.Family{approx.O200K(), approx.CL100K(), approx.Claude(), approx.Gemma()}
	driver.Count = func(_ int, text []byte) int {
		n := 0
		for _, f := range families {
			c.Reset(f)
			c.Write(text)
			n += c.Count()
		}
		return n
	}
}

func main() {}
