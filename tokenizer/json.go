package tokenizer

import "bytes"

// unescaper is the state between two pieces of the inside of a JSON string.
type unescaper struct {
	state  uint8    // 0 plain, 1 after a backslash, 2 to 5 before the first to fourth digit of \uXXXX
	unit   uint16   // the digits so far
	high   uint16   // a high surrogate that waits for its low one, or 0
	digits [4]byte  // as written, for an escape that proves invalid
	out    [12]byte // room for what one escape gives
}

func (u *unescaper) open() bool { return u.state != 0 || u.high != 0 }

// WriteJSON takes the next bytes of a text as it stands inside a JSON string, without its quotes.
// Escapes may be split anywhere. Half a surrogate pair counts as U+FFFD, as in most decoders. What
// is no escape of JSON counts as written, and so does a bare quote.
func (c *Counter) WriteJSON(p []byte) {
	u := &c.esc
	for len(p) > 0 {
		if u.state != 0 {
			if c.escaped(p[0]) {
				p = p[1:]
			}
			continue
		}
		n := bytes.IndexByte(p, '\\')
		if n < 0 {
			n = len(p)
		}
		if n > 0 {
			if u.high != 0 {
				c.loneSurrogate()
			}
			c.text.Write(p[:n])
		}
		if n == len(p) {
			return
		}
		u.state = 1
		p = p[n+1:]
	}
}

// escaped takes one byte behind a backslash. It gives false if the byte does not belong to the
// escape and is to be read again as plain text.
func (c *Counter) escaped(b byte) bool {
	u := &c.esc
	if u.state == 1 {
		if b == 'u' {
			u.state, u.unit = 2, 0
			return true
		}
		u.state = 0
		if u.high != 0 {
			c.loneSurrogate()
		}
		switch b {
		case '"', '\\', '/':
		case 'b':
			b = '\b'
		case 'f':
			b = '\f'
		case 'n':
			b = '\n'
		case 'r':
			b = '\r'
		case 't':
			b = '\t'
		default:
			u.out[0] = '\\'
			c.text.Write(u.out[:1])
			return false
		}
		u.out[0] = b
		c.text.Write(u.out[:1])
		return true
	}
	d, ok := hexDigit(b)
	if !ok {
		c.closeEscape()
		return false
	}
	u.digits[u.state-2] = b
	u.unit = u.unit<<4 | uint16(d)
	u.state++
	if u.state == 6 {
		u.state = 0
		c.codeUnit(u.unit)
	}
	return true
}

// codeUnit takes one UTF-16 code unit that an escape spelled.
func (c *Counter) codeUnit(unit uint16) {
	u := &c.esc
	isHigh, isLow := unit>>10 == 0x36, unit>>10 == 0x37
	if isLow && u.high != 0 {
		r := 0x10000 + rune(u.high&0x3ff)<<10 + rune(unit&0x3ff)
		u.high = 0
		c.rune(r)
		return
	}
	if u.high != 0 {
		c.loneSurrogate()
	}
	switch {
	case isHigh:
		u.high = unit
	case isLow:
		c.rune(0xfffd)
	default:
		c.rune(rune(unit))
	}
}

func (c *Counter) loneSurrogate() {
	c.esc.high = 0
	c.rune(0xfffd)
}

// rune is utf8.AppendRune into a buffer that does not escape to the heap.
func (c *Counter) rune(r rune) {
	b := &c.esc.out
	n := 1
	switch {
	case r < 0x80:
		b[0] = byte(r)
	case r < 0x800:
		b[0], b[1] = 0xc0|byte(r>>6), 0x80|byte(r&63)
		n = 2
	case r < 0x10000:
		b[0], b[1], b[2] = 0xe0|byte(r>>12), 0x80|byte(r>>6&63), 0x80|byte(r&63)
		n = 3
	default:
		b[0], b[1], b[2], b[3] = 0xf0|byte(r>>18), 0x80|byte(r>>12&63), 0x80|byte(r>>6&63), 0x80|byte(r&63)
		n = 4
	}
	c.text.Write(b[:n])
}

// closeEscape ends an escape that the text left unfinished or broke: what was written counts.
func (c *Counter) closeEscape() {
	u := &c.esc
	if u.high != 0 {
		c.loneSurrogate()
	}
	n := 0
	if u.state >= 1 {
		u.out[n] = '\\'
		n++
	}
	if u.state >= 2 {
		u.out[n] = 'u'
		n++
		n += copy(u.out[n:], u.digits[:u.state-2])
	}
	u.state = 0
	c.text.Write(u.out[:n])
}

func hexDigit(b byte) (byte, bool) {
	switch {
	case b >= '0' && b <= '9':
		return b - '0', true
	case b >= 'a' && b <= 'f':
		return b - 'a' + 10, true
	case b >= 'A' && b <= 'F':
		return b - 'A' + 10, true
	}
	return 0, false
}
