package upstream

import (
	"bytes"
	"io"
	"log"
	"net"
)

var quietLog = log.New(io.Discard, "", 0)

type connKey struct{}

type recordingListener struct {
	net.Listener
	server *Server
}

func (l recordingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	out := &conn{Conn: c, server: l.server}
	l.server.note(func() {
		out.index = len(l.server.conns)
		l.server.conns = append(l.server.conns, out)
	})
	return out, nil
}

// conn counts the bytes of a connection. Its fields are guarded by the server's lock.
type conn struct {
	net.Conn
	server  *Server
	index   int
	seen    Conn
	serving int // requests being answered
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.server.note(func() { c.seen.In += int64(n) })
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	c.server.note(func() {
		c.seen.Out += int64(len(p))
		// net/http answers what it can't parse on its own, before any handler: without a request
		// being served such a write means that rubbish arrived where a request should begin.
		if c.serving == 0 && bytes.HasPrefix(p, []byte("HTTP/1.1 4")) {
			c.server.requests = append(c.server.requests, &Request{
				Conn: c.index, Malformed: true, Ended: true, Header: map[string][]string{},
			})
		}
	})
	return c.Conn.Write(p)
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.server.note(func() { c.seen.Closed = true })
	return err
}

// reset closes the connection so that the other side sees RST instead of an orderly end.
func (c *conn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}
