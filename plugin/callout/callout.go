// Package callout turns script calls into HTTP requests to the store and its answers into classes
// that the core can act on.
//
// It knows nothing of limits or of the host: bytes in, bytes out. Its caller sends EVALSHA first,
// repeats a call as EVAL once if the answer is NoScript, and repeats nothing else blindly.
package callout

import (
	"slices"
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
	return u.request("/", appendCall(make([]byte, 0, size(c, full)), c, full))
}

// Pipeline is several calls in one request, done in order; ReadPipeline reads the answer. With full
// the first call of each script in each shard is EVAL, after which the shard's server knows it.
func (u Upstash) Pipeline(calls []script.Call, full bool) Request {
	n := 2
	for _, c := range calls {
		n += size(c, false) + 1
	}
	b := append(make([]byte, 0, n), '[')
	type at struct {
		script *script.Script
		shard  string
	}
	var sent []at
	for i, c := range calls {
		if i > 0 {
			b = append(b, ',')
		}
		where := at{script: c.Script}
		if len(c.Keys) > 0 {
			where.shard = c.Keys[0] // its kill flags, which every script names first
		}
		whole := full && !slices.Contains(sent, where)
		if whole {
			sent = append(sent, where)
		}
		b = appendCall(b, c, whole)
	}
	return u.request("/pipeline", append(b, ']'))
}

func size(c script.Call, full bool) int {
	n := 128
	if full {
		n += len(c.Script.Text) + len(c.Script.Text)/8
	}
	for _, k := range c.Keys {
		n += len(k) + 3
	}
	for _, a := range c.Args {
		n += len(a) + 3
	}
	return n
}

func appendCall(b []byte, c script.Call, full bool) []byte {
	verb, what := "EVALSHA", c.Script.SHA
	if full {
		verb, what = "EVAL", c.Script.Text
	}
	b = appendString(append(b, '['), verb)
	b = appendString(append(b, ','), what)
	b = append(b, `,"`...)
	b = strconv.AppendInt(b, int64(len(c.Keys)), 10)
	b = append(b, '"')
	for _, k := range c.Keys { // the script room escapes all that JSON would
		b = append(append(append(b, `,"`...), k...), '"')
	}
	for _, a := range c.Args {
		b = appendString(append(b, ','), a)
	}
	return append(b, ']')
}

// Command is one plain Redis command.
func (u Upstash) Command(words ...string) Request {
	return u.request("/", appendCommand(nil, words))
}

// Commands is several plain Redis commands in one request; ReadPipeline reads the answer.
func (u Upstash) Commands(list [][]string) Request {
	b := []byte{'['}
	for i, words := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendCommand(b, words)
	}
	return u.request("/pipeline", append(b, ']'))
}

func appendCommand(b []byte, words []string) []byte {
	b = append(b, '[')
	for i, w := range words {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, w)
	}
	return append(b, ']')
}

func (u Upstash) request(path string, body []byte) Request {
	return Request{
		Headers: [][2]string{
			{":method", "POST"},
			{":path", path},
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
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		default:
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, s[from:]...), '"')
}
