// Command plugin is the filter as a proxy-wasm module: it registers the contexts, nothing else.
package main

import "github.com/emmer-proxy/emmer/plugin/shell"

func main() {}

func init() { shell.Register() }
