package hostsim

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/hostsim/envoy"
)

// realEnvoy starts an Envoy with the rig's listeners, clusters and module.
func realEnvoy(t *testing.T, o Options) *envoy.Envoy {
	t.Helper()
	file := filepath.Join(t.TempDir(), "chain.wasm")
	if err := os.WriteFile(file, o.Wasm, 0o644); err != nil {
		t.Fatal(err)
	}
	eo := envoy.Options{Concurrency: o.Workers}
	for name, c := range o.Clusters {
		eo.Clusters = append(eo.Clusters, envoy.Cluster{Name: name, Addr: strings.TrimPrefix(c.URL, "http://"), HTTP2: c.HTTP2})
	}
	for _, l := range o.Listeners {
		el := envoy.Listener{Name: l.Name, BufferLimit: l.BufferLimit, AccessLog: l.AccessLog}
		if l.JWT != nil {
			el.JWT = &envoy.JWT{Secret: l.JWT.Secret, Metadata: l.JWT.Metadata}
		}
		for _, f := range l.Network {
			el.Network = append(el.Network, envoy.Wasm{Name: f.Name, RootID: f.RootID, File: file, VMID: o.VMID,
				Env: o.Env, Config: f.Config, FailurePolicy: f.FailurePolicy})
		}
		for _, f := range l.Filters {
			el.Filters = append(el.Filters, envoy.Filter{Wasm: &envoy.Wasm{Name: f.Name, RootID: f.RootID, File: file, VMID: o.VMID,
				Env: o.Env, Config: f.Config, AllowOnHeadersStop: f.AllowOnHeadersStop, FailurePolicy: f.FailurePolicy}})
		}
		for _, r := range l.Routes {
			if r.Cluster != "unknown" { // Envoy does not boot with it
				el.Routes = append(el.Routes, envoy.Route{Header: r.Header, Value: r.Value, Cluster: r.Cluster})
			}
		}
		eo.Listeners = append(eo.Listeners, el)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	e, err := envoy.Start(ctx, eo)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	return e
}

// told is one outcome as text: what the client saw, what the upstream saw, what the log says.
func told(g got, seen []seenRequest, line string) string {
	var b strings.Builder
	if g.failed != nil {
		b.WriteString("no response")
	} else {
		body := g.body
		if len(body) > 2000 {
			body = fmt.Sprintf("%d bytes", len(body))
		}
		fmt.Fprintf(&b, "%d %q cut=%v", g.code, body, g.err != nil)
		for _, name := range []string{"Content-Type", "Content-Length", "X-Why", "X-Cost", "X-Seen", "X-Site", "Connection"} {
			if v, ok := g.header[name]; ok {
				fmt.Fprintf(&b, " %s=%q", name, v)
			}
		}
		if len(g.trailer) > 0 {
			fmt.Fprintf(&b, " trailer=%v", g.trailer)
		}
	}
	for _, q := range seen {
		fmt.Fprintf(&b, "\n  upstream %s %s body=%d", q.method, q.path, len(q.body))
		if q.err != nil {
			b.WriteString(" broken")
			continue
		}
		fmt.Fprintf(&b, " length=%d granted=%q", q.length, q.header.Get("x-granted"))
		if len(q.trailer) > 0 {
			fmt.Fprintf(&b, " trailer=%v", q.trailer)
		}
	}
	fmt.Fprintf(&b, "\n  log %s", line)
	return b.String()
}

var chunks = regexp.MustCompile(`chunks=\d+`)

type parityCase struct {
	name string
	call
	wantSeen int // requests that reach an upstream, to wait for
}

// TestSameAsEnvoy runs one list of requests through the simulator and through a real Envoy with the same module:
// what differs is a fault of the simulator.
func TestSameAsEnvoy(t *testing.T) {
	body := func(n int) []byte { return bytes.Repeat([]byte("q"), n) }
	trailer := map[string]string{"X-End": "yes"}
	to := func(name string) map[string]string { return map[string]string{"x-target": name} }
	probe := func(kv ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	claims := token("s3cret", `{"sub":"alice","plan":{"tier":"gold"},"level":7,"on":true,"roles":["x","admin"]}`)
	cases := []parityCase{}
	add := func(name string, seen int, c call) {
		for _, h2 := range []bool{false, true} {
			c.h2 = h2
			cases = append(cases, parityCase{fmt.Sprintf("%s h2=%v", name, h2), c, seen})
		}
	}
	add("get", 1, call{})
	add("pass", 1, call{options: "m=pass", body: body(10)})
	add("granted", 1, call{body: body(3000)})
	add("granted chunked", 1, call{body: body(3000), chunked: true})
	add("kept", 1, call{options: "keep=1", body: body(3000)})
	add("kept, queue", 1, call{options: "keep=1;now=queue", body: body(3000)})
	add("grown", 1, call{options: "grow=500", body: body(3000)})
	add("shrunk", 1, call{options: "shrink=500", body: body(3000)})
	add("grown to h2", 1, call{options: "grow=500", body: body(3000), header: to("h2")})
	add("large", 1, call{options: "keep=1", body: body(900 << 10)})
	add("rerouted", 1, call{options: "to=siteB", body: body(10)})
	add("refused", 0, call{options: "deny=1", body: body(3000)})
	add("refused by b", 0, call{options: "deny=1;by=b", body: body(3000)})
	add("refused early", 0, call{options: "m=refuse", body: body(3000)})
	add("refused get", 0, call{options: "deny=1"})
	add("refused head", 0, call{options: "deny=1", method: "HEAD"})
	add("head", 1, call{options: "m=pass", method: "HEAD"})
	add("trailers", 1, call{body: body(30), chunked: true, trailer: trailer})
	add("trailers kept", 1, call{options: "keep=1", body: body(30), chunked: true, trailer: trailer})
	add("trailers back", 1, call{path: "/x?trailers=1", body: body(30)})
	add("cost", 1, call{options: "resp=queue", path: "/x?json=1", body: body(30)})
	add("cost, larger", 1, call{options: "resp=queue", path: "/x?size=200000", body: body(30)})
	add("swallow", 1, call{listener: "small", options: "m=swallow", body: body(1 << 20)})
	add("over the limit", 0, call{listener: "small", options: "keep=1", body: body(20 << 20)})
	add("dead", 0, call{listener: "probe", header: to("dead")})
	add("no host", 0, call{listener: "probe", header: to("none")})
	add("broken answer", 1, call{listener: "probe", path: "/x?broken=1"})
	add("broken answer from h2", 1, call{listener: "probe", path: "/x?broken=1", header: to("h2")})
	add("broken sse", 1, call{listener: "probe", path: "/x?sse=3&broken=1"})
	add("broken sse from h2", 1, call{listener: "probe", path: "/x?sse=3&broken=1", header: to("h2")})
	add("no answer", 1, call{listener: "probe", path: "/x?none=1", body: body(3)})
	add("no answer from h2", 1, call{listener: "probe", path: "/x?none=1", body: body(3), header: to("h2")})
	add("callout without an answer", 0, call{listener: "probe", header: probe("x-probe", "call", "x-cluster", "bridge", "x-query", "none=1")})
	add("dead from the pair", 0, call{header: to("dead"), body: body(3)})
	add("no host from the pair", 0, call{header: to("none"), body: body(3)})
	add("broken for the pair", 1, call{path: "/x?broken=1", body: body(3)})
	add("client leaves", 1, call{path: "/x?ms=300", body: body(3), options: "m=pass", patience: 100 * time.Millisecond})
	add("client leaves in the middle", 1, call{path: "/x?sse=100", body: body(3), options: "m=pass", patience: 200 * time.Millisecond})
	add("client leaves a parked request", 0, call{body: body(3), options: "ms=300", patience: 100 * time.Millisecond})
	cases = append(cases, parityCase{"response over the limit", call{listener: "small", options: "m=pass;hold=resp", path: "/x?size=200000", body: body(1)}, 1})
	add("sse", 1, call{path: "/x?sse=3", body: body(3)})
	add("cut, swallowed", 1, call{options: "cut=2", path: "/x?sse=4", body: body(3)})
	add("cut, closed", 1, call{options: "cut=2;close=1", path: "/x?sse=40", body: body(3)})
	add("late edit", 1, call{options: "lateedit=1", body: body(3)})
	add("sizes 1", 1, call{listener: "flag", options: "head=1;body=granted", body: body(3000)})
	add("flag, refused", 0, call{listener: "flag", options: "head=1;body=deny", body: body(3000)})
	add("edit", 1, call{listener: "one", options: "nocl=1;body=edit", body: body(3000), chunked: true})
	add("wait in headers", 1, call{listener: "one", options: "wait=headers", body: body(3000)})
	add("wait in headers, get", 1, call{listener: "one", options: "wait=headers"})
	paths := "request.path,request.url_path,request.query,request.method,request.protocol,request.id,connection.mtls,plugin_name,plugin_root_id,plugin_vm_id," +
		"xds.cluster_name,response.code,response.flags,response.code_details,route_name,cluster_name,upstream.address,request.headers.x-probe,request.size,request.total_size,request.duration," +
		"request.useragent,request.referer,request.scheme,nonsense,request.nonsense,filter_state.nonsense"
	add("properties", 0, call{listener: "probe", path: "/p?q=1", header: probe("x-probe", "properties", "x-paths", paths, "x-request-id", "rid", "user-agent", "test")})
	add("claims", 0, call{listener: "jwt", header: probe("x-probe", "claims", "authorization", "Bearer "+claims, "x-claims", "sub,plan.tier,level,on,roles.1,none,plan.none")})
	add("no token", 0, call{listener: "jwt", header: probe("x-probe", "claims", "x-claims", "sub")})
	add("bad token", 0, call{listener: "jwt", header: probe("authorization", "Bearer "+token("other", "{}"))})
	add("opaque token", 0, call{listener: "jwt", header: probe("authorization", "Bearer sk-123")})
	add("expired token", 0, call{listener: "jwt", header: probe("authorization", "Bearer "+token("s3cret", `{"exp":1}`))})
	add("shared", 0, call{listener: "probe", header: probe("x-probe", "effective")})
	add("foreign", 0, call{listener: "probe", header: probe("x-probe", "foreign")})
	add("exit", 0, call{listener: "probe", header: probe("x-probe", "exit")})
	for _, c := range []string{"bridge", "bridge2", "nosuch", "empty", "dead"} {
		add("callout "+c, 0, call{listener: "probe", header: probe("x-probe", "call", "x-cluster", c)})
	}
	add("callout timeout", 0, call{listener: "probe", header: probe("x-probe", "call", "x-cluster", "bridge", "x-query", "ms=400", "x-timeout", "50")})
	add("callout broken", 0, call{listener: "probe", header: probe("x-probe", "call", "x-cluster", "bridge", "x-query", "broken=1")})
	add("callout bare", 0, call{listener: "probe", header: probe("x-probe", "call", "x-cluster", "bridge", "x-bare", "1")})
	add("cut on the wire", 1, call{listener: "wire.pair", options: "cut=2;wire=1", path: "/x?sse=100", body: body(3)})
	add("no cut on the wire", 1, call{listener: "wire.pair", options: "cut=2", path: "/x?sse=4", body: body(3)})
	add("behind the wire", 1, call{listener: "wire.pair", body: body(3000)})
	add("edited on the wire", 1, call{listener: "wire.pair", path: "/x?wire-swap"})
	add("the wire's properties", 0, call{listener: "wire.probe", header: probe("x-probe", "wire")})
	add("nobody's route", 0, call{listener: "bare", header: to("x")})
	add("crash", 0, call{listener: "reload", options: "pan=ah"})

	var o Options
	r := startRig(t, func(given *Options) {
		given.Workers = 1
		for i := range given.Listeners {
			given.Listeners[i].AccessLog += " %PROTOCOL%"
		}
		pr := given.Listeners[4]
		pr.Name, pr.JWT = "jwt", &JWT{Secret: []byte("s3cret"), Metadata: "jwt_payload"}
		bare := given.Listeners[4]
		bare.Name, bare.Routes = "bare", []Route{{"x-target", "known", "siteA"}}
		reload := given.Listeners[0]
		reload.Name, reload.Filters = "reload", []Filter{{Name: "a2", RootID: "a", FailurePolicy: FailReload}}
		given.Listeners = append(wireListeners(given.Listeners), pr, bare, reload)
		for i := range given.Listeners {
			given.Listeners[i].AccessLog = strings.ReplaceAll(given.Listeners[i].AccessLog, "%UPSTREAM_WIRE_BYTES_SENT%", "")
		}
		o = *given
	})
	e := realEnvoy(t, o)
	run := func(c parityCase, addr string, log func() []string) string {
		r.siteA.mu.Lock()
		r.siteA.seen = nil
		r.siteA.mu.Unlock()
		r.siteB.mu.Lock()
		r.siteB.seen = nil
		r.siteB.mu.Unlock()
		lines := len(log())
		seen := func() []seenRequest { return append(r.siteA.requests(), r.siteB.requests()...) }
		g := r.at(addr, c.call)
		if c.patience > 0 {
			g.body = "" // how far it came is a matter of time
		}
		eventually(t, c.name+": access log", func() bool { return len(log()) > lines })
		eventually(t, c.name+": upstream", func() bool { return len(seen()) >= c.wantSeen })
		return told(g, seen(), log()[lines])
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := c.listener
			if l == "" {
				l = "pair"
			}
			ours := run(c, r.Addr(l), func() []string { return r.AccessLog(l) })
			real := run(c, e.Addr(l), func() []string { return e.AccessLog(l) })
			ours, real = strings.ReplaceAll(ours, r.Addr(l), "HOST"), strings.ReplaceAll(real, e.Addr(l), "HOST")
			if len(c.body) > 10000 { // how many pieces a body comes in is the network's affair
				ours, real = chunks.ReplaceAllString(ours, ""), chunks.ReplaceAllString(real, "")
			}
			if ours != real {
				t.Errorf("hostsim\n%s\nenvoy\n%s", ours, real)
			}
		})
	}
	m, err := e.Metrics(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	ours := r.Metrics()
	names := map[string]bool{}
	for name := range ours {
		names[name] = true
	}
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	sort.Strings(sorted)
	for _, name := range sorted {
		real, ok := m[name]
		if !ok {
			real = m["wasmcustom."+name]
		}
		if real != ours[name] {
			t.Errorf("metric %s: hostsim %s, envoy %s", name, strconv.FormatInt(ours[name], 10), strconv.FormatInt(real, 10))
		}
	}
}
