// Command tiktokengo is tiktoken-go/tokenizer as a module to be timed.
package main

import (
	"github.com/emmer-proxy/emmer/tokenizer/internal/lab/bench/counters/tiktokengo"
	"github.com/emmer-proxy/emmer/tokenizer/internal/lab/bench/driver"
)

func init() { driver.Count = tiktokengo.New("o200k_base", "cl100k_base") }

func main() {}
