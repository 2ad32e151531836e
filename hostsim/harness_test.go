package hostsim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// chainWasm is testdata/chain, built once for the test binary.
var chainWasm []byte

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "hostsim")
	if err != nil {
		panic(err)
	}
	out := filepath.Join(dir, "chain.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-o", out, "./testdata/chain")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("build of testdata/chain: %v\n%s", err, text))
	}
	if chainWasm, err = os.ReadFile(out); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// eventually polls a condition for at most five seconds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 5 s: %s", what)
		}
		runtime.Gosched()
		<-time.After(time.Millisecond)
	}
}

// site is an upstream that counts what reaches it on the wire.
type site struct {
	name        string
	url         string
	connections atomic.Int64
	bytes       atomic.Int64
	aborted     atomic.Int64
	mu          sync.Mutex
	seen        []seenRequest
}

type seenRequest struct {
	method, path, body string
	header, trailer    http.Header
	length             int64
	err                error
}

func (s *site) requests() []seenRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seenRequest(nil), s.seen...)
}

type countedListener struct {
	net.Listener
	s *site
}

func (l countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.s.connections.Add(1)
	return countedConn{c, l.s}, nil
}

type countedConn struct {
	net.Conn
	s *site
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.s.bytes.Add(int64(n))
	return n, err
}

// newSite starts an upstream over HTTP/1.1 and HTTP/2. By default it echoes; query parameters ask for more.
func newSite(t *testing.T, name string) *site {
	t.Helper()
	s := &site{name: name}
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Protocols: protocols, Handler: http.HandlerFunc(s.serve), ErrorLog: nil}
	go server.Serve(countedListener{raw, s})
	t.Cleanup(func() { server.Close() })
	s.url = "http://" + raw.Addr().String()
	return s
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("early") != "" { // answers before it has read the body
		w.WriteHeader(418)
		w.(http.Flusher).Flush()
		return
	}
	b, err := io.ReadAll(r.Body)
	s.mu.Lock()
	s.seen = append(s.seen, seenRequest{r.Method, r.URL.RequestURI(), string(b), r.Header.Clone(), r.Trailer.Clone(), r.ContentLength, err})
	s.mu.Unlock()
	if err != nil {
		s.aborted.Add(1)
		return
	}
	w.Header().Set("x-site", s.name)
	if ms, _ := strconv.Atoi(q.Get("ms")); ms > 0 {
		select {
		case <-time.After(time.Duration(ms) * time.Millisecond):
		case <-r.Context().Done():
			s.aborted.Add(1)
			return
		}
	}
	switch {
	case q.Get("sse") != "":
		n, _ := strconv.Atoi(q.Get("sse"))
		w.Header().Set("content-type", "text/event-stream")
		for i := range n {
			fmt.Fprintf(w, "data: %d\n\n", i)
			if err := http.NewResponseController(w).Flush(); err != nil {
				break
			}
			select {
			case <-time.After(10 * time.Millisecond):
			case <-r.Context().Done():
				s.aborted.Add(1)
				return
			}
		}
		if q.Get("broken") != "" {
			panic(http.ErrAbortHandler)
		}
	case q.Get("none") != "":
		panic(http.ErrAbortHandler)
	case q.Get("broken") != "": // less than promised
		w.Header().Set("content-length", "100")
		io.WriteString(w, "short")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case q.Get("size") != "":
		n, _ := strconv.Atoi(q.Get("size"))
		w.Write(bytes.Repeat([]byte("r"), n))
	case q.Get("trailers") != "":
		io.WriteString(w, "with trailers")
		w.(http.Flusher).Flush()
		w.Header().Set(http.TrailerPrefix+"X-Sum", "42")
	case q.Get("json") != "":
		w.Header().Set("content-type", "application/json")
		io.WriteString(w, `{"answer":1}`)
	default:
		fmt.Fprintf(w, "%s:%d", s.name, len(b))
	}
}

// rig is a host in front of two sites and a bridge.
type rig struct {
	*Host
	t              *testing.T
	siteA, siteB   *site
	bridge         *site
	client1, http2 *http.Client
}

func startRig(t *testing.T, change func(o *Options)) *rig {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		eventually(t, fmt.Sprintf("goroutines back to %d", before), func() bool { return runtime.NumGoroutine() <= before })
	})
	r := &rig{t: t, siteA: newSite(t, "siteA"), siteB: newSite(t, "siteB"), bridge: newSite(t, "bridge")}
	o := rigOptions(r)
	if change != nil {
		change(&o)
	}
	h, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = h
	t.Cleanup(func() {
		if t.Failed() {
			for _, l := range h.Logs() {
				if !strings.HasPrefix(l, "info: ") && len(l) > 40 {
					t.Log(strings.TrimSpace(l))
				}
			}
		}
		h.Close()
	})
	r.client1, r.http2 = newClient(t, false), newClient(t, true)
	return r
}

