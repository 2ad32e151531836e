package approx

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
)

var families = []*Family{O200K(), CL100K(), Claude(), Gemma()}

var files = map[string][]byte{"o200k": o200kData, "cl100k": cl100kData, "claude": claudeData, "gemma": gemmaData}

// reference is the dumb counter: whole characters first, then their weights straight from the
// table's file.
func reference(data []byte, text string) int {
	var chars []int
	for i := 0; i < len(text); {
		x, more := text[i], 0
		switch {
		case x < 0x80:
			chars = append(chars, int(x))
		case x < 0xc0, x >= 0xf8:
			chars = append(chars, 0xfffd)
		case x < 0xe0:
			more = 1
		case x < 0xf0:
			more = 2
		default:
			more = 3
		}
		i++
		if more == 0 {
			continue
		}
		char := int(x) & (0x3f >> more)
		for ; more > 0 && i < len(text) && text[i]&0xc0 == 0x80; more-- {
			char = char<<6 + int(text[i]&0x3f)
			i++
		}
		if more > 0 {
			char = 0xfffd
		}
		chars = append(chars, char)
	}

	sum, before := 0, 7
	for i, r := range chars {
		page := int(classData[min(r, 0x10ffff)/128])
		class := int(classData[0x110000/128+page*128+r%128])
		if r > 0x10ffff {
			class = int(classOf(0xfffd))
		}
		sum += int(data[before*64+class])
		three := r
		if i > 0 {
			three ^= chars[i-1] << 7
		}
		if i > 1 {
			three ^= chars[i-2] << 14
		}
		hash := uint64(three) % (1 << 21) * 0x9e3779b97f4a7c15
		if r <= 127 {
			sum += int(int8(data[4096+hash>>50]))
		} else {
			sum += int(int8(data[4096+16384+hash>>51]))
			sum += int(int8(data[4096+16384+8192+uint64(r)*0xd6e8feb86659fd93>>52]))
		}
		before = class
	}
	n := (sum + 32) >> 6
	return max((len(text)+127)/128, min(n, len(text)))
}

// count gives the text to the counter in pieces that end at the cuts.
func count(f *Family, text string, cuts ...int) int {
	var c Counter
	c.Reset(f)
	from := 0
	for _, to := range append(cuts, len(text)) {
		c.Write([]byte(text[from:to]))
		from = to
	}
	return c.Count()
}

// texts are of every kind that the counter treats differently.
func texts() []string {
	var every strings.Builder
	for r := rune(0); r <= unicode.MaxRune; r += 1 + r/300 {
		if r < 0xd800 || r > 0xdfff {
			every.WriteRune(r)
		}
	}
	return []string{
		"", "a", "ab", "é", "中", "😀", "Hello, world!", "don't\r\n\t  12345 ABC_def", "你好，世界。café naïve", "😀👩🏽‍💻 текст", every.String(),
		strings.Repeat("Antidisestablishmentarianism ", 40), strings.Repeat("ы", 40), strings.Repeat("1", 70), "ไทย हिन्दी العربية",
		"\xff", "a\x80b", "\xe4\xb8", "\xe4\xb8x", "\xe4\xb8\xe4\xb8\xad", "\xf0\x9f\x98", "\xf0\x9f\x98\xf0\x9f\x98\x80", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80", "\xf7\xbf\xbf\xbf ok",
		strings.Repeat("\xe4", 1000), strings.Repeat("\xf0\x9f", 500),
	}
}

func TestCounterAgreesWithTheReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	all := texts()
	const alphabet = " aZ9.\n\x80\xbf\xc3\xa9\xd1\x8b\xe4\xb8\xad\xf0\x9f\x98\x80\xff"
	for range 2000 {
		b := make([]byte, rng.IntN(60))
		for i := range b {
			b[i] = alphabet[rng.IntN(len(alphabet))]
		}
		all = append(all, string(b))
	}
	for _, f := range families {
		for _, text := range all {
			if got, want := count(f, text), reference(files[f.Name()], text); got != want {
				t.Errorf("%s %.40q: %d, want %d", f.Name(), text, got, want)
			}
		}
	}
}

