package bridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/bridge"
	"github.com/emmer-proxy/emmer/bucket/script"
)

// Of every load.
const (
	clients = 64
	atOnce  = 48 // the concurrency limit
	lease   = bucket.Millis(10 * 60_000)
)

// load is 64 clients that reserve from one window and one concurrency limit and settle, as the filter
// does: what was not answered is asked again by the same id. It keeps books of what was acknowledged.
type load struct {
	t      *testing.T
	http   *http.Client
	url    string
	layout script.Layout
	bounds [4]bucket.Millis
	most   atomic.Int64 // the window's maximum
	held   atomic.Int64
	stop   chan struct{}
	group  sync.WaitGroup

	mu     sync.Mutex
	calls  []*deal
	faults map[string]int // answers that were none, by their first word
	spent  int64          // granted amounts, less what settles gave back
	peak   int64          // most calls at once that were granted and not yet being settled
	denied map[int]int    // by limit
	last   time.Time      // of the last grant
	gap    time.Duration  // longest time between grants
	around time.Time      // end of that gap
}

// deal is a granted call.
type deal struct {
	id             string
	amount, actual bucket.Amount
	deadline       bucket.Millis
	granted        time.Time // when its grant was known
	replayed       bool      // an earlier attempt had gone through
	settle         bucket.SettleOutcome
	settled        time.Time
}

func startLoad(t *testing.T, s *served) *load {
	at := bucket.Millis(time.Now().UnixMilli())
	day := bucket.Millis(24 * 3600 * 1000)
	l := &load{
		t: t, http: s.h1, url: s.url, layout: script.Layout{Namespace: bridge.DefaultNamespace},
		bounds: [4]bucket.Millis{at - 2*day, at - day, at + day, at + 2*day},
		stop:   make(chan struct{}), faults: map[string]int{}, denied: map[int]int{}, last: time.Now(),
	}
	l.most.Store(1 << 40)
	for c := range clients {
		l.group.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(c)))
			for n := 0; n < 2000 && !l.stopped(); n++ {
				l.deal(fmt.Sprintf("c%d-%d", c, n), bucket.Amount(10+random.IntN(90)), bucket.Amount(random.IntN(100)))
				l.pause(time.Duration(10+random.IntN(40)) * time.Millisecond)
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

func (l *load) end() {
	if !l.stopped() {
		close(l.stop)
	}
	l.group.Wait()
}

func (l *load) stopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

func (l *load) pause(d time.Duration) {
	select {
	case <-l.stop:
	case <-time.After(d):
	}
}

func (l *load) window() bucket.Limit {
	return bucket.Limit{Name: "day", Period: "day", Entity: "all", Kind: bucket.CalendarWindow, Max: bucket.Amount(l.most.Load()), Bounds: l.bounds}
}

func (l *load) items(amount bucket.Amount) []bucket.Item {
	return []bucket.Item{
		{Limit: l.window(), Amount: amount},
		{Limit: bucket.Limit{Name: "parallel", Entity: "all", Kind: bucket.Concurrency, Max: atOnce}, Amount: 1},
	}
}

func (l *load) deal(id string, amount, percent bucket.Amount) {
	d := &deal{id: id, amount: amount, actual: amount * percent / 100}
	for {
		r, ok := exchange(l, l.layout.Reserve, script.DecodeReserve, bucket.ReserveRequest{ID: id, Lease: lease, Keep: lease, Cell: 1000, Items: l.items(amount)})
		if !ok {
			if l.stopped() {
				// What became of it isn't known: it is settled by zero, as the filter does.
				d.actual = 0
				break
			}
			d.replayed = true
			l.pause(20 * time.Millisecond)
			continue
		}
		if r.Outcome != bucket.Granted && r.Outcome != bucket.Replayed {
			l.mu.Lock()
			l.denied[r.By]++
			l.mu.Unlock()
			if r.Outcome != bucket.Denied {
				l.t.Errorf("%s: %+v", id, r)
			}
			return
		}
		d.deadline, d.granted = r.Deadline, time.Now()
		break
	}
	l.mu.Lock()
	if !d.granted.IsZero() {
		held := l.held.Add(1)
		l.peak = max(l.peak, held)
		if gap := d.granted.Sub(l.last); gap > l.gap {
			l.gap, l.around = gap, d.granted
		}
		if d.granted.After(l.last) {
			l.last = d.granted
		}
	}
	l.spent += int64(d.amount)
	l.calls = append(l.calls, d)
	l.mu.Unlock()
	if !d.granted.IsZero() {
		l.pause(5 * time.Millisecond)
		l.held.Add(-1)
	}
	for n := 0; ; n++ {
		if s, ok := l.settle(d); ok {
			l.mu.Lock()
			d.settle, d.settled = s.Outcome, time.Now()
			l.spent -= int64(d.amount - d.actual)
			l.mu.Unlock()
			return
		}
		if n > 1500 {
			l.t.Errorf("%s: cannot be settled", id)
			return
		}
		<-time.After(20 * time.Millisecond)
	}
}

func (l *load) settle(d *deal) (bucket.SettleReply, bool) {
	return exchange(l, l.layout.Settle, script.DecodeSettle, bucket.SettleRequest{ID: d.id, Deadline: d.deadline, Lease: lease, Keep: lease, Cell: 1000, Items: l.items(d.actual)})
}

// exchange sends a script as the filter does. ok is false where no answer is known, or a node says that
// it didn't run the script.
func exchange[Q, A any](l *load, encode func(Q, string) (script.Call, error), decode func(script.Call, []script.Value) (A, error), q Q) (a A, ok bool) {
	nonce := fmt.Sprintf("%x", rand.Uint64())
	c, err := encode(q, nonce)
	if err != nil {
		l.t.Error(err)
		return a, false
	}
	status, reply, text := send(l.http, l.url, "EVALSHA", c.Script.SHA, c)
	if strings.HasPrefix(text, "NOSCRIPT ") {
		status, reply, text = send(l.http, l.url, "EVAL", c.Script.Text, c)
	}
	if status != http.StatusOK {
		word, _, _ := strings.Cut(text, " ")
		l.mu.Lock()
		l.faults[word]++
		l.mu.Unlock()
		return a, false
	}
	a, err = decode(c, reply)
	if err != nil {
		l.t.Errorf("%s: %v", c.Script.Name, err)
	}
	return a, err == nil
}

// send is one POST of a script: its reply, or the text of the error.
func send(client *http.Client, url, verb, text string, c script.Call) (int, []script.Value, string) {
	list := []any{verb, text, len(c.Keys)}
	for _, k := range c.Keys {
		list = append(list, k)
	}
	for _, a := range c.Args {
		list = append(list, a)
	}
	body, err := json.Marshal(list)
	if err != nil {
		return 0, nil, err.Error()
	}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url+"/", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err.Error()
	}
	r.Header.Set("Authorization", "Bearer "+token)
	w, err := client.Do(r)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer func() { _ = w.Body.Close() }()
	all, err := io.ReadAll(w.Body)
	if err != nil {
		return 0, nil, err.Error()
	}
	var reply struct {
		Result []any
		Error  string
	}
	d := json.NewDecoder(bytes.NewReader(all))
	d.UseNumber()
	if err := d.Decode(&reply); err != nil {
		return 0, nil, fmt.Sprintf("%v in %s", err, all)
	}
	var values []script.Value
	for _, v := range reply.Result {
		switch v := v.(type) {
		case json.Number:
			n, err := v.Int64()
			if err != nil {
				return 0, nil, err.Error()
			}
			values = append(values, script.Value{Int: n, IsInt: true})
		case string:
			values = append(values, script.Value{Text: v})
		}
	}
	return w.StatusCode, values, reply.Error
}

