package hostsim

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// wireRig stands before the pair and before the probe with a network filter of the same module.
func wireRig(t *testing.T, change func(o *Options)) *rig {
	return startRig(t, func(o *Options) {
		o.Workers = 1
		o.Listeners = wireListeners(o.Listeners)
		for _, l := range o.Listeners {
			for i := range l.Filters {
				l.Filters[i].FailurePolicy = FailReload
			}
		}
		if change != nil {
			change(o)
		}
	})
}

func wireListeners(list []Listener) []Listener {
	wire := []Filter{{Name: "wire", RootID: "wire", FailurePolicy: FailReload}}
	for _, l := range list[:5] {
		if l.Name == "pair" || l.Name == "probe" {
			l.Name, l.Network = "wire."+l.Name, wire
			list = append(list, l)
		}
	}
	return list
}

func TestNetworkFilterEndsAStream(t *testing.T) {
	both := []bool{false, true}
	r := wireRig(t, nil)
	for _, h2 := range both {
		for range 5 {
			before := r.siteA.aborted.Load()
			r.want(call{listener: "wire.pair", options: "cut=3;wire=1", path: "/x?sse=100", body: []byte("a"), h2: h2}, 200, "data: 0\n\ndata: 1\n\ndata: final\n\n")
			eventually(t, "upstream aborted", func() bool { return r.siteA.aborted.Load() == before+1 })
			r.want(call{listener: "wire.pair", body: []byte("abc"), h2: h2}, 200, "siteA:3")
		}
	}
	r.settled()
	lines := r.AccessLog("wire.pair")
	if n := strings.Count(strings.Join(lines, "\n"), "200 DC downstream_local_disconnect(wasm_downstream_close)"); n != 5 {
		t.Errorf("%d streams ended with their connection: %q", n, lines)
	}
	if n := r.Metrics()["chain.wire_close_by_1"]; n != 5 {
		t.Errorf("%d connections were closed from here", n)
	}
	r.clean()
}

func TestNetworkFilterAndTheClient(t *testing.T) {
	r := wireRig(t, nil)
	for _, h2 := range []bool{false, true} {
		got := r.want(call{listener: "wire.probe", header: map[string]string{"x-probe": "wire"}, h2: h2}, 200, "*").body
		for _, want := range []string{"same: true", "effective: <nil>\nname: wire\nroot: wire\nmtls: 00\nbytes: true", "[request path]: error status returned by host: not found",
			"headers: error status returned by host: not found\nset: <nil>", `body: "" error status returned by host: not found`} {
			if !strings.Contains(got, want) {
				t.Errorf("h2=%v: no %q in\n%s", h2, want, got)
			}
		}
	}
	// What it puts in place of the client's bytes is what the server reads.
	r.want(call{listener: "wire.pair", path: "/x?wire-swap"}, 200, "siteA:0")
	if got := r.siteA.requests(); got[len(got)-1].path != "/x?swap-done" {
		t.Errorf("%q", got[len(got)-1].path)
	}
	r.client1.CloseIdleConnections()
	r.http2.CloseIdleConnections()
	eventually(t, "connections end", func() bool {
		m := r.Metrics()
		return m["chain.wire_close"] == m["chain.wire_new"] && m["chain.wire_done"] == m["chain.wire_new"]
	})
	if m := r.Metrics(); m["chain.wire_close_by_2"] != m["chain.wire_new"] {
		t.Errorf("the client left: %v", m)
	}
	r.clean()
}

// A network filter's VM that dies takes the connection with it; the next one has a new VM.
func TestNetworkFilterCrashes(t *testing.T) {
	r := wireRig(t, nil)
	if g := r.do(call{listener: "wire.pair", body: []byte("wire-panic")}); g.failed == nil {
		t.Errorf("%v", g)
	}
	eventually(t, "a new VM", func() bool {
		g := r.do(call{listener: "wire.probe", header: map[string]string{"x-probe": "wire"}})
		return strings.Contains(g.body, "same: true")
	})
	if g := r.do(call{listener: "wire.probe"}); g.failed != nil {
		t.Errorf("%v", g)
	}
}

func TestNetworkFilterMistakes(t *testing.T) {
	for _, c := range []struct{ what, want string }{
		{"wire-pause", "stops a connection in proxy_on_downstream_data"},
		{"wire-outside", "touches the bytes of a connection outside their callback"},
		{"pause-upstream", "stops bytes on their way to the client"},
		{"close-upstream", "closes the connection while bytes are written"},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := wireRig(t, nil)
			r.do(call{listener: "wire.probe", header: map[string]string{"x-probe": "say", "x-say": c.what}})
			eventually(t, "a violation", func() bool { return strings.Contains(strings.Join(r.Violations(), "\n"), c.want) })
		})
	}
}

// A connection that its own network filter closes while a request is read.
func TestNetworkFilterClosesWhileReading(t *testing.T) {
	r := wireRig(t, nil)
	if g := r.do(call{listener: "wire.pair", body: []byte("wire-close")}); g.failed == nil {
		t.Errorf("%v", g)
	}
	r.settled()
	r.clean()
}

// Bytes that came before they are asked for are kept: pipelined requests pass a network filter.
func TestNetworkFilterAndPipelining(t *testing.T) {
	r := wireRig(t, nil)
	c, err := net.Dial("tcp", r.Addr("wire.pair"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range 3 {
		fmt.Fprintf(c, "POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n%s", i, "abc"[:i])
	}
	read := bufio.NewReader(c)
	for i := range 3 {
		resp, err := http.ReadResponse(read, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		if string(b) != fmt.Sprintf("siteA:%d", i) {
			t.Errorf("%d: %q", i, b)
		}
	}
}
