package tokenizer

import "bytes"

// medium reads an image, a sound or a file as it passes: a data URL, bare base64 or another URL,
// inside a JSON string. It decodes no more than what tells the size, and keeps the first 32 bytes.
//
// Three machines in a row, each of which may stop at any byte: the escapes of JSON, the parts of a
// URL, base64. Once nothing more can be learned, the rest is only counted.
type medium struct {
	used bool // there was a text
	ref  bool // begun as a reference: a bare string is an id or a name, not base64

	escape  uint8  // 0 plain, 1 after a backslash, 2 to 5 before a digit of \uXXXX
	unit    uint16 // the digits so far
	place   place
	scheme  uint8 // letters of "data" that the URL began with, 255 = other
	head    int   // bytes before the data so far
	mime    word
	mark    uint8 // letters of ";base64" that the header ends with
	quad    uint32
	digits  uint8 // base64 digits in quad
	broken  bool  // what was decoded is not to be trusted
	passed  int64 // digits of base64 that were only counted
	decoded int64 // bytes that were decoded
	content content
}

// place is where in a URL the next byte stands.
type place uint8

const (
	bare       place = iota // base64, or the scheme of a URL
	header                  // of a data URL
	data                    // base64
	plain                   // data that isn't base64
	elsewhere               // a URL that says nothing of what it leads to
	afterwards              // behind the end of base64
)

// maxScheme is how far a colon may stand from the beginning to end a scheme, and maxHeader how far
// the comma of a data URL.
const (
	maxScheme = 32
	maxHeader = 512
)

func (m *medium) begin(ref bool) {
	*m = medium{used: true, ref: ref}
}

// reference says whether the medium is only referred to.
func (m *medium) reference() bool {
	return m.ref && m.place == bare || m.place == elsewhere
}

// size is the number of bytes of the medium, nearly.
func (m *medium) size() int64 {
	return m.decoded + int64(m.digits)*3/4 + m.passed/4*3 + m.passed%4*3/4
}

// write takes the next bytes of the inside of a JSON string.
func (m *medium) write(json []byte) {
	for len(json) > 0 {
		switch {
		case m.escape != 0:
			m.unescape(json[0])
			json = json[1:]
		case m.done():
			m.pass(json)
			return
		case json[0] == '\\':
			m.escape = 1
			json = json[1:]
		default:
			json = json[m.run(json):]
		}
	}
}

// done says that the rest of the text needs only be counted.
func (m *medium) done() bool {
	switch m.place {
	case data:
		return m.broken || m.content.done()
	case plain, elsewhere, afterwards:
		return true
	}
	return false
}

// pass counts. An escape counts as about one byte: \/ is the only one that base64 needs.
func (m *medium) pass(json []byte) {
	switch m.place {
	case data, plain, elsewhere, afterwards:
		m.passed += int64(len(json) - bytes.Count(json, backslash[:]))
	}
}

var backslash = [...]byte{'\\'}

// run takes plain bytes up to an escape, or until only counting is left, and gives how many.
func (m *medium) run(p []byte) int {
	for i := 0; i < len(p); i++ {
		if p[i] == '\\' {
			return i
		}
		if m.place == data && m.digits == 0 {
			i += m.quads(p[i:])
			if i == len(p) || m.done() {
				return i
			}
			if p[i] == '\\' {
				return i
			}
		}
		m.put(p[i])
		if m.done() {
			return i + 1
		}
	}
	return len(p)
}

// quads decodes as many whole groups of four digits as stand at the beginning of p.
func (m *medium) quads(p []byte) int {
	n := 0
	for ; n+4 <= len(p); n += 4 {
		a, b, c, d := digitOf[p[n]], digitOf[p[n+1]], digitOf[p[n+2]], digitOf[p[n+3]]
		if a|b|c|d >= 64 {
			break
		}
		v := uint32(a)<<18 | uint32(b)<<12 | uint32(c)<<6 | uint32(d)
		m.decoded += 3
		if m.content.idle() && byte(v>>16) != '/' && byte(v>>8) != '/' && byte(v) != '/' {
			continue
		}
		m.content.put(byte(v >> 16))
		m.content.put(byte(v >> 8))
		m.content.put(byte(v))
		if m.content.done() {
			return n + 4
		}
	}
	return n
}

func (m *medium) unescape(b byte) {
	if m.escape == 1 {
		m.escape = 0
		switch b {
		case 'u':
			m.escape, m.unit = 2, 0
		case 'n', 'r', 't', 'b', 'f':
			m.put('\n')
		default:
			m.put(b)
		}
		return
	}
	d, ok := hexDigit(b)
	if !ok {
		m.escape = 0
		m.put(0)
		return
	}
	m.unit = m.unit<<4 | uint16(d)
	m.escape++
	if m.escape == 6 {
		m.escape = 0
		if m.unit > 0x7f {
			m.unit = 0 // no byte of a URL's head nor a digit
		}
		m.put(byte(m.unit))
	}
}

