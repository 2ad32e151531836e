package bridge_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/bucket/bridge"
	"github.com/emmer-proxy/emmer/bucket/buckettest"
)

func ping(t *testing.T, s *served) (int, string) {
	t.Helper()
	status, body, _ := ask(t, s.h1, s.url, call{path: "/", token: token, body: `["PING"]`})
	return status, body
}

func TestStoppedRedisCostsOneTimeoutAndIsBackAtOnce(t *testing.T) {
	const timeout = 200 * time.Millisecond
	r := buckettest.StartServer(t)
	s := serve(t, r.Addr(), func(o *bridge.Options) { o.Timeout = timeout })
	eventually(t, 5*time.Second, "served", func() bool { status, _ := ping(t, s); return status == 200 })
	r.Pause()
	// More calls than the pool has connections: whoever waits for one is bounded too.
	var wg sync.WaitGroup
	for range 2 * bridge.DefaultPoolSize {
		wg.Go(func() {
			start := time.Now()
			status, body := ping(t, s)
			took := time.Since(start)
			if status != 503 || !strings.HasPrefix(body, `{"error":"TIMEOUT `) || took > 10*timeout {
				t.Errorf("stopped: %d %s after %v", status, body, took)
			}
		})
	}
	wg.Wait()
	if status, body, _ := ask(t, s.h1, s.url, call{path: "/pipeline", token: token, body: `[["PING"],["PING"]]`}); status != 503 || !strings.HasPrefix(body, `{"error":"TIMEOUT `) {
		t.Errorf("pipeline while stopped: %d %s", status, body)
	}
	if status, _, _ := ask(t, s.h1, s.url, call{method: "GET", path: "/readyz"}); status != 503 {
		t.Errorf("readiness while stopped: %d", status)
	}
	if status, _, _ := ask(t, s.h1, s.url, call{method: "GET", path: "/healthz"}); status != 200 {
		t.Errorf("health while stopped: %d", status)
	}
	r.Resume()
	start := time.Now()
	eventually(t, 5*time.Second, "served again", func() bool { status, _ := ping(t, s); return status == 200 })
	if took := time.Since(start); took > time.Second {
		t.Errorf("served again only after %v", took)
	} else {
		t.Logf("served again after %v", took)
	}
	eventually(t, 5*time.Second, "ready again", func() bool {
		status, _, _ := ask(t, s.h1, s.url, call{method: "GET", path: "/readyz"})
		return status == 200
	})
}

func TestKilledRedisIsFoundAgain(t *testing.T) {
	r := buckettest.StartServer(t)
	s := serve(t, r.Addr(), func(o *bridge.Options) { o.Timeout = 200 * time.Millisecond })
	eventually(t, 5*time.Second, "served", func() bool { status, _ := ping(t, s); return status == 200 })
	r.Kill()
	for i := range 3 * bridge.DefaultPoolSize {
		start := time.Now()
		status, body := ping(t, s)
		if status != 503 || time.Since(start) > time.Second {
			t.Fatalf("call %d: %d %s after %v", i, status, body, time.Since(start))
		}
	}
	if _, body := ping(t, s); !strings.HasPrefix(body, `{"error":"NOLINK `) {
		t.Errorf("killed: %s", body)
	}
	r.Restart()
	eventually(t, 5*time.Second, "served again", func() bool { status, _ := ping(t, s); return status == 200 })
}

func TestRedisErrorsOfALoadingOrLockedServerAreNotReady(t *testing.T) {
	r := buckettest.StartServer(t)
	if err := r.Client().ConfigSet(context.Background(), "requirepass", "secret").Err(); err != nil {
		t.Fatal(err)
	}
	s := serve(t, r.Addr(), nil)
	if status, body := ping(t, s); status != 400 || !strings.HasPrefix(body, `{"error":"NOAUTH `) {
		t.Errorf("command: %d %s", status, body)
	}
	if status, body, _ := ask(t, s.h1, s.url, call{method: "GET", path: "/readyz"}); status != 503 || !strings.HasPrefix(body, `{"error":"NOAUTH `) {
		t.Errorf("readiness: %d %s", status, body)
	}
}

