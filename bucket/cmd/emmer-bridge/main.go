// Command emmer-bridge serves Redis over HTTP to Emmer's filter: package bridge as a program.
//
//	EMMER_BRIDGE_TOKENS=secret emmer-bridge -redis 127.0.0.1:6379
//
// It serves HTTP/1.1 and cleartext HTTP/2 on one port: the bridge's paths, and GET /metrics for
// Prometheus. Every flag can be set by the environment (-max-in-flight: EMMER_BRIDGE_MAX_IN_FLIGHT).
// Secrets are taken from the environment only, because a command line can be read by other users:
//
//	EMMER_BRIDGE_TOKENS             bearer tokens for commands, separated by commas or spaces (required)
//	EMMER_BRIDGE_OPERATORS          name=token pairs for /emmer/v1, separated likewise
//	EMMER_BRIDGE_REDIS_USERNAME     and EMMER_BRIDGE_REDIS_PASSWORD: the Redis user
//	EMMER_BRIDGE_SENTINEL_USERNAME  and EMMER_BRIDGE_SENTINEL_PASSWORD: the Sentinels' user
//
// EVAL lets the holder of a token run any script, so the fence around the data is the Redis user.
// This one is enough for the filter and for the operators' verbs, and can touch nothing else (a
// test runs the bridge as this user); put the namespace in the place of emmer:
//
//	ACL SETUSER emmer on >password resetkeys ~emmer:1:* resetchannels -@all
//	    +eval +evalsha +ping +time +get +set +hget +hgetall +hmget +hset +hdel +del +pexpire
//
// With -cluster add +cluster|slots. Set maxmemory-policy noeviction: an evicted limit is
// a limit that forgot.
//
// On SIGTERM or SIGINT it answers 503 on /readyz and goes on serving for -drain, so that load
// balancers notice; then it finishes what is in flight, for at most -grace, and exits with 0. A second
// signal ends it at once.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket/bridge"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	go func() {
		<-ctx.Done()
		stop() // the next signal has its default effect
	}()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stderr))
}

// run serves until ctx ends, then drains. It returns the exit code: 2 for a wrong command line.
func run(ctx context.Context, args []string, env func(string) string, out io.Writer) int {
	s, err := readSettings(args, env, out)
	if errors.Is(err, errHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(out, err)
		return 2
	}
	log := slog.New(slog.NewJSONHandler(out, nil))
	redis.SetLogger(&quietLogger{log: log})
	client, err := bridge.Connect(s.redis)
	if err != nil {
		fmt.Fprintln(out, err)
		return 2
	}
	defer func() { _ = client.Close() }()
	metrics := newMetrics()
	s.bridge.Client, s.bridge.Metrics = client, metrics
	b, err := bridge.New(s.bridge)
	if err != nil {
		fmt.Fprintln(out, err)
		return 2
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics.registry, promhttp.HandlerOpts{}))
	mux.Handle("/", b)
	l, err := net.Listen("tcp", s.listen)
	if err != nil {
		log.Error("cannot listen", "error", err.Error())
		return 1
	}
	server := bridge.Server(mux)
	server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	log.Info("serving", "listen", l.Addr().String(), "redis", s.redis.Addrs, "cluster", s.redis.Cluster,
		"sentinel", s.redis.Master, "namespace", s.bridge.Namespace, "timeout", s.bridge.Timeout.String(),
		"operators", len(s.bridge.OperatorTokens))
	select {
	case err := <-served:
		log.Error("stopped serving", "error", err.Error())
		return 1
	case <-ctx.Done():
	}
	return drain(log, b, server, s)
}

func drain(log *slog.Logger, b *bridge.Bridge, server *http.Server, s settings) int {
	log.Info("draining", "for", s.drain.String(), "in_flight", b.InFlight())
	b.Drain()
	<-time.After(s.drain)
	ctx, cancel := context.WithTimeout(context.Background(), s.grace)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		log.Error("requests were still in flight", "error", err.Error(), "in_flight", b.InFlight())
		_ = server.Close()
		return 1
	}
	log.Info("drained")
	return 0
}

// quietLogger passes on what go-redis says, the same message at most once in quietFor: without a
// Redis it says one for every command.
type quietLogger struct {
	log  *slog.Logger
	mu   sync.Mutex
	said map[string]time.Time
}

const quietFor = 10 * time.Second

func (q *quietLogger) Printf(_ context.Context, format string, v ...any) {
	q.mu.Lock()
	now := time.Now()
	soon := now.Sub(q.said[format]) < quietFor
	if !soon {
		if q.said == nil || len(q.said) > 100 {
			q.said = map[string]time.Time{}
		}
		q.said[format] = now
	}
	q.mu.Unlock()
	if !soon {
		q.log.Warn("redis client", "message", fmt.Sprintf(format, v...))
	}
}
