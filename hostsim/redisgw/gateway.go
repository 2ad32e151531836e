// Package redisgw puts a Redis behind HTTP on loopback, for scenarios and for a gateway on a laptop:
// the bridge of bucket/bridge over an embedded Redis, or over one that already runs, with faults to
// order and counters to assert on.
//
// It knows nothing of Emmer's keys or scripts. The embedded Redis is miniredis, in memory: it is no
// judge of Redis' own errors (OOM, READONLY, MOVED, a script's first error word). Duties of the
// caller: Start, use, Close.
package redisgw

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket/bridge"
)

// Options say what Start builds. The zero value is a bridge with token "token" on an embedded Redis
// that follows the real clock.
type Options struct {
	RedisAddr     string        // host:port or the path of a Unix socket; empty: an embedded Redis
	Cluster       []string      // or: host:port of some nodes of a Redis Cluster
	Listen        string        // default 127.0.0.1:0
	Token         string        // for commands; default "token"
	OperatorToken string        // for /emmer/v1, actor "operator"; default "operator-token"
	Namespace     string        // default bridge.DefaultNamespace
	Timeout       time.Duration // of a command; default bridge.DefaultTimeout
	MaxInFlight   int           // default bridge.DefaultMaxInFlight

	// Start, if set, is where the embedded Redis' clock begins; it then moves only by SetTime and
	// Advance. Otherwise it is the real clock.
	Start time.Time
}

// Gateway is a running bridge. Its methods may be called from many goroutines.
type Gateway struct {
	bridge *bridge.Bridge
	client redis.UniversalClient // the bridge's own
	probes redis.UniversalClient
	mini   *miniredis.Miniredis // nil over a given Redis
	addr   string
	faults faults

	mu     sync.Mutex // guards serving
	server *http.Server
	served chan struct{} // closed once server has stopped

	clock clock
}

// ErrNotEmbedded is returned by what only the embedded Redis can do.
var ErrNotEmbedded = errors.New("redisgw: the Redis is not embedded")

// Start starts a gateway.
func Start(o Options) (g *Gateway, err error) {
	g = &Gateway{}
	g.faults.init()
	defer func() {
		if err != nil {
			g.Close()
			g = nil
		}
	}()
	addr, addrs, cluster := o.RedisAddr, o.Cluster, len(o.Cluster) > 0
	if addr == "" && !cluster {
		if g.mini, err = miniredis.Run(); err != nil {
			return g, fmt.Errorf("redisgw: embedded redis: %w", err)
		}
		addr = g.mini.Addr()
		g.hook()
		g.clock.start(g.mini, o.Start)
	} else if !o.Start.IsZero() {
		return g, fmt.Errorf("redisgw: start: %w", ErrNotEmbedded)
	}
	if !cluster {
		addrs = []string{addr}
	}
	timeout := o.Timeout
	if timeout == 0 {
		timeout = bridge.DefaultTimeout
	}
	if g.client, err = bridge.Connect(bridge.Redis{Addrs: addrs, Cluster: cluster, Timeout: timeout}); err != nil {
		return g, err
	}
	if g.probes, err = bridge.Connect(bridge.Redis{Addrs: addrs, Cluster: cluster, Timeout: 5 * time.Second}); err != nil {
		return g, err
	}
	if o.Token == "" {
		o.Token = "token"
	}
	if o.OperatorToken == "" {
		o.OperatorToken = "operator-token"
	}
	g.bridge, err = bridge.New(bridge.Options{
		Client: g.client, Tokens: []string{o.Token}, OperatorTokens: map[string]string{o.OperatorToken: "operator"},
		Timeout: timeout, Namespace: o.Namespace, MaxInFlight: o.MaxInFlight,
	})
	if err != nil {
		return g, err
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	return g, g.serve(o.Listen)
}

// hook puts the faults before every command.
func (g *Gateway) hook() {
	g.mini.Server().SetPreHook(func(p *server.Peer, _ string, _ ...string) bool { return g.faults.redis(p) })
}

// serve listens and serves until KillBridge or Close.
func (g *Gateway) serve(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("redisgw: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.addr = l.Addr().String()
	s, served := bridge.Server(g.faults.before(g.bridge)), make(chan struct{})
	g.server, g.served = s, served
	go func() {
		defer close(served)
		_ = s.Serve(l) // ends with ErrServerClosed
	}()
	return nil
}

// Addr is the bridge's host:port. It stays the same over KillBridge and RestartBridge.
func (g *Gateway) Addr() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.addr
}

// URL is the bridge's address as http://host:port.
func (g *Gateway) URL() string { return "http://" + g.Addr() }

// Client speaks to the Redis itself, past the bridge, its token and its faults.
func (g *Gateway) Client() redis.UniversalClient { return g.probes }

// Embedded is the embedded Redis, or nil.
func (g *Gateway) Embedded() *miniredis.Miniredis { return g.mini }

// Close stops everything. Requests that are held by a fault are let go unanswered.
func (g *Gateway) Close() {
	g.faults.end()
	g.KillBridge()
	g.clock.stop()
	if g.client != nil {
		_ = g.client.Close()
	}
	if g.probes != nil {
		_ = g.probes.Close()
	}
	if g.mini != nil {
		g.mini.Close()
	}
}

// KillBridge stops the bridge as a crash would: its port refuses, its connections are cut. Commands
// under way still run.
func (g *Gateway) KillBridge() {
	g.mu.Lock()
	s, served := g.server, g.served
	g.server, g.served = nil, nil
	g.mu.Unlock()
	if s == nil {
		return
	}
	_ = s.Close()
	<-served
}

// RestartBridge serves again on the same port.
func (g *Gateway) RestartBridge() error {
	g.KillBridge()
	return g.serve(g.Addr())
}

// FlushScripts empties Redis' script cache, so that the next EVALSHA is answered NOSCRIPT.
func (g *Gateway) FlushScripts() error {
	if err := g.probes.ScriptFlush(context.Background()).Err(); err != nil {
		return fmt.Errorf("redisgw: %w", err)
	}
	return nil
}
