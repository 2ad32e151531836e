package bridge_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket/buckettest"
)

// topology is several servers on loopback. The keys of the tests are on master, whose replica is replica.
type topology struct {
	t               *testing.T
	addrs           []string // for bridge.Redis
	master, replica *buckettest.Server
	all             []*buckettest.Server
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// startCluster starts three masters and a replica of each.
func startCluster(t *testing.T, settings ...string) *topology {
	t.Helper()
	const masters, slots = 3, 16384
	ctx := context.Background()
	x := &topology{t: t}
	var clients []*redis.Client
	var buses []string
	do := func(i int, args ...any) any {
		t.Helper()
		v, err := clients[i].Do(ctx, args...).Result()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return v
	}
	for i := range 2 * masters {
		bus := freePort(t) // the usual one, 10,000 above the other, may be above 65535
		s := buckettest.StartServer(t, append([]string{"--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "1000",
			"--repl-diskless-sync-delay", "0"}, settings...)...)
		x.all, clients, buses = append(x.all, s), append(clients, s.Client()), append(buses, bus)
		x.addrs = append(x.addrs, s.Addr())
		do(i, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
	}
	for i, addr := range x.addrs {
		if i > 0 {
			host, port, _ := net.SplitHostPort(addr)
			do(0, "CLUSTER", "MEET", host, port, buses[i])
		}
	}
	for i := range masters {
		do(i, "CLUSTER", "ADDSLOTSRANGE", i*slots/masters, (i+1)*slots/masters-1)
	}
	for i := range x.all {
		eventually(t, 15*time.Second, "the nodes know each other", func() bool {
			v := clients[i].ClusterInfo(ctx).Val()
			return strings.Contains(v, "cluster_known_nodes:6") && strings.Contains(v, "cluster_state:ok")
		})
	}
	for i := range masters {
		do(masters+i, "CLUSTER", "REPLICATE", do(i, "CLUSTER", "MYID"))
	}
	for i := range x.all {
		eventually(t, 15*time.Second, "replicas are in step and known to all", func() bool {
			if i >= masters && !strings.Contains(clients[i].Info(ctx, "replication").Val(), "master_link_status:up") {
				return false
			}
			return strings.Count(clients[i].ClusterNodes(ctx).Val(), "slave ") == masters
		})
	}
	at := int(do(0, "CLUSTER", "KEYSLOT", "{g}").(int64)) * masters / slots
	x.master, x.replica = x.all[at], x.all[masters+at]
	x.replicate()
	return x
}

// startSentinels starts a master, a replica and three Sentinels that watch them as "main".
func startSentinels(t *testing.T, monitored string, settings ...string) (x *topology, sentinels []*process) {
	t.Helper()
	settings = append([]string{"--repl-diskless-sync-delay", "0"}, settings...)
	x = &topology{t: t, master: buckettest.StartServer(t, settings...)}
	host, port, _ := net.SplitHostPort(x.master.Addr())
	x.replica = buckettest.StartServer(t, append(settings, "--replicaof", host+" "+port)...)
	x.all = []*buckettest.Server{x.master, x.replica}
	c := x.replica.Client()
	eventually(t, 10*time.Second, "replica in step", func() bool {
		return strings.Contains(c.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	x.replicate()
	if monitored == "" {
		monitored = x.master.Addr()
	}
	for range 3 {
		p := startSentinel(t, monitored)
		sentinels, x.addrs = append(sentinels, p), append(x.addrs, p.addr)
	}
	for _, p := range sentinels {
		eventually(t, 15*time.Second, "the sentinels know each other and the replica", func() bool {
			m, err := p.client.Master(t.Context(), "main").Result()
			return err == nil && m["num-other-sentinels"] == "2" && m["num-slaves"] == "1" && m["flags"] == "master"
		})
	}
	return x, sentinels
}

// process is a Sentinel.
type process struct {
	*exec.Cmd
	addr   string
	client *redis.SentinelClient
}

func startSentinel(t *testing.T, master string) *process {
	t.Helper()
	host, port, _ := net.SplitHostPort(master)
	own := freePort(t)
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	conf := "port " + own + "\nbind 127.0.0.1\nsentinel monitor main " + host + " " + port + " 2\n" +
		"sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 5000\n"
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(buckettest.RedisServer(), file, "--sentinel"), addr: "127.0.0.1:" + own}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	p.client = redis.NewSentinelClient(&redis.Options{Addr: p.addr})
	t.Cleanup(func() { _ = p.client.Close() })
	eventually(t, 10*time.Second, "sentinel serves", func() bool { return p.client.Ping(t.Context()).Err() == nil })
	return p
}

// replicate waits until a write has reached the replica. Its link is up before that: after a diskless
// synchronisation a master keeps its stream back until the replica's first ACK, for up to a second.
func (x *topology) replicate() {
	x.t.Helper()
	c := x.master.Client().Conn()
	defer func() { _ = c.Close() }()
	if err := c.Set(context.Background(), "{g}written", 1, 0).Err(); err != nil {
		x.t.Fatal(err)
	}
	if n, err := c.Wait(context.Background(), 1, 2*time.Second).Result(); err != nil || n != 1 {
		x.t.Fatalf("replicated to %d, %v", n, err)
	}
}

// cut ends the master's replication, for good: what it acknowledges from now on is on the master alone.
func (x *topology) cut() {
	x.t.Helper()
	c, ctx := x.master.Client(), context.Background()
	for _, args := range [][]any{
		{"ACL", "SETUSER", "default", "-psync", "-sync", "-replconf"},
		{"CLIENT", "KILL", "TYPE", "replica"},
	} {
		if err := c.Do(ctx, args...).Err(); err != nil {
			x.t.Fatalf("%v: %v", args, err)
		}
	}
	eventually(x.t, 5*time.Second, "no replica", func() bool {
		return strings.Contains(c.Info(ctx, "replication").Val(), "connected_slaves:0")
	})
}
