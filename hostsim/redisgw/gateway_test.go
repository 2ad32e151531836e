package redisgw

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/bucket/buckettest"
)

func begin(t *testing.T, o Options) *Gateway {
	t.Helper()
	g, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// clients speak both versions of HTTP.
func clients(t *testing.T) map[string]*http.Client {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	h1, h2 := &http.Transport{MaxIdleConnsPerHost: 100}, &http.Transport{Protocols: protocols}
	t.Cleanup(h1.CloseIdleConnections)
	t.Cleanup(h2.CloseIdleConnections)
	return map[string]*http.Client{"h1": {Transport: h1}, "h2c": {Transport: h2}}
}

func post(ctx context.Context, c *http.Client, g *Gateway, path, token, body string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL()+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	w, err := c.Do(r)
	if err != nil {
		return 0, "", err
	}
	b, err := io.ReadAll(w.Body)
	return w.StatusCode, string(b), errors.Join(err, w.Body.Close())
}

func want(t *testing.T, c *http.Client, g *Gateway, body string, status int, begins string) {
	t.Helper()
	got, text, err := post(context.Background(), c, g, "/", "token", body)
	if err != nil || got != status || !strings.HasPrefix(text, begins) {
		t.Errorf("%s: got %d %s %v, want %d %s", body, got, text, err, status, begins)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("never: %s", what)
		}
	}
}

const incr = `["EVAL","return redis.call('INCR',KEYS[1])","1","n"]`

func TestServesAndCounts(t *testing.T) {
	for name, o := range map[string]Options{"embedded": {}, "given": {RedisAddr: buckettest.StartRedis(t)}} {
		t.Run(name, func(t *testing.T) {
			o.Token, o.OperatorToken, o.Namespace = "tok", "op", "ns"
			g := begin(t, o)
			n := 0
			for proto, c := range clients(t) {
				for _, x := range []struct {
					path, token, body string
					status            int
					begins            string
				}{
					{"/", "tok", `["PING"]`, 200, `{"result":"PONG"}`},
					{"/", "tok", `["eval","return {1,ARGV[1]}","0","x"]`, 200, `{"result":[1,"x"]}`},
					{"/", "tok", `["EVALSHA","00","0"]`, 400, `{"error":"NOSCRIPT `},
					{"/pipeline", "tok", `[["PING"],["PING"]]`, 200, `[{"result":"PONG"},{"result":"PONG"}]`},
					{"/", "no", `["PING"]`, 401, `{"error":`},
					{"/", "tok", `["FLUSHALL"]`, 403, `{"error":`},
					{"/emmer/v1/kill", "op", `{"scope":"team","id":"a","reason":"r"}`, 200, `{"result":`},
				} {
					status, text, err := post(context.Background(), c, g, x.path, x.token, x.body)
					if err != nil || status != x.status || !strings.HasPrefix(text, x.begins) {
						t.Errorf("%s %s: %d %s %v", proto, x.body, status, text, err)
					}
				}
				n += 6
				if g.Requests() != n || g.Commands("EVAL", "EVALSHA") != n/3 || g.Commands("PING") != n/2 {
					t.Errorf("%s: %d requests, %d scripts, %d pings", proto, g.Requests(), g.Commands("EVAL", "EVALSHA"), g.Commands("PING"))
				}
			}
			if v, err := g.Client().HGet(context.Background(), "ns:1:{g}:ctl", "team:a").Result(); err != nil || v != "0|operator|r" {
				t.Errorf("flag: %q %v", v, err)
			}
			if g.Requests() != n {
				t.Error("a probe was counted")
			}
		})
	}
}

func TestKilledBridgeComesBackOnItsPort(t *testing.T) {
	g := begin(t, Options{})
	for proto, c := range clients(t) {
		url := g.URL()
		want(t, c, g, `["PING"]`, 200, `{"result":"PONG"}`)
		g.KillBridge()
		if status, text, err := post(context.Background(), c, g, "/", "token", `["PING"]`); err == nil {
			t.Errorf("%s: answered %d %s", proto, status, text)
		}
		if err := g.RestartBridge(); err != nil {
			t.Fatal(err)
		}
		if g.URL() != url {
			t.Errorf("moved from %s to %s", url, g.URL())
		}
		want(t, c, g, `["PING"]`, 200, `{"result":"PONG"}`)
	}
}

