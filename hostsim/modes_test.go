package hostsim

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// slowBody is a request body that comes in parts.
type slowBody struct {
	parts []string
	gap   time.Duration
	sent  int
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.sent == len(b.parts) {
		return 0, io.EOF
	}
	if b.sent > 0 {
		<-time.After(b.gap)
	}
	n := copy(p, b.parts[b.sent])
	b.sent++
	return n, nil
}

// stream posts a body without a length.
func (r *rig) stream(ctx context.Context, listener, options string, body io.Reader) got {
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+r.Addr(listener)+"/x", body)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("x-m", options)
	resp, err := r.client1.Do(req)
	if err != nil {
		return got{failed: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return got{code: resp.StatusCode, header: resp.Header, body: string(b), err: err}
}

func (r *rig) lastLine(listener string) string {
	r.t.Helper()
	r.settled()
	lines := r.AccessLog(listener)
	if len(lines) == 0 {
		r.t.Fatal("no access log line")
	}
	return lines[len(lines)-1]
}

func TestBodyCallbackSizes(t *testing.T) {
	parts := func() io.Reader {
		return &slowBody{parts: []string{"aaaa", "bbbb", "cccc"}, gap: 30 * time.Millisecond}
	}
	for _, c := range []struct{ name, options, body, calls string }{
		{"continue: each chunk alone", "", "siteA:12", "4 4 4 0!"},
		{"1: cumulative", "body=1", "siteA:12", "4 8 12 12!"},
		{"2: each alone, kept", "body=2", "siteA:12", "4 4 4 0!"},
		{"3: each alone, dropped", "body=3", "siteA:0", "4 4 4 0!"},
		{"edit: prepend and append", "body=edit", "siteA:14", "4 8 12 12!"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := startRig(t, nil)
			if g := r.stream(context.Background(), "one", c.options, parts()); g.code != 200 || g.body != c.body {
				t.Errorf("got %v", g)
			}
			if l := r.lastLine("one"); !strings.HasSuffix(l, c.calls) {
				t.Errorf("callbacks %q, want %q", l, c.calls)
			}
			r.clean()
		})
	}
}

// Headers Pause without the flag is StopAll: no body callback until the resume, then one with everything.
func TestPauseInHeadersStopsAll(t *testing.T) {
	r := startRig(t, nil)
	r.want(call{listener: "one", options: "wait=headers;ms=50", body: bytes.Repeat([]byte("q"), 20000)}, 200, "siteA:20000")
	if l := r.lastLine("one"); l != "200 via_upstream 20000!" {
		t.Errorf("callbacks %q", l)
	}
	if h := r.siteA.requests()[0].header.Get("x-granted"); h != "yes" {
		t.Errorf("x-granted %q", h)
	}
	// Above the limit there is no 413, only back-pressure.
	r.want(call{listener: "one", options: "wait=headers;ms=50", body: bytes.Repeat([]byte("q"), 2<<20)}, 200, "siteA:2097152")
	r.settled()
	r.clean()
}

func TestPauseInHeadersWithTheFlag(t *testing.T) {
	r := startRig(t, nil)
	body := bytes.Repeat([]byte("q"), 20000)
	// Body Continue releases headers and body together; until then headers can be edited.
	r.want(call{listener: "flag", options: "head=1;body=granted", body: body}, 200, "siteA:20000")
	if h := r.siteA.requests()[0].header.Get("x-granted"); h != "yes" {
		t.Errorf("x-granted %q", h)
	}
	conns := r.siteA.connections.Load()
	r.want(call{listener: "flag", options: "head=1;body=deny", body: body, chunked: true}, 429, "no\n")
	if n := len(r.siteA.requests()); n != 1 || r.siteA.connections.Load() != conns {
		t.Errorf("upstream saw %d requests, %d connections", n, r.siteA.connections.Load())
	}
	// Over the limit: 413, and nothing upstream.
	g := r.do(call{listener: "flag", options: "head=1;body=granted", body: bytes.Repeat([]byte("q"), 200000)})
	if g.code != 413 {
		t.Errorf("got %v", g)
	}
	r.settled()
	r.clean()
}

