package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Patience of an expectation, of await, and of a request that was sent in the foreground.
const (
	expectPatience = 5 * time.Second
	awaitPatience  = 15 * time.Second
)

// play carries out the steps. The error names the step by file and line.
func (w *world) play(ctx context.Context) error {
	// Without its probe a scenario would not only check less: a probe is also what it waits by.
	for _, st := range w.s.steps {
		if sub := st.expect.subject; first(sub) == "probe" && w.options.Probes[sub[1]] == nil {
			return fmt.Errorf("%s:%d: probe %s: %w", w.s.Path, st.line, sub[1], ErrNoProbe)
		}
	}
	if err := w.begin(ctx); err != nil {
		return err
	}
	var broken []int
	for _, g := range w.gateways {
		broken = append(broken, len(g.complaints()))
	}
	for i := range w.s.steps {
		st := &w.s.steps[i]
		if st.mode != "" && st.mode != w.mode {
			continue
		}
		if err := w.step(ctx, st); err != nil {
			return fmt.Errorf("%s:%d: [%s] %s\n\t%w%s", w.s.Path, st.line, w.mode, st.text, err, w.report(st))
		}
	}
	for i, g := range w.gateways {
		// They are the whole gateway's: one that ran beside may be their cause.
		if c := g.complaints()[broken[i]:]; len(c) > 0 {
			return fmt.Errorf("%s: [%s] rules of the host broken:\n\t%s", w.s.Path, w.mode, strings.Join(c, "\n\t"))
		}
	}
	return nil
}

func (w *world) step(ctx context.Context, st *step) error {
	switch st.verb {
	case "send", "start":
		return w.send(ctx, st)
	case "write":
		w.exchanges[st.args[0]].put([]byte(w.expand(st.args[1])))
	case "part":
		n, err := strconv.Atoi(st.args[1])
		if err != nil {
			return err
		}
		x := w.exchanges[st.args[0]]
		to := min(x.sent+n, len(x.message.body))
		x.put(x.message.body[x.sent:to])
		x.sent = to
	case "rest":
		x := w.exchanges[st.args[0]]
		x.put(x.message.body[x.sent:])
		x.done()
	case "end":
		w.exchanges[st.args[0]].done()
	case "finish":
		return w.awaitEnd(ctx, w.group(st.args[0])...)
	case "abort", "close":
		for _, x := range w.group(st.args[0]) {
			x.note(func() { x.left = true })
			if x.leave != nil {
				x.leave(st.verb == "abort")
			}
		}
	case "open":
		for _, u := range w.upstreams {
			u.Open(st.args[0])
		}
	case "bridge":
		return w.bridgeStep(st.args)
	case "redis":
		return w.redisStep(ctx, st.args)
	case "advance":
		d, err := time.ParseDuration(st.args[0])
		if err != nil {
			return err
		}
		if err := w.bridge.Advance(d); err != nil {
			return err
		}
		return pass(ctx, min(d, longestLag))
	case "pass":
		d, err := time.ParseDuration(st.args[0])
		if err != nil {
			return err
		}
		return pass(ctx, d)
	case "kill":
		order := map[string]string{"scope": st.args[0], "id": w.expand(st.args[1]), "reason": "scenario"}
		for _, word := range st.args[2:] {
			if name, value, ok := strings.Cut(word, "="); ok && (name == "for" || name == "org") {
				order[name] = w.expand(value)
			} else {
				order["reason"] = word
			}
		}
		return w.operate(ctx, "kill", order)
	case "resume":
		order := map[string]string{"scope": st.args[0], "id": w.expand(st.args[1])}
		if len(st.args) > 2 {
			order["org"] = w.expand(strings.TrimPrefix(st.args[2], "org="))
		}
		return w.operate(ctx, "resume", order)
	case "expect", "await", "probe":
		return w.check(ctx, st)
	default:
		return fmt.Errorf("no step %q", st.verb)
	}
	return nil
}

// longestLag is how much real time an advance takes along at the most.
const longestLag = 600 * time.Millisecond

