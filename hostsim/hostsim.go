// Package hostsim runs any proxy-wasm module (ABI 0.2.0) under Envoy's rules and serves real HTTP/1.1 and HTTP/2
// (prior knowledge, or TLS) on loopback through it, to real upstreams.
//
// It is a black box host: it knows the ABI, the filter chain and the network, and refuses to know what the module
// does. It never imports plugin code. What a module did wrong, and Envoy would have punished with lost bytes, a
// crash or another client's request, is listed by Violations; a test that uses the host should look there at its
// end.
//
// Duties of the caller, in order: Start with Options; send requests to Addr; read AccessLog, Metrics, Logs and
// Violations; Close. Close ends every goroutine the host started.
package hostsim

import (
	"crypto/tls"
	"time"
)

// Options say what to run. Wasm and at least one Listener are required.
type Options struct {
	// Wasm is the module, a WASI reactor with _initialize.
	Wasm []byte
	// Workers is the number of worker threads; each has its own VM. 0 means 1. The main thread has one VM more.
	Workers int
	// VMID keys shared data and shared queues. Filters with the same VMID share one VM per worker.
	VMID string
	// VMConfig is handed to proxy_on_vm_start.
	VMConfig []byte
	// Env is the environment of the VM (environ_get).
	Env map[string]string
	// Clusters are the places a route or a callout may name.
	Clusters map[string]Cluster
	// Listeners are the doors; each has its own filter chain.
	Listeners []Listener
	// Clock drives ticks, callout timeouts, reload back-off and the clock that the module reads. nil is real time.
	Clock Clock
	// Log receives what the module writes: its own log calls, stdout (info) and stderr (error). It is called on
	// the worker and must not block. nil drops it; Logs keeps the lines in any case.
	Log func(level, msg string)
	// CompilationCacheDir keeps compiled machine code between processes. "" compiles once per process.
	CompilationCacheDir string
	// Strict adds violations for what works by luck: a second deferred action in one callback, a resume of a
	// stream from its own callback, poll_oneoff.
	Strict bool
	// ReloadBackoff is the least time between two reloads of a crashed VM under FAIL_RELOAD; 0 means 1 s, as in
	// Envoy.
	ReloadBackoff time.Duration
}

// Cluster is an upstream: for routes, for callouts, or both.
type Cluster struct {
	// URL is http://host:port. "" is a cluster without a healthy host: a callout to it fails inside the call, a
	// request routed to it gets 503.
	URL string
	// HTTP2 speaks HTTP/2 with prior knowledge instead of HTTP/1.1.
	HTTP2 bool
}

// Filter is one entry of the module in a chain.
type Filter struct {
	Name   string
	RootID string
	Config []byte
	// AllowOnHeadersStop lets StopIteration in a header callback stop the headers alone
	// (PluginConfig.allow_on_headers_stop_iteration, Envoy 1.35). Without it every pause there stops the body too.
	AllowOnHeadersStop bool
	// FailurePolicy is what becomes of requests when the VM has crashed: FAIL_CLOSED (the default, ""), FAIL_OPEN
	// or FAIL_RELOAD.
	FailurePolicy string
	// VMID overrides Options.VMID: a VM of its own.
	VMID string
}

// Listener is one loopback address with its chain and routes.
type Listener struct {
	Name string
	// Address to listen on; "" is a free port on 127.0.0.1.
	Address string
	// Network are entries before the HTTP server: they see the connection's own bytes (network filters, before the
	// connection manager). They must let everything go on: a Pause is a violation.
	Network []Filter
	Filters []Filter
	// TLS is what the listener shows its clients; nil is cleartext. Network filters stand behind it.
	TLS *tls.Certificate
	// Routes: the first that matches wins. The route is chosen when the headers leave the chain, so header edits
	// of a filter count.
	Routes []Route
	// BufferLimit is per_connection_buffer_limit_bytes; 0 means 1 MiB. HTTP/2 streams have 16 MiB whatever is set
	// here, as in Envoy 1.40.
	BufferLimit int
	// JWT verifies bearer tokens before the chain.
	JWT *JWT
	// AccessLog is the format of one line per stream: %RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %RESPONSE_FLAGS%
	// %PROTOCOL% %BYTES_SENT% %BYTES_RECEIVED% %UPSTREAM_WIRE_BYTES_SENT% %UPSTREAM_CLUSTER% %REQ(X)% %RESP(X)%
	// %FILTER_STATE(wasm.x:PLAIN)%; what is absent prints "-". "" keeps no log.
	AccessLog string
}

// Route sends what matches to a cluster. An empty Header matches all.
type Route struct {
	Header, Value string
	Cluster       string
}

// JWT stands for envoy.filters.http.jwt_authn with one HS256 key: a verified payload becomes dynamic metadata
// ["metadata", "filter_metadata", "envoy.filters.http.jwt_authn", Metadata, claim...]; a bad token is refused with
// 401 before any filter; a missing one passes. The authorization header is forwarded.
type JWT struct {
	Secret []byte
	// Metadata is payload_in_metadata; "" means "payload".
	Metadata string
}
