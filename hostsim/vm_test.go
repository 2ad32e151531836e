package hostsim

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"time"
)

func policy(name string) func(o *Options) {
	return func(o *Options) {
		o.Workers = 1
		o.ReloadBackoff = time.Millisecond
		for i := range o.Listeners {
			for j := range o.Listeners[i].Filters {
				o.Listeners[i].Filters[j].FailurePolicy = name
			}
		}
	}
}

func TestCrashByPolicy(t *testing.T) {
	for _, p := range []string{FailClosed, FailOpen, FailReload} {
		t.Run(p, func(t *testing.T) {
			r := startRig(t, policy(p))
			// The request that crashes is answered 503 under every policy.
			for _, where := range []string{"ah", "ab", "arh"} {
				g := r.do(call{options: "pan=" + where, body: []byte("abc")})
				if g.code != 503 && p != FailOpen {
					t.Errorf("%s: %v", where, g)
				}
				after := r.do(call{options: "m=pass", body: []byte("abc")})
				switch p {
				case FailClosed:
					if after.code != 503 {
						t.Errorf("after: %v", after)
					}
				default:
					if after.code != 200 {
						t.Errorf("after: %v", after)
					}
				}
				if p == FailReload { // the back-off
					<-time.After(2 * time.Millisecond)
				}
			}
			if p == FailReload {
				if n := r.Metrics()["chain.start_a"]; n != 3+3 { // canary, main, worker; three reloads
					t.Errorf("%d starts", n)
				}
				g := r.do(call{options: "pan=arb", path: "/x?sse=3", body: []byte("abc")})
				if g.err == nil {
					t.Errorf("a crash in a response body must reset: %v", g)
				}
			}
			eventually(t, "streams end", func() bool { return r.Streams() == 0 })
		})
	}
}

// A stream parked on a callout when its VM dies hangs until the client leaves.
func TestParkedStreamOfADeadVM(t *testing.T) {
	r := startRig(t, policy(FailReload))
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if g := r.do(call{options: "pan=acb", body: []byte("abc"), ctx: ctx}); g.failed == nil {
		t.Errorf("got %v", g)
	}
	r.want(call{options: "", body: []byte("abc")}, 200, "siteA:3")
	eventually(t, "streams end", func() bool { return r.Streams() == 0 })
	if r.siteA.requests()[0].header.Get("x-granted") != "yes" {
		t.Error("the new VM did not grant")
	}
}

func TestReloadBackOff(t *testing.T) {
	clock := NewManualClock(time.Unix(1e9, 0))
	r := startRig(t, func(o *Options) {
		policy(FailReload)(o)
		o.Clock, o.ReloadBackoff = clock, time.Second
	})
	crash := func() { r.do(call{options: "pan=ah"}) }
	crash()
	r.want(call{options: "m=pass"}, 200, "*") // the first reload is at once
	crash()
	r.want(call{options: "m=pass"}, 503, "")
	clock.Advance(time.Second)
	r.want(call{options: "m=pass"}, 200, "*")
}

func TestTicksOnADrivenClock(t *testing.T) {
	clock := NewManualClock(time.Unix(1e9, 0))
	r := startRig(t, func(o *Options) {
		o.Clock = clock
		o.Listeners[4].Filters[0].Config = []byte("tick=20")
	})
	clock.Advance(19 * time.Millisecond)
	if n := r.Metrics()["chain.tick"]; n != 0 {
		t.Errorf("%d ticks", n)
	}
	clock.Advance(time.Millisecond)
	if n := r.Metrics()["chain.tick"]; n != 3 { // the main thread and two workers
		t.Errorf("%d ticks", n)
	}
	clock.Advance(time.Second)
	if n := r.Metrics()["chain.tick"]; n != 3*51 {
		t.Errorf("%d ticks", n)
	}
	// A callout times out by the same clock.
	done := make(chan string)
	go func() {
		done <- r.do(call{listener: "probe", header: map[string]string{"x-probe": "call", "x-cluster": "bridge", "x-query": "ms=10000", "x-timeout": "60000"}}).body
	}()
	eventually(t, "call arrives", func() bool { return len(r.bridge.requests()) == 1 })
	clock.Advance(time.Minute)
	if got := <-done; !strings.HasPrefix(got, "headers=true status=504") {
		t.Error(got)
	}
}

func TestDrain(t *testing.T) {
	r := startRig(t, func(o *Options) {
		o.Listeners[4].Filters[0].Config = []byte("tick=1;linger=1")
	})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := r.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	if n := r.Metrics()["chain.plugin_done"]; n != 3*5 {
		t.Errorf("%d plugins done", n)
	}
}

func TestSeparateVMs(t *testing.T) {
	r := startRig(t, func(o *Options) { o.Listeners[0].Filters[1].VMID = "elsewhere" })
	r.want(call{options: "", body: []byte("abc")}, 503, "no partner\n")
	if r.siteA.connections.Load() != 0 {
		t.Error("upstream was reached")
	}
}

func TestRefusedStart(t *testing.T) {
	_, err := Start(context.Background(), Options{Wasm: chainWasm, Listeners: []Listener{{Name: "x", Filters: []Filter{
		{Name: "a", RootID: "a", Config: []byte("refuse=1"), FailurePolicy: FailOpen}}}}})
	if err == nil || !strings.Contains(err.Error(), `plugin "a": proxy_on_configure: the module refused to start`) {
		t.Errorf("%v", err)
	}
}

// module makes a wasm module that imports functions of no parameters.
func module(imports ...[2]string) []byte {
	name := func(s string) []byte { return append(binary.AppendUvarint(nil, uint64(len(s))), s...) }
	section := func(id byte, b []byte) []byte { return append(binary.AppendUvarint([]byte{id}, uint64(len(b))), b...) }
	var list bytes.Buffer
	list.Write(binary.AppendUvarint(nil, uint64(len(imports))))
	for _, i := range imports {
		list.Write(name(i[0]))
		list.Write(name(i[1]))
		list.Write([]byte{0, 0})
	}
	out := append([]byte("\x00asm\x01\x00\x00\x00"), section(1, []byte{1, 0x60, 0, 0})...)
	return append(out, section(2, list.Bytes())...)
}

func TestUnknownImportsAreListed(t *testing.T) {
	_, err := Start(context.Background(), Options{Listeners: []Listener{{Name: "x"}},
		Wasm: module([2]string{"wasi_snapshot_preview1", "sock_accept"}, [2]string{"env", "proxy_redis_init"}, [2]string{"env", "proxy_done"})})
	if err == nil || !strings.HasSuffix(err.Error(), "missing imports: env.proxy_redis_init, wasi_snapshot_preview1.sock_accept") {
		t.Errorf("%v", err)
	}
}

func TestCloseEndsParkedStreams(t *testing.T) {
	r := startRig(t, nil)
	done := make(chan got)
	go func() { done <- r.do(call{options: "ms=5000", body: []byte("abc")}) }()
	eventually(t, "call arrives", func() bool { return len(r.bridge.requests()) == 1 })
	r.Close()
	if g := <-done; g.failed == nil {
		t.Errorf("got %v", g)
	}
}
