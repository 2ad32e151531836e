package bridge

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// readyFor is how long one PING's outcome stands: probes of many gateways cost Redis one PING in
// that time, and a lost Redis is noticed no later.
const readyFor = 250 * time.Millisecond

type readiness struct {
	mu    sync.Mutex // held during the PING, so that only one is under way
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
		return refuse(http.StatusServiceUnavailable, "DRAINING the bridge is about to stop")
	}
	ctx, cancel := b.deadline(r)
	defer cancel()
	if err := b.ping(ctx); err != nil {
		status, text := classify(err)
		if status == http.StatusBadRequest { // LOADING, NOAUTH, NOPERM: Redis is there, of no use
			status = http.StatusServiceUnavailable
		}
		return refuse(status, text)
	}
	return answer{status: http.StatusOK, body: []byte(`{"result":"OK"}`)}
}

func (b *Bridge) ping(ctx context.Context) error {
	b.ready.mu.Lock()
	defer b.ready.mu.Unlock()
	if time.Now().Before(b.ready.until) {
		return b.ready.err
	}
	// Whoever waited for the lock may have no time left: the PING has a deadline of its own.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.timeout)
	defer cancel()
	_, b.ready.err = b.do(ctx, "PING")
	b.ready.until = time.Now().Add(readyFor)
	return b.ready.err
}
