package dialect

import (
	"strconv"
	"strings"
)

// form says how the bodies of one API are read that come as multipart/form-data (RFC 7578).
type form struct {
	fields []formField
	// set takes a whole field; a complaint that isn't empty refuses the body: it completes "<name> ...".
	set func(f *Facts, name, value string, at Span) (complaint string)
	// file takes the length of a file and its first bytes.
	file func(f *Facts, name string, size int64, head []byte)
	done func(f *Facts)
}

// formField is a field that is read. All others are passed over.
type formField struct {
	name string
	kind formKind
	item Item // that ends with it
	many bool // it may come more than once
}

type formKind uint8

const (
	formValue formKind = iota // a short one, for form.set
	formText                  // one that a model is given
	formFile                  // for form.file
)

const (
	maxFormHead  = 4 << 10 // bytes of the head of a part
	maxFormValue = 1 << 10
	maxFormParts = 1000
	maxBoundary  = 70 // RFC 2046, section 5.1.1
	formMagic    = 64 // bytes of a file that form.file is given
)

// formScanner reads a form in pieces of any size. Nothing of it is held but the head of a part, a
// short value and the first bytes of a file.
//
// It takes what RFC 7578 and 2046 say and refuses what two decoders might read differently: lines
// that end in LF alone around a boundary, names in other letters or written with escapes, a field
// that is read twice, parts in a transfer encoding. What stands before the first boundary and behind
// the last is not read by anybody.
type formScanner struct {
	api   *form
	sink  Sink
	facts Facts
	fault *Fault

	boundary string // with the LF and the two dashes before it
	matched  int    // bytes of boundary that the last bytes are
	cr       bool   // a CR stands before them, or is the last byte
	fresh    bool   // no byte of what the part holds was seen: a boundary may follow the CRLF before it
	begun    bool   // the first boundary was seen
	place    formPlace
	at       int64 // bytes read before the piece at hand
	parts    int

	line    []byte // of a part's head, so far
	head    int    // bytes of that head
	name    string
	named   bool
	isFile  bool
	field   *formField
	seen    uint64 // fields, one bit each
	value   []byte
	size    int64 // of the part's body
	started int64 // where it begins
}

type formPlace uint8

const (
	formBody   formPlace = iota // of a part, or what stands before the first
	formBorder                  // behind a boundary: the rest of its line, or the two dashes of the last
	formDash                    // behind the first of them
	formHead
	formEnd
)

func (a *form) newScanner(h RequestHead, facts Facts, sink Sink) Scanner {
	if facts.N == 0 {
		facts.N = 1
	}
	s := &formScanner{api: a, sink: sink, facts: facts, matched: 1, cr: true, fresh: true}
	boundary, ok := formBoundary(h.ContentType)
	if !ok {
		s.fault = &Fault{Status: 415, Code: "unsupported_media_type",
			Message: "the body must be multipart/form-data with a boundary of 1 to 70 characters, as SDKs send it"}
	}
	s.boundary = "\n--" + boundary
	return s
}

// isForm says whether a body is a form.
func isForm(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(kind), "multipart/form-data")
}

// formBoundary reads the boundary of a content type.
func formBoundary(contentType string) (string, bool) {
	_, rest, _ := strings.Cut(contentType, ";")
	boundary, found := "", false
	for rest != "" {
		name, value, after, ok := parameter(rest)
		if !ok {
			return "", false
		}
		rest = after
		if strings.EqualFold(name, "boundary") {
			if found {
				return "", false
			}
			boundary, found = value, true
		}
	}
	if len(boundary) == 0 || len(boundary) > maxBoundary || !isForm(contentType) {
		return "", false
	}
	for i := 0; i < len(boundary); i++ {
		if c := boundary[i]; c < ' ' || c > '~' {
			return "", false
		}
	}
	return boundary, boundary[len(boundary)-1] != ' '
}

// parameter takes one parameter off a header's value: name=token or name="quoted". Escapes within
// quotes are refused: decoders differ about them.
func parameter(s string) (name, value, rest string, ok bool) {
	name, s, ok = strings.Cut(s, "=")
	name = strings.Trim(name, " \t")
	if !ok || name == "" || strings.ContainsAny(name, " \t;\"") {
		return "", "", "", false
	}
	if s = strings.TrimLeft(s, " \t"); strings.HasPrefix(s, "\"") {
		value, rest, ok = strings.Cut(s[1:], "\"")
		if !ok || strings.Contains(value, "\\") {
			return "", "", "", false
		}
		rest = strings.TrimLeft(rest, " \t")
		if rest != "" && rest[0] != ';' {
			return "", "", "", false
		}
		return name, value, strings.TrimPrefix(rest, ";"), true
	}
	value, rest, _ = strings.Cut(s, ";")
	value = strings.Trim(value, " \t")
	return name, value, rest, !strings.ContainsAny(value, " \t\"")
}

