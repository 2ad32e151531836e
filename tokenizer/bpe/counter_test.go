package bpe

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

var encodings = []*Encoding{O200K(), CL100K()}

// hostile is what the rules tell apart, and what is easily taken for something else.
var hostile = []string{
	"a", "b", "the", "ing", "z", "A", "THE", "Hello", "camelCase", "ß", "é", "и", "Ж", "ǅ", "ʰ", "中", "かな", "한", "ไทย", "\u0301", "\u0300\u0301", "ा", "हि",
	"0", "12", "123", "٣", "½", "Ⅳ", " ", "  ", "   ", "        ", "\t", "\v", "\f", "\u0085", "\u00a0", "\u3000", "\u2028", "\ufeff", "\u200b", "\u200d",
	"\n", "\r", "\r\n", "\n\n", "/", "//", "'", "'s", "'S", "'ſ", "'re", "'VE", "'lL", "'d", "'m", "'t", "'x", "'l", "'r", "’s", "ſ",
	"!", "...", "==", "{", "}", "\"", "\\", "-", "_", "<|endoftext|>", "\x00", "\x7f", "🇳", "🇱", "👩🏽\u200d💻", "𠀀", "\U00100000", "\ue000",
	"\xff", "\x80", "\xc2", "\xc0\x80", "\xe4\xb8", "\xed\xa0\x80", "\xe0\x80\x80", "\xe0\x81\x81", "\xf0\x9f", "\xf0\x80\x81\x81", "\xf4\x90\x80\x80", "\xf5",
}

func hostileText(random *rand.Rand, parts int) []byte {
	var text []byte
	few := hostile
	if random.IntN(3) == 0 { // of few kinds, so that runs grow
		at := random.IntN(len(hostile) - 4)
		few = hostile[at : at+4]
	}
	for range parts {
		part := few[random.IntN(len(few))]
		for range 1 + random.IntN(2)*random.IntN(4) {
			text = append(text, part...)
		}
	}
	return text
}

// checkAgainst compares the counter, whole and in parts, with the reference model.
func checkAgainst(t *testing.T, random *rand.Rand, text []byte) {
	t.Helper()
	for _, e := range encodings {
		want := references[e].count(text)
		if got := countOf(e, text); got != want {
			t.Errorf("%s: %d tokens in %.300q (%d bytes), the reference has %d", e.Name(), got, text, len(text), want)
			continue
		}
		most := 1 << (1 + random.IntN(12))
		if got := countBy(e, text, func(int) int { return 1 + random.IntN(most) }); got != want {
			t.Errorf("%s: %d tokens in parts of up to %d bytes of %.300q (%d bytes), want %d", e.Name(), got, most, text, len(text), want)
		}
		var c Counter
		c.Reset(e)
		for rest := text; len(rest) > 0; {
			k := min(1+random.IntN(most), len(rest))
			c.Write(rest[:k])
			rest = rest[k:]
		}
		if got := c.Finish(); got != want {
			t.Errorf("%s: %d tokens in writes of up to %d bytes of %.300q (%d bytes), want %d", e.Name(), got, most, text, len(text), want)
		}
	}
}

func TestCountsAreTheReferences(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		checkAgainst(t, random, hostileText(random, 1+random.IntN(30)))
	}
	for range 300 {
		checkAgainst(t, random, hostileText(random, 300+random.IntN(3000)))
	}
}

func TestEveryByteAndPairCounts(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	text := make([]byte, 2)
	for i := range 1 << 16 {
		text[0], text[1] = byte(i>>8), byte(i)
		for _, e := range encodings {
			if got, want := countOf(e, text), references[e].count(text); got != want {
				t.Fatalf("%s: %d tokens in %q, the reference has %d", e.Name(), got, text, want)
			}
		}
	}
	for i := range 256 {
		checkAgainst(t, random, []byte{byte(i)})
	}
	checkAgainst(t, random, nil)
}

