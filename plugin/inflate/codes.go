package inflate

import "math/bits"

const (
	maxLit  = 286
	maxDist = 30
	maxCode = 15 // bits of a code

	fastBits = 9 // of a code that is found by one look
	fastMask = 1<<fastBits - 1
)

// codeOrder is the order in which the lengths of the codes for lengths come, RFC 1951 section 3.2.7.
var codeOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// An entry of a table says what a symbol means, and in its lowest bits how long its code is; 0 where
// the code is longer than fastBits.
const (
	lengthMask = 15
	extraShift = 4
	extraMask  = 15 // bits that follow the code
	opMask     = 3 << 8
	opLiteral  = 0 << 8
	opMatch    = 1 << 8
	opEnd      = 2 << 8
	opBad      = 3 << 8
	baseShift  = 16 // a byte, a length, a distance, or the symbol itself
)

var (
	litTemplates   = templatesOf(257, 29, 3, 2)
	distTemplates  = templatesOf(0, 30, 1, 1)
	plainTemplates = func() (t [288]uint32) {
		for i := range t {
			t[i] = uint32(i) << baseShift
		}
		return t
	}()

	fixedLit, fixedDist = fixedCodes()
)

// templatesOf makes entries without the length of a code. n symbols from `from` on are lengths or
// distances from base on, in groups of 2^group: behind the codes of the first two groups no bits
// follow, behind those of each later one a bit more. RFC 1951, section 3.2.5.
func templatesOf(from, n, base, group int) (t [288]uint32) {
	for i := range t {
		switch k := i - from; {
		case k < 0 && i == 256:
			t[i] = opEnd
		case k < 0:
			t[i] = opLiteral | uint32(i)<<baseShift
		case k >= n:
			t[i] = opBad
		default:
			extra := max(k>>group-1, 0)
			t[i] = opMatch | uint32(extra)<<extraShift | uint32(base)<<baseShift
			base += 1 << extra
		}
	}
	if from > 0 { // the longest match has a symbol of its own, without bits behind it
		t[285] = opMatch | maxMatch<<baseShift
	}
	return t
}

func fixedCodes() (lit, dist codes) {
	var n [288]uint8
	for i := range n {
		switch {
		case i < 144:
			n[i] = 8
		case i < 256:
			n[i] = 9
		case i < 280:
			n[i] = 7
		default:
			n[i] = 8
		}
	}
	lit.build(n[:], litTemplates[:])
	for i := range 32 {
		n[i] = 5
	}
	dist.build(n[:32], distTemplates[:])
	return lit, dist
}

// codes finds symbols by their codes. A look at the next fastBits bits is enough for all but the
// rarest, whose codes are followed bit by bit.
type codes struct {
	fast      [1 << fastBits]uint32 // of which mask+1 are in use
	mask      uint64                // no wider than the longest code: small blocks must not cost much
	templates []uint32
	count     [maxCode + 1]uint16
	symbols   [288]uint16 // by code
	first     int         // code of fastBits+1 bits that comes first
	index     int         // of its symbol
}

// build makes the table of the codes that have these lengths. False: there are none such.
func (c *codes) build(lengths []uint8, templates []uint32) bool {
	c.templates = templates
	c.count = [maxCode + 1]uint16{}
	longest := uint8(0)
	for _, n := range lengths {
		c.count[n&maxCode]++
		longest = max(longest, n)
	}
	c.count[0] = 0
	var index, next [maxCode + 2]int // the first symbol and the first code of each length
	for n := 1; n <= maxCode; n++ {
		index[n+1] = index[n] + int(c.count[n])
		next[n+1] = (next[n] + int(c.count[n])) << 1
		if n == fastBits {
			c.index, c.first = index[n+1], next[n+1]
		}
		if next[n]+int(c.count[n]) > 1<<n {
			return false
		}
	}
	c.mask = 1<<min(longest, fastBits) - 1
	fast := c.fast[:c.mask+1]
	switch code := next[longest] + int(c.count[longest]); {
	case longest == 0: // none at all: a block without matches has no distances
		fast[0] = opBad
		return true
	case longest == 1 && code == 1: // one code, whose other half means nothing
		fast[1] = opBad | 1
	case code != 1<<longest:
		return false
	case longest > fastBits:
		clear(fast) // what is not filled below
	}
	for s, n := range lengths {
		if n == 0 {
			continue
		}
		c.symbols[index[n]] = uint16(s)
		index[n]++
		code := next[n]
		next[n]++
		if n > fastBits {
			continue
		}
		at := int(bits.Reverse16(uint16(code)) >> (16 - n))
		for e := templates[s] | uint32(n); at < len(fast); at += 1 << n {
			fast[at] = e
		}
	}
	return true
}

