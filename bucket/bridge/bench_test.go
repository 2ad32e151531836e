package bridge_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket/bridge"
	"github.com/emmer-proxy/emmer/bucket/buckettest"
)

// BenchmarkReturn1 is the cheapest script there is: what the hop costs. Direct is the same script
// through go-redis alone.
func BenchmarkReturn1(b *testing.B) {
	addr := buckettest.StartRedis(b)
	s := serve(b, addr, nil)
	direct, err := bridge.Connect(bridge.Redis{Addrs: []string{addr}, Timeout: 2 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = direct.Close() })
	sha, err := direct.ScriptLoad(context.Background(), "return 1").Result()
	if err != nil {
		b.Fatal(err)
	}
	over := func(c *http.Client) func() string {
		return func() string {
			_, body, _ := ask(b, c, s.url, call{path: "/", token: token, body: `["EVALSHA","` + sha + `","0"]`})
			return body
		}
	}
	for _, x := range []struct {
		name string
		do   func() string
	}{
		{"direct", func() string {
			n, _ := direct.EvalSha(context.Background(), sha, nil).Int()
			return `{"result":` + itoa(n) + `}`
		}},
		{"h1", over(s.h1)},
		{"h2c", over(s.h2)},
	} {
		for _, conns := range []int{1, 16} {
			b.Run(x.name+"/conns="+itoa(conns), func(b *testing.B) {
				var mu sync.Mutex
				var all []time.Duration
				var wg sync.WaitGroup
				for n := range conns {
					share := b.N / conns
					if n < b.N%conns {
						share++
					}
					wg.Go(func() {
						took := make([]time.Duration, 0, share)
						for range share {
							start := time.Now()
							if got := x.do(); got != `{"result":1}` {
								b.Error(got)
								return
							}
							took = append(took, time.Since(start))
						}
						mu.Lock()
						all = append(all, took...)
						mu.Unlock()
					})
				}
				wg.Wait()
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
				b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
			})
		}
	}
}

// BenchmarkCommand reads the body of a reserve with six limits.
func BenchmarkCommand(b *testing.B) {
	body := `["EVALSHA","` + strings.Repeat("a", 40) + `",8` + strings.Repeat(`,"emmer:1:{g}:l:tenant-month:w:month:acme"`, 8) + strings.Repeat(`,"60000"`, 48) + `]`
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	b.Cleanup(func() { _ = c.Close() })
	s, err := bridge.New(bridge.Options{Client: c, Tokens: []string{token}, Allow: []string{"PING"}})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r, _ := http.NewRequest(http.MethodPost, "http://bridge/", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		s.ServeHTTP(discard{http.Header{}}, r) // read whole, then refused
	}
}

type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
