package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// providerScript answers by what the prompt is about.
const providerScript = `
on body a short question
chat in=21 out=40
on body tell me a story
sse {"choices":[{"index":0,"delta":{"role":"assistant","content":"Once "}}]}
delay 80ms
sse {"choices":[{"index":0,"delta":{"content":"upon "}}]}
delay 80ms
sse {"choices":[{"index":0,"delta":{"content":"a time "}}]}
delay 80ms
sse {"choices":[{"index":0,"delta":{"content":"there was a bucket."},"finish_reason":"stop"}]}
sse {"choices":[],"usage":{"prompt_tokens":23,"completion_tokens":180}}
sse [DONE]
on body an essay
chat in=20 out=600
on any
chat in=12 out=30
`

// line is one call as the access log tells it: the fields of the filter's flat object.
type line map[string]any

func (l line) text(name string) string { s, _ := l[name].(string); return s }
func (l line) number(name string) int64 {
	n, _ := l[name].(json.Number)
	v, _ := n.Int64()
	return v
}

// act is one call of the story and what must come of it.
type act struct {
	title, key, team, prompt string
	stream                   bool
	most                     int
	status                   int
	limit                    string
}

var acts = []act{
	{title: "Alice asks a short question.", key: "alice", team: "red", prompt: "a short question", most: 300, status: 200},
	{title: "She asks for a stream; its tokens pass as they come.", key: "alice", team: "red", prompt: "tell me a story", stream: true, most: 400, status: 200},
	{title: "She asks for more than her bucket holds now.", key: "alice", team: "red", prompt: "a long one", most: 1450, status: 429, limit: "key-tpm"},
	{title: "Bob is in her team and has a bucket of his own.", key: "bob", team: "red", prompt: "an essay", most: 1450, status: 200},
	{title: "So has Bea.", key: "bea", team: "red", prompt: "an essay", most: 1450, status: 200},
	{title: "And Ben.", key: "ben", team: "red", prompt: "an essay", most: 1450, status: 200},
	{title: "Bo's bucket is full too, but what is left of the team's month can't cover the worst case of one more.", key: "bo", team: "red", prompt: "an essay", most: 1450, status: 402, limit: "team-month"},
	{title: "Another team has its own month.", key: "zoe", team: "blue", prompt: "hello", most: 100, status: 200},
}

func (h *house) tell(ctx context.Context) error {
	before := 0
	for _, a := range acts {
		say("\n" + a.title)
		status, header, err := h.call(ctx, a)
		if err != nil {
			return err
		}
		l, err := h.nextLine(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("  %s of team %s -> %d: %s\n", a.key, a.team, status, describe(l, header))
		if status != a.status || l.text("limit") != a.limit {
			return fmt.Errorf("%s: got status %d by limit %q, want %d by %q", a.title, status, l.text("limit"), a.status, a.limit)
		}
		after := h.provider.Count()
		if status != 200 {
			fmt.Printf("  the provider saw nothing of it: %d calls before, %d after\n", before, after)
			if after != before {
				return fmt.Errorf("%s: a refused call reached the provider", a.title)
			}
		}
		before = after
	}
	return h.kill(ctx)
}

func (h *house) kill(ctx context.Context) error {
	say("\nOn call sees zoe's key in a public repository and sets a kill flag through the bridge.")
	zoe := act{key: "zoe", team: "blue", prompt: "hello", most: 100}
	fmt.Printf("  the log shows keys by their hash: zoe's is %s\n", hashed("zoe"))
	if err := h.operate(ctx, "kill", `{"scope":"key","id":"`+hashed("zoe")+`","reason":"leaked key","for":"1h"}`); err != nil {
		return err
	}
	took, err := h.until(ctx, zoe, 403)
	if err != nil {
		return err
	}
	fmt.Printf("  zoe is refused with 403 after %d ms, and from then on without asking the store\n", took.Milliseconds())
	say("The key was replaced; the flag is lifted.")
	if err := h.operate(ctx, "resume", `{"scope":"key","id":"`+hashed("zoe")+`"}`); err != nil {
		return err
	}
	if took, err = h.until(ctx, zoe, 200); err != nil {
		return err
	}
	fmt.Printf("  zoe passes again after %d ms\n", took.Milliseconds())
	return nil
}

// until repeats a call until it is answered with a status.
func (h *house) until(ctx context.Context, a act, want int) (time.Duration, error) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		status, _, err := h.call(ctx, a)
		if err != nil {
			return 0, err
		}
		if _, err := h.nextLine(ctx); err != nil {
			return 0, err
		}
		if status == want {
			return time.Since(begin), nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("%s is still answered with %d, want %d", a.key, status, want)
		case <-tick.C:
		}
	}
}

// describe says in words what the gateway decided and booked.
func describe(l line, header http.Header) string {
	var b strings.Builder
	if l.text("d") != "granted" {
		fmt.Fprintf(&b, "refused (%s)", l.text("d"))
		if limit := l.text("limit"); limit != "" {
			fmt.Fprintf(&b, " by limit %s: the call may take %d tokens", limit, l.number("reserved"))
		}
		if after := header.Get("retry-after"); after != "" {
			fmt.Fprintf(&b, "; try again in %s s", after)
		}
	} else {
		fmt.Fprintf(&b, "reserved %d tokens, admitted; settled %d in + %d out by %s, %s", l.number("reserved"), l.number("in"), l.number("out"), l.text("settled"), euros(l.number("cost")))
	}
	names := make([]string, 0, len(l))
	for name := range l {
		if strings.HasPrefix(name, "left_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for i, name := range names {
		what := fmt.Sprint(l.number(name))
		if name == "left_team-month" {
			what = euros(l.number(name))
		}
		sep := "; left: "
		if i > 0 {
			sep = ", "
		}
		b.WriteString(sep + strings.TrimPrefix(name, "left_") + " " + what)
	}
	return b.String()
}

func (h *house) nextLine(ctx context.Context) (line, error) {
	text, err := h.awaitLine(ctx)
	if err != nil {
		return nil, err
	}
	_, object, _ := strings.Cut(text, " ")
	d := json.NewDecoder(strings.NewReader(object))
	d.UseNumber()
	l := line{}
	if err := d.Decode(&l); err != nil {
		return nil, fmt.Errorf("access log line %q: %w", text, err)
	}
	return l, nil
}

func (h *house) call(ctx context.Context, a act) (int, http.Header, error) {
	body, err := json.Marshal(map[string]any{
		"model": "gpt-4o-mini", "stream": a.stream, "max_tokens": a.most,
		"messages": []map[string]string{{"role": "user", "content": a.prompt}},
	})
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+h.gateway+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("authorization", "Bearer "+a.key)
	req.Header.Set("x-team", a.team)
	req.Header.Set("content-type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	if !a.stream {
		_, err = io.Copy(io.Discard, res.Body)
		return res.StatusCode, res.Header, err
	}
	begin, frames := time.Now(), 0
	for s := bufio.NewScanner(res.Body); s.Scan(); {
		if strings.HasPrefix(s.Text(), "data:") {
			frames++
		}
	}
	fmt.Printf("  %d frames in %d ms\n", frames, time.Since(begin).Milliseconds())
	return res.StatusCode, res.Header, nil
}

func (h *house) operate(ctx context.Context, verb, body string) error {
	req, err := http.NewRequestWithContext(ctx, "POST", h.bridge.URL()+"/emmer/v1/"+verb, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("authorization", "Bearer "+operatorToken)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		text, _ := io.ReadAll(res.Body)
		return fmt.Errorf("%s: status %d: %s", verb, res.StatusCode, text)
	}
	return nil
}