func (s *formScanner) Write(p []byte) *Fault {
	for i := 0; i < len(p) && s.fault == nil; {
		switch s.place {
		case formBody:
			i = s.body(p, i)
		case formBorder:
			i = s.border(p, i)
		case formDash:
			if p[i] != '-' {
				s.refuse("", "its last boundary ends wrongly")
			}
			s.place = formEnd
			i++
		case formHead:
			i = s.headLine(p, i)
		case formEnd:
			i = len(p)
		}
	}
	s.at += int64(len(p))
	return s.fault
}

func (s *formScanner) Close() (Facts, *Fault) {
	if s.fault == nil && s.place != formEnd {
		s.refuse("", "it ends before its last boundary")
	}
	if s.fault != nil {
		return Facts{}, s.fault
	}
	if s.api.done != nil {
		s.api.done(&s.facts)
	}
	return s.facts, nil
}

// body reads from p[i] up to behind the next boundary, or to the end of p.
func (s *formScanner) body(p []byte, i int) int {
	from := i // of what is known to be of the part
	for ; i < len(p); i++ {
		c := p[i]
		if s.matched > 0 {
			if c == s.boundary[s.matched] {
				s.matched++
				if s.matched < len(s.boundary) {
					continue
				}
				if !s.cr || s.fresh && s.begun {
					s.refuse("", "a boundary stands behind something else than a CRLF of its own")
					return i
				}
				s.endPart(s.at + int64(i+1-len(s.boundary)-1))
				s.place, s.matched, s.cr, s.fresh = formBorder, 0, false, false
				return i + 1
			}
			// No boundary: what looked like one is of the part.
			looked := s.boundary[:s.matched]
			if s.fresh {
				looked = looked[1:]
			} else if s.cr {
				s.data(carriageReturn)
			}
			s.data([]byte(looked))
			s.matched, s.cr, s.fresh, from = 0, false, false, i
		}
		switch {
		case c == '\n':
			if !s.cr {
				s.data(p[from:i])
			}
			s.matched = 1
		case c == '\r':
			if s.cr {
				s.data(carriageReturn)
			} else {
				s.data(p[from:i])
			}
			s.cr, from = true, i+1
		case s.cr:
			s.data(carriageReturn)
			s.cr, from = false, i
		}
	}
	if s.matched == 0 && !s.cr {
		s.data(p[from:])
	}
	return i
}

var carriageReturn = []byte{'\r'}

// border reads what stands behind a boundary: two dashes, or spaces and the end of the line.
func (s *formScanner) border(p []byte, i int) int {
	switch c := p[i]; {
	case c == '-' && !s.cr:
		s.place = formDash
	case c == '\r' && !s.cr:
		s.cr = true
	case c == '\n' && s.cr:
		s.place, s.cr, s.line, s.head = formHead, false, s.line[:0], 0
		s.name, s.named, s.isFile, s.field = "", false, false, nil
		if s.parts++; s.parts > maxFormParts {
			s.refuse("", "it has more than "+strconv.Itoa(maxFormParts)+" parts")
		}
	default:
		s.refuse("", "a boundary is followed by something else than the end of its line")
	}
	return i + 1
}

// headLine reads the head of a part, line by line.
func (s *formScanner) headLine(p []byte, i int) int {
	for ; i < len(p); i++ {
		if s.head++; s.head > maxFormHead {
			s.refuse("", "the head of a part is longer than "+strconv.Itoa(maxFormHead)+" bytes")
			return i
		}
		c := p[i]
		if c != '\n' {
			s.line = append(s.line, c)
			continue
		}
		n := len(s.line) - 1
		if n < 0 || s.line[n] != '\r' {
			s.refuse("", "a line in the head of a part doesn't end in CRLF")
			return i
		}
		line := string(s.line[:n])
		s.line = s.line[:0]
		if line == "" {
			s.beginPart(s.at + int64(i+1))
			return i + 1
		}
		s.header(line)
		if s.fault != nil {
			return i
		}
	}
	return i
}

