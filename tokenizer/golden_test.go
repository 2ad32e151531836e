package tokenizer

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf16"
)

// escaped spells a text as the inside of a JSON string, each character in one of the ways that JSON
// allows for it.
func escaped(r *rand.Rand, text string) []byte {
	var b []byte
	short := map[rune]byte{'"': '"', '\\': '\\', '/': '/', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}
	often := r.IntN(4) // out of three
	for _, c := range text {
		s, isShort := short[c]
		must := c < ' ' || c == '"' || c == '\\'
		switch {
		case isShort && (must || r.IntN(3) < often) && r.IntN(4) > 0:
			b = append(b, '\\', s)
		case must || r.IntN(3) < often:
			format := "\\u%04x"
			if r.IntN(2) == 0 {
				format = "\\u%04X"
			}
			if hi, lo := utf16.EncodeRune(c); hi != 0xfffd {
				b = fmt.Appendf(b, format+format, hi, lo)
			} else {
				b = fmt.Appendf(b, format, c)
			}
		default:
			b = append(b, string(c)...)
		}
	}
	return b
}

// The counts in bpe's test data are npm tiktoken's, see bpe/testdata/NOTICE.md. Package bpe compares
// the plain texts; here they stand in JSON, cut anywhere.
func TestEscapedTextsCountAsTiktokens(t *testing.T) {
	paths, err := filepath.Glob("bpe/testdata/*.jsonl.gz")
	if err != nil || len(paths) < 3 {
		t.Fatalf("no golden data: %v %v", paths, err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	counters := map[string]*Counter{}
	for _, name := range []string{"o200k_base", "cl100k_base"} {
		counters[name] = named(t, name).NewCounter()
	}
	n := 0
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(z)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			var g struct {
				T    string
				O, K int
			}
			if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
				t.Fatal(err)
			}
			n++
			for name, want := range map[string]int{"o200k_base": g.O, "cl100k_base": g.K} {
				inside := escaped(r, g.T)
				most := 1 << r.IntN(12)
				c := counters[name]
				for len(inside) > 0 {
					k := min(1+r.IntN(most), len(inside))
					c.WriteJSON(inside[:k])
					inside = inside[k:]
				}
				if got := c.Finish(); got != want {
					t.Errorf("%s %s: %d, want %d: %.80q", filepath.Base(path), name, got, want, g.T)
				}
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if n < 10_000 {
		t.Errorf("only %d texts", n)
	}
}