// TestAStalledBridgeRunsLate: what a stopped process has in its socket it runs when it goes on.
func TestAStalledBridgeRunsLate(t *testing.T) {
	for proto, c := range clients(t) {
		g := begin(t, Options{})
		g.Stall(true)
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		if status, text, err := post(ctx, c, g, "/", "token", incr); err == nil {
			t.Errorf("%s: answered %d %s", proto, status, text)
		}
		cancel()
		if g.Requests() != 1 {
			t.Errorf("%s: %d requests", proto, g.Requests())
		}
		if n := g.Client().Exists(context.Background(), "n").Val(); n != 0 {
			t.Errorf("%s: has run already", proto)
		}
		g.Stall(false)
		eventually(t, "it runs late", func() bool { return g.Client().Get(context.Background(), "n").Val() == "1" })
		want(t, c, g, incr, 200, `{"result":2}`)
	}
}

func TestDroppedReplyHasRun(t *testing.T) {
	for proto, c := range clients(t) {
		g := begin(t, Options{})
		g.DropReply(2)
		for range 2 {
			if status, text, err := post(context.Background(), c, g, "/", "token", incr); err == nil {
				t.Errorf("%s: answered %d %s", proto, status, text)
			}
		}
		// Each that was seen has run, once.
		want(t, c, g, incr, 200, fmt.Sprintf(`{"result":%d}`, g.Requests()+1))
	}
}

