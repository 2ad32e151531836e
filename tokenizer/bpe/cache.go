package bpe

// Counts of pieces seen before. Both caches are mapped directly, and the key is the whole text of
// the piece with its length, so a hit is never another piece. Almost all pieces of real text have at
// most 15 bytes; twice the entries would gain a tenth in speed, half would lose a tenth.
const (
	wordCap  = 15
	wordBits = 13
	termCap  = 30
	termBits = 10
)

// word is a piece of up to wordCap bytes: the first eight, then the others with the length in the
// four bits from lengthShift on and the count in those above.
type word struct{ head, tail uint64 }

type wordCache [1 << wordBits]word

const (
	lengthShift = 56
	countShift  = 60
	countBits   = 15 << countShift
)

// wordKey is the key of the n bytes at p, 1 <= n <= wordCap.
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

// newWord counts a piece that is not in the cache and puts it into e.
func (w *workspace) newWord(t *table, e *word, p, n int) int {
	count := 1
	if n > 1 {
		count = w.mergeSmall(t, p, n)
	}
	head, tail := wordKey(&w.text, p, n)
	e.head, e.tail = head, tail|uint64(count)<<countShift
	return count
}

// term is a piece of more than wordCap and up to termCap bytes; the last eight bytes hold six of the
// text, then the count, then the length.
type term struct{ a, b, c, d uint64 }

type termCache [1 << termBits]term

const (
	termCountShift = 48
	termCountBits  = 255 << termCountShift
)

func (w *workspace) countTerm(t *table, p, n int) int {
	a, b, c, d := load64(&w.text, p), load64(&w.text, p+8), uint64(0), uint64(n)<<lengthShift
	switch {
	case n > 24:
		c = load64(&w.text, p+16)
		d |= load64(&w.text, p+24) & (1<<(uint(8*n)&63) - 1)
	case n > 16:
		cut := uint(-8*n) & 63
		c = load64(&w.text, p+16) << cut >> cut
	}
	h := (a ^ b*0xD6E8FEB86659FD93 ^ c*0xA24BAED4963EE407 ^ d*0x9FB21C651E98DF25) * hashFactor >> (64 - termBits)
	e := &w.terms[h]
	if e.a == a && e.b == b && e.c == c && e.d&^termCountBits == d {
		return int(e.d >> termCountShift & 255)
	}
	count := w.mergeStretch(t, p, n)
	*e = term{a, b, c, d | uint64(count)<<termCountShift}
	return count
}

// runCache remembers stretches of one repeated byte, in which each merge is a tie and the tournament
// thus at its slowest: the stretch in the upper half, the bytes and tokens of a window below.
type runCache [256]uint64

const window = 1 << 24 // in a key: not a whole stretch but a window of a longer one

// run finds the entry for the n bytes at p, or nil if they are not all the same. found says whether
// it holds their count.
func (w *workspace) run(p, n int, flag uint64) (e *uint64, key uint64) {
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
	return &w.runs[(uint64(n)+x&255*37)&255], flag | x&255<<16 | uint64(n)
}

// countLong counts a piece of more than wordCap bytes.
func (w *workspace) countLong(t *table, p, n int) int {
	count := 0
	for n > mergeCap {
		k, tokens := w.mergeWindow(t, p)
		p, n, count = p+k, n-k, count+tokens
	}
	if n <= termCap {
		return count + w.countTerm(t, p, n)
	}
	return count + w.mergeStretch(t, p, n)
}

// mergeStretch counts the tokens of 2 to mergeCap bytes.
func (w *workspace) mergeStretch(t *table, p, n int) int {
	if n <= smallCap {
		return w.mergeSmall(t, p, n)
	}
	e, key := w.run(p, n, 0)
	if e == nil {
		return w.mergeTree(t, p, n)
	}
	if *e>>32 != key {
		*e = key<<32 | uint64(w.mergeTree(t, p, n))
	}
	return int(uint32(*e))
}

// mergeWindow merges the mergeCap bytes at p. It gives the tokens that can no longer change and how
// many bytes these have: mergeCap-tailCap at least, less than maxToken more.
func (w *workspace) mergeWindow(t *table, p int) (bytes, tokens int) {
	e, key := w.run(p, mergeCap, window)
	if e != nil && *e>>32 == key {
		return int(*e >> 16 & 0xffff), int(*e & 0xffff)
	}
	w.mergeTree(t, p, mergeCap)
	for bytes < mergeCap-tailCap {
		bytes = int(w.tree.next[bytes&mergeMask])
		tokens++
	}
	if e != nil {
		*e = key<<32 | uint64(bytes)<<16 | uint64(tokens)
	}
	return bytes, tokens
}
