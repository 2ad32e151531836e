package bridge

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"sort"
	"strconv"
	"unicode/utf8"
)

// maxReplyDepth bounds the nesting of a reply, which a script may choose.
const maxReplyDepth = 32

var errReplyDepth = errors.New("reply is nested too deep")

// encoder writes replies as JSON. With b64 every string but the status OK is base64, as Upstash
// does on the header Upstash-Encoding: base64.
type encoder struct {
	b64 bool
}

// result appends {"result":v}.
func (e encoder) result(dst []byte, v any) ([]byte, error) {
	dst = append(dst, `{"result":`...)
	dst, err := e.value(dst, v, 0)
	if err != nil {
		return nil, err
	}
	return append(dst, '}'), nil
}

// value appends what go-redis returns for a reply: integers, strings, null, arrays, an error inside
// an array as {"error":...}. RESP3's own types come out as RESP2 would have sent them.
func (e encoder) value(dst []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case string:
		return e.text(dst, v), nil
	case []any:
		if depth >= maxReplyDepth {
			return nil, errReplyDepth
		}
		dst = append(dst, '[')
		for i, x := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = e.value(dst, x, depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case error:
		return appendError(dst, v.Error()), nil
	case bool:
		if v {
			return append(dst, '1'), nil
		}
		return append(dst, '0'), nil
	case float64:
		return e.text(dst, strconv.FormatFloat(v, 'g', -1, 64)), nil
	case *big.Int:
		return e.text(dst, v.String()), nil
	case map[any]any:
		return e.value(dst, flat(v), depth)
	}
	return nil, fmt.Errorf("reply has the unexpected type %T", v)
}

// flat is a RESP3 map as RESP2 sends it, ordered by the text of its keys.
func flat(m map[any]any) []any {
	keys := make([]any, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return fmt.Sprint(keys[i]) < fmt.Sprint(keys[j]) })
	list := make([]any, 0, 2*len(m))
	for _, k := range keys {
		list = append(list, k, m[k])
	}
	return list
}

func (e encoder) text(dst []byte, s string) []byte {
	if e.b64 && s != "OK" {
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, []byte(s))
		return append(dst, '"')
	}
	return appendString(dst, s)
}

func appendError(dst []byte, text string) []byte {
	dst = append(dst, `{"error":`...)
	return append(appendString(dst, text), '}')
}

// appendString appends s as a JSON string. A byte that is not UTF-8 becomes U+FFFD, so that one
// binary value can neither break the document nor vanish from its array.
func appendString(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[from:i]...), "\uFFFD"...)
				from = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' && c != 0x7f {
			i++
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}
