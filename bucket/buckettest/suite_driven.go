package buckettest

import (
	"github.com/emmer-proxy/emmer/bucket"
)

// classicCases are the worked exercises that every text on rate limits has, with their numbers.
func classicCases() []testCase {
	return []testCase{
		{"classic/capacity 20, 2 a second, level 5: after 3 s one is taken and 10 are left", func(f *fixture) {
			b := perSecond(2, 20)
			f.left(f.settle(f.id(), 0, each(15, b), bucket.SettledUnknown).Remaining, 5)
			f.s.Pass(3 * second)
			f.left(f.reserve(long(f.id(), each(1, b)), bucket.Granted).Remaining, 10)
		}},
		{"classic/capacity 10, 1 a second: ten at once, then one a second, nine after 9 s idle", func(f *fixture) {
			b := perSecond(1, 10)
			f.takes(b, 10)
			for range 5 {
				f.s.Pass(second - 1)
				f.takes(b, 0)
				f.s.Pass(1)
				f.takes(b, 1)
			}
			f.s.Pass(9 * second)
			f.takes(b, 9)
		}},
		{"classic/capacity 5, 5 a second: never more than five at once, however long idle", func(f *fixture) {
			b := perSecond(5, 5)
			for _, idle := range []bucket.Millis{0, second, 7 * second, 400 * day} {
				f.s.Pass(idle)
				f.takes(b, 5)
			}
		}},
		{"classic/0.02 ten times at once against 0.05: two pass", func(f *fixture) {
			now := f.s.Now()
			w := bucket.Limit{Name: "w", Kind: bucket.CalendarWindow, Period: "p", Max: 50_000_000, Bounds: [4]bucket.Millis{now - 2, now - 1, now + hour, now + 2*hour}}
			granted := 0
			for range 10 {
				if f.grant(long(f.id(), each(20_000_000, w))) == nil {
					granted++
				}
			}
			if granted != 2 {
				f.Errorf("%d passed", granted)
			}
		}},
	}
}

func perSecond(rate, burst bucket.Amount) bucket.Limit {
	return bucket.Limit{Name: "b", Entity: "e", Kind: bucket.TokenBucket, Rate: rate, Per: second, Burst: burst, Lost: bucket.Charge}
}

// takes asks for one after the other until it is refused, and checks how many passed.
func (f *fixture) takes(l bucket.Limit, want int) {
	f.Helper()
	granted := 0
	for f.grant(short(f.id(), each(1, l))) == nil {
		granted++
	}
	if granted != want {
		f.Errorf("%d passed, want %d", granted, want)
	}
}

// retries checks that a call is refused until its retry time, and granted then.
func (f *fixture) retries(items []bucket.Item, by int, wait bucket.Millis) {
	f.Helper()
	r := f.reserve(long(f.id(), items), bucket.Denied)
	if r.By != by || r.Retry != wait {
		f.Errorf("refused by %d for %d ms, want %d, %d", r.By, r.Retry, by, wait)
	}
	f.s.Pass(r.Retry - 1)
	if again := f.reserve(long(f.id(), items), bucket.Denied); again.Retry != 1 {
		f.Errorf("1 ms before, retry is %d", again.Retry)
	}
	f.s.Pass(1)
	f.reserve(long(f.id(), items), bucket.Granted)
}

