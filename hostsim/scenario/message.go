package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/emmer-proxy/emmer/hostsim/upstream"
)

// maxBody caps a request body that a file describes, in bytes.
const maxBody = 128 << 20

// message is a request as a scenario writes it.
type message struct {
	method, path string
	headers      [][2]string // as written: order, case and repetitions are kept
	trailers     [][2]string
	body         []byte
	codings      []string // of the body, in the order in which they are put on
	chunked      bool
	raw          bool // body is the whole request, to be sent as it is
}

// parseMessage reads a request file: a request line, headers, an empty line and the body. Lines of
// the head that begin with @ describe what plain text can't.
func parseMessage(path string, line int, data []byte, files map[string][]byte) (*message, error) {
	m := &message{}
	head, body, hasBody := strings.Cut(string(data), "\n\n")
	if !hasBody {
		head = strings.TrimSuffix(head, "\n")
	}
	var parts []byte
	hasParts := false
	for i, text := range strings.Split(head, "\n") {
		fault := func(format string, args ...any) error {
			return fmt.Errorf("%s:%d: %s", path, line+i, fmt.Sprintf(format, args...))
		}
		switch {
		case i == 0 && text == "@raw":
			m.raw = true
		case i == 0:
			words := strings.Fields(text)
			if len(words) != 2 {
				return nil, fault("want `METHOD path`, found %q", text)
			}
			m.method, m.path = words[0], words[1]
		case strings.HasPrefix(text, "@"):
			verb, rest, _ := strings.Cut(text, " ")
			switch verb {
			case "@trailer":
				name, value, ok := strings.Cut(rest, ":")
				if !ok {
					return nil, fault("@trailer: want `name: value`, found %q", rest)
				}
				m.trailers = append(m.trailers, [2]string{strings.TrimSpace(name), strings.TrimSpace(value)})
				m.chunked = true
			case "@chunked":
				m.chunked = true
			case "@gzip", "@deflate":
				m.codings = append(m.codings, verb[1:])
			default:
				part, err := bodyPart(verb, rest, files)
				if err != nil {
					return nil, fault("%s: %v", verb, err)
				}
				parts = append(parts, part...)
				hasParts = true
				if len(parts) > maxBody {
					return nil, fault("body above %d bytes", maxBody)
				}
			}
		default:
			name, value, ok := strings.Cut(text, ":")
			if !ok {
				return nil, fault("want `name: value`, found %q", text)
			}
			m.headers = append(m.headers, [2]string{name, strings.TrimPrefix(value, " ")})
			if strings.EqualFold(name, "transfer-encoding") {
				m.chunked = true
			}
		}
	}
	m.body = append(parts, withoutLastNewline([]byte(body))...)
	if m.raw && !hasParts && !hasBody {
		return nil, fmt.Errorf("%s:%d: @raw without bytes", path, line)
	}
	return m, nil
}

func bodyPart(verb, rest string, files map[string][]byte) ([]byte, error) {
	switch verb {
	case "@text":
		return upstream.Unquote(rest)
	case "@file":
		b, ok := files[rest]
		if !ok {
			return nil, fmt.Errorf("no file %q in this scenario", rest)
		}
		return b, nil
	case "@repeat":
		count, text, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(count)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("want a number, found %q", count)
		}
		b, err := upstream.Unquote(text)
		if err != nil {
			return nil, err
		}
		if len(b) > 0 && n > maxBody/len(b) {
			return nil, fmt.Errorf("above %d bytes", maxBody)
		}
		return []byte(strings.Repeat(string(b), n)), nil
	}
	return nil, fmt.Errorf("unknown, want @raw, @chunked, @trailer, @gzip, @deflate, @text, @file or @repeat")
}

func (m *message) has(name string) bool {
	return slices.ContainsFunc(m.headers, func(h [2]string) bool { return strings.EqualFold(h[0], name) })
}

// expand returns the message with its variables replaced in path, headers, trailers and body.
func (m *message) expand(vars func(string) string) *message {
	out := *m
	out.path = vars(m.path)
	out.headers = expandPairs(m.headers, vars)
	out.trailers = expandPairs(m.trailers, vars)
	out.body = []byte(vars(string(m.body)))
	for _, c := range m.codings {
		out.body = upstream.Encode(c, out.body)
	}
	return &out
}

func expandPairs(in [][2]string, vars func(string) string) [][2]string {
	var out [][2]string
	for _, h := range in {
		out = append(out, [2]string{h[0], vars(h[1])})
	}
	return out
}

// head is the request line and headers as HTTP/1.1 has them on the wire. What a server needs and the
// file doesn't say is added: host, and the framing of the body.
func (m *message) head(host string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", m.method, m.path)
	if !m.has("host") {
		fmt.Fprintf(&b, "host: %s\r\n", host)
	}
	for _, h := range m.headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	switch {
	case m.chunked && !m.has("transfer-encoding"):
		b.WriteString("transfer-encoding: chunked\r\n")
	case !m.chunked && !m.has("content-length") && (len(m.body) > 0 || m.method == "POST" || m.method == "PUT"):
		fmt.Fprintf(&b, "content-length: %d\r\n", len(m.body))
	}
	b.WriteString("\r\n")
	return []byte(b.String())
}

// frame is a piece of the body as it goes on an HTTP/1.1 wire.
func (m *message) frame(piece []byte) []byte {
	if !m.chunked || len(piece) == 0 {
		return piece
	}
	return fmt.Appendf(nil, "%x\r\n%s\r\n", len(piece), piece)
}

// last ends the body on an HTTP/1.1 wire.
func (m *message) last() []byte {
	if !m.chunked {
		return nil
	}
	out := []byte("0\r\n")
	for _, t := range m.trailers {
		out = fmt.Appendf(out, "%s: %s\r\n", t[0], t[1])
	}
	return append(out, "\r\n"...)
}
