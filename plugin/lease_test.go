package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

const (
	// leaseSection is a lease that ends within a test.
	leaseSection = `"lease": {"for": "2s", "keep": "60s"},`

	// crashLimits give back or keep what a killed gateway had reserved. A cost window keeps it unless
	// it says otherwise.
	crashLimits = `[
		{"name": "window", "by": ["key"], "count": "tokens", "max": 10000, "window": {"calendar": "year"}},
		{"name": "bucket", "by": ["key"], "count": "tokens", "bucket": {"rate": "1/d", "burst": 10000}},
		{"name": "money", "by": ["key"], "count": "cost", "max": "10", "window": {"calendar": "year"}},
		{"name": "kept", "by": ["key"], "count": "tokens", "max": 10000, "window": {"calendar": "year"}, "lost": "charge"},
		{"name": "slots", "by": ["key"], "count": "concurrency", "max": 20},
		{"name": "rolling", "by": ["key"], "count": "tokens", "max": 10000, "window": {"rolling": "1h"}}]`
)

// longStream lets a stream run for more than two of its leases. It is renewed all the while, and
// settles as a live reservation.
func longStream(t *testing.T, st *stand, s *site) {
	body := thousand(t, s, true)
	before := st.metrics(0)
	delta := func(name string) int64 { return st.metrics(0)["emmer."+name] - before["emmer."+name] }
	over := make(chan answer, 1)
	go func() { over <- st.call(0, s.name, "k", body, "x-kind", "long") }()
	arrived(t, s, 1)
	held := func() {
		if l := st.level(s.name, "day", "k"); l.Reserved != 1000 || l.Remaining != 100000000-1000 {
			t.Fatalf("while the stream runs, %d are reserved and %d left", l.Reserved, l.Remaining)
		}
	}
	held()
	first := deadline(t, st, s)
	eventually(t, 15*time.Second, func() string {
		held()
		if now := deadline(t, st, s); now < first+4000 {
			return fmt.Sprintf("the reservation's deadline moved by %d ms", now-first)
		}
		return ""
	})
	if n := delta("renewed"); n < 4 {
		t.Errorf("%d renewals, want at least 4", n)
	}
	s.provider.Open("end")
	if a := <-over; a.err != nil || a.status != 200 || !strings.HasSuffix(a.body, lostDone) {
		t.Fatalf("the stream: %+v", a)
	}
	eventually(t, 5*time.Second, func() string {
		if l := st.level(s.name, "day", "k"); l.Reserved != 0 || l.Remaining != 100000000-11 {
			return fmt.Sprintf("after the stream, %d are reserved and %d left", l.Reserved, l.Remaining)
		}
		if n := delta("settled"); n != 1 {
			return fmt.Sprintf("%d settlements of live reservations, want 1", n)
		}
		return ""
	})
	for _, name := range []string{"settled_late", "settled_unknown", "settled_duplicate", "renewed_late", "renew_lost", "renew_retry"} {
		if n := delta(name); n != 0 {
			t.Errorf("counter emmer.%s rose by %d", name, n)
		}
	}
}

// gatewayLost kills the Envoy in the middle of a stream. Nobody is left to settle, so the lease's
// end alone decides, at its very millisecond: given back, or kept as spent.
func gatewayLost(t *testing.T, st *stand, s *site) {
	body := thousand(t, s, true)
	over := make(chan answer, 1)
	go func() { over <- st.call(0, s.name, "k", body, "x-kind", "long") }()
	arrived(t, s, 1)
	e := st.envoys[0]
	if err := syscall.Kill(e.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-e.Done()
	if a := <-over; a.err == nil {
		t.Errorf("the client got a whole answer: %+v", a)
	}
	end := deadline(t, st, s)
	in := bucket.Tokens(estimate(t, s, body))
	money := bucket.Amount(costOf(t, s, dialect.Usage{Input: in, Output: 1000 - in}))
	for i, limit := range []struct {
		name           string
		amount, charge bucket.Amount
	}{
		{"window", 1000, 0}, {"bucket", 1000, 0}, {"money", money, money}, {"kept", 1000, 1000}, {"slots", 1, 0}, {"rolling", 1000, 0},
	} {
		eventually(t, 5*time.Second, func() string {
			l := st.level(s.name, limit.name, "k")
			used := capacityOf(s, i) - l.Remaining
			if l.Now < end {
				if l.Reserved != limit.amount || used != limit.amount {
					t.Fatalf("%s: %d reserved and %d used, %d ms before the lease ends", limit.name, l.Reserved, used, end-l.Now)
				}
				return fmt.Sprintf("the lease runs for %d ms", end-l.Now)
			}
			if l.Reserved != 0 || used != limit.charge {
				t.Fatalf("%s: %d reserved and %d used, %d ms after the lease ended; want 0 and %d", limit.name, l.Reserved, used, l.Now-end, limit.charge)
			}
			return ""
		})
	}
}

// deadline reads the end of the one live reservation of a site from its record.
func deadline(t *testing.T, st *stand, s *site) bucket.Millis {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	keys, err := st.redis.Keys(ctx, s.space()+":1:{g}:r:*").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("records %q, %v; want one", keys, err)
	}
	text, err := st.redis.Get(ctx, keys[0]).Result()
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Split(text, "|")
	if len(fields) < 2 || fields[0] != "R" {
		t.Fatalf("the record is %q", text)
	}
	end, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		t.Fatalf("the record is %q", text)
	}
	return bucket.Millis(end)
}
