package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/emmer-proxy/emmer/hostsim/upstream"
)

// step is one line of a scenario's steps.
type step struct {
	line int
	text string // as written
	verb string
	args []string
	mode string // only in this mode; "" = in all

	send   sendOptions
	expect expectation
}

// sendOptions are the words behind the name of a request.
type sendOptions struct {
	request string
	label   string
	h2      bool
	window  int  // bytes that an HTTP/2 stream may be sent at once; 0 = the client's default
	hold    bool // send the head only
	times   int
	split   []int // sizes of the pieces of the body; the last one repeats
	pause   time.Duration
	conn    string
	gateway int // from 1
}

// expectation is a subject, an operator and a value.
type expectation struct {
	subject []string
	op      string
	value   string        // unexpanded
	file    string        // the value stands in this file
	within  time.Duration // 0 = the default
}

// longestPass bounds how long a scenario may let time pass.
const longestPass = 10 * time.Second

const (
	opAbsent  = "absent"
	opPresent = "present"
)

var operators = map[string]bool{
	"==": true, "!=": true, "<": true, "<=": true, ">": true, ">=": true,
	"contains": true, "lacks": true, "matches": true, "starts": true, "ends": true,
	opAbsent: true, opPresent: true,
}

func (s *Scenario) parseSteps(text string) error {
	var faults []error
	labels := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		st, err := s.parseStep(line, labels)
		st.line, st.text = s.lines[fileSteps]+i, line
		if err != nil {
			faults = append(faults, fmt.Errorf("%s:%d: %w", s.Path, st.line, err))
			continue
		}
		s.steps = append(s.steps, st)
	}
	return errors.Join(faults...)
}

func (s *Scenario) parseStep(line string, labels map[string]bool) (step, error) {
	var st step
	if strings.HasPrefix(line, "[") {
		mode, rest, ok := strings.Cut(line[1:], "]")
		if !ok {
			return st, fmt.Errorf("no ] in %q", line)
		}
		st.mode, line = mode, strings.TrimSpace(rest)
	}
	tokens, err := tokenize(line)
	if err != nil {
		return st, err
	}
	if len(tokens) == 0 {
		return st, fmt.Errorf("no step behind [%s]", st.mode)
	}
	st.verb = tokens[0].text
	for _, t := range tokens[1:] {
		st.args = append(st.args, t.text)
	}
	want := func(least, most int, what string) error {
		if n := len(st.args); n < least || n > most {
			return fmt.Errorf("%s: want %s", st.verb, what)
		}
		return nil
	}
	label := func() error {
		if !labels[st.args[0]] {
			return fmt.Errorf("%s: no request was sent as %q", st.verb, st.args[0])
		}
		return nil
	}
	switch st.verb {
	case "send", "start":
		st.send, err = s.parseSend(st.verb, st.args)
		if err == nil {
			labels[st.send.label] = true
			for i := range st.send.times {
				labels[numbered(st.send.label, i+1)] = true
			}
		}
		return st, err
	case "write":
		if err := want(2, 2, "a label and a text"); err != nil {
			return st, err
		}
		return st, label()
	case "part":
		if err := want(2, 2, "a label and a number of bytes"); err != nil {
			return st, err
		}
		if n, err := strconv.Atoi(st.args[1]); err != nil || n < 1 {
			return st, fmt.Errorf("part: want a number from 1, found %q", st.args[1])
		}
		return st, label()
	case "rest", "end", "abort", "close", "finish":
		if err := want(1, 1, "a label"); err != nil {
			return st, err
		}
		return st, label()
	case "open":
		return st, want(1, 1, "the name of a gate")
	case "bridge":
		if err := want(1, 2, "kill, restart, stall, go or drop N"); err != nil {
			return st, err
		}
		return st, checkBridge(st.args)
	case "redis":
		if err := want(1, 1000, "flush-scripts, a fault or a command"); err != nil {
			return st, err
		}
		if redisFaults[st.args[0]] && len(st.args) != 1+map[string]int{"fail": 1}[st.args[0]] {
			return st, fmt.Errorf("redis: want stall, go, kill, restart or fail TEXT, found %q", strings.Join(st.args, " "))
		}
		return st, nil
	case "advance":
		if err := want(1, 1, "a duration"); err != nil {
			return st, err
		}
		if s.Settings.Clock != "frozen" {
			return st, fmt.Errorf("advance: only with `clock: frozen` in %s", fileSettings)
		}
		_, err := time.ParseDuration(st.args[0])
		return st, err
	case "pass":
		if err := want(1, 1, "a duration of at most 10s"); err != nil {
			return st, err
		}
		d, err := time.ParseDuration(st.args[0])
		if err == nil && (d <= 0 || d > longestPass) {
			err = fmt.Errorf("pass: want a duration of at most %v, found %v", longestPass, d)
		}
		return st, err
	case "kill":
		return st, want(2, 5, "a scope, an id, and if you like for=1h, org=NAME and a reason (of several words: quoted)")
	case "resume":
		if err := want(2, 3, "a scope, an id, and if you like org=NAME"); err != nil {
			return st, err
		}
		if len(st.args) == 3 && !strings.HasPrefix(st.args[2], "org=") {
			return st, fmt.Errorf("resume: found %q; want org=NAME", st.args[2])
		}
		return st, nil
	case "expect", "await", "probe":
		if st.verb == "probe" {
			tokens = append([]token{{text: "expect"}}, tokens...)
		}
		st.expect, err = parseExpect(line, tokens[1:])
		if err == nil {
			err = s.checkSubject(st.expect, labels)
		}
		if st.verb == "await" && st.expect.within == 0 {
			st.expect.within = awaitPatience
		}
		return st, err
	}
	return st, fmt.Errorf("unknown step %q", st.verb)
}

