// Command emmer is Emmer's tokenizer as a module to be timed.
package main

import (
	"github.com/emmer-proxy/emmer/tokenizer/internal/lab/bench/counters"
	"github.com/emmer-proxy/emmer/tokenizer/internal/lab/bench/driver"
)

func init() { driver.Count = counters.Emmer("o200k_base", "cl100k_base", "approx-o200k") }

func main() {}
