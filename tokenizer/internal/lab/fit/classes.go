package main

import (
	"slices"
	"unicode"
)

// The classes of characters that pairs are told apart by, 64 at most. Grams tell characters apart, so
// that a class need only say how the vocabularies treat a kind.
const (
	classOther   = 0 // what no other class takes
	classLower   = 1 // 3: letters of ASCII as in lowerKinds
	classUpper   = 4
	classDigit   = 5
	classSpace   = 6
	classNewline = 7 // also what precedes a text
	classTab     = 8
	classControl = 9
	classMarks   = 10 // ASCII punctuation, in the groups of asciiMarks
	firstScript  = 33 // in the order of scriptClasses
)

// lowerKinds tell vowels, letters that often follow one another, and rare ones apart.
const lowerKinds = "abccacccacccbbacbbbbaccccc"

// asciiMarks are punctuation that vocabularies treat alike.
var asciiMarks = []string{`"`, `'`, `([`, `)]`, `{`, `}`, `<`, `>`, `.`, `,`, `:;`, `=`, `-`, `_`, `/`, `\`, `|`, `*`, `#`, `$%&@`, `+^~`, `!?`, "`"}

// scriptClasses take a character by the first that holds it. Most go by blocks, which mostly fill
// whole pages of the table.
var scriptClasses = []func(r rune) bool{
	between(0x300, 0x36f), // combining marks
	// Latin beyond ASCII: Vietnamese letters and other rare ones, capitals, the rest
	between(0x1e00, 0x1eff),
	capital(0xc0, 0x24f),
	letter(0xa0, 0x24f),
	// Greek and Cyrillic, capitals apart
	capital(0x370, 0x3ff),
	either(between(0x370, 0x3ff), between(0x1f00, 0x1fff)),
	capital(0x400, 0x47f),
	between(0x400, 0x52f),
	between(0x590, 0x5ff), // Hebrew
	either(between(0x600, 0x77f), between(0xfb50, 0xfdff), between(0xfe70, 0xfefe)), // Arabic
	// Devanagari, marks apart
	mark(0x900, 0x97f),
	between(0x900, 0x97f),
	between(0x980, 0xb7f), // Bengali, Gurmukhi, Gujarati, Oriya
	between(0xb80, 0xbff), // Tamil
	between(0xc00, 0xdff), // Telugu, Kannada, Malayalam, Sinhala
	between(0xe00, 0xe7f), // Thai
	either(between(0xe80, 0x109f), between(0x1780, 0x17ff)), // Lao, Tibetan, Myanmar, Khmer
	either(between(0x530, 0x58f), between(0x10a0, 0x10ff)),  // Armenian, Georgian
	between(0x1100, 0x1fff),                                 // Jamo, Ethiopic, Cherokee, Mongolian and others
	between(0xac00, 0xd7ff),                                 // Hangul
	between(0x3040, 0x309f),                                 // Hiragana
	between(0x30a0, 0x30ff),                                 // Katakana
	between(0x4e00, 0x9fff),                                 // Han
	either(between(0x3400, 0x4dff), between(0xf900, 0xfaff), between(0x20000, 0x3ffff)), // rare Han
	between(0x3000, 0x303f),   // punctuation of the East
	between(0xff00, 0xffff),   // full width forms
	between(0x2000, 0x206f),   // general punctuation
	between(0x2500, 0x257f),   // boxes
	between(0x80, 0xff),       // Latin-1's signs
	between(0x2070, 0x2bff),   // other symbols
	between(0x1f000, 0x1ffff), // emoji
}

// classOf gives the class of a character. Unicode 15.0, as Go 1.26 has it.
func classOf(r rune) int {
	switch {
	case r >= 'a' && r <= 'z':
		return classLower + int(lowerKinds[r-'a']-'a')
	case r >= 'A' && r <= 'Z':
		return classUpper
	case r >= '0' && r <= '9':
		return classDigit
	case r == ' ' || r == 0xa0:
		return classSpace
	case r == '\n' || r == '\r':
		return classNewline
	case r == '\t':
		return classTab
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return classControl
	}
	for i, marks := range asciiMarks {
		for _, m := range marks {
			if r == m {
				return classMarks + i
			}
		}
	}
	for i, holds := range scriptClasses {
		if holds(r) {
			return firstScript + i
		}
	}
	return classOther
}

func between(low, high rune) func(rune) bool {
	return func(r rune) bool { return r >= low && r <= high }
}

func capital(low, high rune) func(rune) bool {
	return func(r rune) bool { return r >= low && r <= high && unicode.In(r, unicode.Lu, unicode.Lt) }
}

func letter(low, high rune) func(rune) bool {
	return func(r rune) bool { return r >= low && r <= high && unicode.IsLetter(r) }
}

func mark(low, high rune) func(rune) bool {
	return func(r rune) bool { return r >= low && r <= high && unicode.IsMark(r) }
}

func either(of ...func(rune) bool) func(rune) bool {
	return func(r rune) bool {
		return slices.ContainsFunc(of, func(holds func(rune) bool) bool { return holds(r) })
	}
}

// classTable is the classes in two stages: 0x110000/128 page numbers, then the pages.
func classTable() []byte {
	const size = 128
	var pages, numbers []byte
	seen := map[string]byte{}
	for from := 0; from < len(classes); from += size {
		page := string(classes[from : from+size])
		n, ok := seen[page]
		if !ok {
			n = byte(len(seen))
			seen[page] = n
			pages = append(pages, page...)
		}
		numbers = append(numbers, n)
	}
	return append(numbers, pages...)
}

// classes is classOf of every character.
var classes = func() []byte {
	all := make([]byte, unicode.MaxRune+1)
	for r := range all {
		all[r] = byte(classOf(rune(r)))
	}
	return all
}()
