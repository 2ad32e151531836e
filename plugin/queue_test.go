package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	queueCalls = 200
	queueStep  = 50 * time.Millisecond // of 20 a second
)

const queueBody = `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"hello there"}]}`

// scriptRun is a script that Redis was asked to run.
type scriptRun struct {
	at        time.Time // by Redis' clock
	namespace string
	nonce     string // r.ID of a reserve, s.ID of a settlement, n.ID of a renewal
}

var monitored = regexp.MustCompile(`^\+(\d+)\.(\d{6}) \[\d+ [0-9.:]+\] "(?i:evalsha|eval)".* "([a-z0-9-]+):1:\{g\}:ctl".* "([rsnx]\.[^" ]*)"$`)

// monitor lists the scripts that Redis runs from now on, in order, until stop.
func (st *stand) monitor() (stop func() []scriptRun) {
	st.t.Helper()
	conn, err := net.Dial("tcp", st.server.Addr())
	if err != nil {
		st.t.Fatal(err)
	}
	lines := bufio.NewReader(conn)
	if _, err = io.WriteString(conn, "MONITOR\r\n"); err == nil {
		_, err = lines.ReadString('\n')
	}
	if err != nil {
		st.t.Fatal(err)
	}
	all := make(chan []scriptRun)
	go func() {
		var runs []scriptRun
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				all <- runs
				return
			}
			if m := monitored.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				s, _ := strconv.ParseInt(m[1], 10, 64)
				us, _ := strconv.ParseInt(m[2], 10, 64)
				runs = append(runs, scriptRun{time.UnixMicro(s*1e6 + us), m[3], m[4]})
			}
		}
	}()
	return func() []scriptRun {
		conn.Close()
		return <-all
	}
}

// TestTwoHundredCallsLeaveAtTwentyASecond: 200 calls come within a second upon a bucket of 20 a second and wait for their
// turns. They reach the provider in the order in which the store took them, none before its turn and the last one
// within 5 % of it, and each costs one reserve and one settlement.
func TestTwoHundredCallsLeaveAtTwentyASecond(t *testing.T) {
	t.Parallel()
	const limits = `[{"name": "rps", "by": [], "count": "requests", "bucket": {"rate": "20/s", "burst": 1}, "queue": "30s"}]`
	sites := []*site{{name: "q-pair", hold: "pair", limits: limits}, {name: "q-flag", hold: "flag", limits: limits}, {name: "q-warm", hold: "flag", limits: limits}}
	st := newStand(t, 1, 1, sites...)
	if a := st.call(0, "q-warm", "k", queueBody); a.status != 200 { // loads the scripts
		t.Fatalf("%+v", a)
	}
	eventually(t, 10*time.Second, func() string {
		if _, settled := st.records("q-warm"); settled != 1 {
			return "the first call is not settled"
		}
		return ""
	})
	stop := st.monitor()
	// Ten times as fast as they may leave, but not so fast that answers of the store are late.
	var wg sync.WaitGroup
	pace := time.NewTicker(queueStep / 10)
	defer pace.Stop()
	for i := range queueCalls {
		<-pace.C
		for _, s := range sites[:2] {
			wg.Go(func() {
				if a := st.call(0, s.name, fmt.Sprintf("c%03d", i), queueBody); a.status != 200 {
					t.Errorf("%s: call %d: %+v", s.name, i, a)
				}
			})
		}
	}
	wg.Wait()
	for _, s := range sites[:2] {
		eventually(t, 10*time.Second, func() string {
			if held, settled := st.records(s.name); held != 0 || settled != queueCalls {
				return fmt.Sprintf("%s: %d held, %d settled", s.name, held, settled)
			}
			return ""
		})
	}
	runs := stop()
	for _, s := range sites[:2] {
		t.Run(s.hold, func(t *testing.T) { inOrder(t, st, s, runs) })
	}
}

func inOrder(t *testing.T, st *stand, s *site, runs []scriptRun) {
	names := map[string]string{} // of the callers, by reservation
	for _, line := range st.envoys[0].AccessLog(s.name) {
		var log struct{ Rid, ID_key string }
		if at := strings.IndexByte(line, '{'); at < 0 || json.Unmarshal([]byte(line[at:]), &log) != nil {
			t.Fatalf("access log: %s", line)
		}
		names[log.Rid] = log.ID_key
	}
	var queue []string // of callers, as the store took them
	var first time.Time
	count := map[string]int{}
	for _, r := range runs {
		if r.namespace != s.space() {
			continue
		}
		count[r.nonce[:2]]++
		if r.nonce[:2] == "r." {
			if queue = append(queue, names[r.nonce[2:]]); len(queue) == 1 {
				first = r.at
			}
		}
	}
	if count["r."] != queueCalls || count["s."] != queueCalls || len(count) != 2 {
		t.Fatalf("scripts by kind: %v, want %d r. and as many s.", count, queueCalls)
	}
	arrived := map[string]time.Time{}
	for _, r := range s.provider.Requests() {
		arrived[strings.TrimPrefix(r.Header.Get("authorization"), "Bearer ")] = r.At
	}
	// A busy machine may keep a call or its answer from the store for longer than a step, not most of them, and only those
	// are overtaken.
	late := map[string]time.Duration{}
	most, kept := time.Duration(0), 0
	for i, name := range queue {
		at, turn := arrived[name], first.Add(time.Duration(i)*queueStep)
		if at.Before(turn.Add(-2 * time.Millisecond)) {
			t.Errorf("place %d: %v before its turn", i, turn.Sub(at))
		}
		late[name] = at.Sub(turn)
		if most = max(most, late[name]); late[name] > queueStep {
			kept++
		}
		for _, before := range queue[:i] {
			if at.Before(arrived[before]) && late[before] <= queueStep {
				t.Errorf("place %d came before %s, which was not late", i, before)
			}
		}
	}
	if kept > queueCalls/2 {
		t.Errorf("%d of %d calls were later than %v", kept, queueCalls, queueStep)
	}
	if len(arrived) != queueCalls || s.provider.Count() != queueCalls {
		t.Fatalf("%d calls of %d callers reached the provider", s.provider.Count(), len(arrived))
	}
	span, want := arrived[queue[queueCalls-1]].Sub(first), (queueCalls-1)*queueStep
	if span > want*105/100 {
		t.Errorf("all %d calls in %v, want %v", queueCalls, span, want)
	}
	t.Logf("%d calls in %v (by rate %v), at most %v late, %d by more than %v", queueCalls, span, want, most, kept, queueStep)
}
