package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
)

// Caps of a flag's parts, in bytes.
const (
	maxScope  = 64
	maxID     = 256
	maxReason = 200
	maxFor    = 10 * 366 * 24 * time.Hour
)

// timeOf reads the clock of the server that holds the flags, which in a Cluster is the one that
// the key names: the scripts compare a flag's end with that clock and with no other.
const timeOf = `return redis.call('TIME')`

// dropIf deletes a flag unless somebody has set it anew since it was read.
const dropIf = `if redis.call('HGET',KEYS[1],ARGV[1])==ARGV[2] then return redis.call('HDEL',KEYS[1],ARGV[1]) end return 0`

// Flag is a kill flag as the verbs show it.
type Flag struct {
	Org    string        `json:"org,omitempty"` // whose calls it stops; empty: all calls
	Scope  string        `json:"scope"`
	ID     string        `json:"id"`
	Until  bucket.Millis `json:"until"` // Unix time of its end; 0: until resumed
	Actor  string        `json:"actor"`
	Reason string        `json:"reason"`
	Active bool          `json:"active"` // false: its end has passed
}

// order is what an operator says. Org, where the store is divided by orgs, means that org's calls
// alone: the flag stands in its shard.
type order struct {
	Org    string `json:"org"`
	Scope  string `json:"scope"`
	ID     string `json:"id"`
	Reason string `json:"reason"`
	For    string `json:"for"`
}

func (b *Bridge) kill(ctx context.Context, actor, body string) answer {
	o, err := readOrder(body)
	if err != nil {
		return refuse(http.StatusBadRequest, "BADREQUEST", err.Error())
	}
	lasts, err := checkKill(o)
	if err != nil {
		return refuse(http.StatusBadRequest, "BADREQUEST", err.Error())
	}
	l := b.layout.Of(o.Org)
	now, err := b.now(ctx, l)
	if err != nil {
		return fail(classify(err))
	}
	f := Flag{Org: o.Org, Scope: o.Scope, ID: o.ID, Actor: actor, Reason: o.Reason, Active: true}
	if lasts > 0 {
		f.Until = now + bucket.Millis(lasts.Milliseconds())
	}
	field, value := script.KillField(f.Scope, f.ID), script.KillValue(f.Until, f.Actor, f.Reason)
	if _, err := b.do(ctx, "HSET", l.Ctl(), field, value); err != nil {
		return fail(classify(err))
	}
	b.sweep(ctx, l, now)
	return document(f)
}

func (b *Bridge) resume(ctx context.Context, _, body string) answer {
	o, err := readOrder(body)
	if err == nil {
		err = checkScope(o)
	}
	if err == nil && (o.Reason != "" || o.For != "") {
		err = errors.New("only org, scope and id are taken")
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "BADREQUEST", err.Error())
	}
	// The field's own text too: an id as the list shows it, or a flag that was set by hand.
	n, err := b.do(ctx, "HDEL", b.layout.Of(o.Org).Ctl(), script.KillField(o.Scope, o.ID), o.Scope+":"+o.ID)
	if err != nil {
		return fail(classify(err))
	}
	return document(map[string]bool{"resumed": n != int64(0)})
}

// kills lists the flags of one shard: query is empty, or names an org.
func (b *Bridge) kills(ctx context.Context, query url.Values) answer {
	org := query.Get("org")
	if len(query) > 1 || len(query) == 1 && len(query["org"]) != 1 {
		return refuse(http.StatusBadRequest, "BADREQUEST", "query: only org is taken, once")
	}
	if err := checkOrg(org); err != nil {
		return refuse(http.StatusBadRequest, "BADREQUEST", err.Error())
	}
	l := b.layout.Of(org)
	now, err := b.now(ctx, l)
	if err != nil {
		return fail(classify(err))
	}
	all, err := b.flags(ctx, l)
	if err != nil {
		return fail(classify(err))
	}
	list := make([]Flag, 0, len(all))
	for _, fv := range all {
		f := Flag{Org: org, Active: true}
		f.Scope, f.ID, _ = strings.Cut(fv[0], ":")
		var ok bool
		if f.Until, f.Actor, f.Reason, ok = script.ParseKill(fv[1]); ok {
			f.Active = f.Until == 0 || f.Until > now
		} else {
			f.Until, f.Actor, f.Reason = 0, "", fv[1] // set by hand: show it as it is
		}
		list = append(list, f)
	}
	return document(struct {
		Now   bucket.Millis `json:"now"`
		Flags []Flag        `json:"flags"`
	}{now, list})
}

