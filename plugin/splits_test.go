package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/hostsim"
	"github.com/emmer-proxy/emmer/hostsim/envoy"
	"github.com/emmer-proxy/emmer/hostsim/redisgw"
	"github.com/emmer-proxy/emmer/plugin/internal/wasmbuild"
)

// An answerFile is a file under testdata/answers: lines of a name, a colon and a value, an empty line, and
// the body that a provider answers with.
type answerFile struct {
	name                  string
	method, path, request string
	status, kind, coded   string // coded: its content-encoding
	wants                 map[string]string
	body                  []byte
	got                   chan struct{}
	pieces                [][]byte
}

func readAnswer(t *testing.T, file string) *answerFile {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(string(text), "\n\n")
	a := &answerFile{name: strings.TrimSuffix(filepath.Base(file), ".txt"), status: "200", wants: map[string]string{}}
	for line := range strings.SplitSeq(head, "\n") {
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "call":
			a.method, a.path, _ = strings.Cut(value, " ")
		case "body":
			a.request = value
		case "status":
			a.status = value
		case "content-type":
			a.kind = value
		case "wants":
			for word := range strings.FieldsSeq(value) {
				k, v, _ := strings.Cut(word, "=")
				a.wants[k] = v
			}
		case "ends": // of lines
			body = strings.ReplaceAll(body, "\n", "\r\n")
		case "coding":
			switch value {
			case "gzip":
				var b bytes.Buffer
				w := gzip.NewWriter(&b)
				io.WriteString(w, body)
				w.Close()
				body, a.coded = b.String(), value
			case "frames", "chunks":
				var frames strings.Builder
				for line := range strings.Lines(body) {
					event, payload, _ := strings.Cut(strings.TrimSpace(line), " ")
					if value == "chunks" {
						payload = `{"bytes":"` + base64.StdEncoding.EncodeToString([]byte(payload)) + `","p":"abc"}`
					}
					frames.WriteString(awsFrame(event, payload))
				}
				body = frames.String()
			default:
				t.Fatalf("%s: coding %q", file, value)
			}
		default:
			t.Fatalf("%s: what is %q?", file, line)
		}
	}
	a.body = []byte(body)
	return a
}

// awsFrame is a message of an AWS event stream: two lengths and their checksum, headers of strings, the payload,
// a checksum of it all.
func awsFrame(event, payload string) string {
	var headers, b []byte
	for _, h := range [][2]string{{":event-type", event}, {":content-type", "application/json"}, {":message-type", "event"}} {
		headers = append(append(headers, byte(len(h[0]))), h[0]...)
		headers = append(binary.BigEndian.AppendUint16(append(headers, 7), uint16(len(h[1]))), h[1]...)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(12+len(headers)+len(payload)+4))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), payload...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

// splitter is a provider that sends each piece of an answer only when the client has the piece before, and the
// client.
type splitter struct {
	t       *testing.T
	addr    string
	next    chan *answerFile // what the provider answers with next
	clients map[string]*http.Client
}

func newSplitter(t *testing.T) *splitter {
	s := &splitter{t: t, next: make(chan *answerFile, 1), clients: map[string]*http.Client{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s.addr = l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
		}
	}()
	for _, name := range []string{"HTTP/1.1", "HTTP/2"} {
		p := &http.Protocols{}
		p.SetHTTP1(name == "HTTP/1.1")
		p.SetUnencryptedHTTP2(name == "HTTP/2")
		tr := &http.Transport{Protocols: p, DisableCompression: true}
		t.Cleanup(tr.CloseIdleConnections)
		s.clients[name] = &http.Client{Transport: tr}
	}
	return s
}

func (s *splitter) serve(c net.Conn) {
	defer c.Close()
	r, w := bufio.NewReader(c), bufio.NewWriter(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		a := <-s.next
		fmt.Fprintf(w, "HTTP/1.1 %s OK\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n", a.status, a.kind)
		if a.coded != "" {
			fmt.Fprintf(w, "content-encoding: %s\r\n", a.coded)
		}
		io.WriteString(w, "\r\n")
		for _, p := range a.pieces {
			fmt.Fprintf(w, "%x\r\n%s\r\n", len(p), p)
			if w.Flush() != nil {
				return
			}
			if _, ok := <-a.got; !ok {
				return // the client has given up
			}
		}
		io.WriteString(w, "0\r\n\r\n")
		if w.Flush() != nil {
			return
		}
	}
}

