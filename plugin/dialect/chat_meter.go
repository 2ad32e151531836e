package dialect

import (
	"strings"

	"github.com/emmer-proxy/emmer/plugin/sse"
)

// Places of an answer, or of one frame of a streamed answer, that are read.
const (
	ansRoot uint8 = iota + 1
	ansUsage
	ansGroq
	ansError
	ansChoices
	ansChoice
	ansIndex
	ansFinish
	ansMessage
	ansContent
	ansPart
	ansRefusal
	ansReasoning
	ansCalls
	ansCall
	ansFunction
	ansName
	ansArguments
	ansAudio
	ansTranscript
	ansNodes
)

// A part of content: {"type":"text","text":...}, or Mistral's {"type":"thinking","thinking":[parts]}.
var ansParts = []field{{"text", ansContent}, {"thinking", ansContent}}

var ansSchema = [ansNodes]node{
	ansRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
		{"usage", ansUsage}, {"x_groq", ansGroq}, {"error", ansError}, {"choices", ansChoices},
	}},
	ansUsage:   {raw: kindAny},
	ansGroq:    {fields: []field{{"usage", ansUsage}}},
	ansError:   {},
	ansChoices: {elem: ansChoice},
	ansChoice: {fields: []field{
		{"index", ansIndex}, {"delta", ansMessage}, {"message", ansMessage},
		{"text", ansContent}, {"finish_reason", ansFinish},
	}},
	ansIndex:  {},
	ansFinish: {},
	ansMessage: {fields: []field{
		{"content", ansContent}, {"refusal", ansRefusal},
		{"reasoning_content", ansReasoning}, {"reasoning", ansReasoning},
		{"tool_calls", ansCalls}, {"function_call", ansFunction}, {"audio", ansAudio},
	}},
	ansContent:    {text: true, elem: ansPart, fields: ansParts},
	ansPart:       {text: true, fields: ansParts},
	ansRefusal:    {text: true},
	ansReasoning:  {text: true},
	ansCalls:      {elem: ansCall},
	ansCall:       {fields: []field{{"index", ansIndex}, {"function", ansFunction}, {"custom", ansFunction}}},
	ansFunction:   {fields: []field{{"name", ansName}, {"arguments", ansArguments}, {"input", ansArguments}}},
	ansName:       {text: true},
	ansArguments:  {text: true, raw: kindAny &^ kindString},
	ansAudio:      {fields: []field{{"transcript", ansTranscript}}},
	ansTranscript: {text: true},
}

// answerDepth caps the nesting of an answer's JSON.
const answerDepth = 256

// maxUsageRecord caps the one thing of an answer that is held whole.
const maxUsageRecord = 16 << 10

type meterMode uint8

const (
	undecided meterMode = iota
	readsJSON
	readsSSE
	readsNothing
)

// chatMeter reads an answer, whole or streamed. Neither a body nor a frame is ever held: what it
// keeps is the scanner's stack, one usage record and a few flags.
type chatMeter struct {
	head ResponseHead
	sink Sink
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
	stale    bool        // output was seen after the last usage

	choice    int64
	reasoning bool // this message's reasoning was seen under one of its two names
	twice     bool // the reasoning at hand repeats the other one

	produced, done, finish, inBand, closed bool
}

// textFlow tells texts apart whose deltas may alternate.
type textFlow struct {
	open   bool
	node   uint8
	choice int64
}

func (openAIChat) NewMeter(h ResponseHead, sink Sink) Meter {
	m := &chatMeter{head: h, sink: sink}
	switch strings.ToLower(strings.TrimSpace(h.ContentEncoding)) {
	case "", "identity":
	default:
		m.mode = readsNothing
		return m
	}
	m.json = newJSONScanner(ansSchema[:], m, answerDepth, true)
	m.lines, m.first = sse.NewReader(m), true
	return m
}

var utf8BOM = []byte{0xef, 0xbb, 0xbf}

func (m *chatMeter) Write(p []byte) {
	if m.closed {
		return
	}
	if m.mode == undecided {
		p = m.sniff(p)
	}
	switch m.mode {
	case readsJSON:
		m.document(p)
		if m.json.fault != nil {
			m.endText()
			m.mode = readsNothing
		}
	case readsSSE:
		m.lines.Write(p)
	}
}

