package dialect

import "github.com/emmer-proxy/emmer/plugin/eventstream"

// frameReader reads the messages of an AWS event stream for a meter: each payload is a JSON document, or
// holds one as base64 in its member bytes. An exception's payload says nothing that is metered.
//
// Policy for a stream that is broken (a length or checksum is wrong): what was seen up to there
// counts, and the usage of the broken message does not.
type frameReader struct {
	m       *answerMeter
	reader  eventstream.Reader
	skip    bool        // the payload at hand is an exception's
	wrapper jsonScanner // of the payload, where the document is inside
	base64  base64Text
	plain   [192]byte // some of it, decoded
}

func (m *answerMeter) newFrames() *frameReader {
	f := &frameReader{m: m}
	f.reader = eventstream.NewReader(f)
	if m.api.wrapped {
		f.wrapper = newJSONScanner(wrapperSchema[:], f, answerDepth, true)
	}
	return f
}

var wrapperSchema = [...]node{{}, {kinds: kindObject, want: "a JSON object", fields: []field{{"bytes", 2}}}, {text: true}}

// Begin starts a message.
func (f *frameReader) Begin(h *eventstream.Head) {
	f.m.restart()
	if at := f.m.at; at != nil {
		at.now = passing{said: true, step: f.m.api.tail.step(h.EventType())}
	}
	f.skip = len(h.ExceptionType()) > 0
	switch string(h.MessageType()) {
	case "exception", "error":
		f.skip = true
	}
	if f.skip {
		f.m.mark(failMark)
		return
	}
	if f.m.api.wrapped {
		f.wrapper.restart()
		f.base64 = base64Text{}
	}
}

// Payload takes a part of its payload.
func (f *frameReader) Payload(p []byte) {
	switch {
	case f.skip:
	case f.m.api.wrapped:
		for len(p) > 0 && f.wrapper.fault == nil && f.wrapper.state != docDone {
			p = p[f.wrapper.write(p):]
		}
	default:
		f.m.document(p)
	}
}

// End takes the usage of a message whose checksum is right.
func (f *frameReader) End() {
	f.m.endDocument()
	if f.m.at != nil {
		f.m.at.pass()
	}
}

func (f *frameReader) text(_ uint8, p []byte, _ bool) {
	for len(p) > 0 {
		n, read := f.base64.decode(f.plain[:], p)
		f.m.document(f.plain[:n])
		p = p[read:]
	}
}

func (f *frameReader) begin(uint8, kinds) string         { return "" }
func (f *frameReader) end(uint8, kinds, bool)            {}
func (f *frameReader) key(uint8, []byte, bool)           {}
func (f *frameReader) value(uint8, kinds, []byte) string { return "" }
func (f *frameReader) raw(uint8, []byte, bool)           {}

// base64Text decodes base64 that comes in pieces, as the inside of a JSON string. What is no digit is
// left out, and padding only ends it.
type base64Text struct {
	bits   uint32
	digits uint8
	escape uint8  // 0 plain, 1 after a backslash, 2 to 5 before a digit of \uXXXX
	unit   uint16 // the digits so far
}

// decode decodes as much of p as fits into out, which has room for 3 bytes, and gives the bytes
// written and read.
func (t *base64Text) decode(out, p []byte) (written, read int) {
	for read < len(p) && written+3 <= len(out) {
		c := p[read]
		read++
		switch {
		case t.escape == 1 && c == 'u':
			t.escape, t.unit = 2, 0
			continue
		case t.escape == 1:
			t.escape = 0
		case t.escape > 1:
			d, _ := hexDigit(c)
			t.unit = t.unit<<4 | uint16(d)
			if t.escape++; t.escape < 6 {
				continue
			}
			t.escape = 0
			if t.unit > 0x7f {
				continue
			}
			c = byte(t.unit)
		case c == '\\':
			t.escape = 1
			continue
		}
		v, ok := base64Digit(c)
		if c == '=' && t.digits > 1 {
			for n := t.digits - 1; n > 0; n-- {
				t.bits <<= 6 * uint32(4-t.digits) // as if the missing digits were zeros
				t.digits = 4
				out[written] = byte(t.bits >> 16)
				t.bits = t.bits << 8 & 0xffffff
				written++
			}
			t.bits, t.digits = 0, 0
			continue
		}
		if !ok {
			continue
		}
		t.bits = t.bits<<6 | uint32(v)
		if t.digits++; t.digits == 4 {
			out[written], out[written+1], out[written+2] = byte(t.bits>>16), byte(t.bits>>8), byte(t.bits)
			written += 3
			t.bits, t.digits = 0, 0
		}
	}
	return written, read
}

func base64Digit(c byte) (byte, bool) {
	switch {
	case c >= 'A' && c <= 'Z':
		return c - 'A', true
	case c >= 'a' && c <= 'z':
		return c - 'a' + 26, true
	case c >= '0' && c <= '9':
		return c - '0' + 52, true
	case c == '+' || c == '-':
		return 62, true
	case c == '/' || c == '_':
		return 63, true
	}
	return 0, false
}
