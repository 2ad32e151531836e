package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/hostsim/upstream"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

// lostLimits counts every call for its own key and for all, by every measure and kind. The bucket
// refills by a token a day, so that a test's duration gives nothing back.
const lostLimits = `[
	{"name": "day", "by": ["key"], "count": "tokens", "max": 10000000, "window": {"calendar": "year"}},
	{"name": "rate", "by": ["key"], "count": "tokens", "bucket": {"rate": "1/d", "burst": 10000000}},
	{"name": "money", "by": ["key"], "count": "cost", "max": "1000", "window": {"calendar": "year"}},
	{"name": "calls", "by": ["key"], "count": "requests", "max": 1000000, "window": {"calendar": "year"}},
	{"name": "all-day", "by": [], "count": "tokens", "max": 1000000000, "window": {"calendar": "year"}},
	{"name": "all-rate", "by": [], "count": "tokens", "bucket": {"rate": "1/d", "burst": 1000000000}},
	{"name": "all-money", "by": [], "count": "cost", "max": "100000", "window": {"calendar": "year"}},
	{"name": "all-calls", "by": [], "count": "requests", "max": 1000000, "window": {"calendar": "year"}},
	{"name": "poor", "by": ["key"], "for": {"key": ["poor"]}, "count": "tokens", "max": 1000, "window": {"calendar": "year"}}]`

// The measures of a key's limits, in the order of lostLimits; those of all follow in the same order.
const (
	lostDay = iota
	lostRate
	lostMoney
	lostCalls
	lostMeasures
)

// lostFrames is a streamed answer without its end, lostJSON a plain one that breaks off.
var (
	lostFrames = func() string {
		var b strings.Builder
		words := strings.Fields("Once upon a time, in Noordwijkerhout, internationalisation met 12345 ducks; they counted tokens and never lost one of them.")
		for i, w := range words {
			if i > 0 {
				w = " " + w
			}
			fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":null}]}\n\n", w)
		}
		return b.String()
	}()
	lostJSON = `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"An answer that breaks off in the middle of its`
)

// lostUsage is what the provider reports where it reports anything.
var lostUsage = dialect.Usage{Input: 30, CachedInput: 4, Output: 211}

const (
	lostUsageJSON = `{"prompt_tokens":30,"completion_tokens":211,"total_tokens":241,"prompt_tokens_details":{"cached_tokens":4}}`
	lostDone      = "data: [DONE]\n\n"
)

// lostScript answers by the kind of the call.
func lostScript() *upstream.Script {
	var b strings.Builder
	on := func(kind string, steps ...string) {
		fmt.Fprintf(&b, "on header x-kind: %s\n%s\n", kind, strings.Join(steps, "\n"))
	}
	chat := "chat in=30 cached=4 out=211 "
	var frames []string // one by one
	for f := range strings.SplitAfterSeq(lostFrames, "\n\n") {
		if f != "" {
			frames = append(frames, "sse "+strings.TrimSuffix(strings.TrimPrefix(f, "data: "), "\n\n"))
		}
	}
	last := `sse {"choices":[],"usage":` + lostUsageJSON + `}`
	on("json", chat)
	on("json-bare", chat+"usage=none")
	on("sse", chat+"usage=always")
	on("sse-bare", slices.Concat(frames, []string{"done"})...)
	on("waits", "hang")
	on("sse-left", slices.Concat(frames, []string{"hang"})...)
	on("sse-flows", slices.Concat([]string{"delay 300us"}, interleave(frames, "delay 300us"), []string{last, "done"})...)
	on("done-hang", slices.Concat(frames, []string{last, "done", "hang"})...)
	on("done-bare", slices.Concat(frames, []string{"done", "hang"})...)
	on("done-end", slices.Concat(frames, []string{last, "done"})...)
	on("reset", "reset")
	on("cut", "cut")
	on("sse-reset", slices.Concat(frames, []string{"reset"})...)
	on("sse-cut", slices.Concat(frames, []string{"cut"})...)
	on("json-cut", fmt.Sprintf("write %q", lostJSON), "cut")
	on("500", "status 500", `write {"error":{"message":"no"}}`)
	on("503-empty", "status 503")
	on("500-usage", "status 500", `write {"error":{"message":"no"},"usage":`+lostUsageJSON+`}`)
	on("429", "status 429", `write {"error":{"message":"slow down"}}`)
	on("fill", "chat in=1 out=999")
	return upstream.MustParse(b.String())
}

