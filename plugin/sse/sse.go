// Package sse takes a stream of server-sent events apart, incrementally, by the rules of the WHATWG
// HTML standard (section 9.2.6, "Interpreting an event stream"), with one addition: an event that
// the end of the stream cuts off before its blank line is given out too, since the usage of a call
// may be in it.
//
// It knows nothing of what the data means. It never holds a frame: data is handed on as it comes,
// so a line of any length costs no memory, and the only state is a field's first bytes and an
// event's name, both capped. Its caller
//   - writes the bytes of one stream in pieces of any size; the split never changes what is heard,
//   - joins the data of an event itself: Data, EndLine, Data, EndLine, ..., EndEvent. The standard's
//     value is the lines joined by one LF. Broken servers put whole documents on lines of one event,
//     which is why line ends are told apart,
//   - closes it once.
package sse

import "bytes"

// Handler hears of the parts of the events that have data.
type Handler interface {
	// Data is a part of a data line. p is only valid during the call.
	Data(p []byte)
	// EndLine ends a data line, also an empty one, for which there was no Data.
	EndLine()
	// EndEvent ends an event of at least one data line. name is what its last event field said,
	// empty if there was none or it was longer than MaxName; only valid during the call.
	EndEvent(name []byte)
}

// MaxName caps the length of an event's name.
const MaxName = 64

// maxField is one more than the longest field name that is read.
const maxField = 6

type place uint8

const (
	inBOM      place = iota // the first three bytes of the stream
	inField                 // from the start of a line to its colon
	afterColon              // behind the colon, where one space is left out
	inValue
)

type kind uint8

const (
	otherField kind = iota // comments, id, retry and what nobody knows
	dataField
	eventField
)

// Reader takes one stream apart. It is made by NewReader.
type Reader struct {
	h       Handler
	place   place
	kind    kind // of the field whose value is being read
	afterCR bool // an LF now belongs to the line end before it
	hasData bool // the event has a data line
	begun   bool // a line that is no comment has come since the last blank one
	long    bool // the event's name is longer than MaxName
	nField  uint8
	nBOM    uint8
	field   [maxField]byte
	name    [MaxName]byte
	nName   int
	ended   int
}

// NewReader makes a reader of one stream.
func NewReader(h Handler) Reader { return Reader{h: h} }

var bom = [3]byte{0xef, 0xbb, 0xbf}

// Whole says that the stream stands between two events. Behind a CR it does, whether or not an LF follows.
func (r *Reader) Whole() bool {
	return !r.begun && (r.place == inField && r.nField == 0 || r.place == inBOM && r.nBOM == 0)
}

// AfterCR says that an LF, if it comes next, belongs to the line that has ended.
func (r *Reader) AfterCR() bool { return r.afterCR }

// Ended is how many bytes of the last Write came before the last place in it that is between two events;
// -1 if there is none.
func (r *Reader) Ended() int { return r.ended }

// Write takes the next bytes of the stream.
func (r *Reader) Write(p []byte) {
	size := len(p)
	r.ended = -1
	for len(p) > 0 {
		if r.Whole() {
			r.ended = size - len(p)
		}
		if r.afterCR {
			r.afterCR = false
			if p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		switch r.place {
		case inBOM:
			if p[0] == bom[r.nBOM] {
				if r.nBOM++; int(r.nBOM) == len(bom) {
					r.place = inField
				}
				p = p[1:]
				continue
			}
			// No BOM after all: its bytes are the start of a field that nobody knows.
			r.place = inField
			if r.nBOM > 0 {
				r.nField = maxField
			}
		case inField:
			p = r.readField(p)
		case afterColon:
			r.place = inValue
			if p[0] == ' ' {
				p = p[1:]
			}
		case inValue:
			p = r.readValue(p)
		}
	}
	if r.Whole() {
		r.ended = size
	}
}

// Close ends the stream. What it cut off is given out as if the lines had been ended.
func (r *Reader) Close() {
	if r.place == afterColon || r.place == inValue || r.nField > 0 {
		r.endLine()
	}
	r.endEvent()
}

// readField reads the name of a field up to its colon or the end of the line.
func (r *Reader) readField(p []byte) []byte {
	for i, c := range p {
		switch c {
		case ':':
			r.startValue()
			r.place = afterColon
			return p[i+1:]
		case '\r', '\n':
			r.afterCR = c == '\r'
			r.endLine()
			return p[i+1:]
		}
		if r.nField < maxField {
			r.field[r.nField] = c
			r.nField++
		}
	}
	return nil
}

// startValue tells the field by its name.
func (r *Reader) startValue() {
	r.kind = otherField
	r.begun = r.begun || r.nField > 0
	switch string(r.field[:r.nField]) {
	case "data":
		r.kind, r.hasData = dataField, true
	case "event":
		r.kind, r.nName, r.long = eventField, 0, false
	}
	r.nField = 0
}

// readValue reads a field's value up to the end of the line.
func (r *Reader) readValue(p []byte) []byte {
	n := lineLength(p)
	switch {
	case n == 0:
	case r.kind == dataField:
		r.h.Data(p[:n])
	case r.kind == eventField:
		if r.nName+n > MaxName {
			r.long = true
		} else {
			r.nName += copy(r.name[r.nName:], p[:n])
		}
	}
	if n == len(p) {
		return nil
	}
	r.afterCR = p[n] == '\r'
	r.endLine()
	return p[n+1:]
}

// lineLength counts the bytes before the first CR or LF.
func lineLength(p []byte) int {
	n := bytes.IndexByte(p, '\n')
	if n < 0 {
		n = len(p)
	}
	if cr := bytes.IndexByte(p[:n], '\r'); cr >= 0 {
		n = cr
	}
	return n
}

// endLine ends a line of any kind; a blank one ends the event.
func (r *Reader) endLine() {
	if r.place == inField {
		if r.nField == 0 {
			r.endEvent()
			return
		}
		r.startValue() // a field without a colon has an empty value
	}
	if r.kind == dataField {
		r.h.EndLine()
	}
	r.place, r.kind = inField, otherField
}

func (r *Reader) endEvent() {
	if r.hasData {
		name := r.name[:r.nName]
		if r.long {
			name = nil
		}
		r.h.EndEvent(name)
	}
	r.hasData, r.begun, r.long, r.nName = false, false, false, 0
}
