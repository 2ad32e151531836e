package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/bucket/buckettest"
)

// visitor is a client that knows an authority, or none, and may have a certificate.
func visitor(t *testing.T, authority, cert, key string) *http.Client {
	t.Helper()
	c := &tls.Config{RootCAs: x509.NewCertPool()}
	if pem, err := os.ReadFile(authority); err == nil {
		c.RootCAs.AppendCertsFromPEM(pem)
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	// A new connection each time, so that each has a handshake.
	return &http.Client{Transport: &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true, DisableKeepAlives: true}, Timeout: 10 * time.Second}
}

func greet(c *http.Client, url string) (*http.Response, error) {
	r, err := http.NewRequest(http.MethodPost, url+"/", strings.NewReader(`["PING"]`))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer one")
	w, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Body.Close() }()
	body, err := io.ReadAll(w.Body)
	if err == nil && string(body) != `{"result":"PONG"}` {
		err = fmt.Errorf("%d %s", w.StatusCode, body)
	}
	return w, err
}

func TestTLSToClients(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	writeCertificate(t, file("cert"), file("key"))
	writeCertificate(t, file("new-cert"), file("new-key"))
	p := start(t, nil, "-redis", buckettest.StartRedis(t), "-timeout", "2s", "-listen-cert", file("cert"), "-listen-key", file("key"))
	url := strings.Replace(p.url, "http:", "https:", 1)
	before, after := visitor(t, file("cert"), "", ""), visitor(t, file("new-cert"), "", "")

	w, err := greet(before, url)
	if err != nil || w.ProtoMajor != 2 || w.TLS.Version < tls.VersionTLS12 {
		t.Fatalf("%+v %v", w, err)
	}
	if _, err := greet(after, url); err == nil {
		t.Error("a stranger's certificate is shown")
	}
	old := visitor(t, file("cert"), "", "")
	old.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS11
	if _, err := greet(old, url); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	if w, err := before.Get(p.url + "/healthz"); err == nil && w.StatusCode == 200 {
		t.Error("clear text is served")
	}

	replace := func(from, to string) {
		t.Helper()
		text, err := os.ReadFile(file(from))
		if err == nil {
			err = os.WriteFile(file(to), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	hup := func(message string) {
		t.Helper()
		had := strings.Count(p.logged(), message)
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, message, func() bool { return strings.Count(p.logged(), message) > had })
	}
	replace("new-key", "key") // halfway: the pair doesn't match
	hup("cannot be used")
	if _, err := greet(before, url); err != nil {
		t.Errorf("halfway: %v", err)
	}
	replace("new-cert", "cert")
	hup("read anew")
	if _, err := greet(after, url); err != nil {
		t.Errorf("renewed: %v", err)
	}
	if _, err := greet(before, url); err == nil {
		t.Error("the old certificate is shown still")
	}
	w, err = after.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Body.Close() }()
	if body, _ := io.ReadAll(w.Body); !strings.Contains(string(body), "\nemmer_bridge_certificate_end_seconds ") {
		t.Error("no certificate's end among the metrics")
	}
}

func TestClientsNeedCertificates(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"", "a-", "b-"} {
		writeCertificate(t, file(name+"cert"), file(name+"key"))
	}
	if err := os.Link(file("a-cert"), file("ca")); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, "-redis", buckettest.StartRedis(t), "-timeout", "2s", "-probes", "127.0.0.1:0",
		"-listen-cert", file("cert"), "-listen-key", file("key"), "-listen-client-ca", file("ca"))
	url := strings.Replace(p.url, "http:", "https:", 1)
	a, b := visitor(t, file("cert"), file("a-cert"), file("a-key")), visitor(t, file("cert"), file("b-cert"), file("b-key"))
	a.Transport.(*http.Transport).TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	if _, err := greet(a, url); err != nil {
		t.Error(err)
	}
	for _, c := range []*http.Client{b, visitor(t, file("cert"), "", "")} {
		if _, err := greet(c, url); err == nil {
			t.Error("a client without a good certificate is served")
		}
	}
	for path, status := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/": 404, "/emmer/v1/kills": 404} {
		w, err := http.Get(p.probes + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
		if w.StatusCode != status {
			t.Errorf("probes: %s: %d", path, w.StatusCode)
		}
	}
	if w, err := a.Get(url + "/metrics"); err != nil || w.StatusCode != 404 {
		t.Errorf("metrics among the commands: %v %v", w, err)
	}
	// The authority is replaced: who was welcome is so no more, with a session to resume either.
	text, err := os.ReadFile(file("b-cert"))
	if err == nil {
		err = os.WriteFile(file("ca"), text, 0o600)
	}
	if err == nil {
		err = p.cmd.Process.Signal(syscall.SIGHUP)
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other client is served", func() bool { _, err := greet(b, url); return err == nil })
	if _, err := greet(a, url); err == nil {
		t.Error("a client of an authority that is gone is served")
	}
}

