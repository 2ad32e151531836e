package hostsim

import (
	"fmt"
	"strconv"
	"strings"
)

// logPart is a literal or a command of an access log format.
type logPart struct {
	literal, command, arg string
}

// parseFormat splits a format; an unknown command is a fault.
func parseFormat(format string) ([]logPart, error) {
	var parts []logPart
	for format != "" {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			return append(parts, logPart{literal: format}), nil
		}
		if i > 0 {
			parts = append(parts, logPart{literal: format[:i]})
		}
		format = format[i+1:]
		j := strings.IndexByte(format, '%')
		if j < 0 {
			return nil, fmt.Errorf("access log: unpaired %%")
		}
		token := format[:j]
		format = format[j+1:]
		if token == "" {
			parts = append(parts, logPart{literal: "%"})
			continue
		}
		command, arg := token, ""
		if k := strings.IndexByte(token, '('); k >= 0 && strings.HasSuffix(token, ")") {
			command, arg = token[:k], token[k+1:len(token)-1]
		}
		switch command {
		case "REQ", "RESP", "FILTER_STATE":
			if arg == "" {
				return nil, fmt.Errorf("access log: %%%s%% needs a name", command)
			}
		case "RESPONSE_CODE", "RESPONSE_CODE_DETAILS", "RESPONSE_FLAGS", "PROTOCOL", "BYTES_SENT", "BYTES_RECEIVED",
			"UPSTREAM_WIRE_BYTES_SENT", "UPSTREAM_CLUSTER", "UPSTREAM_HOST", "DURATION":
		default:
			return nil, fmt.Errorf("access log: unknown command %%%s%%", token)
		}
		parts = append(parts, logPart{command: command, arg: arg})
	}
	return parts, nil
}

// log writes the line of an ended stream.
func (l *listener) log(s *stream) {
	if len(l.format) == 0 {
		return
	}
	var b strings.Builder
	for _, p := range l.format {
		if p.command == "" {
			b.WriteString(p.literal)
			continue
		}
		text, present := s.logValue(p)
		if !present {
			text = "-" // what is there but empty prints nothing
		}
		b.WriteString(text)
	}
	l.mu.Lock()
	l.lines = append(l.lines, strings.TrimSuffix(b.String(), "\n"))
	l.mu.Unlock()
}

func (s *stream) logValue(p logPart) (text string, present bool) {
	number := func(n int64) (string, bool) { return strconv.FormatInt(n, 10), true }
	some := func(text string) (string, bool) { return text, text != "" }
	switch p.command {
	case "REQ":
		return alternative(s.paths[request].head, p.arg)
	case "RESP":
		return alternative(s.paths[response].head, p.arg)
	case "FILTER_STATE":
		name, form, _ := strings.Cut(p.arg, ":")
		v, ok := s.state[name]
		if ok && form != "PLAIN" {
			return strconv.Quote(string(v)), true
		}
		return string(v), ok
	case "RESPONSE_CODE":
		return number(int64(s.code))
	case "RESPONSE_CODE_DETAILS":
		return s.details, s.explained
	case "RESPONSE_FLAGS":
		var names []string
		for _, f := range flagLetters {
			if s.flags&f.bit != 0 {
				names = append(names, f.name)
			}
		}
		return some(strings.Join(names, ","))
	case "PROTOCOL":
		return some(s.protocol)
	case "BYTES_SENT":
		return number(s.sent)
	case "BYTES_RECEIVED":
		return number(s.received)
	case "UPSTREAM_WIRE_BYTES_SENT":
		return number(s.router.wireBytes())
	case "UPSTREAM_CLUSTER":
		return some(s.cluster)
	case "UPSTREAM_HOST":
		return some(s.upstream)
	case "DURATION":
		return number(s.duration.Milliseconds())
	}
	return "", false
}

// alternative is the X?Y form: X, or Y where X is absent.
func alternative(f *fields, arg string) (string, bool) {
	first, second, _ := strings.Cut(arg, "?")
	if v, ok := f.get(first); ok || second == "" {
		return v, ok
	}
	return f.get(second)
}
