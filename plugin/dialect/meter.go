package dialect

import (
	"strings"

	"github.com/emmer-proxy/emmer/plugin/sse"
)

// answer says how the answers of one API are read, whole or streamed: what stands in which place.
type answer struct {
	schema []node
	roles  []role // by place
	// usage reads a record in a place of usageRole, as written and valid.
	usage func(raw []byte) usageRecord
	// figure takes a number, or null, in a place of figureRole; nil where there is none.
	figure func(u *usageRecord, n uint8, v int64)
	// event says what the name of an event means, and the value in a place of typeRole.
	event func(name string) mark
	// same are two places of an item of which one repeats the other, if both are there.
	same [2]uint8
	// ends: an answer says in a place of finishRole that it is whole; several documents may come before.
	ends bool
	// frames: an answer may be an AWS event stream; wrapped: one whose payloads hold the documents as base64.
	frames, wrapped bool
	// told reads what the headers of ResponseHead.Usage say; nil where none do.
	told func(headers []string) usageRecord
	// free: the provider bills nothing for the call.
	free bool
	// tail says how a stream is ended by us; nil where it can't be.
	tail *tail
}

// role is what a place of an answer means.
type role uint8

const (
	noRole        role = iota
	textRole           // text that the model wrote; the place must ask for it as text or raw
	reasoningRole      // the same, under one of several names of which a message may use two at once
	usageRole          // a usage record, asked for as raw
	openingRole        // one from before the answer: what it says of the output is not the end's
	figureRole         // a figure of usage that stands alone
	errorRole          // an error, unless it is null
	typeRole           // a short string that answer.event understands
	itemRole           // one of several answers, or of the blocks of one
	indexRole          // its number
	messageRole        // where a message begins
	finishRole         // a string or true here says that the answer came to its own end
	producedRole       // output that is no text, such as a picture
	searchRole         // a search that the provider's own tool made, if it is a string
	pictureRole        // one of the pictures that were made, if it is an object
	repeatRole         // text that repeats what was streamed before, if anything was
)

// mark is what an event means for the answer as a whole.
type mark uint8

const (
	noMark mark = iota
	endMark
	failMark
)

// failsByName is for streams whose events bear no names but error.
func failsByName(name string) mark {
	if name == "error" {
		return failMark
	}
	return noMark
}

// answerDepth caps the nesting of an answer's JSON.
const answerDepth = 256

// maxUsageRecord caps the one thing of an answer that is held whole.
const maxUsageRecord = 16 << 10

type meterMode uint8

const (
	undecided meterMode = iota
	readsJSON
	readsArray
	readsSSE
	readsFrames
	readsNothing
)

// answerMeter reads an answer, whole or streamed: JSON, one document after another, a streamed array
// of documents, server-sent events, or the messages of an AWS event stream. Neither a body nor a frame is ever held: what it
// keeps is the scanner's stack, one usage record and a few flags.
type answerMeter struct {
	api  *answer
	head ResponseHead
	sink Sink
	at   *standing // of a stream that may be ended by us
	mode meterMode
	bom  int // bytes of a BOM seen before the mode was decided

	json  jsonScanner
	lines sse.Reader
	skip  bool     // the rest of this data line is of no use
	first bool     // nothing but white space was seen on this data line
	probe [8]byte  // the first bytes of this data line
	nProb int      // how many
	group textFlow // which text the sink is in the middle of

	record   []byte // the usage record at hand
	overflow bool
	pending  usageRecord // of the document at hand
	usage    usageRecord // of the documents before
	told     usageRecord // of the head
	frames   *frameReader
	stale    bool // output was seen after the last usage

	choice    int64
	pictures  int64 // made
	spoke     uint8 // which of the places that are the same has spoken in this item
	reasoning bool  // this message's reasoning was seen under one of its two names
	twice     bool  // the reasoning at hand repeats the other one

	produced, done, finish, inBand, closed, closedArray bool
}

// textFlow tells texts apart whose deltas may alternate.
type textFlow struct {
	open   bool
	node   uint8
	choice int64
}

// newMeter makes a meter of one answer.
func (a *answer) newMeter(h ResponseHead, sink Sink) *answerMeter {
	m := &answerMeter{api: a, head: h, sink: sink}
	if a.told != nil && len(h.Usage) > 0 {
		m.told = a.told(h.Usage)
	}
	switch strings.ToLower(strings.TrimSpace(h.ContentEncoding)) {
	case "", "identity":
	default:
		m.mode = readsNothing
		return m
	}
	if a.tail != nil {
		m.at = &standing{}
	}
	m.json = newJSONScanner(a.schema, m, answerDepth, true)
	m.lines, m.first = sse.NewReader(m), true
	return m
}