// pass lets real time pass: the gateway's own clock can't be driven.
func pass(ctx context.Context, d time.Duration) error {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// send starts a request as often as asked, and waits for its end in the foreground.
func (w *world) send(ctx context.Context, st *step) error {
	o := st.send
	m := w.s.requests[o.request].expand(w.expand)
	addr := w.gateways[o.gateway-1].addr(w.name)
	var started []*exchange
	for i := range o.times {
		label := o.label
		if o.times > 1 {
			label = numbered(o.label, i+1)
		}
		x := newExchange(label, m)
		x.gateway = o.gateway
		w.exchanges[label] = x
		started = append(started, x)
		if err := w.begun(ctx, x, o, addr); err != nil {
			x.finish(endOf(err), err.Error())
		}
	}
	if st.verb == "start" {
		return nil
	}
	return w.awaitEnd(ctx, started...)
}

func (w *world) begun(ctx context.Context, x *exchange, o sendOptions, addr string) error {
	x.put, x.done, x.leave = func([]byte) {}, func() {}, func(bool) {}
	if o.h2 {
		c, ok := w.h2[o.conn]
		if !ok || o.conn == "" {
			c = newH2(ctx, o.window, w.clientTLS("h2"))
			if o.conn == "" {
				w.strays = append(w.strays, c)
			} else {
				w.h2[o.conn] = c
			}
		}
		return c.begin(x, o, addr)
	}
	c, ok := w.h1[o.conn]
	if !ok || o.conn == "" {
		var err error
		if c, err = dialH1(ctx, addr, w.clientTLS("http/1.1")); err != nil {
			return err
		}
		if o.conn == "" {
			w.strays = append(w.strays, c)
		} else {
			w.h1[o.conn] = c
		}
	}
	c.begin(x, o, addr)
	return nil
}

// group are the exchanges of a label, with those that `times` numbered, in order.
func (w *world) group(label string) []*exchange {
	if x, ok := w.exchanges[label]; ok {
		return []*exchange{x}
	}
	var out []*exchange
	for i := 1; ; i++ {
		x, ok := w.exchanges[numbered(label, i)]
		if !ok {
			return out
		}
		out = append(out, x)
	}
}

func (w *world) awaitEnd(ctx context.Context, list ...*exchange) error {
	limit := time.NewTimer(exchangePatience + 5*time.Second)
	defer limit.Stop()
	for _, x := range list {
		for {
			seen := x.seen()
			if x.ended() {
				break
			}
			select {
			case <-seen:
			case <-limit.C:
				return fmt.Errorf("%s: no end of the answer", x.label)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

func (w *world) bridgeStep(args []string) error {
	switch args[0] {
	case "kill":
		w.bridge.KillBridge()
	case "restart":
		return w.bridge.RestartBridge()
	case "stall":
		w.bridge.Stall(true)
	case "go":
		w.bridge.Stall(false)
	case "drop":
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		w.bridge.DropReply(n)
	}
	return nil
}

func (w *world) redisStep(ctx context.Context, args []string) error {
	switch args[0] {
	case "flush-scripts":
		return w.bridge.FlushScripts()
	case "stall":
		return w.bridge.StallRedis(true)
	case "go":
		return w.bridge.StallRedis(false)
	case "kill":
		return w.bridge.KillRedis()
	case "restart":
		return w.bridge.RestartRedis()
	case "fail":
		return w.bridge.FailRedis(args[1])
	}
	var words []any
	for _, a := range args {
		words = append(words, w.expand(a))
	}
	if err := w.bridge.Client().Do(ctx, words...).Err(); err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	return nil
}

// operate calls an operator's verb of the bridge.
func (w *world) operate(ctx context.Context, verb string, order map[string]string) error {
	body, err := json.Marshal(order)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, expectPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", w.bridge.URL()+"/emmer/v1/"+verb, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Close = true
	req.Header.Set("Authorization", "Bearer "+operatorToken)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
		return fmt.Errorf("bridge: %s: %s", resp.Status, text)
	}
	return nil
}

// report is what was seen, for a failing step.
func (w *world) report(st *step) string {
	var b strings.Builder
	const most = 12
	labels := slices.Sorted(maps.Keys(w.exchanges))
	// The one that the step is about first.
	slices.SortStableFunc(labels, func(x, y string) int {
		return strings.Compare(strconv.FormatBool(x != first(st.expect.subject)), strconv.FormatBool(y != first(st.expect.subject)))
	})
	for i, label := range labels {
		if i == most {
			fmt.Fprintf(&b, "\n\tclient: and %d more", len(w.exchanges)-most)
			break
		}
		x := w.exchanges[label]
		x.mu.Lock()
		fmt.Fprintf(&b, "\n\tclient: %s: status %d, %d bytes, end %q %s: %.200q", label, x.status, len(x.body), x.end, x.detail, x.body)
		x.mu.Unlock()
	}
	for _, target := range append([]string{""}, w.s.targets()...) {
		all := w.upstreams[target].Requests()
		for i, r := range all {
			if i == most {
				fmt.Fprintf(&b, "\n\tupstream: and %d more", len(all)-most)
				break
			}
			fmt.Fprintf(&b, "\n\tupstream %s: %d: %s %s, body %d bytes complete=%v: %.200q", target, i+1, r.Method, r.Path, len(r.Body), r.Complete, r.Body)
		}
	}
	for _, g := range w.gateways {
		for _, line := range lastOf(g.accessLog(w.name), most) {
			fmt.Fprintf(&b, "\n\taccess log: %s", line)
		}
		for _, line := range lastOf(g.logs(), 8) {
			if line != "" {
				fmt.Fprintf(&b, "\n\tgateway: %.300s", line)
			}
		}
	}
	return b.String()
}

func lastOf(lines []string, n int) []string { return lines[max(0, len(lines)-n):] }
