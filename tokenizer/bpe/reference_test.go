package bpe

import (
	"container/heap"
	"encoding/binary"
	"unicode"
	"unicode/utf8"
)

// The reference model: the rules as OpenAI writes them, alternative by alternative with their
// backtracking, on a text that is there as a whole, and merging by looking at every pair.

type reference struct {
	byCase bool
	ids    [256]uint32
	ranks  map[[2]uint32]uint32
}

func newReference(data string, bucketBits uint, byCase bool) *reference {
	m := &reference{byCase: byCase, ranks: map[[2]uint32]uint32{}}
	raw := []byte(data)
	for b := range m.ids {
		m.ids[b] = binary.LittleEndian.Uint32(raw[4*b:])
	}
	for raw = raw[1024+2<<bucketBits:]; len(raw) > 0; raw = raw[8:] {
		if v := binary.LittleEndian.Uint64(raw); v != 1<<64-1 {
			m.ranks[[2]uint32{uint32(v >> 36), uint32(v >> 18 & idMask)}] = uint32(v & idMask)
		}
	}
	return m
}

var references = map[*Encoding]*reference{
	O200K():  newReference(o200kData, 15, true),
	CL100K(): newReference(cl100kData, 14, false),
}

func (m *reference) count(text []byte) int {
	runes, widths := []rune(nil), []int(nil)
	for rest := text; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		runes, widths, rest = append(runes, r), append(widths, n), rest[n:]
	}
	count := 0
	for len(runes) > 0 {
		n, bytes := m.match(runes), 0
		for _, w := range widths[:n] {
			bytes += w
		}
		count += m.tokens(text[:bytes])
		runes, widths, text = runes[n:], widths[n:], text[bytes:]
	}
	return count
}

func isLetter(r rune) bool { return unicode.Is(unicode.L, r) }
func isNumber(r rune) bool { return unicode.Is(unicode.N, r) }
func isSpace(r rune) bool  { return unicode.Is(unicode.White_Space, r) }
func isLine(r rune) bool   { return r == '\r' || r == '\n' }
func isMark(r rune) bool   { return unicode.Is(unicode.M, r) }
func isOther(r rune) bool  { return !isSpace(r) && !isLetter(r) && !isNumber(r) }
func isPrefix(r rune) bool { return !isLine(r) && !isLetter(r) && !isNumber(r) }
func isCapital(r rune) bool {
	return isMark(r) || unicode.In(r, unicode.Lu, unicode.Lt, unicode.Lm, unicode.Lo)
}
func isSmall(r rune) bool { return isMark(r) || unicode.In(r, unicode.Ll, unicode.Lm, unicode.Lo) }

// span is how many characters from the front are of a kind.
func span(runes []rune, kind func(rune) bool) int {
	for i, r := range runes {
		if !kind(r) {
			return i
		}
	}
	return len(runes)
}

// match is the length of the first piece.
func (m *reference) match(t []rune) int {
	prefixes := []int{0}
	if isPrefix(t[0]) {
		prefixes = []int{1, 0}
	}
	if m.byCase {
		for _, p := range prefixes {
			for u := span(t[p:], isCapital); u >= 0; u-- {
				if l := span(t[p+u:], isSmall); l > 0 {
					return p + u + l + shortened(t[p+u+l:])
				}
			}
		}
		for _, p := range prefixes {
			if u := span(t[p:], isCapital); u > 0 {
				n := p + u + span(t[p+u:], isSmall)
				return n + shortened(t[n:])
			}
		}
	} else {
		if n := shortened(t); n > 0 {
			return n
		}
		for _, p := range prefixes {
			if l := span(t[p:], isLetter); l > 0 {
				return p + l
			}
		}
	}
	if n := span(t, isNumber); n > 0 {
		return min(n, 3)
	}
	skip := 0
	if t[0] == ' ' {
		skip = 1
	}
	if x := span(t[skip:], isOther); x > 0 {
		n := skip + x
		return n + span(t[n:], func(r rune) bool { return isLine(r) || m.byCase && r == '/' })
	}
	spaces := span(t, isSpace)
	for s := spaces; s >= 0; s-- {
		if n := span(t[s:], isLine); n > 0 {
			return s + n
		}
	}
	for s := spaces; s > 0; s-- {
		if s == len(t) || isSpace(t[s]) {
			return s
		}
	}
	return spaces
}

