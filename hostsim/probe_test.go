package hostsim

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

func (r *rig) probe(what string, header map[string]string) string {
	r.t.Helper()
	h := map[string]string{"x-probe": what}
	for k, v := range header {
		h[k] = v
	}
	g := r.want(call{listener: "probe", path: "/p?q=1", header: h}, 200, "*")
	if g.header.Get("content-type") != "text/x-probe" || g.header.Get("x-seen") != "200" {
		r.t.Errorf("the reply did not pass the response callbacks: %v", g.header)
	}
	return g.body
}

func TestHeaderMaps(t *testing.T) {
	r := startRig(t, nil)
	req, _ := http.NewRequest("GET", "http://"+r.Addr("probe")+"/p", nil)
	req.Header["X-Twice"] = []string{"one", "two"}
	req.Header.Set("x-probe", "headers")
	req.Header.Set("x-request-id", "mine")
	resp, err := r.client1.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := resp.Body.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			break
		}
	}
	text := b.String()
	for _, want := range []string{"first=one err=<nil>\n", ":authority=" + r.Addr("probe"), ":path=/p\n:method=GET\n:scheme=http\n", "x-request-id=mine",
		"x-twice=one\nx-twice=two", "x-twice=new", "x-twice=more", "absent=error status returned by host: not found", "response=error status returned by host: bad argument"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	_, after, _ := strings.Cut(text, "--\n")
	if strings.Contains(after, "x-probe") || strings.Contains(after, "x-twice=two") {
		t.Errorf("removed or replaced values are left:\n%s", after)
	}
}

func TestProperties(t *testing.T) {
	r := startRig(t, nil)
	paths := "request.path,request.url_path,request.query,request.method,request.host,request.protocol,request.id,connection.mtls," +
		"plugin_name,plugin_root_id,plugin_vm_id,xds.cluster_name,response.code,response.code_details,route_name,cluster_name,upstream.address,request.headers.x-one"
	got := r.probe("properties", map[string]string{"x-paths": paths, "x-one": "1", "x-request-id": "rid"})
	missing := "error status returned by host: not found"
	for _, want := range []string{`request.path: "/p?q=1"`, `request.url_path: "/p"`, `request.query: "q=1"`, `request.method: "GET"`,
		`request.protocol: "HTTP/1.1"`, `request.id: "rid"`, `connection.mtls: "\x00"`, `plugin_name: "probe"`, `plugin_root_id: "probe"`,
		`plugin_vm_id: "chain"`, `xds.cluster_name: "siteA"`, "response.code: " + missing, "route_name: " + missing, "cluster_name: " + missing,
		"upstream.address: " + missing, `request.headers.x-one: "1"`, "set: <nil>", "mine: yes yes"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	got = r.probe("properties", map[string]string{"x-paths": "connection.id,source.address,source.port"})
	if !strings.Contains(got, `connection.id: "\x01\x00\x00\x00\x00\x00\x00\x00"`) || !strings.Contains(got, `source.address: "127.0.0.1:`) {
		t.Errorf("%s", got)
	}
}

func token(secret, payload string) string {
	e := base64.RawURLEncoding
	signed := e.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + e.EncodeToString([]byte(payload))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed))
	return signed + "." + e.EncodeToString(mac.Sum(nil))
}

func TestJWT(t *testing.T) {
	r := startRig(t, func(o *Options) {
		for i := range o.Listeners {
			if o.Listeners[i].Name == "probe" {
				o.Listeners[i].JWT = &JWT{Secret: []byte("s3cret"), Metadata: "jwt_payload"}
			}
		}
	})
	payload := `{"sub":"alice","plan":{"tier":"gold"},"level":7,"roles":["x","admin"],"exp":` + strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10) + `}`
	seven := strconv.Quote(string(binary.LittleEndian.AppendUint64(nil, math.Float64bits(7))))
	got := r.probe("claims", map[string]string{"authorization": "Bearer " + token("s3cret", payload), "x-claims": "sub,plan.tier,level,roles.1,none"})
	for _, want := range []string{`sub: "alice"`, `plan.tier: "gold"`, "level: " + seven, `roles.1: "admin"`, "none: error status returned by host: not found"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	got = r.probe("claims", map[string]string{"x-claims": "sub"})
	if got != "sub: error status returned by host: not found" {
		t.Errorf("without a token: %s", got)
	}
	before := r.Metrics()["chain.probe_done"]
	for bad, why := range map[string]string{
		token("other", payload):                "Jwt verification fails",
		token("s3cret", `{"exp":1}`):           "Jwt is expired",
		token("s3cret", `{"nbf":99999999999}`): "Jwt not yet valid",
		"opaque":                               "Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections",
	} {
		g := r.want(call{listener: "probe", header: map[string]string{"authorization": "Bearer " + bad}}, 401, why)
		if g.header.Get("x-seen") != "" {
			t.Error("a filter behind the refusal saw the response")
		}
	}
	// The only callback of a filter that was never reached is the log.
	eventually(t, "log callbacks", func() bool { return r.Metrics()["chain.probe_done"] == before+4 })
	if n := r.siteA.connections.Load(); n != 0 {
		t.Errorf("%d upstream connections", n)
	}
}

