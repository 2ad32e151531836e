package dialect

import (
	"bytes"
	"strconv"
	"strings"
)

// jsonScanner reads one JSON document in pieces of any size and tells a handler of the values that
// a schema names. It is iterative and holds no part of the document but one short value or key at
// a time; the depth of nesting and the length of what it holds are capped.
//
// Strict, it takes RFC 8259 and nothing else, and refuses what two decoders might read differently:
//   - a second occurrence of a key that the schema names, also if spelled with escapes: some
//     decoders take the first value, some the last;
//   - such a key in another case: Go's encoding/json and ASP.NET's defaults take it for the same,
//     unless the schema has a place for other keys too: then nothing is lost on either reading.
//     Where an API takes snake_case for the same field, the two spellings are one key;
//   - bytes that are no UTF-8: a decoder that drops them would turn an unknown key into a known one.
//
// Half a surrogate pair, written as an escape, is allowed: providers accept it.
//
// Lax, for answers, it takes bad UTF-8, control characters in strings and repeated keys as they are.
type jsonScanner struct {
	schema []node
	h      jsonHandler
	lax    bool
	max    int // depth

	fault *Fault
	base  int64 // bytes before the piece at hand
	start int64 // offset of the value at hand

	state jsonState
	mode  stringMode
	sub   uint8 // in a string: 0 plain, 1 after a backslash, 2 to 5 before a digit of \uXXXX
	need  uint8 // in a string: continuation bytes still to come
	lo    uint8 // in a string: the least next continuation byte
	hi    uint8 // in a string: the greatest next continuation byte
	num   numState
	node  uint8  // of the value at hand, 0 = not named
	lit   string // rest of true, false or null

	held     []byte // a key, value or number as written
	plain    []byte // a key that was held, without its escapes
	overflow bool   // it was longer than maxHeld

	inRaw    bool
	rawNode  uint8
	rawDepth int
	rawFrom  int // where in the piece at hand the part not yet handed on begins

	stack []frame
}

// maxHeld caps a value or key that the scanner holds. The longest key of a schema, escaped
// throughout, is far below it.
const maxHeld = 1024

// MaxDepth is the most that nesting may be capped at: a frame of the stack is 12 bytes.
const MaxDepth = 512

type frame struct {
	seen  uint32 // fields seen, one bit each
	index int32  // elements before the one at hand
	node  uint8
	field uint8 // index of the member at hand plus one, 0 = not named, otherField = node.other
	array bool
}

const otherField = 0xff

type jsonState uint8

const (
	wantValue jsonState = iota
	wantValueOrEnd
	wantKeyOrEnd
	wantKey
	wantColon
	wantCommaOrEnd
	inString
	inNumber
	inLiteral
	docDone
)

type stringMode uint8

const (
	stringSkip stringMode = iota
	stringText
	stringValue
	stringKey
	stringKeyText
	stringKeySkip
)

func newJSONScanner(schema []node, h jsonHandler, depth int, lax bool) jsonScanner {
	if depth <= 0 || depth > MaxDepth {
		depth = MaxDepth
	}
	return jsonScanner{schema: schema, h: h, max: depth, lax: lax, stack: make([]frame, 0, 16)}
}

// restart makes the scanner ready for another document; offsets go on.
func (s *jsonScanner) restart() {
	*s = jsonScanner{schema: s.schema, h: s.h, max: s.max, lax: s.lax, base: s.base,
		stack: s.stack[:0], held: s.held[:0], plain: s.plain[:0]}
}

// begins says that nothing of a document was seen but white space.
func (s *jsonScanner) begins() bool { return s.state == wantValue && len(s.stack) == 0 }

// write reads up to the end of the document, the end of p or a fault, and gives the bytes read.
func (s *jsonScanner) write(p []byte) int {
	if s.inRaw {
		s.rawFrom = 0
	}
	i := 0
	for i < len(p) && s.fault == nil && s.state != docDone {
		switch s.state {
		case inString:
			i = s.stringBody(p, i)
		case inNumber:
			i = s.number(p, i)
		case inLiteral:
			i = s.literal(p, i)
		default:
			i = s.structure(p, i)
		}
	}
	if s.inRaw {
		if s.rawFrom < i { // before a fault, too: what was heard is the same wherever the pieces end
			s.h.raw(s.rawNode, p[s.rawFrom:i], false)
		}
		s.rawFrom = 0
	}
	s.base += int64(i)
	return i
}