// shortened is the length of a contraction, in characters.
func shortened(t []rune) int {
	if len(t) < 2 || t[0] != '\'' {
		return 0
	}
	fold := func(i int) rune {
		if i < len(t) {
			if t[i] == 'ſ' {
				return 's'
			}
			return unicode.ToLower(t[i])
		}
		return 0
	}
	switch pair := string([]rune{fold(1), fold(2)}); {
	case pair[0] == 's' || pair[0] == 't' || pair[0] == 'm' || pair[0] == 'd':
		return 2
	case pair == "re" || pair == "ve" || pair == "ll":
		return 3
	}
	return 0
}

// tokens merges one piece. Long ones go through a heap, which a test compares with the plain way.
func (m *reference) tokens(piece []byte) int {
	if len(piece) > 700 {
		return m.tokensByHeap(piece)
	}
	return m.tokensByScan(piece)
}

func (m *reference) tokensByScan(piece []byte) int {
	ids := make([]uint32, len(piece))
	for i, b := range piece {
		ids[i] = m.ids[b]
	}
	ranks := make([]uint32, len(ids))
	rank := func(i int) {
		ranks[i] = absent
		if i+1 < len(ids) {
			if id, ok := m.ranks[[2]uint32{ids[i], ids[i+1]}]; ok {
				ranks[i] = id
			}
		}
	}
	for i := range ids {
		rank(i)
	}
	for {
		best := 0
		for i, r := range ranks {
			if r < ranks[best] {
				best = i
			}
		}
		if len(ids) == 0 || ranks[best] == absent {
			return len(ids)
		}
		ids[best] = ranks[best]
		ids = append(ids[:best+1], ids[best+2:]...)
		ranks = append(ranks[:best+1], ranks[best+2:]...)
		rank(best)
		if best > 0 {
			rank(best - 1)
		}
	}
}

type candidate struct {
	id    uint32
	at    int // where the left token starts
	after int // where the right token ended when the pair was found
}

type candidates []candidate

func (c candidates) Len() int      { return len(c) }
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any     { x := (*c)[len(*c)-1]; *c = (*c)[:len(*c)-1]; return x }
func (c candidates) Less(i, j int) bool {
	return c[i].id < c[j].id || c[i].id == c[j].id && c[i].at < c[j].at
}

func (m *reference) tokensByHeap(piece []byte) int {
	n := len(piece)
	ids, ends, starts := make([]uint32, n), make([]int, n), make([]int, n+1)
	for i, b := range piece {
		ids[i], ends[i], starts[i] = m.ids[b], i+1, i-1 // starts[i]: where the token before i starts
	}
	todo := &candidates{}
	look := func(i int) {
		if i >= 0 && ends[i] < n {
			if id, ok := m.ranks[[2]uint32{ids[i], ids[ends[i]]}]; ok {
				heap.Push(todo, candidate{id, i, ends[ends[i]]})
			}
		}
	}
	for i := range ids {
		look(i)
	}
	count, gone := n, make([]bool, n)
	for todo.Len() > 0 {
		c := heap.Pop(todo).(candidate)
		if gone[c.at] || ends[c.at] >= n || ends[ends[c.at]] != c.after || m.ranks[[2]uint32{ids[c.at], ids[ends[c.at]]}] != c.id {
			continue
		}
		gone[ends[c.at]] = true
		ids[c.at], ends[c.at] = c.id, c.after
		if c.after < n {
			starts[c.after] = c.at
		}
		count--
		look(c.at)
		look(starts[c.at])
	}
	return count
}
