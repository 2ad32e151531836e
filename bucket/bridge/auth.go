package bridge

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// ring is a set of bearer tokens. It keeps only their SHA-256, so that all have one length and the
// comparison takes the same time whatever was sent.
type ring struct {
	keys  [][sha256.Size]byte
	names []string
}

func newRing(tokens []string) ring {
	var r ring
	for _, t := range tokens {
		r.keys = append(r.keys, sha256.Sum256([]byte(t)))
		r.names = append(r.names, "")
	}
	return r
}

func newOperatorRing(tokens map[string]string) ring {
	var r ring
	for t, actor := range tokens {
		r.keys = append(r.keys, sha256.Sum256([]byte(t)))
		r.names = append(r.names, actor)
	}
	return r
}

// find compares against every key, found or not.
func (r ring) find(token string) (name string, ok bool) {
	sum := sha256.Sum256([]byte(token))
	at := -1
	for i := range r.keys {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], r.keys[i][:]), i, at)
	}
	if at < 0 || token == "" {
		return "", false
	}
	return r.names[at], true
}

// bearer is the token of a request, or "". A repeated header yields none: which one counts would be
// for whoever stands in front to decide.
func bearer(r *http.Request) string {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func checkToken(t string) error {
	if t == "" {
		return errors.New("is empty")
	}
	for i := range len(t) {
		if t[i] <= ' ' || t[i] > '~' {
			return errors.New("may hold only printable ASCII without spaces")
		}
	}
	return nil
}

// checkActor keeps a name that can stand in a flag's value, a log line and a header.
func checkActor(a string) error {
	if a == "" || len(a) > 64 {
		return fmt.Errorf("actor %q: must have 1 to 64 bytes", a)
	}
	for i := range len(a) {
		c := a[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._@-", c) >= 0) {
			return fmt.Errorf("actor %q: may hold only letters, digits and ._@-", a)
		}
	}
	return nil
}

// DefaultAllow is what Emmer's filter sends: its scripts, the poll of kill flags, a probe.
func DefaultAllow() []string { return []string{"EVAL", "EVALSHA", "HGETALL", "HMGET", "PING"} }

// never lists commands that change the connection they run on, block it, or make it speak out of
// turn: on a pooled connection each would hand one caller's state or replies to the next.
var never = []string{
	"ASKING", "AUTH", "CLIENT", "DISCARD", "EXEC", "HELLO", "MONITOR", "MULTI", "PSUBSCRIBE", "PSYNC",
	"PUNSUBSCRIBE", "QUIT", "READONLY", "READWRITE", "REPLCONF", "RESET", "SCRIPT", "SELECT", "SSUBSCRIBE", "SUBSCRIBE",
	"SUNSUBSCRIBE", "SYNC", "UNSUBSCRIBE", "UNWATCH", "WATCH",
	"BLMOVE", "BLMPOP", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX", "BZPOPMIN", "WAIT", "WAITAOF",
}

func allowList(names []string) (map[string]bool, error) {
	var faults []error
	m := make(map[string]bool, len(names))
	for _, n := range names {
		n = upper(strings.TrimSpace(n))
		switch {
		case n == "" || strings.ContainsAny(n, " \t|"):
			faults = append(faults, fmt.Errorf("%q is not a command's name", n))
		case slices.Contains(never, n):
			faults = append(faults, fmt.Errorf("%s changes or blocks a shared connection", n))
		default:
			m[n] = true
		}
	}
	return m, errors.Join(faults...)
}

// upper folds ASCII only: Unicode folding would make "ſet" a SET.
func upper(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}
