package bpe

// Counts of pieces seen before. Both caches are mapped directly, and the key is the whole text of
// the piece with its length and its encoding, so a hit is never another piece. Almost all pieces of
// real text have at most 14 bytes; twice the entries would gain a tenth in speed, half would lose a
// tenth.
const (
	wordCap  = 14
	wordBits = 13
	termCap  = 30
	termBits = 10
)

// word is a piece of up to wordCap bytes: the first eight, then the others with the encoding, the
// length and the count above them.
type word struct{ head, tail uint64 }

type wordCache [1 << wordBits]word

const (
	wordTagShift   = 48
	lengthShift    = 56
	wordCountShift = 60
	wordCountBits  = 15 << wordCountShift
)

// wordKey is the key of the n bytes at p, 1 <= n <= wordCap, but for the encoding.
func wordKey(text *[textRoom]byte, p, n int) (head, tail uint64) {
	head, tail = load64(text, p), uint64(n)<<lengthShift
	if n <= 8 {
		cut := uint(64-8*n) & 63
		return head << cut >> cut, tail
	}
	return head, tail | load64(text, p+8)&(1<<(uint(8*n)&63)-1)
}

func (c *wordCache) entry(head, tail uint64) *word {
	return &c[(head^tail*0xD6E8FEB86659FD93)*hashFactor>>(64-wordBits)]
}

// newWord counts a piece that is not in the cache and puts it into entry.
func (w *workspace) newWord(e *Encoding, entry *word, p, n int) int {
	count := 1
	if n > 1 {
		count = w.mergeSmall(&e.table, p, n)
	}
	head, tail := wordKey(&w.text, p, n)
	entry.head, entry.tail = head, tail|e.tag<<wordTagShift|uint64(count)<<wordCountShift
	return count
}

// term is a piece of more than wordCap and up to termCap bytes; the last word holds six bytes of the
// text, then the count, the length and the encoding.
type term struct{ a, b, c, d uint64 }

type termCache [1 << termBits]term

const (
	termCountShift = 48
	termCountBits  = 255 << termCountShift
	termTagShift   = 62
)

func (w *workspace) countTerm(e *Encoding, p, n int) int {
	a, b, c, d := load64(&w.text, p), load64(&w.text, p+8), uint64(0), uint64(n)<<lengthShift|e.tag<<termTagShift
	switch {
	case n > 24:
		c = load64(&w.text, p+16)
		d |= load64(&w.text, p+24) & (1<<(uint(8*n)&63) - 1)
	case n > 16:
		cut := uint(-8*n) & 63
		c = load64(&w.text, p+16) << cut >> cut
	default:
		cut := uint(-8*n) & 63
		b = b << cut >> cut
	}
	h := (a ^ b*0xD6E8FEB86659FD93 ^ c*0xA24BAED4963EE407 ^ d*0x9FB21C651E98DF25) * hashFactor >> (64 - termBits)
	entry := &w.terms[h]
	if entry.a == a && entry.b == b && entry.c == c && entry.d&^termCountBits == d {
		return int(entry.d >> termCountShift & 255)
	}
	count := w.countStretch(e, p, n)
	*entry = term{a, b, c, d | uint64(count)<<termCountShift}
	return count
}

// runCache remembers stretches of one repeated byte, in which each merge is a tie and the tournament
// thus at its slowest: the stretch in the upper half, the bytes and tokens of a window below.
type runCache [256]uint64

// What a stretch is, above its byte and its length in the key.
const (
	runTagShift = 26
	windowBit   = 1 << 25 // not a whole stretch but a window of a longer one
)

// run finds the entry of the n bytes at p and the key that it has if it holds their count, or gives
// nil if they are not all the same.
func (w *workspace) run(p, n int) (entry *uint64, key uint64) {
	x := load64(&w.text, p)
	if x != x&255*0x0101010101010101 {
		return nil, 0
	}
	for i := 8; i < n-8; i += 8 {
		if load64(&w.text, p+i) != x {
			return nil, 0
		}
	}
	if load64(&w.text, p+n-8) != x {
		return nil, 0
	}
	return &w.runs[(uint64(n)+x&255*37)&255], x&255<<16 | uint64(n)
}

// countLong counts a piece of any length; pieces of up to wordCap bytes are better looked up first.
func (w *workspace) countLong(e *Encoding, p, n int) int {
	count := 0
	for n > mergeCap {
		k, tokens := w.countWindow(e, p)
		p, n, count = p+k, n-k, count+tokens
	}
	if n > wordCap && n <= termCap {
		return count + w.countTerm(e, p, n)
	}
	return count + w.countStretch(e, p, n)
}

// countStretch counts the tokens of 1 to mergeCap bytes.
func (w *workspace) countStretch(e *Encoding, p, n int) int {
	if n <= smallCap {
		return w.mergeSmall(&e.table, p, n)
	}
	entry, key := w.run(p, n)
	if entry == nil {
		return w.mergeTree(&e.table, p, n)
	}
	key |= e.tag << runTagShift
	if *entry>>32 != key {
		*entry = key<<32 | uint64(w.mergeTree(&e.table, p, n))
	}
	return int(uint32(*entry))
}

// countWindow merges the mergeCap bytes at p. It gives the tokens that can no longer change and how
// many bytes these have: mergeCap-tailCap at least, less than maxToken more.
func (w *workspace) countWindow(e *Encoding, p int) (bytes, tokens int) {
	entry, key := w.run(p, mergeCap)
	key |= e.tag<<runTagShift | windowBit
	if entry != nil && *entry>>32 == key {
		return int(*entry >> 16 & 0xffff), int(*entry & 0xffff)
	}
	w.mergeTree(&e.table, p, mergeCap)
	for bytes < mergeCap-tailCap {
		bytes = int(w.tree.next[bytes&mergeMask])
		tokens++
	}
	if entry != nil {
		*entry = key<<32 | uint64(bytes)<<16 | uint64(tokens)
	}
	return bytes, tokens
}