// sniff decides by the first byte, because labels lie: SSE comes as application/json and JSON
// errors come as text/event-stream.
func (m *chatMeter) sniff(p []byte) []byte {
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
		case 'd', 'e', 'i', 'r', ':': // data, event, id, retry, a comment
			m.mode = readsSSE
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
func (m *chatMeter) document(p []byte) {
	for len(p) > 0 && m.json.fault == nil {
		if m.json.state == docDone {
			if isSpace(p[0]) {
				p = p[1:]
				continue
			}
			m.restart()
		}
		p = p[m.json.write(p):]
		if m.json.state == docDone {
			m.endDocument()
		}
	}
}

func (m *chatMeter) restart() {
	m.json.restart()
	m.pending, m.choice = usageRecord{}, 0
}

func (m *chatMeter) endDocument() {
	if m.pending.seen {
		m.usage.merge(m.pending)
		m.pending, m.stale = usageRecord{}, false
	}
}

// Data takes a part of a data line.
func (m *chatMeter) Data(p []byte) {
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
func (m *chatMeter) EndLine() {
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
func (m *chatMeter) EndEvent(name []byte) {
	if string(name) == "error" {
		m.inBand = true
	}
	m.restart()
}

func (m *chatMeter) Close() {
	if m.closed {
		return
	}
	switch m.mode {
	case readsSSE:
		m.lines.Close()
		m.done = m.done || m.finish
	case readsJSON:
		m.done = m.json.state == docDone
		m.endDocument() // the record was whole, if not the body
	}
	m.endText()
	m.closed = true
}

func (m *chatMeter) Usage() (Usage, bool) {
	u := m.usage
	switch {
	case !u.seen, u.input == 0 && u.output == 0: // none, or a mark of the place where it will stand
		return Usage{}, false
	case m.produced && (u.output == 0 || m.stale):
		return Usage{}, false // the figure of a moment before the end
	}
	return u.figures(), true
}

func (m *chatMeter) Produced() bool { return m.produced }

func (m *chatMeter) Failed() bool {
	if s := m.head.Status; s != 0 && (s < 200 || s > 299) {
		return true
	}
	return m.inBand && !m.produced
}

func (m *chatMeter) Finished() bool {
	return m.done || m.mode == readsJSON && m.json.state == docDone
}

func (m *chatMeter) Opaque() bool {
	return m.mode == readsNothing && !m.produced && !m.usage.seen
}

func (m *chatMeter) begin(n uint8, k kinds) string {
	switch n {
	case ansUsage:
		m.record, m.overflow = m.record[:0], false
	case ansError:
		m.inBand = m.inBand || k != kindNull
	case ansChoice:
		m.choice = 0
	case ansFinish:
		m.finish = m.finish || k == kindString
	case ansMessage:
		m.reasoning, m.twice = false, false
	case ansReasoning:
		if k == kindString {
			m.twice, m.reasoning = m.reasoning, true
		}
	}
	return ""
}

func (m *chatMeter) end(uint8, kinds, bool) {}

func (m *chatMeter) key(uint8, []byte, bool) {} // no place of an answer has keys of all kinds

func (m *chatMeter) text(n uint8, p []byte, last bool) {
	if len(p) == 0 || n == ansReasoning && m.twice {
		return
	}
	m.produced, m.stale = true, true
	if m.sink == nil {
		return
	}
	if n == ansPart {
		n = ansContent
	}
	// Deltas of one text go on as one text: a token may span them in no other way.
	if f := (textFlow{true, n, m.choice}); f != m.group {
		m.endText()
		m.group = f
	}
	m.sink.Text(Text, p, false)
}

// endText ends the text that the sink is in the middle of.
func (m *chatMeter) endText() {
	if m.group.open {
		m.group = textFlow{}
		m.sink.Text(Text, nil, true)
	}
}

func (m *chatMeter) value(n uint8, k kinds, p []byte) string {
	if n == ansIndex && k == kindNumber {
		if v, ok := parseWhole(p); ok {
			m.choice = v
		}
	}
	return ""
}

func (m *chatMeter) raw(n uint8, p []byte, last bool) {
	if n != ansUsage {
		m.text(n, p, last)
		return
	}
	if len(m.record)+len(p) > maxUsageRecord {
		m.overflow = true
		return
	}
	m.record = append(m.record, p...)
	if last && !m.overflow {
		if u := readOpenAIUsage(m.record); u.seen {
			m.pending.merge(u)
		}
	}
}
