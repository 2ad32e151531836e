package bench

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestReadMessage(t *testing.T) {
	tests := []struct {
		name, text string
		body       int64
		bad        bool
	}{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 5, false},
		{"no body", "GET / HTTP/1.1\r\nhost: x\r\n\r\n", 0, false},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\na;x=y\r\n0123456789\r\n0\r\n\r\n", 15, false},
		{"trailers", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nx-t: 1\r\n\r\n", 1, false},
		{"cut body", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello", 0, true},
		{"cut head", "HTTP/1.1 200 OK\r\ncontent-le", 0, true},
		{"bad length", "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", 0, true},
		{"bad chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", 0, true},
		{"no colon", "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", 0, true},
		{"endless head", "HTTP/1.1 200 OK\r\n" + strings.Repeat("a: b\r\n", maxHead), 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name, source := range map[string]io.Reader{
				"whole": strings.NewReader(tt.text), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.text)),
			} {
				r := bufio.NewReader(source)
				var line []byte
				_, body, err := readMessage(r, &line)
				if (err != nil) != tt.bad {
					t.Fatalf("%s: error is %v", name, err)
				}
				if err == nil && body != tt.body {
					t.Errorf("%s: body has %d bytes, want %d", name, body, tt.body)
				}
				if rest, _ := io.ReadAll(r); err == nil && len(rest) > 0 {
					t.Errorf("%s: left %q unread", name, rest)
				}
			}
		})
	}
}

func FuzzReadMessage(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"))
	f.Add([]byte("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var line []byte
		_, whole, err := readMessage(bufio.NewReader(bytes.NewReader(text)), &line)
		_, split, splitErr := readMessage(bufio.NewReader(iotest.OneByteReader(bytes.NewReader(text))), &line)
		if (err == nil) != (splitErr == nil) || err == nil && whole != split {
			t.Errorf("whole: %d, %v; byte by byte: %d, %v", whole, err, split, splitErr)
		}
	})
}

func TestLoadCountsEveryAnswer(t *testing.T) {
	up, err := startUpstream("application/json", []byte(`{"ok":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer up.close()
	s := Load{Addr: up.addr(), Request: chatRequest(chatBody(1 << 10)), Conns: 3, For: 20 * time.Second, Most: 100, Timeout: 5 * time.Second}.Run()
	if !s.Only("200") || len(s.Latencies) != 100 {
		t.Errorf("answers: %v, errors: %v; want 100 times 200", s.Statuses, s.Errors)
	}
	if s.Percentile(50) <= 0 || s.Percentile(50) > s.Percentile(99) || s.RPS() <= 0 {
		t.Errorf("p50 %v, p99 %v, %v rps", s.Percentile(50), s.Percentile(99), s.RPS())
	}
}

func TestLoadCountsWhatIsNotAnswered(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close() // takes every connection and answers nothing
		}
	}()
	s := Load{Addr: listener.Addr().String(), Request: chatRequest(chatBody(1 << 10)), Conns: 2, For: 20 * time.Second, Most: 4, Timeout: 5 * time.Second}.Run()
	if s.Errors["broken"] != 4 || len(s.Latencies) != 0 || s.Percentile(99) != 0 {
		t.Errorf("errors: %v, %d answers; want 4 broken", s.Errors, len(s.Latencies))
	}
}

func TestPercentile(t *testing.T) {
	var s Sample
	for i := range 100 {
		s.Latencies = append(s.Latencies, time.Duration(i+1))
	}
	for p, want := range map[float64]time.Duration{0: 1, 50: 51, 99: 100, 100: 100} {
		if got := s.Percentile(p); got != want {
			t.Errorf("p%v is %d, want %d", p, got, want)
		}
	}
}
