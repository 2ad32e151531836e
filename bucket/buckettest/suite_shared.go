package buckettest

import (
	"fmt"

	"github.com/emmer-proxy/emmer/bucket"
)

// slowPool is 100 for two classes and 10 reserved for the gateway's people. It gives nothing back
// within a test.
func slowPool() *bucket.Pool {
	return &bucket.Pool{Rate: 10, Per: bucket.MaxPer, Burst: 100, Shares: []bucket.Share{
		{Name: "interactive", Rate: 7, Burst: 70, Borrow: true},
		{Name: "batch", Rate: 3, Burst: 30, Borrow: true},
		{Name: "admin", Rate: 1, Burst: 10, Reserved: true, Borrow: true},
	}}
}

func shared(p *bucket.Pool, class string) bucket.Limit {
	return bucket.Limit{Name: "provider", Entity: "someone", Kind: bucket.SharedBucket, Pool: p, Share: class}
}

var shareCases = []testCase{
	{"share/each class has its own", func(f *fixture) {
		p := slowPool()
		f.left(f.reserve(long(f.id(), each(70, shared(p, "interactive"))), bucket.Granted).Remaining, 0)
		f.reserve(long(f.id(), each(1, shared(p, "interactive"))), bucket.Denied)
		f.left(f.reserve(long(f.id(), each(30, shared(p, "batch"))), bucket.Granted).Remaining, 0)
		f.left(f.reserve(long(f.id(), each(10, shared(p, "admin"))), bucket.Granted).Remaining, 0)
		for _, class := range []string{"interactive", "batch", "admin"} {
			f.stands(shared(p, class), 0, 110)
		}
	}},
	{"share/what is in no share is for all who may borrow", func(f *fixture) {
		p := slowPool()
		p.Shares[0].Burst = 50 // 20 are spare
		p.Shares[1].Borrow = false
		f.stands(shared(p, "interactive"), 70, 0)
		f.stands(shared(p, "batch"), 30, 0)
		f.stands(shared(p, "admin"), 30, 0)
		f.stands(shared(p, "unlisted"), 20, 0)
		f.reserve(long(f.id(), each(60, shared(p, "interactive"))), bucket.Granted)
		f.stands(shared(p, "admin"), 20, 60)
		f.stands(shared(p, "unlisted"), 10, 60)
		f.reserve(long(f.id(), each(10, shared(p, "unlisted"))), bucket.Granted)
		f.stands(shared(p, "interactive"), 0, 70)
		f.stands(shared(p, "admin"), 10, 70)
		f.stands(shared(p, "batch"), 30, 70)
	}},
	{"share/what is reserved is nobody else's", func(f *fixture) {
		p := slowPool()
		f.reserve(long(f.id(), each(70, shared(p, "interactive"))), bucket.Granted)
		f.reserve(long(f.id(), each(30, shared(p, "batch"))), bucket.Granted)
		for _, class := range []string{"interactive", "batch", "unlisted"} {
			f.reserve(long(f.id(), each(1, shared(p, class))), map[bool]bucket.Outcome{true: bucket.NeverFits, false: bucket.Denied}[class == "unlisted"])
		}
		f.left(f.reserve(long(f.id(), each(10, shared(p, "admin"))), bucket.Granted).Remaining, 0)
	}},
	{"share/a refund goes back where it came from, the borrowed first", func(f *fixture) {
		p := slowPool()
		p.Shares[0].Burst = 50
		q := long(f.id(), each(65, shared(p, "interactive"))) // 50 of its own and 15 of the spare
		f.reserve(q, bucket.Granted)
		f.stands(shared(p, "unlisted"), 5, 65)
		f.settle(q.ID, 0, each(55, shared(p, "interactive")), bucket.SettledLive)
		f.stands(shared(p, "unlisted"), 15, 0)
		f.stands(shared(p, "interactive"), 15, 0)
		q = long(f.id(), each(12, shared(p, "interactive")))
		f.reserve(q, bucket.Granted)
		f.settle(q.ID, 0, each(0, shared(p, "interactive")), bucket.SettledLive)
		f.stands(shared(p, "unlisted"), 15, 0)
	}},
	{"share/an overrun is the class's own debt", func(f *fixture) {
		p := slowPool()
		q := long(f.id(), each(60, shared(p, "interactive")))
		f.reserve(q, bucket.Granted)
		f.left(f.settle(q.ID, 0, each(100, shared(p, "interactive")), bucket.SettledLive).Remaining, -30)
		f.stands(shared(p, "batch"), 30, 0)
		f.stands(shared(p, "admin"), 10, 0)
	}},
	{"share/an ended lease gives back to its class and to the spare", func(f *fixture) {
		p := slowPool()
		p.Shares[0].Burst = 50
		q := short(f.id(), each(65, shared(p, "interactive")))
		f.reserve(q, bucket.Granted)
		f.s.Pass(3)
		f.stands(shared(p, "interactive"), 70, 0)
		f.stands(shared(p, "unlisted"), 20, 0)
		f.settle(q.ID, 0, each(60, shared(p, "interactive")), bucket.SettledLate)
		f.stands(shared(p, "unlisted"), 10, 0)
	}},
	{"share/a late renew takes from what there is now", func(f *fixture) {
		p := slowPool()
		p.Shares[0].Burst = 50
		q := short(f.id(), each(60, shared(p, "interactive")))
		f.reserve(q, bucket.Granted)
		f.s.Pass(3)
		f.reserve(long(f.id(), each(15, shared(p, "unlisted"))), bucket.Granted)
		f.renew(q.ID, q.Items, bucket.RenewedLate)
		f.stands(shared(p, "interactive"), -5, 75)
		f.stands(shared(p, "batch"), 30, 75)
	}},
	{"share/extend takes the own first, then the spare", func(f *fixture) {
		p := slowPool()
		p.Shares[0].Burst = 50
		l := shared(p, "interactive")
		q := long(f.id(), each(40, l))
		f.reserve(q, bucket.Granted)
		f.left(f.extend(q.ID, each(60, l), bucket.Extended).Remaining, 10)
		f.stands(shared(p, "unlisted"), 10, 60)
		f.left(f.extend(q.ID, each(71, l), bucket.ExtendDenied).Remaining, 10)
		f.left(f.settle(q.ID, 0, each(45, l), bucket.SettledLive).Remaining, 25)
		f.stands(shared(p, "unlisted"), 20, 0)
	}},
	{"share/a replay gets the same figures", func(f *fixture) {
		p := slowPool()
		q := long(f.id(), each(40, shared(p, "interactive")))
		f.reserve(q, bucket.Granted)
		f.left(f.reserve(q, bucket.Replayed).Remaining, 30)
		f.stands(shared(p, "interactive"), 30, 40)
	}},
	{"share/class names of any text are apart", func(f *fixture) {
		p := &bucket.Pool{Rate: 1, Per: bucket.MaxPer, Burst: 1000}
		names := []string{"a", "a:b", "a+b", "*", "~a", "0", "é", "a|b"}
		for i, name := range names {
			p.Shares = append(p.Shares, bucket.Share{Name: name, Burst: 10 + bucket.Amount(i)})
		}
		for i, name := range names {
			f.left(f.reserve(long(f.id(), each(1, shared(p, name))), bucket.Granted).Remaining, 9+bucket.Amount(i))
		}
	}},
	{"share/a queue promises the class's own, not what others may want back", func(f *fixture) {
		p := slowPool()
		l := shared(p, "batch")
		f.reserve(long(f.id(), each(30, l)), bucket.Granted)
		r, err := f.s.Reserve(queued(f.id(), 9*day, each(3, l)))
		f.must(err)
		f.about(r, day) // three a day
		// Another class doesn't wait behind it.
		if r := f.reserve(long(f.id(), each(70, shared(p, "interactive"))), bucket.Granted); r.Start != 0 {
			f.Errorf("%+v", r)
		}
		f.reserve(long(f.id(), each(1, l)), bucket.Denied)
	}},
	{"share/a class with nothing of its own can't be queued", func(f *fixture) {
		p := slowPool()
		p.Burst = 105
		f.reserve(long(f.id(), each(5, shared(p, "unlisted"))), bucket.Granted)
		f.reserve(queued(f.id(), 9*day, each(1, shared(p, "unlisted"))), bucket.Denied)
	}},
	{"share/more than a class can ever have", func(f *fixture) {
		p := slowPool()
		f.reserve(long(f.id(), each(31, shared(p, "batch"))), bucket.NeverFits)
		p.Burst = 120
		f.reserve(long(f.id(), each(31, shared(p, "batch"))), bucket.Granted)
	}},
}

