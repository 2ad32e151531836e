package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestServeIsAReverseProxyWithAStore(t *testing.T) {
	module := filepath.Join(t.TempDir(), "ask.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-o", module, "../../testdata/ask")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var mu sync.Mutex
	var seen []string
	provider := func(name string) *httptest.Server {
		handler := func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			seen = append(seen, name+" "+r.Host+" "+r.URL.String()+" target="+r.Header.Get("x-emmer-target"))
			mu.Unlock()
			io.WriteString(w, name)
		}
		s := httptest.NewServer(http.HandlerFunc(handler))
		t.Cleanup(s.Close)
		return s
	}
	one, two := provider("one"), provider("two")
	config := filepath.Join(t.TempDir(), "emmer.yaml")
	if err := os.WriteFile(config, []byte("limits: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var notes bytes.Buffer
	g, err := startGateway(t.Context(), serveOptions{
		config: config, wasm: module, listen: "127.0.0.1:0", workers: 1,
		upstreams: words{one.URL + "/base", "eu=" + two.URL},
	}, &notes)
	if err != nil {
		t.Fatalf("%v\n%s", err, notes.String())
	}
	get := func(path string, header ...string) string {
		req, err := http.NewRequest("GET", g.url()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if got := get("/v1/x?y=1"); got != "one" {
		t.Errorf("default target: %q", got)
	}
	if got := get("/v1/x", "x-want", "eu"); got != "two" {
		t.Errorf("named target: %q", got)
	}
	if got := get("/ask"); got != `{"result":"PONG"}` {
		t.Errorf("the store said %q", got)
	}
	host := func(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }
	want := []string{"one " + host(one) + " /base/v1/x?y=1 target=", "two " + host(two) + " /v1/x target="}
	mu.Lock()
	if strings.Join(seen, "\n") != strings.Join(want, "\n") {
		t.Errorf("upstreams saw %q, want %q", seen, want)
	}
	mu.Unlock()

	// The operator's line of the greeting works as it is printed.
	var out bytes.Buffer
	g.greet(&out)
	if !strings.Contains(out.String(), g.url()+"/v1/chat/completions") {
		t.Errorf("greeting: %s", out.String())
	}
	req, err := http.NewRequest("POST", g.bridge.URL()+"/emmer/v1/kill", strings.NewReader(`{"scope":"global","id":"all","reason":"drill"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("authorization", "Bearer "+g.operator)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("kill: %s", resp.Status)
	}

	ended, cancel := context.WithCancel(t.Context())
	lines := &lineWaiter{want: 3, done: cancel}
	limit := time.AfterFunc(10*time.Second, cancel)
	defer limit.Stop()
	g.follow(ended, lines)
	if lines.n < 3 || !strings.HasPrefix(lines.first, "GET /v1/x?y=1 200 ") {
		t.Errorf("%d log lines, first %q", lines.n, lines.first)
	}
	if err := g.stop(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(one.URL); err != nil {
		t.Error(err) // the provider is not ours to stop
	}
}

// lineWaiter counts the lines written to it.
type lineWaiter struct {
	want, n int
	first   string
	done    func()
}

func (w *lineWaiter) Write(p []byte) (int, error) {
	if w.n == 0 {
		w.first = string(p)
	}
	if w.n++; w.n == w.want {
		w.done()
	}
	return len(p), nil
}

func TestSettingsAreReadAsFarAsTheyMatter(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	s, err := readSettings("limits: []\nidentity: {org: {value: \"${ORG}\"}}", func(name string) (string, bool) { return "acme", name == "ORG" })
	if err != nil || s.cluster != "emmer-bridge" || s.mode != "pair" || s.namespace != "emmer" || s.env["ORG"] != "acme" {
		t.Errorf("got %+v, %v", s, err)
	}
	if s.token == "" || s.token != s.env["EMMER_STORE_TOKEN"] {
		t.Errorf("token %q, environment %v", s.token, s.env)
	}
	var out map[string]any
	if err := json.Unmarshal(s.json, &out); err != nil || out["version"] != 1.0 {
		t.Errorf("json %s: %v", s.json, err)
	}
	s, err = readSettings("store: {cluster: c, token: fixed}\nhold: {mode: flag}", none)
	if err != nil || s.cluster != "c" || s.token != "fixed" || s.mode != "flag" || len(s.env) != 0 {
		t.Errorf("got %+v, %v", s, err)
	}
	for text, want := range map[string]string{
		"hold: {mode: loose}":           `hold.mode: want pair or flag, found "loose"`,
		"store: {cluster: {property:}}": "store.cluster: want a name here",
		"a: [":                          "yaml",
	} {
		if _, err := readSettings(text, none); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, bad := range [][]string{{}, {"ftp://x"}, {"a=http://x"}, {"http://x", "https://y"}} {
		if got, err := parseTargets(bad); err == nil {
			t.Errorf("%q passed: %v", bad, got)
		}
	}
	got, err := parseTargets([]string{"https://x/a=b", "eu=http://y"})
	if err != nil || got[""] != "https://x/a=b" || got["eu"] != "http://y" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestRelayPassesPiecesAtOnceAndTLS(t *testing.T) {
	more := make(chan struct{})
	provider := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "first")
		http.NewResponseController(w).Flush()
		<-more
	}))
	defer provider.Close()
	saved := http.DefaultTransport
	http.DefaultTransport = provider.Client().Transport // trusts the provider's certificate
	r, err := startRelay(provider.URL, io.Discard)
	http.DefaultTransport = saved
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(r.url())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	piece := make([]byte, 5)
	if _, err := io.ReadFull(resp.Body, piece); err != nil || string(piece) != "first" {
		t.Errorf("before the end: %q, %v", piece, err)
	}
	close(more)
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
		t.Errorf("rest %q, %v", rest, err)
	}
	r.finish(t.Context())
}

func TestTestCommandTellsWhatHeldAndWhatWasLeft(t *testing.T) {
	dir := t.TempDir()
	write := func(name, steps string) string {
		path := filepath.Join(dir, name)
		text := "-- upstream --\nwrite hi\n-- a.http --\nGET /x\n\n-- steps --\n" + steps
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.txtar", "send a\nexpect a body == hi\n")
	bad := write("bad.txtar", "send a\nexpect a body == ho\n")
	probe := write("probe.txtar", "send a\nprobe left x == 3\n")
	var out, notes bytes.Buffer
	err := run(t.Context(), []string{"test", "--envoy", "--wasm", "", good, probe}, &out, &notes)
	want := "ok    good/flag\nok    good/pair\nleft  probe/flag: " + probe + ":8: probe left: no such probe here"
	if err != nil || !strings.HasPrefix(out.String(), want) || !strings.Contains(out.String(), "2 passed, 0 failed, on envoy\n2 were not run") {
		t.Errorf("%v\n%s%s", err, out.String(), notes.String())
	}
	out.Reset()
	err = run(t.Context(), []string{"test", "--envoy", "--wasm", "", bad}, &out, &notes)
	if !errors.Is(err, errSaid) || !strings.Contains(out.String(), "FAIL  bad/flag\n"+bad+`:8: [flag] expect a body == ho`) {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestRunNamesItsCommands(t *testing.T) {
	var out, notes bytes.Buffer
	if err := run(t.Context(), []string{"frob"}, &out, &notes); err == nil || err.Error() != `no command "frob"` {
		t.Errorf("got %v", err)
	}
	for _, c := range commands {
		if !strings.Contains(notes.String(), c.name) {
			t.Errorf("usage does not name %s", c.name)
		}
	}
	if err := run(t.Context(), []string{"help"}, &out, &notes); err != nil {
		t.Error(err)
	}
}
