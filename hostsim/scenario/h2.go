package scenario

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// h2Conn is a client's HTTP/2 connection, in cleartext or over TLS.
type h2Conn struct {
	transport *http.Transport
	scheme    string
	cancel    context.CancelFunc
	ctx       context.Context
}

// newH2 makes one whose streams may be sent window bytes at once; 0 is the client's own default.
func newH2(ctx context.Context, window int, secure *tls.Config) *h2Conn {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(secure == nil)
	protocols.SetHTTP2(secure != nil)
	c := &h2Conn{scheme: "http", transport: &http.Transport{
		Protocols: protocols, DisableCompression: true, TLSClientConfig: secure,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: window},
	}}
	if secure != nil {
		c.scheme = "https"
	}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

func (c *h2Conn) close() {
	c.cancel()
	c.transport.CloseIdleConnections()
}

// h2Body feeds a request's body piece by piece. Each piece becomes frames of its own.
type h2Body struct {
	mu    sync.Mutex
	jobs  []writeJob
	ended bool
	wake  chan struct{}
	ctx   context.Context
}

func (b *h2Body) enqueue(end bool, jobs ...writeJob) {
	b.mu.Lock()
	b.jobs = append(b.jobs, jobs...)
	b.ended = b.ended || end
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *h2Body) Read(p []byte) (int, error) {
	for {
		b.mu.Lock()
		if len(b.jobs) > 0 {
			job := &b.jobs[0]
			if len(job.bytes) > 0 {
				n := copy(p, job.bytes)
				job.bytes = job.bytes[n:]
				b.mu.Unlock()
				return n, nil
			}
			pause := job.pause
			b.jobs = b.jobs[1:]
			b.mu.Unlock()
			if pause > 0 {
				timer := time.NewTimer(pause)
				select {
				case <-timer.C:
				case <-b.ctx.Done():
					timer.Stop()
				}
			}
			continue
		}
		ended := b.ended
		b.mu.Unlock()
		if ended {
			return 0, io.EOF
		}
		select {
		case <-b.wake:
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		}
	}
}

func (b *h2Body) Close() error { return nil }

// begin sends a request as a stream of the connection.
func (c *h2Conn) begin(x *exchange, o sendOptions, addr string) error {
	m := x.message
	ctx, cancel := context.WithTimeout(c.ctx, exchangePatience)
	body := &h2Body{wake: make(chan struct{}, 1), ctx: ctx}
	x.put = func(piece []byte) { body.enqueue(false, writeJob{bytes: piece}) }
	x.done = func() { body.enqueue(true) }
	x.leave = func(rude bool) {
		if rude {
			cancel()
		} else {
			c.close()
		}
	}
	req, err := http.NewRequestWithContext(ctx, m.method, c.scheme+"://"+addr+"/", nil)
	if err != nil {
		cancel()
		return err
	}
	req.URL.Opaque = "//" + addr + m.path
	if strings.HasPrefix(m.path, "/") {
		req.URL.Opaque = ""
		if req.URL, err = req.URL.Parse(m.path); err != nil {
			cancel()
			return err
		}
	}
	req.Header["User-Agent"] = []string{""} // none, as on HTTP/1.1
	empty := len(m.body) == 0 && !m.chunked && !o.hold
	if !empty {
		req.Body, req.ContentLength = body, -1
		if !m.chunked {
			req.ContentLength = int64(len(m.body))
		}
	}
	for _, h := range m.headers {
		switch name := strings.ToLower(h[0]); name {
		case "host":
			req.Host = h[1]
		case "transfer-encoding", "connection", "trailer": // net/http announces trailers itself
		case "content-length":
			n, err := strconv.ParseInt(h[1], 10, 64)
			if err != nil {
				cancel()
				return err
			}
			req.ContentLength = n
		default:
			req.Header.Add(name, h[1])
		}
	}
	for _, t := range m.trailers {
		if req.Trailer == nil {
			req.Trailer = http.Header{}
		}
		req.Trailer.Add(t[0], t[1])
	}
	if !o.hold {
		var jobs []writeJob
		for _, p := range pieces(m.body, o.split) {
			jobs = append(jobs, writeJob{bytes: p, pause: o.pause})
		}
		body.enqueue(true, jobs...)
	}
	go func() {
		defer cancel()
		resp, err := c.transport.RoundTrip(req)
		if err != nil {
			x.finish(endOfH2(err), err.Error())
			return
		}
		defer resp.Body.Close()
		readAnswer(x, resp)
		if !x.ended() {
			x.finish(endCut, "")
		}
	}()
	return nil
}

func endOfH2(err error) string {
	if errors.Is(err, context.Canceled) {
		return endAborted
	}
	if end := endOf(err); end != endCut {
		return end
	}
	return endReset
}