// busy lets classes ask for single units as often as they can for a while, in turn, and returns what
// each was granted.
func (f *fixture) busy(p *bucket.Pool, classes []string, from, d, step bucket.Millis) map[string]int {
	f.Helper()
	granted := map[string]int{}
	for at := from; at < from+d; at += step {
		f.clock.SetTime(at)
		for more := true; more; {
			more = false
			for _, class := range classes {
				q := short(f.id(), each(1, shared(p, class)))
				q.Items[0].Limit.Lost = bucket.Charge
				r, err := f.s.Reserve(q)
				f.must(err)
				if r.Outcome == bucket.Granted {
					granted[class]++
					more = true
				}
			}
		}
	}
	return granted
}

// seventyThirty gives 100 a second to two classes, and 5 to admin.
func seventyThirty() *bucket.Pool {
	return &bucket.Pool{Rate: 100, Per: second, Burst: 20, Shares: []bucket.Share{
		{Name: "interactive", Rate: 70, Burst: 12, Borrow: true},
		{Name: "batch", Rate: 30, Burst: 8, Borrow: true},
		{Name: "admin", Rate: 5, Burst: 5, Reserved: true},
	}}
}

func within(got, want, percent int) bool {
	return 100*got >= (100-percent)*want && 100*got <= (100+percent)*want
}

