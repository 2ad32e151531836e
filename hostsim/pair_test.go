package hostsim

import (
	"bytes"
	"strings"
	"testing"
)

// both runs a case over HTTP/1.1 and HTTP/2 and over either upstream protocol.
func both(t *testing.T, f func(t *testing.T, r *rig, h2 bool)) {
	for _, h2 := range []bool{false, true} {
		name := "http1"
		if h2 {
			name = "http2"
		}
		t.Run(name, func(t *testing.T) { f(t, startRig(t, nil), h2) })
	}
}

func TestGrantedAfterTheBody(t *testing.T) {
	both(t, func(t *testing.T, r *rig, h2 bool) {
		for _, mode := range []string{"", "keep=1", "now=queue", "keep=1;now=queue", "grow=500", "grow=500;now=queue"} {
			for _, chunked := range []bool{false, true} {
				for _, size := range []int{1, 3000, 300 << 10} {
					grow := 0
					if strings.HasPrefix(mode, "grow") {
						grow = 500
					}
					body := bytes.Repeat([]byte("q"), size)
					before := len(r.siteA.requests())
					r.want(call{options: mode, body: body, chunked: chunked, h2: h2}, 200, "*")
					seen := r.siteA.requests()[before:]
					if len(seen) != 1 || len(seen[0].body) != size+grow || seen[0].header.Get("x-granted") != "yes" {
						t.Fatalf("%q chunked=%v size=%d: upstream saw %d requests, body %d, granted %q", mode, chunked, size, len(seen), len(seen[0].body), seen[0].header.Get("x-granted"))
					}
				}
			}
		}
		r.want(call{options: "to=siteB", body: []byte("abc"), h2: h2}, 200, "siteB:3")
		r.want(call{options: "to=h2", body: []byte("abc"), h2: h2}, 200, "siteA:3")
		r.want(call{options: "", h2: h2}, 200, "siteA:0")
		r.want(call{options: "m=pass", body: []byte("abc"), h2: h2}, 200, "siteA:3")
		r.settled()
		r.clean()
	})
}

func TestRefusedReachesNoUpstream(t *testing.T) {
	both(t, func(t *testing.T, r *rig, h2 bool) {
		for _, mode := range []string{"deny=1", "deny=1;keep=1", "deny=1;now=queue", "deny=1;by=b", "m=refuse", "m=swallow;deny=1"} {
			g := r.want(call{options: mode, body: bytes.Repeat([]byte("q"), 50000), chunked: true, h2: h2}, 429, "*")
			if g.header.Get("content-type") != "text/plain" || g.header.Get("x-why") == "" {
				t.Errorf("%q: %v", mode, g.header)
			}
		}
		r.want(call{options: "deny=1", h2: h2}, 429, "quota\n")
		if c, b := r.siteA.connections.Load(), r.siteA.bytes.Load(); c != 0 || b != 0 {
			t.Errorf("upstream got %d connections, %d bytes", c, b)
		}
		r.settled()
		r.clean()
	})
}

// A reply by A after B was reached runs B's and A's response callbacks; before B was reached only A's.
func TestLocalReplyPassesTheFiltersThatSawTheRequest(t *testing.T) {
	r := startRig(t, nil)
	r.want(call{options: "deny=1", body: []byte("abc")}, 429, "quota\n")
	if m := r.Metrics(); m["chain.a_response"] != 1 || m["chain.b_response"] != 1 {
		t.Errorf("after b was reached: %v", m)
	}
	r.want(call{options: "m=refuse", body: []byte("abc")}, 429, "early\n")
	m := r.Metrics()
	if m["chain.a_response"] != 2 || m["chain.b_response"] != 1 {
		t.Errorf("before b was reached: %v", m)
	}
	r.settled()
	if m := r.Metrics(); m["chain.a_done"] != 2 || m["chain.b_done"] != 2 {
		t.Errorf("log: %v", m)
	}
}

func TestTrailersEndTheBody(t *testing.T) {
	both(t, func(t *testing.T, r *rig, h2 bool) {
		for _, mode := range []string{"", "keep=1", "grow=10"} {
			before := len(r.siteA.requests())
			r.want(call{options: mode, body: []byte("abc"), chunked: true, h2: h2, trailer: map[string]string{"X-End": "yes"}}, 200, "*")
			seen := r.siteA.requests()[before]
			want := 3
			if mode == "grow=10" {
				want = 13
			}
			if len(seen.body) != want || seen.trailer.Get("X-End") != "yes" {
				t.Errorf("%q: upstream saw body %q, trailer %v", mode, seen.body, seen.trailer)
			}
		}
		r.want(call{options: "deny=1", body: []byte("abc"), chunked: true, h2: h2, trailer: map[string]string{"X-End": "yes"}}, 429, "*")
		g := r.want(call{options: "", path: "/x?trailers=1", body: []byte("abc"), h2: h2}, 200, "with trailers")
		if g.trailer.Get("X-Sum") != "42" {
			t.Errorf("response trailer: %v", g.trailer)
		}
		r.settled()
		r.clean()
	})
}

