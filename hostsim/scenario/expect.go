package scenario

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/emmer-proxy/emmer/hostsim/upstream"
)

// reading is what a subject says at one moment.
type reading struct {
	value   string
	present bool
	final   bool // it can't change any more
}

func is(value string) reading           { return reading{value: value, present: true} }
func number[T int | int64](n T) reading { return is(strconv.FormatInt(int64(n), 10)) }

// Attributes of a client's exchange and of an upstream's request, with the number of words behind.
var (
	clientAttributes = map[string]int{
		"status": 0, "body": 0, "bytes": 0, "end": 0, "informed": 0, "header": 1, "trailer": 1, "json": 1,
	}
	arrivalAttributes = map[string]int{
		"method": 0, "path": 0, "proto": 0, "body": 0, "bytes": 0, "sent": 0, "complete": 0, "aborted": 0,
		"ended": 0, "malformed": 0, "header": 1, "trailer": 1, "json": 1,
	}
	upstreamCounts = map[string]bool{"requests": true, "bytes": true, "connections": true}
)

// checkSubject finds faults of a subject when the file is read.
func (s *Scenario) checkSubject(e expectation, labels map[string]bool) error {
	sub := e.subject
	if e.file != "" {
		if _, ok := s.files[e.file]; !ok {
			return fmt.Errorf("no file %q in this scenario", e.file)
		}
	}
	if e.op == "matches" {
		if _, err := regexp.Compile(e.value); err != nil {
			return fmt.Errorf("matches: %w", err)
		}
	}
	if len(sub) == 0 {
		return fmt.Errorf("nothing before %s", e.op)
	}
	attribute := func(known map[string]int, words []string) error {
		n, ok := known[first(words)]
		if !ok {
			return fmt.Errorf("%s: unknown attribute %q", sub[0], first(words))
		}
		if len(words) != 1+n {
			return fmt.Errorf("%s: %s: want %d more words, found %d", sub[0], words[0], n, len(words)-1)
		}
		return nil
	}
	kind, target, _ := strings.Cut(sub[0], ".")
	switch kind {
	case "upstream":
		if _, ok := s.upstreams[target]; !ok {
			return fmt.Errorf("no file %q in this scenario", sub[0])
		}
		if len(sub) == 2 && upstreamCounts[sub[1]] {
			return nil
		}
		if len(sub) < 3 || !isNumber(sub[1]) && sub[1] != lastOne {
			return fmt.Errorf("%s: want requests, bytes, connections, or a number or last and an attribute", sub[0])
		}
		return attribute(arrivalAttributes, sub[2:])
	case "count":
		if len(sub) < 4 || !labels[sub[1]] {
			return fmt.Errorf("count: want a label, an attribute and its value")
		}
		return attribute(clientAttributes, sub[2:len(sub)-1])
	case "probe":
		if len(sub) < 2 {
			return fmt.Errorf("probe: want a name")
		}
		return nil
	case "metric":
		if len(sub) != 2 {
			return fmt.Errorf("metric: want one name")
		}
		return nil
	case "log":
		if len(sub) == 2 && sub[1] == "lines" ||
			len(sub) == 3 && (isNumber(sub[1]) || sub[1] == "any") && (sub[2] == "code" || sub[2] == "text") ||
			len(sub) == 4 && (isNumber(sub[1]) || sub[1] == "any") && sub[2] == "json" {
			return nil
		}
		return fmt.Errorf("log: want lines, or a number or any, and code, text or json PATH")
	case "callouts":
		return nil
	case "gateway":
		if len(sub) == 2 && sub[1] == "log" {
			return nil
		}
		return fmt.Errorf("gateway: want log")
	}
	if !labels[sub[0]] {
		return fmt.Errorf("no request was sent as %q", sub[0])
	}
	return attribute(clientAttributes, sub[1:])
}

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

func isNumber(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n > 0
}

// check asks a subject until the expectation holds, its answer is final, or patience ends.
func (w *world) check(ctx context.Context, st *step) error {
	e := st.expect
	patience := e.within
	if patience == 0 {
		patience = expectPatience
	}
	if _, client := w.exchanges[e.subject[0]]; (client || e.subject[0] == "count") && st.verb == "expect" {
		label := e.subject[0]
		if label == "count" {
			label = e.subject[1]
		}
		if err := w.awaitEnd(ctx, w.group(label)...); err != nil {
			return err
		}
	}
	if w.options.Update {
		patience = min(patience, time.Second)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		want := w.wanted(e)
		got, err := w.read(ctx, e)
		if err != nil {
			return err
		}
		if holds(e.op, got, want) {
			return nil
		}
		if !got.final {
			select {
			case <-poll.C:
				continue
			case <-ctx.Done():
			}
		}
		if w.options.Update && w.updates.take(w, st, got) {
			return nil
		}
		return fmt.Errorf("%s", complaint(e.op, got, want))
	}
}

func (w *world) wanted(e expectation) string {
	if e.file != "" {
		return w.expand(string(w.s.files[e.file]))
	}
	return w.expand(e.value)
}

// longest is how much of a value is shown.
const longest = 2000

func complaint(op string, got reading, want string) string {
	found := "nothing"
	if got.present {
		found = strconv.Quote(got.value[:min(len(got.value), longest)])
	}
	if op == opAbsent || op == opPresent {
		return fmt.Sprintf("got %s, want it %s", found, op)
	}
	return fmt.Sprintf("got %s, want %s %q", found, op, want[:min(len(want), longest)])
}

