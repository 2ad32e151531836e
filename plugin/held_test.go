package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/hostsim/upstream"
)

// heldCall is one call whose answer is plain JSON, and what its client got.
type heldCall struct {
	key    string
	size   int  // of the answer's text
	slow   bool // its parts take longer than answer.hold_for
	zipped bool
	ends   string        // what comes of it after its last part: nothing, a trailer, cut, reset or hang
	leaves time.Duration // when the client leaves; 0 = it stays
	h2     bool

	answer answer
}

// heldTotal is how many calls of each way to hold are made.
const heldTotal = 200

// heldCalls makes calls, and a provider for them: answers of any size, in parts of any size with any time
// between, that end in any way.
func heldCalls(r *rand.Rand) ([]*heldCall, *upstream.Script) {
	var calls []*heldCall
	var b strings.Builder
	for i := range heldTotal {
		c := &heldCall{key: fmt.Sprintf("h%03d", i), size: r.IntN(3000), slow: r.IntN(6) == 0, zipped: r.IntN(5) == 0, h2: r.IntN(2) == 0}
		if r.IntN(4) == 0 {
			c.size = r.IntN(400_000)
		}
		c.ends = []string{"", "", "", "", "trailer x-t: 1", "trailer x-t: 1", "cut", "reset", "hang"}[r.IntN(9)]
		if c.ends == "hang" || r.IntN(5) == 0 {
			c.leaves = time.Duration(1+r.IntN(500)) * time.Millisecond
		}
		fmt.Fprintf(&b, "on header authorization: Bearer %s\nheader content-type: application/json\n", c.key)
		if c.zipped {
			b.WriteString("gzip\n")
		}
		text := fmt.Sprintf(`{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`,
			strings.Repeat("duck ", c.size/5), 1+i, 1+r.IntN(1000))
		if c.ends == "cut" || c.ends == "reset" || c.ends == "hang" {
			text = text[:r.IntN(len(text))]
		}
		parts := 1 + r.IntN(8)
		for n := range parts {
			size := len(text)
			if n < parts-1 {
				size = r.IntN(len(text) + 1)
			}
			if size > 0 {
				fmt.Fprintf(&b, "write %q\n", text[:size])
			}
			text = text[size:]
			if c.slow && n == 0 {
				fmt.Fprintf(&b, "delay %dms\n", 400+r.IntN(200))
			} else if r.IntN(3) == 0 {
				fmt.Fprintf(&b, "delay %dms\n", r.IntN(10))
			}
		}
		fmt.Fprintln(&b, c.ends)
		calls = append(calls, c)
	}
	return calls, upstream.MustParse(b.String())
}

// send makes the call, within a time after which it hangs.
func (c *heldCall) send(addr string, client *http.Client) {
	patience := 20 * time.Second
	if c.leaves > 0 {
		patience = c.leaves
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	body := `{"model":"m","max_tokens":1000,"messages":[{"role":"user","content":"Tell me more about ducks."}]}`
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+addr+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		c.answer.err = err
		return
	}
	req.Header.Set("authorization", "Bearer "+c.key)
	req.Header.Set("accept-encoding", "gzip") // so that the body is left as it comes
	req.Header.Set("te", "trailers")
	res, err := client.Do(req)
	if err != nil {
		c.answer.err = err
		return
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	c.answer = answer{res.StatusCode, res.Header, string(got), err}
}

// TestNoHeldAnswerHangs makes calls whose answers are held, on an Envoy with four workers: each ends in time
// with the bytes that were sent, says what is booked if it says anything, and is settled once.
func TestNoHeldAnswerHangs(t *testing.T) {
	t.Parallel() // mostly waiting
	var sites []*site
	var calls [][]*heldCall
	for i, hold := range []string{"pair", "flag"} {
		made, s := heldCalls(rand.New(rand.NewPCG(uint64(i), 7)))
		provider, err := upstream.Start(s)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { provider.Close() })
		sites = append(sites, &site{name: "held-" + hold, hold: hold, provider: provider,
			limits: `[{"name": "money", "by": ["key"], "count": "cost", "max": "1000", "window": {"calendar": "year"}}]`})
		calls = append(calls, made)
	}
	st := newStand(t, 1, 4, sites...)
	for i, s := range sites {
		t.Run(s.hold, func(t *testing.T) { heldAnswers(t, st, s, calls[i]) })
	}
}

