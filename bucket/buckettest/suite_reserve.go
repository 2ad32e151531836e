package buckettest

import (
	"strings"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
)

var reserveCases = []testCase{
	{"grants until nothing is left", func(f *fixture) {
		b, w := slow("b", 10_000), f.hourly("w", 10_000)
		for i := bucket.Amount(1); i <= 10; i++ {
			f.left(f.reserve(long(f.id(), each(1000, b, w)), bucket.Granted).Remaining, 10_000-1000*i, 10_000-1000*i)
		}
		f.left(f.reserve(long(f.id(), each(1, b, w)), bucket.Denied).Remaining, 0, 0)
		f.stands(b, 0, 10_000)
		f.stands(w, 0, 10_000)
	}},
	{"all or none", func(f *fixture) {
		rich, poor, after := slow("rich", 100), slow("poor", 30), f.hourly("after", 100)
		r := f.reserve(long(f.id(), each(31, rich, poor, after)), bucket.NeverFits)
		if r.By != 1 || r.Retry != 0 {
			f.Errorf("%+v", r)
		}
		f.reserve(long(f.id(), each(20, rich, poor, after)), bucket.Granted)
		r = f.reserve(long(f.id(), each(20, rich, poor, after)), bucket.Denied)
		if r.By != 1 {
			f.Errorf("denied by %d", r.By)
		}
		f.left(r.Remaining, 80, 10, 80)
		f.stands(rich, 80, 20)
		f.stands(after, 80, 20)
	}},
	{"no limits at all", func(f *fixture) {
		q := long(f.id(), nil)
		f.reserve(q, bucket.Granted)
		f.reserve(q, bucket.Replayed)
		f.settle(q.ID, 0, nil, bucket.SettledLive)
		f.reserve(q, bucket.Settled)
	}},
	{"zero always fits", func(f *fixture) {
		b := slow("b", 10)
		f.settle(f.id(), 0, each(25, b), bucket.SettledUnknown)
		f.left(f.reserve(long(f.id(), each(0, b)), bucket.Granted).Remaining, -15)
		f.reserve(long(f.id(), each(1, b)), bucket.Denied)
	}},
	{"a denial examines every limit and names the latest", func(f *fixture) {
		quick := bucket.Limit{Name: "quick", Kind: bucket.TokenBucket, Rate: 1, Per: 10, Burst: 10}
		day, hourly := slow("day", 10), f.hourly("hour", 10)
		f.reserve(long(f.id(), each(10, quick, day, hourly)), bucket.Granted)
		r := f.reserve(long(f.id(), each(1, quick, day, hourly)), bucket.Denied)
		// The window is full again in half an hour; the bucket has a token after a day, but its lease
		// ends after an hour and would give ten back.
		if r.By != 1 || r.Retry < hour-second || r.Retry > hour+second {
			f.Errorf("%+v", r)
		}
		r = f.reserve(long(f.id(), each(1, hourly, quick)), bucket.Denied)
		if r.By != 0 || r.Now+r.Retry != hourly.Bounds[2] {
			f.Errorf("%+v, the period ends at %d", r, hourly.Bounds[2])
		}
		// What can never fit wins over what must wait.
		r = f.reserve(long(f.id(), []bucket.Item{{Limit: hourly, Amount: 5}, {Limit: quick, Amount: 11}}), bucket.NeverFits)
		if r.By != 1 {
			f.Errorf("%+v", r)
		}
	}},
	{"the retry time is true", func(f *fixture) {
		b := bucket.Limit{Name: "b", Kind: bucket.TokenBucket, Rate: 3, Per: 50, Burst: 10, Lost: bucket.Charge}
		f.settle(f.id(), 0, each(12, b), bucket.SettledUnknown) // at most two in debt
		r := f.reserve(long(f.id(), each(1, b)), bucket.Denied)
		if r.Retry > 50 {
			f.Errorf("three tokens take 50 ms, not %d", r.Retry)
		}
		if _, driven := f.s.(interface{ SetTime(bucket.Millis) }); driven {
			f.s.Pass(r.Retry - 1)
			if again := f.reserve(long(f.id(), each(1, b)), bucket.Denied); again.Retry != 1 {
				f.Errorf("1 ms before, retry is %d", again.Retry)
			}
			f.s.Pass(1)
		} else {
			f.s.Pass(r.Retry)
		}
		f.reserve(long(f.id(), each(1, b)), bucket.Granted)
	}},
	{"a bucket refills no further than its burst", func(f *fixture) {
		b := bucket.Limit{Name: "b", Kind: bucket.TokenBucket, Rate: 100, Per: 1, Burst: 50}
		f.reserve(long(f.id(), each(50, b)), bucket.Granted)
		f.s.Pass(3)
		f.stands(b, 50, 50)
	}},
	{"a replay gets the same figures and takes nothing", func(f *fixture) {
		b, w := slow("b", 100), f.hourly("w", 100)
		q := long(f.id(), []bucket.Item{{Limit: b, Amount: 30}, {Limit: w, Amount: 40}})
		first := f.reserve(q, bucket.Granted)
		f.reserve(long(f.id(), each(10, b, w)), bucket.Granted)
		again := f.reserve(q, bucket.Replayed)
		f.left(again.Remaining, 70, 60)
		if again.Deadline != first.Deadline {
			f.Errorf("deadline %d, then %d", first.Deadline, again.Deadline)
		}
		f.stands(b, 60, 40)
		f.stands(w, 50, 50)
	}},
	{"an id whose lease has ended is used up", func(f *fixture) {
		b := slow("b", 100)
		q := short(f.id(), each(30, b))
		f.reserve(q, bucket.Granted)
		f.s.Pass(3)
		f.reserve(q, bucket.Settled)
		f.stands(b, 100, 0)
	}},
	{"changed settings keep what was used", func(f *fixture) {
		b, w := slow("b", 100), f.hourly("w", 100)
		f.settle(f.id(), 0, each(70, b, w), bucket.SettledUnknown)
		b.Burst, w.Max = 50, 50
		f.stands(b, -20, 0)
		f.stands(w, -20, 0)
		r := f.reserve(long(f.id(), each(1, b, w)), bucket.Denied)
		f.left(r.Remaining, -20, -20)
		b.Burst, w.Max = 200, 200
		b.Rate, b.Per = 1, 1_000_000 // another scale
		f.stands(b, 130, 0)
		f.left(f.reserve(long(f.id(), each(30, b, w)), bucket.Granted).Remaining, 100, 100)
	}},
	{"a raised rate holds though every call is denied", func(f *fixture) {
		b := slow("b", 10)
		f.settle(f.id(), 0, each(12, b), bucket.SettledUnknown)
		f.reserve(long(f.id(), each(1, b)), bucket.Denied)
		b.Rate, b.Per = 1, 2
		r := f.reserve(long(f.id(), each(1, b)), bucket.Denied)
		if r.Retry > 6 {
			f.Errorf("three tokens take 6 ms, not %d", r.Retry)
		}
		f.s.Pass(r.Retry)
		f.reserve(long(f.id(), each(1, b)), bucket.Granted)
	}},
	{"kill flags", func(f *fixture) {
		b := slow("b", 10)
		q := long(f.id(), each(1, b))
		q.Kills = []string{script.KillField("global", "all"), script.KillField("tenant", "acme"), script.KillField("model", "x/y:z")}
		f.must(f.s.SetKill(q.Kills[1], f.s.Now()-1, "op", "over"))
		f.reserve(q, bucket.Granted)
		f.must(f.s.SetKill(q.Kills[2], f.s.Now()+hour, "op", "x"))
		f.must(f.s.SetKill(q.Kills[1], 0, "ann", "spent | too much"))
		f.reserve(q, bucket.Replayed) // it was let through before
		q.ID = f.id()
		r := f.reserve(q, bucket.Killed)
		if r.By != 1 || r.Reason != "0|ann|spent | too much" || len(r.Remaining) != 0 {
			f.Errorf("%+v", r)
		}
		f.must(f.s.Resume(q.Kills[1]))
		if r = f.reserve(q, bucket.Killed); r.By != 2 || !strings.HasSuffix(r.Reason, "|op|x") {
			f.Errorf("%+v", r)
		}
		f.must(f.s.Resume(q.Kills[2]))
		f.stands(b, 9, 1)
		f.reserve(q, bucket.Granted)
	}},
	{"entities of any text are apart", func(f *fixture) {
		texts := []string{"", "a", "a:b", "a%3Ab", "A", "{a}", "}:ctl", "a\x00", "a\xff", "a\xfe", "é", strings.Repeat("x", 8000), strings.Repeat("x", 8001), "*", "a b"}
		for i, text := range texts {
			b, w := slow("b", 1000), f.hourly("w", 1000)
			b.Entity, w.Entity = text, text
			f.left(f.reserve(long(f.id(), each(bucket.Amount(i+1), b, w)), bucket.Granted).Remaining, 999-bucket.Amount(i), 999-bucket.Amount(i))
			b.Entity, b.Name = "b", text
			f.left(f.reserve(long("id"+text, each(1, b)), bucket.Granted).Remaining, 999)
		}
	}},
	{"figures up to 2^53-1 are exact", func(f *fixture) {
		b, w := slow("b", bucket.MaxAmount), f.hourly("w", bucket.MaxAmount)
		id := f.id()
		f.left(f.reserve(long(id, each(bucket.MaxAmount-1, b, w)), bucket.Granted).Remaining, 1, 1)
		f.left(f.settle(id, 0, each(bucket.MaxAmount-2, b, w), bucket.SettledLive).Remaining, 2, 2)
		f.left(f.reserve(long(f.id(), each(1, b, w)), bucket.Granted).Remaining, 1, 1)
		f.reserve(long(f.id(), each(2, b, w)), bucket.Denied)
	}},
	{"bounds that are not around the store's time are a fault", func(f *fixture) {
		for _, away := range []bucket.Millis{-24 * hour, 24 * hour} {
			w := f.hourly("w", 10)
			for i := range w.Bounds {
				w.Bounds[i] += away
			}
			if r, err := f.s.Reserve(long(f.id(), each(1, w))); err == nil {
				f.Errorf("%d ms away: %+v", away, r)
			}
		}
		f.stands(f.hourly("w", 10), 10, 0)
	}},
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}
