package core

import (
	"fmt"
	"math/rand"
	"runtime"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

func bucketItem(entity string, amount bucket.Amount) bucket.Item {
	return bucket.Item{Amount: amount, Limit: bucket.Limit{Name: "tpm", Entity: entity, Kind: bucket.TokenBucket, Rate: 1, Per: 10, Burst: 6000}}
}

func deniedReply(now, retry bucket.Millis, left ...bucket.Amount) bucket.ReserveReply {
	r := bucket.ReserveReply{Outcome: bucket.Denied, Now: now, Retry: retry, Remaining: left}
	for range left {
		r.Max = append(r.Max, 6000)
	}
	return r
}

// learn tells a worker what the store answered, as a stream does.
func learn(w *Worker, items []bucket.Item, got bucket.ReserveReply, now bucket.Millis) {
	if r := w.refused(w.layout.Tag, items, got, now); r != nil {
		w.Step(Event{Kind: StoreRefused, Now: now, Refusal: r})
	}
}

// ask is a call: it is refused by memory, or it asks.
func ask(w *Worker, items []bucket.Item, now bucket.Millis) (bucket.ReserveReply, bool) {
	if !w.denied.any() {
		return bucket.ReserveReply{}, false
	}
	got, ok, asks := w.denied.find(w.layout.Tag, items, now)
	if !ok {
		for _, key := range asks {
			w.Step(Event{Kind: RefusalAsked, Now: now, Refusal: &refusal{key: key}})
		}
	}
	return got, ok
}

// remembered is the memory of refusals in the plainest way: every answer is kept, the latest about a
// count is looked for.
type remembered struct {
	entity        string
	never         bool
	amount        bucket.Amount
	at, until     bucket.Millis
	fits, tooOld  bucket.Millis
	smallerInVain int
	asked         bool
}

type plainMemory struct {
	poll, timeout bucket.Millis
	all           []remembered
}

func (m *plainMemory) latest(entity string, never bool) *remembered {
	for i := len(m.all) - 1; i >= 0; i-- {
		if m.all[i].entity == entity && m.all[i].never == never {
			return &m.all[i]
		}
	}
	return nil
}

func (m *plainMemory) learn(entity string, amount bucket.Amount, got bucket.ReserveReply, now bucket.Millis) {
	r := remembered{entity: entity, never: got.Outcome == bucket.NeverFits, amount: amount, at: now,
		until: now + m.poll, fits: 1 << 50, tooOld: now + 2*m.poll}
	if !r.never {
		r.fits = now + got.Retry
	}
	if old := m.latest(entity, r.never); old != nil && !old.asked && now < min(old.until, old.fits) {
		r.smallerInVain = old.smallerInVain
		if amount > old.amount {
			return
		}
		if amount < old.amount {
			r.smallerInVain++
		}
	}
	m.all = append(m.all, r)
}

// ask says whether a call is refused, and when it would fit (0: never).
func (m *plainMemory) ask(entity string, amount bucket.Amount, left bucket.Amount, now bucket.Millis) (refused, never bool, fits bucket.Millis) {
	var asking []*remembered
	for _, kind := range []bool{true, false} {
		r := m.latest(entity, kind)
		if r == nil || now >= r.tooOld || now >= r.fits {
			continue
		}
		above := amount >= r.amount
		if !kind && r.smallerInVain >= 4 && amount > left+1+bucket.Amount(now-r.at)/10 {
			above = true
		}
		switch {
		case !above:
		case now >= r.until:
			asking = append(asking, r)
		case kind || amount > 6000:
			return true, true, 0
		case !refused:
			refused, fits = true, r.fits
			for amount > r.amount {
				fits, amount = fits+10, amount-1
			}
		}
	}
	if !refused {
		for _, r := range asking {
			r.asked, r.until = true, now+m.timeout
			r.tooOld = max(r.tooOld, r.until+m.poll)
		}
	}
	return refused, never, fits
}

// TestRefusalsAgreeWithAPlainMemory lets three callers ask for any amounts at any times; the store's
// answers are as they come.
func TestRefusalsAgreeWithAPlainMemory(t *testing.T) {
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		w := newWorker(t, "flag", "closed")
		m := &plainMemory{poll: w.config.KillPoll, timeout: w.config.Store.Timeout}
		now := bucket.Millis(1_000_000)
		for step := range 400 {
			now += bucket.Millis(r.Intn(90))
			if r.Intn(3) == 0 {
				w.Step(Event{Kind: Tick, Now: now})
			}
			entity := fmt.Sprint("key=", r.Intn(3))
			amount := bucket.Amount(1 + r.Intn(8000))
			items := []bucket.Item{bucketItem(entity, amount)}
			left := bucket.Amount(100)
			got, ok := ask(w, items, now)
			refused, never, fits := m.ask(entity, amount, left, now)
			if ok != refused || ok && (got.Outcome == bucket.NeverFits) != never || ok && !never && got.Retry != fits-now {
				t.Fatalf("seed %d, step %d: %v for %d at %d: refused %v (%+v), want %v never=%v in %d", seed, step, entity, amount, now, ok, got, refused, never, fits-now)
			}
			if ok || r.Intn(4) == 0 {
				continue // refused by memory, or no answer came
			}
			reply := deniedReply(now, bucket.Millis(1+r.Intn(900)), left)
			if amount > 6000 {
				reply.Outcome, reply.Retry = bucket.NeverFits, 0
			}
			learn(w, items, reply, now)
			m.learn(entity, amount, reply, now)
		}
	}
}

