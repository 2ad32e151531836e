package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/hostsim/redisgw"
)

const (
	killWorkers = 4
	killConns   = 64
	killWithin  = time.Second // a flag is known everywhere
)

// TestKill sets flags in the store through the bridge, as an operator does. Within a second every
// worker of an Envoy refuses the calls that they stop, without asking the store, and within a
// second of their end lets them pass again.
func TestKill(t *testing.T) {
	pair := &site{name: "kill-pair", hold: "pair", limits: faultLimits, namespace: "emmer"} // the bridge's own
	flag := &site{name: "kill-flag", hold: "flag", limits: faultLimits, namespace: "emmer"}
	st := newStand(t, 1, killWorkers, pair, flag)
	for _, o := range []struct {
		site             *site
		scope, id, lasts string
		others           int // what calls of another key meet
	}{
		{pair, "key", "victim", "", 200},
		{flag, "key", "victim", "", 200},
		{pair, "key", "victim", "3s", 200},
		{pair, "model", "m", "", 403},
		{flag, "global", "all", "", 403},
	} {
		t.Run(o.site.hold+" "+o.scope+" "+o.lasts, func(t *testing.T) { killed(t, st, o.site, o.scope, o.id, o.lasts, o.others) })
	}
}

func killed(t *testing.T, st *stand, s *site, scope, id, lasts string, other int) {
	sweep(t, st, s, "victim", 200)
	sweep(t, st, s, "other", 200)
	seen := s.provider.Count()
	// Nobody calls until the second is over: each worker must learn of it by itself.
	known := time.After(killWithin)
	set := time.Now()
	operate(t, st.bridge, "kill", fmt.Sprintf(`{"scope":%q,"id":%q,"reason":"test","for":%q}`, scope, id, lasts))
	<-known
	locally := st.metrics(0)["emmer.killed_locally"]
	asked := scripts(st)
	sweep(t, st, s, "victim", 403)
	sweep(t, st, s, "victim", 403)
	if n := scripts(st) - asked; n != 0 {
		t.Errorf("%d scripts ran for calls that a flag stops", n)
	}
	if n := st.metrics(0)["emmer.killed_locally"] - locally; n != 2*killConns {
		t.Errorf("%d calls were refused by the workers' own tables, want %d", n, 2*killConns)
	}
	if n := s.provider.Count() - seen; n != 0 {
		t.Errorf("%d stopped calls reached the provider", n)
	}
	sweep(t, st, s, "other", other)
	if lasts == "" {
		known = time.After(killWithin)
		operate(t, st.bridge, "resume", fmt.Sprintf(`{"scope":%q,"id":%q}`, scope, id))
	} else {
		d, err := time.ParseDuration(lasts)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(set); took > d {
			t.Fatalf("the flag ended after %v, before the sweeps were over, after %v", d, took)
		}
		known = time.After(time.Until(set.Add(d + killWithin)))
	}
	<-known
	sweep(t, st, s, "victim", 200)
	sweep(t, st, s, "other", 200)
}

// scripts is how many scripts were asked for; the poll of flags is none.
func scripts(st *stand) int { return st.bridge.Commands("EVALSHA", "EVAL") }

// operate sends an operator's verb to the bridge.
func operate(t *testing.T, g *redisgw.Gateway, verb, body string) {
	t.Helper()
	req, err := http.NewRequest("POST", g.URL()+"/emmer/v1/"+verb, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("authorization", "Bearer operator-token")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 200 {
		t.Fatalf("%s %s: %d %s %v", verb, body, res.StatusCode, text, err)
	}
}

// workerConns is how many connections each worker of the Envoy was given so far. Listeners that
// bind port 0 share these counters.
func workerConns(t *testing.T, st *stand) (n [killWorkers]int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	stats, err := st.envoys[0].Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for w := range n {
		name := fmt.Sprintf("listener.127.0.0.1_0.worker_%d.downstream_cx_total", w)
		var ok bool
		if n[w], ok = stats[name]; !ok {
			t.Fatalf("no counter %s", name)
		}
	}
	return n
}

// sweep makes a call on each of many new connections, so many that every worker has some, and wants
// this status of all.
func sweep(t *testing.T, st *stand, s *site, key string, want int) {
	t.Helper()
	const body = `{"model":"m","max_tokens":10,"messages":[]}`
	before := workerConns(t, st)
	wrong := make(chan string, killConns)
	var wg sync.WaitGroup
	for range killConns {
		wg.Go(func() {
			fresh := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
			req, err := http.NewRequest("POST", "http://"+st.envoys[0].Addr(s.name)+"/v1/chat/completions", strings.NewReader(body))
			if err != nil {
				wrong <- err.Error()
				return
			}
			req.Header.Set("authorization", "Bearer "+key)
			res, err := fresh.Do(req)
			if err != nil {
				wrong <- err.Error()
				return
			}
			defer res.Body.Close()
			if text, err := io.ReadAll(res.Body); err != nil || res.StatusCode != want {
				wrong <- fmt.Sprintf("%d %s %v", res.StatusCode, text, err)
			}
		})
	}
	wg.Wait()
	close(wrong)
	if n := len(wrong); n > 0 {
		t.Errorf("%d of %d calls were not answered with %d, the first: %s", n, killConns, want, <-wrong)
	}
	for w, n := range workerConns(t, st) {
		if n == before[w] {
			t.Errorf("worker %d was not asked", w)
		}
	}
}
