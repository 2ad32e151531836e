package bridge

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// Server serves h as HTTP/1.1 and HTTP/2, the latter in clear text with prior knowledge or, with
// ServeTLS, as negotiated, and bounds what a slow client can hold.
func Server(h http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           h,
		Protocols:         protocols,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		// Envoy drops an idle upstream connection after an hour by default. It must be the first to:
		// a connection that the server closes just as a callout is written to it fails that callout.
		IdleTimeout:    65 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		// What a client has sent and no handler has read yet; net/http would keep 1 MiB for each.
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1000, MaxReceiveBufferPerStream: 64 << 10, MaxReceiveBufferPerConnection: 1 << 20},
	}
}

// Bounded accepts no more than most connections at once. Those beyond wait in the kernel's queue, which
// is bounded too, instead of using up the file descriptors that Redis' connections need.
func Bounded(l net.Listener, most int) net.Listener {
	return &boundedListener{Listener: l, slots: make(chan struct{}, most), closed: make(chan struct{})}
}

type boundedListener struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &boundedConn{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type boundedConn struct {
	net.Conn
	free func()
}

func (c *boundedConn) Close() error {
	err := c.Conn.Close()
	c.free()
	return err
}