// Without the flag a refusal in the body phase comes too late for the headers: the upstream has them.
func TestRefusalAfterReleasedHeaders(t *testing.T) {
	r := startRig(t, nil)
	r.want(call{listener: "one", options: "body=deny", body: bytes.Repeat([]byte("q"), 20000), chunked: true}, 429, "no\n")
	eventually(t, "upstream connection", func() bool { return r.siteA.connections.Load() == 1 })
	r.settled()
	for _, q := range r.siteA.requests() {
		if q.err == nil {
			t.Errorf("upstream saw a whole request: %+v", q)
		}
	}
}

func TestUpstreamFailures(t *testing.T) {
	both(t, func(t *testing.T, r *rig, h2 bool) {
		to := func(name string) map[string]string { return map[string]string{"x-target": name} }
		r.want(call{listener: "probe", header: to("dead"), h2: h2}, 503, "upstream connect error or disconnect/reset before headers. reset reason: remote connection failure")
		r.want(call{listener: "probe", header: to("none"), h2: h2}, 503, "no healthy upstream")
		r.want(call{listener: "probe", header: to("nowhere"), h2: h2}, 503, "")
		for _, path := range []string{"/x?broken=1", "/x?sse=3&broken=1"} {
			g := r.do(call{listener: "probe", path: path, h2: h2})
			if g.code != 200 || g.err == nil {
				t.Errorf("%s: %v", path, g)
			}
		}
		r.settled()
		want := []string{
			"503 UF upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_Connection_refused}",
			"503 UH no_healthy_upstream",
			"503 NC cluster_not_found",
			"200 UPE upstream_reset_after_response_started{protocol_error}",
			"200 UPE upstream_reset_after_response_started{protocol_error}",
		}
		for i, l := range r.AccessLog("probe") {
			if !strings.HasPrefix(l, want[i]) {
				t.Errorf("line %d: %q, want %q", i, l, want[i])
			}
		}
		r.clean()
	})
}

// The client leaves at each point where a request can be parked.
func TestClientLeaves(t *testing.T) {
	both(t, func(t *testing.T, r *rig, h2 bool) {
		cases := []call{
			{options: "ms=400", body: []byte("abc")},
			{options: "ms=400;keep=1", body: []byte("abc")},
			{options: "ms=400"},
			{options: "m=pass", path: "/x?ms=400", body: []byte("abc")},
			{options: "m=pass", path: "/x?sse=100", body: []byte("abc")},
			{options: "resp=queue", path: "/x?sse=100", body: []byte("abc")},
		}
		for i, c := range cases {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			c.ctx, c.h2 = ctx, h2
			if g := r.do(c); g.failed == nil && g.err == nil {
				t.Errorf("case %d: %v", i, g)
			}
			cancel()
		}
		r.settled()
		lines := r.AccessLog("pair")
		if len(lines) != len(cases) {
			t.Fatalf("%q", lines)
		}
		for i, l := range lines {
			want := " DC downstream_remote_disconnect "
			if h2 {
				want = " DR http2.remote_reset "
			}
			if !strings.Contains(l, want) {
				t.Errorf("case %d: %q", i, l)
			}
		}
		for _, q := range r.siteA.requests() {
			if !strings.Contains(q.path, "/x?") {
				t.Errorf("a parked request reached upstream: %q", q.path)
			}
		}
		eventually(t, "upstream streams aborted", func() bool { return r.siteA.aborted.Load() == 3 })
		// The callouts ran to their end; of the streams that were gone the SDK drops the callback.
		eventually(t, "callouts complete", func() bool { return len(r.bridge.requests()) == 4 })
		if n := r.Metrics()["chain.callback"]; n != 1 {
			t.Errorf("%d callbacks", n)
		}
		r.clean()
	})
}

func TestEarlyAnswerOfTheUpstream(t *testing.T) {
	r := startRig(t, nil)
	req, _ := http.NewRequest("POST", "http://"+r.Addr("probe")+"/x?early=1", &slowBody{parts: []string{"a", "b", "c"}, gap: 100 * time.Millisecond})
	resp, err := r.client1.Do(req)
	if err != nil || resp.StatusCode != 418 {
		t.Fatalf("%v %v", resp, err)
	}
	resp.Body.Close()
	r.want(call{listener: "probe"}, 200, "siteA:0")
	r.settled()
}
