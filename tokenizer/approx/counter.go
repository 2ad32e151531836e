package approx

// Counter counts one text. The zero value must be Reset before use.
type Counter struct {
	t     *table // of the family
	sum   int    // in 2^-fraction tokens
	bytes int    // of text so far
	prev  uint64 // class of the last character
	last  uint64 // the last characters, each moved 7 bits from the next
	cp    uint32 // code point so far, of a character that isn't whole
	need  uint8  // its bytes still to come
}

// Reset makes the counter ready for a text of the family.
func (c *Counter) Reset(f *Family) { *c = Counter{t: &f.table, prev: startClass} }

// Write takes the next bytes of the text.
func (c *Counter) Write(b []byte) {
	pairs, grams, others, singles := c.t.pairs, c.t.grams, c.t.others, c.t.singles
	prev, last, sum := c.prev, c.last, c.sum
	c.bytes += len(b)
	whole := c.need == 0 // no character has begun
	for i := 0; i < len(b); {
	fast:
		for whole && i+4 <= len(b) {
			q := b[i : i+4 : i+4]
			b0, b1, b2, b3 := uint64(q[0]), uint64(q[1]), uint64(q[2]), uint64(q[3])
			if (b0|b1|b2|b3)&0x80 == 0 {
				// Four characters at once: on wasm every loop edge costs a table branch.
				k := uint64(asciiClass[b0&127])
				last = last<<7 ^ b0
				sum += int(pairs[(prev<<6|k)&pairMask]) + int(int8(grams[gram(last)>>50]))
				prev = uint64(asciiClass[b1&127])
				last = last<<7 ^ b1
				sum += int(pairs[(k<<6|prev)&pairMask]) + int(int8(grams[gram(last)>>50]))
				k = uint64(asciiClass[b2&127])
				last = last<<7 ^ b2
				sum += int(pairs[(prev<<6|k)&pairMask]) + int(int8(grams[gram(last)>>50]))
				prev = uint64(asciiClass[b3&127])
				last = last<<7 ^ b3
				sum += int(pairs[(k<<6|prev)&pairMask]) + int(int8(grams[gram(last)>>50]))
				i += 4
				continue
			}
			cp := b0
			b1, b2, b3 = b1^0x80, b2^0x80, b3^0x80 // below 64 if they go on with a character
			switch {
			case b0 < 0x80:
				i++
			case b0 < 0xc0 || b1 >= 64:
				break fast
			case b0 < 0xe0:
				cp = b0&31<<6 | b1
				i += 2
			case b2 >= 64:
				break fast
			case b0 < 0xf0:
				cp = b0&15<<12 | b1<<6 | b2
				i += 3
			case b0 >= 0xf8 || b3 >= 64:
				break fast
			default:
				cp = b0&7<<18 | b1<<12 | b2<<6 | b3
				i += 4
			}
			k := uint64(classOf(uint32(cp)))
			last = last<<7 ^ cp
			sum += int(pairs[(prev<<6|k)&pairMask])
			if cp < 0x80 {
				sum += int(int8(grams[gram(last)>>50]))
			} else {
				sum += int(int8(others[gram(last)>>51])) + int(int8(singles[single(cp)]))
			}
			prev = k
		}
		if i >= len(b) {
			break
		}
		// One byte: the last three, those of a character that b breaks, and those of none.
		var taken bool
		taken, whole = c.decode(b[i])
		if taken {
			i++
		}
		if whole {
			c.prev, c.last, c.sum = prev, last, sum
			c.add(c.cp)
			prev, last, sum = c.prev, c.last, c.sum
		}
	}
	c.prev, c.last, c.sum = prev, last, sum
}

// decode takes one byte of a character that comes in pieces, or of none. When whole, cp is the
// character; a byte that is not taken ended one that will never be whole.
func (c *Counter) decode(x byte) (taken, whole bool) {
	if c.need > 0 {
		if x&0xc0 != 0x80 {
			c.need, c.cp = 0, invalid
			return false, true
		}
		c.cp = c.cp<<6 | uint32(x&63)
		c.need--
		return true, c.need == 0
	}
	switch {
	case x < 0x80:
		c.cp = uint32(x)
		return true, true
	case x < 0xc0 || x >= 0xf8:
		c.cp = invalid
		return true, true
	case x < 0xe0:
		c.need, c.cp = 1, uint32(x&31)
	case x < 0xf0:
		c.need, c.cp = 2, uint32(x&15)
	default:
		c.need, c.cp = 3, uint32(x&7)
	}
	return true, false
}

// add counts one character.
func (c *Counter) add(cp uint32) {
	k := uint64(classOf(cp))
	c.last = c.last<<7 ^ uint64(cp)
	c.sum += int(c.t.pairs[(c.prev<<6|k)&pairMask])
	if cp < 0x80 {
		c.sum += int(int8(c.t.grams[gram(c.last)>>50]))
	} else {
		c.sum += int(int8(c.t.others[gram(c.last)>>51])) + int(int8(c.t.singles[single(uint64(cp))]))
	}
	c.prev = k
}

// Bytes is the length of the text so far.
func (c *Counter) Bytes() int { return c.bytes }

// longestToken is the longest token of the vocabularies of the families, in bytes: no text has
// fewer tokens than its length over this.
const longestToken = 128

// Count is the estimate for the text so far, in tokens: 0 for no text, else between the true
// bounds of a byte-level vocabulary, one token for 128 bytes and one for each byte. A character of
// which only the beginning has come counts as bytes that are no UTF-8.
func (c *Counter) Count() int {
	whole := *c
	if c.need > 0 {
		whole.add(invalid)
	}
	n := (whole.sum + 1<<(fraction-1)) >> fraction
	return max((c.bytes+longestToken-1)/longestToken, min(n, c.bytes))
}