// sweep deletes flags whose end has passed, which nothing else does: ctl has no TTL, and every
// gateway reads all of it. It does what it can; the flags it leaves are without effect.
func (b *Bridge) sweep(ctx context.Context, l script.Layout, now bucket.Millis) {
	all, err := b.flags(ctx, l)
	if err != nil {
		return
	}
	for _, fv := range all {
		until, _, _, ok := script.ParseKill(fv[1])
		if ok && until != 0 && until <= now {
			if _, err := b.do(ctx, "EVAL", dropIf, "1", l.Ctl(), fv[0], fv[1]); err != nil {
				return
			}
		}
	}
}

// flags reads all flags of a shard as (field, value), ordered by field.
func (b *Bridge) flags(ctx context.Context, l script.Layout) ([][2]string, error) {
	v, err := b.do(ctx, "HGETALL", l.Ctl())
	if err != nil {
		return nil, err
	}
	list, _ := v.([]any)
	var all [][2]string
	for i := 0; i+1 < len(list); i += 2 {
		field, _ := list[i].(string)
		value, _ := list[i+1].(string)
		all = append(all, [2]string{field, value})
	}
	slices.SortFunc(all, func(x, y [2]string) int { return strings.Compare(x[0], y[0]) })
	return all, nil
}

func (b *Bridge) now(ctx context.Context, l script.Layout) (bucket.Millis, error) {
	v, err := b.do(ctx, "EVAL", timeOf, "1", l.Ctl())
	if err != nil {
		return 0, err
	}
	if t, ok := v.([]any); ok && len(t) == 2 {
		s, _ := t[0].(string)
		us, _ := t[1].(string)
		seconds, err1 := strconv.ParseInt(s, 10, 64)
		micros, err2 := strconv.ParseInt(us, 10, 64)
		if err1 == nil && err2 == nil {
			return bucket.Millis(seconds*1000 + micros/1000), nil
		}
	}
	return 0, errors.New("redis answered TIME with something else")
}

func readOrder(body string) (order, error) {
	var o order
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return o, fmt.Errorf("body: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return o, errors.New("body: something follows the object")
	}
	return o, nil
}

func checkScope(o order) error {
	if o.Scope == "" || len(o.Scope) > maxScope {
		return fmt.Errorf("scope: must have 1 to %d bytes", maxScope)
	}
	for i := range len(o.Scope) {
		if c := o.Scope[i]; !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return errors.New("scope: may hold only a-z, 0-9, _ and -")
		}
	}
	if o.Scope == "global" && o.ID != "all" {
		return errors.New(`id: the global scope has only "all"`)
	}
	if o.ID == "" || len(o.ID) > maxID {
		return fmt.Errorf("id: must have 1 to %d bytes", maxID)
	}
	if !printable(o.ID) {
		return errors.New("id: may hold no control characters")
	}
	return checkOrg(o.Org)
}

func checkOrg(org string) error {
	if len(org) > maxID {
		return fmt.Errorf("org: must have at most %d bytes", maxID)
	}
	if !printable(org) {
		return errors.New("org: may hold no control characters")
	}
	return nil
}

// printable also refuses a replacement character, the trace of bytes that were no UTF-8.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError })
}

// checkKill also keeps the reason fit for a flag's value, which | separates, and for a header.
func checkKill(o order) (lasts time.Duration, err error) {
	if err := checkScope(o); err != nil {
		return 0, err
	}
	if o.Reason == "" || len(o.Reason) > maxReason {
		return 0, fmt.Errorf("reason: must have 1 to %d bytes", maxReason)
	}
	for i := range len(o.Reason) {
		if c := o.Reason[i]; c < ' ' || c > '~' || c == '|' {
			return 0, errors.New("reason: may hold only printable ASCII without |")
		}
	}
	if o.For == "" {
		return 0, nil
	}
	lasts, err = time.ParseDuration(o.For)
	if err != nil || lasts < time.Millisecond || lasts > maxFor {
		return 0, fmt.Errorf("for: %q is not a duration like 10m or 36h, from 1ms to %dh", o.For, int(maxFor.Hours()))
	}
	return lasts, nil
}

func document(v any) answer {
	var buf bytes.Buffer
	buf.WriteString(`{"result":`)
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fail(http.StatusInternalServerError, "INTERNAL the reply cannot be written")
	}
	return answer{status: http.StatusOK, body: append(bytes.TrimRight(buf.Bytes(), "\n"), '}')}
}
