package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

// Head is the head of a request. Path includes the query. Claims are parallel to the
// configuration's.
type Head struct {
	Method, Path string
	Headers      [][2]string
	Claims       []Claim
}

// Claim is a verified claim; OK is false where the token doesn't have it, or no token was verified.
type Claim struct {
	Value string
	OK    bool
}

// Caller is who calls: a value for each identity of the configuration, empty where there is none.
type Caller struct {
	Values []string
	Claims []Claim // those of Head
	Body   dialect.RequestHead
}

func (c Caller) value(i int) string {
	if i < 0 || i >= len(c.Values) {
		return ""
	}
	return c.Values[i]
}

// maxValue is the longest value that is kept as it is, in bytes. Longer ones are replaced by a
// hash, so that a client can't make keys of any length.
const maxValue = 256

// Identify says who calls. Of each identity's sources the first that yields a value wins. What
// could be read in two ways is refused rather than guessed at: a header or parameter that comes
// with two different values, and credentials that don't have the scheme that strip names.
func Identify(c *config.Compiled, h Head) (Caller, *dialect.Refusal) {
	who := Caller{Values: make([]string, len(c.Identities)), Claims: h.Claims}
	for i := range c.Identities {
		v, refusal := identify(&c.Identities[i], h)
		if refusal != nil {
			return who, refusal
		}
		if len(v) > maxValue {
			v = "sha256:" + digest(v)
		}
		who.Values[i] = v
	}
	who.Body.Path = h.Path
	for _, kv := range h.Headers {
		switch kv[0] {
		case "content-type":
			who.Body.ContentType = kv[1]
		case "authorization":
			who.Body.Signed = who.Body.Signed || strings.HasPrefix(kv[1], "AWS4-")
		}
	}
	return who, nil
}

func identify(id *config.Identity, h Head) (string, *dialect.Refusal) {
	for i := range id.Sources {
		v, refusal := yield(&id.Sources[i], h)
		if refusal != nil {
			return "", refusal
		}
		if v == "" {
			continue
		}
		if allowed(id, v, h) {
			return v, nil
		}
		if id.Default == "" {
			return "", notAllowed(id.Name)
		}
		return id.Default, nil
	}
	if id.Default == "" && id.Missing == config.Deny {
		return "", missing(id)
	}
	return id.Default, nil
}

func allowed(id *config.Identity, v string, h Head) bool {
	if len(id.OneOf) > 0 {
		found := false
		for _, o := range id.OneOf {
			found = found || o == v
		}
		if !found {
			return false
		}
	}
	for _, g := range id.Guards {
		if g.Value != v {
			continue
		}
		if claim := h.claim(g.Claim); !claim.OK || claim.Value != g.Equals {
			return false
		}
	}
	return true
}

// claim is the claim of a source or guard, which count from one.
func (h Head) claim(n int) Claim { return numbered(h.Claims, n) }

func numbered(claims []Claim, n int) Claim {
	if n < 1 || n > len(claims) {
		return Claim{}
	}
	return claims[n-1]
}

// yield is the value of one source, empty if it has none.
func yield(s *config.Source, h Head) (v string, refusal *dialect.Refusal) {
	switch {
	case s.Value != "":
		return s.Value, nil
	case s.Header != "":
		v, refusal = fromHeader(s, h)
	case s.Query != "":
		v, refusal = fromQuery(s.Query, h.Path)
	default:
		if claim := h.claim(s.Claim); claim.OK {
			v = claim.Value
		}
	}
	if v != "" && s.Hash {
		v = digest(v)
	}
	return v, refusal
}

// digest is the hex of the first 16 bytes of the SHA-256: enough that nobody finds two values with
// one digest by accident, and half as long in a key.
func digest(v string) string {
	sum := sha256.Sum256([]byte(v))
	return hex.EncodeToString(sum[:16])
}

// fromHeader reads a header that may come on several lines. A filter that appends instead of
// replacing leaves "theirs,ours" on one line or two; both must be the same to count as one value.
func fromHeader(s *config.Source, h Head) (string, *dialect.Refusal) {
	value := ""
	for _, header := range h.Headers {
		if !strings.EqualFold(header[0], s.Header) {
			continue
		}
		rest := header[1]
		for more := true; more; {
			var part string
			switch {
			case s.Strip != "":
				var ok bool
				if part, ok = credentials(rest, s.Strip); !ok {
					return "", malformed(s.Header, s.Strip)
				}
				more = false
			case s.Header == "authorization": // some schemes have commas of their own
				part, more = trim(rest), false
			default:
				part, rest, more = strings.Cut(rest, ",")
				part = trim(part)
			}
			if part == "" || part == value {
				continue
			}
			if value != "" {
				return "", conflict("header " + s.Header)
			}
			value = part
		}
	}
	return value, nil
}

// credentials takes the scheme off "Bearer K": in any case, with any white space around. What is
// left is one word, because tokens have neither spaces nor commas (RFC 9110 section 11.2). A line
// without any text has no credentials, which is fine; anything else is not ok.
func credentials(line, scheme string) (string, bool) {
	line = trim(line)
	if line == "" {
		return "", true
	}
	at := strings.IndexAny(line, " \t")
	if at < 0 || !strings.EqualFold(line[:at], scheme) {
		return "", false
	}
	word := trim(line[at:])
	return word, word != "" && !strings.ContainsAny(word, " \t,")
}

func trim(s string) string { return strings.Trim(s, " \t") }

// fromQuery reads a parameter of the query, decoded as forms are.
func fromQuery(name, path string) (string, *dialect.Refusal) {
	_, query, ok := strings.Cut(path, "?")
	query, _, _ = strings.Cut(query, "#")
	value := ""
	for ok && query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		key, v, _ := strings.Cut(pair, "=")
		if decoded(key) != name {
			continue
		}
		v = decoded(v)
		if v == "" || v == value {
			continue
		}
		if value != "" {
			return "", conflict("query parameter " + name)
		}
		value = v
	}
	return value, nil
}

// decoded undoes percent-encoding and + for space. A % that begins no escape stays.
func decoded(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '+':
			out = append(out, ' ')
		case c == '%' && i+2 < len(s) && nibble(s[i+1]) < 16 && nibble(s[i+2]) < 16:
			out = append(out, nibble(s[i+1])<<4|nibble(s[i+2]))
			i += 2
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

func nibble(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 16
}
