package upstream

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

func start(t *testing.T, script string) *Server {
	t.Helper()
	s, err := Start(MustParse(script))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func bound(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func clientFor(t *testing.T, h2 bool) *http.Client {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!h2)
	protocols.SetUnencryptedHTTP2(h2)
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

func post(t *testing.T, c *http.Client, url, body string) (*http.Response, string) {
	t.Helper()
	resp, err := c.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("body after %q: %v", b, err)
	}
	return resp, string(b)
}

func TestDefaultAnswerFollowsTheRequest(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		s := start(t, "")
		c := clientFor(t, h2)
		_, body := post(t, c, s.URL()+"/v1/chat/completions", `{"model":"m-1"}`)
		if got := gjson.Get(body, "usage.prompt_tokens").Int(); got != 12 || gjson.Get(body, "model").String() != "m-1" {
			t.Errorf("h2=%v: answer %s", h2, body)
		}
		resp, body := post(t, c, s.URL()+"/v1/chat/completions", `{"stream":true,"stream_options":{"include_usage":true}}`)
		if resp.Header.Get("Content-Type") != "text/event-stream" || !strings.HasSuffix(body, "data: [DONE]\n\n") ||
			!strings.Contains(body, `"completion_tokens":7`) {
			t.Errorf("h2=%v: stream %v %s", h2, resp.Header, body)
		}
		_, body = post(t, c, s.URL()+"/", `{"stream":true}`)
		if strings.Contains(body, "usage") {
			t.Errorf("h2=%v: usage that nobody asked for: %s", h2, body)
		}
		r := s.Requests()
		if len(r) != 3 || string(r[0].Body) != `{"model":"m-1"}` || !r[0].Complete || r[0].Path != "/v1/chat/completions" {
			t.Errorf("h2=%v: recorded %+v", h2, r)
		}
		if string(r[2].Sent) != body || r[2].Status != 200 {
			t.Errorf("h2=%v: sent %q, client got %q", h2, r[2].Sent, body)
		}
		if len(s.Conns()) != 1 || s.BytesIn() < 100 {
			t.Errorf("h2=%v: connections %+v", h2, s.Conns())
		}
	}
}

func TestScriptPlaysInOrder(t *testing.T) {
	s := start(t, `
		on request 2
		status 503
		header retry-after: 7
		write {"error":{}}
		on header x-a: b
		trailer x-t: 1
		write "a\n"
		repeat 3 sse {"n":1}
		done
	`)
	c := clientFor(t, false)
	req, _ := http.NewRequest("POST", s.URL()+"/x?y=1", strings.NewReader("q"))
	req.Header.Set("x-a", "b")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	want := "a\n" + strings.Repeat("data: {\"n\":1}\n\n", 3) + "data: [DONE]\n\n"
	if err != nil || string(body) != want || resp.Trailer.Get("x-t") != "1" {
		t.Errorf("got %q trailer %v: %v", body, resp.Trailer, err)
	}
	resp, text := post(t, c, s.URL(), "")
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "7" || text != `{"error":{}}` {
		t.Errorf("second: %d %v %q", resp.StatusCode, resp.Header, text)
	}
}

func TestGateHoldsTheAnswerAndArrivedCounts(t *testing.T) {
	s := start(t, "on request 1\nwrite first\nwait go\nwrite second\non request 2\narrived 3\nwrite both\non any\nwrite any")
	c := clientFor(t, false)
	resp, err := c.Get(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 5)
	if _, err := io.ReadFull(resp.Body, buf); err != nil || string(buf) != "first" {
		t.Fatalf("before the gate: %q %v", buf, err)
	}
	if r := s.Requests()[0]; string(r.Sent) != "first" || r.Ended {
		t.Errorf("before the gate: %+v", r)
	}
	s.Open("go")
	rest, _ := io.ReadAll(resp.Body)
	if string(rest) != "second" {
		t.Errorf("after the gate: %q", rest)
	}
	second := make(chan string)
	go func() {
		resp, err := c.Get(s.URL())
		if err != nil {
			second <- err.Error()
			return
		}
		b, _ := io.ReadAll(resp.Body)
		second <- string(b)
	}()
	if err := s.Await(bound(t), func() bool { return s.Count() == 2 }); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-second:
		t.Fatalf("answered %q before the third request", got)
	default:
	}
	if _, got := post(t, c, s.URL(), ""); got != "any" {
		t.Errorf("third: %q", got)
	}
	if got := <-second; got != "both" {
		t.Errorf("second: %q", got)
	}
}

