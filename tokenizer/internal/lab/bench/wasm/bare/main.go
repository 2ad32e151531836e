// Command bare counts nothing: the memory of a module that does nothing else.
package main

import "github.com/emmer-proxy/emmer/tokenizer/internal/lab/bench/driver"

func init() { driver.Count = func(_ int, text []byte) int { return len(text) } }

func main() {}
