package bpe

// Merging a piece: of all neighbours that merge, the pair of the lowest rank (the leftmost of
// equals) becomes one token, until none merges. A count needs no more than which tokens are left.

const (
	// smallCap is the longest piece for smallMerge.
	smallCap = 16
	// mergeCap is the longest stretch that is merged at once. Of a longer piece a window of that
	// many bytes is merged, and the tokens that end before its last tailCap bytes are counted and
	// dropped: what follows can hardly reach further back. It would take a chain of pairs of which
	// each merges before the one to its left, and the longest that letters form has 58 bytes. The
	// longest token has maxToken bytes.
	mergeCap = 512
	tailCap  = 160
	maxToken = 128
)

// smallMerge keeps the candidates of up to 16 positions in words of rank<<4 | position, whose
// minimum is the next merge: straight-line code, which Go makes of min without a branch.
type smallMerge struct {
	pairs      [smallCap]uint32
	ids        [smallCap]uint32
	next, prev [smallCap]uint8
}

// mergeSmall counts the tokens of the n bytes at p, 1 <= n <= smallCap.
func (w *workspace) mergeSmall(t *table, p, n int) int {
	s := &w.small
	v := &s.pairs
	for i := range v {
		v[i] = absent
	}
	l := number32(t.bytes, byteAt(&w.text, p))
	s.ids[0] = l
	for i := 1; i < n; i++ {
		r := number32(t.bytes, byteAt(&w.text, p+i))
		s.ids[i&15] = r
		s.next[i&15] = uint8(i + 1)
		s.prev[i&15] = uint8(i - 1)
		v[(i-1)&15] = t.merge(l, r)<<4 | uint32(i-1)
		l = r
	}
	s.next[0] = 1
	for count := n; ; {
		m := min(min(min(v[0], v[1]), min(v[2], v[3])), min(min(v[4], v[5]), min(v[6], v[7])))
		if n > 9 {
			m = min(m, min(min(min(v[8], v[9]), min(v[10], v[11])), min(min(v[12], v[13]), min(v[14], v[15]))))
		}
		if m >= ^uint32(smallCap-1) {
			return count
		}
		count--
		if count == 1 {
			return 1
		}
		i, id := m&15, m>>4
		j := s.next[i]
		k := s.next[j&15]
		s.next[i] = k
		s.ids[i] = id
		v[j&15] = absent
		if int(k) < n {
			s.prev[k&15] = uint8(i)
			v[i] = t.merge(id, s.ids[k&15])<<4 | i
		} else {
			v[i] = absent
		}
		if i > 0 {
			h := s.prev[i]
			v[h&15] = t.merge(s.ids[h&15], id)<<4 | uint32(h)
		}
	}
}

// treeMerge is the same for up to mergeCap positions, with words of rank<<9 | position under a
// tournament of three rounds with eight players in each match. A merge replays at most three paths.
type treeMerge struct {
	leaves     [mergeCap]uint32
	rounds     [64]uint32
	finals     [8]uint32
	ids        [mergeCap]uint32
	next, prev [mergeCap]uint16
}

const mergeMask = mergeCap - 1

func min8(r *[8]uint32) uint32 {
	return min(min(min(r[0], r[1]), min(r[2], r[3])), min(min(r[4], r[5]), min(r[6], r[7])))
}

// leafMatch and roundMatch are the eight players of which i is one.
func (s *treeMerge) leafMatch(i int) *[8]uint32 {
	i &= mergeMask &^ 7
	return (*[8]uint32)(s.leaves[i : i+8])
}

func (s *treeMerge) roundMatch(i int) *[8]uint32 {
	i &= 63 &^ 7
	return (*[8]uint32)(s.rounds[i : i+8])
}

// replay plays the matches above leaf i again.
func (s *treeMerge) replay(i int) {
	m := min8(s.leafMatch(i))
	winner := &s.rounds[i>>3&63]
	if *winner == m {
		return
	}
	*winner = m
	s.finals[i>>6&7] = min8(s.roundMatch(i >> 3))
}

// mergeTree counts the tokens of the n bytes at p, 2 <= n <= mergeCap. Following next from 0 then
// visits the start of each.
func (w *workspace) mergeTree(t *table, p, n int) int {
	s := &w.tree
	l := number32(t.bytes, byteAt(&w.text, p))
	s.ids[0] = l
	s.next[0] = 1
	for i := 1; i < n; i++ {
		r := number32(t.bytes, byteAt(&w.text, p+i))
		s.ids[i&mergeMask] = r
		s.next[i&mergeMask] = uint16(i + 1)
		s.prev[i&mergeMask] = uint16(i - 1)
		s.leaves[(i-1)&mergeMask] = t.merge(l, r)<<9 | uint32(i-1)
		l = r
	}
	leaves := (n + 7) >> 3
	for i := n - 1; i < leaves<<3; i++ {
		s.leaves[i&mergeMask] = absent
	}
	rounds := (leaves + 7) >> 3
	for a := range leaves {
		s.rounds[a&63] = min8(s.leafMatch(a << 3))
	}
	for a := leaves; a < rounds<<3; a++ {
		s.rounds[a&63] = absent
	}
	for b := range 8 {
		s.finals[b] = absent
		if b < rounds {
			s.finals[b] = min8(s.roundMatch(b << 3))
		}
	}
	for count := n; ; count-- {
		m := s.finals[0]
		if rounds > 1 {
			m = min8(&s.finals)
		}
		if m >= ^uint32(mergeMask) {
			return count
		}
		i, id := int(m&mergeMask), m>>9
		j := int(s.next[i]) & mergeMask
		k := int(s.next[j])
		s.ids[i] = id
		s.next[i] = uint16(k)
		s.leaves[j] = absent
		pair := absent
		if k < n {
			s.prev[k&mergeMask] = uint16(i)
			pair = t.merge(id, s.ids[k&mergeMask])<<9 | uint32(i)
		}
		s.leaves[i] = pair
		if i > 0 {
			h := int(s.prev[i]) & mergeMask
			s.leaves[h] = t.merge(s.ids[h], id)<<9 | uint32(h)
			if h>>3 != i>>3 {
				s.replay(h)
			}
		}
		s.replay(i)
		if j>>3 != i>>3 {
			s.replay(j)
		}
	}
}
