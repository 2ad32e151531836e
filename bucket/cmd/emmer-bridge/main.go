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
// README.md is for operators: the Redis user that is enough (emmer-bridge -print-acl), TLS, metrics, what
// happens when something fails.
//
// On SIGTERM or SIGINT it answers 503 on /readyz and goes on serving for -drain, so that load
// balancers notice; then it finishes what is in flight, for at most -grace, and exits with 0. A second
// signal ends it at once. On SIGHUP it reads its certificates anew, as it does by itself when they change.
package main

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
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
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP) // even with nothing to reload: its default effect is death
	os.Exit(run(ctx, hup, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run serves until ctx ends, then drains. It returns the exit code: 2 for a wrong command line.
func run(ctx context.Context, hup <-chan os.Signal, args []string, env func(string) string, out, diag io.Writer) int {
	s, err := readSettings(args, env, diag)
	if errors.Is(err, errHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(diag, err)
		return 2
	}
	if s.printACL {
		printACL(out, s)
		return 0
	}
	log := slog.New(slog.NewJSONHandler(diag, nil))
	redis.SetLogger(&quietLogger{log: log})
	if s.redisCert != nil {
		s.redisCert.log = log
	}
	client, err := bridge.Connect(s.redis)
	if err != nil {
		fmt.Fprintln(diag, err)
		return 2
	}
	defer func() { _ = client.Close() }()
	m := newMetrics()
	m.pool(client)
	s.bridge.Client, s.bridge.Metrics = client, m
	b, err := bridge.New(s.bridge)
	if err != nil {
		fmt.Fprintln(diag, err)
		return 2
	}
	f, err := listen(s, b, m, log)
	if err != nil {
		log.Error("cannot listen", "error", err.Error())
		return 1
	}
	log.Info("serving", "listen", f.addr, "tls", f.certs != nil, "probes", f.probesAddr, "redis", s.redis.Addrs, "cluster", s.redis.Cluster,
		"sentinel", s.redis.Master, "namespace", s.bridge.Namespace, "timeout", s.bridge.Timeout.String(),
		"operators", len(s.bridge.OperatorTokens))
	looking, end := context.WithCancel(ctx)
	defer end()
	go inspect(looking, b, m, log)
	for {
		select {
		case err := <-f.served:
			log.Error("stopped serving", "error", err.Error())
			return 1
		case <-hup:
			if f.certs != nil {
				f.certs.reload()
			}
			if s.redisCert != nil {
				s.redisCert.reload()
			}
		case <-ctx.Done():
			return drain(log, b, f, s)
		}
	}
}

// front is what clients and probes connect to.
type front struct {
	addr, probesAddr string
	servers          []*http.Server
	served           chan error
	certs            *watchedTLS // nil in clear text
}

// listen opens the listeners and serves them.
func listen(s settings, b *bridge.Bridge, m *metrics, log *slog.Logger) (*front, error) {
	f := &front{served: make(chan error, 2)}
	seen := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	commands := http.NewServeMux()
	commands.Handle("/", b)
	server := bridge.Server(commands)
	if s.certs.cert != "" {
		var err error
		if f.certs, err = s.certs.toClients(); err != nil {
			return nil, err
		}
		f.certs.log = log
		server.TLSConfig = f.certs.config()
		m.certificate(func() time.Time { return certificateEnd(f.certs.get().Certificates[0].Leaf) })
	}
	var probes *http.Server
	if s.probes == "" {
		commands.Handle("GET /metrics", seen)
	} else {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", seen)
		mux.Handle("GET /healthz", b)
		mux.Handle("GET /readyz", b)
		probes = bridge.Server(mux)
	}
	l, err := net.Listen("tcp", s.listen)
	if err != nil {
		return nil, err
	}
	f.addr = l.Addr().String()
	if probes != nil {
		p, err := net.Listen("tcp", s.probes)
		if err != nil {
			_ = l.Close()
			return nil, err
		}
		f.probesAddr = p.Addr().String()
		f.serve(probes, bridge.Bounded(p, probeConnections), log)
	}
	f.serve(server, bridge.Bounded(l, s.connections), log)
	return f, nil
}

// probeConnections is for load balancers, kubelet and Prometheus; theirs are few.
const probeConnections = 256

func (f *front) serve(server *http.Server, l net.Listener, log *slog.Logger) {
	server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	f.servers = append(f.servers, server)
	go func() {
		if server.TLSConfig != nil {
			f.served <- server.ServeTLS(l, "", "")
		} else {
			f.served <- server.Serve(l)
		}
	}()
}

func certificateEnd(c *x509.Certificate) time.Time {
	if c == nil {
		return time.Unix(0, 0)
	}
	return c.NotAfter
}

// drain serves on while load balancers learn that it is about to stop, then finishes what is in flight.
// The probes are the last to go: whoever watches them should see the end.
func drain(log *slog.Logger, b *bridge.Bridge, f *front, s settings) int {
	log.Info("draining", "for", s.drain.String(), "in_flight", b.InFlight())
	b.Drain()
	<-time.After(s.drain)
	b.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), s.grace)
	defer cancel()
	for i := len(f.servers) - 1; i >= 0; i-- {
		if err := f.servers[i].Shutdown(ctx); err != nil {
			log.Error("requests were still in flight", "error", err.Error(), "in_flight", b.InFlight())
			for _, server := range f.servers {
				_ = server.Close()
			}
			return 1
		}
	}
	log.Info("drained")
	return 0
}

// printACL prints what makes the users that the settings name. The password is shown by its hash only.
func printACL(out io.Writer, s settings) {
	secret := func(password string) string {
		sum := sha256.Sum256([]byte(password))
		return "#" + hex.EncodeToString(sum[:])
	}
	u := bridge.Users{Namespace: s.bridge.Namespace, Cluster: s.redis.Cluster, Name: s.redis.Username, Secret: secret(s.redis.Password)}
	if u.Name == "" {
		u.Name = "emmer"
	}
	fmt.Fprintln(out, u.Redis())
	if s.redis.Master != "" && s.redis.SentinelPassword != "" {
		u.Name, u.Secret = s.redis.SentinelUsername, secret(s.redis.SentinelPassword)
		if u.Name == "" {
			u.Name = "emmer"
		}
		fmt.Fprintln(out, u.Sentinel())
	}
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
