package approx

// Counter counts one text. The zero value must be Reset before use.
type Counter struct {
	w     *weights
	sum   int    // in 2^-fraction tokens
	bytes int    // of text so far
	prev  uint32 // class of the last character
	place uint32 // of the last character in its run of letters
	need  uint8  // continuation bytes still to come
	cp    uint32 // code point so far
}

// Reset makes the counter ready for a text of the family.
func (c *Counter) Reset(f *Family) { *c = Counter{w: f.weights(), prev: startClass} }

// Write takes the next bytes of the text.
func (c *Counter) Write(b []byte) {
	w := c.w
	prev, place, sum := c.prev, c.place, c.sum
	c.bytes += len(b)
	for i := 0; i < len(b); {
		if c.need == 0 {
			// Four bytes of ASCII at a time: on wasm every loop edge costs a table branch.
			for i+4 <= len(b) {
				q := b[i : i+4 : i+4]
				if (q[0]|q[1]|q[2]|q[3])&0x80 != 0 {
					break
				}
				k := uint32(asciiClass[q[0]&127])
				sum += int(w[(prev<<7|k)&(1<<14-1)])
				place = min(place+1, maxPlace) & letterMask[k&127]
				sum += int(w[(runPlace+place)&(1<<14-1)])
				prev = uint32(asciiClass[q[1]&127])
				sum += int(w[(k<<7|prev)&(1<<14-1)])
				place = min(place+1, maxPlace) & letterMask[prev&127]
				sum += int(w[(runPlace+place)&(1<<14-1)])
				k = uint32(asciiClass[q[2]&127])
				sum += int(w[(prev<<7|k)&(1<<14-1)])
				place = min(place+1, maxPlace) & letterMask[k&127]
				sum += int(w[(runPlace+place)&(1<<14-1)])
				prev = uint32(asciiClass[q[3]&127])
				sum += int(w[(k<<7|prev)&(1<<14-1)])
				place = min(place+1, maxPlace) & letterMask[prev&127]
				sum += int(w[(runPlace+place)&(1<<14-1)])
				i += 4
			}
			if i >= len(b) {
				break
			}
		}
		var k uint32
		switch x := b[i]; {
		case c.need == 0 && x >= 0xe0 && x < 0xf0 && i+2 < len(b) && b[i+1]&0xc0 == 0x80 && b[i+2]&0xc0 == 0x80:
			k = uint32(classOf(uint32(x&15)<<12 | uint32(b[i+1]&63)<<6 | uint32(b[i+2]&63)))
			i += 3
		case c.need == 0 && x >= 0xc0 && x < 0xe0 && i+1 < len(b) && b[i+1]&0xc0 == 0x80:
			k = uint32(classOf(uint32(x&31)<<6 | uint32(b[i+1]&63)))
			i += 2
		default:
			var whole bool
			k, whole = c.decode(x)
			i++
			if !whole {
				continue
			}
		}
		sum += int(w[(prev<<7|k)&(1<<14-1)])
		prev = k
		place = min(place+1, maxPlace) & letterMask[k&127]
		sum += int(w[(runPlace+place)&(1<<14-1)])
	}
	c.prev, c.place, c.sum = prev, place, sum
}

// decode takes one byte and gives the class of the character that it completes.
func (c *Counter) decode(x byte) (class uint32, whole bool) {
	switch {
	case x < 0x80:
		c.need = 0
		return uint32(asciiClass[x]), true
	case x < 0xc0:
		if c.need == 0 {
			return invalidClass, true
		}
		c.cp = c.cp<<6 | uint32(x&63)
		c.need--
		if c.need > 0 {
			return 0, false
		}
		return uint32(classOf(c.cp)), true
	case x < 0xe0:
		c.need, c.cp = 1, uint32(x&31)
	case x < 0xf0:
		c.need, c.cp = 2, uint32(x&15)
	default:
		c.need, c.cp = 3, uint32(x&7)
	}
	return 0, false
}

// Bytes is the length of the text so far.
func (c *Counter) Bytes() int { return c.bytes }

// longestToken is the longest token of the vocabularies of the families, in bytes: no text has
// fewer tokens than its length over this.
const longestToken = 128

// Count is the estimate for the text so far, in tokens: 0 for no text, else between the true
// bounds of a byte-level vocabulary, one token for 128 bytes and one for each byte.
func (c *Counter) Count() int {
	n := (c.sum + 1<<(fraction-1)) >> fraction
	return max((c.bytes+longestToken-1)/longestToken, min(n, c.bytes))
}
