package main

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket/buckettest"
	"github.com/emmer-proxy/emmer/bucket/script"
	"github.com/emmer-proxy/emmer/hostsim/redisgw"
	"github.com/emmer-proxy/emmer/hostsim/upstream"
	"github.com/emmer-proxy/emmer/plugin/internal/wasmbuild"
)

const (
	shardCalls   = 64
	shardFits    = 10 // of all calls
	shardFitsOwn = 3  // of one org's tenant
)

// shardedLimits are one of all orgs and one of each org's tenants, in units of a thousand.
const shardedLimits = `[
	{"name": "own", "by": ["tenant"], "count": "tokens", "max": 3000, "window": {"calendar": "year"}, "for": {"tenant": "small"}},
	{"name": "wide", "by": ["tenant"], "count": "tokens", "max": 100000, "window": {"calendar": "year"}, "for": {"tenant": "large"}},
	{"name": "all", "by": ["model"], "count": "tokens", "max": 10000, "window": {"calendar": "year"}}]`

// orgOn is an org whose shard lives on another master than the two given slots do.
func orgOn(t *testing.T, ctx context.Context, c *redis.ClusterClient, namespace string, not ...int64) (string, int64) {
	t.Helper()
	master := func(slot int64) int64 { return slot * 3 / 16384 } // as buckettest.StartCluster divides them
	for i := range 1000 {
		org := fmt.Sprint("org", i)
		slot, err := c.ClusterKeySlot(ctx, script.Layout{Namespace: namespace}.Of(org).Ctl()).Result()
		if err != nil {
			t.Fatal(err)
		}
		other := true
		for _, n := range not {
			other = other && master(slot) != master(n)
		}
		if other {
			return org, slot
		}
	}
	t.Fatal("no org has its shard elsewhere")
	return "", 0
}

// TestShardsOfARedisCluster lets 64 calls of 1,000 tokens of two orgs race through two Envoys. Each org's shard
// and that of all live on three masters. No limit is passed whatever order the shards answer in, and what
// one shard granted and the other refused is there again: the room that is left can be filled to the
// last token, and at the end the sums are exact and nothing is reserved.
func TestShardsOfARedisCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	addrs := buckettest.StartCluster(t)
	var sites []*site
	for _, hold := range []string{"pair", "flag"} {
		provider, err := upstream.Start(upstream.MustParse("on any\nwait go\nchat in=1 out=999 usage=always"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { provider.Close() })
		sites = append(sites, &site{name: "shards-" + hold, hold: hold, shard: "org", limits: shardedLimits, provider: provider,
			namespace: "emmer", // of the bridge's verbs
			identity:  `, "org": {"header": "x-org"}, "tenant": {"header": "x-tenant"}`})
	}
	sites[0].namespace = ""
	st := newStandOver(t, wasmbuild.Path(t), redisgw.Options{Cluster: addrs, Timeout: 500 * time.Millisecond}, 2, 2, sites...)
	for _, s := range sites {
		t.Run(s.hold, func(t *testing.T) { shardRace(t, ctx, st, s) })
	}
	t.Run("kill", func(t *testing.T) { shardKill(t, ctx, st, sites[1]) })
}