func TestSplitAtEveryOffset(t *testing.T) {
	for _, f := range families {
		for _, text := range texts() {
			want := count(f, text)
			for i := 0; i <= len(text) && i < 3000; i++ {
				if got := count(f, text, i); got != want {
					t.Fatalf("%s %.40q split at %d: %d, want %d", f.Name(), text, i, got, want)
				}
			}
			var every []int
			for i := range len(text) {
				every = append(every, i)
			}
			if got := count(f, text, every...); got != want {
				t.Errorf("%s %.40q byte by byte: %d, want %d", f.Name(), text, got, want)
			}
		}
	}
}

// No text, whatever its bytes, is counted beyond what a byte-level vocabulary can give.
func TestCountIsWithinTheTrueBounds(t *testing.T) {
	for _, f := range families {
		for b := range 256 {
			for _, n := range []int{1, 2, 127, 128, 129, 5000} {
				text := strings.Repeat(string([]byte{byte(b)}), n)
				if got := count(f, text); got < (n+127)/128 || got > n {
					t.Errorf("%s: %d bytes %#x are %d tokens", f.Name(), n, b, got)
				}
			}
		}
		if got := count(f, ""); got != 0 {
			t.Errorf("%s: no text is %d tokens", f.Name(), got)
		}
	}
}

// Count may be asked in the middle of a text, and of a character.
func TestCountWhileWriting(t *testing.T) {
	const text = "naïve 中文 😀."
	for _, f := range families {
		var c Counter
		c.Reset(f)
		for i := range len(text) {
			c.Write([]byte(text[i : i+1]))
			if got, want := c.Count(), count(f, text[:i+1]); got != want {
				t.Errorf("%s: after %d bytes %d, want %d", f.Name(), i+1, got, want)
			}
			if c.Bytes() != i+1 {
				t.Errorf("%d bytes, want %d", c.Bytes(), i+1)
			}
		}
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	text := []byte(strings.Repeat("The quick brown fox: съешь ещё этих булок, 快速的棕色狐狸 😀\xff\n", 50))
	var c Counter
	if n := testing.AllocsPerRun(20, func() {
		c.Reset(O200K())
		c.Write(text[:101])
		c.Write(text[101:])
		c.Count()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTablesAreWhole(t *testing.T) {
	for name, data := range files {
		if want := pairBytes + gramBytes + otherBytes + singleBytes; len(data) != want {
			t.Errorf("%s: %d bytes, want %d", name, len(data), want)
		}
	}
	highest := 0
	for i := range pages {
		highest = max(highest, int(classData[i]))
	}
	if want := pages + (highest+1)*128; len(classData) != want {
		t.Errorf("classes: %d bytes, want %d", len(classData), want)
	}
	for i := pages; i < len(classData); i++ {
		if classData[i] >= 64 {
			t.Errorf("class %d at %d", classData[i], i)
		}
	}
	if got := classOf('\n'); got != startClass {
		t.Errorf("a line's end is class %d, a text starts with class %d", got, startClass)
	}
}

func FuzzCounter(f *testing.F) {
	for _, text := range texts() {
		f.Add([]byte(text), uint16(len(text)/2), uint16(len(text)/3))
	}
	f.Fuzz(func(t *testing.T, b []byte, i, j uint16) {
		text := string(b)
		first, second := min(int(i), len(b)), min(int(j), len(b))
		first, second = min(first, second), max(first, second)
		for _, f := range families {
			want := reference(files[f.Name()], text)
			if got := count(f, text, first, second); got != want {
				t.Errorf("%s %q split at %d and %d: %d, want %d", f.Name(), text, first, second, got, want)
			}
		}
	})
}