// TestAWildClientAsksOnceAPoll: thousand calls a second of any size, to a store that needs 3 ms and
// refuses each.
func TestAWildClientAsksOnceAPoll(t *testing.T) {
	for name, amountOf := range map[string]func(n int) bucket.Amount{
		"the same":  func(int) bucket.Amount { return 500 },
		"rising":    func(n int) bucket.Amount { return min(6000, 500+bucket.Amount(n)) },
		"shrinking": func(n int) bucket.Amount { return max(101, 6000-bucket.Amount(n)) },
		"never":     func(int) bucket.Amount { return 7000 },
	} {
		w := newWorker(t, "flag", "closed")
		asked := 0
		var flying []func()
		const start, span = bucket.Millis(1_000_000), bucket.Millis(10_000)
		for now := start; now < start+span; now++ {
			w.Step(Event{Kind: Tick, Now: now})
			items := []bucket.Item{bucketItem("key=wild", amountOf(int(now-start)))}
			for range 5 {
				var answer func()
				if _, refused := ask(w, items, now); !refused {
					asked++
					answer = func() {
						reply := deniedReply(now, 20_000, 50)
						if items[0].Amount > 6000 {
							reply.Outcome = bucket.NeverFits
						}
						learn(w, items, reply, now+3)
					}
				}
				flying = append(flying, answer)
			}
			if len(flying) > 15 {
				for _, answer := range flying[:5] {
					if answer != nil {
						answer()
					}
				}
				flying = flying[5:]
			}
		}
		polls := int(span / w.config.KillPoll)
		most := 20 + polls
		if name == "shrinking" {
			most = 20 + polls*5*20 // with those that were under way when less was refused
		}
		t.Logf("%s: %d scripts for %d calls in %d polls", name, asked, 5*span, polls)
		if asked > most || asked < polls-1 {
			t.Errorf("%s: %d scripts, want at most %d and at least %d", name, asked, most, polls-1)
		}
	}
}

func TestTheMemoryOfRefusalsIsBounded(t *testing.T) {
	w := newWorker(t, "flag", "closed")
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, forgotten := heap(), 0
	long := make([]byte, 60_000)
	for i := range 3 * refusalCap {
		entity := fmt.Sprint("key=", i, string(long))
		items := []bucket.Item{bucketItem(entity, 5), bucketItem("all", 5)}
		r := w.refused(w.layout.Tag, items, deniedReply(1000, 60_000, 1, 2), 1000)
		for _, f := range w.Step(Event{Kind: StoreRefused, Now: 1000, Refusal: r}) {
			if f.Kind == Count && f.Name == "emmer.refusal_forgotten" {
				forgotten++
			}
		}
	}
	if n := len(w.denied.byKey); n != refusalCap || forgotten != 2*refusalCap {
		t.Errorf("%d entries and %d forgotten, want %d and %d", n, forgotten, refusalCap, 2*refusalCap)
	}
	grown := int64(heap() - before)
	t.Logf("%d bytes an entry", grown/refusalCap)
	if grown > refusalCap*600 {
		t.Errorf("%d entries keep %d bytes", refusalCap, grown)
	}
	// The youngest are kept.
	if _, ok := ask(w, []bucket.Item{bucketItem(fmt.Sprint("key=", 3*refusalCap-1, string(long)), 5)}, 1001); !ok {
		t.Error("the latest refusal was forgotten")
	}
	w.Step(Event{Kind: Tick, Now: 1000 + 2*w.config.KillPoll})
	if w.denied.any() || w.denied.first != nil {
		t.Error("entries outlive two polls")
	}
	runtime.KeepAlive(w)
}

