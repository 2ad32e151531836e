package corpus

import "unicode/utf8"

// hostile holds what tokenizers trip over: marks without a letter, letters of title case, the long s
// of a contraction, line separators that are no newline, a byte order mark inside, no-break spaces,
// halves of flags, NUL, the last planes, joined emoji, contractions in every case, digits of other
// scripts, capitals beside Han, and what looks like a special token.
var hostile = []string{
	"a", "b", "Z", "É", "é", "ß", "ſ", "'ſ", "ǅ", "ǲ", "ʰ", "ª", "\u0301", "\u0303\u0301", "\u200d", "\ufe0f",
	"'s", "'S", "'t", "'re", "'RE", "'Ve", "'ll", "'lL", "'d", "'m", "'x", "'", "''", "’s",
	"I'm", "don't", "DON'T", "THE", "The", "camelCaseName", "HTTPServer", "ABC中DEF", "中A文b", "iPhone15",
	"0", "7", "12", "123", "1234567", "٣", "१२३", "²", "½", "Ⅷ", "１２",
	" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", "\u00a0", "\u0085", "\u2028", "\u3000", "\ufeff", "\u200b", "\v", "\f",
	"/", "//", "///\n", "\n/", ".\n", ".\n/\n", ")", "}}", "==", "!=", "...", "---", "→", "。", "，", "“", "€", "$",
	"中", "文字", "汉", "の", "カタカナ", "한국어", "привет", "Ё", "ελ", "שלום", "مرحبا", "हिन्दी", "ไทย", "ქართული", "ng̃", "Việt",
	"😀", "👩🏽‍💻", "🇳", "🇳🇱", "👨‍👩‍👧", "\U00020000", "\U0002a6df", "\U0010fffd", "\U000e0001", "\x00", "\x01", "\x7f", "\u00ad",
	"<|endoftext|>", "<|im_start|>", "<|fim_prefix|>", "<|", "|>", "\\u0041", "\\n", "\"", "{\"a\":", "https://", ".com", "@x", "#",
	"the", " the", " The", " of", "ing", "tion", "function", "return", "import", "aaaa", "aaaaaaaa", "xyzzy", "qwrtpsdf", "=====",
}

// Hostile gives one hostile string of at most n bytes: now and then a run of one thing, now and then
// a repeated pattern, mostly a random row of them.
func Hostile(r *Rand, n int) string {
	b := make([]byte, 0, n)
	for len(b) < n {
		s := hostile[r.Intn(len(hostile))]
		repeat := 1
		switch r.Intn(24) {
		case 0:
			repeat = 1 + r.Intn(40)
		case 1:
			s += hostile[r.Intn(len(hostile))]
			repeat = 1 + r.Intn(12)
		case 2:
			s = randomRune(r)
			repeat = 1 + r.Intn(3)
		}
		for range repeat {
			if len(b)+len(s) > n {
				return string(b)
			}
			b = append(b, s...)
		}
	}
	return string(b)
}

// randomRune is any character of Unicode but a surrogate, most often one of the first planes.
func randomRune(r *Rand) string {
	var c rune
	switch r.Intn(4) {
	case 0:
		c = rune(r.Intn(0x110000))
	case 1:
		c = rune(r.Intn(0x10000))
	default:
		c = rune(r.Intn(0x3000))
	}
	if c >= 0xd800 && c < 0xe000 {
		c = 0xfffd
	}
	return string(utf8.AppendRune(nil, c))
}
