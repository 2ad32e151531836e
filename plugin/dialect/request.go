package dialect

// request says how the request bodies of one API are read: what stands in which place.
type request struct {
	schema []node
	texts  []Part // what the text of a place is; Text where it is 0
	items  []Item // what ends with the value of a place, if anything
	// set takes what the facts are made of. p is a number or the inside of a string as written, at
	// where it stands with its quotes; both are empty for values of other kinds, as they begin. A
	// complaint that isn't empty refuses the body: it completes "<path> ...".
	set func(f *Facts, n uint8, k kinds, p []byte, at Span) (complaint string)
}

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
}

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
	return s.facts, nil
}

func (s *requestScanner) begin(n uint8, k kinds) string {
	if k&(kindString|kindNumber) == 0 {
		if complaint := s.api.set(&s.facts, n, k, nil, Span{}); complaint != "" {
			return complaint
		}
	}
	item := s.api.items[n]
	switch {
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
	case Message, Tool, Property:
		return false
	}
	return true
}

func (s *requestScanner) end(n uint8, k kinds, empty bool) {
	switch item := s.api.items[n]; item {
	case Properties:
		if k == kindObject && !empty {
			s.finish(item)
		}
	case Enum:
		if k == kindArray && !empty {
			s.finish(item)
		}
	default:
		s.finish(item)
	}
}

func (s *requestScanner) finish(item Item) {
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
	if s.sink != nil {
		s.sink.Text(s.api.texts[n], p, last)
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
	}
	return s.api.set(&s.facts, n, k, p, at)
}

// asWhole reads a number of at least 1; false refuses it.
func asWhole(p []byte) (int64, bool) {
	v, ok := parseWhole(p)
	return v, ok && v >= 1
}
