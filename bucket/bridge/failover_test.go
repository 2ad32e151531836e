package bridge_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket/bridge"
)

// connected is a bridge on a topology, with the timeout that it has by default.
func connected(t *testing.T, r bridge.Redis) *served {
	t.Helper()
	c, err := bridge.Connect(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s := serve(t, "", func(o *bridge.Options) { o.Client, o.Timeout = c, bridge.DefaultTimeout })
	eventually(t, 10*time.Second, "ready", func() bool {
		status, _, _ := ask(t, s.h1, s.url, call{method: "GET", path: "/readyz"})
		return status == 200
	})
	return s
}

// TestRedisClusterFailover loses a master under 64 clients: the bridge serves again within a bounded
// time, and nothing is granted or charged that the books and the replication gap don't explain.
func TestRedisClusterFailover(t *testing.T) {
	for _, x := range []struct {
		name     string
		settings []string
		cutFirst bool
		lose     func(*topology)
		check    func(t *testing.T, a account, cut, lost time.Time)
	}{
		{"killed", nil, false, func(x *topology) { x.master.Kill() }, func(t *testing.T, a account, _, lost time.Time) {
			// Replication on one machine lags by far less.
			if a.lostReserves+a.lostSettles > 0 && a.earliest.Before(lost.Add(-200*time.Millisecond)) {
				t.Errorf("lost what was acknowledged %v before the end", lost.Sub(a.earliest))
			}
		}},
		{"hung", nil, false, func(x *topology) { x.master.Pause() }, func(t *testing.T, a account, _, lost time.Time) {
			if a.lostReserves+a.lostSettles > 0 && a.earliest.Before(lost.Add(-200*time.Millisecond)) {
				t.Errorf("lost what was acknowledged %v before the end", lost.Sub(a.earliest))
			}
		}},
		{"killed with its replica cut off", nil, true, func(x *topology) { x.master.Kill() }, func(t *testing.T, a account, cut, lost time.Time) {
			if a.lostReserves+a.lostSettles == 0 {
				t.Error("nothing is lost: was the link cut at all?")
			}
			// An acknowledgement is known a little after it was given.
			if a.earliest.Before(cut) || a.latest.After(lost.Add(200*time.Millisecond)) {
				t.Errorf("lost what was acknowledged from %v to %v after the cut, the gap had %v", a.earliest.Sub(cut), a.latest.Sub(cut), lost.Sub(cut))
			}
		}},
		{"killed with its replica cut off and min-replicas-to-write", []string{"--min-replicas-to-write", "1", "--min-replicas-max-lag", "1"}, true,
			func(x *topology) { x.master.Kill() }, func(t *testing.T, a account, cut, _ time.Time) {
				// What was on its way as the link broke can be lost, nothing that came after.
				if a.lostReserves+a.lostSettles > 0 && a.latest.After(cut.Add(300*time.Millisecond)) {
					t.Errorf("lost what was acknowledged %v after the cut", a.latest.Sub(cut))
				}
			}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := startCluster(t, x.settings...)
			s := connected(t, bridge.Redis{Addrs: c.addrs, Cluster: true})
			l := startLoad(t, s)
			l.grants(10*time.Second, 1000)
			cut := time.Now()
			if x.cutFirst {
				c.cut()
				<-time.After(500*time.Millisecond - time.Since(cut)) // the replication gap that is to be lost
			}
			lost := time.Now()
			x.lose(c)
			if len(x.settings) > 0 {
				// The new master has no replica, and so takes no write, until the old one is back as such.
				r := c.replica.Client()
				eventually(t, 10*time.Second, "promoted", func() bool {
					return strings.Contains(r.Info(context.Background(), "replication").Val(), "role:master")
				})
				c.master.Restart()
			}
			l.grants(15*time.Second, 1000)
			l.exhaust()
			a := l.audit()
			x.check(t, a, cut, lost)
			// node timeout 1 s, an election of up to about 1.5 s
			if l.gap > 5*time.Second {
				t.Errorf("no grant for %v", l.gap)
			}
		})
	}
}

// TestRedisSentinelFailover does the same behind three Sentinels. Hung, the machine of the master is lost
// together with the Sentinel that the bridge is connected to.
func TestRedisSentinelFailover(t *testing.T) {
	for _, x := range []struct {
		name string
		lose func(*testing.T, *topology, []*process)
	}{
		{"killed", func(_ *testing.T, x *topology, _ []*process) { x.master.Kill() }},
		{"hung with a sentinel", func(t *testing.T, x *topology, all []*process) {
			// The one that has a subscriber is the one in use.
			for _, p := range all {
				c := redis.NewClient(&redis.Options{Addr: p.addr})
				list := c.ClientList(context.Background()).Val()
				_ = c.Close()
				if strings.Contains(list, " sub=2 ") {
					if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
						t.Fatal(err)
					}
					x.master.Pause()
					return
				}
			}
			t.Fatal("no sentinel is in use")
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c, sentinels := startSentinels(t, "")
			s := connected(t, bridge.Redis{Addrs: c.addrs, Master: "main"})
			l := startLoad(t, s)
			l.grants(10*time.Second, 1000)
			lost := time.Now()
			x.lose(t, c, sentinels)
			l.grants(15*time.Second, 1000)
			l.exhaust()
			a := l.audit()
			if a.lostReserves+a.lostSettles > 0 && a.earliest.Before(lost.Add(-200*time.Millisecond)) {
				t.Errorf("lost what was acknowledged %v before the end", lost.Sub(a.earliest))
			}
			// down-after 1 s, an election, the promotion
			if l.gap > 6*time.Second {
				t.Errorf("no grant for %v", l.gap)
			}
		})
	}
}
