package config

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

const (
	maxDocument = 1 << 20 // bytes
	maxDepth    = 16      // nesting; the deepest field that exists is at 7
	maxShown    = 60      // bytes of a value that a fault repeats
)

type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindList
	kindObject
)

// node is one value of the document, with its path and its place in it.
type node struct {
	path   string
	key    string // within an object
	kind   kind
	raw    string // as written
	text   string // of a string: unescaped, variables put in
	kids   []*node
	place  int
	secret bool // its text is never shown
	broken bool // a variable in it is missing, which was reported
}

// found says what stands at n. Only what was written is shown, never the value of a variable.
func (n *node) found() string {
	switch n.kind {
	case kindObject:
		return "an object"
	case kindList:
		return "a list"
	case kindString, kindNumber:
		if n.secret {
			return "a value that is not shown"
		}
	}
	if len(n.raw) <= maxShown {
		return n.raw
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(n.raw[cut]) {
		cut--
	}
	return n.raw[:cut] + "..."
}

// join appends a key to a path, quoted where it would be ambiguous.
func join(path, key string) string {
	if !plain(key) {
		return path + "[" + strconv.QuoteToASCII(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func plain(key string) bool {
	for i := 0; i < len(key); i++ {
		if c := key[i]; !letter(c) && !digit(c) && c != '_' && c != '-' {
			return false
		}
	}
	return key != ""
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func digit(c byte) bool  { return '0' <= c && c <= '9' }

// document reads the whole text into nodes, or reports why it can't be read.
func (r *reader) document(doc []byte) *node {
	root := &node{path: "config", place: r.next()}
	switch {
	case len(doc) > maxDocument:
		r.faultFound(root, strconv.Itoa(len(doc))+" bytes", "at most "+strconv.Itoa(maxDocument))
		return nil
	case !utf8.Valid(doc):
		r.faultFound(root, "bytes that are not UTF-8", "JSON in UTF-8")
		return nil
	case !shallow(doc):
		r.faultFound(root, "values nested deeper than "+strconv.Itoa(maxDepth), "at most that")
		return nil
	case !gjson.ValidBytes(doc):
		r.faultFound(root, "text that is not JSON", "a JSON object")
		return nil
	}
	root.path = ""
	r.fill(root, gjson.ParseBytes(doc))
	if root.kind != kindObject {
		r.faultFound(&node{path: "config"}, root.found(), "a JSON object")
		return nil
	}
	return root
}

func (r *reader) next() int {
	r.places++
	return r.places
}

// fill makes n the given value. It calls itself once for each level; shallow has bounded those.
func (r *reader) fill(n *node, v gjson.Result) {
	n.raw = v.Raw
	switch {
	case v.IsObject():
		n.kind = kindObject
		v.ForEach(func(key, value gjson.Result) bool {
			kid := &node{path: join(n.path, key.Str), key: key.Str, place: r.next()}
			again := n.has(key.Str)
			r.fill(kid, value)
			if again {
				r.faultFound(kid, "it a second time", "it once")
				return true
			}
			n.kids = append(n.kids, kid)
			return true
		})
	case v.IsArray():
		n.kind = kindList
		v.ForEach(func(_, value gjson.Result) bool {
			kid := &node{path: n.path + "[" + strconv.Itoa(len(n.kids)) + "]", place: r.next()}
			n.kids = append(n.kids, kid)
			r.fill(kid, value)
			return true
		})
	case v.Type == gjson.String:
		n.kind = kindString
		n.text = r.substitute(n, v.Str)
	case v.Type == gjson.Number:
		n.kind = kindNumber
	case v.Type == gjson.Null:
		n.kind = kindNull
	default:
		n.kind = kindBool
	}
}

func (n *node) has(key string) bool { return n.get(key) != nil }

func (n *node) get(key string) *node {
	for _, kid := range n.kids {
		if kid.key == key {
			return kid
		}
	}
	return nil
}

// substitute puts variables of the environment in the place of ${NAME}. $${ stands for ${ itself.
func (r *reader) substitute(n *node, s string) string {
	if !strings.Contains(s, "${") {
		return s
	}
	var out strings.Builder
	for {
		at := strings.Index(s, "${")
		if at < 0 {
			out.WriteString(s)
			return out.String()
		}
		if at > 0 && s[at-1] == '$' {
			out.WriteString(s[:at-1])
			out.WriteString("${")
			s = s[at+2:]
			continue
		}
		out.WriteString(s[:at])
		name, rest, closed := strings.Cut(s[at+2:], "}")
		if !closed || !variable(name) {
			r.faultFound(n, "a ${ that begins no ${NAME}", "${NAME} for a variable, or $${ for the text ${")
			n.broken = true
			return ""
		}
		value, ok := r.env(name)
		if !ok {
			r.faultFound(n, "${"+name+"}, which is not set", "that variable in the environment of the VM")
			n.broken = true
			return ""
		}
		out.WriteString(value)
		s = rest
	}
}

func variable(name string) bool {
	return name != "" && !digit(name[0]) && plain(name) && !strings.Contains(name, "-")
}

// shallow says that nothing in doc is nested deeper than maxDepth. It doesn't matter what it says
// of text that isn't JSON, as long as it ends.
func shallow(doc []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return false
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return true
}
