package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/bucket/script"
	"github.com/emmer-proxy/emmer/hostsim/upstream"
)

// everyKind has a limit of each kind that a filter can ask a store for.
const everyKind = `[
	{"name": "bucket", "by": ["key"], "count": "tokens", "bucket": {"rate": "1000/m", "burst": 1000}},
	{"name": "divided", "by": ["model"], "count": "tokens", "bucket": {"rate": "100000/m", "burst": 100000}, "reserved": {"admin": "5%"}, "shares": {"search": "70%", "batch": "30%"}},
	{"name": "month", "by": ["key"], "count": "cost", "max": "10", "window": {"calendar": "month"}},
	{"name": "hour", "by": ["key", "model"], "count": "requests", "max": 100, "window": {"rolling": "1h"}},
	{"name": "slots", "by": ["key"], "count": "concurrency", "max": 50},
	{"name": "spree", "by": ["key"], "count": "tokens", "burn": {"above": "5/m", "for": "1m", "then": "kill"}}]`

// TestCallsOfTheStore looks at what is between the filter and a real Redis: which keys scripts touch, and what is
// held of it while answers stream or the gateway stands still.
func TestCallsOfTheStore(t *testing.T) {
	const streams = "on header x-kind: long\n" + `sse {"choices":[{"index":0,"delta":{"content":"Once"}}]}` + "\nwait end\n" +
		`sse {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}` + "\ndone\non any\nchat in=12 out=7 usage=always"
	site := func(name, hold, timeout, more, limits string) *site {
		provider, err := upstream.Start(upstream.MustParse(streams))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { provider.Close() })
		return &site{name: name, hold: hold, more: more, limits: limits, timeout: timeout, provider: provider,
			identity: `, "class": {"header": "x-class", "one_of": ["search", "batch", "admin"], "default": "search"}`}
	}
	keys := site("keys", "pair", "5s", `"lease": {"for": "1s", "keep": "60s"},`, everyKind)
	idle := site("idle", "pair", "5s", "", faultLimits)
	closed := site("closed", "pair", faultTimeout.String(), "", faultLimits)
	open := site("open", "flag", faultTimeout.String(), `"failure": {"mode": "open"},`, faultLimits)
	st := newStand(t, 1, 2, keys, idle, closed, open)
	t.Run("every key is declared", func(t *testing.T) { declaredKeys(t, st, keys) })
	t.Run("a stream holds nothing of the store", func(t *testing.T) { idleStreams(t, st, idle) })
	t.Run("a stalled gateway takes nothing twice", func(t *testing.T) { stalledGateway(t, st, closed, open) })
}

// declaredKeys follows Redis' MONITOR: what a script touches stands among its KEYS, and all of those in one slot.
func declaredKeys(t *testing.T, st *stand, s *site) {
	conn, err := net.Dial("tcp", st.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		t.Fatal(err)
	}
	monitor := bufio.NewScanner(conn)
	monitor.Buffer(nil, 1<<20) // scripts are sent whole at first
	if !monitor.Scan() || monitor.Text() != "+OK" {
		t.Fatalf("MONITOR answers %q, %v", monitor.Text(), monitor.Err())
	}
	body, stream := thousand(t, s, false), thousand(t, s, true)
	if a := st.call(0, s.name, "k", body); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	eventually(t, 5*time.Second, func() string { // its settle makes room, and its burn rule raises a flag
		if a := st.call(0, s.name, "k", body); a.status != 403 {
			return fmt.Sprintf("no flag: %d %s", a.status, a.body)
		}
		return ""
	})
	over := make(chan answer, 2)
	go func() { over <- st.call(0, s.name, "slow", stream, "x-kind", "long", "x-class", "batch") }()
	arrived(t, s, 2)
	if a := st.call(0, s.name, "slow", body, "x-class", "admin"); a.status != 429 {
		t.Fatalf("%+v", a)
	}
	before := st.metrics(0)["emmer.renewed"]
	eventually(t, 5*time.Second, func() string {
		if st.metrics(0)["emmer.renewed"] == before {
			return "the stream was not renewed"
		}
		return ""
	})
	s.provider.Open("end")
	<-over
	eventually(t, 5*time.Second, func() string {
		if held, _ := st.records(s.name); held != 0 {
			return "not settled"
		}
		return ""
	})
	if err := st.redis.Echo(context.Background(), "the end").Err(); err != nil {
		t.Fatal(err)
	}

	names := map[string]string{}
	for _, sc := range []*script.Script{script.Reserve, script.Settle, script.Renew, script.Extend, script.Probe} {
		names[sc.SHA], names[sc.Text] = sc.Name, sc.Name
	}
	var declared []string
	ran, touched := map[string]int{}, 0
	for monitor.Scan() {
		line := monitor.Text()
		args := quotedArgs(t, line)
		command := strings.ToLower(args[0])
		switch {
		case command == "echo":
			for _, name := range []string{script.Reserve.Name, script.Settle.Name, script.Renew.Name} {
				if ran[name] == 0 {
					t.Errorf("the script %s was not seen: %v", name, ran)
				}
			}
			if touched < 40 {
				t.Errorf("scripts touched keys %d times only", touched)
			}
			return
		case command == "evalsha" || command == "eval":
			n, err := strconv.Atoi(args[2])
			if err != nil || n > len(args)-3 {
				t.Fatalf("%q", line)
			}
			declared = args[3 : 3+n]
			ran[names[args[1]]]++
			for _, k := range declared {
				if !strings.Contains(k, ":{g}:") {
					t.Errorf("the key %q is in a slot of its own", k)
				}
			}
		case strings.Contains(line, " lua] ") && command != "time":
			touched++
			if !slices.Contains(declared, args[1]) {
				t.Errorf("a script touched %q, and its KEYS are %q", args[1], declared)
			}
		}
	}
	t.Errorf("MONITOR ended: %v", monitor.Err())
}

