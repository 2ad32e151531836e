package dialect

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strconv"
)

// endWriter writes the events of an ending in the form that the stream has.
type endWriter struct {
	b       []byte
	form    meterMode
	wrapped bool
	mark    string // still to be put into a document
	sep     byte
}

// event writes a document as an event of that name; where events have no names it is empty.
func (w *endWriter) event(name, doc string) {
	switch w.form {
	case readsSSE:
		if name != "" {
			w.b = append(append(append(w.b, "event: "...), name...), '\n')
		}
		w.b = append(append(append(w.b, "data: "...), w.marked("emmer", doc)...), "\n\n"...)
	case readsArray:
		if w.sep != '[' && w.sep != ',' {
			w.b = append(w.b, ',')
		}
		w.sep = '}'
		w.b = append(append(append(w.b, '\n'), w.marked("emmer", doc)...), '\n')
	case readsFrames:
		if w.wrapped {
			name, doc = "chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(doc))+`"}`
		}
		w.frame(name, w.marked("p", doc)) // AWS's own padding is a member of that name
	default:
		if w.sep != '\n' {
			w.b = append(w.b, '\n')
		}
		w.sep = '\n'
		w.b = append(append(w.b, w.marked("emmer", doc)...), '\n')
	}
}

// marked is an object with the mark in it, if that was not put down before.
func (w *endWriter) marked(key, doc string) string {
	if w.mark == "" {
		return doc
	}
	value := string(appendQuoted(nil, w.mark))
	w.mark = ""
	if doc == "{}" {
		return `{"` + key + `":` + value + `}`
	}
	return doc[:len(doc)-1] + `,"` + key + `":` + value + `}`
}

// line writes a data line that is no JSON.
func (w *endWriter) line(text string) {
	w.b = append(append(append(w.b, "data: "...), text...), "\n\n"...)
}

// frame writes a message of an AWS event stream.
func (w *endWriter) frame(name, payload string) {
	from := len(w.b)
	w.b = append(w.b, make([]byte, 12)...)
	for _, h := range [...][2]string{{":event-type", name}, {":content-type", "application/json"}, {":message-type", "event"}} {
		w.b = append(append(append(w.b, byte(len(h[0]))), h[0]...), 7)
		w.b = append(binary.BigEndian.AppendUint16(w.b, uint16(len(h[1]))), h[1]...)
	}
	headers := len(w.b) - from - 12
	w.b = append(w.b, payload...)
	prelude := w.b[from:]
	binary.BigEndian.PutUint32(prelude, uint32(len(prelude)+4))
	binary.BigEndian.PutUint32(prelude[4:], uint32(headers))
	binary.BigEndian.PutUint32(prelude[8:], crc32.ChecksumIEEE(prelude[:8]))
	w.b = binary.BigEndian.AppendUint32(w.b, crc32.ChecksumIEEE(w.b[from:]))
}

// text is a member whose value is a word that the stream has said of itself; empty if it has not.
func (a *standing) text(key string, s spot) string {
	return `"` + key + `":"` + a.words[s-idSpot] + `",`
}

// time is the member that says when the stream began, or a value in place of it; nothing if that is empty.
func (a *standing) time(key, missing string) string {
	w := a.words[timeSpot-idSpot]
	if w == "" {
		w = missing
	}
	if w == "" {
		return ""
	}
	return `"` + key + `":` + w + `,`
}

func decimal[T ~int64 | ~int32](n T) string { return strconv.FormatInt(int64(n), 10) }
