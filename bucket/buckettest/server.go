package buckettest

import (
	"bytes"
	"cmp"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a real Redis on loopback. The test's end stops it.
type Server struct {
	t    testing.TB
	name string // of the program
	args []string
	dir  string
	port int
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{} // closed when the process has ended
}

// RedisServer is the program: EMMER_REDIS, or the redis-server on the PATH. Without one tests fail: it is a
// requirement of this project's.
func RedisServer() string { return cmp.Or(os.Getenv("EMMER_REDIS"), "redis-server") }

// StartRedis starts a Redis and returns its host:port.
func StartRedis(t testing.TB, args ...string) (addr string) {
	return StartServer(t, args...).Addr()
}

// StartServer is StartRedis for tests that stop, hang or restart the server. args are further
// settings, as "--maxmemory", "10mb".
func StartServer(t testing.TB, args ...string) *Server {
	t.Helper()
	return startProgram(t, RedisServer(), args...)
}

func startProgram(t testing.TB, name string, args ...string) *Server {
	t.Helper()
	s := &Server{t: t, name: name, args: args, dir: t.TempDir()}
	var last string
	for range 5 { // another process may take a free port first
		s.port = freePort(t)
		if last = s.start(); last == "" {
			t.Cleanup(s.stop)
			return s
		}
	}
	t.Fatalf("%s doesn't start: %s", name, last)
	return nil
}

func freePort(t testing.TB) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// start runs the process until it answers, or says why it doesn't.
func (s *Server) start() string {
	var err error
	if s.log, err = os.Create(filepath.Join(s.dir, "redis.log")); err != nil {
		return err.Error()
	}
	args := append([]string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no"}, s.args...)
	s.cmd = exec.Command(s.name, args...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		_ = s.log.Close()
		return err.Error()
	}
	s.done = make(chan struct{})
	go func(cmd *exec.Cmd, log *os.File, done chan struct{}) {
		_ = cmd.Wait()
		_ = log.Close()
		close(done)
	}(s.cmd, s.log, s.done)
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), DialTimeout: time.Second, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	deadline := time.After(20 * time.Second)
	for {
		// The process id tells it from a server that took the port before.
		info, err := client.Info(context.Background(), "server").Result()
		if err == nil && bytes.Contains([]byte(info), []byte("process_id:"+strconv.Itoa(s.cmd.Process.Pid)+"\r")) {
			return ""
		}
		select {
		case <-s.done:
			out, _ := os.ReadFile(filepath.Join(s.dir, "redis.log"))
			return string(out)
		case <-deadline:
			s.stop()
			return "no answer within 20 s"
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Addr is host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Pause stops the process as it stands: connections are accepted by the kernel, nothing answers.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

// Kill ends the process at once. What it held is lost.
func (s *Server) Kill() { s.stop() }

// Restart starts an empty server on the same port; a running one is killed first.
func (s *Server) Restart() {
	s.t.Helper()
	s.stop()
	if why := s.start(); why != "" {
		s.t.Fatalf("%s doesn't start again: %s", s.name, why)
	}
}

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) stop() {
	_ = s.cmd.Process.Kill() // ends a paused process too
	<-s.done
}

// Client is a new client of the server, closed at the test's end.
func (s *Server) Client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr()})
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}