// quotedArgs reads a line of MONITOR: time [database who] "command" "argument"...
func quotedArgs(t *testing.T, line string) []string {
	t.Helper()
	_, rest, ok := strings.Cut(line, "] ")
	if !ok {
		t.Fatalf("MONITOR says %q", line)
	}
	var out []string
	for rest != "" {
		q, err := strconv.QuotedPrefix(rest)
		if err != nil {
			t.Fatalf("MONITOR says %q: %v", line, err)
		}
		text, err := strconv.Unquote(q)
		if err != nil {
			t.Fatal(err)
		}
		out, rest = append(out, text), strings.TrimPrefix(rest[len(q):], " ")
	}
	return out
}

// idleStreams lets many answers stream at once: none of them holds a callout open, and others are decided as ever.
func idleStreams(t *testing.T, st *stand, s *site) {
	const streams = 100
	body := `{"model":"m","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"tell me a story"}]}`
	var lines sync.WaitGroup
	var ended sync.Map
	for i := range streams {
		lines.Go(func() { ended.Store(i, st.call(0, s.name, "streams", body, "x-kind", "long")) })
	}
	arrived(t, s, streams)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	eventually(t, 5*time.Second, func() string {
		stats, err := st.envoys[0].Stats(ctx)
		if err != nil {
			return err.Error()
		}
		if n, ok := stats["cluster.bridge.upstream_rq_active"]; !ok || n != 0 {
			return fmt.Sprintf("%d callouts are open (%v) beside %d streams", n, ok, streams)
		}
		return ""
	})
	if a := st.call(0, s.name, "streams", faultBody); a.status != 200 {
		t.Errorf("beside the streams: %+v", a)
	}
	s.provider.Open("end")
	lines.Wait()
	for i := range streams {
		if a, _ := ended.Load(i); a.(answer).status != 200 {
			t.Fatalf("stream %d: %+v", i, a)
		}
	}
	eventually(t, 10*time.Second, func() string {
		l := st.level(s.name, "day", "streams")
		if used := 100000000 - int(l.Remaining); l.Reserved != 0 || used != streams*11+faultTokens {
			return fmt.Sprintf("%d used and %d reserved", used, l.Reserved)
		}
		return ""
	})
}

// stalledGateway stops the whole gateway again and again for longer than the store may take: whatever was under way
// then (a reserve not yet written, an answer not yet read) may end as unknown, and is taken or given back once.
func stalledGateway(t *testing.T, st *stand, closed, open *site) {
	pid := st.envoys[0].Pid()
	t.Cleanup(func() { syscall.Kill(pid, syscall.SIGCONT) })
	loops := []*traffic{st.drive(t, closed, "stall"), st.drive(t, open, "stall")}
	pace := time.NewTicker(3 * faultTimeout / 2)
	defer pace.Stop()
	for n := range 10 {
		await(t, 10*time.Second, "on its way", loops, func(granted, _, _ int) bool { return granted >= 10*(n+1) })
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		pace.Reset(3 * faultTimeout / 2)
		<-pace.C
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	await(t, 10*time.Second, "back", loops, func(_, run, _ int) bool { return run >= 20 })
	st.end(t, loops)
	if loops[0].refused+loops[1].passed == 0 {
		t.Error("no call met a stall: the test proves nothing")
	}
	for name, n := range st.metrics(0) {
		if (name == "emmer.outbox_dropped" || name == "emmer.settle_failed" || name == "emmer.recovered") && n != 0 {
			t.Errorf("%s is %d", name, n)
		}
	}
}
