package buckettest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
)

// Redis is the scripts on a Redis, as a Store.
type Redis struct {
	Client redis.UniversalClient
	Layout script.Layout
	edited map[string]*script.Script
	nonce  atomic.Int64
	t      testing.TB
}

// NewRedis is a store on a client's server, under a namespace that nobody else uses.
func NewRedis(t testing.TB, client redis.UniversalClient) *Redis {
	b := make([]byte, 6)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	return &Redis{Client: client, Layout: script.Layout{Namespace: "t" + hex.EncodeToString(b), WithOverrides: true}, t: t}
}

// Mini is the scripts on an embedded Redis, whose clock is driven.
type Mini struct {
	*Redis
	Server *miniredis.Miniredis
	time   bucket.Millis
}

// NewMini starts a Redis for this store alone. Its clock begins at Epoch.
func NewMini(t testing.TB) *Mini {
	mini := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	mini.SetTime(time.UnixMilli(int64(Epoch)))
	return &Mini{NewRedis(t, client), mini, Epoch}
}

// Edit replaces a piece of a script's text for this store only: what does the suite say of a script
// that is wrong?
func (r *Redis) Edit(s *script.Script, from, to string) {
	r.t.Helper()
	if r.edited == nil {
		r.edited = map[string]*script.Script{}
	}
	text := s.Text
	if e := r.edited[s.Name]; e != nil {
		text = e.Text
	}
	if strings.Count(text, from) != 1 {
		r.t.Fatalf("the %s script has %q %d times", s.Name, from, strings.Count(text, from))
	}
	text = strings.Replace(text, from, to, 1)
	r.edited[s.Name] = &script.Script{Name: s.Name, Text: text, SHA: redis.NewScript(text).Hash()}
}

// Do sends a call: EVALSHA, and EVAL once where Redis doesn't know the script.
func (r *Redis) Do(c script.Call) ([]script.Value, error) {
	s := c.Script
	if e := r.edited[s.Name]; e != nil {
		s = e
	}
	args := make([]any, len(c.Args))
	for i, a := range c.Args {
		args[i] = a
	}
	ctx := context.Background()
	v, err := r.Client.EvalSha(ctx, s.SHA, c.Keys, args...).Slice()
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		v, err = r.Client.Eval(ctx, s.Text, c.Keys, args...).Slice()
	}
	if err != nil {
		return nil, err
	}
	return values(v)
}

func values(v []any) ([]script.Value, error) {
	out := make([]script.Value, len(v))
	for i, e := range v {
		switch e := e.(type) {
		case int64:
			out[i] = script.Value{Int: e, IsInt: true}
		case string:
			out[i] = script.Value{Text: e}
		default:
			return nil, fmt.Errorf("element %d of a reply is a %T", i, e)
		}
	}
	return out, nil
}

// Nonce is one that wasn't used before.
func (r *Redis) Nonce() string { return fmt.Sprintf("n%d", r.nonce.Add(1)) }

// ask encodes, sends and decodes.
func ask[Q, A any](r *Redis, encode func(Q, string) (script.Call, error), decode func(script.Call, []script.Value) (A, error), q Q) (A, error) {
	var none A
	c, err := encode(q, r.Nonce())
	if err != nil {
		return none, err
	}
	v, err := r.Do(c)
	if err != nil {
		return none, err
	}
	return decode(c, v)
}

// Reserve implements Store.
func (r *Redis) Reserve(q bucket.ReserveRequest) (bucket.ReserveReply, error) {
	return ask(r, r.Layout.Reserve, script.DecodeReserve, q)
}

// Settle implements Store.
func (r *Redis) Settle(q bucket.SettleRequest) (bucket.SettleReply, error) {
	return ask(r, r.Layout.Settle, script.DecodeSettle, q)
}

// Renew implements Store.
func (r *Redis) Renew(q bucket.RenewRequest) (bucket.RenewReply, error) {
	return ask(r, r.Layout.Renew, script.DecodeRenew, q)
}

// Extend implements Store.
func (r *Redis) Extend(q bucket.ExtendRequest) (bucket.ExtendReply, error) {
	return ask(r, r.Layout.Extend, script.DecodeExtend, q)
}

// Level implements Store.
func (r *Redis) Level(l bucket.Limit) (script.Level, error) {
	return ask(r, r.Layout.Level, script.DecodeLevel, l)
}

// SetKill implements Store.
func (r *Redis) SetKill(scopeID string, until bucket.Millis, actor, reason string) error {
	return r.Client.HSet(context.Background(), r.Layout.Ctl(), scopeID, script.KillValue(until, actor, reason)).Err()
}

// Resume implements Store.
func (r *Redis) Resume(scopeID string) error {
	return r.Client.HDel(context.Background(), r.Layout.Ctl(), scopeID).Err()
}

// Kill implements Store.
func (r *Redis) Kill(scopeID string) (string, error) {
	value, err := r.Client.HGet(context.Background(), r.Layout.Ctl(), scopeID).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return value, err
}

// SetOverride implements Store.
func (r *Redis) SetOverride(limit, entity, value string) error {
	field := script.OverrideField(limit, entity)
	if value == "" {
		return r.Client.HDel(context.Background(), r.Layout.Overrides(), field).Err()
	}
	return r.Client.HSet(context.Background(), r.Layout.Overrides(), field, value).Err()
}

func (r *Redis) overridable(on bool) { r.Layout.WithOverrides = on }

// Now implements Store.
func (r *Redis) Now() bucket.Millis {
	at, err := r.Client.Time(context.Background()).Result()
	if err != nil {
		r.t.Fatal(err)
	}
	return bucket.Millis(at.UnixMilli())
}

// Pass implements Store.
func (r *Redis) Pass(d bucket.Millis) {
	for until := r.Now() + d; r.Now() < until; {
		// Redis' clock is the one that counts, so it is asked until it has got there.
		<-time.After(time.Millisecond)
	}
}

// Now implements Store.
func (m *Mini) Now() bucket.Millis { return m.time }

// Pass implements Store.
func (m *Mini) Pass(d bucket.Millis) { m.SetTime(m.time + d) }

// SetTime moves the clock, back too, and TTLs with it if it goes forward.
func (m *Mini) SetTime(at bucket.Millis) {
	if at > m.time { // miniredis' TTLs don't run by themselves, nor with SetTime
		m.Server.FastForward(time.Duration(at-m.time) * time.Millisecond)
	}
	m.time = at
	m.Server.SetTime(time.UnixMilli(int64(at)))
}