var drivenCases = append([]testCase{
	{"rolling/no span of its length holds more than its maximum", func(f *fixture) {
		w := rolling("w", 40, 600, 100)
		w.Lost = bucket.Charge
		type taken struct {
			at bucket.Millis
			n  bucket.Amount
		}
		var all []taken
		total := bucket.Amount(0)
		for i := range 400 {
			f.s.Pass(bucket.Millis(i * 7 % 23))
			n := bucket.Amount(1 + i%3)
			if f.grant(long(f.id(), each(n, w))) == nil {
				all = append(all, taken{f.s.Now(), n})
				total += n
			}
		}
		for i := range all {
			sum := bucket.Amount(0)
			for _, t := range all[i:] {
				if t.at < all[i].at+600 {
					sum += t.n
				}
			}
			if sum > 40 {
				f.Fatalf("%d within 600 ms from %d", sum, all[i].at)
			}
		}
		if total < 200 {
			f.Errorf("only %d were granted", total)
		}
	}},
	{"rolling/a cell counts until its end and the length", func(f *fixture) {
		w := rolling("w", 10, 10*second, second)
		w.Lost = bucket.Charge
		f.clock.SetTime(Epoch + 300)
		f.reserve(long(f.id(), each(10, w)), bucket.Granted)
		f.retries(each(1, w), 0, 11*second-300)
	}},
	{"rolling/the retry takes cells and leases together", func(f *fixture) {
		w := rolling("w", 10, 10*second, second)
		q := long(f.id(), each(4, w))
		q.Lease, q.Cell = 5*second, 1
		f.reserve(q, bucket.Granted)
		c := w
		c.Lost = bucket.Charge
		f.reserve(long(f.id(), each(6, c)), bucket.Granted)
		r := f.reserve(long(f.id(), each(5, w)), bucket.Denied)
		if r.Retry != 11*second { // the lease alone gives four
			f.Errorf("%+v", r)
		}
		f.retries(each(4, w), 0, 5*second)
	}},
	{"rolling/a settle after the cell has gone books only an overrun", func(f *fixture) {
		w := rolling("w", 100, 10*second, second)
		less, more := long(f.id(), each(30, w)), long(f.id(), each(30, w))
		f.reserve(less, bucket.Granted)
		f.reserve(more, bucket.Granted)
		f.s.Pass(11 * second)
		f.stands(w, 100, 60)
		f.left(f.settle(less.ID, 0, each(10, w), bucket.SettledLive).Remaining, 100)
		f.left(f.settle(more.ID, 0, each(37, w), bucket.SettledLive).Remaining, 93)
	}},
	{"slots/the retry is the end of the lease that makes room", func(f *fixture) {
		c := slots("c", 3)
		for i := range bucket.Millis(3) {
			q := long(f.id(), each(1, c))
			q.Lease, q.Cell = (3-i)*second, 1
			f.reserve(q, bucket.Granted)
		}
		r := f.reserve(long(f.id(), each(2, c)), bucket.Denied)
		if r.Retry != 2*second {
			f.Errorf("%+v", r)
		}
		f.retries(each(1, c), 0, second)
	}},
	{"several deny: the latest time wins", func(f *fixture) {
		b, w, c := perSecond(1, 10), rolling("w", 10, 60*second, 10*second), slots("c", 10)
		w.Lost = bucket.Charge
		q := long(f.id(), each(10, b, w, c))
		q.Lease, q.Cell = 30*second, 1
		f.reserve(q, bucket.Granted)
		r := f.reserve(long(f.id(), each(5, b, w, c)), bucket.Denied)
		if r.By != 1 || r.Retry != 70*second {
			f.Errorf("%+v", r)
		}
		r = f.reserve(long(f.id(), each(5, b, c)), bucket.Denied)
		if r.By != 1 || r.Retry != 30*second {
			f.Errorf("%+v", r)
		}
	}},
	{"burn/each of its minutes must be above", func(f *fixture) {
		o := burning(100, 3)
		spend := func(n bucket.Amount) int { return len(f.settle(f.id(), 0, each(n, o), bucket.SettledUnknown).Tripped) }
		for minute, n := range []bucket.Amount{150, 150, 90, 150, 150} {
			if spend(n) != 0 {
				f.Errorf("tripped in minute %d", minute)
			}
			f.s.Pass(60 * second)
		}
		if spend(100) != 0 {
			f.Error("tripped at its limit")
		}
		if spend(1) != 1 {
			f.Error("not tripped")
		}
	}},
	{"burn/minutes roll in cells of 10 s", func(f *fixture) {
		o := burning(100, 1)
		for range 7 { // 17 in each 10 s are 102 a minute, but never before six of them
			f.settle(f.id(), 0, each(17, o), bucket.SettledUnknown)
			f.s.Pass(10 * second)
		}
		if value, _ := f.s.Kill(o.Flag); value == "" {
			f.Error("not tripped")
		}
		f.must(f.s.Resume(o.Flag))
		f.s.Pass(20 * second)
		if s := f.settle(f.id(), 0, each(20, o), bucket.SettledUnknown); len(s.Tripped) != 0 {
			f.Errorf("%+v", s)
		}
	}},
	{"burn/the flag ends by itself where the rule says so", func(f *fixture) {
		o, b := burning(10, 1), slow("b", 100)
		o.Rule = &bucket.BurnRule{Minutes: 1, For: 5 * second, Reason: "x"}
		f.settle(f.id(), 0, each(11, o), bucket.SettledUnknown)
		q := long(f.id(), each(1, b))
		q.Kills = []string{o.Flag}
		f.s.Pass(5*second - 1)
		f.reserve(q, bucket.Killed)
		f.s.Pass(1)
		f.reserve(q, bucket.Granted)
	}},
	{"override/ends at its time", func(f *fixture) {
		w := rolling("w", 10, hour, hour)
		f.must(f.s.SetOverride(w.Name, w.Entity, bucket.Override{Max: 20, Until: f.s.Now() + second}.String()))
		f.s.Pass(second - 1)
		f.left(f.reserve(long(f.id(), each(15, w)), bucket.Granted).Remaining, 5)
		f.s.Pass(1)
		f.stands(w, -5, 15)
	}},
	{"queue/a bucket of 20 a second starts 200 calls in order, one every 50 ms", func(f *fixture) {
		b := perSecond(20, 1)
		from := f.s.Now()
		for i := range bucket.Millis(200) {
			if i%20 == 19 {
				f.s.Pass(3)
			}
			q := queued(f.id(), 300*second, each(1, b))
			r, err := f.s.Reserve(q)
			f.must(err)
			start := max(r.Start, r.Now)
			if r.Outcome != bucket.Granted || start != from+50*i {
				f.Fatalf("call %d starts at %d: %+v", i, start-from, r)
			}
		}
		if r := f.reserve(queued(f.id(), 50, each(1, b)), bucket.Denied); r.Retry != from+200*50-50-r.Now {
			f.Errorf("%+v", r)
		}
	}},
	{"queue/no rate is exceeded, whoever leaves", func(f *fixture) {
		b := perSecond(20, 10)
		b.Lost = bucket.Refund
		var starts []start
		last := bucket.Millis(0)
		var open []bucket.ReserveRequest
		for i := range 600 {
			f.s.Pass(bucket.Millis(i * 37 % 71))
			n := bucket.Amount(1 + i*i%4)
			q := queued(f.id(), []bucket.Millis{0, 500, 20 * second}[i%3], each(n, b))
			r, err := f.s.Reserve(q)
			f.must(err)
			if r.Outcome == bucket.Granted {
				at := max(r.Start, r.Now)
				if at < last && r.Start > 0 {
					f.Fatalf("call %d starts at %d, one before it at %d", i, at, last)
				}
				last = max(last, r.Start)
				starts = append(starts, start{q.ID, at, n})
				open = append(open, q)
			}
			if i%5 == 4 && len(open) > 0 { // a client leaves before its start, and never came
				gone := open[len(open)-1]
				open = open[:len(open)-1]
				for j := range starts {
					if starts[j].id == gone.ID && starts[j].at > f.s.Now() {
						f.settle(gone.ID, 0, each(0, b), bucket.SettledLive)
						starts = append(starts[:j], starts[j+1:]...)
						last = 0
						for _, s := range starts {
							last = max(last, s.at)
						}
						break
					}
				}
			}
		}
		if over := replay(starts, 20, 10); over != "" {
			f.Error(over)
		}
		if len(starts) < 200 {
			f.Errorf("only %d starts", len(starts))
		}
	}},
	{"queue/a lease of a parked call counts from its start", func(f *fixture) {
		b := perSecond(1, 1)
		b.Lost = bucket.Refund
		f.reserve(long(f.id(), each(1, b)), bucket.Granted)
		q := queued(f.id(), 60*second, each(1, b))
		q.Lease, q.Cell = second, 1
		r, err := f.s.Reserve(q)
		f.must(err)
		if r.Start != r.Now+second || r.Deadline != r.Start+second {
			f.Errorf("%+v", r)
		}
		f.s.Pass(second + second/2)
		f.reserve(q, bucket.Replayed)
		f.s.Pass(second / 2)
		f.reserve(q, bucket.Settled)
	}},
	// What a parked call has taken from the spare is away from the moment it was booked, so at its
	// start the whole may be full again: the rate holds, and the burst can meet what was parked.
	{"queue/a share's queue exceeds no rate either", func(f *fixture) {
		p := seventyThirty()
		var starts []start
		for i := range 500 {
			f.s.Pass(bucket.Millis(i * 11 % 17))
			class := []string{"batch", "interactive", "batch"}[i%3]
			q := queued(f.id(), map[string]bucket.Millis{"batch": 30 * second, "interactive": 50}[class], each(bucket.Amount(1+i%3), shared(p, class)))
			q.Items[0].Limit.Lost = bucket.Charge
			q.Lease, q.Cell = second, second
			r, err := f.s.Reserve(q)
			f.must(err)
			if r.Outcome == bucket.Granted {
				starts = append(starts, start{q.ID, max(r.Start, r.Now), q.Items[0].Amount})
			}
		}
		if over := replay(starts, 100, 2*20); over != "" {
			f.Error(over)
		}
		if len(starts) < 200 {
			f.Errorf("only %d starts", len(starts))
		}
	}},
	{"C98: clocks a second apart refill nothing twice", func(f *fixture) {
		b := perSecond(4, 4)
		from := f.s.Now()
		granted := 0
		for _, at := range []bucket.Millis{0, -second, 0} {
			f.clock.SetTime(from + at)
			for range 4 {
				if f.grant(long(f.id(), each(1, b))) == nil {
					granted++
				}
			}
		}
		if granted != 4 {
			f.Errorf("%d of at most 4", granted)
		}
	}},
	{"C88: a refund after the limit has gone creates nothing", func(f *fixture) {
		b, w := perSecond(1000, 1000), f.hourly("w", 1000)
		q := long(f.id(), each(400, b, w))
		q.Lease = 3 * day
		f.reserve(q, bucket.Granted)
		f.s.Pass(2 * day)
		now := f.s.Now()
		w.Bounds = [4]bucket.Millis{now - 2*hour, now - hour, now + hour, now + 2*hour}
		f.left(f.settle(q.ID, 0, each(50, b, w), bucket.SettledLive).Remaining, 1000, 1000)
		f.stands(w, 1000, 0)
	}},
}, drivenShareCases...)

type start struct {
	id string
	at bucket.Millis
	n  bucket.Amount
}

// replay plays starts against a bucket of its own, and tells the first for which it has too little.
func replay(starts []start, rate, burst bucket.Amount) string {
	sorted := append([]start{}, starts...)
	for i := range sorted {
		for j := i; j > 0 && sorted[j].at < sorted[j-1].at; j-- {
			sorted[j], sorted[j-1] = sorted[j-1], sorted[j]
		}
	}
	level, last := burst*1000, bucket.Millis(0) // thousandths
	for _, s := range sorted {
		level = min(burst*1000, level+bucket.Amount(s.at-last)*rate)
		last = s.at
		if level -= s.n * 1000; level < 0 {
			return s.id + " starts before there is room for it"
		}
	}
	return ""
}
