package bridge_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket/bridge"
	"github.com/emmer-proxy/emmer/bucket/buckettest"
)

// TestClientsHaveNoHiddenWays holds go-redis to what New asks of it, as it understood the options.
func TestClientsHaveNoHiddenWays(t *testing.T) {
	const timeout, pool = 300 * time.Millisecond, 7
	connect := func(r bridge.Redis) redis.UniversalClient {
		r.Timeout, r.PoolSize = timeout, pool
		c, err := bridge.Connect(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	for name, dial := range map[string]time.Duration{"server": timeout, "sentinel": 3 * timeout} {
		r := bridge.Redis{Addrs: []string{"127.0.0.1:1"}}
		if name == "sentinel" {
			r.Master = "main"
		}
		o := connect(r).(*redis.Client).Options()
		if o.MaxRetries != 0 || o.DialerRetries != 1 || !o.ContextTimeoutEnabled || o.Protocol != 2 || !o.DisableIdentity {
			t.Errorf("%s: retries %d, dials %d, context %v, protocol %d, identity %v", name, o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled, o.Protocol, !o.DisableIdentity)
		}
		if o.DialTimeout != dial || o.ReadTimeout != timeout || o.WriteTimeout != timeout || o.PoolTimeout != timeout || o.PoolSize != pool || o.PipelinePoolSize >= 0 {
			t.Errorf("%s: %v %v %v %v, %d %d", name, o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout, o.PoolSize, o.PipelinePoolSize)
		}
	}
	o := connect(bridge.Redis{Addrs: []string{"127.0.0.1:1"}, Cluster: true}).(*redis.ClusterClient).Options()
	if o.ReadOnly || o.RouteByLatency || o.RouteRandomly || !o.DisableRoutingPolicies {
		t.Error("a replica may be asked")
	}
	if o.MaxRetries > 0 || o.DialerRetries != 1 || !o.ContextTimeoutEnabled || o.Protocol != 2 || !o.DisableIdentity || o.MaxRedirects != 3 {
		t.Errorf("cluster: retries %d, dials %d, context %v, protocol %d, identity %v, redirects %d", o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled, o.Protocol, !o.DisableIdentity, o.MaxRedirects)
	}
	if o.DialTimeout != timeout || o.ReadTimeout != timeout || o.WriteTimeout != timeout || o.PoolTimeout != timeout || o.PoolSize != pool || o.PipelinePoolSize >= 0 {
		t.Errorf("cluster: %v %v %v %v, %d %d", o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout, o.PoolSize, o.PipelinePoolSize)
	}
}

// TestBodiesAreBounded: many bodies at once are bounded by their sum, whether they say their length or not.
func TestBodiesAreBounded(t *testing.T) {
	r := buckettest.StartServer(t)
	s := serve(t, r.Addr(), func(o *bridge.Options) { o.MaxBody, o.MaxBodies, o.Timeout = 1000, 2500, 10*time.Second })
	body := func(n int) string {
		return `["EVAL","return #ARGV[1]","0","` + strings.Repeat("x", n-33) + `"]`
	}
	send := func(body string, sized bool) (int, string) {
		q, _ := http.NewRequest(http.MethodPost, s.url+"/", strings.NewReader(body))
		if !sized {
			q.ContentLength = -1
		}
		q.Header.Set("Authorization", "Bearer "+token)
		w, err := s.h1.Do(q)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = w.Body.Close() }()
		text := make([]byte, 100)
		n, _ := w.Body.Read(text)
		return w.StatusCode, string(text[:n])
	}
	r.Pause()
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			if status, text := send(body(900-800*i), i == 0); status != 200 { // 900 bytes, and 100 that count as 1000
				t.Errorf("one that fits: %d %s", status, text)
			}
		})
	}
	eventually(t, 5*time.Second, "in flight", func() bool { return s.InFlight() == 2 })
	for _, sized := range []bool{true, false} {
		if status, text := send(body(700), sized); status != 503 || !strings.HasPrefix(text, `{"error":"OVERLOAD `) {
			t.Errorf("one too many: %d %s", status, text)
		}
	}
	r.Resume()
	wg.Wait()
	for range 5 { // nothing is left counted
		if status, text := send(body(1000), true); status != 200 {
			t.Errorf("afterwards: %d %s", status, text)
		}
	}
}