// letters gives n random characters of an alphabet.
func letters(random *rand.Rand, alphabet string, n int) []byte {
	kinds := strings.Split(alphabet, "")
	var text []byte
	for range n {
		text = append(text, kinds[random.IntN(len(kinds))]...)
	}
	return text
}

var alphabets = []string{
	"abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "ab", "etaoin", "abAB", "абвгдежзиклмнопрстуфхцчшщ", "的一是不了人我在有他这中大来上国", "かなカナ漢",
	"!\"#$%&()*+,-.:;<=>?@[]^_`{|}~", "=-", " \t", " \n", "  \r\n\t\u3000", "A中", "ÀÉ\u0301", "กขคงจ\u0e31", "ab'",
}

// Pieces of 0.5 to 8 KB, which are merged in windows: random, periodic, and of vocabulary words.
func TestLongPiecesCountAsMergedWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for _, alphabet := range alphabets {
		for range 12 {
			n := 400 + random.IntN(2000)
			if random.IntN(4) == 0 {
				n = 4000 + random.IntN(4000)
			}
			text := letters(random, alphabet, n)
			if random.IntN(3) == 0 { // periodic
				text = bytes.Repeat(text[:1+random.IntN(40)], len(text)/20+1)
				text = text[:min(len(text), 8192)]
			}
			if random.IntN(2) == 0 {
				text = append([]byte("x "), text...)
			}
			checkAgainst(t, random, append(text, " Then"...))
		}
	}
	words := []string{"international", "ization", "the", "un", "believ", "able", "super", "cali", "fragil", "istic", "expi", "ali", "docious", "ness", "s"}
	for range 40 {
		var text []byte
		for range 50 + random.IntN(400) {
			text = append(text, words[random.IntN(len(words))]...)
		}
		checkAgainst(t, random, text)
	}
}

// Every length around the sizes at which the counter changes its ways.
func TestEdgesOfCachesAndWindows(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	edges := []int{8, 15, 16, 24, 30, 64, mergeCap - tailCap, mergeCap, openRoom, 2*mergeCap - tailCap, textCap}
	for _, edge := range edges {
		for n := max(1, edge-6); n <= edge+6; n++ {
			for _, alphabet := range []string{"abcdefghijklmnop", "ab", "a", "ABC", "A中", " ", " \n", "=-", "中文字", "и"} {
				text := letters(random, alphabet, n)
				checkAgainst(t, random, text)
				checkAgainst(t, random, append([]byte("say"), append(text, "'s it"...)...))
			}
		}
	}
}

// A mark that comes early in a long run decides nothing until the run ends.
func TestMarksInLongRuns(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for _, tt := range []struct{ fill, mark string }{{" ", "\n"}, {"\t", "\r\n"}, {" ", "\u3000\n"}, {"A", "中"}, {"DE", "ʰ"}, {"X", "\u0301"}, {"ÀB", "中"}} {
		for range 16 {
			var text []byte
			for range 1 + random.IntN(5) {
				text = append(text, bytes.Repeat([]byte(tt.fill), random.IntN(900))...)
				for range random.IntN(3) {
					text = append(text, tt.mark...)
				}
				text = append(text, bytes.Repeat([]byte(tt.fill), random.IntN(60))...)
			}
			for _, end := range []string{"", "x", "'s", tt.mark, tt.mark + "x", " ", "."} {
				checkAgainst(t, random, append(bytes.Clone(text), end...))
			}
		}
	}
}

// The tokens of o200k_base that reach from letters without case over to capitals are the known limit:
// whether they count is decided by what follows the capitals, however far away. One token is missed
// for each that stands before more than 500 bytes of nothing but capitals.
func TestTokenOverAMarkIsOffByOneAtMost(t *testing.T) {
	random := rand.New(rand.NewPCG(25, 26))
	for _, token := range []string{" 亚洲AV", "无码AV", " 天天中彩票APP", "亚洲AV"} {
		for range 10 {
			text := append(bytes.Repeat([]byte("QX"), random.IntN(300)), token...)
			few := append(bytes.Clone(text), letters(random, "ABCXYZ", random.IntN(10))...)
			text = append(text, letters(random, "ABCXYZ", 500+random.IntN(500))...)
			for _, end := range []string{"", "x", "中", "中A", " ", "'s", "1"} {
				checkAgainst(t, random, append(bytes.Clone(few), end...))
				all := append(bytes.Clone(text), end...)
				got, want := countOf(O200K(), all), references[O200K()].count(all)
				if got != want && got != want+1 {
					t.Errorf("%d tokens in %q, want %d", got, all, want)
				}
			}
		}
	}
}