// TestFilesAreWatched: a change is seen without a signal.
func TestFilesAreWatched(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	w, err := watch([]string{file}, func() (string, error) { b, err := os.ReadFile(file); return string(b), err })
	if err != nil {
		t.Fatal(err)
	}
	write("second")
	if got := w.get(); got != "one" {
		t.Errorf("looked at once: %s", got)
	}
	w.looked = w.looked.Add(-watchEvery)
	if got := w.get(); got != "second" {
		t.Errorf("after a while: %s", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	w.looked = w.looked.Add(-watchEvery)
	if got := w.get(); got != "second" {
		t.Errorf("gone: %s", got)
	}
}

// TestMemoryIsBoundedWhileRedisStalls lets thousands of callers in on a bridge whose Redis has stopped:
// all are answered 503 in time, and the process doesn't grow.
func TestMemoryIsBoundedWhileRedisStalls(t *testing.T) {
	const callers, rounds = 4000, 4
	r := buckettest.StartServer(t)
	p := start(t, nil, "-redis", r.Addr(), "-timeout", "300ms")
	p.want("POST", "/", "one", `["PING"]`, 200, `{"result":"PONG"}`)
	idle := p.peak()
	r.Pause()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}, Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()
	body := `["EVAL","return 1","0","` + strings.Repeat("x", 8000) + `"]`
	var peaks []int
	var timeouts, overloads, others atomic.Int64
	slowest := time.Duration(0)
	for range rounds {
		var group sync.WaitGroup
		began := time.Now()
		for range callers {
			group.Go(func() {
				q, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, p.url+"/", strings.NewReader(body))
				q.Header.Set("Authorization", "Bearer one")
				w, err := client.Do(q)
				if err != nil {
					others.Add(1)
					t.Log(err)
					return
				}
				defer func() { _ = w.Body.Close() }()
				text, _ := io.ReadAll(w.Body)
				switch {
				case w.StatusCode == 503 && strings.HasPrefix(string(text), `{"error":"TIMEOUT `):
					timeouts.Add(1)
				case w.StatusCode == 503 && strings.HasPrefix(string(text), `{"error":"OVERLOAD `):
					overloads.Add(1)
				default:
					others.Add(1)
				}
			})
		}
		group.Wait()
		slowest = max(slowest, time.Since(began))
		peaks = append(peaks, p.peak())
	}
	t.Logf("%d timeouts, %d overloads, %d others; slowest round %v; peak memory idle %d MB, then %v MB", timeouts.Load(), overloads.Load(), others.Load(), slowest, idle, peaks)
	if others.Load() > 0 || timeouts.Load() == 0 || overloads.Load() == 0 {
		t.Error("not all are answered as they should be")
	}
	// What is kept for good would grow with each round of 32 MB; how far the collector lets the heap
	// go is its own business.
	if last := peaks[rounds-1]; last > 256 || last > peaks[1]+peaks[1]/2 {
		t.Errorf("memory grows: %v MB", peaks)
	}
	r.Resume()
	eventually(t, "serves again", func() bool { status, _ := p.ask("POST", "/", "one", `["PING"]`); return status == 200 })
}

// peak is the most memory that the process ever had, in MB.
func (p *program) peak() int {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	var kb int
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		p.t.Fatal(err)
	}
	return kb >> 10
}

func TestEvictionIsTold(t *testing.T) {
	r := buckettest.StartServer(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	p := start(t, nil, "-redis", r.Addr(), "-strict")
	eventually(t, "is told", func() bool { return strings.Contains(p.logged(), `"value":"allkeys-lru"`) })
	p.want("GET", "/readyz", "", "", 503, `{"error":"SETTINGS maxmemory-policy is allkeys-lru`)
	p.want("POST", "/", "one", `["PING"]`, 200, `{"result":"PONG"}`)
	if _, body := p.ask("GET", "/metrics", "", ""); !strings.Contains(body, "\nemmer_bridge_redis_may_evict 1\n") {
		t.Error("the metric doesn't say so")
	}
}