func interleave(list []string, with string) (out []string) {
	for _, s := range list {
		out = append(out, s, with)
	}
	return out
}

// lostKind is one way for a call to go.
type lostKind struct {
	name   string
	client leave
	stream bool
	want   func(k *lostCosts, c *lostCall) []lostCost // any of them is right
}

// lostCost is what a call is to have cost.
type lostCost struct {
	usage dialect.Usage
	calls int64
}

var lostKinds = []lostKind{
	{"json", stays, false, reported},
	{"json-bare", stays, false, counted},
	{"sse", stays, true, reported},
	{"sse-bare", stays, true, counted},
	{"waits", leavesBeforeAnswer, false, prompt},
	{"waits", leavesBeforeAnswer, true, prompt},
	{"waits", leavesSoon, false, promptIfSent},
	{"json", leavesInHead, false, nothing},
	{"json", leavesInBody, false, nothing},
	{"sse-left", leavesInAnswer, true, delivered},
	{"sse-flows", leavesInAnswer, true, deliveredOrReported},
	{"done-hang", leavesAtDone, true, reported},
	{"done-bare", leavesAtDone, true, counted},
	{"done-end", leavesAtDone, true, reported},
	{"reset", stays, false, failed},
	{"cut", stays, true, failed},
	{"sse-reset", stays, true, delivered},
	{"sse-cut", stays, true, delivered},
	{"json-cut", stays, false, delivered},
	{"500", stays, false, failed},
	{"503-empty", stays, true, failed},
	{"500-usage", stays, false, reported},
	{"429", stays, false, failed},
	{"json", isRefused, false, nothing},
	{"json", neverFits, false, nothing},
}

// lostCosts works out costs from what was seen outside the gateway.
type lostCosts struct {
	t    *testing.T
	site *site
	text map[string][]bucket.Tokens // by body: tokens of its output after each number of bytes
}

// A provider's own figure counts, whatever became of the client.
func reported(*lostCosts, *lostCall) []lostCost { return []lostCost{{lostUsage, 1}} }

// Without one it is the estimated prompt and the whole text.
func counted(k *lostCosts, c *lostCall) []lostCost {
	all := k.tokens(c, c.sent)
	return []lostCost{k.cost(c, all[len(all)-1])}
}

// The provider had the prompt.
func prompt(k *lostCosts, c *lostCall) []lostCost { return []lostCost{k.cost(c, 0)} }

// A client that leaves while the call is decided may be too early: then nothing was used.
func promptIfSent(k *lostCosts, c *lostCall) []lostCost {
	if c.seen {
		return prompt(k, c)
	}
	return append(prompt(k, c), lostCost{})
}

// An error without a usage used no tokens; it was one request.
func failed(*lostCosts, *lostCall) []lostCost { return []lostCost{{calls: 1}} }

func nothing(*lostCosts, *lostCall) []lostCost { return []lostCost{{}} }

// The prompt, and at least what the client surely got, and no more than what the provider sent.
func delivered(k *lostCosts, c *lostCall) []lostCost {
	if c.status == 503 { // the break overtook the head of the answer
		return failed(k, c)
	}
	got := c.got
	if c.status == 502 { // the break came while the head waited for the cost: of this answer the client has nothing
		got = nil
	}
	if !bytes.HasPrefix(c.sent, got) {
		k.t.Errorf("%s: the client got %q, which is no beginning of what the provider sent", c, c.got)
		return nil
	}
	var out []lostCost
	for _, n := range k.tokens(c, c.sent)[len(got):] {
		if one := k.cost(c, n); !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}

func deliveredOrReported(k *lostCosts, c *lostCall) []lostCost {
	return append(delivered(k, c), reported(k, c)...)
}

func (k *lostCosts) cost(c *lostCall, out bucket.Tokens) lostCost {
	in := bucket.Tokens(estimate(k.t, k.site, c.body))
	return lostCost{dialect.Usage{Input: in, Output: out}, 1}
}

// tokens counts the output in every beginning of an answer, each from its start.
func (k *lostCosts) tokens(c *lostCall, answer []byte) []bucket.Tokens {
	if known, ok := k.text[string(answer)]; ok {
		return known
	}
	var list []bucket.Tokens
	head := dialect.ResponseHead{Status: 200}
	for n := range len(answer) + 1 {
		sink := planOf(k.t, k.site, c.body).NewOutput()
		m := dialect.OpenAIChat.NewMeter(head, sink)
		m.Write(answer[:n])
		m.Close()
		list = append(list, sink.Tokens())
	}
	k.text[string(answer)] = list
	return list
}

// TestNothingLost lets 500 calls in each hold mode end in every way that a call can end, and then
// adds up: each limit holds what the calls should have cost, no reservation is left, and each was
// settled once.
func TestNothingLost(t *testing.T) {
	var sites []*site
	for _, hold := range []string{"pair", "flag"} {
		provider, err := upstream.Start(lostScript())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { provider.Close() })
		sites = append(sites, &site{name: "lost-" + hold, hold: hold, limits: lostLimits, provider: provider})
	}
	st := newStand(t, 1, 4, sites...)
	for i, s := range sites {
		t.Run(s.hold, func(t *testing.T) { lost(t, st, s, uint64(i)) })
	}
}

