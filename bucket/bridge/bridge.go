// Package bridge serves Redis over HTTP to a filter that cannot open a socket: the Upstash REST
// dialect over one go-redis client (single server, Sentinel or Cluster), and operators' verbs of
// its own.
//
//	POST /                 ["EVALSHA","<sha>","1","key","arg"]    -> {"result":...} | {"error":"..."}
//	POST /pipeline         [["PING"],["HGETALL","key"]]           -> [{"result":...},{"error":"..."}]
//	GET  /healthz          the process serves
//	GET  /readyz           Redis can read the kill flags, and the bridge is not about to stop
//	POST /emmer/v1/kill    {"scope":"tenant","id":"acme","reason":"...","for":"10m"}
//	POST /emmer/v1/resume  {"scope":"tenant","id":"acme"}
//	GET  /emmer/v1/kills
//
// Where the filter divides the store by orgs, "org":"..." in an order, or ?org= in the list, means the
// flags in that org's shard, which stop its calls alone. Those without it stop the calls of all orgs.
//
// Status codes: 200, 400 for a Redis error (its text unchanged, so that its first word can be
// matched) and for a body that is no command, 401, 403 for a command that is not on the allow-list
// or a token of the other kind, 404, 405, 413, and 503 where no answer of Redis is known: TIMEOUT
// (the command may still run), NOLINK (it may have run if the link broke under it), OVERLOAD and
// DRAINING never ran. Nothing waits in a queue but the requests that hold one of MaxInFlight slots,
// for a connection, within their timeout; their bodies together are bounded too.
//
// No reply ever reaches another caller. A command runs under a deadline of the bridge's own and is
// never bound to its client's connection, so an aborted client cannot leave a half-read reply on a
// pooled connection; a command that changes the state of a connection (SELECT, MULTI, CLIENT REPLY,
// SUBSCRIBE and their like) is refused even if an operator allows it; a connection that missed its
// deadline is closed by go-redis, never reused. Nothing is sent twice: no retry after a lost reply.
// MOVED and ASK are followed, because a node that says so has not run the command; TRYAGAIN, LOADING,
// CLUSTERDOWN and their like are the caller's to act on.
//
// The package knows nothing of limits, of the scripts it carries, or of Prometheus, and opens no
// listener. EVAL lets its caller run any script, so the fence around the data is a Redis ACL user
// (see cmd/emmer-bridge), not the allow-list. Duties of the caller, in order:
//   - make a client with Connect, or one that neither retries nor lacks ContextTimeoutEnabled,
//   - New, and serve it with Server (its timeouts bound what a slow client can hold),
//   - from time to time Inspect, and tell the operator what it finds,
//   - on shutdown Drain, wait until load balancers have noticed, Stop, Shutdown the server, close the client.
package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket/script"
)

// Defaults of Options.
const (
	DefaultTimeout     = 200 * time.Millisecond
	DefaultMaxInFlight = 512
	DefaultMaxBody     = 1 << 20  // bytes
	DefaultMaxBodies   = 64 << 20 // bytes
	DefaultNamespace   = "emmer"
)

// Options say what a Bridge serves and to whom.
type Options struct {
	Client redis.UniversalClient // required; the bridge does not close it

	Tokens         []string          // bearer tokens for commands; at least one
	OperatorTokens map[string]string // bearer token -> actor's name, for /emmer/v1; none: the verbs are off

	Allow       []string      // commands, by name; nil: DefaultAllow
	Timeout     time.Duration // of one command or one pipeline, waiting for a connection included
	MaxInFlight int           // requests at once; one more is answered 503 OVERLOAD
	MaxBody     int           // bytes of a request body; a longer one is answered 413
	MaxBodies   int           // bytes of all bodies in flight; a request beyond is answered 503 OVERLOAD
	Namespace   string        // first part of every key that the operators' verbs touch
	Strict      bool          // /readyz is 503 while Inspect's last word was a fault

	Metrics Metrics // nil: none
}

// Metrics hears what the bridge does. Its methods are called from many goroutines at once.
type Metrics interface {
	// Request is called once an HTTP request is answered. Route is one of command, pipeline,
	// operator, health, other.
	Request(route string, status int)
	// Refused is called, before Request, for a request that the bridge itself turned away. Word is one of
	// BADREQUEST, DRAINING, FORBIDDEN, METHOD, NOTFOUND, OVERLOAD, TOOLARGE, UNAUTHORIZED.
	Refused(word string)
	// InFlight is called with +1 and -1 around each request that may reach Redis.
	InFlight(change int)
	// Redis is called after each exchange with Redis. Fault is empty, the first word of a Redis
	// error (a closed set, else "other"), or TIMEOUT or NOLINK.
	Redis(took time.Duration, fault string)
}

