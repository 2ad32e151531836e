package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/hostsim"
	"github.com/emmer-proxy/emmer/hostsim/redisgw"
	"github.com/emmer-proxy/emmer/hostsim/upstream"
	"github.com/emmer-proxy/emmer/plugin/internal/wasmbuild"
)

// everyTwo lets a call of each key go every two seconds.
const everyTwo = `[{"name": "rps", "by": ["key"], "count": "requests", "bucket": {"rate": "30/m", "burst": 1}, "queue": "300s"}]`

// TestWhatEnvoyDoesToCallsThatWait holds what plugin/README.md says of its timeouts and of clients that leave.
func TestWhatEnvoyDoesToCallsThatWait(t *testing.T) {
	t.Parallel()
	var sites []*site
	for _, hold := range []string{"pair", "flag"} {
		sites = append(sites, &site{name: "qe-" + hold, hold: hold, limits: everyTwo, whole: time.Second},
			&site{name: "qe-idle-" + hold, hold: hold, limits: everyTwo, idle: time.Second})
	}
	st := newStand(t, 1, 1, sites...)
	var wg sync.WaitGroup
	for _, s := range sites {
		if s.idle > 0 {
			wg.Go(func() { idle(t, st, s) })
			continue
		}
		// The next request of the client is whole, has begun, or is larger than what Envoy reads of it.
		for i, more := range []string{"", rawCall("k", queueBody), rawCall("k", queueBody)[:60], rawCall("k", strings.Repeat(" ", 4<<20)+queueBody)} {
			for _, rude := range []bool{false, true} {
				wg.Go(func() { leavesBehind(t, st, s, fmt.Sprintf("k%d%v", i, rude), more, rude) })
			}
		}
	}
	wg.Wait()

	// The process ends though calls wait.
	for _, s := range sites {
		for range 3 {
			go st.call(0, s.name, "end", queueBody)
		}
	}
	before := st.metrics(0)["emmer.queued"]
	eventually(t, 10*time.Second, func() string {
		if st.metrics(0)["emmer.queued"] == before {
			return "nobody waits"
		}
		return ""
	})
	begin := time.Now()
	if st.envoys[0].Stop(); time.Since(begin) > 4*time.Second {
		t.Errorf("Envoy took %v to end", time.Since(begin))
	}
}

// idle: stream_idle_timeout counts while a call waits, and gives its place back.
func idle(t *testing.T, st *stand, s *site) {
	if a := st.call(0, s.name, "k", queueBody); a.status != 200 {
		t.Errorf("%s: %+v", s.name, a)
		return
	}
	if a := st.call(0, s.name, "k", queueBody); a.status != 504 {
		t.Errorf("%s: %+v", s.name, a)
	}
	if wrong := complaint(10*time.Second, func() string {
		if r := reserved(st, s, "k"); r != 0 || s.provider.Count() != 1 {
			return fmt.Sprintf("%d reserved, %d calls at the provider", r, s.provider.Count())
		}
		return ""
	}); wrong != "" {
		t.Errorf("%s: %s", s.name, wrong)
	}
}

// reserved is what live reservations hold of a key's limit, -1 if the store can't say.
func reserved(st *stand, s *site, key string) bucket.Amount {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	l, err := st.store(s.name).level(ctx, "rps", map[string]string{"key": key})
	if err != nil {
		return -1
	}
	return l.Reserved
}

func rawCall(key, body string) string {
	return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nhost: llm\r\ncontent-type: application/json\r\nauthorization: Bearer %s\r\ncontent-length: %d\r\n\r\n%s", key, len(body), body)
}

