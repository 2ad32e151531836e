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
	const nodes, slots = 3, 16384
	ctx := context.Background()
	var clients []*redis.Client
	var buses []int
	for range nodes {
		bus := freePort(t) // the usual one, 10,000 above the other, may be above 65535
		s := StartServer(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-node-timeout", "5000")
		addrs, clients, buses = append(addrs, s.Addr()), append(clients, s.Client()), append(buses, bus)
	}
	for i, c := range clients {
		if err := c.ClusterAddSlotsRange(ctx, i*slots/nodes, (i+1)*slots/nodes-1).Err(); err != nil {
			t.Fatal(err)
		}
		// Equal epochs are told apart by the nodes themselves, which takes seconds.
		if err := c.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i, addr := range addrs[1:] {
		host, port, _ := net.SplitHostPort(addr)
		if err := clients[0].Do(ctx, "CLUSTER", "MEET", host, port, buses[i+1]).Err(); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.After(30 * time.Second)
	for _, c := range clients {
		for {
			info := c.ClusterInfo(ctx).Val()
			if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3") && strings.Contains(info, "cluster_slots_ok:16384") {
				break
			}
			select {
			case <-deadline:
				t.Fatalf("the cluster doesn't come up: %s", info)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return addrs
}
