package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/hostsim/upstream"
	"github.com/emmer-proxy/emmer/plugin/internal/wasmbuild"
)

// window10000 is a calendar window of 10,000 tokens for each key.
const window10000 = `[{"name": "day", "by": ["key"], "count": "tokens", "max": 10000, "window": {"calendar": "year", "timezone": "UTC"}}]`

// rolling10000 is a rolling one.
const rolling10000 = `[{"name": "day", "by": ["key"], "count": "tokens", "max": 10000, "window": {"rolling": "24h"}}]`

// thousand is a chat body that reserves exactly 1,000 tokens: cap is what the estimate leaves.
func thousand(t *testing.T, s *site, stream bool) string {
	t.Helper()
	body := func(cap int) string {
		return fmt.Sprintf(`{"model":"m","stream":%v,"max_tokens":%d,"messages":[{"role":"user","content":"tell me a story"}]}`, stream, cap)
	}
	in := estimate(t, s, body(500))
	return body(1000 - in)
}

// TestRace lets 64 calls of 1,000 tokens race for 10,000, in both hold modes, through one Envoy
// with four workers and through two Envoys, with JSON answers and with streams. The provider
// answers no call before all are decided, so no settlement makes room.
func TestRace(t *testing.T) {
	var sites []*site
	for _, hold := range []string{"pair", "flag"} {
		for _, kind := range []string{"json", "stream", "two", "rolling-two"} {
			s := &site{name: "race-" + hold + "-" + kind, hold: hold, limits: window10000}
			if kind == "rolling-two" {
				s.limits = rolling10000
			}
			provider, err := upstream.Start(upstream.MustParse("on any\nwait go\nchat in=1 out=999 usage=always"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { provider.Close() })
			s.provider = provider
			sites = append(sites, s)
		}
	}
	st := newStand(t, 2, 4, sites...)
	for _, s := range sites {
		t.Run(s.name, func(t *testing.T) {
			race(t, st, s, strings.HasSuffix(s.name, "stream"), strings.HasSuffix(s.name, "two"))
		})
	}
}

const raceCalls, raceFits = 64, 10

func race(t *testing.T, st *stand, s *site, stream, two bool) {
	body := thousand(t, s, stream)
	answers := storm(t, st, s, body, two, raceCalls-raceFits)
	byStatus := map[int]int{}
	for _, a := range answers {
		byStatus[a.status]++
		if a.status == 429 && !strings.Contains(a.body, `"rate_limit_exceeded"`) {
			t.Errorf("a refusal says %s", a.body)
		}
	}
	if byStatus[200] != raceFits || byStatus[429] != raceCalls-raceFits {
		t.Errorf("answers by status: %v, want %d of 200 and %d of 429", byStatus, raceFits, raceCalls-raceFits)
	}
	got := s.provider.Requests()
	if len(got) != raceFits {
		t.Errorf("the provider saw %d requests, want %d", len(got), raceFits)
	}
	for _, r := range got {
		if string(r.Body) != body || !r.Complete {
			t.Errorf("the provider saw a body of %d bytes (%q), want the client's %d", len(r.Body), r.Body, len(body))
		}
	}
	if conns := s.provider.Conns(); len(conns) > raceFits {
		t.Errorf("%d connections reached the provider: a refused call opened one", len(conns))
	}
	eventually(t, 5*time.Second, func() string {
		if live, settled := st.records(s.name); live != 0 || settled != raceFits {
			return fmt.Sprintf("%d live and %d settled reservations, want 0 and %d", live, settled, raceFits)
		}
		return ""
	})
	if l := st.level(s.name, "day", "k"); l.Remaining != 0 || l.Reserved != 0 {
		t.Errorf("the window stands at %d left and %d reserved, want 0 and 0", l.Remaining, l.Reserved)
	}
}

// storm sends the calls at once and opens the provider's gate when so many are over.
func storm(t *testing.T, st *stand, s *site, body string, two bool, over int) []answer {
	answers := make([]answer, raceCalls)
	var wg sync.WaitGroup
	decided := make(chan struct{}, raceCalls)
	for i := range answers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			n := 0
			if two {
				n = i % 2
			}
			answers[i] = st.call(n, s.name, "k", body)
			decided <- struct{}{}
		}()
	}
	for range over {
		select {
		case <-decided:
		case <-time.After(20 * time.Second):
			t.Fatal("the refusals didn't come while the admitted calls wait")
		}
	}
	s.provider.Open("go")
	wg.Wait()
	for _, a := range answers {
		if a.err != nil {
			t.Fatal(a.err)
		}
	}
	return answers
}

// TestRaceNoticesABrokenCheck breaks the one line of the script that refuses, and sees calls pass
// that TestRace would not let pass.
func TestRaceNoticesABrokenCheck(t *testing.T) {
	const check = "if q.n>0 and (q.n>q.max-q.used or q.bound) and not q.shadow then short=true end"
	text, err := os.ReadFile("../bucket/script/reserve.lua")
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(text), check, "if q.n>q.max then short=true end", 1)
	if broken == string(text) {
		t.Fatalf("reserve.lua has no line %q", check)
	}
	provider, err := upstream.Start(upstream.MustParse("on any\nwait go\nchat in=1 out=999 usage=always"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { provider.Close() })
	s := &site{name: "race-broken", hold: "flag", limits: window10000, provider: provider}
	st := newStandWith(t, wasmbuild.Altered(t, "bucket/script/reserve.lua", broken), nil, 1, 4, s)
	admitted := 0
	for _, a := range storm(t, st, s, thousand(t, s, false), false, 0) {
		if a.status == 200 {
			admitted++
		}
	}
	if admitted <= raceFits {
		t.Errorf("%d calls were admitted with a broken check: the race proves nothing", admitted)
	}
}
