package main

import (
	"fmt"
	"unicode"
)

// unicodeVersion is that of the frozen classes. A Go release with newer tables would change counts,
// so moving on is a decision: first see what tiktoken does with the new letters.
const unicodeVersion = "15.0.0"

// The classes that tokenizer/bpe/classes.go numbers the same way.
const (
	other = iota
	lower
	upper
	caseless
	mark
	number
	space
	line
)

func classOf(r rune) byte {
	switch {
	case r == '\n' || r == '\r':
		return line
	case unicode.Is(unicode.White_Space, r):
		return space
	case unicode.Is(unicode.Ll, r):
		return lower
	case unicode.In(r, unicode.Lu, unicode.Lt):
		return upper
	case unicode.In(r, unicode.Lm, unicode.Lo):
		return caseless
	case unicode.Is(unicode.M, r):
		return mark
	case unicode.Is(unicode.N, r):
		return number
	}
	return other
}

// classTable gives the number of a block for each 128 characters, then the blocks: two characters to
// a byte, the even one in the low half.
func classTable() ([]byte, error) {
	if unicode.Version != unicodeVersion {
		return nil, fmt.Errorf("this Go has Unicode %s, and the classes are frozen at %s", unicode.Version, unicodeVersion)
	}
	known := map[[64]byte]int{}
	var numbers, blocks []byte
	for first := rune(0); first <= unicode.MaxRune; first += 128 {
		var block [64]byte
		for i := range rune(128) {
			block[i/2] |= classOf(first+i) << (i % 2 * 4)
		}
		n, ok := known[block]
		if !ok {
			n = len(known)
			if n > 255 {
				return nil, fmt.Errorf("more than 256 blocks")
			}
			known[block] = n
			blocks = append(blocks, block[:]...)
		}
		numbers = append(numbers, byte(n))
	}
	return append(numbers, blocks...), nil
}
