// Command pkoukk is pkoukk/tiktoken-go as a module to be timed.
package main

import (
	"github.com/emmer-proxy/emmer/tokenizer/internal/lab/bench/counters/pkoukk"
	"github.com/emmer-proxy/emmer/tokenizer/internal/lab/bench/driver"
)

func init() { driver.Count = pkoukk.New("o200k_base", "cl100k_base") }

func main() {}
