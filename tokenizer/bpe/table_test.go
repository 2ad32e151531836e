package bpe

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// A change of a table is a change of counts: the generator's test, in a module of its own, says that
// these are what the rank files give.
func TestTablesAreTheOnesGenerated(t *testing.T) {
	for _, tt := range []struct{ name, data, sum string }{
		{"o200k_base.bin", o200kData, "5f7f9bc6283bd5b63a073653728d12c6886916405bf82f9ada223e92b3c5a566"},
		{"cl100k_base.bin", cl100kData, "6e04526f4a181c1c5725290c3c9620012abf65a109062fe92e28608b0b17584b"},
		{"class.bin", classData, "3a3a47c42661971e750ab20c7fdef1f79b164daaaab6d19995b4ab1760b610c8"},
	} {
		if sum := sha256.Sum256([]byte(tt.data)); hex.EncodeToString(sum[:]) != tt.sum {
			t.Errorf("%s has sha256 %x, want %s", tt.name, sum, tt.sum)
		}
	}
	notice, err := os.ReadFile("NOTICE.md")
	if err != nil || !strings.Contains(string(notice), "MIT License, Copyright (c) 2022 OpenAI") {
		t.Errorf("NOTICE.md does not keep the licence of the rank files: %v", err)
	}
}

func TestTableFindsItsMergesAndNoOthers(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 32))
	for _, e := range encodings {
		m := references[e]
		if n := len(m.ranks); n != map[string]int{"o200k_base": 199_742, "cl100k_base": 100_000}[e.Name()] {
			t.Errorf("%s: %d merges", e.Name(), n)
		}
		for pair, id := range m.ranks {
			if got := e.table.merge(pair[0], pair[1]); got != id {
				t.Fatalf("%s: %d merge to %d, want %d", e.Name(), pair, got, id)
			}
		}
		for range 1_000_000 {
			pair := [2]uint32{random.Uint32N(200_000), random.Uint32N(200_000)}
			want, ok := m.ranks[pair]
			if !ok {
				want = absent
			}
			if got := e.table.merge(pair[0], pair[1]); got != want {
				t.Fatalf("%s: %d merge to %d, want %d", e.Name(), pair, got, want)
			}
		}
	}
}

func classByUnicode(r rune) uint8 {
	switch {
	case isLine(r):
		return line
	case isSpace(r):
		return space
	case unicode.Is(unicode.Ll, r):
		return lower
	case unicode.In(r, unicode.Lu, unicode.Lt):
		return upper
	case isLetter(r):
		return caseless
	case isMark(r):
		return mark
	case isNumber(r):
		return number
	}
	return other
}

func TestEveryCharacterHasItsClass(t *testing.T) {
	var b [textRoom]byte
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if want := classByUnicode(r); classOf(uint32(r)) != want {
			t.Fatalf("%U has class %d, want %d", r, classOf(uint32(r)), want)
		} else if r < 0x80 {
			got := fastClass[r]
			if got != want {
				t.Fatalf("%U has class %d on the fast path, want %d", r, got, want)
			}
		} else if utf8.ValidRune(r) {
			n := utf8.EncodeRune(b[:], r)
			if class, width := decode(&b, 0); class != want || width != n {
				t.Fatalf("%U has class %d and %d bytes, want %d and %d", r, class, width, want, n)
			}
		}
	}
}

// What is no UTF-8 is cut as the standard library cuts it.
func TestInvalidBytesAreCutSingly(t *testing.T) {
	random := rand.New(rand.NewPCG(33, 34))
	edges := []byte{0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff}
	var b [textRoom]byte
	check := func() {
		r, n := utf8.DecodeRune(b[:4])
		if class, width := decode(&b, 0); width != n || class != classByUnicode(r) {
			t.Fatalf("% x has class %d and %d bytes, want %d and %d", b[:4], class, width, classByUnicode(r), n)
		}
	}
	for b0 := 0x80; b0 < 0x100; b0++ {
		b[0] = byte(b0)
		for _, b[1] = range edges {
			for _, b[2] = range edges {
				for _, b[3] = range edges {
					check()
				}
			}
		}
		for range 10_000 {
			b[1], b[2], b[3] = byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32())
			check()
		}
	}
}

// A call of merge costs more than its body, and its body is near the limit of what Go inlines.
func TestMergeInlines(t *testing.T) {
	cmd := exec.Command("go", "build", "-gcflags=-m", ".")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"(*table).merge", "wordKey", "(*wordCache).entry", "classOf", "lowerRun", "min8"} {
		if !strings.Contains(string(out), "inlining call to "+name+"\n") {
			t.Errorf("%s is no longer inlined in the filter", name)
		}
	}
}
