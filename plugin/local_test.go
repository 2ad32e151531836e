package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/hostsim/upstream"
)

// TestSharesBoundTheOvershoot uses a limit up, takes the store away from two gateways with four workers
// each, and lets many more call: at most the share times the workers pass, and when the store is back
// all that passed stands there, of a limit of calls and of one of tokens.
func TestSharesBoundTheOvershoot(t *testing.T) {
	const most, share, gateways, workers, calls = 100, 10, 2, 4, 600
	var sites []*site
	for _, hold := range []string{"pair", "flag"} {
		provider, err := upstream.Start(upstream.MustParse("on any\nchat in=12 out=7 usage=always"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { provider.Close() })
		sites = append(sites, &site{name: "share-" + hold, hold: hold, timeout: "500ms", provider: provider, more: fmt.Sprintf(`"failure": {"mode": "local", "local_share": "%d%%"},`, share),
			limits: fmt.Sprintf(`[{"name": "calls", "by": ["key"], "count": "requests", "max": %d, "window": {"calendar": "year"}},
				{"name": "day", "by": ["key"], "count": "tokens", "max": 100000000, "window": {"rolling": "24h"}}]`, most)})
	}
	st := newStand(t, gateways, workers, sites...)
	for _, s := range sites {
		t.Run(s.hold, func(t *testing.T) {
			before := st.sum("emmer.passed_local")
			// send makes calls at once, through both gateways, and counts what became of them.
			send := func(n, at int) map[string]int {
				got := map[string]int{}
				var mu sync.Mutex
				var wg sync.WaitGroup
				for i := range at {
					wg.Go(func() {
						for j := i; j < n; j += at {
							a := st.call(j%gateways, s.name, "k", faultBody)
							what := fmt.Sprint(a.status, " ", a.header.Get("x-emmer-decision"), " ", a.header.Get("x-emmer-limit"))
							if a.err != nil {
								what = a.err.Error()
							}
							if a.status == 429 && !strings.Contains(a.body, `"request_rate_exceeded"`) {
								what += " " + a.body
							}
							mu.Lock()
							got[what]++
							mu.Unlock()
						}
					})
				}
				wg.Wait()
				return got
			}
			if got := send(most+20, 8); got["200 granted "] != most || got["429 denied calls"] != 20 {
				t.Fatalf("with the store: %v", got)
			}
			st.bridge.KillBridge()
			got := send(calls, 48)
			if err := st.bridge.RestartBridge(); err != nil {
				t.Fatal(err)
			}
			passed := got["200 passed_local "]
			t.Logf("%d of %d calls passed without the store, at most %d may", passed, calls, most*share/100*gateways*workers)
			if passed+got["429 denied calls"] != calls || passed > most*share/100*gateways*workers {
				t.Errorf("without the store: %v", got)
			}
			if passed <= most*share/100 {
				t.Errorf("%d passed: no more than one worker's share, so that nothing is proven", passed)
			}
			eventually(t, 20*time.Second, func() string {
				if live, _ := st.records(s.name); live != 0 {
					return fmt.Sprintf("%d reservations are live", live)
				}
				c, d := st.level(s.name, "calls", "k"), st.level(s.name, "day", "k")
				if int(c.Remaining) != -passed || c.Reserved != 0 || 100000000-int(d.Remaining) != (most+passed)*faultTokens || d.Reserved != 0 {
					return fmt.Sprintf("calls: %+v, tokens: %+v, after %d + %d calls", c, d, most, passed)
				}
				return ""
			})
			if n := s.provider.Count(); n != most+passed {
				t.Errorf("the provider saw %d calls, want %d", n, most+passed)
			}
			if n := st.sum("emmer.passed_local") - before; n != int64(passed) {
				t.Errorf("%d were counted as passed, want %d", n, passed)
			}
			// The store decides again.
			if got := send(8, 2); got["429 denied calls"] != 8 {
				t.Errorf("with the store again: %v", got)
			}
		})
	}
}

// TestUnknownCallersCantFillAWorkerWhileTheStoreIsAway: each call of a new key takes sixteen entries
// of a worker's 4096; then only those who are known pass.
func TestUnknownCallersCantFillAWorkerWhileTheStoreIsAway(t *testing.T) {
	const each, most, calls = 16, 4096 / 16, 700
	var limits []string
	for i := range each {
		limits = append(limits, fmt.Sprintf(`{"name": "l%d", "by": ["key"], "count": "tokens", "max": 1000000, "window": {"rolling": "1h"}}`, i))
	}
	s := &site{name: "full", hold: "pair", timeout: "500ms", more: `"failure": {"mode": "local"},`, limits: "[" + strings.Join(limits, ",") + "]"}
	st := newStand(t, 1, 1, s)
	st.bridge.KillBridge()
	passed, refused := 0, 0
	for i := range calls {
		switch a := st.call(0, s.name, fmt.Sprintf("%d-%s", i, strings.Repeat("x", 90)), faultBody); {
		case a.err == nil && a.status == 200 && a.header.Get("x-emmer-decision") == "passed_local":
			passed++
		case a.err == nil && a.status == 503 && a.header.Get("x-emmer-decision") == "unavailable":
			refused++
		default:
			t.Fatalf("call %d: %d %v %s %v", i, a.status, a.header, a.body, a.err)
		}
	}
	if passed != most || refused != calls-most {
		t.Errorf("%d of %d new callers passed, want %d", passed, calls, most)
	}
	if n := st.sum("emmer.local_full"); n != int64(refused) {
		t.Errorf("%d were counted, want %d", n, refused)
	}
	if a := st.call(0, s.name, "7-"+strings.Repeat("x", 90), faultBody); a.status != 200 {
		t.Errorf("who is known got %d", a.status)
	}
	if err := st.bridge.RestartBridge(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func() string {
		if a := st.call(0, s.name, "newcomer", faultBody); a.status != 200 || a.header.Get("x-emmer-decision") != "granted" {
			return fmt.Sprintf("a newcomer got %d %s", a.status, a.header.Get("x-emmer-decision"))
		}
		if l := st.level(s.name, "l3", "7-"+strings.Repeat("x", 90)); int(l.Remaining) != 1000000-2*faultTokens {
			return fmt.Sprintf("of who called twice %d are left", l.Remaining)
		}
		return ""
	})
}

// sum is a counter of all gateways together.
func (st *stand) sum(name string) int64 {
	n := int64(0)
	for i := range st.envoys {
		n += st.metrics(i)[name]
	}
	return n
}
