// Package differ compares the exact counters with pkoukk/tiktoken-go, which follows tiktoken's own
// code line by line: regular expression, then pair after pair.
package differ

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf16"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/emmer-proxy/emmer/tokenizer"
	"github.com/emmer-proxy/emmer/tokenizer/internal/lab/corpus"
)

var (
	number = flag.Int("strings", 100_000, "strings for each encoding")
	seed   = flag.Uint64("seed", 1, "seed of the first string")
)

// oneString makes the i-th string: mostly short and hostile, then cuts out of every class, a few long.
// What it merges in one piece stays short: the other side's time grows with the square of that.
func oneString(r *corpus.Rand) (string, error) {
	switch n := r.Intn(100); {
	case n < 70:
		return corpus.Hostile(r, 1+r.Intn(60)), nil
	case n < 90:
		return corpus.Hostile(r, 1+r.Intn(300)), nil
	case n < 99:
		classes := corpus.Classes()
		b, err := corpus.Text(classes[r.Intn(len(classes))], r.Uint64(), 1+r.Intn(400))
		return string(b), err
	}
	b, err := corpus.Text([]string{corpus.Chat, corpus.Chinese, corpus.Russian, corpus.WhiteSpace}[r.Intn(4)], r.Uint64(), 1+r.Intn(4000))
	return string(b), err
}

// inJSON spells a text as the inside of a JSON string, in one of the ways for each character.
func inJSON(r *corpus.Rand, text string) []byte {
	b := make([]byte, 0, 2*len(text))
	often := r.Intn(4)
	for _, c := range text {
		must := c < ' ' || c == '"' || c == '\\'
		if !must && r.Intn(3) >= often {
			b = append(b, string(c)...)
			continue
		}
		if r.Chance(2) {
			short := byte(0)
			switch c {
			case '"', '\\', '/':
				short = byte(c)
			case '\b':
				short = 'b'
			case '\f':
				short = 'f'
			case '\n':
				short = 'n'
			case '\r':
				short = 'r'
			case '\t':
				short = 't'
			}
			if short != 0 {
				b = append(b, '\\', short)
				continue
			}
		}
		format := "\\u%04x"
		if r.Chance(2) {
			format = "\\u%04X"
		}
		if c >= 0x10000 {
			hi, lo := utf16.EncodeRune(c)
			b = fmt.Appendf(b, format+format, hi, lo)
		} else {
			b = fmt.Appendf(b, format, c)
		}
	}
	return b
}

// inParts writes p in parts of random length.
func inParts(r *corpus.Rand, p []byte, write func([]byte)) {
	most := 1 << r.Intn(10)
	for len(p) > 0 {
		k := min(1+r.Intn(most), len(p))
		write(p[:k])
		p = p[k:]
	}
}

func TestNoDifferenceToTiktoken(t *testing.T) {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	const workers = 2
	for _, name := range []string{"o200k_base", "cl100k_base"} {
		other, err := tiktoken.GetEncoding(name)
		if err != nil {
			t.Fatal(err)
		}
		enc, ok := tokenizer.ForName(name)
		if !ok || !enc.Exact() {
			t.Fatalf("no exact %s", name)
		}
		var next, bytes, tokens, wrong atomic.Int64
		var wait sync.WaitGroup
		for range workers {
			wait.Go(func() {
				c := enc.NewCounter()
				for {
					i := next.Add(1) - 1
					if i >= int64(*number) || wrong.Load() > 20 {
						return
					}
					r := corpus.NewRand(*seed + uint64(i)*0x9e3779b9)
					text, err := oneString(r)
					// The other side's regular expressions do not take 'ſ for the contraction 's, which
					// tiktoken does: npm tiktoken cuts xyz'ſ'ttion after the ſ, as Emmer does. The test set
					// of package bpe, which npm tiktoken counted, is full of it.
					text = strings.ReplaceAll(text, "'ſ", "'s")
					if err != nil {
						t.Error(err)
						return
					}
					want := len(other.EncodeOrdinary(text))
					bytes.Add(int64(len(text)))
					tokens.Add(int64(want))
					c.Write([]byte(text))
					whole := c.Finish()
					inParts(r, []byte(text), c.Write)
					parts := c.Finish()
					inParts(r, inJSON(r, text), c.WriteJSON)
					escaped := c.Finish()
					if whole != want || parts != want || escaped != want {
						wrong.Add(1)
						t.Errorf("%s: whole %d, in parts %d, as JSON %d, want %d: %q", name, whole, parts, escaped, want, text)
					}
				}
			})
		}
		wait.Wait()
		t.Logf("%s: %d strings, %d bytes, %d tokens: %d differ", name, *number, bytes.Load(), tokens.Load(), wrong.Load())
	}
}