// exchange gets an answer in pieces and looks at each before the next is sent.
func (s *splitter) exchange(gateway, protocol string, a *answerFile, pieces [][]byte) error {
	a.pieces = slices.DeleteFunc(pieces, func(p []byte) bool { return len(p) == 0 })
	a.got = make(chan struct{}, 1)
	defer close(a.got)
	s.next <- a
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, a.method, "http://"+gateway+a.path, strings.NewReader(a.request))
	if err != nil {
		return err
	}
	req.Header = http.Header{"Authorization": {"Bearer alice"}, "Content-Type": {"application/json"}, "Accept-Encoding": {"gzip"}}
	resp, err := s.clients[protocol].Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if got := fmt.Sprint(resp.StatusCode); got != a.status {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("status %s, want %s: %s", got, a.status, text)
	}
	buf := make([]byte, len(a.body)+1)
	for i, p := range a.pieces {
		if n, err := io.ReadFull(resp.Body, buf[:len(p)]); err != nil || !bytes.Equal(buf[:n], p) {
			return fmt.Errorf("piece %d: %q (%v), want %q", i, buf[:n], err, p)
		}
		a.got <- struct{}{}
	}
	if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
		return fmt.Errorf("behind the end: %q (%v)", rest, err)
	}
	return nil
}

const splitsConfig = `{"version": 1, "currency": "EUR", "store": {"cluster": "bridge", "token": "token", "timeout": "5s", "namespace": "splits"},
	"hold": {"mode": %q}, "identity": {"key": {"header": "authorization", "strip": "Bearer"}},
	"models": {"m": {"tokenizer": "o200k_base", "max_output": 1000, "default_output": 100, "learn_output": false}}, "unknown_model": {"use": "m"},
	"limits": [{"name": "tokens", "by": ["key"], "count": "tokens", "max": 1000000000, "window": {"calendar": "year"}}]}`

// settles compares the lines of an answer's exchanges in the access log with each other and with what is wanted.
func settles(a *answerFile, lines []string) error {
	var first map[string]any
	for i, line := range lines {
		var m map[string]any
		_, text, _ := strings.Cut(line, " ")
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		delete(m, "rid")
		delete(m, "left_tokens")
		for k, v := range a.wants {
			if got := fmt.Sprint(m[k]); got != v {
				return fmt.Errorf("exchange %d: %s is %s, want %s: %s", i, k, got, v, line)
			}
		}
		if first == nil {
			first = m
		}
		if !reflect.DeepEqual(m, first) {
			return fmt.Errorf("exchange %d: %v, want %v", i, m, first)
		}
	}
	return nil
}

// run sends an answer in pieces through a gateway: whole, cut in two at all of cuts, and byte by byte.
func (s *splitter) run(t *testing.T, gateway, protocol string, a *answerFile, cuts []int, lines func() []string) {
	t.Helper()
	before := len(lines())
	ways := [][][]byte{{a.body}}
	for _, n := range cuts {
		ways = append(ways, [][]byte{a.body[:n], a.body[n:]})
	}
	var bytewise [][]byte
	for i := range a.body {
		bytewise = append(bytewise, a.body[i:i+1])
	}
	ways = append(ways, bytewise)
	for _, pieces := range ways {
		what := fmt.Sprintf("%s over %s, %d pieces, the first of %d bytes", a.name, protocol, len(pieces), len(pieces[0]))
		if err := s.exchange(gateway, protocol, a, pieces); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	deadline := time.Now().Add(10 * time.Second)
	for len(lines())-before < len(ways) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d lines in the access log, want %d more", a.name, len(lines())-before, len(ways))
		}
		runtime.Gosched()
		<-time.After(5 * time.Millisecond)
	}
	if err := settles(a, lines()[before:]); err != nil {
		t.Fatalf("%s over %s: %v", a.name, protocol, err)
	}
}

func answerFiles(t *testing.T) (out []*answerFile) {
	files, err := filepath.Glob(filepath.Join("testdata", "answers", "*.txt"))
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		out = append(out, readAnswer(t, f))
	}
	return out
}

