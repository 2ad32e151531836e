package dialect

import (
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// stringBody reads on inside a string, from p[i] to behind its closing quote or to the end of p.
func (s *jsonScanner) stringBody(p []byte, i int) int {
	from := i
scan: // which a fault breaks off: what was heard before it is the same wherever the pieces end
	for i < len(p) {
		switch {
		case s.sub != 0:
			if !s.escaped(p[i]) {
				s.syntax(i)
				break scan
			}
			i++
			continue
		case s.need != 0:
			if p[i] < s.lo || p[i] > s.hi {
				s.badUTF8(i)
				break scan
			}
			s.need, s.lo, s.hi = s.need-1, 0x80, 0xbf
			i++
			continue
		}
		i += plainRun(p[i:])
		if i == len(p) {
			break
		}
		c := p[i]
		switch {
		case c == '"':
			if s.mode >= stringKey {
				s.endString(p[from:i])
				if i++; i < len(p) && p[i] == ':' && s.fault == nil {
					s.state = wantValue
					i++
				}
				return i
			}
			if s.mode != stringSkip {
				s.endString(p[from:i])
			}
			if s.fault == nil {
				s.endValue(p, i+1)
			}
			return i + 1
		case c == '\\':
			s.sub = 1
			i++
		case c >= 0x80:
			if s.lax {
				for i < len(p) && p[i] >= 0x80 {
					i++
				}
				break
			}
			i = s.beyondASCII(p, i)
			if s.fault != nil {
				break scan
			}
		case s.lax:
			i++
		default:
			s.syntax(i) // a control character
			break scan
		}
	}
	switch s.mode {
	case stringText:
		if from < i {
			s.h.text(s.node, p[from:i], false)
		}
	case stringValue:
		s.hold(p[from:i])
	case stringKey:
		s.holdKey(p[from:i])
	case stringKeyText:
		if from < i {
			s.h.key(s.top().node, p[from:i], false)
		}
	}
	return i
}

// endString hands on the last part of the string at hand, which is not one to skip over.
func (s *jsonScanner) endString(p []byte) {
	switch s.mode {
	case stringText:
		s.h.text(s.node, p, true)
	case stringValue:
		s.hold(p)
		s.handValue(kindString)
	case stringKey, stringKeyText:
		s.endKey(p)
		s.state = wantColon
	case stringKeySkip:
		s.state = wantColon
	}
}

// escaped takes a byte behind a backslash and says whether it may stand there.
func (s *jsonScanner) escaped(c byte) bool {
	if s.sub == 1 {
		s.sub = 0
		switch c {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			return true
		case 'u':
			s.sub = 2
			return true
		}
		return false
	}
	if s.sub++; s.sub == 6 {
		s.sub = 0
	}
	_, ok := hexDigit(c)
	return ok
}

// beyondASCII reads a run of characters beyond ASCII, from p[i]. The ranges are those of table 3-7
// of the Unicode standard.
func (s *jsonScanner) beyondASCII(p []byte, i int) int {
	for i < len(p) && p[i] >= 0x80 {
		c := p[i]
		s.lo, s.hi = 0x80, 0xbf
		switch {
		case c >= 0xc2 && c <= 0xdf:
			s.need = 1
		case c >= 0xe0 && c <= 0xef:
			s.need = 2
			if c == 0xe0 {
				s.lo = 0xa0
			} else if c == 0xed {
				s.hi = 0x9f
			}
		case c >= 0xf0 && c <= 0xf4:
			s.need = 3
			if c == 0xf0 {
				s.lo = 0x90
			} else if c == 0xf4 {
				s.hi = 0x8f
			}
		default:
			s.badUTF8(i)
			return i
		}
		i++
		for s.need > 0 && i < len(p) {
			if p[i] < s.lo || p[i] > s.hi {
				s.badUTF8(i)
				return i
			}
			s.need, s.lo, s.hi = s.need-1, 0x80, 0xbf
			i++
		}
	}
	return i
}

func (s *jsonScanner) badUTF8(i int) {
	s.syntax(i)
	s.fault.Message += ", which is not UTF-8"
}

// plainRun counts the leading bytes of p that need no look inside a string: ASCII, no control
// character, no quote, no backslash. Eight at a time: a borrow can only spoil bytes above the
// first hit, so the lowest one is right.
func plainRun(p []byte) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(p); i += 8 {
		x := load64(p, i)
		quote := x ^ 0x22*ones
		slash := x ^ 0x5c*ones
		if m := (x | (x - 0x20*ones) | (quote - ones) | (slash - ones)) & high; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for ; i < len(p); i++ {
		if c := p[i]; c < 0x20 || c >= 0x80 || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// unescape appends the text of the inside of a JSON string that the scanner has found valid. Half a
// surrogate pair reads as U+FFFD. b may share its array with p if it begins where p does.
func unescape(b, p []byte) []byte {
	for i := 0; i < len(p); i++ {
		c := p[i]
		if c != '\\' || i+1 == len(p) {
			b = append(b, c)
			continue
		}
		i++
		switch c = p[i]; c {
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			r := codeUnit(p, i+1)
			i += 4
			if utf16.IsSurrogate(r) {
				low := rune(-1)
				if i+2 < len(p) && p[i+1] == '\\' && p[i+2] == 'u' {
					low = codeUnit(p, i+3)
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
			b = utf8.AppendRune(b, r)
		default:
			b = append(b, c)
		}
	}
	return b
}

// codeUnit reads four hexadecimal digits at p[i]; what is missing reads as zero.
func codeUnit(p []byte, i int) (r rune) {
	for k := i; k < i+4; k++ {
		r <<= 4
		if k < len(p) {
			d, _ := hexDigit(p[k])
			r |= rune(d)
		}
	}
	return r
}
