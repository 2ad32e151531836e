package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket/buckettest"
	"github.com/emmer-proxy/emmer/bucket/script"
	"github.com/emmer-proxy/emmer/hostsim/envoy"
	"github.com/emmer-proxy/emmer/hostsim/redisgw"
	"github.com/emmer-proxy/emmer/hostsim/upstream"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/internal/wasmbuild"
)

// logFormat makes the access log of the stands' listeners: the flat object that the filter leaves.
const logFormat = "%RESPONSE_CODE% %RESPONSE_FLAGS% %FILTER_STATE(wasm.emmer:PLAIN)%"

// site is one listener with its configuration, provider and namespace in the shared store.
type site struct {
	name      string
	hold      string        // pair or flag
	closer    bool          // the entry before the HTTP server is there too
	limits    string        // JSON of the limits section
	more      string        // further sections, each with a comma behind
	identity  string        // further identities, each with a comma before it
	timeout   string        // of the store; "" = 2s
	idle      time.Duration // stream_idle_timeout; 0 = 60 s
	whole     time.Duration // request_timeout; 0 = none
	namespace string        // in the store; "" = the name
	shard     string        // of the store; "" = none
	provider  *upstream.Server
	retryOn   string         // retry_on of its route, twice
	before    []envoy.Filter // in front of the first entry
	behind    []envoy.Filter // behind the last one
	config    *config.Compiled
}

// space is the site's namespace in the store.
func (s *site) space() string {
	if s.namespace != "" {
		return s.namespace
	}
	return s.name
}

// stand is real Envoys in front of scripted providers, with one bridge on a real Redis.
type stand struct {
	t      *testing.T
	server *buckettest.Server
	redis  redis.UniversalClient // past the bridge
	bridge *redisgw.Gateway
	envoys []*envoy.Envoy
	sites  map[string]*site
	client *http.Client
}

func (s *site) json() string {
	timeout := s.timeout
	if timeout == "" {
		timeout = "2s"
	}
	return fmt.Sprintf(`{
		"version": 1, "currency": "EUR",
		"store": {"cluster": "bridge", "token": "token", "timeout": %q, "namespace": %q, "shard": %q},
		"hold": {"mode": %q},
		"identity": {"key": {"header": "authorization", "strip": "Bearer"}%s},
		"models": {"m": {"tokenizer": "o200k_base", "max_output": 100000, "default_output": 500, "price": {"input": "1", "cached_input": "0.5", "output": "2"}}},
		%s
		"limits": %s}`, timeout, s.space(), cmp.Or(s.shard, "none"), s.hold, s.identity, s.more, s.limits)
}

// newStand starts everything: workers threads in each of n Envoys, which share the store and the
// providers.
func newStand(t *testing.T, n, workers int, sites ...*site) *stand {
	t.Helper()
	return newStandWith(t, wasmbuild.Path(t), nil, n, workers, sites...)
}

// newStandWith is newStand with a filter and settings of Redis of the caller's own.
func newStandWith(t *testing.T, wasm string, redisArgs []string, n, workers int, sites ...*site) *stand {
	t.Helper()
	server := buckettest.StartServer(t, redisArgs...)
	st := newStandOver(t, wasm, redisgw.Options{RedisAddr: server.Addr(), Timeout: 500 * time.Millisecond}, n, workers, sites...)
	st.server, st.redis = server, server.Client()
	return st
}

// newStandOver is newStand with a filter and a Redis of the caller's own.
func newStandOver(t *testing.T, wasm string, over redisgw.Options, n, workers int, sites ...*site) *stand {
	t.Helper()
	st := &stand{t: t, sites: map[string]*site{}}
	var err error
	if st.bridge, err = redisgw.Start(over); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.bridge.Close)
	st.redis = st.bridge.Client()
	o := envoy.Options{Concurrency: workers, Clusters: []envoy.Cluster{{Name: "bridge", Addr: st.bridge.Addr()}}}
	for _, s := range sites {
		if s.config, err = config.Parse([]byte(s.json()), nil); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if s.provider == nil {
			if s.provider, err = upstream.Start(nil); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.provider.Close() })
		}
		st.sites[s.name] = s
		entry := func(root string) envoy.Filter {
			return envoy.Filter{Wasm: &envoy.Wasm{Name: root, RootID: root, File: wasm, Config: []byte(s.json()), AllowOnHeadersStop: s.hold == "flag"}}
		}
		l := envoy.Listener{Name: s.name, Filters: append(slices.Clone(s.before), entry("emmer")), AccessLog: logFormat, StreamIdleTimeout: s.idle, RequestTimeout: s.whole,
			Routes: []envoy.Route{{Cluster: s.name, RetryOn: s.retryOn, Retries: 2}}}
		if s.closer {
			l.Network = append(l.Network, *entry("emmer.closer").Wasm)
		}
		if s.hold == "pair" {
			l.Filters = append(l.Filters, entry("emmer.gate"))
		}
		l.Filters = append(l.Filters, s.behind...)
		o.Listeners = append(o.Listeners, l)
		o.Clusters = append(o.Clusters, envoy.Cluster{Name: s.name, Addr: s.provider.Addr()})
	}
	for range n {
		e, err := envoy.Start(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Stop)
		st.envoys = append(st.envoys, e)
	}
	st.client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 128, MaxConnsPerHost: 0}}
	t.Cleanup(st.client.CloseIdleConnections)
	t.Cleanup(func() {
		if t.Failed() {
			for i, e := range st.envoys {
				t.Logf("envoy %d:\n%s", i, tail(e.Logs(), 60))
			}
		}
	})
	return st
}

func tail(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

// call sends one chat call through an Envoy, with further headers, and reads the whole answer.
func (st *stand) call(n int, site, key, body string, headers ...string) answer {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+st.envoys[n].Addr(site)+"/v1/chat/completions", bytes.NewReader([]byte(body)))
	if err != nil {
		return answer{err: err}
	}
	req.Header.Set("authorization", "Bearer "+key)
	req.Header.Set("content-type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := st.client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(b), err}
}

// store reads what stands in a site's namespace.
func (st *stand) store(name string) store {
	s := st.sites[name]
	return store{st.redis, s.space(), s.config}
}

// level reads how a limit of a site stands for a key, by the store itself.
func (st *stand) level(name, limit, key string) script.Level {
	st.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	l, err := st.store(name).level(ctx, limit, map[string]string{"key": key})
	if err != nil {
		st.t.Fatal(err)
	}
	return l
}

// eventually polls until f has nothing to complain of, for at most d.
func eventually(t *testing.T, d time.Duration, f func() string) {
	t.Helper()
	if wrong := complaint(d, f); wrong != "" {
		t.Fatalf("still after %v: %s", d, wrong)
	}
}

// complaint is what f still complains of after d, for other goroutines than the test's own.
func complaint(d time.Duration, f func() string) string {
	deadline := time.After(d)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		wrong := f()
		if wrong == "" {
			return ""
		}
		select {
		case <-deadline:
			return wrong
		case <-tick.C:
		}
	}
}

// records counts a site's reservations that are held and those that were settled.
func (st *stand) records(name string) (held, settled int) {
	st.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	held, settled, err := st.store(name).records(ctx)
	if err != nil {
		st.t.Fatal(err)
	}
	return held, settled
}

// metrics are the filter's counters in one Envoy.
func (st *stand) metrics(n int) map[string]int64 {
	st.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	m, err := st.envoys[n].Metrics(ctx)
	if err != nil {
		st.t.Fatal(err)
	}
	return m
}
