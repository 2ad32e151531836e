package closer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"
)

// wire is a server's connection whose bytes toward the client pass a Conn.
type wire struct {
	net.Conn
	mu    sync.Mutex
	c     Conn
	ended map[Mark]chan bool
	edits int
}

type wires struct{ net.Listener }

func (l wires) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &wire{Conn: c, ended: map[Mark]chan bool{}}, nil
}

func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.c.Pass(len(p), func(from, to int) []byte { return p[from:to] })
	w.edits += len(out.Edits)
	if _, err := w.Conn.Write(Apply(p, out.Edits)); err != nil {
		return 0, err
	}
	for _, e := range out.Ended {
		w.ended[e.Mark] <- e.Close
	}
	return len(p), nil
}

type wireKey struct{}

// cutting serves streams that never end by themselves: each is ended by its cut after some events.
func cutting(t *testing.T) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	var serial int
	var mu sync.Mutex
	s := &http.Server{
		Protocols:   protocols,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, wireKey{}, c) },
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			w := r.Context().Value(wireKey{}).(*wire)
			if r.URL.Path == "/plain" {
				io.WriteString(rw, "plain")
				return
			}
			mu.Lock()
			serial++
			m := markOf(serial)
			mu.Unlock()
			w.mu.Lock()
			ok := w.c.Announce()
			w.mu.Unlock()
			if !ok {
				t.Error("not followed")
			}
			event := func(text string) {
				io.WriteString(rw, text)
				rw.(http.Flusher).Flush()
			}
			for i := range 5 {
				event(fmt.Sprintf("data: %d %s\n\n", i, strings.Repeat("x", 60)))
			}
			ended := make(chan bool, 1)
			w.mu.Lock()
			w.ended[m] = ended
			if !w.c.Arm(m, 2) {
				t.Error("not armed")
			}
			w.mu.Unlock()
			event("data: [DONE]\n\n: " + string(m[:]) + "\n\n")
			closing := <-ended // or the client's timeout ends the test
			if closing != (r.ProtoMajor == 1) {
				t.Errorf("close is %v on %s", closing, r.Proto)
			}
			if closing {
				w.Conn.Close()
			}
			panic(http.ErrAbortHandler) // HTTP/2: RST_STREAM INTERNAL_ERROR
		}),
	}
	go s.Serve(wires{l})
	t.Cleanup(func() { s.Close() })
	return "http://" + l.Addr().String()
}

// client is a real one; window bounds what an HTTP/2 stream may be sent at once.
func client(t *testing.T, h2 bool, window int) (c *http.Client, connections func() int) {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!h2)
	protocols.SetUnencryptedHTTP2(h2)
	n := 0
	var mu sync.Mutex
	tr := &http.Transport{Protocols: protocols, HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: window},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			mu.Lock()
			n++
			mu.Unlock()
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 20 * time.Second}, func() int { mu.Lock(); defer mu.Unlock(); return n }
}

// read gets an answer some bytes at a time.
func read(c *http.Client, url string, step int) (string, error) {
	resp, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var b strings.Builder
	buf := make([]byte, step)
	for {
		n, err := resp.Body.Read(buf)
		b.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			return b.String(), nil
		}
		if err != nil {
			return b.String(), err
		}
	}
}

func checkCut(t *testing.T, got string, err error) {
	t.Helper()
	if err != nil || !strings.Contains(got, "data: 4 ") || !strings.Contains(got, "data: [DONE]\n\n: ") {
		t.Errorf("%q, %v", got, err)
	}
}

// net/http reads a clean end of every cut, and its next request works: at once, on a new connection.
func TestClientHTTP1(t *testing.T) {
	url := cutting(t)
	c, connections := client(t, false, 0)
	for range 20 {
		got, err := read(c, url+"/sse", 4096)
		checkCut(t, got, err)
		if got, err := read(c, url+"/plain", 100); got != "plain" || err != nil {
			t.Errorf("the next request: %q, %v", got, err)
		}
	}
	if n := connections(); n > 21 {
		t.Errorf("%d connections", n)
	}
}

// On HTTP/2, with windows of any size, many cuts share one connection with answers that go on.
func TestClientHTTP2(t *testing.T) {
	url := cutting(t)
	for _, window := range []int{0, 100, 7} {
		c, connections := client(t, true, window)
		var all sync.WaitGroup
		for i := range 30 {
			all.Add(1)
			go func() {
				defer all.Done()
				if i%3 == 0 {
					if got, err := read(c, url+"/plain", 2); got != "plain" || err != nil {
						t.Errorf("another stream: %q, %v", got, err)
					}
					return
				}
				got, err := read(c, url+"/sse", 5+i)
				checkCut(t, got, err)
			}()
		}
		all.Wait()
		reused := false
		ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
		req, _ := http.NewRequestWithContext(ctx, "GET", url+"/plain", nil)
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if !reused {
			t.Errorf("window %d: the next request has a new connection, the last of %d", window, connections())
		}
	}
}
