package bpe

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// golden is one text with the counts that npm tiktoken 1.0.22 gives for it.
type golden struct {
	Text   string `json:"t"`
	O200K  int    `json:"o"`
	CL100K int    `json:"k"`
}

func readGolden(t testing.TB, path string) []golden {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all []golden
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var g golden
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func countOf(e *Encoding, text []byte) int {
	var c Counter
	c.Reset(e)
	c.Write(text)
	return c.Finish()
}

// countBy counts a text in the parts that cut gives for what is left. Parts go past the room in the
// counter, so that each is a call of its own to the splitter.
func countBy(e *Encoding, text []byte, cut func(left int) int) int {
	var c Counter
	c.Reset(e)
	for len(text) > 0 {
		k := min(cut(len(text)), len(text))
		c.count(text[:k])
		text = text[k:]
	}
	return c.Finish()
}

func TestCountsAreTiktokens(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.jsonl.gz")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden data: %v", err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			all := readGolden(t, path)
			if len(all) < 100 {
				t.Errorf("only %d texts", len(all))
			}
			for _, g := range all {
				for _, tt := range []struct {
					e    *Encoding
					want int
				}{{O200K(), g.O200K}, {CL100K(), g.CL100K}} {
					text := []byte(g.Text)
					if got := countOf(tt.e, text); got != tt.want {
						t.Errorf("%s: %d tokens in %.200q, want %d", tt.e.Name(), got, g.Text, tt.want)
						continue
					}
					var c Counter
					c.Reset(tt.e)
					for rest := text; len(rest) > 0; {
						k := min(1+random.IntN(700), len(rest))
						c.Write(rest[:k])
						rest = rest[k:]
					}
					if got := c.Finish(); got != tt.want {
						t.Errorf("%s: %d tokens in parts of %.200q, want %d", tt.e.Name(), got, g.Text, tt.want)
					}
					for _, most := range []int{1, 7, 300} {
						if got := countBy(tt.e, text, func(int) int { return 1 + random.IntN(most) }); got != tt.want {
							t.Errorf("%s: %d tokens in parts of up to %d bytes of %.200q, want %d", tt.e.Name(), got, most, g.Text, tt.want)
						}
					}
					if len(text) > 100 {
						continue
					}
					for at := range text {
						got := countBy(tt.e, text, func(left int) int {
							if left == len(text) && at > 0 {
								return at
							}
							return left
						})
						if got != tt.want {
							t.Errorf("%s: %d tokens in %.200q cut at %d, want %d", tt.e.Name(), got, g.Text, at, tt.want)
						}
					}
				}
			}
		})
	}
}
