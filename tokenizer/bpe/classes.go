package bpe

import _ "embed"

// classData holds the class of every character, frozen from the Unicode tables of the Go release
// that generated it (NOTICE.md has the version). Two stages: for each 128 characters the number of
// a block (8,704 bytes), then the blocks of 64 bytes, two characters to a byte, the even one in the
// low half.
//
//go:embed class.bin
var classData string

const blockNumbers = 0x110000 / 128

// Classes of characters, as far as the rules tell them apart. The first eight are those of
// class.bin; the generator has the same list.
const (
	other    = iota // what is none of the following, and each byte that is no UTF-8
	lower           // Ll
	upper           // Lu, Lt
	caseless        // Lm, Lo
	mark            // M
	number          // N
	space           // White_Space but for CR, LF
	line            // CR, LF

	// Single characters with a rule of their own.
	blank // the space U+0020
	quote // '
	slash // /

	// far, in the table of bytes, begins (or is) what stands beyond ASCII; end is the end of the text.
	far
	end = far
)

// fastClass has the class of a byte for the fast path, which tells quote, slash and blank by
// themselves.
var fastClass = classesOfBytes(other, other, space)

// byteClass has the class of a byte for the scanner.
var byteClass = classesOfBytes(quote, slash, blank)

func classesOfBytes(quote, slash, blank uint8) (t [256]uint8) {
	for i := range t {
		switch {
		case i >= 'a' && i <= 'z':
			t[i] = lower
		case i >= 'A' && i <= 'Z':
			t[i] = upper
		case i >= '0' && i <= '9':
			t[i] = number
		case i == '\t' || i == '\v' || i == '\f':
			t[i] = space
		case i == '\n' || i == '\r':
			t[i] = line
		case i == ' ':
			t[i] = blank
		case i == '\'':
			t[i] = quote
		case i == '/':
			t[i] = slash
		case i >= 0x80:
			t[i] = far
		}
	}
	return t
}

// classOf gives the class of a character beyond ASCII.
func classOf(r uint32) uint8 {
	block := uint32(byteOf(viewOf(classData), r>>7))
	return byteOf(viewOf(classData), blockNumbers+block<<6+r>>1&63) >> (r & 1 << 2) & 15
}

// notThree has a bit for each 2,048 characters that UTF-8 never writes in three bytes: those that
// need fewer, and the surrogates.
const notThree uint32 = 1<<0 | 1<<(0xd800>>11)

// decode gives the class and the width of the character at b[i], which is not ASCII. It cuts invalid
// UTF-8 as unicode/utf8 does, one byte at a time. b holds at least four bytes from i on.
func decode(b *[textRoom]byte, i int) (class uint8, width int) {
	b0, b1 := uint32(byteAt(b, i)), uint32(byteAt(b, i+1))
	if b0 < 0xc2 || b1&0xc0 != 0x80 {
		return other, 1
	}
	if b0 < 0xe0 {
		return classOf(b0&0x1f<<6 | b1&0x3f), 2
	}
	b2 := uint32(byteAt(b, i+2))
	if b2&0xc0 != 0x80 {
		return other, 1
	}
	if b0 < 0xf0 {
		r := b0&0x0f<<12 | b1&0x3f<<6 | b2&0x3f
		if notThree>>(r>>11&31)&1 != 0 {
			return other, 1
		}
		return classOf(r), 3
	}
	b3 := uint32(byteAt(b, i+3))
	if b0 > 0xf4 || b3&0xc0 != 0x80 {
		return other, 1
	}
	r := b0&0x07<<18 | b1&0x3f<<12 | b2&0x3f<<6 | b3&0x3f
	if r < 0x10000 || r > 0x10ffff {
		return other, 1
	}
	return classOf(r), 4
}