// structure reads white space, then one byte outside of strings, numbers and literals and the token
// that it begins.
func (s *jsonScanner) structure(p []byte, i int) int {
	c := p[i]
	if c <= ' ' && isSpace(c) {
		if s.inRaw && s.rawFrom < i {
			s.h.raw(s.rawNode, p[s.rawFrom:i], false)
		}
		i++
		for i < len(p) && isSpace(p[i]) {
			i++
		}
		s.rawFrom = i
		if i == len(p) {
			return i
		}
		c = p[i]
	}
	switch s.state {
	case wantValue, wantValueOrEnd:
		if c == ']' && s.state == wantValueOrEnd {
			return s.closeContainer(p, i, c)
		}
		return s.beginValue(p, i, c)
	case wantKeyOrEnd, wantKey:
		switch {
		case c == '"':
			s.state, s.mode, s.sub = inString, stringKeySkip, 0
			if !s.inRaw {
				s.beginKey()
			}
			return s.stringBody(p, i+1)
		case c == '}' && s.state == wantKeyOrEnd:
			return s.closeContainer(p, i, c)
		}
	case wantColon:
		if c == ':' {
			s.state = wantValue
			return i + 1
		}
	case wantCommaOrEnd:
		top := s.top()
		switch {
		case c == ',' && top.array:
			top.index++
			s.state = wantValue
			return i + 1
		case c == ',':
			top.field = 0
			s.state = wantKey
			return i + 1
		case c == ']' || c == '}':
			return s.closeContainer(p, i, c)
		}
	}
	s.syntax(i)
	return i
}

func (s *jsonScanner) top() *frame { return &s.stack[len(s.stack)-1] }

// beginValue reads the first byte of a value.
func (s *jsonScanner) beginValue(p []byte, i int, c byte) int {
	var k kinds
	switch c {
	case '{':
		k = kindObject
	case '[':
		k = kindArray
	case '"':
		k = kindString
	case 't':
		k = kindTrue
	case 'f':
		k = kindFalse
	case 'n':
		k = kindNull
	default:
		if c != '-' && (c < '0' || c > '9') {
			s.syntax(i)
			return i
		}
		k = kindNumber
	}
	n := uint8(1)
	if len(s.stack) > 0 {
		n = 0
		top := s.top()
		switch {
		case s.inRaw: // nothing inside has a name
		case top.array:
			n = s.schema[top.node].elem
		case top.field == otherField:
			n = s.schema[top.node].other
		case top.field > 0:
			n = s.schema[top.node].fields[top.field-1].node
		}
	}
	s.node, s.start = n, s.base+int64(i)
	nd := &s.schema[n]
	if n != 0 {
		if nd.kinds != 0 && k&nd.kinds == 0 && (k != kindNull || len(s.stack) == 0) {
			s.refuse("invalid_type", "must be "+nd.want)
			return i
		}
		if complaint := s.h.begin(n, k); complaint != "" {
			s.refuse("invalid_value", complaint)
			return i
		}
		if nd.raw&k != 0 {
			s.inRaw, s.rawNode, s.rawDepth, s.rawFrom = true, n, len(s.stack), i
		}
	}
	switch k {
	case kindObject, kindArray:
		if len(s.stack) >= s.max {
			s.fail("json_too_deep", "", "the JSON is nested more than "+strconv.Itoa(s.max)+" levels deep; send a flatter body")
			return i
		}
		s.stack = append(s.stack, frame{node: n, array: k == kindArray})
		s.state = wantKeyOrEnd
		if k == kindArray {
			s.state = wantValueOrEnd
		}
	case kindString:
		s.state, s.mode, s.sub = inString, stringSkip, 0
		if nd.text {
			s.mode = stringText
		} else if nd.value {
			s.mode = stringValue
			s.held, s.overflow = s.held[:0], false
		}
		return s.stringBody(p, i+1)
	case kindNumber:
		s.state, s.held, s.overflow = inNumber, s.held[:0], false
		switch c {
		case '-':
			s.num = numMinus
		case '0':
			s.num = numZero
		default:
			s.num = numInt
		}
		if n != 0 {
			s.held = append(s.held, c)
		}
		return s.number(p, i+1)
	case kindTrue:
		s.state, s.lit = inLiteral, "rue"
		return s.literal(p, i+1)
	case kindFalse:
		s.state, s.lit = inLiteral, "alse"
		return s.literal(p, i+1)
	case kindNull:
		s.state, s.lit = inLiteral, "ull"
		return s.literal(p, i+1)
	}
	return i + 1
}

// closeContainer reads the bracket that ends an object or an array.
func (s *jsonScanner) closeContainer(p []byte, i int, c byte) int {
	top := s.top()
	if (c == ']') != top.array {
		s.syntax(i)
		return i
	}
	n, k, empty := top.node, kindObject, s.state != wantCommaOrEnd
	if top.array {
		k = kindArray
	}
	s.stack = s.stack[:len(s.stack)-1]
	s.endValue(p, i+1)
	if n != 0 {
		s.h.end(n, k, empty)
	}
	return i + 1
}

// endValue ends a value whose last byte is before p[i].
func (s *jsonScanner) endValue(p []byte, i int) {
	if s.inRaw && len(s.stack) == s.rawDepth {
		s.inRaw = false
		s.h.raw(s.rawNode, p[s.rawFrom:i], true)
	}
	s.state = wantCommaOrEnd
	if len(s.stack) == 0 {
		s.state = docDone
	}
}