func (s *formScanner) header(line string) {
	name, value, ok := strings.Cut(line, ":")
	if !ok || line[0] == ' ' || line[0] == '\t' || strings.ContainsAny(line, "\r\x00") {
		s.refuse("", "the head of a part has a line that is no header")
		return
	}
	switch value = strings.Trim(value, " \t"); strings.ToLower(name) {
	case "content-disposition":
		kind, rest, _ := strings.Cut(value, ";")
		ok = strings.EqualFold(strings.TrimSpace(kind), "form-data") && !s.named
		for rest != "" && ok {
			var key, v string
			key, v, rest, ok = parameter(rest)
			switch strings.ToLower(key) {
			case "name":
				ok = ok && !s.named && !strings.ContainsAny(v, "%")
				s.name, s.named = v, true
			case "filename", "filename*":
				s.isFile = true
			case "name*":
				ok = false
			}
		}
		if !ok {
			s.refuse("", "the content-disposition of a part can't be read in one way only; send form-data; name=\"...\"")
		}
	case "content-transfer-encoding":
		switch strings.ToLower(value) {
		case "7bit", "8bit", "binary":
		default:
			s.refuse("", "a part has a content-transfer-encoding; send it as it is")
		}
	case "content-type":
		if !ReadsCharset(value) {
			s.refuse("", "a part is in another charset than UTF-8")
		}
	}
}

// beginPart begins the body of a part, at offset at.
func (s *formScanner) beginPart(at int64) {
	if !s.named {
		s.refuse("", "a part has no name")
		return
	}
	s.place, s.matched, s.cr, s.fresh, s.begun = formBody, 1, true, true, true
	s.value, s.size, s.started = s.value[:0], 0, at
	for i := range s.api.fields {
		f := &s.api.fields[i]
		if f.name != s.name {
			if strings.EqualFold(f.name, s.name) {
				s.refuse(f.name, "is given in other letters; spell it "+f.name)
			}
			continue
		}
		if bit := uint64(1) << i; s.seen&bit == 0 || f.many {
			s.seen |= bit
		} else {
			s.refuse(f.name, "is given more than once; send each field once")
		}
		if s.isFile != (f.kind == formFile) && f.kind != formFile {
			s.refuse(f.name, "is a file; send it as a field")
		}
		s.field = f
	}
}

// data takes a part of what a part holds.
func (s *formScanner) data(p []byte) {
	if !s.begun || len(p) == 0 {
		return
	}
	s.size += int64(len(p))
	if s.field == nil || s.fault != nil {
		return
	}
	switch s.field.kind {
	case formValue:
		if len(s.value)+len(p) > maxFormValue {
			s.refuse(s.field.name, "is longer than "+strconv.Itoa(maxFormValue)+" bytes")
			return
		}
		s.value = append(s.value, p...)
	case formFile:
		s.value = append(s.value, p[:min(len(p), formMagic-len(s.value))]...)
	case formText:
		s.text(p)
	}
}

// text hands on a text as a sink wants it: as it would stand inside a JSON string.
func (s *formScanner) text(p []byte) {
	if s.sink == nil {
		return
	}
	from := 0
	for i, c := range p {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		if from < i {
			s.sink.Text(Text, p[from:i], false)
		}
		from = i + 1
		escape := [6]byte{'\\', c}
		n := 2
		if c < ' ' {
			escape, n = [6]byte{'\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15]}, 6
		}
		s.sink.Text(Text, escape[:n], false)
	}
	if from < len(p) {
		s.sink.Text(Text, p[from:], false)
	}
}

// endPart ends the part at hand; it reaches up to offset end.
func (s *formScanner) endPart(end int64) {
	f := s.field
	if f == nil || s.fault != nil {
		return
	}
	s.field = nil
	switch f.kind {
	case formValue:
		at := Span{s.started, max(end, s.started)}
		if complaint := s.api.set(&s.facts, f.name, string(s.value), at); complaint != "" {
			s.refuse(f.name, complaint)
			return
		}
	case formText:
		if s.sink != nil {
			s.sink.Text(Text, nil, true)
		}
	case formFile:
		s.api.file(&s.facts, f.name, s.size, s.value)
	}
	if f.item != 0 && s.sink != nil {
		s.sink.End(f.item)
	}
}

func (s *formScanner) refuse(param, complaint string) {
	if s.fault != nil {
		return
	}
	code, message := "invalid_form", "the form can't be read: "+complaint
	if param != "" {
		code, message = "invalid_value", param+" "+complaint
	}
	s.fault = &Fault{Status: 400, Code: code, Param: param, Message: message}
}