const lostTotal, lostAtOnce = 500, 16

func lost(t *testing.T, st *stand, s *site, seed uint64) {
	before := st.metrics(0)
	fill := thousand(t, s, false)
	if a := st.call(0, s.name, "poor", fill, "x-kind", "fill"); a.status != 200 {
		t.Fatalf("the first call of the poor key: %+v", a)
	}
	calls := lostCallsOf(rand.New(rand.NewPCG(seed, 1)), fill)
	queue := make(chan *lostCall)
	var wg sync.WaitGroup
	for range lostAtOnce {
		wg.Go(func() {
			for c := range queue {
				if err := c.play(st.envoys[0].Addr(s.name), s.provider); err != nil {
					t.Errorf("%s: %v", c, err)
				}
			}
		})
	}
	for _, c := range calls {
		queue <- c
	}
	close(queue)
	wg.Wait()
	// Aborts reach the provider, which was left waiting for ever.
	eventually(t, 10*time.Second, func() string {
		for _, r := range s.provider.Requests() {
			if !r.Ended {
				return "the provider still answers a call of kind " + r.Header.Get("X-Kind")
			}
		}
		return ""
	})
	seen := map[string]upstream.Request{}
	for _, r := range s.provider.Requests() {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if _, twice := seen[key]; twice || r.Malformed || !r.Complete {
			t.Errorf("the provider saw %+v, twice: %v", r, twice)
		}
		seen[key] = r
	}
	lines := lostLog(t, st, s, calls)
	booked := 0
	for _, l := range lines {
		if l.Settled != "" {
			booked++
		}
	}
	eventually(t, 10*time.Second, func() string {
		if live, settled := st.records(s.name); live != 0 || settled != booked {
			return fmt.Sprintf("%d live and %d settled reservations; the log has %d settled calls", live, settled, booked)
		}
		return ""
	})
	lostAddUp(t, st, s, calls, seen, lines)
	delta := func(name string) int64 { return st.metrics(0)[name] - before[name] }
	if got := delta("emmer.settled") + delta("emmer.settled_unknown"); got != int64(booked) {
		t.Errorf("%d settlements were booked, want %d", got, booked)
	}
	for _, name := range []string{"settled_duplicate", "settled_late", "settle_failed", "settle_retry", "outbox_dropped", "recovered", "host_refused", "mismatch"} {
		if n := delta("emmer." + name); n != 0 {
			t.Errorf("counter emmer.%s rose by %d", name, n)
		}
	}
}

// lostLine is what the access log says of a call.
type lostLine struct {
	D       string `json:"d"`
	Rid     string `json:"rid"`
	Key     string `json:"id_key"`
	Settled string `json:"settled"`
	In      int64  `json:"in"`
	Out     int64  `json:"out"`
	Cost    int64  `json:"cost"`
}

// lostLog waits for the line of every call whose head was whole, and gives them by key. The poor
// key's have a number behind it. No reservation's id stands in two of them.
func lostLog(t *testing.T, st *stand, s *site, calls []*lostCall) map[string]lostLine {
	t.Helper()
	want := 1 // the poor key's first call
	for _, c := range calls {
		if c.kind.client != leavesInHead {
			want++
		}
	}
	var lines map[string]lostLine
	eventually(t, 5*time.Second, func() string {
		lines = map[string]lostLine{}
		ids := map[string]bool{}
		for i, text := range st.envoys[0].AccessLog(s.name) {
			at := strings.IndexByte(text, '{')
			if at < 0 {
				continue // a request that never had a whole head
			}
			var l lostLine
			if err := json.Unmarshal([]byte(text[at:]), &l); err != nil {
				t.Fatalf("line %q: %v", text, err)
			}
			key := l.Key
			if key == "poor" {
				key = fmt.Sprintf("poor %d", i)
			}
			if _, twice := lines[key]; twice || ids[l.Rid] {
				t.Fatalf("key %s or id %s stands twice in the access log", key, l.Rid)
			}
			lines[key], ids[l.Rid] = l, true
		}
		if len(lines) != want {
			return fmt.Sprintf("%d lines in the access log, want %d", len(lines), want)
		}
		return ""
	})
	return lines
}

