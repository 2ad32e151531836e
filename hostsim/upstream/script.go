package upstream

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Script says how requests are answered: the first block whose condition holds plays. A request
// that no block matches gets the default answer. The grammar is in the README of hostsim/scenario.
type Script struct{ blocks []block }

type block struct {
	when  condition
	steps []step
}

type condition struct {
	kind  string // any, request, path, header, body, stream
	n     int
	name  string
	value string
}

type step struct {
	verb   string
	text   []byte
	n      int
	name   string
	delay  time.Duration
	usage  usage
	repeat int
}

// Parse reads a script. file names it in errors; line is the number of its first line; data are the
// files that `file NAME` may send.
func Parse(file string, line int, src string, data map[string][]byte) (*Script, error) {
	s := &Script{}
	for i, text := range strings.Split(src, "\n") {
		text = strings.TrimSpace(text)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if err := s.add(text, data); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, line+i, err)
		}
	}
	return s, nil
}

// MustParse is Parse for scripts that are part of a test's text.
func MustParse(src string) *Script {
	s, err := Parse("script", 1, src, nil)
	if err != nil {
		panic(err)
	}
	return s
}

func (s *Script) add(text string, data map[string][]byte) error {
	verb, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	if verb == "on" {
		when, err := parseCondition(rest)
		if err != nil {
			return err
		}
		s.blocks = append(s.blocks, block{when: when})
		return nil
	}
	if len(s.blocks) == 0 {
		s.blocks = append(s.blocks, block{when: condition{kind: "any"}})
	}
	st, err := parseStep(verb, rest, data)
	if err != nil {
		return err
	}
	b := &s.blocks[len(s.blocks)-1]
	b.steps = append(b.steps, st)
	return nil
}

func parseCondition(text string) (condition, error) {
	kind, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	c := condition{kind: kind, value: rest}
	switch kind {
	case "any", "stream":
		if rest != "" {
			return c, fmt.Errorf("on %s: takes nothing more, found %q", kind, rest)
		}
	case "request":
		n, err := strconv.Atoi(rest)
		if err != nil || n < 1 {
			return c, fmt.Errorf("on request: want a number from 1, found %q", rest)
		}
		c.n = n
	case "path", "body":
		if rest == "" {
			return c, fmt.Errorf("on %s: want a text", kind)
		}
	case "header":
		name, value, ok := strings.Cut(rest, ":")
		if !ok {
			return c, fmt.Errorf("on header: want `name: value`, found %q", rest)
		}
		c.name, c.value = strings.TrimSpace(name), strings.TrimSpace(value)
	default:
		return c, fmt.Errorf("on %s: want any, request N, path P, header N: V, body TEXT or stream", kind)
	}
	return c, nil
}

func parseStep(verb, rest string, data map[string][]byte) (step, error) {
	st := step{verb: verb, repeat: 1}
	var err error
	switch verb {
	case "early", "done", "cut", "reset", "hang", "echo", "gzip", "deflate":
		if rest != "" {
			err = fmt.Errorf("takes nothing more, found %q", rest)
		}
	case "wait":
		st.name = rest
		if rest == "" || strings.ContainsAny(rest, " \t") {
			err = fmt.Errorf("want the name of a gate, found %q", rest)
		}
	case "arrived", "status", "info":
		st.n, err = strconv.Atoi(rest)
		if err != nil || st.n < 1 {
			err = fmt.Errorf("want a number from 1, found %q", rest)
		}
	case "delay":
		st.delay, err = time.ParseDuration(rest)
	case "header", "trailer":
		name, value, ok := strings.Cut(rest, ":")
		if !ok {
			err = fmt.Errorf("want `name: value`, found %q", rest)
		}
		st.name, st.text = strings.TrimSpace(name), []byte(strings.TrimSpace(value))
	case "write", "sse", "raw":
		st.text, err = Unquote(rest)
	case "file":
		body, ok := data[rest]
		if !ok {
			err = fmt.Errorf("no file %q in this scenario", rest)
		}
		st.text = body
	case "chat":
		st.usage, err = parseUsage(rest)
	case "repeat":
		count, inner, _ := strings.Cut(rest, " ")
		n, nerr := strconv.Atoi(count)
		if nerr != nil || n < 1 {
			return st, fmt.Errorf("repeat: want a number from 1, found %q", count)
		}
		verb, rest, _ := strings.Cut(strings.TrimSpace(inner), " ")
		switch verb {
		case "write", "sse", "file":
		default:
			return st, fmt.Errorf("repeat: only write, sse and file can be repeated, found %q", verb)
		}
		st, err = parseStep(verb, strings.TrimSpace(rest), data)
		st.repeat = n
		return st, err
	default:
		return st, fmt.Errorf("unknown step %q", verb)
	}
	if err != nil {
		return st, fmt.Errorf("%s: %w", verb, err)
	}
	return st, nil
}

// Unquote returns the bytes of a text: as they stand, or as a Go string literal if they begin with a
// double quote.
func Unquote(text string) ([]byte, error) {
	if !strings.HasPrefix(text, `"`) {
		return []byte(text), nil
	}
	s, err := strconv.Unquote(text)
	if err != nil {
		return nil, fmt.Errorf("bad quoted text %s", text)
	}
	return []byte(s), nil
}

// earlyFor says whether the answer begins before the body was read. Only conditions on the head can
// choose that.
func (s *Script) earlyFor(number int, r *Request) bool {
	if s == nil {
		return false
	}
	for _, b := range s.blocks {
		if b.when.kind == "body" || b.when.kind == "stream" {
			return false
		}
		if b.when.holds(number, r, nil) {
			for _, st := range b.steps {
				if st.verb == "early" {
					return true
				}
			}
			return false
		}
	}
	return false
}

func (s *Script) answerFor(number int, r *Request, body []byte) []step {
	if s != nil {
		for _, b := range s.blocks {
			if b.when.holds(number, r, body) {
				return b.steps
			}
		}
	}
	return []step{{verb: "chat", usage: defaultUsage, repeat: 1}}
}

func (c condition) holds(number int, r *Request, body []byte) bool {
	switch c.kind {
	case "any":
		return true
	case "request":
		return number == c.n
	case "path":
		return r.Path == c.value
	case "header":
		for _, v := range r.Header[http.CanonicalHeaderKey(c.name)] {
			if v == c.value {
				return true
			}
		}
	case "body":
		return strings.Contains(string(body), c.value)
	case "stream":
		return readAsk(body).Stream
	}
	return false
}
