package envoy

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func bound(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func get(t *testing.T, addr string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest("GET", "http://"+addr+"/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func named(t *testing.T, name string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, name) }))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func token(secret, claims string) string {
	enc := base64.RawURLEncoding
	text := enc.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + enc.EncodeToString([]byte(claims))
	mac := hmac.New(sha256.New, []byte(secret))
	io.WriteString(mac, text)
	return text + "." + enc.EncodeToString(mac.Sum(nil))
}

func TestRealProcessRoutesLogsAndCounts(t *testing.T) {
	const secret = "a secret of more than thirty-two bytes"
	format := `%RESPONSE_CODE% %REQ(X-A)% %DYNAMIC_METADATA(envoy.filters.http.jwt_authn:payload:sub)%`
	e, err := Start(bound(t), Options{
		Concurrency: 2,
		Clusters:    []Cluster{{Name: "one", Addr: named(t, "one")}, {Name: "two", Addr: named(t, "two")}, {Name: "none"}},
		Listeners: []Listener{
			{Name: "a", AccessLog: format, JWT: &JWT{Secret: []byte(secret), Metadata: "payload"}, Routes: []Route{
				{Header: "x-emmer-target", Value: "two", Cluster: "two"},
				{Header: "x-emmer-target", Value: "none", Cluster: "none"},
				{Cluster: "one"},
			}},
			{Name: "b", BufferLimit: 32 << 10, Filters: []Filter{Delay(30 * time.Millisecond)}, Routes: []Route{{Cluster: "two"}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	for _, c := range []struct {
		listener string
		header   []string
		status   int
		body     string
	}{
		{"a", []string{"x-a", "plain"}, 200, "one"},
		{"a", []string{"x-emmer-target", "two"}, 200, "two"},
		{"a", []string{"x-emmer-target", "none"}, 503, "no healthy upstream"},
		{"a", []string{"authorization", "Bearer " + token(secret, `{"sub":"alice"}`)}, 200, "one"},
		{"a", []string{"authorization", "Bearer " + token("another", `{"sub":"alice"}`)}, 401, "Jwt verification fails"},
	} {
		if status, body := get(t, e.Addr(c.listener), c.header...); status != c.status || body != c.body {
			t.Errorf("%s %v: %d %q, want %d %q", c.listener, c.header, status, body, c.status, c.body)
		}
	}
	began := time.Now()
	if status, body := get(t, e.Addr("b")); status != 200 || body != "two" || time.Since(began) < 30*time.Millisecond {
		t.Errorf("b: %d %q after %v", status, body, time.Since(began))
	}
	want := []string{"200 plain -", "200 - -", "503 - -", "200 - alice", "401 - -"}
	awaitLines(t, e, "a", want)
	stats, err := e.Stats(bound(t))
	if err != nil || stats["http.a.downstream_rq_completed"] != 5 {
		t.Errorf("stats: %d entries, completed %d: %v", len(stats), stats["http.a.downstream_rq_completed"], err)
	}
	addr := e.Addr("a")
	e.Stop()
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("still listening after Stop")
	}
	if _, err := os.Stat(e.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory left behind: %v", err)
	}
}

func awaitLines(t *testing.T, e *Envoy, listener string, want []string) {
	t.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(10 * time.Second); ; <-poll.C {
		got := e.AccessLog(listener)
		if strings.Join(got, "\n") == strings.Join(want, "\n") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("access log %q, want %q", got, want)
		}
	}
}

func TestStartSaysWhyItFailed(t *testing.T) {
	_, err := Start(bound(t), Options{Listeners: []Listener{{Name: "a", Routes: []Route{{Cluster: "missing"}}}}})
	if !errors.Is(err, ErrExited) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("got %v", err)
	}
	_, err = Start(bound(t), Options{Listeners: []Listener{{Name: "a"}, {Name: "a"}}})
	if err == nil || !strings.Contains(err.Error(), `listener "a"`) {
		t.Errorf("two of one name: %v", err)
	}
	t.Setenv("EMMER_ENVOY", filepath.Join(t.TempDir(), "absent"))
	if _, err := Start(bound(t), Options{}); err == nil || !strings.Contains(err.Error(), "EMMER_ENVOY") {
		t.Errorf("absent binary: %v", err)
	}
}

func TestBootstrapFromFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envoy.yaml")
	os.WriteFile(path, []byte(`
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 9901}}}
static_resources:
  listeners:
  - name: main
    address: {socket_address: {address: 0.0.0.0, port_value: 10000}}
    filter_chains:
    - filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: main
          route_config: {virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 418}}]}]}
          http_filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
`), 0o600)
	e, err := Start(bound(t), Options{BootstrapFile: path, Replace: map[string]string{"port_value: 9901": "port_value: 0", "port_value: 10000": "port_value: 0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	if status, _ := get(t, e.Addr("main")); status != 418 {
		t.Errorf("status %d", status)
	}
	if _, err := Start(bound(t), Options{BootstrapFile: path, Replace: map[string]string{"nowhere": "x"}}); err == nil {
		t.Error("a replacement that replaces nothing passed")
	}
}

func TestStatsAreParsed(t *testing.T) {
	got := parseStats("wasmcustom.emmer.requests: 3\na.b: P0(nan,1)\nc: No recorded values\nd: 7\n")
	if len(got) != 2 || got["wasmcustom.emmer.requests"] != 3 || got["d"] != 7 {
		t.Errorf("got %v", got)
	}
}
