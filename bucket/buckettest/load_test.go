package buckettest

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket"
)

// quiet keeps go-redis from telling each dial to a master that was killed on purpose.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(quiet{}) }

// seconds is how long the tests under load run: EMMER_SECONDS, or a modest time.
func seconds(t testing.TB) time.Duration {
	text := os.Getenv("EMMER_SECONDS")
	if text == "" {
		return 3 * time.Second
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("EMMER_SECONDS: %v", err)
	}
	return time.Duration(n) * time.Second
}

// tenant is one store under load and what its callers know for certain.
type tenant struct {
	store  *Redis
	limits []bucket.Limit
	mu     sync.Mutex
	used   bucket.Amount // settled and acknowledged
	recent []acknowledged
}

type acknowledged struct {
	at time.Time
	n  bucket.Amount
}

// load lets 64 clients reserve and settle for a while: with duplicates, retries of what has failed
// under the same id, extensions and slots. during runs meanwhile, once a third of the time has gone.
func load(t *testing.T, client redis.UniversalClient, stores int, d time.Duration, during func()) []*tenant {
	var tenants []*tenant
	for i := range stores {
		r := NewRedis(t, client)
		r.Layout.Tag = fmt.Sprint("tenant", i)
		f := &fixture{T: t, s: r}
		tenants = append(tenants, &tenant{store: r, limits: []bucket.Limit{f.hourly("w", 2_000_000), rolling("r", 2_000_000, 10*hour, hour), slow("b", 2_000_000), slots("c", 9)}})
	}
	stop := time.Now().Add(d)
	var group sync.WaitGroup
	calls, refused, faults := make([]int, 64), make([]int, 64), make([]int, 64)
	for worker := range 64 {
		group.Go(func() {
			rnd := rand.New(rand.NewSource(int64(worker)))
			one := tenants[worker%len(tenants)]
			try := func(do func() error) bool {
				for give := time.Now().Add(20 * time.Second); ; {
					err := do()
					if err == nil {
						return true
					}
					faults[worker]++
					if time.Now().After(give) {
						t.Errorf("no answer for 20 s: %v", err)
						return false
					}
					<-time.After(5 * time.Millisecond)
				}
			}
			for i := 0; time.Now().Before(stop); i++ {
				calls[worker]++
				n := bucket.Amount(1 + rnd.Intn(300))
				items := append(each(n, one.limits[:3]...), bucket.Item{Limit: one.limits[3], Amount: 1})
				q := bucket.ReserveRequest{ID: fmt.Sprintf("%d-%d", worker, i), Lease: 60 * second, Keep: hour, Cell: second, Items: items}
				var r bucket.ReserveReply
				if !try(func() (err error) { r, err = one.store.Reserve(q); return err }) {
					return
				}
				if r.Outcome != bucket.Granted && r.Outcome != bucket.Replayed {
					refused[worker]++
					continue
				}
				for _, left := range r.Remaining {
					if left < 0 {
						t.Errorf("granted into debt: %+v", r)
					}
				}
				actual := bucket.Amount(rnd.Intn(int(n) + 1))
				s := bucket.SettleRequest{ID: q.ID, Deadline: r.Deadline, Lease: 60 * second, Keep: hour, Cell: second, Items: append(each(actual, one.limits[:3]...), bucket.Item{Limit: one.limits[3], Amount: 1})}
				for range 1 + rnd.Intn(2) {
					if !try(func() error { _, err := one.store.Settle(s); return err }) {
						return
					}
				}
				one.mu.Lock()
				one.used += actual
				one.recent = append(one.recent, acknowledged{time.Now(), actual})
				one.mu.Unlock()
			}
		})
	}
	if during != nil {
		<-time.After(d / 3)
		during()
	}
	group.Wait()
	total := [3]int{}
	for i := range calls {
		total[0], total[1], total[2] = total[0]+calls[i], total[1]+refused[i], total[2]+faults[i]
	}
	t.Logf("%d calls, %d refused, %d failed and were tried again", total[0], total[1], total[2])
	if total[0]-total[1] < 100 {
		t.Errorf("only %d were granted", total[0]-total[1])
	}
	return tenants
}

func TestLoadRedis(t *testing.T) {
	client := StartServer(t).Client()
	for _, one := range load(t, client, 1, seconds(t), nil) {
		one.exact(t)
	}
}

func TestLoadRedisCluster(t *testing.T) {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: StartCluster(t)})
	t.Cleanup(func() { _ = client.Close() })
	for _, one := range load(t, client, 6, seconds(t), nil) {
		one.exact(t)
	}
}

// exact checks that a limit has used what its callers have, and nothing is held.
func (one *tenant) exact(t *testing.T) {
	f := &fixture{T: t, s: one.store}
	for _, l := range one.limits[:3] {
		f.stands(l, 2_000_000-one.used, 0)
	}
	f.stands(one.limits[3], 9, 0)
	checkKeys(t, one.store, one.store.Now())
}

// A master dies under load. Its replica takes over within seconds, every call gets its answer in the
// end, and no limit gives more than it has. Replication runs behind: what was acknowledged in the last
// moment may be lost, and is bounded here by what the callers were told in the second before.
func TestLoadRedisClusterFailover(t *testing.T) {
	masters, replicas := StartReplicated(t)
	addrs := []string{masters[0].Addr(), masters[1].Addr(), masters[2].Addr(), replicas[0].Addr()}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ReadTimeout: 500 * time.Millisecond, DialTimeout: 500 * time.Millisecond, ClusterStateReloadInterval: time.Second})
	t.Cleanup(func() { _ = client.Close() })
	var died time.Time
	var gap time.Duration
	tenants := load(t, client, 6, max(9*time.Second, seconds(t)), func() {
		died = time.Now()
		masters[0].Kill()
		c := replicas[0].Client()
		eventual(t, "the replica is a master", func() bool {
			return c.Do(background(), "ROLE").Val() != nil && fmt.Sprint(c.Do(background(), "ROLE").Val())[:7] == "[master"
		})
		gap = time.Since(died)
	})
	t.Logf("the replica was master after %v", gap.Round(time.Millisecond))
	for i, one := range tenants {
		var last bucket.Amount
		for _, a := range one.recent {
			if a.at.After(died.Add(-time.Second)) && a.at.Before(died.Add(time.Second)) {
				last += a.n
			}
		}
		for _, l := range one.limits[:3] {
			level, err := one.store.Level(l)
			if err != nil {
				t.Fatal(err)
			}
			used := 2_000_000 - level.Remaining
			if lost := one.used - (used - level.Reserved); lost > last || used < 0 {
				t.Errorf("tenant %d: %s has %d used, %d of them held; its callers used %d, %d of it in the second before", i, l.Name, used, level.Reserved, one.used, last)
			}
			if extra := used - level.Reserved - one.used; extra > 0 {
				t.Errorf("tenant %d: %s has %d more than was used", i, l.Name, extra)
			}
		}
	}
}
