// Package upstream is a language model provider for tests: a server on loopback that answers as a
// small script says, and remembers every byte it was sent.
//
// It speaks HTTP/1.1 and cleartext HTTP/2 (prior knowledge) on one port. Without a script it gives
// a plausible OpenAI chat answer, as JSON or as server-sent events by the body's "stream". It knows
// nothing of gateways, limits or plugins.
//
// The caller starts it, opens the gates that its script waits at, and closes it. What it saw is read
// with Requests and Conns; Await waits for a condition over them without sleeping.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// maxRecord caps what is kept of one request body, in bytes.
const maxRecord = 64 << 20

// Request is what arrived, as far as it did.
type Request struct {
	Conn      int       // index of the connection it came on, see Conns
	At        time.Time // when its head had arrived
	Proto     string    // "HTTP/1.1" or "HTTP/2.0"; "" if Malformed
	Method    string
	Path      string      // with query
	Header    http.Header // with host and, for chunked bodies, transfer-encoding
	Body      []byte      // what arrived of it
	Trailer   http.Header
	Complete  bool   // the body ended as its framing says
	Malformed bool   // bytes on a connection that no HTTP/1.1 parser accepts: the mark of smuggling
	Status    int    // of the answer, 0 = none yet
	Sent      []byte // body bytes of the answer so far
	Ended     bool   // the answer is finished, cut or abandoned
	Aborted   bool   // the other side left before the answer was finished
}

// Conn is a connection that was made to the server.
type Conn struct {
	In, Out int64 // bytes on the wire
	Closed  bool
}

// Server is a running provider.
type Server struct {
	listener net.Listener
	server   *http.Server
	served   chan struct{}

	mu       sync.Mutex
	script   *Script
	changed  chan struct{} // closed and replaced at every change
	gates    map[string]chan struct{}
	requests []*Request
	conns    []*conn
	closing  chan struct{}
}

// Start listens on a free port of 127.0.0.1. A nil script means the default answer.
func Start(script *Script) (*Server, error) {
	return Listen("127.0.0.1:0", script)
}

// Listen is Start on a given address.
func Listen(addr string, script *Script) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	s := &Server{
		listener: listener,
		served:   make(chan struct{}),
		script:   script,
		changed:  make(chan struct{}),
		gates:    map[string]chan struct{}{},
		closing:  make(chan struct{}),
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s.server = &http.Server{
		Handler:   http.HandlerFunc(s.serve),
		Protocols: protocols,
		ErrorLog:  quietLog,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	go func() {
		defer close(s.served)
		s.server.Serve(recordingListener{listener, s})
	}()
	return s, nil
}

// Addr is the host and port the server listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL is the address as http URL without a path.
func (s *Server) URL() string { return "http://" + s.Addr() }

// Close ends all connections and waits until the server has let go of its port.
func (s *Server) Close() error {
	s.mu.Lock()
	select {
	case <-s.closing:
	default:
		close(s.closing)
	}
	s.mu.Unlock()
	err := s.server.Close()
	<-s.served
	return err
}

// SetScript changes the answers from the next request on.
func (s *Server) SetScript(script *Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = script
}

// Open opens a gate for good: all that wait at it, or come to it later, go on.
func (s *Server) Open(gate string) {
	c := s.gate(gate)
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

func (s *Server) gate(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.gates[name]
	if c == nil {
		c = make(chan struct{})
		s.gates[name] = c
	}
	return c
}

// Requests returns copies of what arrived so far, in order of arrival of the heads.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Request, len(s.requests))
	for i, r := range s.requests {
		out[i] = *r
		out[i].Body = slices.Clone(r.Body)
		out[i].Sent = slices.Clone(r.Sent)
		out[i].Header = r.Header.Clone()
		out[i].Trailer = r.Trailer.Clone()
	}
	return out
}

// Count is the number of requests that arrived, malformed ones included.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// Conns returns the connections made so far, in order.
func (s *Server) Conns() []Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Conn, len(s.conns))
	for i, c := range s.conns {
		out[i] = c.seen
	}
	return out
}

// BytesIn is the number of bytes that arrived on all connections, whatever they mean.
func (s *Server) BytesIn() int64 {
	var sum int64
	for _, c := range s.Conns() {
		sum += c.In
	}
	return sum
}

// Changed returns a channel that is closed when anything more is seen. Take it before reading the
// state that is waited for.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Await returns when cond holds, or with the context's error. cond is asked after every change and
// may call the server's methods.
func (s *Server) Await(ctx context.Context, cond func() bool) error {
	for {
		changed := s.Changed()
		if cond() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// note applies f under the lock and tells those who wait.
func (s *Server) note(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	c, _ := r.Context().Value(connKey{}).(*conn)
	record := &Request{
		Proto:  r.Proto,
		Method: r.Method,
		Path:   r.RequestURI,
		Header: r.Header.Clone(),
	}
	record.Header.Set("Host", r.Host)
	for _, te := range r.TransferEncoding {
		record.Header.Add("Transfer-Encoding", te)
	}
	if r.ContentLength >= 0 && r.ProtoMajor == 1 && r.Header.Get("Content-Length") != "" {
		record.Header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	}
	var number int
	s.note(func() {
		if c != nil {
			record.Conn = c.index
			c.serving++
		}
		record.At = time.Now()
		s.requests = append(s.requests, record)
		number = len(s.requests)
	})
	defer s.note(func() {
		record.Ended = true
		if c != nil {
			c.serving--
		}
	})

	s.mu.Lock()
	script := s.script
	s.mu.Unlock()
	early := script.earlyFor(number, record)
	read := func() { s.readBody(r, record) }
	if early {
		done := make(chan struct{})
		go func() { defer close(done); read() }()
		// The handler must not return while its body is read: net/http forbids it.
		defer func() { r.Body.Close(); <-done }()
		http.NewResponseController(w).EnableFullDuplex()
	} else {
		read()
		if !record.Complete {
			s.note(func() { record.Aborted = true })
			panic(http.ErrAbortHandler)
		}
	}
	s.mu.Lock()
	body := record.Body
	s.mu.Unlock()
	play := &player{server: s, w: w, r: r, record: record, body: body, conn: c}
	err := play.run(script.answerFor(number, record, body))
	if r.Context().Err() != nil {
		s.note(func() { record.Aborted = true })
	}
	if errors.Is(err, errGone) {
		panic(http.ErrAbortHandler)
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

func (s *Server) readBody(r *http.Request, record *Request) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Body.Read(buf)
		if n > 0 || err != nil {
			s.note(func() {
				if room := maxRecord - len(record.Body); n > 0 && room > 0 {
					record.Body = append(record.Body, buf[:min(n, room)]...)
				}
				if err == io.EOF {
					record.Complete = true
					record.Trailer = r.Trailer.Clone()
				}
			})
		}
		if err != nil {
			return
		}
	}
}

// bounded is how long a script may wait for a gate or for other requests: a forgotten gate must not
// keep a test from ending.
const bounded = 60 * time.Second
