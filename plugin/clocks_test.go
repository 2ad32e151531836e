package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/hostsim"
	"github.com/emmer-proxy/emmer/hostsim/redisgw"
	"github.com/emmer-proxy/emmer/hostsim/upstream"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/internal/wasmbuild"
)

// apart is a gateway's clock that is wrong by so much. passed is what the test lets pass for all.
type apart struct {
	wrong  time.Duration
	passed *atomic.Int64
}

func (a apart) Now() time.Time { return time.Now().Add(a.wrong + time.Duration(a.passed.Load())) }
func (apart) AfterFunc(d time.Duration, f func()) hostsim.Timer {
	return time.AfterFunc(d, f)
}

// TestGatewaysWithClocksApart lets gateways whose clocks are wrong ask one store: a bucket refills by the store's
// clock only, and a window is the one that the store's clock is in, whatever the gateways take for now. (The
// clock of a real Envoy can't be set apart.)
func TestGatewaysWithClocksApart(t *testing.T) {
	t.Parallel()
	// A little before an hour ends, which the clocks of two gateways are past.
	now := time.Now().Truncate(time.Hour).Add(time.Hour - 30*time.Second)
	gw, err := redisgw.Start(redisgw.Options{Start: now, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gw.Close)
	provider, err := upstream.Start(upstream.MustParse("on any\nchat in=12 out=7"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { provider.Close() })
	wasm, err := os.ReadFile(wasmbuild.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	s := &site{name: "clocks", hold: "flag", timeout: "10s", limits: `[
		{"name": "bucket", "for": {"class": "bucket"}, "count": "requests", "bucket": {"rate": "4/s", "burst": 4}},
		{"name": "hour", "for": {"class": "hour"}, "count": "requests", "max": 5, "window": {"calendar": "hour"}},
		{"name": "rolling", "for": {"class": "rolling"}, "count": "requests", "max": 4, "window": {"rolling": "1m"}}]`,
		identity: `, "class": {"header": "x-class", "one_of": ["bucket", "hour", "rolling"]}`}
	if s.config, err = config.Parse([]byte(s.json()), nil); err != nil {
		t.Fatal(err)
	}
	var gateways []*hostsim.Host
	var passed atomic.Int64
	base := time.Until(now)
	for _, wrong := range []time.Duration{0, -time.Second, 45 * time.Minute, -50 * time.Minute} {
		h, err := hostsim.Start(context.Background(), hostsim.Options{Wasm: wasm, VMID: "clocks", CompilationCacheDir: filepath.Join("..", ".cache", "wazero"), Strict: true, Clock: apart{base + wrong, &passed},
			Clusters: map[string]hostsim.Cluster{"bridge": {URL: gw.URL()}, "provider": {URL: "http://" + provider.Addr()}},
			Listeners: []hostsim.Listener{{Name: "door", Routes: []hostsim.Route{{Cluster: "provider"}},
				Filters: []hostsim.Filter{{Name: "emmer", RootID: "emmer", Config: []byte(s.json()), AllowOnHeadersStop: true}}}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		gateways = append(gateways, h)
	}
	// round asks each gateway so many times, in turn, and counts what passed.
	round := func(class string, times int) (through int) {
		for range times {
			for _, g := range gateways {
				req, err := http.NewRequest("POST", "http://"+g.Addr("door")+"/v1/chat/completions", bytes.NewReader([]byte(small)))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("authorization", "Bearer k")
				req.Header.Set("x-class", class)
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(res.Body)
				res.Body.Close()
				switch res.StatusCode {
				case 200:
					through++
				case 429:
				default:
					t.Fatalf("%s: %d %s\n%s", class, res.StatusCode, body, strings.Join(g.Logs(), "\n"))
				}
			}
		}
		return through
	}
	advance := func(d time.Duration) {
		passed.Add(int64(d)) // so that no gateway remembers a refusal for longer
		if err := gw.Advance(d); err != nil {
			t.Fatal(err)
		}
	}
	if n := round("bucket", 3); n != 4 {
		t.Errorf("%d calls passed a bucket of 4", n)
	}
	if n := round("rolling", 3); n != 4 {
		t.Errorf("%d calls passed a rolling window of 4", n)
	}
	if n := round("hour", 3); n != 5 {
		t.Errorf("%d calls passed in an hour of 5", n)
	}
	advance(500 * time.Millisecond)
	if n := round("bucket", 2); n != 2 {
		t.Errorf("%d calls passed when 2 had come back", n)
	}
	if n := round("rolling", 1) + round("hour", 1); n != 0 {
		t.Errorf("%d calls passed windows in which no time has gone", n)
	}
	advance(30 * time.Second) // the next hour, by the store's clock
	if n := round("bucket", 2); n != 4 {
		t.Errorf("%d calls passed the bucket of 4, full again", n)
	}
	if n := round("hour", 3); n != 5 {
		t.Errorf("%d calls passed in the next hour of 5", n)
	}
	if n := round("rolling", 2); n != 0 {
		t.Errorf("%d calls passed a rolling window half a minute later", n)
	}
	advance(32 * time.Second)
	if n := round("rolling", 2); n != 4 {
		t.Errorf("%d calls passed a rolling window of 4 when a minute was over", n)
	}
	for _, g := range gateways {
		if v := g.Violations(); len(v) > 0 {
			t.Errorf("%q", v)
		}
	}
}
