package config

import (
	"strings"

	"github.com/emmer-proxy/emmer/bucket"
)

// notYet is the fault of a setting that is designed but that this version does nothing about.
const notYet = "it left out, because it is not carried out by this version"

// object checks that n is an object with only known fields; later ones are known by name, but
// refused, so that nothing is silently not enforced. Both are lists with spaces between.
func (r *reader) object(n *node, known, later string) bool {
	if n.kind != kindObject {
		r.fault(n, "an object with "+listed(known))
		return false
	}
	for _, kid := range n.kids {
		switch {
		case within(known, kid.key):
		case within(later, kid.key):
			r.faultFound(kid, "a setting of a later version", notYet)
		default:
			r.faultFound(kid, "an unknown field", "one of "+listed(known))
		}
	}
	return true
}

// table checks that n is an object whose keys are the operator's own names.
func (r *reader) table(n *node, what string, fit func(string) bool, shape string) bool {
	if n.kind != kindObject {
		r.fault(n, "an object of "+what)
		return false
	}
	for _, kid := range n.kids {
		if !fit(kid.key) {
			r.faultFound(kid, "a name that doesn't fit", shape)
		}
	}
	return true
}

func listed(words string) string { return strings.Join(strings.Fields(words), ", ") }

func within(words, word string) bool {
	for _, w := range strings.Fields(words) {
		if w == word {
			return true
		}
	}
	return false
}

// text reads a string that isn't empty. A nil node answers with def.
func (r *reader) text(n *node, def, want string) string {
	if n == nil {
		return def
	}
	if n.kind != kindString || n.text == "" || control(n.text) {
		r.fault(n, want)
		return def
	}
	return n.text
}

func control(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] == 0x7f {
			return true
		}
	}
	return false
}

// word reads one of a few words, and answers with its index; a nil node answers 0.
func (r *reader) word(n *node, words, later string) int {
	if n == nil {
		return 0
	}
	if n.kind == kindString {
		for i, w := range strings.Fields(words) {
			if w == n.text {
				return i
			}
		}
		if within(later, n.text) {
			r.fault(n, "one of "+listed(words)+", because it is not carried out by this version")
			return 0
		}
	}
	r.fault(n, either(words))
	return 0
}

func either(words string) string {
	if w := strings.Fields(words); len(w) == 1 {
		return w[0]
	}
	return "one of " + listed(words)
}

func (r *reader) flag(n *node, def bool) bool {
	if n == nil {
		return def
	}
	if n.kind != kindBool {
		r.fault(n, "true or false")
		return def
	}
	return n.raw == "true"
}

// texts reads a list of strings, none of them empty and none twice.
func (r *reader) texts(n *node, want string) []string {
	if n.kind != kindList || len(n.kids) == 0 {
		r.fault(n, want)
		return nil
	}
	var out []string
	for _, kid := range n.kids {
		s := r.text(kid, "", "a string")
		if s == "" {
			continue
		}
		if has(out, s) {
			r.faultFound(kid, kid.found()+" a second time", "it once")
			continue
		}
		out = append(out, s)
	}
	return out
}

func has(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// duration reads a time such as 250ms between least and most. A nil node answers def.
func (r *reader) duration(n *node, def, least, most bucket.Millis) bucket.Millis {
	if n == nil {
		return def
	}
	d, ok := parseDuration(n.text)
	if n.kind != kindString || !ok || d < least || d > most {
		r.fault(n, "a time from "+showDuration(least)+" to "+showDuration(most)+", such as "+showDuration(def))
		return def
	}
	return d
}

// size reads a number of bytes such as 1MiB.
func (r *reader) size(n *node, def, least, most int) int {
	if n == nil {
		return def
	}
	b, ok := parseSize(n.text)
	if n.kind != kindString || !ok || b < int64(least) || b > int64(most) {
		r.fault(n, "a size from "+showSize(least)+" to "+showSize(most)+", such as "+showSize(def))
		return def
	}
	return int(b)
}

// count reads a whole number from least to most, as a JSON number or a decimal string.
func (r *reader) count(n *node, def, least, most int64) int64 {
	if n == nil {
		return def
	}
	written := n.raw
	if n.kind == kindString {
		written = n.text
	}
	minus := least < 0 && strings.HasPrefix(written, "-")
	if minus {
		written = written[1:]
	}
	v, ok := parseWhole(written)
	if minus {
		v = -v
	}
	if (n.kind != kindNumber && n.kind != kindString) || !ok || v < least || v > most {
		r.fault(n, "a whole number from "+decimal(least)+" to "+decimal(most))
		return def
	}
	return v
}
