package dialect

import "unicode/utf8"

// A running stream may have to be ended before the model has: its budget is used up, or a kill flag rose.
// What is appended then makes the client's library see the end that it knows from a model that has
// reached its cap: "length", max_tokens, MAX_TOKENS. A kill flag gives no other reason. Of the others,
// "stop" would have tool calls run whose arguments are cut off, and "content_filter" blames the prompt;
// libraries that raise on one of these two on request (openai-python's get_final_completion, openai-node
// where it is to parse) raise on "length" as well, as they do when a model has really reached its cap.

// End is how a stream is to be ended.
type End struct {
	// Usage is told to the client.
	Usage Usage
	// Report says that the client asked for the usage (Facts.IncludeUsage), where an API leaves that to it.
	Report bool
	// Mark is put into the ending, if it isn't empty: as a comment line (": mark", an empty line) before
	// it, or as a member of its first document where there are no comments, or libraries that take
	// them for data (Gemini's). Letters, digits and dashes.
	Mark string
}

// Ender is a Meter of a stream that may be ended before its own end. All of this package's are.
type Ender interface {
	// Whole is how many bytes of the last Write came before the last place in it that is between two
	// events. ok is false if there is none: the client has a part of an event already, and has to be
	// given the rest of it first.
	Whole() (n int, ok bool)
	// Ending is what ends the stream behind that place. ok is false where nothing can or need be done:
	// it has ended, or failed, or not begun (no event was whole, so the library wouldn't know of which
	// answer this is the end), or it has no such end: a whole JSON answer, pictures, sound.
	Ending(e End) (body []byte, ok bool)
}

// tail says how the streams of one API are ended: what is seen of them, and what is written.
type tail struct {
	spots []spot // by place
	// step says what an event of that name, or of that type, does.
	step func(name []byte) step
	// write writes what is missing; false if nothing is.
	write func(w *endWriter, at *standing, e End) bool
	// lines: an answer that is one JSON document after another is a stream.
	lines bool
	// silent: no comment may stand before an event.
	silent bool
}

// spot is what a place of an event says of where the stream stands.
type spot uint8

const (
	noSpot     spot = iota
	idSpot          // words that are said again at the end
	modelSpot       // as above
	timeSpot        // as above, a number or a string
	numberSpot      // the number of the event
	itemSpot        // one of several answers
	indexSpot       // its number, or that of a block
	reasonSpot      // why it ended, or the whole stream if it is in none: a string, or true
	usageSpot       // an object
	typeSpot        // what tail.step understands
	openSpot        // an event that opens a block
	closeSpot       // that closes it
	overSpot        // after which nothing comes
	familySpot      // and above: of which family the stream is
)

// step is what an event does.
type step uint8

const (
	noStep step = iota
	startStep
	openStep
	closeStep
	openToolStep // tools are numbered apart
	closeToolStep
	overStep
)

// Bounds of what is kept of a stream. One that goes beyond them can't be ended by us.
const (
	maxWords    = 320 // bytes of all words; the longest ids are those of gateways that encode a target in them
	maxChoices  = 64
	maxOpen     = 4 // blocks at once; there is one, in all streams known
	wordsOfThem = 3
)

// standing is where a stream stands after the last event that was whole.
type standing struct {
	words    [wordsOfThem]string // as written
	number   int64
	seen     uint64 // answers
	finished uint64
	open     [maxOpen]int32
	nOpen    uint8
	family   uint8
	sep      byte // the last byte of weight between two documents
	said     bool // there was an event
	started  bool
	stopped  bool // the stream has its reason
	reported bool // and its usage
	over     bool
	lost     bool // a bound was exceeded
	whole    int  // of the last Write
	now      passing
}

// passing is what is known of the event at hand.
type passing struct {
	number         int64
	seen, finished uint64
	index          int32
	family         uint8
	step           step
	numbered       bool
	item           bool // inside of one of the answers
	itemDone       bool
	said           bool
	stop, usage    bool
	failed, beyond bool
}

func (a *standing) begin(s spot, root bool, k kinds) {
	n := &a.now
	n.said = n.said || root
	switch s {
	case noSpot, idSpot, modelSpot, timeSpot, numberSpot, indexSpot, typeSpot:
	case itemSpot:
		n.item, n.itemDone, n.index = true, false, 0
	case reasonSpot:
		if k&(kindString|kindTrue) != 0 {
			n.itemDone = n.itemDone || n.item
			n.stop = n.stop || !n.item
		}
	case usageSpot:
		n.usage = n.usage || k == kindObject
	case openSpot:
		n.step = openStep
	case closeSpot:
		n.step = closeStep
	case overSpot:
		n.step = overStep
	default:
		n.family = uint8(s-familySpot) + 1
	}
}

func (a *standing) end(s spot) {
	if s != itemSpot {
		return
	}
	n := &a.now
	n.item = false
	if n.index < 0 || n.index >= maxChoices {
		n.beyond = true
		return
	}
	n.seen |= 1 << n.index
	if n.itemDone {
		n.finished |= 1 << n.index
	}
}

