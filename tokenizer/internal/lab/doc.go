// Package lab is a module of its own for what the tokenizer is made and measured with: the generator
// of its tables, the fit, the comparison with other tokenizers, the benchmark. Their dependencies
// stay out of the project's.
package lab

import (
	_ "github.com/emmer-proxy/emmer/tokenizer"
	_ "github.com/pkoukk/tiktoken-go"
	_ "github.com/pkoukk/tiktoken-go-loader"
	_ "github.com/tetratelabs/wazero"
	_ "github.com/tiktoken-go/tokenizer"
)
