package redisgw

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2/server"
)

// maxHeld bounds the body that is read before a request is held.
const maxHeld = 8 << 20

// faults stands before the bridge: it counts requests, holds them, and loses replies.
type faults struct {
	ended chan struct{}

	mu       sync.Mutex
	once     sync.Once
	stalled  *gate // requests wait at it; nil: they do not
	frozen   *gate // the same for the embedded Redis' commands
	failure  string
	lose     int
	requests int
	names    map[string]int
}

// gate holds whoever waits at it until it opens; drop, set before, tells them to give up.
type gate struct {
	open chan struct{}
	drop bool
}

func (f *faults) init() {
	f.ended = make(chan struct{})
	f.names = map[string]int{}
}

func (f *faults) end() { f.once.Do(func() { close(f.ended) }) }

func (f *faults) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" && r.URL.Path != "/pipeline" {
			next.ServeHTTP(w, r)
			return
		}
		// The whole request is in before it is held: a process that hangs finds it in its socket
		// later, and runs it then, whether or not its sender still waits.
		body, err := io.ReadAll(io.LimitReader(r.Body, maxHeld))
		r.Body = io.NopCloser(bytes.NewReader(body))
		held, lose := f.see(r.Method, body)
		if !f.pass(held) {
			panic(http.ErrAbortHandler)
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the client left in the middle of its body
		}
		if lose {
			next.ServeHTTP(&lost{header: http.Header{}}, r)
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}

func (f *faults) see(method string, body []byte) (held *gate, lose bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if method == http.MethodPost {
		name := firstName(body)
		f.requests++
		f.names[name]++
		if f.lose > 0 && strings.HasPrefix(name, "EVAL") {
			f.lose--
			lose = true
		}
	}
	return f.stalled, lose
}

// firstName is the first string of the body, in capitals: the (first) command's name.
func firstName(body []byte) string {
	_, rest, _ := strings.Cut(string(body[:min(len(body), 128)]), `"`)
	name, _, _ := strings.Cut(rest, `"`)
	return strings.ToUpper(name)
}

// lost is a ResponseWriter whose response nobody sees.
type lost struct{ header http.Header }

func (l *lost) Header() http.Header         { return l.header }
func (l *lost) WriteHeader(int)             {}
func (l *lost) Write(p []byte) (int, error) { return len(p), nil }

// pass waits at g and tells whether to go on.
func (f *faults) pass(g *gate) bool {
	if g == nil {
		return true
	}
	select {
	case <-g.open:
		return !g.drop
	case <-f.ended:
		return false
	}
}

// hold sets up a gate, or opens it.
func (f *faults) hold(at **gate, on, drop bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case on && *at == nil:
		*at = &gate{open: make(chan struct{})}
	case !on && *at != nil:
		(*at).drop = drop
		close((*at).open)
		*at = nil
	}
}

// redis stands before each command of the embedded Redis; true: the command is not to run.
func (f *faults) redis(p *server.Peer) bool {
	f.mu.Lock()
	g, failure := f.frozen, f.failure
	f.mu.Unlock()
	if !f.pass(g) {
		return true
	}
	if failure != "" {
		p.WriteError(failure)
		return true
	}
	return false
}

// Stall makes the bridge accept requests and not answer them, as a stopped process would. Stall(false)
// lets the held ones run, even those whose client has gone.
func (g *Gateway) Stall(on bool) { g.faults.hold(&g.faults.stalled, on, false) }

// StallRedis makes the embedded Redis accept commands and not answer them; the bridge answers 503
// after its timeout. StallRedis(false) lets the held ones run. Client is held too.
func (g *Gateway) StallRedis(on bool) error {
	if g.mini == nil {
		return ErrNotEmbedded
	}
	g.faults.hold(&g.faults.frozen, on, false)
	return nil
}

// FailRedis makes the embedded Redis answer every command with this error, for Client too; "" ends it.
func (g *Gateway) FailRedis(text string) error {
	if g.mini == nil {
		return ErrNotEmbedded
	}
	g.faults.mu.Lock()
	defer g.faults.mu.Unlock()
	g.faults.failure = text
	return nil
}

// KillRedis stops the embedded Redis as a crash would, but keeps its data, as an append-only file
// would, and not its scripts. What StallRedis holds never runs.
func (g *Gateway) KillRedis() error {
	if g.mini == nil {
		return ErrNotEmbedded
	}
	g.faults.hold(&g.faults.frozen, false, true)
	if err := g.FailRedis(""); err != nil {
		return err
	}
	if err := g.FlushScripts(); err != nil {
		return err
	}
	g.mini.Close()
	return nil
}

// RestartRedis starts the embedded Redis again on its port.
func (g *Gateway) RestartRedis() error {
	if g.mini == nil {
		return ErrNotEmbedded
	}
	if err := g.mini.Restart(); err != nil {
		return err
	}
	g.hook()
	return nil
}

// DropReply makes the bridge run the next n script calls (EVAL, EVALSHA) and lose their replies: it
// closes the connection instead (on HTTP/2, it resets the stream). Other commands, such as a poll
// in the background, are answered and don't count.
func (g *Gateway) DropReply(n int) {
	g.faults.mu.Lock()
	defer g.faults.mu.Unlock()
	g.faults.lose = n
}

// Requests is how many commands and pipelines were posted to the bridge so far, answered or not.
func (g *Gateway) Requests() int {
	g.faults.mu.Lock()
	defer g.faults.mu.Unlock()
	return g.faults.requests
}

// Commands is how many requests began with each of the named commands, given in capitals.
func (g *Gateway) Commands(names ...string) int {
	g.faults.mu.Lock()
	defer g.faults.mu.Unlock()
	n := 0
	for _, name := range names {
		n += g.faults.names[name]
	}
	return n
}