func heldAnswers(t *testing.T, st *stand, s *site, calls []*heldCall) {
	before := st.metrics(0)
	var clients [2]*http.Client
	for i := range clients {
		protocols := &http.Protocols{}
		protocols.SetHTTP1(i == 0)
		protocols.SetUnencryptedHTTP2(i == 1)
		tr := &http.Transport{Protocols: protocols, MaxIdleConnsPerHost: 32}
		t.Cleanup(tr.CloseIdleConnections)
		clients[i] = &http.Client{Transport: tr}
	}
	queue := make(chan *heldCall)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for c := range queue {
				client := clients[0]
				if c.h2 {
					client = clients[1]
				}
				c.send(st.envoys[0].Addr(s.name), client)
			}
		})
	}
	for _, c := range calls {
		queue <- c
	}
	close(queue)
	wg.Wait()
	lines := heldLog(t, st, s, len(calls))
	sent := map[string]upstream.Request{}
	for _, r := range s.provider.Requests() {
		sent[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")] = r
	}
	told, late, broken, left := 0, 0, 0, 0
	for _, c := range calls {
		a, l := &c.answer, lines[c.key]
		cost := ""
		if a.header != nil {
			cost = a.header.Get("x-gateway-cost-eur")
		}
		if cost != "" && cost != euros(l.Cost) {
			t.Errorf("%s: told %s, and the log says %s", c.key, cost, euros(l.Cost))
		}
		whole := c.ends == "" || strings.HasPrefix(c.ends, "trailer")
		switch {
		case c.leaves > 0 && a.err != nil:
			left++
		case !whole:
			broken++
			if a.err == nil && a.status != 502 {
				t.Errorf("%s ends with %s: status %d, a whole body", c.key, c.ends, a.status)
			}
		case a.err != nil || a.status != 200 || a.body != string(sent[c.key].Sent):
			t.Errorf("%+v: status %d, %d bytes of %d, %v", c, a.status, len(a.body), len(sent[c.key].Sent), a.err)
		case cost != "":
			told++
		default:
			late++
			if !c.slow && c.size < 1000 {
				t.Logf("%s: not told, with %d bytes", c.key, c.size)
			}
		}
		if whole && a.err == nil && (l.Settled != "usage" || cost == "" && l.Cost == 0) {
			t.Errorf("%s: the log says %+v", c.key, l)
		}
		if got := int64(capacityOf(s, 0) - st.level(s.name, "money", c.key).Remaining); got != l.Cost {
			t.Errorf("%s: %d is booked, and the log says %d", c.key, got, l.Cost)
		}
	}
	t.Logf("%d were told their cost, %d went on without it, %d broke off, %d were left", told, late, broken, left)
	if told < heldTotal/4 || late == 0 || broken == 0 || left == 0 {
		t.Error("too few of a kind to tell anything")
	}
	if live, settled := st.records(s.name); live != 0 || settled != len(lines) {
		t.Errorf("%d reservations are held and %d settled; the log has %d calls", live, settled, len(lines))
	}
	after := st.metrics(0)
	for _, name := range []string{"settled_duplicate", "settled_late", "settle_failed", "outbox_dropped", "recovered", "host_refused", "mismatch"} {
		if n := after["emmer."+name] - before["emmer."+name]; n != 0 {
			t.Errorf("counter emmer.%s rose by %d", name, n)
		}
	}
	if n := after["emmer.answer_unheld"] - before["emmer.answer_unheld"]; n < int64(late) {
		t.Errorf("%d answers went on without their cost, of which %d were counted", late, n)
	}
}

// heldLog waits for all lines of the access log and the end of all reservations, and gives them by key.
func heldLog(t *testing.T, st *stand, s *site, most int) map[string]lostLine {
	t.Helper()
	var lines map[string]lostLine
	eventually(t, 20*time.Second, func() string {
		lines = map[string]lostLine{}
		booked := 0
		for _, text := range st.envoys[0].AccessLog(s.name) {
			at := strings.IndexByte(text, '{')
			if at < 0 {
				continue // whoever left before the request was whole
			}
			var l lostLine
			if err := json.Unmarshal([]byte(text[at:]), &l); err != nil {
				return text
			}
			lines[l.Key] = l
			if l.Settled != "" {
				booked++
			}
		}
		held, settled := st.records(s.name)
		if len(lines) < most || held != 0 || settled != booked {
			return fmt.Sprintf("%d lines of %d calls, %d still held, %d settled of %d", len(lines), most, held, settled, booked)
		}
		return ""
	})
	return lines
}

// euros writes nano-units as headers do.
func euros(nano int64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%09d", nano/1_000_000_000, nano%1_000_000_000), "0"), ".")
}
