package main

import (
	"strings"

	"github.com/emmer-proxy/emmer/tokenizer/internal/lab/corpus"
)

// text is one string of the test set and the class that it is made from.
type text struct{ class, text string }

const seed = 20261201

// texts makes the test set: the same strings at every run.
func texts() ([]text, error) {
	var all []text
	add := func(class, s string) { all = append(all, text{class, s}) }
	r := corpus.NewRand(seed)

	add("empty", "")
	for b := range 0x80 {
		add("byte", string(rune(b)))
	}
	// Lengths around what a counter may treat apart: one or two words of memory, a cache entry, a window.
	for _, s := range []string{"a", " ", "\n", "\t", "\r\n", "=", "/", "A", "é", "中", "я", "0", "!", "\u3000", "😀", "ab", " a", "Aa", "中A", "'s", "-\n", "the "} {
		for _, n := range []int{2, 3, 4, 7, 8, 9, 15, 16, 17, 29, 30, 31, 32, 63, 64, 65, 127, 128, 129, 255, 511, 512, 513, 640, 1023, 1025, 4097} {
			if n*len(s) <= 8192 {
				add("repeated", strings.Repeat(s, n))
				add("repeated", "x"+strings.Repeat(s, n)+"y")
			}
		}
	}
	for _, class := range corpus.Classes() {
		most := 3000
		if class == corpus.Letters || class == corpus.Base64 { // hardly compressed
			most = 900
		}
		for range 100 {
			b, err := corpus.Text(class, r.Uint64(), 1+r.Intn(most))
			if err != nil {
				return nil, err
			}
			add(class, string(b))
		}
	}
	for range 2000 {
		add("hostile", corpus.Hostile(r, 1+r.Intn(160)))
	}
	for range 100 {
		add("hostile", corpus.Hostile(r, 500+r.Intn(1500)))
	}
	return all, nil
}