func TestSharedDataAndQueues(t *testing.T) {
	r := startRig(t, nil)
	want := strings.Join([]string{"missing: error status returned by host: not found", "any cas on a missing key: <nil>",
		"wrong cas: error status returned by host: cas mismatch", "right cas: <nil>", "stale cas: error status returned by host: cas mismatch",
		"zero overwrites: <nil>", "value: 5", "register: <nil>", "empty: error status returned by host: empty",
		"unknown: error status returned by host: not found", "resolve: true <nil>", "other vm: error status returned by host: not found"}, "\n")
	if got := r.probe("shared", nil); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestMetrics(t *testing.T) {
	r := startRig(t, nil)
	got := r.probe("metrics", nil)
	if !strings.Contains(got, "by 0: error status returned by host: bad argument") || !strings.Contains(got, "histogram: true") || !strings.HasSuffix(got, "gauge=-2") {
		t.Errorf("%s", got)
	}
	r.probe("metrics", nil) // the other worker's VM: the same stats
	m := r.Metrics()
	if m["chain.gauge"] != -4 || m["chain.histogram.count"] != 4 || m["chain.histogram.sum"] != 84 || m["chain.zero"] != 2 {
		t.Errorf("%v", m)
	}
	// Canary, main thread and two workers.
	if m["chain.start_probe"] != 4 {
		t.Errorf("starts: %v", m)
	}
}

func TestCallouts(t *testing.T) {
	r := startRig(t, nil)
	for _, c := range []struct{ name, cluster, query, timeout, bare, want string }{
		{"ok", "bridge", "", "", "", "headers=true status=200 body=bridge:4 err=<nil> err2=<nil>\nrequest in reach: true"},
		{"http2", "bridge2", "", "", "", "headers=true status=200 body=bridge:4 err=<nil> err2=<nil>\nrequest in reach: true"},
		{"unknown cluster", "nosuch", "", "", "", "dispatch: error status returned by host: bad argument"},
		{"no host", "empty", "", "", "", "dispatch: error status returned by host: internal failure"},
		{"no authority", "bridge", "", "", "1", "dispatch: error status returned by host: bad argument"},
		{"refused", "dead", "", "", "", "headers=true status=503 body=upstream connect error or disconnect/reset before headers. reset reason: remote connection failure err=<nil> err2=<nil>\nrequest in reach: true"},
		{"timeout", "bridge", "ms=500", "60", "", "headers=true status=504 body=upstream request timeout err=<nil> err2=<nil>\nrequest in reach: true"},
		{"broken reply", "bridge", "broken=1", "", "", "headers=false status= body= err=error status returned by host: not found err2=error status returned by host: not found\nrequest in reach: true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := r.probe("call", map[string]string{"x-cluster": c.cluster, "x-query": c.query, "x-timeout": c.timeout, "x-bare": c.bare}); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	r.settled()
	r.clean()
}

// A call from the log callback is sent; its answer finds no stream.
func TestCallFromDone(t *testing.T) {
	r := startRig(t, nil)
	r.want(call{options: "m=pass;late=call"}, 200, "*")
	eventually(t, "call arrives", func() bool { return len(r.bridge.requests()) == 1 })
	r.settled()
	if r.Metrics()["chain.impossible"] != 0 {
		t.Error("the callback ran")
	}
}

func TestSmallHostCalls(t *testing.T) {
	r := startRig(t, nil)
	if got := r.probe("foreign", nil); got != "foreign: error status returned by host: not found" {
		t.Error(got)
	}
	if got := r.probe("exit", nil); got != "still here" { // as on Envoy
		t.Error(got)
	}
	if got := r.probe("effective", nil); got != "dead: error status returned by host: bad argument\nself: <nil>" {
		t.Error(got)
	}
	before := r.Memory()
	if len(before) != 4 { // base, main, two workers
		t.Errorf("memory %v", before)
	}
	r.probe("grow", map[string]string{"x-size": strconv.Itoa(64 << 20)})
	grown := false
	for name, size := range r.Memory() {
		grown = grown || size >= before[name]+64<<20
	}
	if !grown {
		t.Errorf("memory before %v, after %v", before, r.Memory())
	}
}