// TestRedisReplyLostIsNotAskedForAgain cuts the link after the command and before its reply, to one
// server, to a master behind Sentinels, and to a Cluster, where go-redis repeats a command of its own
// accord unless told not to.
func TestRedisReplyLostIsNotAskedForAgain(t *testing.T) {
	for _, kind := range []string{"server", "sentinel", "cluster"} {
		t.Run(kind, func(t *testing.T) {
			var cut atomic.Bool
			var to atomic.Value
			addr := relay(t, &to, &cut)
			_, port, _ := net.SplitHostPort(addr)
			conf := bridge.Redis{Addrs: []string{addr}, Timeout: 2 * time.Second}
			var settings []string
			if kind == "cluster" {
				conf.Cluster = true
				settings = []string{"--cluster-enabled", "yes", "--cluster-port", freePort(t), "--cluster-announce-ip", "127.0.0.1", "--cluster-announce-port", port}
			}
			r := buckettest.StartServer(t, settings...)
			to.Store(r.Addr())
			switch kind {
			case "cluster":
				if err := r.Client().ClusterAddSlotsRange(context.Background(), 0, 16383).Err(); err != nil {
					t.Fatal(err)
				}
			case "sentinel":
				conf.Addrs, conf.Master = []string{startSentinel(t, addr).addr}, "main"
			}
			c, err := bridge.Connect(conf)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			s := serve(t, "", func(o *bridge.Options) { o.Client = c })
			eventually(t, 10*time.Second, "served", func() bool {
				status, _, _ := ask(t, s.h1, s.url, call{path: "/", token: token, body: incr("n")})
				return status == 200
			})
			before, err := r.Client().Get(context.Background(), "n").Int()
			if err != nil {
				t.Fatal(err)
			}
			cut.Store(true)
			for path, body := range map[string]string{"/": incr("n"), "/pipeline": "[" + incr("n") + "]"} {
				if status, text, _ := ask(t, s.h1, s.url, call{path: path, token: token, body: body}); status != 503 {
					t.Errorf("%s: %d %s", path, status, text)
				}
			}
			cut.Store(false)
			if n, err := r.Client().Get(context.Background(), "n").Int(); err != nil || n != before+2 {
				t.Errorf("two calls ran %d times, %v", n-before, err)
			}
			eventually(t, 10*time.Second, "served again", func() bool { status, _ := ping(t, s); return status == 200 })
		})
	}
}

