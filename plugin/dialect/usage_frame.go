package dialect

import "bytes"

// A stream of the Chat Completions API and of its predecessor reports its usage only if it is asked to
// (stream_options.include_usage), and then in a frame of its own before the last: one whose list of
// choices is empty. Clients that did not ask for it may not know such frames.

// Splice replaces a range of a body.
type Splice struct {
	At   Span
	With string
}

// usageOption says where a request asks for the usage of a stream: the places of an object and of the
// flag in it.
type usageOption struct{ options, include uint8 }

// see takes a value as it begins; its first byte stands at start.
func (o usageOption) see(f *Facts, n uint8, k kinds, start int64) {
	switch {
	case n == 1:
		f.AskUsage = Splice{Span{start + 1, start + 1}, `"stream_options":{"include_usage":true},`}
	case n == o.options && k == kindNull:
		f.AskUsage = Splice{Span{start, start + int64(len("null"))}, `{"include_usage":true}`}
	case n == o.options:
		f.AskUsage = Splice{Span{start + 1, start + 1}, `"include_usage":true,`}
	case n == o.include && k == kindTrue:
		f.AskUsage = Splice{}
	case n == o.include && k == kindFalse:
		f.AskUsage = Splice{Span{start, start + int64(len("false"))}, "true"}
	case n == o.include:
		f.AskUsage = Splice{Span{start, start + int64(len("null"))}, "true"}
	}
}

// Places of a frame.
const (
	frameRoot uint8 = iota + 1
	frameChoices
	frameChoice
	frameUsage
	frameError
)

var frameSchema = []node{
	frameRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
		{"choices", frameChoices}, {"usage", frameUsage}, {"error", frameError},
	}},
	frameChoices: {elem: frameChoice},
	frameChoice:  {},
	frameUsage:   {},
	frameError:   {},
}

// maxFrame caps what is held of a frame. One with the usage is some 500 bytes long.
const maxFrame = 16 << 10

// UsageFilter takes the frame that only reports the usage out of a stream of server-sent events. All
// other bytes go on as they are, null or zeros of a usage in other frames included.
//
// Nothing is held before the first frame with a choice has ended. From then on the beginning of a frame
// is held until it shows that it is another one, which is at its first choice as a rule and at its end
// at the latest; so no event reaches the client later than it came. What is longer than maxFrame goes on.
type UsageFilter struct {
	json    jsonScanner
	spoke   bool // a choice was seen
	hold    bool // this frame may be held: a choice was seen before it
	known   bool // it is not the one that is looked for
	empty   bool // its list of choices is
	usage   bool // it has an object of usage
	started bool // a line of it that is no comment has begun
	line    lineKind
	nField  int // bytes of the line that are the beginning of "data:"
	afterCR bool
	ended   ending // of a frame, by the CR before
	held    []byte
	out     []byte
	removed int
}

type lineKind uint8

const (
	lineStart lineKind = iota
	lineField          // so far it is the beginning of "data:"
	lineData
	lineOther
)

// ending is what became of a frame, or of a comment, whose end may have an LF more.
type ending uint8

const (
	noEnding ending = iota
	passedOn
	leftOut
)

// NewUsageFilter makes a filter of one stream.
func NewUsageFilter() *UsageFilter {
	f := &UsageFilter{}
	f.json = newJSONScanner(frameSchema, f, answerDepth, true)
	return f
}

// Removed is how many frames were taken out.
func (f *UsageFilter) Removed() int { return f.removed }