// The longest runs of letters in which each pair merges before the one to its left. In such a run the
// end decides where every token begins; were one as long as the tail that a window leaves open,
// windows would be wrong.
func TestChainsOfFallingRanks(t *testing.T) {
	random := rand.New(rand.NewPCG(27, 28))
	for _, e := range encodings {
		for _, alphabet := range []string{"abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "!\"#$%&()*+,-.:;<=>?@[]^_`{|}~"} {
			chain := fallingChain(references[e], alphabet)
			if len(chain) < 20 || len(chain) > tailCap/2 {
				t.Errorf("%s: the longest chain has %d bytes: %q", e.Name(), len(chain), chain)
			}
			for range 60 {
				var text []byte
				for len(text) < 500+random.IntN(3000) {
					text = append(text, chain[random.IntN(len(chain)):]...)
					text = append(text, letters(random, alphabet, random.IntN(2)*random.IntN(9))...)
				}
				checkAgainst(t, random, text)
			}
			checkAgainst(t, random, bytes.Repeat(chain, 40))
		}
	}
}

// fallingChain gives the longest text over an alphabet in which the ranks of the pairs fall.
func fallingChain(m *reference, alphabet string) []byte {
	type pair struct {
		left, right byte
		rank        uint32
	}
	var pairs []pair
	for _, l := range []byte(alphabet) {
		for _, r := range []byte(alphabet) {
			if rank, ok := m.ranks[[2]uint32{m.ids[l], m.ids[r]}]; ok {
				pairs = append(pairs, pair{l, r, rank})
			}
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.rank, b.rank) })
	var longest [256][]byte // by its first byte, of the pairs so far
	for i := range longest {
		longest[i] = []byte{byte(i)}
	}
	best := longest[0]
	for _, p := range pairs {
		if rest := longest[p.right]; len(rest) >= len(longest[p.left]) {
			longest[p.left] = append([]byte{p.left}, rest...)
			if len(rest) >= len(best) {
				best = longest[p.left]
			}
		}
	}
	return best
}

func TestHugePieces(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	for _, alphabet := range []string{"a", " ", "abcdefghijklmnopqrstuvwxyz", "\n", "="} {
		checkAgainst(t, random, letters(random, alphabet, 100_000))
	}
}

func TestReferenceMergesTheSameInBothWays(t *testing.T) {
	random := rand.New(rand.NewPCG(23, 24))
	for _, alphabet := range alphabets {
		for _, e := range encodings {
			text := letters(random, alphabet, 1200)
			if a, b := references[e].tokensByScan(text), references[e].tokensByHeap(text); a != b {
				t.Errorf("%s: %d and %d tokens in %.200q", e.Name(), a, b, text)
			}
		}
	}
}

func TestCutsAtEveryOffset(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 16))
	for range 12 {
		text := hostileText(random, 400)
		for _, e := range encodings {
			want := references[e].count(text)
			for at := range text {
				var c Counter
				c.Reset(e)
				c.count(text[:at])
				c.count(text[at:])
				if got := c.Finish(); got != want {
					t.Fatalf("%s: %d tokens in %q cut at %d, want %d", e.Name(), got, text, at, want)
				}
			}
			if got := countBy(e, text, func(int) int { return 1 }); got != want {
				t.Fatalf("%s: %d tokens in single bytes of %q, want %d", e.Name(), got, text, want)
			}
		}
	}
}

