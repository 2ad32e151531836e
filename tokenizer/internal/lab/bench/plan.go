package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/emmer-proxy/emmer/tokenizer/internal/lab/corpus"
)

const (
	room  = 10_000_000 // of each module for a text: the largest that is counted
	whole = 1_000_000  // bytes of a text
	part  = 100_000    // bytes for systems that are some hundred times slower
	seed  = 1
)

// system is one tokenizer that is compared.
type system struct {
	name      string
	module    string   // folder below wasm/
	encodings []string // by index, as the module has them
	bytes     int      // of a text
	rounds    int
	// leaves says why a class is left out, or nothing.
	leaves func(class string) string
}

var systems = []system{
	{name: "emmer", module: "emmer", encodings: []string{"o200k_base", "cl100k_base", "approx-o200k"}, bytes: whole, rounds: 20},
	{name: "tiktoken-go/tokenizer", module: "tiktokengo", encodings: []string{"o200k_base", "cl100k_base"}, bytes: part, rounds: 3},
	{name: "pkoukk/tiktoken-go", module: "pkoukk", encodings: []string{"o200k_base", "cl100k_base"}, bytes: part, rounds: 3,
		leaves: func(class string) string {
			if class == corpus.ARun || class == corpus.Letters {
				return "its time grows with the square of a piece's length"
			}
			return ""
		}},
}

// job is one text for one encoding of a system.
type job struct {
	File     string `json:"file"`
	Bytes    int    `json:"bytes"`
	Encoding int    `json:"encoding"`
	Rounds   int    `json:"rounds"`

	class string
}

func (s *system) left(class string) string {
	if s.leaves == nil {
		return ""
	}
	return s.leaves(class)
}

// label is the system and the encoding of a line.
func (s *system) label(encoding int) (name, enc string) {
	if enc = s.encodings[encoding]; enc == "approx-o200k" {
		return s.name + "-approx", enc
	}
	return s.name, enc
}

// jobs are a system's: every class in one encoding, then in the next.
func (s *system) jobs(files map[string]string) []job {
	var all []job
	for e := range s.encodings {
		for _, class := range corpus.Classes() {
			if s.left(class) == "" {
				all = append(all, job{File: files[class], Bytes: s.bytes, Encoding: e, Rounds: s.rounds, class: class})
			}
		}
	}
	return all
}

// long are the two texts of 10 MB whose times are compared: prose, and the class that costs most.
func long(files map[string]string) []job {
	var all []job
	for _, class := range []string{corpus.English, corpus.Letters, corpus.ARun, corpus.WhiteSpace} {
		all = append(all, job{File: files[class], Bytes: room, Encoding: 0, Rounds: 1, class: class})
	}
	return all
}

// write writes the texts into dir and gives their paths by class.
func write(dir string) (map[string]string, error) {
	files := map[string]string{}
	for _, class := range corpus.Classes() {
		n := whole
		switch class {
		case corpus.English, corpus.Letters, corpus.ARun, corpus.WhiteSpace:
			n = room
		}
		text, err := corpus.Text(class, seed, n)
		if err != nil {
			return nil, err
		}
		files[class] = filepath.Join(dir, class)
		if err := os.WriteFile(files[class], text, 0o600); err != nil {
			return nil, fmt.Errorf("text: %w", err)
		}
	}
	return files, nil
}
