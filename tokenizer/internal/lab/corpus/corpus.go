// Package corpus makes texts out of a seed: the classes that tokenizers are compared and timed on,
// and hostile strings. It downloads nothing and copies no text: sentences are put together from word
// lists of this package, by frequency (Zipf) and with the inflections of their language.
//
// The same seed gives the same bytes with every version of Go: the generator of random numbers is
// the package's own, and nothing here asks the tables of package unicode. A test holds the digests.
//
// It knows nothing of tokens. Its caller takes care that a class fits its purpose: ARun and Letters
// are one unbroken piece and drive a quadratic tokenizer into the ground.
package corpus

import (
	"fmt"
	"unicode/utf8"
)

// The classes of text, in the order of Classes.
const (
	Chat       = "chat"       // English prose, markdown, code, JSON and logs, as people paste them
	English    = "english"    // prose
	Chinese    = "chinese"    // prose, simplified
	Russian    = "russian"    // prose
	Code       = "code"       // Go, JavaScript and Python
	Logs       = "logs"       // of servers, several formats
	Base64     = "base64"     // in lines of 76
	WhiteSpace = "whitespace" // spaces, tabs and newlines in runs, a word now and then
	ARun       = "a-run"      // the letter a over and over
	Letters    = "letters"    // lower-case letters at random, without a break: the costliest to merge
)

// Classes lists every class of Text.
func Classes() []string {
	return []string{Chat, English, Chinese, Russian, Code, Logs, Base64, WhiteSpace, ARun, Letters}
}

// writer makes one more stretch of text, some hundred bytes, and appends it.
type writer func(b []byte, r *Rand) []byte

func writerOf(class string) writer {
	switch class {
	case Chat:
		return chat
	case English:
		return englishParagraph
	case Chinese:
		return chineseParagraph
	case Russian:
		return russianParagraph
	case Code:
		return code
	case Logs:
		return logLines
	case Base64:
		return base64Lines
	case WhiteSpace:
		return whiteSpace
	case ARun:
		return func(b []byte, _ *Rand) []byte { return append(b, "aaaaaaaaaaaaaaaa"...) }
	case Letters:
		return letters
	}
	return nil
}

// Text gives a text of n bytes of a class, or up to three less where a character would be cut.
// A text of another length and the same seed has the same beginning.
func Text(class string, seed uint64, n int) ([]byte, error) {
	more := writerOf(class)
	if more == nil {
		return nil, fmt.Errorf("no class %q", class)
	}
	r := NewRand(seed)
	b := make([]byte, 0, n+8192)
	for len(b) < n {
		b = more(b, r)
	}
	for n > 0 && n < len(b) && !utf8.RuneStart(b[n]) {
		n--
	}
	return b[:n], nil
}

// chat is a stretch of what people send to a chat model: mostly prose, then what they work on.
func chat(b []byte, r *Rand) []byte {
	switch n := r.Intn(100); {
	case n < 45:
		b = englishParagraph(b, r)
	case n < 62:
		b = markdown(b, r)
	case n < 81:
		b = code(b, r)
	case n < 91:
		b = jsonDocument(b, r)
	default:
		b = logLines(b, r)
	}
	return append(b, '\n')
}

func letters(b []byte, r *Rand) []byte {
	for range 64 {
		b = append(b, 'a'+byte(r.Intn(26)))
	}
	return b
}

func base64Lines(b []byte, r *Rand) []byte {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for range 76 {
		b = append(b, digits[r.Intn(64)])
	}
	return append(b, '\n')
}

func whiteSpace(b []byte, r *Rand) []byte {
	for range 8 {
		s := pickOf(r, " ", " ", " ", "\n", "\n", "\t", "\r\n", " \n", "\n ")
		n := 1 + r.Intn(6)
		if r.Intn(12) == 0 {
			n = 1 + r.Intn(90)
		}
		for range n {
			b = append(b, s...)
		}
	}
	if r.Intn(3) == 0 {
		b = append(b, pickOf(r, "x", "word", "}", "//", "0", "A", "é", "中")...)
	}
	return b
}