func TestBodyLimits(t *testing.T) {
	big := bytes.Repeat([]byte("q"), 100<<10)
	t.Run("hold over the limit is 413", func(t *testing.T) {
		r := startRig(t, nil)
		// HTTP/1.1: the connection ends with the answer, as the request is not read to its end.
		g := r.do(call{listener: "small", options: "keep=1", body: bytes.Repeat(big, 20)})
		if g.code != 413 || g.body != "Payload Too Large" {
			t.Fatalf("got %v", g)
		}
		r.settled()
		if lines := r.AccessLog("small"); len(lines) != 1 || !strings.HasPrefix(lines[0], "413 - request_payload_too_large chunks=") {
			t.Errorf("access log %q", lines)
		}
		if r.siteA.bytes.Load() != 0 {
			t.Error("upstream got bytes")
		}
		// An HTTP/2 stream has 16 MiB.
		r.want(call{listener: "small", options: "keep=1", body: big, h2: true}, 200, "siteA:102400")
		r.clean()
	})
	t.Run("swallow and resend", func(t *testing.T) {
		both(t, func(t *testing.T, r *rig, h2 bool) {
			r.want(call{listener: "small", options: "m=swallow", body: bytes.Repeat(big, 10), h2: h2}, 200, "siteA:1024000")
			r.settled()
			r.clean()
		})
	})
	t.Run("held response over the limit is 500", func(t *testing.T) {
		r := startRig(t, nil)
		g := r.do(call{listener: "small", options: "m=pass;hold=resp", path: "/x?size=200000", body: []byte("a")})
		// The headers are out: a reset is all that is left.
		if g.err == nil && g.failed == nil {
			t.Fatalf("got %v", g)
		}
		r.settled()
	})
}

func TestHeldResponseGetsItsCost(t *testing.T) {
	both(t, func(t *testing.T, r *rig, h2 bool) {
		for _, target := range []string{"siteA", "h2"} {
			g := r.want(call{options: "resp=queue", path: "/x?json=1", body: []byte("abc"), h2: h2, header: map[string]string{"x-target": target}}, 200, `{"answer":1}`)
			if g.header.Get("x-cost") != "12" {
				t.Errorf("%v", g.header)
			}
			g = r.want(call{options: "resp=queue", path: "/x?trailers=1", body: []byte("abc"), h2: h2, header: map[string]string{"x-target": target}}, 200, "with trailers")
			if g.header.Get("x-cost") != "13" || g.trailer.Get("X-Sum") != "42" {
				t.Errorf("%v %v", g.header, g.trailer)
			}
			// Larger than a chunk, below the limit.
			g = r.want(call{options: "resp=queue", path: "/x?size=200000", body: []byte("abc"), h2: h2, header: map[string]string{"x-target": target}}, 200, "*")
			if len(g.body) != 200000 || g.header.Get("x-cost") != "200000" {
				t.Errorf("%d %v", len(g.body), g.header)
			}
		}
		r.settled()
		r.clean()
	})
}

func TestCutOfAStream(t *testing.T) {
	both(t, func(t *testing.T, r *rig, h2 bool) {
		// Swallow: the event arrives, the upstream runs to its end.
		g := r.want(call{options: "cut=3", path: "/x?sse=6", body: []byte("a"), h2: h2}, 200, "data: 0\n\ndata: 1\n\ndata: final\n\n")
		if g.header.Get("content-type") != "text/event-stream" || r.siteA.aborted.Load() != 0 {
			t.Errorf("%v aborted=%d", g, r.siteA.aborted.Load())
		}
		// A later close: the event arrives, the client is cut, the upstream aborted.
		for _, kind := range []string{"0", "1"} {
			before := r.siteA.aborted.Load()
			g = r.do(call{options: "cut=3;close=" + kind, path: "/x?sse=50", body: []byte("a"), h2: h2})
			if g.err == nil || g.body != "data: 0\n\ndata: 1\n\ndata: final\n\n" {
				t.Errorf("close %s: %v", kind, g)
			}
			eventually(t, "upstream aborted", func() bool { return r.siteA.aborted.Load() == before+1 })
		}
		// In the same callback the event is lost.
		g = r.do(call{options: "cut=3;close=1;when=now", path: "/x?sse=50", body: []byte("a"), h2: h2})
		if g.err == nil || strings.Contains(g.body, "final") {
			t.Errorf("close now: %v", g)
		}
		r.settled()
	})
}