func numbered(label string, n int) string { return label + "." + strconv.Itoa(n) }

// redisFaults are words behind redis that no Redis over the network has.
var redisFaults = map[string]bool{"stall": true, "go": true, "kill": true, "restart": true, "fail": true}

func checkBridge(args []string) error {
	switch args[0] {
	case "kill", "restart", "stall", "go":
		if len(args) == 1 {
			return nil
		}
	case "drop":
		if len(args) == 2 {
			if n, err := strconv.Atoi(args[1]); err == nil && n > 0 {
				return nil
			}
		}
	}
	return fmt.Errorf("bridge: want kill, restart, stall, go or drop N, found %q", strings.Join(args, " "))
}

func (s *Scenario) parseSend(verb string, args []string) (sendOptions, error) {
	o := sendOptions{times: 1, gateway: 1}
	fault := func(format string, a ...any) (sendOptions, error) {
		return o, fmt.Errorf("%s: %s", verb, fmt.Sprintf(format, a...))
	}
	if len(args) == 0 {
		return fault("want the name of a request")
	}
	o.request, o.label = args[0], args[0]
	m, ok := s.requests[o.request]
	if !ok {
		return fault("no file %q", o.request+requestExt)
	}
	for i := 1; i < len(args); i++ {
		name, value, _ := strings.Cut(args[i], "=")
		var err error
		switch name {
		case "as":
			i++
			if i == len(args) {
				return fault("as: want a label")
			}
			o.label = args[i]
		case "h2":
			o.h2 = true
		case "window":
			o.window, err = strconv.Atoi(value)
			if err == nil && (o.window < 1 || !o.h2) {
				err = errors.New("want h2 before it, and at least 1")
			}
		case "hold":
			o.hold = true
		case "times":
			o.times, err = strconv.Atoi(value)
			if err == nil && (o.times < 1 || o.times > 10000) {
				err = errors.New("want 1 to 10000")
			}
		case "split":
			o.split, err = parseSizes(value)
		case "pause":
			o.pause, err = time.ParseDuration(value)
		case "conn":
			o.conn = value
			if value == "" {
				err = errors.New("want a name")
			}
		case "gateway":
			o.gateway, err = strconv.Atoi(value)
			if err == nil && (o.gateway < 1 || o.gateway > s.Settings.Gateways) {
				err = fmt.Errorf("want 1 to %d", s.Settings.Gateways)
			}
		default:
			return fault("unknown word %q", args[i])
		}
		if err != nil {
			return fault("%s: %v", args[i], err)
		}
	}
	switch {
	case strings.Contains(o.label, "."):
		return fault("a label has no dot, found %q", o.label)
	case o.hold && verb == "send":
		return fault("hold: the request never ends; use start")
	case m.raw && o.h2:
		return fault("a @raw request is HTTP/1.1")
	}
	return o, nil
}

func parseSizes(text string) ([]int, error) {
	var out []int
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("want sizes from 1, found %q", word)
		}
		out = append(out, n)
	}
	return out, nil
}

func parseExpect(line string, tokens []token) (expectation, error) {
	var e expectation
	for _, t := range tokens {
		if within, ok := strings.CutPrefix(t.text, "within="); ok && !t.quoted {
			d, err := time.ParseDuration(within)
			if err != nil {
				return e, err
			}
			e.within = d
			continue
		}
		if t.quoted || !operators[t.text] {
			e.subject = append(e.subject, t.text)
			continue
		}
		e.op = t.text
		rest := strings.TrimSpace(line[t.end:])
		if e.op == opAbsent || e.op == opPresent {
			if rest != "" {
				return e, fmt.Errorf("%s: takes no value, found %q", e.op, rest)
			}
			return e, nil
		}
		if name, ok := strings.CutPrefix(rest, "file "); ok {
			e.file = strings.TrimSpace(name)
			return e, nil
		}
		value, err := upstream.Unquote(rest)
		e.value = string(value)
		return e, err
	}
	return e, fmt.Errorf("no operator: want ==, !=, <, <=, >, >=, contains, lacks, matches, starts, ends, absent or present")
}

// token is a word, or a quoted text.
type token struct {
	text   string
	quoted bool
	end    int // offset in the line behind it
}

func tokenize(line string) ([]token, error) {
	var out []token
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case c == ' ' || c == '\t':
			i++
		case c == '"':
			text, err := strconv.QuotedPrefix(line[i:])
			if err != nil {
				return nil, fmt.Errorf("bad quoted text %s", line[i:])
			}
			i += len(text)
			value, err := strconv.Unquote(text)
			if err != nil {
				return nil, fmt.Errorf("bad quoted text %s", text)
			}
			out = append(out, token{value, true, i})
		default:
			end := i
			for end < len(line) && line[end] != ' ' && line[end] != '\t' {
				end++
			}
			out = append(out, token{line[i:end], false, end})
			i = end
			// What stands behind an operator is a value as it is, not words.
			if operators[out[len(out)-1].text] {
				return out, nil
			}
		}
	}
	return out, nil
}