func TestFlushScripts(t *testing.T) {
	for name, o := range map[string]Options{"embedded": {}, "given": {RedisAddr: buckettest.StartRedis(t)}} {
		g := begin(t, o)
		sha, err := g.Client().ScriptLoad(context.Background(), "return 7").Result()
		if err != nil {
			t.Fatal(err)
		}
		c := clients(t)["h1"]
		want(t, c, g, `["EVALSHA","`+sha+`","0"]`, 200, `{"result":7}`)
		if err := g.FlushScripts(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want(t, c, g, `["EVALSHA","`+sha+`","0"]`, 400, `{"error":"NOSCRIPT `)
	}
}

func TestDrivenClockMovesTimeAndTTLs(t *testing.T) {
	at := time.Date(2026, 3, 29, 0, 59, 30, 0, time.UTC)
	g := begin(t, Options{Start: at})
	c := clients(t)["h1"]
	clock := func(want time.Time) {
		t.Helper()
		v, err := g.Client().Time(context.Background()).Result()
		if err != nil || !v.Equal(want) || !g.Now().Equal(want) {
			t.Errorf("redis says %v, gateway %v, want %v, %v", v, g.Now(), want, err)
		}
	}
	clock(at)
	want(t, c, g, `["EVAL","redis.call('SET','k','v','PX',1000) return redis.call('TIME')","1","k"]`, 200, fmt.Sprintf(`{"result":["%d","0"]}`, at.Unix()))
	if err := g.Advance(999 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	clock(at.Add(999 * time.Millisecond))
	if n := g.Client().Exists(context.Background(), "k").Val(); n != 1 {
		t.Error("ended too early")
	}
	if err := g.Advance(2 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if n := g.Client().Exists(context.Background(), "k").Val(); n != 0 {
		t.Error("has not ended")
	}
	if err := g.SetTime(at.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	clock(at.Add(-time.Hour))
}

func TestRealClockMovesTimeAndTTLs(t *testing.T) {
	g := begin(t, Options{})
	ctx := context.Background()
	before := time.Now().Truncate(time.Microsecond)
	v, err := g.Client().Time(ctx).Result()
	if err != nil || v.Before(before) || v.After(time.Now()) {
		t.Errorf("%v, not after %v: %v", v, before, err)
	}
	if err := g.Client().Set(ctx, "long", "v", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := g.Client().Set(ctx, "short", "v", 100*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the TTL ends", func() bool { return g.Client().Exists(ctx, "short").Val() == 0 })
	if took := time.Since(start); took < 100*time.Millisecond-2*pump {
		t.Errorf("ended after %v", took)
	}
	if ttl := g.Client().PTTL(ctx, "long").Val(); ttl > time.Hour-80*time.Millisecond || ttl < 59*time.Minute {
		t.Errorf("the other's TTL is %v", ttl)
	}
	if err := errors.Join(g.SetTime(start), g.Advance(1)); !errors.Is(err, ErrNotDriven) {
		t.Error("a clock that follows the real one was driven")
	}
}

func TestFaultsOfTheEmbeddedRedis(t *testing.T) {
	g := begin(t, Options{Timeout: 300 * time.Millisecond})
	c := clients(t)["h1"]
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want(t, c, g, incr, 200, `{"result":1}`)
	must(g.FailRedis("LOADING Redis is loading the dataset in memory"))
	want(t, c, g, incr, 400, `{"error":"LOADING `)
	must(g.FailRedis(""))
	want(t, c, g, incr, 200, `{"result":2}`)

	must(g.StallRedis(true))
	start := time.Now()
	want(t, c, g, incr, 503, `{"error":"TIMEOUT `)
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("answered after %v", took)
	}
	must(g.StallRedis(false))
	eventually(t, "it ran late", func() bool { return g.Client().Get(context.Background(), "n").Val() == "3" })
	want(t, c, g, incr, 200, `{"result":4}`)

	must(g.StallRedis(true))
	want(t, c, g, incr, 503, `{"error":"TIMEOUT `)
	must(g.KillRedis())
	want(t, c, g, incr, 503, `{"error":"NOLINK `)
	must(g.RestartRedis())
	eventually(t, "served again", func() bool {
		status, _, _ := post(context.Background(), c, g, "/", "token", `["PING"]`)
		return status == 200
	})
	want(t, c, g, incr, 200, `{"result":5}`) // the held one never ran
	must(g.StallRedis(true))
	want(t, c, g, incr, 503, `{"error":"TIMEOUT `)
}

func TestOnlyTheEmbeddedRedisHasThese(t *testing.T) {
	addr := buckettest.StartRedis(t)
	g := begin(t, Options{RedisAddr: addr})
	for i, err := range []error{g.StallRedis(true), g.FailRedis("ERR x"), g.KillRedis(), g.RestartRedis()} {
		if !errors.Is(err, ErrNotEmbedded) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := Start(Options{RedisAddr: addr, Start: time.Unix(1, 0)}); !errors.Is(err, ErrNotEmbedded) {
		t.Errorf("start: %v", err)
	}
	if g.Embedded() != nil || !errors.Is(g.Advance(1), ErrNotDriven) {
		t.Error("embedded after all")
	}
}

func TestCloseLetsHeldRequestsGo(t *testing.T) {
	for proto, c := range clients(t) {
		g := begin(t, Options{})
		g.Stall(true)
		answered := make(chan error, 1)
		go func() {
			_, _, err := post(context.Background(), c, g, "/", "token", incr)
			answered <- err
		}()
		eventually(t, "held", func() bool { return g.Requests() == 1 })
		g.Close()
		if err := <-answered; err == nil {
			t.Errorf("%s: was answered", proto)
		}
	}
}

// TestNoReplyReachesAnotherCaller is the bridge's test of the same name on the embedded Redis.
func TestNoReplyReachesAnotherCaller(t *testing.T) {
	g := begin(t, Options{Timeout: 50 * time.Millisecond})
	var own, aborted, unavailable atomic.Int64
	patience := time.Now().Add(10 * time.Second)
	enough := func() bool {
		return own.Load() > 500 && aborted.Load() > 100 && unavailable.Load() > 20 || time.Now().After(patience)
	}
	var wg sync.WaitGroup
	for proto, c := range clients(t) {
		for n := range 20 {
			wg.Go(func() {
				for i := 0; !enough(); i++ {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+(n*31+i*7)%120)*time.Millisecond)
					mine := fmt.Sprintf("%s-%d-%d", proto, n, i)
					status, text, err := post(ctx, c, g, "/", "token", `["EVAL","return ARGV[1]","0","`+mine+`"]`)
					cancel()
					switch {
					case err != nil:
						aborted.Add(1)
					case status == 503:
						unavailable.Add(1)
					case text == `{"result":"`+mine+`"}`:
						own.Add(1)
					default:
						t.Errorf("sent %s, got %d %s", mine, status, text)
					}
				}
			})
		}
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	tick := time.NewTicker(60 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
			_ = g.StallRedis(n%3 == 0)
			continue
		case <-done:
		}
		break
	}
	t.Logf("own %d, aborted %d, unavailable %d", own.Load(), aborted.Load(), unavailable.Load())
	if own.Load() < 200 || aborted.Load() < 50 || unavailable.Load() < 5 {
		t.Error("the test did not do what it is for")
	}
}