func TestWhatEndsTheMemoryOfARefusal(t *testing.T) {
	now := bucket.Millis(1_000_000)
	item := func(amount bucket.Amount) []bucket.Item { return []bucket.Item{bucketItem("key=k", amount)} }
	told := func() *Worker {
		w := newWorker(t, "flag", "closed")
		learn(w, item(500), deniedReply(now, 5000, 100), now)
		if got, ok := ask(w, item(500), now+10); !ok || got.Retry != 4990 || got.Now != now+10 || got.Remaining[0] != 100 {
			t.Fatalf("not remembered: %+v", got)
		}
		return w
	}
	for name, end := range map[string]func(w *Worker) (amount bucket.Amount, at bucket.Millis){
		"a poll":           func(w *Worker) (bucket.Amount, bucket.Millis) { return 500, now + w.config.KillPoll },
		"a smaller amount": func(*Worker) (bucket.Amount, bucket.Millis) { return 499, now + 10 },
		"a clock set back": func(*Worker) (bucket.Amount, bucket.Millis) { return 500, now - 1 },
		"a grant of as much": func(w *Worker) (bucket.Amount, bucket.Millis) {
			w.Step(Event{Kind: RefusalOver, Now: now + 5, Job: &Job{ID: "x", layout: w.layout, Items: item(500)}})
			return 500, now + 10
		},
		"a settlement here": func(w *Worker) (bucket.Amount, bucket.Millis) {
			w.Step(Event{Kind: Settle, Now: now + 5, Job: &Job{ID: "x", layout: w.layout, Items: item(7)}})
			sent := callsOf(w.Step(Event{Kind: Flush, Now: now + 5}))
			w.Step(storeReply(now+6, sent[0].Tag, done("s.x", int64(bucket.SettledLive), 9000, 593)))
			return 500, now + 10
		},
	} {
		w := told()
		amount, at := end(w)
		if got, ok := ask(w, item(amount), at); ok {
			t.Errorf("after %s: still refused, %+v", name, got)
		}
	}
	w := told()
	w.Step(Event{Kind: RefusalOver, Now: now + 5, Job: &Job{ID: "x", layout: w.layout, Items: item(90)}})
	if _, ok := ask(w, item(500), now+10); !ok {
		t.Error("a grant of less ended it")
	}
	// One may ask; the others wait for its answer, or until it must have come.
	again := now + w.config.KillPoll
	if _, ok := ask(w, item(500), again); ok {
		t.Error("nobody may ask after the poll")
	}
	if _, ok := ask(w, item(500), again+1); !ok {
		t.Error("two asked after the poll")
	}
	if _, ok := ask(w, item(500), again+w.config.Store.Timeout); ok {
		t.Error("nobody may ask after the first one had no answer")
	}
	// Before the poll: the time at which it fits.
	w = newWorker(t, "flag", "closed")
	learn(w, item(500), deniedReply(now, 40, 499), now)
	if _, ok := ask(w, item(500), now+39); !ok {
		t.Error("asked before the time that the store said")
	}
	if _, ok := ask(w, item(500), now+40); ok {
		t.Error("refused at the time that the store said")
	}
	// A claim that sets more, or a call that can wait longer, is another question.
	w = told()
	more := item(500)
	more[0].Limit.Burst++
	patient := item(500)
	patient[0].Queue = 50
	for name, items := range map[string][]bucket.Item{"more": more, "patient": patient} {
		if _, ok := ask(w, items, now+10); ok {
			t.Errorf("%s: refused", name)
		}
	}
	// Who may wait less long is refused until a turn comes that soon.
	w = newWorker(t, "flag", "closed")
	patient[0].Queue = 3000
	learn(w, patient, deniedReply(now, 5000, 100), now)
	for queue, want := range map[bucket.Millis]bucket.Millis{3000: 4990, 1000: 6990, 0: 7990} {
		items := item(500)
		items[0].Queue = queue
		if got, ok := ask(w, items, now+10); !ok || got.Retry != want {
			t.Errorf("who may wait for %d ms is told %d (%v), want %d", queue, got.Retry, ok, want)
		}
	}
	// Whose claim sets less is told of no figures of who has more, nor of a time when nothing helps.
	w = newWorker(t, "flag", "closed")
	learn(w, item(500), deniedReply(now, 5000, 100), now)
	for amount, want := range map[bucket.Amount]bucket.Outcome{500: bucket.Denied, 600: bucket.NeverFits} {
		less := item(amount)
		less[0].Limit.Burst = 550
		got, ok := ask(w, less, now+10)
		if ok && (got.Outcome != want || got.Remaining != nil || got.Max != nil) {
			t.Errorf("%d of at most 550: %+v", amount, got)
		}
	}
	// Shadows are not remembered, and not refused.
	shadow := item(500)
	shadow[0].Shadow = true
	if _, ok := ask(w, shadow, now+10); ok {
		t.Error("a shadow was refused")
	}
	if w.refused(w.layout.Tag, shadow, deniedReply(now, 10, 0), now) != nil {
		t.Error("a shadow was remembered")
	}
}
