package bridge_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket/bridge"
	"github.com/emmer-proxy/emmer/bucket/buckettest"
)

func incr(key string) string {
	return `["EVAL","return redis.call('INCR',KEYS[1])","1","` + key + `"]`
}

// TestRedisCluster: commands find their node, a pipeline keeps its order across nodes, and the
// operators' verbs work.
func TestRedisCluster(t *testing.T) {
	x := startCluster(t)
	s := connected(t, bridge.Redis{Addrs: x.addrs[:1], Cluster: true, Timeout: 2 * time.Second})
	for i := range 20 {
		status, body, _ := ask(t, s.h1, s.url, call{path: "/", token: token, body: incr("k" + itoa(i))})
		if status != 200 || body != `{"result":1}` {
			t.Errorf("k%d: %d %s", i, status, body)
		}
	}
	status, body, _ := ask(t, s.h1, s.url, call{path: "/pipeline", token: token,
		body: `[` + incr("k1") + `,` + incr("k2") + `,["EVALSHA","00","1","k3"],` + incr("k1") + `,["EVAL","return 1","2","k1","k2"]]`})
	if status != 200 || !strings.HasPrefix(body, `[{"result":2},{"result":2},{"error":"NOSCRIPT `) || !strings.Contains(body, `,{"result":3},{"error":"CROSSSLOT `) {
		t.Errorf("pipeline: %d %s", status, body)
	}
	if status, body, _ := ask(t, s.h1, s.url, call{path: "/emmer/v1/kill", token: "ann-token", body: `{"scope":"tenant","id":"acme","reason":"test","for":"1h"}`}); status != 200 {
		t.Errorf("kill: %d %s", status, body)
	}
	// One of the others is lost: the flags' node is what readiness is about.
	for _, r := range x.all[:3] {
		if r != x.master {
			r.Kill()
			break
		}
	}
	eventually(t, 5*time.Second, "ready", func() bool {
		status, _, _ := ask(t, s.h1, s.url, call{method: "GET", path: "/readyz"})
		return status == 200
	})
	x.master.Pause()
	eventually(t, 5*time.Second, "not ready", func() bool {
		status, _, _ := ask(t, s.h1, s.url, call{method: "GET", path: "/readyz"})
		return status == 503
	})
}

// move is a slot on its way from one master to another.
type move struct {
	t        *testing.T
	slot     int64
	from, to *redis.Client
	ids      [2]any
	addr     string // of to
}

func startMove(t *testing.T, x *topology) *move {
	t.Helper()
	var target *buckettest.Server
	for _, r := range x.all[:3] {
		if r != x.master {
			target = r
		}
	}
	m := &move{t: t, from: x.master.Client(), to: target.Client(), addr: target.Addr()}
	m.slot = m.do(m.from, "CLUSTER", "KEYSLOT", "{g}").(int64)
	m.ids = [2]any{m.do(m.from, "CLUSTER", "MYID"), m.do(m.to, "CLUSTER", "MYID")}
	m.do(m.to, "CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.ids[0])
	m.do(m.from, "CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.ids[1])
	return m
}

func (m *move) do(c *redis.Client, args ...any) any {
	m.t.Helper()
	v, err := c.Do(context.Background(), args...).Result()
	if err != nil {
		m.t.Fatalf("%v: %v", args, err)
	}
	return v
}

// finish moves the keys, then the slot. It returns how many keys there were.
func (m *move) finish() (moved int) {
	m.t.Helper()
	host, port, _ := net.SplitHostPort(m.addr)
	for {
		keys := m.do(m.from, "CLUSTER", "GETKEYSINSLOT", m.slot, 100).([]any)
		if len(keys) == 0 {
			break
		}
		moved += len(keys)
		m.do(m.from, append([]any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}, keys...)...)
	}
	m.do(m.to, "CLUSTER", "SETSLOT", m.slot, "NODE", m.ids[1])
	m.do(m.from, "CLUSTER", "SETSLOT", m.slot, "NODE", m.ids[1])
	return moved
}

// TestRedisClusterRedirects: ASK and MOVED are followed.
func TestRedisClusterRedirects(t *testing.T) {
	x := startCluster(t)
	s := connected(t, bridge.Redis{Addrs: x.addrs, Cluster: true})
	want := func(key, result string) {
		t.Helper()
		if status, body, _ := ask(t, s.h1, s.url, call{path: "/", token: token, body: incr(key)}); status != 200 || body != `{"result":`+result+`}` {
			t.Errorf("%s: %d %s", key, status, body)
		}
	}
	want("{g}old", "1")
	m := startMove(t, x)
	want("{g}new", "1") // ASK
	want("{g}new", "2")
	if n := m.do(m.to, "CLUSTER", "COUNTKEYSINSLOT", m.slot); n != int64(1) {
		t.Errorf("%v keys on the new node", n)
	}
	want("{g}old", "2")
	status, body, _ := ask(t, s.h1, s.url, call{path: "/pipeline", token: token, body: `[` + incr("{g}new") + `,` + incr("{g}old") + `]`})
	if status != 200 || body != `[{"result":3},{"result":3}]` {
		t.Errorf("pipeline: %d %s", status, body)
	}
	// A call of several keys can run on neither node, which is the caller's to know.
	status, body, _ = ask(t, s.h1, s.url, call{path: "/", token: token, body: `["EVAL","return 1","2","{g}new","{g}old"]`})
	if status != 400 || !strings.HasPrefix(body, `{"error":"TRYAGAIN `) {
		t.Errorf("several keys: %d %s", status, body)
	}
	m.finish()
	want("{g}old", "4") // MOVED
	want("{g}new", "4")
}

// TestRedisClusterResharding moves the slot of all limits while 64 clients use it.
func TestRedisClusterResharding(t *testing.T) {
	x := startCluster(t)
	s := connected(t, bridge.Redis{Addrs: x.addrs, Cluster: true})
	l := startLoad(t, s)
	l.grants(10*time.Second, 1000)
	start := time.Now()
	m := startMove(t, x)
	keys := m.finish()
	t.Logf("%d keys were moved in %v", keys, time.Since(start))
	l.grants(10*time.Second, 500)
	l.exhaust()
	a := l.audit()
	if a.lostReserves+a.lostSettles > 0 {
		t.Errorf("%d reserves and %d settles are lost", a.lostReserves, a.lostSettles)
	}
	for word := range l.faults {
		if word != "TRYAGAIN" {
			t.Errorf("answers were %v", l.faults)
		}
	}
}
