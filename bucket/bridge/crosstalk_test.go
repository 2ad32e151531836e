package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/bucket/bridge"
	"github.com/emmer-proxy/emmer/bucket/buckettest"
)

// TestNoReplyReachesAnotherCaller lets hundreds of clients echo tokens of their own through few
// Redis connections, while they abort at random and Redis stalls beyond the bridge's timeout again
// and again. Whatever is answered must be the caller's own token.
func TestNoReplyReachesAnotherCaller(t *testing.T) {
	const clients, timeout = 300, 200 * time.Millisecond
	r := buckettest.StartServer(t)
	c, err := bridge.Connect(bridge.Redis{Addrs: []string{r.Addr()}, Timeout: timeout, PoolSize: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s := serve(t, "", func(o *bridge.Options) { o.Client, o.Timeout = c, timeout })

	var own, wrong, aborted, unavailable, other atomic.Int64
	ctx, finish := context.WithCancel(context.Background())
	var stalls sync.WaitGroup
	stalls.Go(func() { stutter(ctx, r) })
	patience := time.Now().Add(20 * time.Second)
	enough := func() bool {
		return own.Load() > 2000 && aborted.Load() > 500 && unavailable.Load() > 50 || time.Now().After(patience)
	}
	var wg sync.WaitGroup
	for n := range clients {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 7))
			client := s.h1
			if n%3 == 0 {
				client = s.h2
			}
			for i := 0; i < 10 || !enough(); i++ {
				mine := fmt.Sprintf("token-%d-%d-%d", n, i, random.Uint64())
				if n%3 == 1 && random.IntN(4) == 0 {
					leave(t, s.url, mine)
					aborted.Add(1)
					continue
				}
				call, cancel := context.Background(), context.CancelFunc(func() {})
				if random.IntN(2) == 0 {
					call, cancel = context.WithTimeout(call, time.Duration(random.IntN(300_000))*time.Microsecond)
				}
				status, body, err := echo(call, client, s.url, mine)
				cancel()
				switch {
				case err != nil:
					aborted.Add(1)
				case status == 503:
					unavailable.Add(1)
				case body == `{"result":"`+mine+`"}`:
					own.Add(1)
				case status == 200:
					wrong.Add(1)
					t.Errorf("sent %s, got %s", mine, body)
				default:
					other.Add(1)
					t.Errorf("%d %s", status, body)
				}
			}
		})
	}
	wg.Wait()
	finish()
	stalls.Wait()
	t.Logf("own %d, wrong %d, aborted %d, unavailable %d, other %d", own.Load(), wrong.Load(), aborted.Load(), unavailable.Load(), other.Load())
	if own.Load() < 500 || aborted.Load() < 200 || unavailable.Load() < 20 {
		t.Errorf("the test did not do what it is for")
	}
	// And none is left behind on a connection for those who come later.
	for i := range 200 {
		mine := fmt.Sprintf("late-%d", i)
		status, body, err := echo(context.Background(), s.h1, s.url, mine)
		if err != nil || status == 200 && body != `{"result":"`+mine+`"}` {
			t.Fatalf("afterwards: %d %s %v", status, body, err)
		}
	}
}

// stutter stops Redis one time in three, for a little more than the timeout.
func stutter(ctx context.Context, r *buckettest.Server) {
	tick := time.NewTicker(210 * time.Millisecond)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-tick.C:
			if n%3 == 0 {
				r.Pause()
			} else {
				r.Resume()
			}
		case <-ctx.Done():
			r.Resume()
			return
		}
	}
}

func echo(ctx context.Context, c *http.Client, url, mine string) (int, string, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/", strings.NewReader(`["EVAL","return ARGV[1]","0","`+mine+`"]`))
	if err != nil {
		return 0, "", err
	}
	q.Header.Set("Authorization", "Bearer "+token)
	w, err := c.Do(q)
	if err != nil {
		return 0, "", err
	}
	b, err := io.ReadAll(w.Body)
	return w.StatusCode, string(b), errors.Join(err, w.Body.Close())
}

// leave sends a whole request on a connection of its own and closes it at once.
func leave(t *testing.T, url, mine string) {
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Error(err)
		return
	}
	body := `["EVAL","return ARGV[1]","0","` + mine + `"]`
	_, _ = fmt.Fprintf(c, "POST / HTTP/1.1\r\nhost: bridge\r\nauthorization: Bearer %s\r\ncontent-length: %d\r\n\r\n%s", token, len(body), body)
	_ = c.Close()
}