func TestStop(t *testing.T) {
	r := buckettest.StartServer(t)
	s := serve(t, r.Addr(), func(o *bridge.Options) { o.Timeout = 10 * time.Second })
	r.Pause()
	answered := make(chan string, 1)
	go func() {
		_, body, _ := ask(t, s.h1, s.url, call{path: "/", token: token, body: incr("n")})
		answered <- body
	}()
	eventually(t, 5*time.Second, "in flight", func() bool { return s.InFlight() == 1 })
	s.Stop()
	for path, secret := range map[string]string{"/": token, "/pipeline": token, "/emmer/v1/kill": "ann-token"} {
		for _, c := range []*http.Client{s.h1, s.h2} {
			status, body, w := ask(t, c, s.url, call{path: path, token: secret, body: `["PING"]`})
			if status != 503 || !strings.HasPrefix(body, `{"error":"DRAINING `) || c == s.h1 && !w.Close {
				t.Errorf("%s: %d %s", path, status, body)
			}
		}
	}
	if status, _, _ := ask(t, s.h1, s.url, call{method: "GET", path: "/healthz"}); status != 200 {
		t.Errorf("health: %d", status)
	}
	r.Resume()
	if body := <-answered; body != `{"result":1}` {
		t.Errorf("in flight: %s", body)
	}
}

func TestBoundedConnections(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := bridge.Bounded(inner, 2)
	accepted := make(chan net.Conn)
	ended := make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	var open []net.Conn
	for range 3 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if len(open) < 2 {
			open = append(open, <-accepted)
		}
	}
	select {
	case <-accepted:
		t.Error("a third is accepted")
	case <-time.After(50 * time.Millisecond):
	}
	_ = open[0].Close()
	_ = open[0].Close() // frees one slot only
	open = append(open, <-accepted)
	_ = l.Close() // while the acceptor waits for a slot
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	for _, c := range open {
		_ = c.Close()
	}
}

// TestInspect: a Redis that may evict is told of, and not ready where that is asked for.
func TestInspect(t *testing.T) {
	ctx := context.Background()
	r := buckettest.StartServer(t)
	c := r.Client()
	lenient, strict := serve(t, r.Addr(), nil), serve(t, r.Addr(), func(o *bridge.Options) { o.Strict = true })
	check := func(when string, fault bool) {
		t.Helper()
		for _, s := range []*served{lenient, strict} {
			err := s.Inspect(ctx)
			if want := new(bridge.SettingError); errors.As(err, &want) != fault || !fault && err != nil {
				t.Errorf("%s: %v", when, err)
			}
			status, body, _ := ask(t, s.h1, s.url, call{method: "GET", path: "/readyz"})
			if bad := fault && s == strict; (status == 503) != bad || bad && !strings.HasPrefix(body, `{"error":"SETTINGS maxmemory-policy is allkeys-lru`) {
				t.Errorf("%s: %d %s", when, status, body)
			}
		}
	}
	set := func(name, value string) {
		t.Helper()
		if err := c.ConfigSet(ctx, name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	check("at first", false)
	set("maxmemory-policy", "allkeys-lru")
	check("without a maximum", false)
	set("maxmemory", "100mb")
	check("with a maximum", true)
	if err := c.Do(ctx, "ACL", "SETUSER", "default", "-info").Err(); err != nil {
		t.Fatal(err)
	}
	if err := strict.Inspect(ctx); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
		t.Errorf("without the right: %v", err)
	}
	if status, _, _ := ask(t, strict.h1, strict.url, call{method: "GET", path: "/readyz"}); status != 503 {
		t.Error("what is not known undoes what was known")
	}
	if err := c.Do(ctx, "ACL", "SETUSER", "default", "+info").Err(); err != nil {
		t.Fatal(err)
	}
	set("maxmemory-policy", "noeviction")
	check("repaired", false)
}
