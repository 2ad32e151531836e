package bridge

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// readyFor is how long one probe's outcome stands: probes of many gateways cost Redis one command in
// that time, and a lost Redis is noticed no later.
const readyFor = 250 * time.Millisecond

type readiness struct {
	mu    sync.Mutex // held during the probe, so that only one is under way
	until time.Time
	err   error
}

func (b *Bridge) probe(r *http.Request, do func(*http.Request) answer) answer {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return wrongMethod(http.MethodGet)
	}
	return do(r)
}

func (b *Bridge) health(*http.Request) answer {
	return answer{status: http.StatusOK, body: []byte(`{"result":"OK"}`)}
}

func (b *Bridge) readiness(r *http.Request) answer {
	if b.draining.Load() {
		return refuse(http.StatusServiceUnavailable, "DRAINING", "the bridge is about to stop")
	}
	if err := b.Ready(r.Context()); err != nil {
		status, text := classify(err)
		if status == http.StatusBadRequest { // LOADING, NOAUTH, NOPERM: Redis is there, of no use
			status = http.StatusServiceUnavailable
		}
		return fail(status, text)
	}
	if fault := b.settings.Load(); b.strict && fault != nil {
		return fail(http.StatusServiceUnavailable, "SETTINGS "+fault.Error())
	}
	return answer{status: http.StatusOK, body: []byte(`{"result":"OK"}`)}
}

// Ready asks Redis for a field of the kill flags, or says what it said a moment ago: unlike a PING, that
// finds the node of a Cluster that matters, and that the user may read there. It is a read, and so it
// says yes of a Redis that is full or lacks its replicas: the bridge still carries the poll of kill flags,
// and a script's own error tells the caller more than a bridge taken out of service would.
func (b *Bridge) Ready(ctx context.Context) error {
	b.ready.mu.Lock()
	defer b.ready.mu.Unlock()
	if time.Now().Before(b.ready.until) {
		return b.ready.err
	}
	// Whoever waited for the lock may have no time left: the probe has a deadline of its own.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.timeout)
	defer cancel()
	_, b.ready.err = b.do(ctx, "HMGET", b.layout.Ctl(), "ready")
	b.ready.until = time.Now().Add(readyFor)
	return b.ready.err
}

// SettingError is a setting of Redis under which limits may be lost.
type SettingError struct{ Setting, Value string }

func (e *SettingError) Error() string {
	return e.Setting + " is " + e.Value + ": Redis may evict limits, set it to noeviction"
}

// Inspect looks whether Redis, or any master of a Cluster, may evict keys: an evicted limit is a limit
// that forgot what was spent. The error is a *SettingError, or says why nothing is known. It costs each
// master one INFO.
func (b *Bridge) Inspect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	var mu sync.Mutex
	var found *SettingError
	ask := func(ctx context.Context, c interface {
		Info(context.Context, ...string) *redis.StringCmd
	}) error {
		text, err := c.Info(ctx, "memory").Result()
		if fault := evicts(text); err == nil && fault != nil {
			mu.Lock()
			defer mu.Unlock()
			found = fault
		}
		return err
	}
	var err error
	if b.cluster != nil {
		err = b.cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return ask(ctx, c) })
	} else {
		err = ask(ctx, b.client)
	}
	if found != nil {
		b.settings.Store(found)
		return found
	}
	if err == nil {
		b.settings.Store(nil)
	}
	return err
}

// evicts reads INFO's memory section. Without a maxmemory nothing is ever evicted.
func evicts(info string) *SettingError {
	field := func(name string) string {
		_, rest, _ := strings.Cut(info, "\n"+name+":")
		value, _, _ := strings.Cut(rest, "\r")
		return value
	}
	policy := field("maxmemory_policy")
	if policy == "" || policy == "noeviction" || field("maxmemory") == "0" {
		return nil
	}
	return &SettingError{"maxmemory-policy", policy}
}
