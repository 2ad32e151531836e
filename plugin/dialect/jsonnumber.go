package dialect

type numState uint8

const (
	numMinus numState = iota
	numZero
	numInt
	numDot
	numFraction
	numE
	numESign
	numExponent
)

// number reads on inside a number, by the grammar of RFC 8259 section 6.
func (s *jsonScanner) number(p []byte, i int) int {
	from := i
	if s.num == numInt {
		for i < len(p) && p[i]-'0' <= 9 {
			i++
		}
	}
	for ; i < len(p); i++ {
		c := p[i]
		digit := c >= '0' && c <= '9'
		next := s.num
		switch s.num {
		case numMinus:
			if !digit {
				s.syntax(i)
				return i
			}
			next = numInt
			if c == '0' {
				next = numZero
			}
		case numZero, numInt, numFraction:
			switch {
			case digit && s.num != numZero:
			case c == '.' && s.num != numFraction:
				next = numDot
			case c == 'e' || c == 'E':
				next = numE
			case digit:
				s.syntax(i) // a leading zero
				return i
			default:
				return s.endNumber(p, from, i)
			}
		case numDot:
			if !digit {
				s.syntax(i)
				return i
			}
			next = numFraction
		case numE:
			switch {
			case digit:
				next = numExponent
			case c == '+' || c == '-':
				next = numESign
			default:
				s.syntax(i)
				return i
			}
		case numESign:
			if !digit {
				s.syntax(i)
				return i
			}
			next = numExponent
		case numExponent:
			if !digit {
				return s.endNumber(p, from, i)
			}
		}
		s.num = next
	}
	s.holdNumber(p[from:i])
	return i
}

func (s *jsonScanner) holdNumber(p []byte) {
	if s.node != 0 {
		s.hold(p)
	}
}

func (s *jsonScanner) endNumber(p []byte, from, i int) int {
	s.holdNumber(p[from:i])
	if s.node != 0 {
		s.handValue(kindNumber)
	}
	if s.fault == nil {
		s.endValue(p, i)
	}
	return i
}

// maxWhole is 2^53-1, the largest whole number that JSON is sure to carry.
const maxWhole = 1<<53 - 1

// parseWhole gives the value of a JSON number that is whole and between -maxWhole and maxWhole,
// however it is spelled: 50, 50.0 and 5e1 are the same. p must be a valid JSON number.
func parseWhole(p []byte) (int64, bool) {
	negative := len(p) > 0 && p[0] == '-'
	if negative {
		p = p[1:]
	}
	// The digits without zeros at either end, and the power of ten that they stand at.
	var value int64
	exponent, zeros, i := 0, 0, 0
	fraction, overflow := false, false
	for ; i < len(p); i++ {
		c := p[i]
		if c == '.' {
			fraction = true
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		if fraction {
			exponent--
		}
		if c == '0' {
			zeros++ // of no consequence unless a digit follows
			continue
		}
		if value == 0 {
			zeros = 0 // they led
		}
		for ; zeros > 0 && !overflow; zeros-- {
			value, overflow = timesTen(value, 0)
		}
		if !overflow {
			value, overflow = timesTen(value, int64(c-'0'))
		}
		zeros = 0
	}
	exponent += zeros
	if value == 0 && !overflow {
		return 0, true
	}
	if i < len(p) { // e or E
		e, sign := 0, 1
		for _, c := range p[i+1:] {
			switch {
			case c == '-':
				sign = -1
			case c >= '0' && c <= '9':
				e = min(e*10+int(c-'0'), 1<<20)
			}
		}
		exponent += sign * e
	}
	if overflow || exponent < 0 {
		return 0, false
	}
	for ; exponent > 0; exponent-- {
		if value, overflow = timesTen(value, 0); overflow {
			return 0, false
		}
	}
	if negative {
		value = -value
	}
	return value, true
}

// timesTen gives 10v+digit, or that it is above maxWhole.
func timesTen(v, digit int64) (int64, bool) {
	if v > (maxWhole-digit)/10 {
		return 0, true
	}
	return v*10 + digit, false
}