// everyCut are the places where a body can be cut in two; of a long one some.
func everyCut(n, most int) (cuts []int) {
	step := 1 + (n-1)/most
	for i := 1; i < n; i += step {
		cuts = append(cuts, i)
	}
	return cuts
}

// TestEverySplitOfAnAnswer cuts answers of every dialect in two at every byte, and into single bytes: the client
// has each piece, untouched, before the provider sends the next, and the settlement is the same.
func TestEverySplitOfAnAnswer(t *testing.T) {
	t.Parallel()
	bridge, err := redisgw.Start(redisgw.Options{Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bridge.Close)
	wasm, err := os.ReadFile(wasmbuild.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	s := newSplitter(t)
	o := hostsim.Options{Wasm: wasm, VMID: "splits", Strict: true, CompilationCacheDir: filepath.Join("..", ".cache", "wazero"),
		Clusters: map[string]hostsim.Cluster{"bridge": {URL: "http://" + bridge.Addr()}, "provider": {URL: "http://" + s.addr}}}
	for _, mode := range []string{"flag", "pair"} {
		config := fmt.Appendf(nil, splitsConfig, mode)
		l := hostsim.Listener{Name: mode, Routes: []hostsim.Route{{Cluster: "provider"}}, AccessLog: logFormat,
			Filters: []hostsim.Filter{{Name: "emmer", RootID: "emmer", Config: config, AllowOnHeadersStop: mode == "flag"}}}
		if mode == "pair" {
			l.Filters = append(l.Filters, hostsim.Filter{Name: "emmer.gate", RootID: "emmer.gate", Config: config})
		}
		o.Listeners = append(o.Listeners, l)
	}
	h, err := hostsim.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	lines := func(mode string) func() []string {
		return func() []string { return afterFlags(h.AccessLog(mode)) }
	}
	for _, a := range answerFiles(t) {
		t.Run(a.name, func(t *testing.T) {
			s.run(t, h.Addr("pair"), "HTTP/1.1", a, everyCut(len(a.body), 1000), lines("pair"))
			s.run(t, h.Addr("flag"), "HTTP/2", a, everyCut(len(a.body), 8), lines("flag"))
		})
	}
	for _, v := range h.Violations() {
		t.Error(v)
	}
}

// afterFlags leaves the flags out of lines of logFormat.
func afterFlags(lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		status, rest, _ := strings.Cut(line, " ")
		_, rest, _ = strings.Cut(rest, " ")
		out = append(out, status+" "+rest)
	}
	return out
}

// TestSplitsOfAnAnswerOnEnvoy does the same with some of the splits on a real Envoy.
func TestSplitsOfAnAnswerOnEnvoy(t *testing.T) {
	t.Parallel()
	bridge, err := redisgw.Start(redisgw.Options{Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bridge.Close)
	wasm := wasmbuild.Path(t)
	s := newSplitter(t)
	o := envoy.Options{Concurrency: 1, Clusters: []envoy.Cluster{{Name: "bridge", Addr: bridge.Addr()}, {Name: "provider", Addr: s.addr}}}
	for _, mode := range []string{"flag", "pair"} {
		config := fmt.Appendf(nil, splitsConfig, mode)
		entry := func(root string) envoy.Filter {
			return envoy.Filter{Wasm: &envoy.Wasm{Name: root, RootID: root, File: wasm, Config: config, AllowOnHeadersStop: mode == "flag"}}
		}
		l := envoy.Listener{Name: mode, Routes: []envoy.Route{{Cluster: "provider"}}, AccessLog: logFormat, Filters: []envoy.Filter{entry("emmer")}}
		if mode == "pair" {
			l.Filters = append(l.Filters, entry("emmer.gate"))
		}
		o.Listeners = append(o.Listeners, l)
	}
	e, err := envoy.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	for i, a := range answerFiles(t) {
		mode := []string{"flag", "pair"}[i%2]
		protocol := []string{"HTTP/1.1", "HTTP/2"}[i/2%2]
		t.Run(a.name, func(t *testing.T) {
			s.run(t, e.Addr(mode), protocol, a, everyCut(len(a.body), 20), func() []string { return afterFlags(e.AccessLog(mode)) })
		})
	}
}