func (s *jsonScanner) literal(p []byte, i int) int {
	if n := len(s.lit); len(p)-i >= n && string(p[i:i+n]) == s.lit {
		s.endValue(p, i+n)
		return i + n
	}
	for i < len(p) && s.lit != "" {
		if p[i] != s.lit[0] {
			s.syntax(i)
			return i
		}
		s.lit = s.lit[1:]
		i++
	}
	if s.lit == "" {
		s.endValue(p, i)
	}
	return i
}

// hold keeps a part of a short value.
func (s *jsonScanner) hold(p []byte) {
	if len(s.held)+len(p) > maxHeld {
		s.overflow = true
		return
	}
	if s.held == nil {
		s.held = make([]byte, 0, 64)
	}
	s.held = append(s.held, p...)
}

// handValue hands on the value that was held.
func (s *jsonScanner) handValue(k kinds) {
	if s.overflow {
		if !s.lax {
			s.refuse("invalid_value", "is longer than "+strconv.Itoa(maxHeld)+" bytes")
		}
		return
	}
	if complaint := s.h.value(s.node, k, s.held); complaint != "" {
		s.refuse("invalid_value", complaint)
	}
}

// beginKey chooses what becomes of the key at hand.
func (s *jsonScanner) beginKey() {
	switch nd := &s.schema[s.top().node]; {
	case len(nd.fields) > 0:
		s.mode = stringKey
		s.held, s.overflow = s.held[:0], false
	case nd.other != 0:
		s.mode = stringKeyText
	}
}

// holdKey keeps a part of a key, or hands it on once it is too long to be one that is named.
func (s *jsonScanner) holdKey(p []byte) {
	s.hold(p)
	if top := s.top(); s.overflow && s.schema[top.node].other != 0 {
		s.h.key(top.node, s.held, false)
		s.h.key(top.node, p, false)
		s.mode = stringKeyText
	}
}

// endKey ends the key at hand, of which p is the last part, and looks it up.
func (s *jsonScanner) endKey(p []byte) {
	if s.mode == stringKey {
		s.holdKey(p)
		p = nil
	}
	top := s.top()
	top.field = 0
	if s.mode == stringKeyText {
		top.field = otherField
		s.h.key(top.node, p, true)
		return
	}
	if s.overflow {
		return
	}
	key := s.held
	if bytes.IndexByte(key, '\\') >= 0 {
		s.plain = unescape(s.plain[:0], key)
		key = s.plain
	}
	snake := s.schema[top.node].snake
	for i, f := range s.schema[top.node].fields {
		if f.key != string(key) && !(snake && isSnake(f.key, key)) {
			continue
		}
		top.field = uint8(i + 1)
		if bit := uint32(1) << i; top.seen&bit == 0 {
			top.seen |= bit
		} else if !s.lax {
			path := s.path()
			s.fail("duplicate_key", path, path+" is given more than once; send each field once")
		}
		return
	}
	if s.schema[top.node].other != 0 {
		top.field = otherField
		s.h.key(top.node, s.held, true)
		return
	}
	if s.lax {
		return
	}
	folded := key
	if snake {
		folded = bytes.ReplaceAll(key, underscore, nil)
	}
	for i, f := range s.schema[top.node].fields {
		if len(folded) >= len(f.key) && strings.EqualFold(f.key, string(folded)) {
			top.field = uint8(i + 1)
			path := s.path()
			s.fail("misspelled_key", path, path+" is given in other letters; spell it "+f.key)
			return
		}
	}
}

var underscore = []byte{'_'}

// isSnake says whether key is camel in snake_case. camel is ASCII.
func isSnake(camel string, key []byte) bool {
	k := 0
	for i := 0; i < len(camel); i++ {
		c := camel[i]
		if c >= 'A' && c <= 'Z' {
			if k >= len(key) || key[k] != '_' {
				return false
			}
			k++
			c += 'a' - 'A'
		}
		if k >= len(key) || key[k] != c {
			return false
		}
		k++
	}
	return k == len(key)
}

// path names the value at hand, such as messages[2].content.
func (s *jsonScanner) path() string {
	var b []byte
	for _, f := range s.stack {
		switch {
		case f.array:
			b = append(b, '[')
			b = strconv.AppendInt(b, int64(f.index), 10)
			b = append(b, ']')
		case f.field > 0:
			if len(b) > 0 {
				b = append(b, '.')
			}
			if f.field == otherField {
				b = append(b, '*') // the key was handed on, and is not kept
				continue
			}
			b = append(b, s.schema[f.node].fields[f.field-1].key...)
		}
	}
	return string(b)
}

// refuse refuses the value at hand.
func (s *jsonScanner) refuse(code, complaint string) {
	path := s.path()
	if path == "" {
		s.fail(code, "", "the body "+complaint)
		return
	}
	s.fail(code, path, path+" "+complaint)
}

func (s *jsonScanner) fail(code, param, message string) {
	if s.fault == nil {
		s.fault = &Fault{Status: 400, Code: code, Param: param, Message: message}
	}
}

// syntax refuses p[i].
func (s *jsonScanner) syntax(i int) {
	s.fail("invalid_json", "", "the body is not valid JSON: unexpected character at byte "+strconv.FormatInt(s.base+int64(i), 10))
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
