// Package eventstream takes a stream of AWS event stream messages (application/vnd.amazon.eventstream,
// as Bedrock sends it) apart, incrementally: total length, length of the headers and the prelude's
// CRC-32, headers, payload, the message's CRC-32, all numbers big endian.
//
// It knows nothing of what a payload means. It never holds a message: a payload is handed on as it
// comes, so one of any length costs no memory, and the only state is twelve bytes of lengths and the
// first bytes of a header. Its caller
//   - writes the bytes of one stream in pieces of any size; the split never changes what is heard,
//   - believes in what was in a message when End comes: only then its checksum was right,
//   - looks at Broken: after a message that is none, nothing more is heard.
package eventstream

import "hash/crc32"

// Handler hears of messages.
type Handler interface {
	// Begin starts a message whose headers are whole. h is only valid during the call.
	Begin(h *Head)
	// Payload is a part of its payload. p is only valid during the call.
	Payload(p []byte)
	// End ends a message whose checksum is right.
	End()
}

// Head is what the headers of a message say. What is absent, no string or longer than MaxValue reads as
// empty.
type Head struct{ message, event, exception word }

// MessageType is event, exception or error.
func (h *Head) MessageType() []byte { return h.message.text() }

// EventType names an event, such as contentBlockDelta.
func (h *Head) EventType() []byte { return h.event.text() }

// ExceptionType names an exception, such as throttlingException.
func (h *Head) ExceptionType() []byte { return h.exception.text() }

// MaxValue caps the length of a header's value that is kept; MaxHeaders and MaxPayload are what AWS
// allows (the format's description in smithy-rs and aws-sdk-go-v2: 128 KiB and 24 MiB).
const (
	MaxValue   = 64
	MaxHeaders = 128 << 10
	MaxPayload = 24 << 20
)

const (
	preludeSize = 12
	crcSize     = 4
	maxName     = 16 // one more than the longest name that is read
)

type word struct {
	b [MaxValue]byte
	n int
}

func (w *word) text() []byte { return w.b[:w.n] }

type place uint8

const (
	inPrelude place = iota
	inNameLength
	inName
	inType
	inValueLength
	inValue
	inPayload
	inChecksum
)

// Reader takes one stream apart. It is made by NewReader.
type Reader struct {
	h      Handler
	place  place
	broken bool
	crc    uint32
	fixed  [preludeSize]byte // the prelude, a length, or the checksum
	nFixed int

	headers int // bytes of headers that are still to come
	payload int // bytes of the payload that are still to come
	left    int // bytes of the name or value at hand that are still to come
	name    [maxName]byte
	nName   int
	text    bool // the value at hand is a string
	long    bool // and longer than is kept
	value   *word
	head    Head
	ended   int
}

// NewReader makes a reader of one stream.
func NewReader(h Handler) Reader { return Reader{h: h} }

// Broken says that something came that is no message, or one whose checksum is wrong.
func (r *Reader) Broken() bool { return r.broken }

// Whole says that the stream stands between two messages.
func (r *Reader) Whole() bool { return !r.broken && r.place == inPrelude && r.nFixed == 0 }

// Ended is how many bytes of the last Write came before the last place in it that is between two
// messages; -1 if there is none.
func (r *Reader) Ended() int { return r.ended }

// Write takes the next bytes of the stream.
func (r *Reader) Write(p []byte) {
	size := len(p)
	r.ended = -1
	for len(p) > 0 && !r.broken {
		n := 0
		if r.Whole() {
			r.ended = size - len(p)
		}
		switch r.place {
		case inPrelude:
			n = r.fill(p, preludeSize)
			if r.nFixed == preludeSize {
				r.begin()
			}
		case inChecksum:
			n = r.fill(p, crcSize)
			if r.nFixed == crcSize {
				r.end()
			}
		case inPayload:
			n = min(len(p), r.payload)
			r.crc = crc32.Update(r.crc, crc32.IEEETable, p[:n])
			r.payload -= n
			r.h.Payload(p[:n])
			if r.payload == 0 {
				r.place = inChecksum
			}
		default:
			n = r.header(p)
		}
		p = p[n:]
	}
	if r.Whole() {
		r.ended = size
	}
}

