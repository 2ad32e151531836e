package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/emmer-proxy/emmer/hostsim/upstream"
)

// leave is when a client leaves.
type leave uint8

const (
	stays              leave = iota // reads the whole answer, or what comes of it
	leavesInHead                    // in the middle of the request's head
	leavesInBody                    // in the middle of its body
	leavesSoon                      // up to 3 ms behind its last byte
	leavesBeforeAnswer              // once the provider has it
	leavesInAnswer                  // after some bytes of the answer's body
	leavesAtDone                    // behind data: [DONE]
	isRefused                       // by a limit that is used up
	neverFits                       // by a limit that is too small
)

// lostCall is one call, and what was seen of it.
type lostCall struct {
	kind    *lostKind
	key     string
	body    string
	chunked bool
	rude    bool    // leaves with a reset of its connection
	at      float64 // where it leaves, as a share of what there is

	status int    // 0: no answer came
	got    []byte // of the answer's body
	seen   bool   // by the provider
	sent   []byte // by the provider, of its answer's body
}

func (c *lostCall) String() string {
	return fmt.Sprintf("call %s of kind %s, leave %d", c.key, c.kind.name, c.kind.client)
}

func (k *lostKind) status() int {
	if k.client == neverFits {
		return 400
	}
	return 429
}

// lostCallsOf makes the calls: every kind about as often, in random order, each with its own key,
// prompt and way to send it. fill is the body that the poor key used itself up with.
func lostCallsOf(r *rand.Rand, fill string) []*lostCall {
	var calls []*lostCall
	for i := range lostTotal {
		c := &lostCall{
			kind: &lostKinds[i%len(lostKinds)], key: fmt.Sprintf("c%03d", i),
			chunked: r.IntN(2) == 0, rude: r.IntN(2) == 0, at: r.Float64(),
		}
		prompt := strings.Repeat("Tell me more about ducks. ", 1+r.IntN(40))
		c.body = fmt.Sprintf(`{"model":"m","stream":%v,"max_tokens":%d,"messages":[{"role":"user","content":%q}]}`, c.kind.stream, 1+r.IntN(3000), prompt)
		switch c.kind.client {
		case isRefused:
			c.key, c.body = "poor", fill
		case neverFits:
			c.key, c.body = "poor", strings.Replace(c.body, `"max_tokens":`, `"max_tokens":9`+"000", 1)
		}
		calls = append(calls, c)
	}
	r.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	return calls
}

// play sends the call, and reads or leaves as its kind says.
func (c *lostCall) play(addr string, provider *upstream.Server) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	if c.rude {
		if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
			return err
		}
	}
	head, body := c.request()
	switch c.kind.client {
	case leavesInHead:
		head, body = head[:1+int(c.at*float64(len(head)-1))], ""
	case leavesInBody:
		body = body[:int(c.at*float64(len(body)))]
	}
	for _, part := range []string{head, body[:len(body)/2], body[len(body)/2:]} {
		if _, err := io.WriteString(conn, part); err != nil {
			return err
		}
	}
	switch c.kind.client {
	case leavesInHead, leavesInBody:
		return nil
	case leavesSoon:
		<-time.After(time.Duration(c.at * float64(3*time.Millisecond)))
		return nil
	case leavesBeforeAnswer:
		return c.arrived(provider)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	// The body is left as it is: its Close would wait for its end.
	c.status = res.StatusCode
	most := len(lostFrames) // all that is sure to come
	switch c.kind.client {
	case leavesInAnswer:
		c.got = make([]byte, int(c.at*float64(most+1)))
		_, err = io.ReadFull(res.Body, c.got)
	case leavesAtDone:
		for err == nil && !bytes.HasSuffix(c.got, []byte(lostDone)) {
			var one [512]byte
			var n int
			n, err = res.Body.Read(one[:])
			c.got = append(c.got, one[:n]...)
		}
		if bytes.HasSuffix(c.got, []byte(lostDone)) {
			err = nil
		}
	default:
		c.got, err = io.ReadAll(res.Body)
		if strings.HasSuffix(c.kind.name, "reset") || strings.HasSuffix(c.kind.name, "cut") {
			err = nil // the break comes through
		}
	}
	return err
}

// request is the head and the body as they go on the wire.
func (c *lostCall) request() (head, body string) {
	head = "POST /v1/chat/completions HTTP/1.1\r\nhost: llm\r\ncontent-type: application/json\r\n" +
		"authorization: Bearer " + c.key + "\r\nx-kind: " + c.kind.name + "\r\n"
	if !c.chunked {
		return head + fmt.Sprintf("content-length: %d\r\n\r\n", len(c.body)), c.body
	}
	half := len(c.body) / 3
	return head + "transfer-encoding: chunked\r\n\r\n",
		fmt.Sprintf("%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", half, c.body[:half], len(c.body)-half, c.body[half:])
}

// arrived waits until the provider has the whole call.
func (c *lostCall) arrived(provider *upstream.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return provider.Await(ctx, func() bool {
		for _, r := range provider.Requests() {
			if r.Complete && r.Header.Get("Authorization") == "Bearer "+c.key {
				return true
			}
		}
		return false
	})
}
