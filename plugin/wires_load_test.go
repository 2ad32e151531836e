package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/hostsim/upstream"
	"github.com/emmer-proxy/emmer/plugin/internal/wasmbuild"
)

// streamer plays a stream that never ends by itself, or an answer of one piece.
const streamer = `
on header x-case: cut
sse {"choices":[{"index":0,"delta":{"content":"one two"}}]}
sse {"choices":[{"index":0,"delta":{"content":"cut-here"}}]}
repeat 500 sse {"choices":[{"index":0,"delta":{"content":"more and more and more and more and more"}}]}
hang
on header x-case: slow
sse {"choices":[{"index":0,"delta":{"content":"one"}}]}
delay 30ms
sse {"choices":[{"index":0,"delta":{"content":"two"}}]}
delay 30ms
chat in=12 out=8 usage=always
on any
chat in=12 out=8 usage=always
`

// wireStand is a real Envoy with four workers whose filter cuts where the provider says so.
func wireStand(t *testing.T) *stand {
	script, err := upstream.Parse("streamer", 1, streamer, nil)
	if err != nil {
		t.Fatal(err)
	}
	provider, err := upstream.Start(script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { provider.Close() })
	s := &site{name: "wires", hold: "pair", closer: true, provider: provider,
		limits: `[{"name": "tokens", "by": ["key"], "count": "tokens", "max": 100000000, "window": {"calendar": "year"}}]`}
	return newStandWith(t, wasmbuild.Changed(t, cutHere...), nil, 1, 4, s)
}

// wireClient is net/http with keep-alive, on one protocol.
func wireClient(t *testing.T, h2 bool, window int) *http.Client {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!h2)
	protocols.SetUnencryptedHTTP2(h2)
	transport := &http.Transport{Protocols: protocols, MaxIdleConnsPerHost: 64, HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: window}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

func wireCall(ctx context.Context, c *http.Client, url, what string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, "POST", url+"/v1/chat/completions",
		strings.NewReader(`{"model":"m","stream":true,"max_tokens":91,"messages":[{"role":"user","content":"hello there"}]}`))
	if err != nil {
		return "", err
	}
	req.GetBody = nil // never sent again by the client itself
	req.Header.Set("authorization", "Bearer alice")
	req.Header.Set("x-case", what)
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != 200 {
		err = fmt.Errorf("status %d", resp.StatusCode)
	}
	return string(b), err
}

// TestCutsLeaveAClientWell ends streams of clients that keep their connections: on HTTP/1.1 every
// next request works at once, on HTTP/2 a hundred are cut together and their connection lives on.
func TestCutsLeaveAClientWell(t *testing.T) {
	t.Parallel()
	st := wireStand(t)
	url := "http://" + st.envoys[0].Addr("wires")
	ctx := context.Background()
	cuts := 0
	c := wireClient(t, false, 0)
	for i := range 200 {
		got, err := wireCall(ctx, c, url, "cut")
		if err != nil || !strings.Contains(got, "data: [DONE]\n\n: ") || strings.Contains(got, "more") {
			t.Fatalf("cut %d: %q, %v", i, got, err)
		}
		cuts++
		if got, err := wireCall(ctx, c, url, "plain"); err != nil || !strings.HasSuffix(got, "data: [DONE]\n\n") {
			t.Fatalf("the request behind cut %d: %q, %v", i, got, err)
		}
	}
	for _, window := range []int{0, 20} {
		c = wireClient(t, true, window)
		var all sync.WaitGroup
		for i := range 150 {
			what := "cut"
			if i%3 == 0 {
				what = "slow"
			} else {
				cuts++
			}
			all.Go(func() {
				got, err := wireCall(ctx, c, url, what)
				if err != nil || !strings.Contains(got, "data: [DONE]\n\n") || what == "slow" && !strings.Contains(got, `"two"`) {
					t.Errorf("%s, window %d: %q, %v", what, window, got, err)
				}
			})
		}
		all.Wait()
		if _, err := wireCall(ctx, c, url, "plain"); err != nil {
			t.Errorf("the next request: %v", err)
		}
	}
	st.wires(int64(cuts))
}

// wires checks what the closer counted, and that nothing is left.
func (st *stand) wires(cuts int64) {
	st.t.Helper()
	e := st.envoys[0]
	var m map[string]int64
	counted := func(name string) int64 { return m["wasmcustom.emmer."+name] }
	const active = "http.wires.downstream_rq_active"
	deadline := time.Now().Add(10 * time.Second)
	for {
		var err error
		if m, err = e.Stats(context.Background()); err != nil {
			st.t.Fatal(err)
		}
		if _, ok := m[active]; !ok {
			st.t.Fatalf("Envoy does not tell %s", active)
		}
		if m[active] == 0 && (cuts < 0 || counted("closed_clean") == cuts) || time.Now().After(deadline) {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	if n := counted("closed_clean"); cuts >= 0 && n != cuts {
		st.t.Errorf("%d answers were ended, want %d", n, cuts)
	}
	for _, name := range []string{"close_untracked", "recovered", "host_refused", "mismatch"} {
		if n := counted(name); n != 0 {
			st.t.Errorf("%s: %d", name, n)
		}
	}
	st.t.Logf("ended %d, lost %d, streams left %d", counted("closed_clean"), counted("close_lost"), m[active])
	if n := m[active]; n != 0 {
		st.t.Errorf("%d streams are left", n)
	}
}

// TestCutsAndAborts has a thousand calls on both protocols and windows of all sizes, of which many
// are left by their clients at any time: Envoy lives, nothing is left, and who stays sees an end.
func TestCutsAndAborts(t *testing.T) {
	t.Parallel()
	st := wireStand(t)
	url := "http://" + st.envoys[0].Addr("wires")
	rng := rand.New(rand.NewPCG(7, 7))
	clients := []*http.Client{wireClient(t, false, 0), wireClient(t, true, 0), wireClient(t, true, 30), wireClient(t, true, 3)}
	slots := make(chan struct{}, 24)
	var all sync.WaitGroup
	var left, whole atomic.Int64
	for range 1000 {
		c := clients[rng.IntN(len(clients))]
		what := []string{"cut", "cut", "slow", "plain"}[rng.IntN(4)]
		patience := 30 * time.Second
		if rng.IntN(3) == 0 {
			patience = time.Duration(rng.IntN(60_000)) * time.Microsecond
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			got, err := wireCall(ctx, c, url, what)
			switch {
			case errors.Is(err, context.DeadlineExceeded) && patience < time.Second:
				left.Add(1)
			case err != nil || !strings.Contains(got, "data: [DONE]\n\n"):
				t.Errorf("%s: %q, %v", what, got, err)
			default:
				whole.Add(1)
			}
		})
	}
	all.Wait()
	t.Logf("%d whole, %d left by their clients", whole.Load(), left.Load())
	if left.Load() < 20 || whole.Load() < 500 {
		t.Errorf("%d whole, %d left", whole.Load(), left.Load())
	}
	for _, c := range clients {
		c.CloseIdleConnections()
	}
	st.wires(-1)
}
