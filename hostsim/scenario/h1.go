package scenario

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// h1Conn is a client's HTTP/1.1 connection. Requests are written in the order they were given,
// without waiting for answers: several of them are pipelined.
type h1Conn struct {
	conn   net.Conn
	reader *bufio.Reader

	mu      sync.Mutex
	writes  []writeJob
	waiting []*exchange
	wake    chan struct{}
	closed  chan struct{}
	once    sync.Once
}

// writeJob is one piece, written by one call, and the pause behind it.
type writeJob struct {
	bytes []byte
	pause time.Duration
	done  func()
}

// dialH1 connects, with TLS unless secure is nil.
func dialH1(ctx context.Context, addr string, secure *tls.Config) (*h1Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if secure != nil {
		secure.ServerName = "127.0.0.1"
		over := tls.Client(conn, secure)
		if err := over.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		conn = over
	}
	c := &h1Conn{
		conn:   conn,
		reader: bufio.NewReaderSize(conn, 64<<10),
		wake:   make(chan struct{}, 1),
		closed: make(chan struct{}),
	}
	go c.write()
	return c, nil
}

func (c *h1Conn) close(rude bool) {
	c.once.Do(func() {
		close(c.closed)
		under := c.conn
		if over, ok := under.(*tls.Conn); ok && rude {
			under = over.NetConn()
		}
		if tcp, ok := under.(*net.TCPConn); ok && rude {
			tcp.SetLinger(0)
			tcp.Close()
		}
		c.conn.Close()
	})
}

func (c *h1Conn) enqueue(jobs ...writeJob) {
	c.mu.Lock()
	c.writes = append(c.writes, jobs...)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write runs on a goroutine of its own: a server that doesn't read must not stop the scenario.
func (c *h1Conn) write() {
	for {
		c.mu.Lock()
		var job writeJob
		have := len(c.writes) > 0
		if have {
			job, c.writes = c.writes[0], c.writes[1:]
		}
		c.mu.Unlock()
		if !have {
			select {
			case <-c.wake:
			case <-c.closed:
				return
			}
			continue
		}
		if len(job.bytes) > 0 {
			// An error is the reader's to report: an answer may have come before it.
			c.conn.Write(job.bytes)
		}
		if job.done != nil {
			job.done()
		}
		if job.pause > 0 {
			timer := time.NewTimer(job.pause)
			select {
			case <-timer.C:
			case <-c.closed:
				timer.Stop()
				return
			}
		}
	}
}

// drained waits until all that was enqueued so far is written.
func (c *h1Conn) drained() {
	done := make(chan struct{})
	c.enqueue(writeJob{done: func() { close(done) }})
	timer := time.NewTimer(5 * time.Second)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-c.closed:
	}
}

// begin sends the head of a request, and its body unless it is held back.
func (c *h1Conn) begin(x *exchange, o sendOptions, host string) {
	m := x.message
	x.put = func(piece []byte) {
		if len(piece) > 0 {
			c.enqueue(writeJob{bytes: m.frame(piece)})
		}
	}
	x.done = func() { c.enqueue(writeJob{bytes: m.last()}) }
	x.leave = func(rude bool) {
		c.drained()
		c.close(rude)
	}
	var jobs []writeJob
	switch {
	case m.raw:
		for _, p := range pieces(m.body, o.split) {
			jobs = append(jobs, writeJob{bytes: p, pause: o.pause})
		}
	case o.hold:
		jobs = append(jobs, writeJob{bytes: m.head(host)})
	case len(o.split) == 0:
		all := append(m.head(host), m.frame(m.body)...)
		jobs = append(jobs, writeJob{bytes: append(all, m.last()...)})
	default:
		jobs = append(jobs, writeJob{bytes: m.head(host), pause: o.pause})
		for _, p := range pieces(m.body, o.split) {
			jobs = append(jobs, writeJob{bytes: m.frame(p), pause: o.pause})
		}
		jobs = append(jobs, writeJob{bytes: m.last()})
	}
	c.mu.Lock()
	first := len(c.waiting) == 0
	c.waiting = append(c.waiting, x)
	c.mu.Unlock()
	c.enqueue(jobs...)
	if first {
		go c.read()
	}
}

// read answers the waiting exchanges in order.
func (c *h1Conn) read() {
	for {
		c.mu.Lock()
		x := c.waiting[0]
		c.mu.Unlock()
		c.readOne(x)
		c.mu.Lock()
		c.waiting = c.waiting[1:]
		more := len(c.waiting) > 0
		c.mu.Unlock()
		if !more {
			return
		}
	}
}

func (c *h1Conn) readOne(x *exchange) {
	c.conn.SetReadDeadline(time.Now().Add(exchangePatience))
	method := x.message.method
	if x.message.raw {
		method = "GET"
	}
	for {
		resp, err := http.ReadResponse(c.reader, &http.Request{Method: method})
		if err != nil {
			x.finish(endOf(err), err.Error())
			return
		}
		if resp.StatusCode < 200 && resp.StatusCode != http.StatusSwitchingProtocols {
			x.note(func() { x.informed = append(x.informed, resp.StatusCode) })
			continue
		}
		readAnswer(x, resp)
		return
	}
}

// readAnswer takes over a response piece by piece, so that steps can wait for its parts.
func readAnswer(x *exchange, resp *http.Response) {
	x.note(func() {
		x.status, x.header = resp.StatusCode, resp.Header.Clone()
		for _, te := range resp.TransferEncoding {
			x.header.Add("Transfer-Encoding", te)
		}
		if resp.Close && resp.ProtoMajor == 1 {
			x.header.Set("Connection", "close")
		}
	})
	buf := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			x.note(func() { x.body = append(x.body, buf[:n]...) })
		}
		if err == io.EOF {
			x.note(func() { x.trailer = resp.Trailer.Clone() })
			x.finish(endComplete, "")
			return
		}
		if err != nil && resp.ProtoMajor == 2 {
			x.finish(endOfH2(err), err.Error())
			return
		}
		if err != nil {
			x.finish(endOf(err), err.Error())
			return
		}
	}
}

func endOf(err error) string {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return endTimeout
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return endReset
	case errors.Is(err, syscall.ECONNREFUSED):
		return endRefused
	}
	return endCut
}
