package buckettest

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// StartCluster starts a Redis Cluster of three masters on loopback and returns their addresses once
// each of them says that all is well.
func StartCluster(t testing.TB) (addrs []string) {
	t.Helper()
	for _, s := range startCluster(t, 0, "5000") {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// StartReplicated is StartCluster with a replica for each master: the masters, then their replicas in
// the same order. A master that has died is replaced after one to two seconds.
func StartReplicated(t testing.TB) (masters, replicas []*Server) {
	t.Helper()
	all := startCluster(t, 1, "1000")
	return all[:3], all[3:]
}

func startCluster(t testing.TB, replicas int, timeout string) (servers []*Server) {
	t.Helper()
	const masters, slots = 3, 16384
	nodes := masters * (1 + replicas)
	ctx := context.Background()
	var clients []*redis.Client
	var buses []int
	for range nodes {
		bus := freePort(t) // the usual one, 10,000 above the other, may be above 65535
		s := StartServer(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-node-timeout", timeout, "--repl-diskless-sync-delay", "0")
		servers, clients, buses = append(servers, s), append(clients, s.Client()), append(buses, bus)
	}
	for i, c := range clients {
		if i < masters {
			if err := c.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err(); err != nil {
				t.Fatal(err)
			}
		}
		// Equal epochs are told apart by the nodes themselves, which takes seconds.
		if err := c.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range servers[1:] {
		host, port, _ := net.SplitHostPort(s.Addr())
		if err := clients[0].Do(ctx, "CLUSTER", "MEET", host, port, buses[i+1]).Err(); err != nil {
			t.Fatal(err)
		}
	}
	settled(t, clients, nodes)
	for i, c := range clients[masters:] {
		id, err := clients[i%masters].Do(ctx, "CLUSTER", "MYID").Text()
		if err == nil {
			err = c.Do(ctx, "CLUSTER", "REPLICATE", id).Err()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range clients[masters:] {
		eventual(t, "the replica follows its master", func() bool {
			return strings.Contains(c.Info(ctx, "replication").Val(), "master_link_status:up")
		})
	}
	return servers
}

// settled waits until all nodes say that all is well.
func settled(t testing.TB, clients []*redis.Client, nodes int) {
	t.Helper()
	for _, c := range clients {
		eventual(t, "the cluster comes up", func() bool {
			info := c.ClusterInfo(context.Background()).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(nodes)) &&
				strings.Contains(info, "cluster_slots_ok:16384")
		})
	}
}

// eventual waits for what must come.
func eventual(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("never: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