// put takes one byte of the URL.
func (m *medium) put(b byte) {
	switch m.place {
	case bare:
		m.head++
		if b == ':' && m.head <= maxScheme {
			m.leaveBare()
			return
		}
		if int(m.scheme) < len(dataScheme) {
			if b|0x20 == dataScheme[m.scheme] {
				m.scheme++
			} else {
				m.scheme = 255
			}
		} else {
			m.scheme = 255
		}
		m.digit(b)
		switch {
		case m.head <= maxScheme:
		case m.ref:
			m.place = elsewhere
		default:
			m.place = data
		}
	case header:
		m.putHeader(b)
	case data:
		m.digit(b)
	}
}

const dataScheme = "data"

// leaveBare ends the scheme. What was decoded so far was none of the data.
func (m *medium) leaveBare() {
	is := int(m.scheme) == len(dataScheme)
	m.digits, m.decoded, m.broken, m.content = 0, 0, false, content{}
	m.head = 0
	m.place = elsewhere
	if is {
		m.place = header
	}
}

const base64Mark = ";base64"

func (m *medium) putHeader(b byte) {
	m.head++
	switch {
	case b == ',' && int(m.mark) == len(base64Mark):
		m.place = data
	case b == ',':
		m.place = plain
	case m.head > maxHeader:
		m.place, m.broken = plain, true
	}
	m.mime.put(b)
	b |= 0x20
	switch {
	case int(m.mark) < len(base64Mark) && b == base64Mark[m.mark]|0x20:
		m.mark++
	case b == ';'|0x20:
		m.mark = 1
	default:
		m.mark = 0
	}
}

// digit takes one byte of base64.
func (m *medium) digit(b byte) {
	v := digitOf[b]
	switch {
	case v < 64:
	case v == blank:
		return
	case v == padding:
		// What follows a group of four would be another document.
		m.flush()
		if m.place == data {
			m.place = afterwards
		} else {
			m.broken = true
		}
		return
	default:
		m.broken = true
		m.passed++
		return
	}
	m.quad = m.quad<<6 | uint32(v)
	m.digits++
	if m.digits == 4 {
		m.content.put(byte(m.quad >> 16))
		m.content.put(byte(m.quad >> 8))
		m.content.put(byte(m.quad))
		m.decoded += 3
		m.quad, m.digits = 0, 0
	}
}

// flush takes the bytes of a group that isn't whole.
func (m *medium) flush() {
	switch m.digits {
	case 2:
		m.content.put(byte(m.quad >> 4))
		m.decoded++
	case 3:
		m.content.put(byte(m.quad >> 10))
		m.content.put(byte(m.quad >> 2))
		m.decoded += 2
	}
	m.quad, m.digits = 0, 0
}

const (
	blank   = 64
	padding = 65
	noDigit = 66
)

// digitOf is the value of a digit of base64, in both its alphabets.
var digitOf = func() (t [256]byte) {
	for i := range t {
		t[i] = noDigit
	}
	for i, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		t[c] = byte(i)
	}
	t['-'], t['_'], t['='] = 62, 63, padding
	t[' '], t['\t'], t['\r'], t['\n'] = blank, blank, blank, blank
	return t
}()

// word is the beginning of a short text, in lower case.
type word struct {
	b [16]byte
	n uint8 // bytes, 255 = more than there is room for
}

func (w *word) write(p []byte, first bool) {
	if first {
		*w = word{}
	}
	for _, b := range p {
		w.put(b)
		if w.n == 255 {
			return
		}
	}
}

func (w *word) put(b byte) {
	if int(w.n) >= len(w.b) {
		w.n = 255
		return
	}
	if b >= 'A' && b <= 'Z' {
		b |= 0x20
	}
	w.b[w.n] = b
	w.n++
}

// is says whether the whole text is s, which must be shorter than the room.
func (w *word) is(s string) bool { return w.n != 255 && string(w.b[:w.n]) == s }

// begins says whether the text begins with s.
func (w *word) begins(s string) bool {
	return len(s) <= len(w.b) && len(s) <= int(w.n) && string(w.b[:len(s)]) == s
}

// goesOn says whether the text has s behind its first n bytes, and no further letter or digit.
func (w *word) goesOn(n int, s string) bool {
	end := n + len(s)
	if end > len(w.b) || end > int(w.n) || string(w.b[n:end]) != s {
		return false
	}
	if end == int(w.n) || end == len(w.b) {
		return true
	}
	b := w.b[end]
	return (b < 'a' || b > 'z') && (b < '0' || b > '9')
}
