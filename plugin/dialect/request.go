package dialect

import "strings"

// request says how the request bodies of one API are read: what stands in which place.
type request struct {
	schema []node
	texts  []Part // what the text of a place is; Text where it is 0
	items  []Item // what ends with the value of a place, if anything; not with a list of the same
	// set takes what the facts are made of. p is a number or the inside of a short string as written,
	// at where it stands with its quotes; both are empty for values of other kinds and for texts, as
	// they begin. A complaint that isn't empty refuses the body: it completes "<path> ...".
	set func(f *Facts, n uint8, k kinds, p []byte, at Span) (complaint string)
	// done takes the facts of a whole body, where more follows from them; else nil. said is how many bytes
	// of text stood in the place length.
	done   func(f *Facts, said int64)
	length uint8
	// asks says how a stream is made to report its usage; nil where streams do so by themselves.
	asks *usageOption
	// media says how the parts of a message tell what they are; nil where an object of its own holds
	// each medium.
	media *media
}

// media is for APIs that say what a part of a message is in one of its members, and hold it in others:
// it ends with the part, whatever the order of the members.
type media struct {
	parts []bool              // by place: such parts, as objects
	holds []Item              // by place: what the part at hand is if this stands in it
	named func(p []byte) Item // what it is by the short string in a place of kind
	kind  uint8               // a place for short strings
}

// spoken is the item of a place where a string is a whole message, and anything else is not.
const spoken = Items

// sealedText is the part of a text that only the provider can read. It counts by its length.
const sealedText = Parts

// sealedBytes is how many bytes of base64 a token of sealed text takes, at least: a token of English
// is four bytes and a half, of which base64 makes six.
const sealedBytes = 5

// newScanner makes a scanner of one body. What is known of the call already stands in facts.
func (r *request) newScanner(facts Facts, maxDepth int, sink Sink) *requestScanner {
	if facts.N == 0 {
		facts.N = 1
	}
	s := &requestScanner{api: r, sink: sink, facts: facts}
	s.json = newJSONScanner(r.schema, s, maxDepth, false)
	return s
}

// requestScanner reads a request body of JSON.
type requestScanner struct {
	api   *request
	json  jsonScanner
	sink  Sink
	facts Facts
	// ending is the item that ends with the text at hand: one that is a string, not an object.
	ending Item
	part   Item  // what the part of a message at hand is so far
	sealed int64 // bytes of text that only the provider can read
	weight int64 // bytes of the document at hand so far
	said   int64 // bytes of text in the place whose length is asked for
}

// chunkBytes is how many bytes a chunk of a document has where it is cut for ranking: Cohere bills each
// 500 tokens of a document as one (docs.pinecone.io of rerank 4; Cohere's pricing page, read 2026-10), and
// a token of three bytes is a short one.
const chunkBytes = 1500

func (s *requestScanner) Write(p []byte) *Fault {
	for len(p) > 0 && s.json.fault == nil {
		if s.json.state != docDone {
			p = p[s.json.write(p):]
			continue
		}
		// Behind the document only white space may stand: a decoder that reads on would see more.
		if !isSpace(p[0]) {
			s.json.syntax(0)
			break
		}
		s.json.base++
		p = p[1:]
	}
	return s.json.fault
}

func (s *requestScanner) Close() (Facts, *Fault) {
	if s.json.fault == nil && s.json.state != docDone {
		message := "the body is not valid JSON: it ends too early"
		if s.json.base == 0 {
			message = "the body is empty; send a JSON object"
		}
		s.json.fail("invalid_json", "", message)
	}
	if s.json.fault != nil {
		return Facts{}, s.json.fault
	}
	if !s.facts.Stream {
		s.facts.AskUsage = Splice{}
	}
	s.facts.TokenIDs += s.sealed / sealedBytes
	if s.api.done != nil {
		s.api.done(&s.facts, s.said)
	}
	return s.facts, nil
}

func (s *requestScanner) begin(n uint8, k kinds) string {
	if s.api.asks != nil {
		s.api.asks.see(&s.facts, n, k, s.json.start)
	}
	if m := s.api.media; m != nil && k != kindNull && m.holds[n] != 0 && s.part == 0 {
		s.part = m.holds[n]
	}
	if k != kindNumber && !(k == kindString && s.api.schema[n].value) {
		if complaint := s.api.set(&s.facts, n, k, nil, Span{}); complaint != "" {
			return complaint
		}
	}
	item := s.api.items[n]
	if item == Document {
		s.weight = 0
	}
	switch {
	case item == spoken:
		if k == kindString {
			s.ending = Message
		}
	case item == 0, k&(kindObject|kindArray) != 0: // ended by end
	case item == Properties, item == Enum: // no such thing
	case k == kindNull && absentIfNull(item):
	case k == kindString && s.api.schema[n].text, s.api.schema[n].raw&k != 0:
		s.ending = item // ended by its text
	default:
		s.finish(item)
	}
	return ""
}

// absentIfNull says that null means none, and not one without content.
func absentIfNull(item Item) bool {
	switch item {
	case Message, Tool, Property, Document:
		return false
	}
	return true
}

func (s *requestScanner) end(n uint8, k kinds, empty bool) {
	if a := s.api.asks; a != nil && n == a.options && empty {
		s.facts.AskUsage.With = strings.TrimSuffix(s.facts.AskUsage.With, ",")
	}
	if m := s.api.media; m != nil && k == kindObject && m.parts[n] {
		s.finish(s.part)
		s.part = 0
	}
	switch item := s.api.items[n]; item {
	case spoken:
	case Properties:
		if k == kindObject && !empty {
			s.finish(item)
		}
	case Enum:
		if k == kindArray && !empty {
			s.finish(item)
		}
	default:
		if nd := &s.api.schema[n]; k == kindArray && nd.elem != 0 && nd.fields != nil {
			break // a list of what could have stood here itself
		}
		s.finish(item)
	}
}

func (s *requestScanner) finish(item Item) {
	if item == Document {
		s.facts.Chunks += max((s.weight+chunkBytes-1)/chunkBytes, 1)
	}
	if item != 0 && s.sink != nil {
		s.sink.End(item)
	}
}

func (s *requestScanner) key(n uint8, p []byte, last bool) {
	if s.sink == nil {
		return
	}
	part := Schema
	if s.api.items[n] == Properties {
		part = PropertyName
	}
	s.sink.Text(part, p, last)
}

func (s *requestScanner) text(n uint8, p []byte, last bool) {
	s.weight += int64(len(p))
	if n == s.api.length {
		s.said += int64(len(p))
	}
	if part := s.api.texts[n]; part == sealedText {
		s.sealed += int64(len(p))
	} else if s.sink != nil {
		s.sink.Text(part, p, last)
	}
	if last && s.ending != 0 {
		s.finish(s.ending)
		s.ending = 0
	}
}

func (s *requestScanner) raw(n uint8, p []byte, last bool) { s.text(n, p, last) }

func (s *requestScanner) value(n uint8, k kinds, p []byte) string {
	at := Span{s.json.start, s.json.start + int64(len(p))}
	if k == kindString {
		at.End += 2
		if m := s.api.media; m != nil && n == m.kind {
			if item := m.named(p); item != 0 {
				s.part = item
			}
		}
	}
	return s.api.set(&s.facts, n, k, p, at)
}

// asWhole reads a number of at least 1; false refuses it.
func asWhole(p []byte) (int64, bool) {
	v, ok := parseWhole(p)
	return v, ok && v >= 1
}