func rigOptions(r *rig) Options {
	const log = "%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %FILTER_STATE(wasm.chain:PLAIN)% %REQ(X-M)%"
	routes := []Route{{"x-target", "siteB", "siteB"}, {"x-target", "none", "empty"}, {"x-target", "dead", "dead"},
		{"x-target", "h2", "siteA2"}, {"x-target", "nowhere", "unknown"}, {"", "", "siteA"}}
	pair := []Filter{{Name: "a", RootID: "a"}, {Name: "b", RootID: "b"}}
	return Options{
		Wasm: chainWasm, Workers: 2, VMID: "chain", Env: map[string]string{"GREETING": "hello"}, Strict: true,
		Clusters: map[string]Cluster{
			"siteA": {URL: r.siteA.url}, "siteA2": {URL: r.siteA.url, HTTP2: true}, "siteB": {URL: r.siteB.url},
			"bridge": {URL: r.bridge.url}, "bridge2": {URL: r.bridge.url, HTTP2: true},
			"empty": {}, "dead": {URL: "http://127.0.0.1:1"},
		},
		Listeners: []Listener{
			{Name: "pair", Filters: pair, Routes: routes, AccessLog: log},
			{Name: "small", Filters: pair, Routes: routes, AccessLog: log, BufferLimit: 32 << 10},
			{Name: "one", Filters: []Filter{{Name: "one", RootID: "one"}}, Routes: routes, AccessLog: "%RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %FILTER_STATE(wasm.calls:PLAIN)%", BufferLimit: 32 << 10},
			{Name: "flag", Filters: []Filter{{Name: "one", RootID: "one", AllowOnHeadersStop: true}}, Routes: routes, AccessLog: "%RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %FILTER_STATE(wasm.calls:PLAIN)%", BufferLimit: 32 << 10},
			{Name: "probe", Filters: []Filter{{Name: "probe", RootID: "probe"}}, Routes: routes, AccessLog: "%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %UPSTREAM_WIRE_BYTES_SENT%"},
		},
	}
}

func newClient(t *testing.T, h2 bool) *http.Client {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!h2)
	protocols.SetUnencryptedHTTP2(h2)
	tr := &http.Transport{Protocols: protocols, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 10 * time.Second}
}

// got is what a client saw.
type got struct {
	code    int
	header  http.Header
	trailer http.Header
	body    string
	err     error // of the body
	failed  error // no response at all
}

func (g got) String() string {
	return fmt.Sprintf("%d %q err=%v failed=%v %v", g.code, g.body, g.err, g.failed, g.header)
}

type call struct {
	listener, path, method, options string
	body                            []byte
	chunked, h2                     bool
	header, trailer                 map[string]string
	ctx                             context.Context
	patience                        time.Duration // the client leaves after it
}

func (r *rig) do(c call) got {
	r.t.Helper()
	if c.listener == "" {
		c.listener = "pair"
	}
	return r.at(r.Addr(c.listener), c)
}

// at makes the request to an address.
func (r *rig) at(addr string, c call) got {
	r.t.Helper()
	if c.path == "" {
		c.path = "/x"
	}
	if c.method == "" {
		c.method = "POST"
		if c.body == nil {
			c.method = "GET"
		}
	}
	if c.ctx == nil {
		c.ctx = context.Background()
	}
	if c.patience > 0 {
		ctx, cancel := context.WithTimeout(c.ctx, c.patience)
		defer cancel()
		c.ctx = ctx
	}
	var body io.Reader
	if c.body != nil {
		body = bytes.NewReader(c.body)
		if c.chunked {
			body = struct{ io.Reader }{body}
		}
	}
	req, err := http.NewRequestWithContext(c.ctx, c.method, "http://"+addr+c.path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("x-m", c.options)
	for k, v := range c.header {
		req.Header.Set(k, v)
	}
	for k, v := range c.trailer {
		if req.Trailer == nil {
			req.Trailer = http.Header{}
		}
		req.Trailer.Set(k, v)
	}
	client := r.client1
	if c.h2 {
		client = r.http2
	}
	resp, err := client.Do(req)
	if err != nil {
		return got{failed: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return got{code: resp.StatusCode, header: resp.Header, trailer: resp.Trailer, body: string(b), err: err}
}

func (r *rig) want(c call, code int, body string) got {
	r.t.Helper()
	g := r.do(c)
	if g.code != code || (body != "*" && g.body != body) || g.err != nil {
		r.t.Fatalf("%+v: got %v, want %d %q", c.options+c.path, g, code, body)
	}
	return g
}

func (r *rig) clean() {
	r.t.Helper()
	if v := r.Violations(); len(v) > 0 {
		r.t.Errorf("violations: %q", v)
	}
}

// settled waits until every stream is over and checks that a and b contexts all ended.
func (r *rig) settled() {
	r.t.Helper()
	eventually(r.t, "streams end", func() bool { return r.Streams() == 0 })
	m := r.Metrics()
	if m["chain.a_new"] > m["chain.a_done"] {
		r.t.Errorf("contexts left: %v", m)
	}
	if m["chain.b_before_a"] != 0 {
		r.t.Errorf("b ended before a: %v", m)
	}
}

// listen serves on a free port until the test ends and returns its URL.
func listen(t testing.TB, server *http.Server) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(l)
	t.Cleanup(func() { l.Close() })
	return "http://" + l.Addr().String()
}
