package script

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/emmer-proxy/emmer/bucket"
)

// Layout says under which names a store keeps its keys.
type Layout struct {
	Namespace string
	Tag       string // hash tag that puts all keys of a call into one slot; empty is "g"
	// WithOverrides makes every call look for overrides of its limits: one HMGET, some 2 us in Redis. All
	// that use a store must agree on it: a bucket's rate is the one that the last call brought.
	WithOverrides bool
}

// Of is the layout of an org's shard, where keys are divided by orgs: with a tag of its own. What
// belongs to no org lives under the tag g.
func (l Layout) Of(org string) Layout {
	l.Tag = "g"
	if org != "" {
		l.Tag = "o." + org
	}
	return l
}

const (
	longestPart = 64 // bytes of an escaped part; a longer one is hashed
	hashedBytes = 24 // of SHA-256: nobody finds two texts with the same 192 bits
)

// part makes any text safe inside a key, and different texts different: everything outside
// [A-Za-z0-9_.-] becomes %XX, and what is too long then becomes %h and a hash. So no text can add
// a separator or a brace, nor be as long as its sender likes.
func part(text string) string {
	safe := true
	for i := 0; i < len(text) && safe; i++ {
		safe = plain(text[i])
	}
	if safe && len(text) <= longestPart {
		return text
	}
	if len(text) <= longestPart {
		const digits = "0123456789ABCDEF"
		out := make([]byte, 0, longestPart+2)
		for i := 0; i < len(text) && len(out) <= longestPart; i++ {
			if c := text[i]; plain(c) {
				out = append(out, c)
			} else {
				out = append(out, '%', digits[c>>4], digits[c&15])
			}
		}
		if len(out) <= longestPart {
			return string(out)
		}
	}
	sum := sha256.Sum256([]byte(text))
	return "%h" + hex.EncodeToString(sum[:hashedBytes])
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
}

func (l Layout) tag() string {
	if l.Tag == "" {
		return "g"
	}
	return part(l.Tag)
}

// prefix is what all keys begin with.
func (l Layout) prefix() string { return part(l.Namespace) + ":1:{" + l.tag() + "}:" }

// Ctl is the key of the kill flags.
func (l Layout) Ctl() string { return l.prefix() + "ctl" }

// Record is the key of a reservation.
func (l Layout) Record(id string) string { return l.prefix() + "r:" + part(id) }

// Limit is the key of a limit's state. It holds no amount and no date.
func (l Layout) Limit(lim bucket.Limit) string { return limitKey(l.prefix(), &lim) }

// Answers is the key of how long answers were.
func (l Layout) Answers(of string) string { return l.prefix() + "a:" + part(of) }

func limitKey(prefix string, lim *bucket.Limit) string {
	return prefix + "l:" + part(lim.Name) + ":" + kindLetter(lim.Kind) + ":" + part(lim.Span()) + ":" + part(lim.Entity)
}

func kindLetter(k bucket.Kind) string {
	switch k {
	case bucket.TokenBucket:
		return "b"
	case bucket.RollingWindow:
		return "r"
	case bucket.Concurrency:
		return "c"
	case bucket.Burn:
		return "o"
	case bucket.SharedBucket:
		return "s"
	}
	return "w"
}

// Overrides is the key of the overrides, a hash.
func (l Layout) Overrides() string { return l.prefix() + "ovr" }

// OverrideField is the field, in the hash Overrides, of one entity of a limit.
func OverrideField(limit, entity string) string { return part(limit) + "|" + part(entity) }

// KillField is the field of a kill flag in the hash Ctl. The global one is KillField("global", "all").
// The id stands as it is where it is short and of printable ASCII without %, else as in a key.
func KillField(scope, id string) string {
	if fits(id) {
		return scope + ":" + id
	}
	return scope + ":" + part(id)
}

// FieldOf is KillField for a name "scope:id", which mostly is its own field.
func FieldOf(name string) string {
	scope, id, _ := strings.Cut(name, ":")
	if fits(id) {
		return name
	}
	return KillField(scope, id)
}

func fits(id string) bool {
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c > '~' || c == '%' {
			return false
		}
	}
	return len(id) <= 2*longestPart
}

const longestReason = 200

// KillValue is the value of a kill flag: until_ms|actor|reason. until 0 has no end. Of actor and
// reason it keeps printable ASCII, cut to 200 bytes each.
func KillValue(until bucket.Millis, actor, reason string) string {
	return decimal(int64(max(until, 0))) + "|" + strings.ReplaceAll(ascii(actor), "|", "?") + "|" + ascii(reason)
}

func ascii(s string) string {
	if len(s) > longestReason {
		s = s[:longestReason]
	}
	b := []byte(s)
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}

// ParseKill reads a kill flag's value. A script takes a value that isn't one for a flag without end.
func ParseKill(value string) (until bucket.Millis, actor, reason string, ok bool) {
	first, rest, found := strings.Cut(value, "|")
	if !found {
		return 0, "", "", false
	}
	n, ok := wholeNumber(first)
	if !ok || n < 0 {
		return 0, "", "", false
	}
	actor, reason, found = strings.Cut(rest, "|")
	if !found {
		return 0, "", "", false
	}
	return bucket.Millis(n), actor, reason, true
}