func TestSpecialTokensArePlainText(t *testing.T) {
	for _, e := range encodings {
		if got := countOf(e, []byte("<|endoftext|>")); got != 7 {
			t.Errorf("%s: %d tokens, want 7", e.Name(), got)
		}
	}
}

func TestFinishBeginsTheNextText(t *testing.T) {
	for _, e := range encodings {
		var c Counter
		c.Reset(e)
		for _, tt := range []struct {
			text string
			want int
		}{{"Hello, ", 3}, {"world", 1}, {"", 0}, {strings.Repeat("a ", 5000), 5000}, {"Hello", 1}} {
			c.Write([]byte(tt.text))
			if want := references[e].count([]byte(tt.text)); want != tt.want && len(tt.text) < 20 {
				t.Errorf("%s: the reference counts %d in %q, want %d", e.Name(), want, tt.text, tt.want)
			} else if got := c.Finish(); got != want {
				t.Errorf("%s: %d tokens in %.20q, want %d", e.Name(), got, tt.text, want)
			}
		}
		c.Write([]byte(strings.Repeat("dropped ", 1000)))
		c.Reset(e)
		c.Write([]byte("Hello"))
		if got := c.Finish(); got != 1 {
			t.Errorf("%s: %d tokens after Reset, want 1", e.Name(), got)
		}
	}
}

func TestCounterStaysSmall(t *testing.T) {
	if size := reflect.TypeFor[Counter]().Size(); size > 640 {
		t.Errorf("a Counter has %d bytes, at most 640", size)
	}
	if size := reflect.TypeFor[workspace]().Size(); size > 192<<10 {
		t.Errorf("a work space has %d bytes, at most 192 KiB", size)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 18))
	text := append(hostileText(random, 3000), letters(random, "abcdef", 3000)...)
	for _, e := range encodings {
		var c Counter
		c.Reset(e)
		c.Write(text)
		c.Finish()
		if n := testing.AllocsPerRun(20, func() {
			c.Write(text)
			for i := range 100 {
				c.Write(text[i : i+10])
			}
			c.Finish()
		}); n != 0 {
			t.Errorf("%s: %v allocations in a count", e.Name(), n)
		}
	}
}

func TestCountersAtTheSameTime(t *testing.T) {
	random := rand.New(rand.NewPCG(19, 20))
	type job struct {
		text []byte
		want [2]int
	}
	jobs := make([]job, 40)
	for i := range jobs {
		jobs[i].text = hostileText(random, 200+random.IntN(800))
		for k, e := range encodings {
			jobs[i].want[k] = references[e].count(jobs[i].text)
		}
	}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			var counters [2]Counter
			for k, e := range []*Encoding{O200K(), CL100K()} {
				counters[k].Reset(e)
			}
			for i := range jobs {
				job := &jobs[(i+worker*5)%len(jobs)]
				for at := 0; at < len(job.text); at += 700 {
					part := job.text[at:min(at+700, len(job.text))]
					counters[0].Write(part)
					counters[1].Write(part)
				}
				if got := [2]int{counters[0].Finish(), counters[1].Finish()}; got != job.want {
					t.Errorf("counts are %d, want %d", got, job.want)
				}
			}
		})
	}
	all.Wait()
}

func FuzzCount(f *testing.F) {
	f.Add([]byte("It's ABC中DEF's  \n\n  /x 12345 \xff\xe4\xb8"), uint64(1))
	f.Add([]byte(strings.Repeat("AB\u0301 \n", 300)), uint64(2))
	f.Add(bytes.Repeat([]byte("xyzzy"), 300), uint64(3))
	random := rand.New(rand.NewPCG(21, 22))
	for i := range 20 {
		f.Add(hostileText(random, 1<<(i%7)), uint64(i))
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		if len(text) > 1536 {
			return
		}
		checkAgainst(t, rand.New(rand.NewPCG(seed, 1)), text)
	})
}

func ExampleCounter() {
	var c Counter
	c.Reset(O200K())
	c.Write([]byte("Hello, wor"))
	c.Write([]byte("ld!"))
	fmt.Println(c.Finish())
	// Output: 4
}