var utf8BOM = []byte{0xef, 0xbb, 0xbf}

func (m *answerMeter) Write(p []byte) {
	if m.closed {
		return
	}
	size := len(p)
	if m.mode == undecided {
		p = m.sniff(p)
	}
	if m.at != nil {
		m.at.whole = -1
	}
	switch m.mode {
	case readsJSON, readsArray:
		m.document(p)
		if m.json.fault != nil {
			m.endText()
			m.mode = readsNothing
		}
	case readsSSE:
		m.lines.Write(p)
	case readsFrames:
		m.frames.reader.Write(p)
		if m.frames.reader.Broken() {
			m.endText()
			m.mode = readsNothing
		}
	}
	if m.at != nil {
		m.stand(size - len(p))
	}
}

// sniff decides by the first byte, because labels lie: SSE comes as application/json and JSON
// errors come as text/event-stream.
func (m *answerMeter) sniff(p []byte) []byte {
	for len(p) > 0 {
		c := p[0]
		if m.bom < len(utf8BOM) && c == utf8BOM[m.bom] {
			m.bom++
			p = p[1:]
			continue
		}
		if (m.bom == 0 || m.bom == len(utf8BOM)) && isSpace(c) {
			m.bom = len(utf8BOM) // white space first: what follows is no BOM
			p = p[1:]
			continue
		}
		switch c {
		case '{':
			m.mode = readsJSON
		case '[':
			m.mode = readsArray
			if m.api.schema[1].kinds&kindArray != 0 {
				m.mode = readsJSON // it is the answer itself
			}
		case 'd', 'e', 'i', 'r', ':': // data, event, id, retry, a comment
			m.mode = readsSSE
		case 0: // of a length below 16 MiB
			m.mode = readsNothing
			if m.api.frames {
				m.mode, m.frames = readsFrames, m.newFrames()
			}
		default:
			m.mode = readsNothing
			if strings.HasPrefix(strings.ToLower(strings.TrimSpace(m.head.ContentType)), "text/event-stream") {
				m.mode = readsSSE
			}
		}
		if m.mode == readsSSE {
			m.lines.Write(utf8BOM[:m.bom])
		}
		return p
	}
	return nil
}

// document feeds bytes of one JSON document after another. The documents of a stream that are not
// parted as they should be are told apart by their ends.
func (m *answerMeter) document(p []byte) {
	size := len(p)
	for len(p) > 0 && m.json.fault == nil {
		if ended := m.json.state == docDone; ended || m.json.begins() {
			m.wholeAt(size - len(p))
			if p[0] == '\n' && m.mode == readsJSON {
				m.separator('\n')
			}
			if isSpace(p[0]) || m.mode == readsArray && m.between(p[0]) {
				p = p[1:]
				continue
			}
			if ended {
				m.restart()
			}
		}
		p = p[m.json.write(p):]
		if m.json.state == docDone && m.mode != readsFrames {
			m.endDocument()
		}
	}
	m.wholeAt(size - len(p))
}

// between takes a byte of a streamed array that stands outside of its elements.
func (m *answerMeter) between(c byte) bool {
	m.closedArray = m.closedArray || c == ']'
	if c != '[' && c != ',' && c != ']' {
		return false
	}
	m.separator(c)
	return true
}

func (m *answerMeter) restart() {
	m.json.restart()
	m.pending, m.choice = usageRecord{}, 0
}

func (m *answerMeter) endDocument() {
	if m.at != nil && (m.mode == readsJSON || m.mode == readsArray) {
		m.at.pass()
		m.separator('}')
	}
	if m.pending.seen {
		m.usage.merge(m.pending)
		m.pending, m.stale = usageRecord{}, false
	}
}

// Data takes a part of a data line.
func (m *answerMeter) Data(p []byte) {
	if m.first {
		for len(p) > 0 && isSpace(p[0]) {
			p = p[1:]
		}
		if len(p) == 0 {
			return
		}
		m.first = false
		if p[0] == '{' && m.json.state != wantValue && m.json.state != wantValueOrEnd {
			// The join of the lines is no JSON from here on, but this line may be.
			m.restart()
		}
	}
	m.nProb += copy(m.probe[m.nProb:], p)
	if !m.skip {
		m.document(p)
		m.skip = m.json.fault != nil
	}
}

// EndLine ends a data line.
func (m *answerMeter) EndLine() {
	if m.nProb >= 6 && string(m.probe[:6]) == "[DONE]" {
		m.done = true
	}
	m.nProb, m.first = 0, true
	// An LF is white space between the lines of one document, but none of its own lines may end
	// inside a string.
	if m.skip || m.json.state == inString || m.json.state == inLiteral {
		m.skip = false
		m.restart()
		return
	}
	m.document(lineFeed)
	if m.json.fault != nil {
		m.restart()
	}
}