// grants waits for n more grants.
func (l *load) grants(within time.Duration, n int) {
	l.t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.calls)
	}
	from := count()
	eventually(l.t, within, "calls are granted: "+l.said(), func() bool { return count() >= from+n })
}

func (l *load) said() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprint(maps.Clone(l.faults))
}

// exhaust lowers the maximum to a little above what was granted so far, and waits until nobody gets more.
func (l *load) exhaust() {
	l.t.Helper()
	l.mu.Lock()
	// Whoever asks right now asks under the old maximum.
	l.most.Store(l.spent + 2*clients*100 + 5000)
	before := l.denied[0]
	l.mu.Unlock()
	eventually(l.t, 10*time.Second, "the limit is reached", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.denied[0] > before+4*clients
	})
}

// account is what the books say once all is settled.
type account struct {
	granted, over           int64 // amounts: spent by what was acknowledged, and how far that is above the maximum
	lostReserves            int   // granted, then unknown to their settle
	lostSettles             int   // acknowledged, then unknown again
	lostAmount              int64 // of both
	earliest, latest        time.Time
	retried, calls, unknown int
}

// audit ends the load, settles everything a second time and compares the sums. Each call must be charged
// exactly once at the end, lost or not.
func (l *load) audit() account {
	l.t.Helper()
	l.end()
	a := account{granted: l.spent, over: l.spent - l.most.Load(), calls: len(l.calls)}
	lost := func(d *deal, at time.Time) {
		a.lostAmount += int64(d.amount)
		if a.earliest.IsZero() || at.Before(a.earliest) {
			a.earliest = at
		}
		if at.After(a.latest) {
			a.latest = at
		}
	}
	again := make(chan *deal, len(l.calls))
	for _, d := range l.calls {
		if d.replayed {
			a.retried++
		}
		if d.granted.IsZero() {
			a.unknown++
		} else if d.settle == bucket.SettledUnknown {
			a.lostReserves++
			lost(d, d.granted)
		}
		again <- d
	}
	close(again)
	var mu sync.Mutex
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			for d := range again {
				s, ok := l.settle(d)
				mu.Lock()
				if !ok {
					l.t.Errorf("%s: a second settle is not answered: %s", d.id, l.said())
				} else if s.Outcome != bucket.SettledDuplicate {
					a.lostSettles++
					lost(d, d.settled)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	var want bucket.Amount
	for _, d := range l.calls {
		want += d.actual
	}
	v, ok := exchange(l, l.layout.Level, script.DecodeLevel, l.window())
	if got := bucket.Amount(l.most.Load()) - v.Remaining; !ok || got != want || v.Reserved != 0 {
		l.t.Errorf("the store says %d spent and %d reserved, the calls used %d", got, v.Reserved, want)
	}
	if a.over > a.lostAmount {
		l.t.Errorf("%d granted above the maximum, lost was only %d", a.over, a.lostAmount)
	}
	if l.peak > atOnce+int64(a.lostReserves) {
		l.t.Errorf("%d calls at once, allowed are %d, lost were %d", l.peak, atOnce, a.lostReserves)
	}
	l.t.Logf("%d calls, %d asked again, %d of unknown fate; gap %v; faults %v; lost: %d reserves, %d settles, amount %d; over the maximum: %d; at once: %d",
		a.calls, a.retried, a.unknown, l.gap.Round(time.Millisecond), l.faults, a.lostReserves, a.lostSettles, a.lostAmount, max(a.over, 0), l.peak)
	return a
}
