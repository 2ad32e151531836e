package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/hostsim/envoy"
)

// A yardstick that let requests pass without asking, or that lost them, would flatter or blame the
// filter. So: every request through it is answered by upstream after one callout; with a bridge that
// answers wrongly, none is.
func TestEnvoyFloorAsksOnceForEachRequest(t *testing.T) {
	module := filepath.Join(t.TempDir(), "floor.wasm")
	build := exec.Command("go", "build", "-trimpath", "-buildmode=c-shared", "-o", module, "../testdata/floor")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	start := func(contentType, body string) *upstream {
		u, err := startUpstream(contentType, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { u.close() })
		return u
	}
	provider := start("application/json", chatAnswer)
	good := start("application/json", `{"result":1}`)
	bad := start("application/json", `{"error":"ERR no"}`)

	var list []envoy.Listener
	for _, hold := range []string{"pair", "flag"} {
		for name, bridge := range map[string]string{"good": "good", "bad": "bad"} {
			module := envoy.Wasm{File: module, VMID: "floor", Config: []byte(hold + " " + bridge + " " + token)}
			list = append(list, envoy.Listener{Name: name + "-" + hold, Routes: []envoy.Route{{Cluster: "upstream"}}, Filters: entries(module, hold)})
		}
	}
	e, err := envoy.Start(t.Context(), envoy.Options{Listeners: list, Concurrency: 2, Clusters: []envoy.Cluster{
		{Name: "upstream", Addr: provider.addr()}, {Name: "good", Addr: good.addr()}, {Name: "bad", Addr: bad.addr()},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop()

	for _, hold := range []string{"pair", "flag"} {
		for _, size := range []int{1 << 10, 100 << 10} {
			const most = 60
			calls, passed := good.served.Load(), provider.served.Load()
			load := Load{Addr: e.Addr("good-" + hold), Request: chatRequest(chatBody(size)), Conns: 4, For: time.Minute, Most: most, Timeout: 10 * time.Second}
			if s := load.Run(); !s.Only("200") || s.Statuses["200"] != most {
				t.Errorf("%s, %d bytes: statuses %v, errors %v", hold, size, s.Statuses, s.Errors)
			}
			if calls, passed = good.served.Load()-calls, provider.served.Load()-passed; calls != most || passed != most {
				t.Errorf("%s, %d bytes: %d callouts and %d requests upstream, want %d of each", hold, size, calls, passed, most)
			}
			load.Addr = e.Addr("bad-" + hold)
			passed = provider.served.Load()
			if s := load.Run(); !s.Only("503") {
				t.Errorf("%s, %d bytes, bridge in error: statuses %v, errors %v", hold, size, s.Statuses, s.Errors)
			}
			if got := provider.served.Load() - passed; got != 0 {
				t.Errorf("%s, %d bytes: %d refused requests reached upstream", hold, size, got)
			}
		}
	}
}