func (a *standing) value(s spot, k kinds, p []byte, does func([]byte) step) {
	n := &a.now
	switch s {
	case idSpot, modelSpot, timeSpot:
		a.word(s, k, p)
	case numberSpot, indexSpot:
		v, ok := parseWhole(p)
		switch {
		case k != kindNumber || !ok:
		case s == numberSpot:
			n.number, n.numbered = v, true
		case v != int64(int32(v)):
			n.beyond = true
		default:
			n.index = int32(v)
		}
	case typeSpot:
		if k == kindString {
			n.step = does(p)
		}
	}
}

// word keeps what isn't kept yet, if it is a word: some streams begin with an empty id, or the time 0.
func (a *standing) word(s spot, k kinds, p []byte) {
	w := &a.words[s-idSpot]
	if *w != "" || len(p) == 0 || s != timeSpot && k != kindString || k == kindNumber && string(p) == "0" || !utf8.Valid(p) {
		return
	}
	size := len(p)
	for _, have := range a.words {
		size += len(have)
	}
	if size > maxWords {
		return
	}
	for _, c := range p {
		if c < ' ' {
			return
		}
	}
	if *w = string(p); s == timeSpot && k == kindString {
		*w = `"` + *w + `"`
	}
}

// pass ends the event at hand: it is whole.
func (a *standing) pass() {
	n := a.now
	a.now = passing{}
	a.said = a.said || n.said
	a.seen |= n.seen
	a.finished |= n.finished
	a.stopped = a.stopped || n.stop
	a.reported = a.reported || n.usage && n.seen == 0
	a.over = a.over || n.failed
	a.lost = a.lost || n.beyond
	if n.numbered {
		a.number = n.number
	}
	if n.family != 0 && a.family == 0 {
		a.family = n.family
	}
	switch n.step {
	case startStep:
		a.started = true
	case openStep:
		a.openBlock(n.index << 1)
	case openToolStep:
		a.openBlock(n.index<<1 | 1)
	case closeStep:
		a.closeBlock(n.index << 1)
	case closeToolStep:
		a.closeBlock(n.index<<1 | 1)
	case overStep:
		a.over = true
	}
}

func (a *standing) openBlock(id int32) {
	for _, have := range a.open[:a.nOpen] {
		if have == id {
			return
		}
	}
	if a.nOpen == maxOpen {
		a.lost = true
		return
	}
	a.open[a.nOpen] = id
	a.nOpen++
}

func (a *standing) closeBlock(id int32) {
	for i, have := range a.open[:a.nOpen] {
		if have == id {
			a.nOpen--
			copy(a.open[i:a.nOpen], a.open[i+1:])
			return
		}
	}
}

// blocks calls f for each block that is open, the last first.
func (a *standing) blocks(f func(index int64, tool bool)) {
	for i := int(a.nOpen) - 1; i >= 0; i-- {
		f(int64(a.open[i]>>1), a.open[i]&1 != 0)
	}
}

// answers calls f for each answer that has not ended: the first if none has begun.
func (a *standing) answers(f func(index int64)) {
	if a.seen == 0 && !a.stopped {
		f(0)
	}
	for i := range int64(maxChoices) {
		if a.seen&^a.finished&(1<<i) != 0 {
			f(i)
		}
	}
}

// unfinished says that an answer has not ended.
func (a *standing) unfinished() bool { return a.seen&^a.finished != 0 || a.seen == 0 && !a.stopped }

func (m *answerMeter) Whole() (int, bool) {
	if m.at == nil {
		return 0, false
	}
	return max(m.at.whole, 0), m.at.whole >= 0
}

func (m *answerMeter) Ending(e End) ([]byte, bool) {
	a := m.at
	if a == nil || m.closed || m.closedArray || a.over || a.lost || !a.said {
		return nil, false
	}
	w := endWriter{form: m.mode, wrapped: m.api.wrapped, mark: e.Mark, sep: a.sep}
	switch {
	case m.mode == readsSSE:
		if m.lines.Whole() && m.lines.AfterCR() {
			w.b = append(w.b, '\n') // which belongs to the CR, if the stream has such line ends
		}
		if e.Mark != "" && !m.api.tail.silent {
			w.b = append(append(append(w.b, ": "...), e.Mark...), "\n\n"...)
			w.mark = ""
		}
	case m.mode == readsJSON && m.api.tail.lines, m.mode == readsArray, m.mode == readsFrames:
	default:
		return nil, false
	}
	if !m.api.tail.write(&w, a, e) {
		return nil, false
	}
	if m.mode == readsArray {
		w.b = append(w.b, "]\n"...)
	}
	return w.b, true
}

// stand ends a Write, of which the bytes before were none of a stream's yet.
func (m *answerMeter) stand(before int) {
	n := m.at.whole
	switch m.mode {
	case readsSSE:
		n = m.lines.Ended()
	case readsFrames:
		n = m.frames.reader.Ended()
	case readsJSON, readsArray:
	case undecided: // white space
		n = 0
	default:
		n = -1
	}
	if n >= 0 {
		n += before
	}
	m.at.whole = n
}

// wholeAt takes a place between two events of a stream that is parted by its documents alone.
func (m *answerMeter) wholeAt(n int) {
	if m.at != nil && (m.mode == readsJSON || m.mode == readsArray) && (m.json.state == docDone || m.json.begins()) {
		m.at.whole = n
	}
}

// separator takes a byte between two documents.
func (m *answerMeter) separator(c byte) {
	if m.at != nil {
		m.at.sep = c
	}
}