// lostAddUp compares what each key's limits hold with what its call should have cost and with what
// the log says, and the limits of all with the sums.
func lostAddUp(t *testing.T, st *stand, s *site, calls []*lostCall, seen map[string]upstream.Request, lines map[string]lostLine) {
	costs := &lostCosts{t: t, site: s, text: map[string][]bucket.Tokens{}}
	used := func(limit int, key string) int64 {
		l := st.level(s.name, s.config.Limits[limit].Name, key)
		if l.Reserved != 0 {
			t.Errorf("%d are still reserved in %s of %s", l.Reserved, s.config.Limits[limit].Name, key)
		}
		return int64(capacityOf(s, limit) - l.Remaining)
	}
	sums := [lostMeasures]int64{1000, 1000, int64(costOf(t, s, dialect.Usage{Input: 1, Output: 999})), 1}
	for i, want := range sums {
		if got := used(i, "poor"); got != want {
			t.Errorf("the poor key has used %d of %s, want %d", got, s.config.Limits[i].Name, want)
		}
	}
	for _, c := range calls {
		if c.key == "poor" {
			if c.status != c.kind.status() {
				t.Errorf("%s: status %d %s, want %d", c, c.status, c.got, c.kind.status())
			}
			continue
		}
		r, ok := seen[c.key]
		c.seen, c.sent = ok, r.Sent
		var got [lostMeasures]int64
		for i := range got {
			got[i] = used(i, c.key)
			sums[i] += got[i]
		}
		right := false
		wants := c.kind.want(costs, c)
		for _, w := range wants {
			tokens := int64(w.usage.Input + w.usage.Output)
			right = right || got == [lostMeasures]int64{tokens, tokens, int64(costOf(t, s, w.usage)), w.calls}
		}
		if !right {
			t.Errorf("%s, status %d, %d bytes got, %d bytes sent: booked %v (tokens, tokens, money, calls), want one of %+v",
				c, c.status, len(c.got), len(c.sent), got, wants)
		}
		l := lines[c.key]
		switch l.Settled {
		case "usage", "estimate":
			if l.In+l.Out != got[lostDay] || l.Cost != got[lostMoney] || got[lostCalls] != 1 {
				t.Errorf("%s: booked %v, and the log says %+v", c, got, l)
			}
		case "refund":
			if got != [lostMeasures]int64{lostCalls: 1} {
				t.Errorf("%s: booked %v, and the log says %+v", c, got, l)
			}
		case "", "cancelled":
			if got != [lostMeasures]int64{} {
				t.Errorf("%s: booked %v, and the log says %+v", c, got, l)
			}
		default:
			t.Errorf("%s: the log says %+v", c, l)
		}
		if l.Settled == "" && c.kind.client != leavesInHead && c.kind.client != leavesInBody {
			t.Errorf("%s: not settled, says the log: %+v", c, l)
		}
		if c.kind.client == leavesInHead || c.kind.client == leavesInBody {
			if ok || l.Settled != "" {
				t.Errorf("%s: the provider saw it: %v; the log says %+v", c, ok, l)
			}
		}
	}
	for i, want := range sums {
		if got := used(lostMeasures+i, ""); got != want {
			t.Errorf("all together have used %d of %s, want %d", got, s.config.Limits[lostMeasures+i].Name, want)
		}
	}
}

func capacityOf(s *site, limit int) bucket.Amount {
	l := s.config.Limits[limit]
	return max(l.Max, l.Burst)
}

func costOf(t *testing.T, s *site, u dialect.Usage) bucket.Money {
	t.Helper()
	c, err := bucket.Cost(s.config.Models[0].Price, bucket.Used{Input: u.Input, CachedInput: u.CachedInput, Output: u.Output})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