// relay passes bytes both ways; while cut, it passes requests and drops the connection on a reply
// to anything but the first line of a connection (HELLO).
func relay(t *testing.T, to *atomic.Value, cut *atomic.Bool) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", to.Load().(string))
			if err != nil {
				_ = down.Close()
				continue
			}
			go func() {
				_, _ = io.Copy(up, down)
				_ = up.Close()
			}()
			go func() {
				defer func() { _ = down.Close() }()
				replies := bufio.NewReader(up)
				buf := make([]byte, 64<<10)
				for {
					n, err := replies.Read(buf)
					hello := strings.Contains(string(buf[:n]), "proto")
					if err != nil || cut.Load() && !hello {
						_ = up.Close()
						return
					}
					_, _ = down.Write(buf[:n])
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestInFlightIsBounded(t *testing.T) {
	const most = 4
	r := buckettest.StartServer(t)
	s := serve(t, r.Addr(), func(o *bridge.Options) { o.MaxInFlight = most; o.Timeout = 5 * time.Second })
	r.Pause()
	var wg sync.WaitGroup
	for range most {
		wg.Go(func() {
			if status, body := ping(t, s); status != 200 {
				t.Errorf("one that was let in: %d %s", status, body)
			}
		})
	}
	eventually(t, 4*time.Second, "all slots taken", func() bool { return s.InFlight() == most })
	status, body := ping(t, s)
	if status != 503 || !strings.HasPrefix(body, `{"error":"OVERLOAD `) {
		t.Errorf("one more: %d %s", status, body)
	}
	if status, _, _ := ask(t, s.h1, s.url, call{method: "GET", path: "/emmer/v1/kills", token: "ann-token"}); status != 503 {
		t.Errorf("an operator's: %d", status)
	}
	if status, _, _ := ask(t, s.h1, s.url, call{method: "GET", path: "/healthz"}); status != 200 {
		t.Errorf("health: %d", status)
	}
	r.Resume()
	wg.Wait()
	eventually(t, 4*time.Second, "all slots free", func() bool { return s.InFlight() == 0 })
}

// TestAnAbortedClientsCommandStillRuns: a command is not tied to its client, whether it has been
// sent or still waits for a connection, so it runs to its end and its connection goes back whole.
func TestAnAbortedClientsCommandStillRuns(t *testing.T) {
	r := buckettest.StartServer(t)
	c, err := bridge.Connect(bridge.Redis{Addrs: []string{r.Addr()}, Timeout: 5 * time.Second, PoolSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s := serve(t, "", func(o *bridge.Options) { o.Client, o.Timeout = c, 5*time.Second })
	if status, body := ping(t, s); status != 200 {
		t.Fatal(status, body)
	}
	for proto, c := range map[string]*http.Client{"h1": s.h1, "h2": s.h2} {
		r.Pause()
		gone := s.gone.Load()
		ctx, abort := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for n := range 3 { // one is sent, two wait for the only connection
			wg.Go(func() {
				q, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/", strings.NewReader(`["EVAL","return redis.call('INCR',KEYS[1])","1","`+proto+`"]`))
				q.Header.Set("Authorization", "Bearer "+token)
				if _, err := c.Do(q); err == nil {
					t.Errorf("%s %d: was answered", proto, n)
				}
			})
		}
		eventually(t, 4*time.Second, "in flight", func() bool { return s.InFlight() == 3 })
		abort()
		wg.Wait()
		eventually(t, 4*time.Second, "the server sees them leave", func() bool { return s.gone.Load() == gone+3 })
		r.Resume()
		eventually(t, 4*time.Second, "slots free", func() bool { return s.InFlight() == 0 })
		if v, err := r.Client().Get(context.Background(), proto).Int(); err != nil || v != 3 {
			t.Errorf("%s: of 3 ran %d, %v", proto, v, err)
		}
	}
}

func TestDrain(t *testing.T) {
	r := buckettest.StartServer(t)
	s := serve(t, r.Addr(), func(o *bridge.Options) { o.Timeout = 5 * time.Second })
	if status, body, w := ask(t, s.h1, s.url, call{method: "GET", path: "/readyz"}); status != 200 || w.Close {
		t.Errorf("before: %d %s", status, body)
	}
	s.Drain()
	status, body, w := ask(t, s.h1, s.url, call{method: "GET", path: "/readyz"})
	if status != 503 || !strings.HasPrefix(body, `{"error":"DRAINING `) || !w.Close {
		t.Errorf("readiness: %d %s, close %v", status, body, w.Close)
	}
	for _, c := range []*http.Client{s.h1, s.h2} {
		opened := s.opened.Load()
		for range 3 { // each is served, on a connection that ends with it
			if status, body, _ := ask(t, c, s.url, call{path: "/", token: token, body: `["PING"]`}); status != 200 {
				t.Errorf("command: %d %s", status, body)
			}
		}
		if n := s.opened.Load() - opened; n < 2 {
			t.Errorf("three requests took %d connections", n)
		}
	}
}

// TestReadinessAsksSeldom counts the commands that a flood of probes costs.
func TestReadinessAsksSeldom(t *testing.T) {
	r := buckettest.StartServer(t)
	s := serve(t, r.Addr(), nil)
	start := time.Now()
	for range 200 {
		ask(t, s.h1, s.url, call{method: "GET", path: "/readyz"})
	}
	most := int(time.Since(start)/(250*time.Millisecond)) + 2
	stats, err := r.Client().InfoMap(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	calls := stats["Commandstats"]["cmdstat_hmget"]
	n := 0
	for _, c := range strings.TrimPrefix(strings.SplitN(calls, ",", 2)[0], "calls=") {
		n = n*10 + int(c-'0')
	}
	if n < 1 || n > most {
		t.Errorf("%d probes in %v (%s)", n, time.Since(start), calls)
	}
}