var drivenShareCases = []testCase{
	{"share/70 and 30, both busy: each gets its share", func(f *fixture) {
		for _, order := range [][]string{{"interactive", "batch"}, {"batch", "interactive"}} {
			p := seventyThirty()
			f.busy(p, order, f.s.Now(), second, 50) // the bursts
			got := f.busy(p, order, f.s.Now()+50, 10*second, 50)
			if !within(got["interactive"], 700, 3) || !within(got["batch"], 300, 3) {
				f.Errorf("%v of 1000", got)
			}
		}
	}},
	{"share/one idle: the other gets all", func(f *fixture) {
		for _, class := range []string{"interactive", "batch"} {
			p := seventyThirty()
			f.busy(p, []string{class}, f.s.Now(), second, 50)
			got := f.busy(p, []string{class}, f.s.Now()+50, 10*second, 50)
			if !within(got[class], 1000, 3) {
				f.Errorf("%v of 1000", got)
			}
			// Who comes back finds a share of its own, and the other keeps its own part.
			got = f.busy(p, []string{"batch", "interactive"}, f.s.Now()+50, 10*second, 50)
			if !within(got["interactive"], 700, 5) || !within(got["batch"], 300, 5) {
				f.Errorf("%v of 1000", got)
			}
			f.clock.SetTime(f.s.Now() + hour)
		}
	}},
	{"share/admin is never refused within its rate while others saturate", func(f *fixture) {
		p := seventyThirty()
		all := 0
		for range 100 {
			got := f.busy(p, []string{"interactive", "batch"}, f.s.Now()+200, 1, 1)
			all += got["interactive"] + got["batch"]
			f.must(f.grant(long(f.id(), each(1, shared(p, "admin")))))
		}
		if all > 20*100+40 {
			f.Errorf("the others got %d in 20 s", all)
		}
	}},
	{"share/a class with a burst of its own may use it", func(f *fixture) {
		p := &bucket.Pool{Rate: 100, Per: second, Burst: 100, Shares: []bucket.Share{
			{Name: "interactive", Rate: 70, Burst: 40, Borrow: true},
			{Name: "batch", Rate: 30, Burst: 60, Borrow: true},
		}}
		f.busy(p, []string{"interactive", "batch"}, f.s.Now(), 1, 1)
		// Batch is quiet for two seconds while the other is busy, then it has sixty at once.
		f.busy(p, []string{"interactive"}, f.s.Now()+10, 3*second, 10)
		if r := f.reserve(long(f.id(), each(60, shared(p, "batch"))), bucket.Granted); r.Remaining[0] != 0 {
			f.Errorf("%+v", r)
		}
	}},
	{"share/the whole never gives more than its rate and burst", func(f *fixture) {
		p := seventyThirty()
		from := f.s.Now()
		all := 0
		for i := range 400 {
			class := []string{"interactive", "batch", "unlisted"}[i*i%7%3]
			f.clock.SetTime(from + bucket.Millis(i*13))
			q := short(f.id(), each(bucket.Amount(1+i%5), shared(p, class)))
			q.Items[0].Limit.Lost = bucket.Charge
			if r, err := f.s.Reserve(q); err == nil && r.Outcome == bucket.Granted {
				all += 1 + i%5
			}
			if most := 20 + 100*(i*13)/1000; all > most {
				f.Fatalf("%d of at most %d after %d ms", all, most, i*13)
			}
		}
		if all < 500 {
			f.Errorf("only %d", all)
		}
	}},
	{"share/the retry of a class is true", func(f *fixture) {
		p := seventyThirty()
		for i := range 40 {
			n := bucket.Amount(1 + i%8)
			q := short(fmt.Sprint("r", i), each(n, shared(p, "batch")))
			q.Items[0].Limit.Lost = bucket.Charge
			r, err := f.s.Reserve(q)
			f.must(err)
			if r.Outcome == bucket.Granted {
				continue
			}
			f.s.Pass(r.Retry - 1)
			if again, err := f.s.Reserve(short(f.id(), q.Items)); err != nil || again.Outcome != bucket.Denied || again.Retry != 1 {
				f.Errorf("1 ms before: %+v, %v", again, err)
			}
			f.s.Pass(1)
			f.must(f.grant(short(f.id(), q.Items)))
		}
	}},
}