// fill collects up to size bytes.
func (r *Reader) fill(p []byte, size int) int {
	n := copy(r.fixed[r.nFixed:size], p)
	r.nFixed += n
	return n
}

func number(b []byte) uint32 {
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// begin reads a prelude.
func (r *Reader) begin() {
	r.nFixed = 0
	total, headers := number(r.fixed[:]), number(r.fixed[4:])
	if crc32.ChecksumIEEE(r.fixed[:8]) != number(r.fixed[8:]) ||
		headers > MaxHeaders || total < preludeSize+headers+crcSize || total > preludeSize+headers+MaxPayload+crcSize {
		r.broken = true
		return
	}
	r.crc = crc32.ChecksumIEEE(r.fixed[:])
	r.headers, r.payload = int(headers), int(total-headers)-preludeSize-crcSize
	r.head.message.n, r.head.event.n, r.head.exception.n = 0, 0, 0
	r.next()
}

// next goes on behind a header.
func (r *Reader) next() {
	switch {
	case r.headers > 0:
		r.place = inNameLength
		return
	case r.payload > 0:
		r.place = inPayload
	default:
		r.place = inChecksum
	}
	r.h.Begin(&r.head)
}

// end reads a message's checksum.
func (r *Reader) end() {
	r.nFixed, r.place = 0, inPrelude
	if number(r.fixed[:]) != r.crc {
		r.broken = true
		return
	}
	r.h.End()
}

// header reads a part of a header and gives its bytes.
func (r *Reader) header(p []byte) int {
	n := 1
	if r.place == inName || r.place == inValue {
		n = min(len(p), r.left)
	}
	if n > r.headers {
		r.broken = true // it goes on beyond the headers
		return 0
	}
	r.crc = crc32.Update(r.crc, crc32.IEEETable, p[:n])
	r.headers -= n
	switch r.place {
	case inNameLength:
		r.place, r.left, r.nName = inName, int(p[0]), 0
		r.broken = p[0] == 0
	case inName:
		r.nName += copy(r.name[r.nName:], p[:n])
		if r.left -= n; r.left == 0 {
			r.place = inType
		}
	case inType:
		r.kind(p[0])
	case inValueLength:
		r.fixed[r.nFixed] = p[0]
		if r.nFixed++; r.nFixed == 2 {
			r.nFixed, r.left = 0, int(r.fixed[0])<<8|int(r.fixed[1])
			r.startValue()
		}
	case inValue:
		if r.value != nil {
			r.long = r.long || copy(r.value.b[r.value.n:], p[:n]) < n
			r.value.n = min(r.value.n+n, MaxValue)
		}
		r.left -= n
		r.endValue()
	}
	return n
}

// kind reads the type of a value.
func (r *Reader) kind(c byte) {
	r.text, r.left = false, 0
	switch c {
	case 0, 1: // true, false
	case 2:
		r.left = 1
	case 3:
		r.left = 2
	case 4:
		r.left = 4
	case 5, 8: // a long, a time
		r.left = 8
	case 9: // a UUID
		r.left = 16
	case 6, 7: // bytes, a string
		r.text, r.place = c == 7, inValueLength
		return
	default:
		r.broken = true
		return
	}
	r.startValue()
}

func (r *Reader) startValue() {
	r.place, r.value, r.long = inValue, nil, false
	if r.text {
		switch string(r.name[:r.nName]) {
		case ":message-type":
			r.value = &r.head.message
		case ":event-type":
			r.value = &r.head.event
		case ":exception-type":
			r.value = &r.head.exception
		}
	}
	if r.value != nil {
		r.value.n = 0
	}
	r.endValue()
}

// endValue goes on behind a value, if it has ended.
func (r *Reader) endValue() {
	if r.left > 0 {
		return
	}
	if r.long {
		r.value.n = 0
	}
	r.next()
}