// find looks up the code that the lowest of n bits are. ok is false if they are too few.
func (c *codes) find(v uint64, n uint) (entry uint32, length uint, ok bool) {
	e := c.fast[v&c.mask&fastMask]
	if k := uint(e & lengthMask); k > 0 || e&opMask == opBad {
		return e, k, k <= n
	}
	code := int(bits.Reverse16(uint16(v&fastMask)) >> (16 - fastBits))
	first, index := c.first, c.index
	for k := uint(fastBits + 1); k <= maxCode; k++ {
		code = code<<1 | int(v>>(k-1)&1)
		count := int(c.count[k])
		if code-first < count {
			return c.templates[c.symbols[index+code-first]], k, k <= n
		}
		index += count
		first = (first + count) << 1
	}
	return opBad, 0, true
}

// symbols decodes literals and matches.
func (r *Reader) symbols() bool {
	for {
		r.most()
		if r.fault != 0 || !r.symbol() {
			return false
		}
		if r.step != inCodes {
			return true
		}
	}
}

// most decodes as long as neither the input nor the window comes near its end and no code is long.
func (r *Reader) most() {
	p, v, n, at := r.p, r.bits, r.n, r.at
	lit, dist := &r.lit.fast, &r.dist.fast
	litMask, distMask := r.lit.mask&fastMask, r.dist.mask&fastMask
	for len(p) >= 8 && at <= windowSize-maxMatch {
		// Eight bytes more, of which as many count as there was room for; those that don't are the
		// same again the next time.
		v |= load64(p) << n
		p = p[(63-n)>>3:]
		n |= 56
		e := lit[v&litMask&fastMask]
		k := uint(e & lengthMask)
		if e&opMask == opLiteral && k > 0 {
			r.window[at] = byte(e >> baseShift)
			at++
			v >>= k
			n -= k
			e = lit[v&litMask&fastMask]
			if k = uint(e & lengthMask); e&opMask == opLiteral && k > 0 {
				r.window[at] = byte(e >> baseShift)
				at++
				v >>= k
				n -= k
			}
			continue
		}
		if e&opMask != opMatch || k == 0 {
			break
		}
		w := v >> k
		x := uint(e >> extraShift & extraMask)
		length := int(e>>baseShift) + int(w&(1<<x-1))
		w >>= x
		used := k + x
		e = dist[w&distMask&fastMask]
		if k = uint(e & lengthMask); e&opMask != opMatch || k == 0 {
			break
		}
		w >>= k
		x = uint(e >> extraShift & extraMask)
		back := int(e>>baseShift) + int(w&(1<<x-1))
		used += k + x
		from := at - back
		if from < 0 {
			if from += windowSize; !r.wrapped || from > windowSize-maxMatch {
				break
			}
		}
		v = w >> x
		n -= used
		to := at + length
		if back >= length {
			copy(r.window[at:to], r.window[from:])
			at = to
			continue
		}
		for at < to { // a match may repeat itself: each time there is more to copy
			at += copy(r.window[at:to], r.window[from:at])
		}
	}
	r.p, r.bits, r.n, r.at = p, v&(1<<n-1), n, at
	if at == windowSize {
		r.turn()
	}
}

// symbol decodes one literal or one match, or nothing if its bits have not all come.
func (r *Reader) symbol() bool {
	for r.n <= 48 && len(r.p) > 0 { // no symbol needs more: 15+5+15+13
		r.bits |= uint64(r.p[0]) << r.n
		r.p = r.p[1:]
		r.n += 8
	}
	v, n := r.bits, r.n
	use := func(k uint) { v, n = v>>k, n-k }
	e, k, ok := r.lit.find(v, n)
	if !ok {
		return false
	}
	use(k)
	switch e & opMask {
	case opLiteral:
		r.bits, r.n = v, n
		r.window[r.at] = byte(e >> baseShift)
		r.at++
		return r.at < windowSize || r.turn()
	case opEnd:
		r.bits, r.n = v, n
		r.endBlock()
		return r.fault == 0
	case opBad:
		return r.fail(Corrupt)
	}
	extra := uint(e >> extraShift & extraMask)
	if n < extra {
		return false
	}
	length := int(e>>baseShift) + int(v&(1<<extra-1))
	use(extra)
	if e, k, ok = r.dist.find(v, n); !ok {
		return false
	}
	use(k)
	if e&opMask != opMatch {
		return r.fail(Corrupt)
	}
	if extra = uint(e >> extraShift & extraMask); n < extra {
		return false
	}
	back := int(e>>baseShift) + int(v&(1<<extra-1))
	use(extra)
	r.bits, r.n = v, n
	if back > r.at && !r.wrapped {
		return r.fail(Corrupt)
	}
	return r.match(length, back)
}

// match repeats what stands so far back.
func (r *Reader) match(length, back int) bool {
	from := r.at - back
	if from < 0 {
		from += windowSize
	}
	for range length {
		r.window[r.at] = r.window[from]
		r.at++
		if from++; from == windowSize {
			from = 0
		}
		if r.at == windowSize && !r.turn() {
			return false
		}
	}
	return true
}