var lineFeed = []byte{'\n'}

// EndEvent ends an event; a document does not reach beyond it.
func (m *answerMeter) EndEvent(name []byte) {
	if len(name) > 0 {
		m.mark(m.api.event(string(name)))
	}
	if m.at != nil {
		if m.at.now.step == noStep && len(name) > 0 {
			m.at.now.step = m.api.tail.step(name)
		}
		m.at.pass()
		m.at.over = m.at.over || m.done
	}
	m.restart()
}

func (m *answerMeter) Close() {
	if m.closed {
		return
	}
	switch m.mode {
	case readsSSE:
		m.lines.Close()
		m.done = m.done || m.finish
	case readsFrames:
		m.done = m.finish
	case readsArray:
		m.done = m.closedArray
		m.endDocument()
	case readsJSON:
		m.done = m.Finished()
		m.endDocument() // the record was whole, if not the body
	}
	m.endText()
	m.closed = true
}

func (m *answerMeter) begin(n uint8, k kinds) string {
	if m.at != nil {
		m.at.begin(m.api.tail.spots[n], n == 1, k)
	}
	switch m.api.roles[n] {
	case usageRole, openingRole:
		m.record, m.overflow = m.record[:0], false
	case errorRole:
		if k != kindNull {
			m.mark(failMark)
		}
	case itemRole:
		m.choice, m.spoke = 0, 0
	case finishRole:
		m.finish = m.finish || k&(kindString|kindTrue) != 0
	case pictureRole:
		if k == kindObject {
			m.pictures++
			m.produced, m.stale = true, true
		}
	case repeatRole:
		m.twice = m.produced
	case searchRole:
		if k == kindString {
			m.pending.searches++
		}
	case producedRole:
		if k != kindNull {
			m.produced, m.stale = true, true
		}
	case messageRole:
		m.reasoning, m.twice = false, false
	case reasoningRole:
		if k == kindString {
			m.twice, m.reasoning = m.reasoning, true
		}
	case figureRole:
		if k == kindNull {
			m.api.figure(&m.pending, n, 0)
		}
	}
	return ""
}

func (m *answerMeter) end(n uint8, _ kinds, _ bool) {
	if m.at != nil {
		m.at.end(m.api.tail.spots[n])
	}
}

func (m *answerMeter) key(uint8, []byte, bool) {} // no place of an answer has keys of all kinds

func (m *answerMeter) text(n uint8, p []byte, last bool) {
	if role := m.api.roles[n]; len(p) == 0 || m.twice && (role == reasoningRole || role == repeatRole) {
		return
	}
	if n == m.api.same[0] || n == m.api.same[1] {
		if m.spoke == 0 {
			m.spoke = n
		}
		if m.spoke != n {
			return
		}
	}
	m.produced, m.stale = true, true
	if m.sink == nil {
		return
	}
	// Deltas of one text go on as one text: a token may span them in no other way.
	if f := (textFlow{true, n, m.choice}); f != m.group {
		m.endText()
		m.group = f
	}
	m.sink.Text(Text, p, false)
}

// endText ends the text that the sink is in the middle of.
func (m *answerMeter) endText() {
	if m.group.open {
		m.group = textFlow{}
		m.sink.Text(Text, nil, true)
	}
}

func (m *answerMeter) value(n uint8, k kinds, p []byte) string {
	if m.at != nil {
		m.at.value(m.api.tail.spots[n], k, p, m.api.tail.step)
	}
	switch role := m.api.roles[n]; {
	case role == typeRole && k == kindString:
		m.mark(m.api.event(string(p)))
	case k != kindNumber:
	case role == indexRole:
		if v, ok := parseWhole(p); ok {
			m.choice = v
		}
	case role == figureRole:
		if v, ok := parseWhole(p); ok && v >= 0 && v <= maxUsage {
			m.api.figure(&m.pending, n, v)
		}
	}
	return ""
}

func (m *answerMeter) mark(what mark) {
	m.finish = m.finish || what == endMark
	m.inBand = m.inBand || what == failMark
	if m.at != nil && what == failMark {
		m.at.now.failed = true
	}
}

func (m *answerMeter) raw(n uint8, p []byte, last bool) {
	role := m.api.roles[n]
	if role != usageRole && role != openingRole {
		m.text(n, p, last)
		return
	}
	if len(m.record)+len(p) > maxUsageRecord {
		m.overflow = true
		return
	}
	m.record = append(m.record, p...)
	if last && !m.overflow {
		if u := m.api.usage(m.record); u.seen {
			if role == openingRole {
				u.early, u.output, u.reasoning, u.spoken = true, 0, 0, 0
			}
			m.pending.merge(u)
		}
	}
}