func TestCutAndResetAreNotProperEnds(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		for _, verb := range []string{"cut", "reset"} {
			s := start(t, "write part\n"+verb)
			resp, err := clientFor(t, h2).Get(s.URL())
			if err != nil {
				if verb == "reset" {
					continue // the reset may overtake the head
				}
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err == nil || (verb == "cut" && string(body) != "part") {
				t.Errorf("h2=%v %s: body %q, error %v", h2, verb, body, err)
			}
		}
	}
}

func TestRubbishBehindARequestIsSeen(t *testing.T) {
	s := start(t, "write ok")
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhelloGGGG\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Await(bound(t), func() bool { return s.Count() == 2 }); err != nil {
		t.Fatalf("requests %+v", s.Requests())
	}
	if r := s.Requests(); r[0].Malformed || !r[1].Malformed || string(r[0].Body) != "hello" {
		t.Errorf("requests %+v", r)
	}
}

func TestIncompleteBodyAndClientThatLeaves(t *testing.T) {
	s := start(t, "on path /hang\nhang\non path /early\nearly\nwrite now")
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 50\r\n\r\nhello")
	if err := s.Await(bound(t), func() bool { r := s.Requests(); return len(r) == 1 && len(r[0].Body) == 5 }); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := s.Await(bound(t), func() bool { return s.Requests()[0].Ended }); err != nil {
		t.Fatal(err)
	}
	if r := s.Requests()[0]; r.Complete || !r.Aborted {
		t.Errorf("half a body: %+v", r)
	}

	c, err = net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "GET /hang HTTP/1.1\r\nhost: a\r\n\r\n")
	if err := s.Await(bound(t), func() bool { return s.Count() == 2 }); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := s.Await(bound(t), func() bool { return s.Requests()[1].Aborted }); err != nil {
		t.Fatal(err)
	}

	c, err = net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "POST /early HTTP/1.1\r\nhost: a\r\ncontent-length: 50\r\n\r\nhello")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("answer before the body: %v", err)
	}
}

func TestRawAnswer(t *testing.T) {
	s := start(t, `raw "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"`)
	resp, err := clientFor(t, false).Get(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); string(b) != "abc" || err == nil {
		t.Errorf("body %q, error %v", b, err)
	}
}

func TestScriptFaultsNameTheirLine(t *testing.T) {
	for src, want := range map[string]string{
		"\nfrob":             `up:6: unknown step "frob"`,
		"status x":           `up:5: status: want a number from 1, found "x"`,
		"on moon":            "up:5: on moon: want any, request N, path P, header N: V, body TEXT or stream",
		"on request 0":       `up:5: on request: want a number from 1, found "0"`,
		"file nope":          `up:5: file: no file "nope" in this scenario`,
		`write "a`:           `up:5: write: bad quoted text "a`,
		"repeat 2 reset":     `up:5: repeat: only write, sse and file can be repeated, found "reset"`,
		"chat in=x":          `up:5: chat: in=x: strconv.Atoi: parsing "x": invalid syntax`,
		"# c\n\nhang now":    `up:7: hang: takes nothing more, found "now"`,
		"header no-colon-id": "up:5: header: want `name: value`, found \"no-colon-id\"",
	} {
		_, err := Parse("up", 5, src, nil)
		if err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", src, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("on any\nstatus 200\nwrite \"a\\n\"\nrepeat 3 sse {}\nchat in=1 out=max\n")
	f.Add("on header a: b\ntrailer x: y\nwait g\ndelay 3ms")
	f.Fuzz(func(t *testing.T, src string) {
		s, err := Parse("f", 1, src, nil)
		if err == nil {
			s.answerFor(1, &Request{}, nil)
		}
	})
}
