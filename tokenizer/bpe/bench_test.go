package bpe

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

const sentences = `The gateway keeps a lease for every call, and gives back what the answer did not use. ` +
	`"Don't wait," she said; they've already counted 1,234 tokens of it, haven't they? ` +
	"\n\n    for i := 0; i < len(items); i++ {\n        total += items[i].Price * 100\n    }\n\n" +
	`{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi!"}], "max_tokens": 256}` + "\n" +
	"2026-01-31T12:00:00Z INFO worker=3 request_id=9f86d081 status=200 duration=17ms\n"

// benchTexts are texts of n bytes or a little more, by class.
func benchTexts(n int) map[string][]byte {
	random := rand.New(rand.NewPCG(41, 42))
	words := strings.Fields(sentences)
	var mixed []byte
	for len(mixed) < n {
		if random.IntN(40) == 0 {
			mixed = append(mixed, sentences...)
		}
		mixed = append(append(mixed, words[random.IntN(len(words))]...), ' ')
	}
	return map[string][]byte{
		"mixed":       mixed,
		"chinese":     letters(random, "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可里后小么，。", n/3),
		"russian":     letters(random, "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэф      ,.", n/2),
		"base64":      letters(random, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", n),
		"letters":     letters(random, "abcdefghijklmnopqrstuvwxyz", n),
		"cyrillic":    letters(random, "абвгдежзийклмнопрстуфхцчшщъыьэюя", n/2),
		"punctuation": letters(random, "!\"#$%&()*+,-.:;<=>?@[]^_`{|}~", n),
		"white":       letters(random, "     \t\n", n),
		"a":           bytes.Repeat([]byte("a"), n),
		"spaces":      bytes.Repeat([]byte(" "), n),
	}
}

func BenchmarkCount(b *testing.B) {
	for class, text := range benchTexts(1 << 20) {
		for _, e := range encodings {
			b.Run(e.Name()+"/"+class, func(b *testing.B) {
				var c Counter
				c.Reset(e)
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					c.Write(text)
					c.Finish()
				}
			})
		}
	}
}

func BenchmarkShortText(b *testing.B) {
	var c Counter
	c.Reset(O200K())
	text := []byte("You are a helpful assistant.")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c.Write(text)
		c.Finish()
	}
}

// Thirty-two times the text takes about thirty-two times as long, whatever the text: if the time
// grew with the square, it would take a thousand times as long. The bound is ten times what is right.
func TestTimeGrowsWithTheText(t *testing.T) {
	const small, times = 1 << 16, 32
	texts := benchTexts(small * times)
	fastest := func(e *Encoding, text []byte, tries int) time.Duration {
		least := time.Hour
		for range tries {
			start := time.Now()
			countOf(e, text)
			least = min(least, time.Since(start))
		}
		return least
	}
	for class, text := range texts {
		for _, e := range encodings {
			part, whole := fastest(e, text[:small], 5), fastest(e, text, 1)
			if whole > 10*times*part {
				t.Errorf("%s: %s takes %v for %d KB and %v for %d KB", e.Name(), class, part, small>>10, whole, len(text)>>10)
			}
		}
	}
}
