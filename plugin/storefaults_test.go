package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/hostsim/upstream"
	"github.com/emmer-proxy/emmer/plugin/internal/wasmbuild"
)

const (
	faultTimeout = 200 * time.Millisecond // of the store, in the sites below
	faultAnswer  = 1500 * time.Millisecond
	faultLimits  = `[{"name": "day", "by": ["key"], "count": "tokens", "max": 100000000, "window": {"calendar": "year"}}]`
	faultTokens  = 19 // of each call, as the provider reports
	faultBody    = `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"tell me a story"}]}`
)

// TestFaultsOfTheStore takes the store away from running traffic in each way that it can go, from a
// site that then refuses and from one that then lets pass, and sees both come back by themselves
// and book right. Redis keeps an append-only file, so that a kill loses only what was under way.
// Then a stream outlives its lease, and at last the gateway itself is killed.
func TestFaultsOfTheStore(t *testing.T) {
	site := func(name, hold, more, limits string) *site {
		provider, err := upstream.Start(upstream.MustParse("on header x-kind: long\n" +
			`sse {"choices":[{"index":0,"delta":{"content":"Once"}}]}` + "\nwait end\n" +
			`sse {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}` + "\ndone\n" +
			"on any\nchat in=12 out=7 usage=always"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { provider.Close() })
		return &site{name: name, hold: hold, more: more, limits: limits, timeout: faultTimeout.String(), provider: provider}
	}
	closed := site("closed", "pair", "", faultLimits)
	open := site("open", "flag", `"failure": {"mode": "open"},`, faultLimits)
	long := site("long", "pair", leaseSection, faultLimits)
	crash := site("crash", "flag", leaseSection, crashLimits)
	st := newStandWith(t, wasmbuild.Path(t), []string{"--appendonly", "yes", "--appendfsync", "always"}, 1, 4, closed, open, long, crash)
	for _, f := range []struct {
		name        string
		begin, stop func(t *testing.T)
	}{
		{"bridge killed", func(*testing.T) { st.bridge.KillBridge() }, func(t *testing.T) {
			if err := st.bridge.RestartBridge(); err != nil {
				t.Fatal(err)
			}
		}},
		{"Redis killed", func(*testing.T) { st.server.Kill() }, func(*testing.T) { st.server.Restart() }},
		{"Redis stopped", func(*testing.T) { st.server.Pause() }, func(*testing.T) { st.server.Resume() }},
		// What a stopped bridge has taken in, it carries out later: reserves behind their cancels.
		{"bridge stopped", func(*testing.T) { st.bridge.Stall(true) }, func(*testing.T) { st.bridge.Stall(false) }},
		// Everything is carried out and nothing is heard of it.
		{"replies lost", func(*testing.T) { st.bridge.DropReply(1 << 30) }, func(*testing.T) { st.bridge.DropReply(0) }},
	} {
		t.Run(f.name, func(t *testing.T) { storeLost(t, st, closed, open, f.begin, f.stop) })
	}
	t.Run("scripts flushed", func(t *testing.T) { scriptsLost(t, st, closed, open) })
	t.Run("stream longer than its lease", func(t *testing.T) { longStream(t, st, long) })
	t.Run("gateway killed", func(t *testing.T) { gatewayLost(t, st, crash) }) // the last: it ends the Envoy
}

// traffic is a closed loop of callers of one site with one key, until it is stopped.
type traffic struct {
	t    *testing.T
	site *site
	key  string
	stop chan struct{}
	wg   sync.WaitGroup

	mu      sync.Mutex
	granted int
	run     int // granted ones since the last that was not
	refused int
	passed  int
	worst   time.Duration
}

const faultCallers = 4 // of each of two sites

func (st *stand) drive(t *testing.T, s *site, key string) *traffic {
	d := &traffic{t: t, site: s, key: key, stop: make(chan struct{})}
	for range faultCallers {
		d.wg.Go(func() {
			pace := time.NewTicker(10 * time.Millisecond)
			defer pace.Stop()
			for {
				select {
				case <-d.stop:
					return
				case <-pace.C:
				}
				start := time.Now()
				d.note(st.call(0, s.name, key, faultBody), time.Since(start))
			}
		})
	}
	return d
}

func (d *traffic) note(a answer, took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.worst = max(d.worst, took)
	decision := a.header.Get("x-emmer-decision")
	switch {
	case a.err == nil && a.status == 200 && decision == "granted":
		d.granted++
		d.run++
		return
	case a.err == nil && a.status == 200 && decision == "passed_open" && d.site.name == "open":
		d.passed++
	case a.err == nil && a.status == 503 && decision == "unavailable" && strings.Contains(a.body, `"limits_unavailable"`) && d.site.name == "closed":
		d.refused++
	default:
		d.t.Errorf("%s, after %v: %d %s %s %v", d.site.name, took, a.status, decision, a.body, a.err)
	}
	d.run = 0
}

// see reads the counts: granted, granted in a row, and those that met the fault.
func (d *traffic) see() (granted, run, hit int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.granted, d.run, d.refused + d.passed
}

// await waits until both loops satisfy f.
func await(t *testing.T, most time.Duration, what string, loops []*traffic, f func(granted, run, hit int) bool) {
	t.Helper()
	eventually(t, most, func() string {
		for _, d := range loops {
			if granted, run, hit := d.see(); !f(granted, run, hit) {
				return fmt.Sprintf("%s: not %s: %d granted, %d of them in a row, %d hit by the fault", d.site.name, what, granted, run, hit)
			}
		}
		return ""
	})
}

// end stops the loops, waits until nothing is owed to the store, and compares what was booked and
// what the providers saw with the answers.
func (st *stand) end(t *testing.T, loops []*traffic) {
	t.Helper()
	for _, d := range loops {
		close(d.stop)
	}
	for _, d := range loops {
		d.wg.Wait()
		through := d.granted + d.passed
		eventually(t, 20*time.Second, func() string {
			if live, _ := st.records(d.site.name); live != 0 {
				return fmt.Sprintf("%s: %d reservations are live", d.site.name, live)
			}
			l := st.level(d.site.name, "day", d.key)
			if used := 100000000 - int(l.Remaining); l.Reserved != 0 || used != through*faultTokens {
				return fmt.Sprintf("%s: %d tokens used and %d reserved after %d calls of %d", d.site.name, used, l.Reserved, through, faultTokens)
			}
			return ""
		})
		saw := 0
		for _, r := range d.site.provider.Requests() {
			if r.Header.Get("Authorization") == "Bearer "+d.key {
				saw++
			}
		}
		if saw != through {
			t.Errorf("%s: the provider saw %d calls, and %d were answered by it", d.site.name, saw, through)
		}
		if d.worst > faultAnswer {
			t.Errorf("%s: an answer took %v, with a timeout of %v for the store", d.site.name, d.worst, faultTimeout)
		}
		t.Logf("%s: %d granted, %d refused, %d passed open, the slowest answer after %v", d.site.name, d.granted, d.refused, d.passed, d.worst.Round(time.Millisecond))
	}
}

func storeLost(t *testing.T, st *stand, closed, open *site, begin, stop func(*testing.T)) {
	key := strings.ReplaceAll(t.Name(), "/", "-")
	before := st.metrics(0)
	loops := []*traffic{st.drive(t, closed, key), st.drive(t, open, key)}
	await(t, 10*time.Second, "under way", loops, func(granted, _, _ int) bool { return granted >= 20 })
	begin(t)
	lasts := time.After(2 * time.Second) // for retries to pile up
	await(t, 10*time.Second, "hit", loops, func(_, _, hit int) bool { return hit >= 24 })
	<-lasts
	stop(t)
	await(t, 5*time.Second, "back", loops, func(_, run, _ int) bool { return run >= 40 })
	st.end(t, loops)
	// The outbox hears what became of every one; what the store had already, it hears twice.
	var after map[string]int64
	eventually(t, 20*time.Second, func() string {
		after = st.metrics(0)
		heard := int64(0)
		for _, how := range []string{"settled", "settled_unknown", "settled_late", "settled_duplicate"} {
			heard += after["emmer."+how] - before["emmer."+how]
		}
		if all := loops[0].granted + loops[0].refused + loops[1].granted + loops[1].passed; heard != int64(all) {
			return fmt.Sprintf("%d settlements are over, of %d", heard, all)
		}
		return ""
	})
	for name, want := range map[string]int{
		"unavailable": loops[0].refused, "passed_open": loops[1].passed,
		"settle_failed": 0, "outbox_dropped": 0, "recovered": 0, "host_refused": 0,
	} {
		if got := after["emmer."+name] - before["emmer."+name]; got != int64(want) {
			t.Errorf("counter emmer.%s rose by %d, want %d", name, got, want)
		}
	}
}

// scriptsLost empties Redis' script cache again and again: each call asks once more with the whole
// script, and none is refused for it.
func scriptsLost(t *testing.T, st *stand, closed, open *site) {
	before := st.metrics(0)
	loops := []*traffic{st.drive(t, closed, "flush"), st.drive(t, open, "flush")}
	for n := range 10 {
		await(t, 10*time.Second, "on its way", loops, func(granted, _, _ int) bool { return granted >= 20*(n+1) })
		if err := st.bridge.FlushScripts(); err != nil {
			t.Fatal(err)
		}
	}
	await(t, 10*time.Second, "back", loops, func(granted, _, _ int) bool { return granted >= 220 })
	st.end(t, loops)
	for _, d := range loops {
		if _, _, hit := d.see(); hit != 0 {
			t.Errorf("%s: %d calls were not granted", d.site.name, hit)
		}
	}
	if n := st.metrics(0)["emmer.script_loaded"] - before["emmer.script_loaded"]; n < 10 {
		t.Errorf("scripts were sent whole %d times for 10 flushes", n)
	}
}

// arrived waits until a site's provider has n whole requests.
func arrived(t *testing.T, s *site, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.provider.Await(ctx, func() bool {
		r := s.provider.Requests()
		return len(r) >= n && r[n-1].Complete
	}); err != nil {
		t.Fatalf("%s: the provider has %d requests, want %d", s.name, s.provider.Count(), n)
	}
}