// Write takes the next bytes of the stream and gives those that go on now, which are only valid until
// the next call.
func (f *UsageFilter) Write(p []byte) []byte {
	f.out = f.out[:0]
	same := len(f.held) == 0
	from := 0 // the bytes of p before have gone their way
	pass := func(to int) {
		f.out = append(append(f.out, f.held...), p[from:to]...)
		f.held, from = f.held[:0], to
	}
	drop := func(to int) {
		f.held, from, same = f.held[:0], to, false
	}
	for i := 0; i < len(p); {
		c := p[i]
		ended := f.ended
		f.ended = noEnding
		if f.afterCR {
			f.afterCR = false
			if c == '\n' {
				i++
				switch ended {
				case passedOn:
					pass(i)
				case leftOut:
					drop(i)
				}
				continue
			}
		}
		if c != '\r' && c != '\n' {
			i += f.within(p[i:])
			continue
		}
		f.afterCR = c == '\r'
		i++
		switch {
		case f.line != lineStart:
			f.endLine()
			if !f.started { // a comment
				f.ended = passedOn
				pass(i)
			}
		case f.extra():
			f.removed++
			f.ended = leftOut
			drop(i)
			f.startFrame()
		default:
			f.ended = passedOn
			pass(i)
			f.startFrame()
		}
	}
	if !f.hold || f.known || !f.started {
		pass(len(p))
	} else {
		f.held = append(f.held, p[from:]...)
		if len(f.held) > maxFrame {
			// Policy for a frame that is too long to be held: it goes on, whatever it is.
			f.known, from = true, len(p)
			pass(from)
		}
	}
	if same && len(f.held) == 0 {
		return p
	}
	return f.out
}

// Close ends the stream and gives what is left of it: a frame without the empty line at its end.
func (f *UsageFilter) Close() []byte {
	if f.line != lineStart {
		f.endLine()
	}
	if f.extra() {
		f.removed++
		return nil
	}
	held := f.held
	f.held = nil
	return held
}

// extra says that the frame that ends here is the one that is looked for.
func (f *UsageFilter) extra() bool {
	return f.hold && !f.known && f.empty && f.usage && f.json.state == docDone
}

func (f *UsageFilter) startFrame() {
	f.json.restart()
	f.hold, f.known, f.empty, f.usage, f.started = f.spoke, false, false, false, false
}

// within takes bytes of a line, and says how many.
func (f *UsageFilter) within(p []byte) int {
	const name = "data:"
	if f.line == lineStart {
		f.line, f.nField = lineField, 0
		if p[0] == ':' {
			f.line = lineOther
		} else {
			f.started = true
		}
	}
	if f.line == lineField {
		if p[0] != name[f.nField] {
			f.line = lineOther
		} else if f.nField++; f.nField == len(name) {
			f.line = lineData
		}
		return 1
	}
	n := bytes.IndexByte(p, '\n')
	if n < 0 {
		n = len(p)
	}
	if cr := bytes.IndexByte(p[:n], '\r'); cr >= 0 {
		n = cr
	}
	if f.line == lineData {
		f.document(p[:n])
	}
	return n
}

// endLine ends a line. Lines of data are joined by a line feed.
func (f *UsageFilter) endLine() {
	if f.line == lineData {
		f.known = f.known || f.json.state == inString || f.json.state == inLiteral
		f.document(lineFeed)
	}
	f.line = lineStart
}

// document feeds data as long as it may be that of the frame that is looked for.
func (f *UsageFilter) document(p []byte) {
	for len(p) > 0 && !f.known {
		if f.json.state == docDone {
			f.known = !isSpace(p[0]) // one document more
			p = p[1:]
			continue
		}
		p = p[f.json.write(p):]
		f.known = f.known || f.json.fault != nil
	}
}

func (f *UsageFilter) begin(n uint8, k kinds) string {
	switch n {
	case frameChoices:
		f.known = f.known || k != kindArray
	case frameChoice:
		f.spoke, f.known = true, true
	case frameUsage:
		f.usage = k == kindObject
		f.known = f.known || !f.usage
	case frameError:
		f.known = f.known || k != kindNull
	}
	return ""
}

func (f *UsageFilter) end(n uint8, _ kinds, empty bool) {
	f.empty = f.empty || n == frameChoices && empty
}

func (f *UsageFilter) key(uint8, []byte, bool)           {}
func (f *UsageFilter) text(uint8, []byte, bool)          {}
func (f *UsageFilter) value(uint8, kinds, []byte) string { return "" }
func (f *UsageFilter) raw(uint8, []byte, bool)           {}
