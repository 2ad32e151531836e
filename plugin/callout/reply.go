package callout

import (
	"strings"

	"github.com/emmer-proxy/emmer/bucket/script"
)

// Class says what an answer means for the caller.
type Class uint8

const (
	// OK: Values holds the result.
	OK Class = iota + 1
	// NoScript: the store forgot the script and did nothing; send the call once more in full.
	NoScript
	// Unsent: the host refused to send the call, so nothing can have happened at the store.
	Unsent
	// Unavailable: no usable answer. Whether the script ran is unknown.
	Unavailable
	// Misconfigured: the store refused the call for a reason that a retry can't cure.
	Misconfigured

	Classes = 6 // how many there are, with none
)

func (c Class) String() string {
	return [...]string{"none", "ok", "noscript", "unsent", "unavailable", "misconfigured"}[c]
}

// Reply is an answer of the store.
type Reply struct {
	Class  Class
	Values []script.Value
	Error  string // what was said or seen, for the log; not for deciding
}

// maxValues caps the values of one reply: HGETALL of the largest kill table that is read whole.
const maxValues = 4096

// transient holds the first words of Redis errors that say "not now" (facts from Redis 7.0 and
// Valkey 8: cluster moves, replicas, loading, a running script).
var transient = [...]string{"MOVED", "ASK", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY", "BUSY", "NOREPLICAS", "TRYAGAIN"}

// Read classifies an answer. status is the value of :status; empty means that the answer broke
// off, which Envoy reports as a callback without headers.
func Read(status string, body []byte) Reply {
	switch status {
	case "200":
		r := reader{b: body}
		if v, ok := r.result(); ok && r.end() {
			return Reply{Class: OK, Values: v}
		}
		return Reply{Class: Unavailable, Error: "unreadable answer from the store: " + excerpt(body)}
	case "400":
		r := reader{b: body}
		if text, ok := r.fault(); ok && r.end() {
			return redisError(text)
		}
		return Reply{Class: Misconfigured, Error: "status 400 from the store: " + excerpt(body)}
	case "401", "403", "404", "405", "413":
		return Reply{Class: Misconfigured, Error: "status " + status + " from the store: " + excerpt(body)}
	case "":
		return Reply{Class: Unavailable, Error: "the store's answer broke off"}
	}
	return Reply{Class: Unavailable, Error: "status " + status + " from the store: " + excerpt(body)}
}

// ReadPipeline classifies the answer to a pipeline of n calls: one Reply for each, in order. An
// answer to the whole, or one of another length, holds for every call.
func ReadPipeline(status string, body []byte, n int) []Reply {
	out := make([]Reply, 0, n)
	if status == "200" {
		r := reader{b: body}
		ok := r.literal("[")
		for ok && len(out) < n {
			if len(out) > 0 && !r.literal(",") {
				break
			}
			at := r.i
			if v, is := r.result(); is {
				out = append(out, Reply{Class: OK, Values: v})
				continue
			}
			r.i = at
			text, is := r.fault()
			if !is {
				break
			}
			out = append(out, redisError(text))
		}
		if ok && len(out) == n && r.literal("]") && r.end() {
			return out
		}
		out = out[:0]
	}
	whole := Reply{Class: Unavailable, Error: "unreadable answer from the store: " + excerpt(body)}
	if status != "200" {
		whole = Read(status, body)
	}
	for range n {
		out = append(out, whole)
	}
	return out
}

// redisError classifies by the first word, which is all that Redis promises.
func redisError(text string) Reply {
	word, _, _ := strings.Cut(text, " ")
	if word == "NOSCRIPT" {
		return Reply{Class: NoScript, Error: text}
	}
	for _, w := range transient {
		if w == word {
			return Reply{Class: Unavailable, Error: text}
		}
	}
	return Reply{Class: Misconfigured, Error: text}
}

func excerpt(b []byte) string {
	if len(b) > 200 {
		b = b[:200]
	}
	return string(b)
}

// reader walks a small JSON text without recursion.
type reader struct {
	b []byte
	i int
}

func (r *reader) space() {
	for r.i < len(r.b) && (r.b[r.i] == ' ' || r.b[r.i] == '\n' || r.b[r.i] == '\r' || r.b[r.i] == '\t') {
		r.i++
	}
}

func (r *reader) end() bool {
	r.space()
	return r.i == len(r.b)
}

func (r *reader) literal(s string) bool {
	r.space()
	if len(r.b)-r.i < len(s) || string(r.b[r.i:r.i+len(s)]) != s {
		return false
	}
	r.i += len(s)
	return true
}

// result reads {"result":V} where V is a scalar or a flat array of scalars. Anything else, nesting
// included, is not an answer of ours.
func (r *reader) result() ([]script.Value, bool) {
	if !r.literal(`{`) || !r.literal(`"result"`) || !r.literal(`:`) {
		return nil, false
	}
	var out []script.Value
	if r.literal("[") {
		for !r.literal("]") {
			if len(out) > 0 && !r.literal(",") {
				return nil, false
			}
			v, ok := r.scalar()
			if !ok || len(out) == maxValues {
				return nil, false
			}
			if out == nil {
				out = make([]script.Value, 0, 16) // a reserve with ten limits
			}
			out = append(out, v)
		}
	} else {
		v, ok := r.scalar()
		if !ok {
			return nil, false
		}
		out = append(out, v)
	}
	return out, r.literal("}")
}

// fault reads {"error":"…"}.
func (r *reader) fault() (string, bool) {
	if !r.literal(`{`) || !r.literal(`"error"`) || !r.literal(`:`) {
		return "", false
	}
	s, ok := r.text()
	return s, ok && r.literal("}")
}

func (r *reader) scalar() (script.Value, bool) {
	r.space()
	if r.i == len(r.b) {
		return script.Value{}, false
	}
	if r.b[r.i] == '"' {
		s, ok := r.text()
		return script.Value{Text: s}, ok
	}
	if r.literal("null") {
		return script.Value{}, true
	}
	neg := r.literal("-")
	start, n := r.i, int64(0)
	for r.i < len(r.b) && r.b[r.i] >= '0' && r.b[r.i] <= '9' {
		if n > (1<<63-1-9)/10 {
			return script.Value{}, false
		}
		n = n*10 + int64(r.b[r.i]-'0')
		r.i++
	}
	if r.i == start {
		return script.Value{}, false
	}
	if neg {
		n = -n
	}
	return script.Value{Int: n, IsInt: true}, true
}

// text reads a JSON string. Escapes above ASCII become '?': nothing that decides is outside ASCII.
func (r *reader) text() (string, bool) {
	if !r.literal(`"`) {
		return "", false
	}
	start := r.i
	for r.i < len(r.b) && r.b[r.i] != '"' && r.b[r.i] != '\\' {
		r.i++
	}
	if r.i < len(r.b) && r.b[r.i] == '"' {
		s := string(r.b[start:r.i])
		r.i++
		return s, true
	}
	out := append([]byte(nil), r.b[start:r.i]...)
	for r.i < len(r.b) {
		c := r.b[r.i]
		r.i++
		switch {
		case c == '"':
			return string(out), true
		case c != '\\':
			out = append(out, c)
			continue
		case r.i == len(r.b):
			return "", false
		}
		c = r.b[r.i]
		r.i++
		switch c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			v, ok := r.hex4()
			if !ok {
				return "", false
			}
			if v < 0x80 {
				out = append(out, byte(v))
			} else {
				out = append(out, '?')
			}
		default:
			return "", false
		}
	}
	return "", false
}

func (r *reader) hex4() (v int, ok bool) {
	if len(r.b)-r.i < 4 {
		return 0, false
	}
	for _, c := range r.b[r.i : r.i+4] {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | int(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | int(c-'a'+10)
		case c >= 'A' && c <= 'F':
			v = v<<4 | int(c-'A'+10)
		default:
			return 0, false
		}
	}
	r.i += 4
	return v, true
}
