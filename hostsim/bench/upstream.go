package bench

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

// upstream answers every request at once with the same bytes, as cheaply as a Go program can, so
// that the gateway and not the provider is what a benchmark sees.
type upstream struct {
	listener net.Listener
	done     sync.WaitGroup
	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	served   atomic.Int64 // requests answered
}

func startUpstream(contentType string, body []byte) (*upstream, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	u := &upstream{listener: listener, conns: map[net.Conn]struct{}{}}
	answer := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n%s", contentType, len(body), body)
	u.done.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			u.mu.Lock()
			u.conns[conn] = struct{}{}
			u.mu.Unlock()
			u.done.Go(func() { u.serve(conn, answer) })
		}
	})
	return u, nil
}

func (u *upstream) serve(conn net.Conn, answer []byte) {
	defer func() {
		conn.Close()
		u.mu.Lock()
		delete(u.conns, conn)
		u.mu.Unlock()
	}()
	reader := bufio.NewReaderSize(conn, 64<<10)
	var line []byte
	for {
		h, _, err := readMessage(reader, &line)
		if err != nil {
			return
		}
		u.served.Add(1)
		if _, err := conn.Write(answer); err != nil || h.close {
			return
		}
	}
}

func (u *upstream) addr() string { return u.listener.Addr().String() }

func (u *upstream) close() error {
	err := u.listener.Close()
	u.mu.Lock()
	for conn := range u.conns {
		err = errors.Join(err, conn.Close())
	}
	u.mu.Unlock()
	u.done.Wait()
	return err
}