func shardRace(t *testing.T, ctx context.Context, st *stand, s *site) {
	c := st.redis.(*redis.ClusterClient)
	all, err := c.ClusterKeySlot(ctx, script.Layout{Namespace: s.space()}.Of("").Ctl()).Result()
	if err != nil {
		t.Fatal(err)
	}
	acme, slot := orgOn(t, ctx, c, s.space(), all)
	umbra, _ := orgOn(t, ctx, c, s.space(), all, slot)
	body := thousand(t, s, false)
	// Half of the calls are of a tenant that may have three, half of one in another org that may have all.
	headers := func(i int) []string {
		if i%2 == 0 {
			return []string{"x-org", acme, "x-tenant", "small"}
		}
		return []string{"x-org", umbra, "x-tenant", "large"}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	passed := [2]int{}
	refused := make(chan struct{}, shardCalls)
	call := func(i int) {
		a := st.call(i/2%2, s.name, "k", body, headers(i)...)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case a.err != nil:
			t.Errorf("call %d: %v", i, a.err)
		case a.status == 200:
			passed[i%2]++
			return
		case a.status != 429:
			t.Errorf("call %d: %d %s", i, a.status, a.body)
		}
		refused <- struct{}{}
	}
	for i := range shardCalls {
		wg.Go(func() { call(i) })
	}
	// The provider answers no call yet, so no settlement makes room.
	for range shardCalls - shardFits {
		select {
		case <-refused:
		case <-time.After(20 * time.Second):
			t.Fatalf("the refusals didn't come; %d calls are upstream", s.provider.Count())
		}
	}
	// Amounts that one shard refused may have been in others' way for a moment. Now they are back: there is
	// room for exactly so many calls as are not upstream.
	store := st.store(s.name)
	left := func(limit, org, tenant string) script.Level {
		t.Helper()
		l, err := store.level(ctx, limit, map[string]string{"org": org, "tenant": tenant, "model": "m"})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	stopped := 0
	eventually(t, 20*time.Second, func() string {
		for len(refused) > 0 {
			<-refused
			stopped++
		}
		// Of those that were sent, all are refused or upstream.
		if n := s.provider.Count(); n+stopped+shardCalls-shardFits < shardCalls {
			return fmt.Sprintf("%d upstream, %d refused", n, stopped)
		}
		if l := left("all", "", ""); int(l.Reserved) != 1000*s.provider.Count() {
			return fmt.Sprintf("%d reserved by %d calls", l.Reserved, s.provider.Count())
		}
		return ""
	})
	first := s.provider.Count()
	if first > shardFits {
		t.Fatalf("%d calls passed a limit of %d", first, shardFits)
	}
	t.Logf("%d of %d at once", first, shardFits)
	for n := first; n < shardFits; n++ {
		eventually(t, 10*time.Second, func() string { // a refusal is remembered for a while
			before := s.provider.Count()
			wg.Go(func() { call(1) })
			select {
			case <-refused:
				return "refused with room for it"
			case <-upstreamCame(s, before):
				return ""
			}
		})
	}
	wg.Go(func() { call(1) })
	<-refused
	s.provider.Open("go")
	wg.Wait()
	if passed[0]+passed[1] != shardFits || passed[0] > shardFitsOwn || s.provider.Count() != shardFits {
		t.Errorf("passed: %v, the provider saw %d", passed, s.provider.Count())
	}
	eventually(t, 10*time.Second, func() string {
		for limit, want := range map[string][4]any{
			"all": {"", "", 10, passed[0] + passed[1]}, "own": {acme, "small", 3, passed[0]}, "wide": {umbra, "large", 100, passed[1]},
		} {
			l := left(limit, want[0].(string), want[1].(string))
			if int(l.Remaining) != 1000*(want[2].(int)-want[3].(int)) || l.Reserved != 0 {
				return fmt.Sprintf("%s: %d left and %d reserved, want %d calls of %d used", limit, l.Remaining, l.Reserved, want[3], want[2])
			}
		}
		if held, _, err := store.records(ctx); held != 0 || err != nil {
			return fmt.Sprintf("%d reservations are held, %v", held, err)
		}
		return ""
	})
	// The same tenant of the other org has had nothing.
	if l := left("own", umbra, "small"); l.Remaining != 3000 {
		t.Errorf("the tenant of the same name in another org has %d left", l.Remaining)
	}
}

// upstreamCame is closed when another call has reached the provider, or after 10 seconds.
func upstreamCame(s *site, before int) <-chan struct{} {
	came := make(chan struct{})
	go func() {
		defer close(came)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(10 * time.Second); s.provider.Count() == before && time.Now().Before(deadline); {
			<-tick.C
		}
	}()
	return came
}

// shardKill stops one org of a Cluster by the bridge's verbs.
func shardKill(t *testing.T, ctx context.Context, st *stand, s *site) {
	c := st.redis.(*redis.ClusterClient)
	all, err := c.ClusterKeySlot(ctx, script.Layout{Namespace: s.space()}.Of("").Ctl()).Result()
	if err != nil {
		t.Fatal(err)
	}
	acme, slot := orgOn(t, ctx, c, s.space(), all)
	umbra, _ := orgOn(t, ctx, c, s.space(), all, slot)
	// The race has used up all: who is not stopped is refused by the limit.
	status := func(org string) int {
		return st.call(0, s.name, "k", thousand(t, s, false), "x-org", org, "x-tenant", "small").status
	}
	operate(t, st.bridge, "kill", fmt.Sprintf(`{"org":%q,"scope":"org","id":%q,"reason":"drill"}`, acme, acme))
	eventually(t, 5*time.Second, func() string { // the refusals of the race are remembered for a while
		if a := status(acme); a != 403 {
			return fmt.Sprintf("%s, which is stopped: %d", acme, a)
		}
		return ""
	})
	if b := status(umbra); b != 429 {
		t.Errorf("%s, which is not stopped: %d", umbra, b)
	}
	operate(t, st.bridge, "resume", fmt.Sprintf(`{"org":%q,"scope":"org","id":%q}`, acme, acme))
	eventually(t, 5*time.Second, func() string {
		if a := status(acme); a != 429 {
			return fmt.Sprintf("%s, which was resumed: %d", acme, a)
		}
		return ""
	})
}