// leavesBehind leaves while its call waits, after it has sent more on the connection. Whether Envoy sees that at
// once or not: the call is settled, at its turn at the latest, and the level is right.
// request_timeout, of one second here, doesn't count while a call waits.
func leavesBehind(t *testing.T, st *stand, s *site, key, more string, rude bool) {
	if a := st.call(0, s.name, key, queueBody); a.status != 200 {
		t.Errorf("%s %s: %+v", s.name, key, a)
		return
	}
	conn, err := net.Dial("tcp", st.envoys[0].Addr(s.name))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, rawCall(key, queueBody)); err != nil {
		t.Error(err)
	}
	if wrong := complaint(10*time.Second, func() string {
		if reserved(st, s, key) == 0 {
			return "the call does not wait"
		}
		return ""
	}); wrong != "" {
		t.Errorf("%s %s: %s", s.name, key, wrong)
	}
	_ = conn.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
	_, _ = io.WriteString(conn, more) // not all of it, if Envoy stops reading
	if rude {
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
	conn.Close()
	if wrong := complaint(20*time.Second, func() string {
		if r := reserved(st, s, key); r != 0 {
			return fmt.Sprintf("%d is reserved for a client that left", r)
		}
		return ""
	}); wrong != "" {
		t.Errorf("%s %s: %s", s.name, key, wrong)
	}
	if a := st.call(0, s.name, key, queueBody); a.status != 200 {
		t.Errorf("%s %s: then %+v", s.name, key, a)
	}
}

// TestTheEndOfThePluginEndsAllWaiting: a host that ends a plugin while calls are under way waits until it has
// nothing left to send. What waits for its turn is refused, its place is given back, and then the plugin ends.
func TestTheEndOfThePluginEndsAllWaiting(t *testing.T) {
	t.Parallel()
	module, err := os.ReadFile(wasmbuild.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	bridge, err := redisgw.Start(redisgw.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer bridge.Close()
	provider, err := upstream.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer provider.Close()
	s := &site{name: "q-end", hold: "pair", limits: `[{"name": "rps", "by": ["key"], "count": "requests", "bucket": {"rate": "30/h", "burst": 1}, "queue": "1h"}]`}
	l := hostsim.Listener{Name: "l", Routes: []hostsim.Route{{Cluster: "up"}}}
	for _, root := range []string{"emmer", "emmer.gate"} {
		l.Filters = append(l.Filters, hostsim.Filter{Name: root, RootID: root, Config: []byte(s.json()), FailurePolicy: "FAIL_RELOAD"})
	}
	host, err := hostsim.Start(context.Background(), hostsim.Options{
		Wasm: module, VMID: "emmer", Strict: true, CompilationCacheDir: "../.cache/wazero", Listeners: []hostsim.Listener{l},
		Clusters: map[string]hostsim.Cluster{"bridge": {URL: bridge.URL()}, "up": {URL: provider.URL()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	call := func() int {
		req, err := http.NewRequestWithContext(ctx, "POST", "http://"+host.Addr("l")+"/v1/chat/completions", bytes.NewReader([]byte(queueBody)))
		if err != nil {
			t.Error(err)
			return 0
		}
		req.Header.Set("authorization", "Bearer k")
		req.Header.Set("content-type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return 0
		}
		res.Body.Close()
		return res.StatusCode
	}
	if got := call(); got != 200 {
		t.Fatalf("the first call: %d", got)
	}
	status := make(chan int, 3)
	for range cap(status) {
		go func() { status <- call() }()
	}
	kept := func() string {
		keys, err := bridge.Client().Keys(ctx, "*:r:*").Result()
		if err != nil {
			return err.Error()
		}
		waiting := 0
		for _, k := range keys {
			if v, err := bridge.Client().Get(ctx, k).Result(); err == nil && strings.HasPrefix(v, "Q") {
				waiting++
			}
		}
		return fmt.Sprint(waiting, " of ", len(keys))
	}
	eventually(t, 10*time.Second, func() string {
		if got := kept(); got != "3 of 4" {
			return got + " calls wait"
		}
		return ""
	})
	if err := host.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	for range cap(status) {
		if got := <-status; got != 503 {
			t.Errorf("a call that waited was answered with %d", got)
		}
	}
	if got := kept(); got != "0 of 4" {
		t.Errorf("%s calls still wait when the plugin has ended", got)
	}
	if n := provider.Count(); n != 1 {
		t.Errorf("%d calls reached the provider", n)
	}
	if v := host.Violations(); len(v) != 0 {
		t.Errorf("%v", v)
	}
}