// Bridge is an http.Handler. Its methods may be called from many goroutines.
type Bridge struct {
	client    redis.UniversalClient
	cluster   *redis.ClusterClient // nil for one server and for Sentinels
	callers   ring
	operators ring
	allow     map[string]bool
	timeout   time.Duration
	maxBody   int
	maxBodies int64
	bodies    atomic.Int64 // bytes of bodies in flight
	slots     chan struct{}
	layout    script.Layout
	metrics   Metrics
	ready     readiness
	strict    bool
	settings  atomic.Pointer[SettingError]
	draining  atomic.Bool
	stopped   atomic.Bool
}

// New checks o and returns a Bridge. All faults are reported at once.
func New(o Options) (*Bridge, error) {
	var faults []error
	fault := func(format string, a ...any) { faults = append(faults, fmt.Errorf(format, a...)) }
	if o.Client == nil {
		fault("client: missing")
	}
	if len(o.Tokens) == 0 {
		fault("tokens: at least one is needed")
	}
	for i, t := range o.Tokens {
		if err := checkToken(t); err != nil {
			fault("tokens[%d]: %w", i, err)
		}
		if _, twice := o.OperatorTokens[t]; twice {
			fault("tokens[%d]: is an operator's token too", i)
		}
	}
	for _, t := range slices.Sorted(maps.Keys(o.OperatorTokens)) {
		actor := o.OperatorTokens[t]
		if err := checkActor(actor); err != nil {
			fault("operator tokens: %w", err)
		} else if err := checkToken(t); err != nil {
			fault("operator tokens: %s: %w", actor, err)
		}
	}
	if o.Allow == nil {
		o.Allow = DefaultAllow()
	}
	allow, err := allowList(o.Allow)
	if err != nil {
		fault("allow: %w", err)
	}
	if o.Timeout < 0 {
		fault("timeout: is negative")
	}
	if o.MaxInFlight < 0 {
		fault("max in flight: is negative")
	}
	if o.MaxBody < 0 {
		fault("max body: is negative")
	}
	if o.MaxBodies < 0 || or(o.MaxBodies, DefaultMaxBodies) < or(o.MaxBody, DefaultMaxBody) {
		fault("max bodies: is less than one body may have")
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	cluster, _ := o.Client.(*redis.ClusterClient)
	return &Bridge{
		client:    o.Client,
		cluster:   cluster,
		callers:   newRing(o.Tokens),
		operators: newOperatorRing(o.OperatorTokens),
		allow:     allow,
		timeout:   or(o.Timeout, DefaultTimeout),
		maxBody:   or(o.MaxBody, DefaultMaxBody),
		maxBodies: int64(or(o.MaxBodies, DefaultMaxBodies)),
		slots:     make(chan struct{}, or(o.MaxInFlight, DefaultMaxInFlight)),
		layout:    script.Layout{Namespace: or(o.Namespace, DefaultNamespace)}.Of(""),
		strict:    o.Strict,
		metrics:   o.Metrics,
	}, nil
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// InFlight is how many requests hold a slot now.
func (b *Bridge) InFlight() int { return len(b.slots) }

// Drain makes /readyz answer 503 and tells each client to take its next request elsewhere
// (`connection: close`, which Go's HTTP/2 server turns into GOAWAY). Requests are still served.
func (b *Bridge) Drain() { b.draining.Store(true) }

// Stop is Drain, and answers new commands and orders with 503 DRAINING. Those in flight go on. (A
// client of HTTP/2 may start some more before it has seen the GOAWAY.)
func (b *Bridge) Stop() {
	b.draining.Store(true)
	b.stopped.Store(true)
}

// ServeHTTP answers one request.
func (b *Bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, a := b.route(r)
	b.write(w, a)
	if b.metrics != nil {
		if a.refused != "" {
			b.metrics.Refused(a.refused)
		}
		b.metrics.Request(route, a.status)
	}
}

// answer is a whole response.
type answer struct {
	status  int
	body    []byte
	allow   string // of a 405
	refused string // the bridge's own word for why
}

func (b *Bridge) write(w http.ResponseWriter, a answer) {
	h := w.Header()
	h["Content-Type"] = contentType
	h["Content-Length"] = []string{strconv.Itoa(len(a.body))}
	if a.allow != "" {
		h.Set("Allow", a.allow)
	}
	if a.status == http.StatusUnauthorized {
		h.Set("Www-Authenticate", "Bearer")
	}
	if b.draining.Load() {
		h.Set("Connection", "close")
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client has gone: nobody is left to tell
}

var contentType = []string{"application/json"}

// fail is an answer with the text of an error.
func fail(status int, text string) answer {
	return answer{status: status, body: appendError(nil, text)}
}

// refuse is an answer whose text starts with a word of the bridge's own.
func refuse(status int, word, text string) answer {
	a := fail(status, word+" "+text)
	a.refused = word
	return a
}

func (b *Bridge) route(r *http.Request) (string, answer) {
	switch r.URL.Path {
	case "/":
		return "command", b.guarded(r, http.MethodPost, b.command)
	case "/pipeline":
		return "pipeline", b.guarded(r, http.MethodPost, b.pipeline)
	case "/healthz":
		return "health", b.probe(r, b.health)
	case "/readyz":
		return "health", b.probe(r, b.readiness)
	case "/emmer/v1/kill":
		return "operator", b.operated(r, http.MethodPost, b.kill)
	case "/emmer/v1/resume":
		return "operator", b.operated(r, http.MethodPost, b.resume)
	case "/emmer/v1/kills":
		return "operator", b.operated(r, http.MethodGet, func(ctx context.Context, _, _ string) answer {
			query, err := url.ParseQuery(r.URL.RawQuery)
			if err != nil {
				return refuse(http.StatusBadRequest, "BADREQUEST", "query: cannot be read")
			}
			return b.kills(ctx, query)
		})
	}
	return "other", refuse(http.StatusNotFound, "NOTFOUND", "no such path")
}

func wrongMethod(right string) answer {
	a := refuse(http.StatusMethodNotAllowed, "METHOD", "use "+right)
	a.allow = right
	return a
}

// guarded runs do for a caller who has a token, a slot and a body within its cap. The slot is taken
// before the body is read, so that bodies are bounded too; Server's read timeout bounds how long.
func (b *Bridge) guarded(r *http.Request, method string, do func(*http.Request, string) answer) answer {
	if r.Method != method {
		return wrongMethod(method)
	}
	token := bearer(r)
	if _, ok := b.callers.find(token); !ok {
		if _, operator := b.operators.find(token); operator {
			return refuse(http.StatusForbidden, "FORBIDDEN", "an operator's token runs no commands")
		}
		return refuse(http.StatusUnauthorized, "UNAUTHORIZED", "no such token")
	}
	return b.held(r, func(body string) answer { return do(r, body) })
}

// operated runs do for an operator.
func (b *Bridge) operated(r *http.Request, method string, do func(ctx context.Context, actor, body string) answer) answer {
	if len(b.operators.keys) == 0 {
		return refuse(http.StatusNotFound, "NOTFOUND", "no operator tokens are configured")
	}
	if r.Method != method {
		return wrongMethod(method)
	}
	token := bearer(r)
	actor, ok := b.operators.find(token)
	if !ok {
		if _, caller := b.callers.find(token); caller {
			return refuse(http.StatusForbidden, "FORBIDDEN", "this token may not use operators' verbs")
		}
		return refuse(http.StatusUnauthorized, "UNAUTHORIZED", "no such token")
	}
	return b.held(r, func(body string) answer {
		ctx, cancel := b.deadline(r)
		defer cancel()
		return do(ctx, actor, body)
	})
}

// held runs do with the body in hand and a slot taken.
func (b *Bridge) held(r *http.Request, do func(body string) answer) answer {
	if b.stopped.Load() {
		return refuse(http.StatusServiceUnavailable, "DRAINING", "the bridge is about to stop")
	}
	select {
	case b.slots <- struct{}{}:
	default:
		return refuse(http.StatusServiceUnavailable, "OVERLOAD", "too many requests in flight")
	}
	if b.metrics != nil {
		b.metrics.InFlight(1)
	}
	defer func() {
		<-b.slots
		if b.metrics != nil {
			b.metrics.InFlight(-1)
		}
	}()
	// A body of unknown length counts as the longest.
	size := r.ContentLength
	if size < 0 {
		size = int64(b.maxBody)
	}
	if size > int64(b.maxBody) {
		return b.tooLarge()
	}
	defer b.bodies.Add(-size)
	if b.bodies.Add(size) > b.maxBodies {
		return refuse(http.StatusServiceUnavailable, "OVERLOAD", "too many bytes in flight")
	}
	body, err := readBody(r, b.maxBody)
	if errors.Is(err, errTooLarge) {
		return b.tooLarge()
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "BADREQUEST", "body: cannot be read to its end")
	}
	return do(body)
}

func (b *Bridge) tooLarge() answer {
	return refuse(http.StatusRequestEntityTooLarge, "TOOLARGE", "body is over "+strconv.Itoa(b.maxBody)+" bytes")
}

// deadline is the context of one exchange with Redis. It keeps nothing of the client's own
// cancellation: whether the client still waits must not decide what becomes of a connection that
// others will use, nor cut a script's reply in half.
func (b *Bridge) deadline(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), b.timeout)
}
