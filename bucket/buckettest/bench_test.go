package buckettest

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
)

// BenchmarkReserve is one reserve after the other on a real Redis, over a connection on loopback.
// redis-us is what Redis itself says a call takes, in the quickest of the runs of 1,024 calls: other
// load on the machine can only add to it.
func BenchmarkReserve(b *testing.B) {
	b.Run("plain-bucket", benchPlain)
	for _, limits := range []int{0, 1, 3, 4, 6} {
		b.Run(fmt.Sprint(limits, "-limits"), func(b *testing.B) { bench(b, limits, false, false) })
	}
	b.Run("4-limits-overrides", func(b *testing.B) { bench(b, 4, false, true) })
	for _, kind := range []string{"rolling-12", "slots", "shared-3", "queued", "six-kinds"} {
		b.Run(kind, func(b *testing.B) {
			r, _ := benched(b, 0, false, false)
			measure(b, r, kinds(r, kind))
		})
	}
	b.Run("4-limits-denied", func(b *testing.B) { bench(b, 4, true, false) })
}

// BenchmarkCall is a reserve and its settle.
func BenchmarkCall(b *testing.B) {
	for _, limits := range []int{1, 4} {
		b.Run(fmt.Sprint(limits, "-limits"), func(b *testing.B) {
			r, items := benched(b, limits, false, false)
			i := 0
			for b.Loop() {
				i++
				id := strconv.Itoa(i)
				if _, err := r.Reserve(bucket.ReserveRequest{ID: id, Lease: 60_000, Keep: 1000, Cell: 6000, Kills: []string{"global:all"}, Items: items}); err != nil {
					b.Fatal(err)
				}
				if _, err := r.Settle(bucket.SettleRequest{ID: id, Lease: 60_000, Keep: 1000, Cell: 6000, Items: items}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSettle settles calls that have a record of nothing, with and without an answer to learn from.
func BenchmarkSettle(b *testing.B) {
	for _, learns := range []bool{false, true} {
		b.Run(fmt.Sprint("learns-", learns), func(b *testing.B) {
			r, items := benched(b, 1, false, false)
			least := math.Inf(1)
			for i := 0; b.Loop(); i++ {
				if i%1024 == 0 {
					if i > 0 {
						least = min(least, microseconds(r.Client.(*redis.Client)))
					}
					r.Client.(*redis.Client).ConfigResetStat(background())
				}
				q := bucket.SettleRequest{ID: strconv.Itoa(i), Lease: 60_000, Keep: 1000, Cell: 6000, Items: items}
				if learns {
					q.Answer = bucket.Answer{Of: "someone", Tokens: bucket.Tokens(20 + i*7919%3000)}
				}
				if _, err := r.Settle(q); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(min(least, microseconds(r.Client.(*redis.Client))), "redis-us/op")
		})
	}
}

func benched(b *testing.B, limits int, denied, overrides bool) (*Redis, []bucket.Item) {
	client := StartServer(b).Client()
	r := NewRedis(b, client)
	r.Layout.WithOverrides = overrides
	now := r.Now()
	var items []bucket.Item
	for i := range limits {
		l := bucket.Limit{Name: fmt.Sprint("limit-", i), Entity: "someone", Kind: bucket.TokenBucket, Rate: 1000, Per: 3, Burst: 1 << 50}
		if i%2 > 0 {
			l = bucket.Limit{Name: fmt.Sprint("limit-", i), Entity: "someone", Kind: bucket.CalendarWindow, Period: "month", Max: 1 << 52,
				Bounds: [4]bucket.Millis{now - 3*hour, now - hour, now + 24*hour, now + 48*hour}, Lost: bucket.Charge}
		}
		if denied && i == limits-1 {
			l.Max = 2000
		}
		items = append(items, bucket.Item{Limit: l, Amount: 1234})
	}
	return r, items
}

func bench(b *testing.B, limits int, denied, overrides bool) {
	r, items := benched(b, limits, denied, overrides)
	measure(b, r, items)
}

// kinds are items of the rarer kinds.
func kinds(r *Redis, kind string) []bucket.Item {
	f := &fixture{s: r}
	most := bucket.Amount(1 << 48)
	pool := &bucket.Pool{Rate: 1000, Per: 3, Burst: most, Shares: []bucket.Share{
		{Name: "interactive", Rate: 700, Burst: most / 2, Borrow: true}, {Name: "batch", Rate: 300, Burst: most / 2, Borrow: true}, {Name: "admin", Rate: 10, Burst: 1000, Reserved: true},
	}}
	roll, s := rolling("r", most, hour, hour/12), shared(pool, "interactive")
	b := bucket.Limit{Name: "b", Kind: bucket.TokenBucket, Rate: 1000, Per: 3, Burst: most}
	switch kind {
	case "rolling-12":
		return each(1234, roll)
	case "slots":
		return each(1, slots("c", bucket.MaxSlots))
	case "shared-3":
		return each(1234, s)
	case "queued":
		b.Rate, b.Per, b.Burst = 1, 100, 10
		return []bucket.Item{{Limit: b, Amount: 1, Queue: 365 * day}}
	}
	return append(each(1234, b, f.hourly("w", most), roll, s, burning(most, 2)), bucket.Item{Limit: slots("c", bucket.MaxSlots), Amount: 1})
}

// benchPlain is what the web has for a token bucket: one hash of a level and a time.
func benchPlain(b *testing.B) {
	client := StartServer(b).Client()
	plain := redis.NewScript(`local t=redis.call('TIME') local now=t[1]*1000+math.floor(t[2]/1000)
local h=redis.call('HMGET',KEYS[1],'l','t') local rate,burst,n=tonumber(ARGV[1]),tonumber(ARGV[2]),tonumber(ARGV[3])
local l=math.min(burst,(tonumber(h[1]) or burst)+(now-(tonumber(h[2]) or now))*rate)
local ok=l>=n and 1 or 0 if ok==1 then l=l-n end
redis.call('HSET',KEYS[1],'l',l,'t',now) redis.call('PEXPIRE',KEYS[1],math.ceil(burst/rate)) return {ok,l}`)
	if err := plain.Load(background(), client).Err(); err != nil {
		b.Fatal(err)
	}
	least := math.Inf(1)
	for i := 0; b.Loop(); i++ {
		if i%1024 == 0 {
			if i > 0 {
				least = min(least, microseconds(client))
			}
			client.ConfigResetStat(background())
		}
		if err := plain.EvalSha(background(), client, []string{"bucket"}, 1000, 1e9, 10).Err(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(min(least, microseconds(client)), "redis-us/op")
	throughput(b, func(int) error { return plain.EvalSha(background(), client, []string{"bucket"}, 1000, 1e9, 10).Err() })
}

// throughput is how many calls a second 16 connections get out of one Redis, in the best of 30 spans of 50 ms:
// other load on the machine can only take from it.
func throughput(b *testing.B, do func(i int) error) {
	b.StopTimer()
	var next, done atomic.Int64
	var group sync.WaitGroup
	stop := make(chan struct{})
	for range 16 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := do(int(next.Add(1))); err != nil {
					b.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	best := 0.0
	for range 30 {
		from, before := time.Now(), done.Load()
		<-time.After(50 * time.Millisecond)
		best = max(best, float64(done.Load()-before)/time.Since(from).Seconds())
	}
	close(stop)
	group.Wait()
	b.ReportMetric(best, "ops/s")
}

func measure(b *testing.B, r *Redis, items []bucket.Item) {
	q := bucket.ReserveRequest{Lease: 60_000, Keep: 1000, Cell: 6000, Kills: []string{"global:all"}, Items: items}
	q.ID = "first"
	if _, err := r.Reserve(q); err != nil {
		b.Fatal(err)
	}
	reserve := func(id string) (script.Call, error) {
		q := q
		q.ID = id
		return r.Layout.Reserve(q, "n")
	}
	batches(b, r, nil, reserve)
	throughput(b, func(i int) error {
		c, err := reserve("t" + strconv.Itoa(i))
		if err == nil {
			_, err = r.Do(c)
		}
		return err
	})
}

// batches measures calls by the 1,024, each after another call with the same id, which isn't measured.
func batches(b *testing.B, r *Redis, before, call func(id string) (script.Call, error)) {
	least := math.Inf(1)
	calls := make([]script.Call, 0, 1024)
	i := 0
	for b.Loop() {
		if i%1024 == 0 {
			b.StopTimer()
			if i > 0 {
				least = min(least, microseconds(r.Client))
			}
			calls = calls[:0]
			for j := range 1024 {
				id := strconv.Itoa(i + j)
				c, err := call(id)
				if err == nil && before != nil {
					var first script.Call
					if first, err = before(id); err == nil {
						_, err = r.Do(first)
					}
				}
				if err != nil {
					b.Fatal(err)
				}
				calls = append(calls, c)
			}
			r.Client.ConfigResetStat(background())
			b.StartTimer()
		}
		if _, err := r.Do(calls[i%1024]); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.StopTimer()
	b.ReportMetric(min(least, microseconds(r.Client)), "redis-us/op")
}

// BenchmarkScripts is the other scripts, as BenchmarkReserve is the first.
func BenchmarkScripts(b *testing.B) {
	for _, limits := range []int{1, 4} {
		for _, name := range []string{"extend", "renew", "settle", "level"} {
			b.Run(fmt.Sprint(name, "-", limits), func(b *testing.B) {
				r, items := benched(b, limits, false, false)
				more := append([]bucket.Item{}, items...)
				for i := range more {
					more[i].Amount *= 2
				}
				before := func(id string) (script.Call, error) {
					return r.Layout.Reserve(bucket.ReserveRequest{ID: id, Lease: 60_000, Keep: 1000, Cell: 6000, Items: items}, "n")
				}
				batches(b, r, before, func(id string) (script.Call, error) {
					switch name {
					case "extend":
						return r.Layout.Extend(bucket.ExtendRequest{ID: id, Lease: 120_000, Keep: 1000, Cell: 6000, Kills: []string{"global:all"}, Items: more}, "n")
					case "renew":
						return r.Layout.Renew(bucket.RenewRequest{ID: id, Lease: 120_000, Keep: 1000, Cell: 6000, Items: items}, "n")
					case "settle":
						return r.Layout.Settle(bucket.SettleRequest{ID: id, Lease: 60_000, Keep: 1000, Cell: 6000, Items: items}, "n")
					}
					return r.Layout.Level(items[0].Limit, "n")
				})
			})
		}
	}
}

// BenchmarkMemory is what Redis holds for each live reservation and each entity that has used
// something and is idle now, with a bucket and a window. EMMER_TENANTS says how many entities.
func BenchmarkMemory(b *testing.B) {
	tenants := 20_000
	if n, err := strconv.Atoi(os.Getenv("EMMER_TENANTS")); err == nil {
		tenants = n
	}
	r, _ := benched(b, 0, false, false)
	f := &fixture{s: r}
	used := func() float64 {
		n, _ := strconv.ParseFloat(r.Client.InfoMap(background(), "memory").Item("Memory", "used_memory"), 64)
		return n
	}
	var group sync.WaitGroup
	all := func(n int, do func(i int) error) {
		next := make(chan int)
		for range 16 {
			group.Go(func() {
				for i := range next {
					if err := do(i); err != nil {
						b.Error(err)
					}
				}
			})
		}
		for i := range n {
			next <- i
		}
		close(next)
		group.Wait()
	}
	limits := func(i int) []bucket.Item {
		bk, w := slow("tenant-rate", 1000), f.hourly("tenant-month", 1000)
		bk.Entity = fmt.Sprintf("tenant-%08d", i)
		w.Entity = bk.Entity
		return each(10, bk, w)
	}
	b.ResetTimer()
	for b.Loop() {
		before := used()
		all(tenants, func(i int) error {
			_, err := r.Settle(bucket.SettleRequest{ID: strconv.Itoa(i), Lease: 1, Keep: 0, Cell: 1, Items: limits(i)})
			return err
		})
		r.Pass(1500) // the records have expired, and Redis has removed most
		for range 50 {
			r.Client.RandomKey(background())
		}
		idle := used()
		b.ReportMetric((idle-before)/float64(tenants), "bytes/entity")
		b.ReportMetric((idle-before)/1e6, "MB")
		same := limits(1)
		all(20_000, func(i int) error {
			_, err := r.Reserve(bucket.ReserveRequest{ID: fmt.Sprintf("0123456789abcdef-%08d", i), Lease: 600 * second, Keep: 900 * second, Cell: 60 * second, Items: []bucket.Item{{Limit: same[0].Limit}, {Limit: same[1].Limit}}})
			return err
		})
		b.ReportMetric((used()-idle)/20_000, "bytes/reservation")
		least := math.Inf(1)
		for i := range 5000 {
			if i%250 == 0 {
				if i > 0 {
					least = min(least, microseconds(r.Client))
				}
				r.Client.ConfigResetStat(background())
			}
			_, _ = r.Reserve(bucket.ReserveRequest{ID: fmt.Sprint("t", i), Lease: second, Keep: 0, Cell: 1000, Items: limits(i * 7919 % tenants)})
		}
		b.ReportMetric(least, "redis-us/op")
	}
}

// microseconds is what Redis says that an EVALSHA took since the last reset.
func microseconds(c redis.UniversalClient) float64 {
	info := c.InfoMap(background(), "commandstats").Item("Commandstats", "cmdstat_evalsha")
	_, figure, _ := strings.Cut(info, "usec_per_call=")
	figure, _, _ = strings.Cut(figure, ",")
	usec, err := strconv.ParseFloat(figure, 64)
	if err != nil {
		return math.Inf(1)
	}
	return usec
}