func holds(op string, got reading, want string) bool {
	switch op {
	case opAbsent:
		return !got.present
	case opPresent:
		return got.present
	}
	if !got.present {
		return op == "!=" || op == "lacks"
	}
	switch op {
	case "==":
		return got.value == want
	case "!=":
		return got.value != want
	case "contains":
		return strings.Contains(got.value, want)
	case "lacks":
		return !strings.Contains(got.value, want)
	case "starts":
		return strings.HasPrefix(got.value, want)
	case "ends":
		return strings.HasSuffix(got.value, want)
	case "matches":
		ok, err := regexp.MatchString(want, got.value)
		return err == nil && ok
	}
	a, errA := strconv.ParseInt(got.value, 10, 64)
	b, errB := strconv.ParseInt(want, 10, 64)
	if errA != nil || errB != nil {
		return false
	}
	switch op {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	case ">=":
		return a >= b
	}
	return false
}

// read asks a subject once.
func (w *world) read(ctx context.Context, e expectation) (reading, error) {
	sub := e.subject
	kind, target, _ := strings.Cut(sub[0], ".")
	switch kind {
	case "upstream":
		if upstreamCounts[sub[1]] {
			return w.readUpstream(target, sub[1]), nil
		}
		r, err := w.arrival(target, sub[1])
		if err == errNotYet {
			return reading{}, nil
		}
		return readArrival(r, sub[2:]), err
	case "count":
		n := 0
		attribute, want := sub[2:len(sub)-1], w.expand(sub[len(sub)-1])
		final := true
		for _, x := range w.group(sub[1]) {
			r := readExchange(x, attribute)
			final = final && r.final
			if r.present && r.value == want {
				n++
			}
		}
		out := number(n)
		out.final = final
		return out, nil
	case "probe":
		probe := w.options.Probes[sub[1]] // play has looked that it is there
		var args []string
		for _, a := range sub[2:] {
			args = append(args, w.expand(a))
		}
		value, err := probe(ctx, w.env(), args)
		if ctx.Err() != nil {
			return reading{value: "no answer of the probe", present: true}, nil
		}
		return is(value), err
	case "metric":
		now, err := sum(ctx, w.gateways)
		if err != nil {
			return reading{}, err
		}
		return number(now[sub[1]] - w.before[sub[1]]), nil
	case "log":
		return w.readLog(e), nil
	case "callouts":
		return number(w.callouts(sub[1:])), nil
	case "gateway":
		var all []string
		for _, g := range w.gateways {
			all = append(all, g.logs()...)
		}
		return is(strings.Join(all, "\n")), nil
	}
	x := w.exchanges[sub[0]]
	if x == nil {
		return reading{}, fmt.Errorf("%s stands for several requests: name one, or use count", sub[0])
	}
	return readExchange(x, sub[1:]), nil
}

func readExchange(x *exchange, attribute []string) reading {
	x.mu.Lock()
	defer x.mu.Unlock()
	var r reading
	switch attribute[0] {
	case "status":
		r = number(x.status)
	case "body":
		r = is(string(x.body))
	case "bytes":
		r = number(len(x.body))
	case "end":
		r = reading{value: x.end, present: x.end != ""}
	case "informed":
		r = is(strings.Trim(fmt.Sprint(x.informed), "[]"))
	case "header":
		r = readHeader(x.header, attribute[1])
	case "trailer":
		r = readHeader(x.trailer, attribute[1])
	case "json":
		r = readJSON(string(x.body), attribute[1])
	}
	r.final = x.end != ""
	return r
}

func readArrival(r upstream.Request, attribute []string) reading {
	switch attribute[0] {
	case "method":
		return is(r.Method)
	case "path":
		return is(r.Path)
	case "proto":
		return is(r.Proto)
	case "body":
		return is(string(r.Body))
	case "bytes":
		return number(len(r.Body))
	case "sent":
		return is(string(r.Sent))
	case "complete":
		return is(strconv.FormatBool(r.Complete))
	case "aborted":
		return is(strconv.FormatBool(r.Aborted))
	case "ended":
		return is(strconv.FormatBool(r.Ended))
	case "malformed":
		return is(strconv.FormatBool(r.Malformed))
	case "header":
		return readHeader(r.Header, attribute[1])
	case "trailer":
		return readHeader(r.Trailer, attribute[1])
	case "json":
		return readJSON(string(r.Body), attribute[1])
	}
	return reading{}
}

// readHeader joins repeated lines with a comma and a blank, as RFC 9110 section 5.3 allows.
func readHeader(h http.Header, name string) reading {
	values := h.Values(name)
	return reading{value: strings.Join(values, ", "), present: len(values) > 0}
}

func readJSON(body, path string) reading {
	r := gjson.Get(body, path)
	return reading{value: r.String(), present: r.Exists()}
}

func (w *world) readUpstream(target, what string) reading {
	u := w.upstreams[target]
	switch what {
	case "requests":
		return number(u.Count())
	case "bytes":
		return number(u.BytesIn())
	}
	return number(len(u.Conns()))
}

// readLog reads access log lines of all gateways. With any, the line that fulfils is chosen.
func (w *world) readLog(e expectation) reading {
	sub := e.subject
	var lines []string
	for _, g := range w.gateways {
		lines = append(lines, g.accessLog(w.name)...)
	}
	if sub[1] == "lines" {
		return number(len(lines))
	}
	if sub[1] != "any" {
		n, err := strconv.Atoi(sub[1])
		if err != nil || n > len(lines) {
			return reading{}
		}
		return readLine(lines[n-1], sub[2:])
	}
	var last reading
	for _, line := range lines {
		last = readLine(line, sub[2:])
		if holds(e.op, last, w.wanted(e)) {
			return last
		}
	}
	return last
}

func readLine(line string, attribute []string) reading {
	code, rest, _ := strings.Cut(line, " ")
	switch attribute[0] {
	case "code":
		return is(code)
	case "text":
		return is(line)
	}
	return readJSON(rest, attribute[1])
}
