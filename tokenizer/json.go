package tokenizer

import "bytes"

// unescaper is the state between two pieces of the inside of a JSON string.
type unescaper struct {
	state  uint8   // 0 plain, 1 after a backslash, 2 to 5 before the first to fourth digit of \uXXXX
	unit   uint16  // the digits so far
	high   uint16  // a high surrogate that waits for its low one, or 0
	digits [4]byte // as written, for an escape that proves invalid
}

func (u *unescaper) open() bool { return u.state != 0 || u.high != 0 }

const (
	// Unescaped text is gathered before it is counted: prose in JSON has an escape every 60 bytes or
	// so, and a counter takes its fast path only where it sees more than 64 bytes ahead. The smaller
	// room is for the deltas of a stream: a room is cleared at each call.
	gathered      = 4096
	gatheredShort = 512
	// longestEscape is the most that one escape gives: a lone surrogate (3 bytes) and 6 as written.
	longestEscape = 9
)

// WriteJSON takes the next bytes of a text as it stands inside a JSON string, without its quotes.
// Escapes may be split anywhere. Half a surrogate pair counts as U+FFFD, as in most decoders. What
// is no escape of JSON counts as written, and so does a bare quote.
func (c *Counter) WriteJSON(p []byte) {
	if len(p) <= gatheredShort-longestEscape {
		var room [gatheredShort]byte
		c.unescape(p, room[:0])
		return
	}
	var room [gathered]byte
	c.unescape(p, room[:0])
}

// unescape counts what p spells. Its work space is what lies behind buf.
func (c *Counter) unescape(p, buf []byte) {
	u := &c.esc
	for len(p) > 0 {
		if cap(buf)-len(buf) < longestEscape {
			c.write(buf)
			buf = buf[:0]
		}
		if u.state != 0 {
			var taken bool
			if buf, taken = u.escaped(buf, p[0]); taken {
				p = p[1:]
			}
			continue
		}
		plain := p
		if n := bytes.IndexByte(p, '\\'); n >= 0 {
			plain, p, u.state = p[:n], p[n+1:], 1
		} else {
			p = nil
		}
		if len(plain) == 0 {
			continue
		}
		if u.high != 0 {
			buf = u.loneSurrogate(buf)
		}
		if len(plain) > cap(buf)-len(buf) {
			c.write(buf)
			buf = buf[:0]
			if len(plain) > cap(buf) {
				c.write(plain)
				continue
			}
		}
		buf = append(buf, plain...)
	}
	c.write(buf)
}

// escaped takes one byte behind a backslash. It gives false if the byte does not belong to the
// escape and is to be read again as plain text.
func (u *unescaper) escaped(buf []byte, b byte) ([]byte, bool) {
	if u.state == 1 {
		if b == 'u' {
			u.state, u.unit = 2, 0
			return buf, true
		}
		u.state = 0
		if u.high != 0 {
			buf = u.loneSurrogate(buf)
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
			return append(buf, '\\'), false
		}
		return append(buf, b), true
	}
	d, ok := hexDigit(b)
	if !ok {
		return u.close(buf), false
	}
	u.digits[u.state-2] = b
	u.unit = u.unit<<4 | uint16(d)
	u.state++
	if u.state == 6 {
		u.state = 0
		buf = u.codeUnit(buf)
	}
	return buf, true
}

// codeUnit takes the UTF-16 code unit that an escape spelled.
func (u *unescaper) codeUnit(buf []byte) []byte {
	unit := u.unit
	isHigh, isLow := unit>>10 == 0x36, unit>>10 == 0x37
	if isLow && u.high != 0 {
		r := 0x10000 + rune(u.high&0x3ff)<<10 + rune(unit&0x3ff)
		u.high = 0
		return appendRune(buf, r)
	}
	if u.high != 0 {
		buf = u.loneSurrogate(buf)
	}
	switch {
	case isHigh:
		u.high = unit
		return buf
	case isLow:
		return appendRune(buf, 0xfffd)
	}
	return appendRune(buf, rune(unit))
}

func (u *unescaper) loneSurrogate(buf []byte) []byte {
	u.high = 0
	return appendRune(buf, 0xfffd)
}

// close ends an escape that the text left unfinished or broke: what was written counts.
func (u *unescaper) close(buf []byte) []byte {
	if u.high != 0 {
		buf = u.loneSurrogate(buf)
	}
	if u.state >= 1 {
		buf = append(buf, '\\')
	}
	if u.state >= 2 {
		buf = append(buf, 'u')
		buf = append(buf, u.digits[:u.state-2]...)
	}
	u.state = 0
	return buf
}

// appendRune is utf8.AppendRune for what is no surrogate, short enough for wasm to do well.
func appendRune(b []byte, r rune) []byte {
	switch {
	case r < 0x80:
		return append(b, byte(r))
	case r < 0x800:
		return append(b, 0xc0|byte(r>>6), 0x80|byte(r&63))
	case r < 0x10000:
		return append(b, 0xe0|byte(r>>12), 0x80|byte(r>>6&63), 0x80|byte(r&63))
	}
	return append(b, 0xf0|byte(r>>18), 0x80|byte(r>>12&63), 0x80|byte(r>>6&63), 0x80|byte(r&63))
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
