package buckettest

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
)

// BenchmarkReserve is one reserve after the other on a real Redis, over a connection on loopback.
// redis-us is what Redis itself says a call takes, in the quickest of the runs of 1,024 calls: other
// load on the machine can only add to it.
func BenchmarkReserve(b *testing.B) {
	for _, limits := range []int{0, 1, 4} {
		b.Run(fmt.Sprint(limits, "-limits"), func(b *testing.B) { bench(b, limits, false, false) })
	}
	b.Run("4-limits-overrides", func(b *testing.B) { bench(b, 4, false, true) })
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
	q := bucket.ReserveRequest{Lease: 60_000, Keep: 1000, Cell: 6000, Kills: []string{"global:all"}, Items: items}
	q.ID = "first"
	if _, err := r.Reserve(q); err != nil {
		b.Fatal(err)
	}
	least := math.Inf(1)
	calls := make([]script.Call, 0, 1024)
	i := 0
	for b.Loop() {
		if i%1024 == 0 {
			b.StopTimer()
			if i > 0 {
				least = min(least, microseconds(r))
			}
			r.Client.ConfigResetStat(background())
			calls = calls[:0]
			for j := range 1024 {
				q.ID = strconv.Itoa(i + j)
				c, err := r.Layout.Reserve(q, "n")
				if err != nil {
					b.Fatal(err)
				}
				calls = append(calls, c)
			}
			b.StartTimer()
		}
		if _, err := r.Do(calls[i%1024]); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.StopTimer()
	b.ReportMetric(min(least, microseconds(r)), "redis-us/op")
}

// microseconds is what Redis says that an EVALSHA took since the last reset.
func microseconds(r *Redis) float64 {
	info := r.Client.InfoMap(background(), "commandstats").Item("Commandstats", "cmdstat_evalsha")
	_, figure, _ := strings.Cut(info, "usec_per_call=")
	figure, _, _ = strings.Cut(figure, ",")
	usec, err := strconv.ParseFloat(figure, 64)
	if err != nil {
		return math.Inf(1)
	}
	return usec
}
