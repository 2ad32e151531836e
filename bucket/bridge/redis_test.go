package bridge_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket/bridge"
	"github.com/emmer-proxy/emmer/bucket/buckettest"
)

// go-redis logs each dial that fails, and here whole Redis servers do.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	os.Exit(m.Run())
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// eventually polls until ok, and fails the test after a while.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(within)
	defer end.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("after %v still not: %s", within, what)
		}
	}
}

// stores are what a test of the wire runs on.
var stores = map[string]func(t *testing.T) string{
	"redis":     func(t *testing.T) string { return buckettest.StartRedis(t) },
	"miniredis": func(t *testing.T) string { return miniredis.RunT(t).Addr() },
}

// served is a bridge on loopback.
type served struct {
	*bridge.Bridge
	url string
	h1  *http.Client
	h2  *http.Client

	opened atomic.Int64 // connections
	gone   atomic.Int64 // requests whose client the server saw leave before they were answered
}

func serve(t testing.TB, addr string, change func(*bridge.Options)) *served {
	t.Helper()
	o := bridge.Options{
		Tokens:         []string{"first-token", "second-token"},
		OperatorTokens: map[string]string{"ann-token": "ann"},
		Timeout:        2 * time.Second,
	}
	if change != nil {
		change(&o)
	}
	if o.Client == nil {
		c, err := bridge.Connect(bridge.Redis{Addrs: []string{addr}, Timeout: o.Timeout})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		o.Client = c
	}
	b, err := bridge.New(o)
	if err != nil {
		t.Fatal(err)
	}
	out := &served{Bridge: b}
	s := httptest.NewUnstartedServer(nil)
	s.Config = bridge.Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answered := context.AfterFunc(r.Context(), func() { out.gone.Add(1) })
		b.ServeHTTP(w, r)
		answered()
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			out.opened.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	h1 := &http.Transport{MaxIdleConnsPerHost: 512}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	h2 := &http.Transport{Protocols: protocols}
	t.Cleanup(h1.CloseIdleConnections)
	t.Cleanup(h2.CloseIdleConnections)
	out.url, out.h1, out.h2 = s.URL, &http.Client{Transport: h1}, &http.Client{Transport: h2}
	return out
}

func itoa(n int) string { return strconv.Itoa(n) }
