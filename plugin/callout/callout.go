// Package callout turns script calls into HTTP requests to the store and its answers into classes
// that the core can act on.
//
// It knows nothing of limits or of the host: bytes in, bytes out. Its caller sends EVALSHA first,
// repeats a call as EVAL once if the answer is NoScript, and repeats nothing else blindly.
package callout

import (
	"strconv"

	"github.com/emmer-proxy/emmer/bucket/script"
)

// Request is one HTTP call. Headers has the pseudo-headers that a proxy-wasm host asks for.
type Request struct {
	Headers [][2]string
	Body    []byte
}

// Upstash speaks the Upstash REST dialect: POST of a JSON array, answered by {"result":…} or
// {"error":…}. emmer-bridge speaks it, and so does hosted Upstash.
type Upstash struct {
	Authority string // the :authority, which a hashing cluster balances by
	Token     string
}

// Script is the call as EVALSHA, or as EVAL with the script's whole text if full.
func (u Upstash) Script(c script.Call, full bool) Request {
	verb, what := "EVALSHA", c.Script.SHA
	if full {
		verb, what = "EVAL", c.Script.Text
	}
	n := len(what) + 64
	for _, k := range c.Keys {
		n += len(k) + 3
	}
	for _, a := range c.Args {
		n += len(a) + 3
	}
	b := make([]byte, 0, n)
	b = appendString(append(b, '['), verb)
	b = appendString(append(b, ','), what)
	b = appendString(append(b, ','), strconv.Itoa(len(c.Keys)))
	for _, k := range c.Keys {
		b = appendString(append(b, ','), k)
	}
	for _, a := range c.Args {
		b = appendString(append(b, ','), a)
	}
	return u.request(append(b, ']'))
}

// Command is one plain Redis command.
func (u Upstash) Command(words ...string) Request {
	b := []byte{'['}
	for i, w := range words {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, w)
	}
	return u.request(append(b, ']'))
}

func (u Upstash) request(body []byte) Request {
	return Request{
		Headers: [][2]string{
			{":method", "POST"},
			{":path", "/"},
			{":authority", u.Authority},
			{"content-type", "application/json"},
			{"authorization", "Bearer " + u.Token},
		},
		Body: body,
	}
}

// appendString appends s as a JSON string. Bytes that are not UTF-8 pass as they are: keys and
// arguments are made of ASCII by the script room.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c < 0x20:
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
