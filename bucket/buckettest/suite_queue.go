package buckettest

import (
	"fmt"

	"github.com/emmer-proxy/emmer/bucket"
)

const day = 24 * hour

// queued is a request that may wait in its buckets.
func queued(id string, wait bucket.Millis, items []bucket.Item) bucket.ReserveRequest {
	for i := range items {
		items[i].Queue = wait
	}
	return long(id, items)
}

// about checks that a start is so far away, give or take the minute that a test may take.
func (f *fixture) about(r bucket.ReserveReply, wait bucket.Millis) {
	f.Helper()
	if d := r.Start - r.Now - wait; r.Start == 0 || d > 60*second || d < -60*second {
		f.Errorf("start %d is %d ms from now, want about %d", r.Start, r.Start-r.Now, wait)
	}
}

var queueCases = []testCase{
	{"queue/who fits starts at once", func(f *fixture) {
		b := slow("b", 10)
		if r := f.reserve(queued(f.id(), day, each(10, b)), bucket.Granted); r.Start != 0 {
			f.Errorf("%+v", r)
		}
	}},
	{"queue/who doesn't is given a start, and the bucket is booked at once", func(f *fixture) {
		b := slow("b", 10)
		f.reserve(long(f.id(), each(10, b)), bucket.Granted)
		for i := range bucket.Millis(3) {
			r := queued(f.id(), 4*day, each(1, b))
			got, err := f.s.Reserve(r)
			f.must(err)
			f.about(got, (i+1)*day)
			if got.Outcome != bucket.Granted || got.Deadline < got.Start+hour {
				f.Errorf("%+v: a lease counts from the start", got)
			}
			f.left(got.Remaining, -1-bucket.Amount(i))
		}
	}},
	{"queue/no longer than it may, and then the retry is when it could be queued", func(f *fixture) {
		b := slow("b", 10)
		b.Lost = bucket.Charge
		f.reserve(long(f.id(), each(10, b)), bucket.Granted)
		r := f.reserve(queued(f.id(), day/2, each(1, b)), bucket.Denied)
		if d := r.Retry - day/2; d > 60*second || d < -60*second {
			f.Errorf("%+v", r)
		}
		f.stands(b, 0, 10)
	}},
	{"queue/nobody starts before the last one parked", func(f *fixture) {
		b := slow("b", 10)
		f.reserve(long(f.id(), each(10, b)), bucket.Granted)
		first, second := queued(f.id(), 9*day, each(1, b)), queued(f.id(), 9*day, each(3, b))
		f.must(f.grant(first))
		f.must(f.grant(second))
		f.settle(first.ID, 0, each(0, b), bucket.SettledLive)
		f.stands(b, -3, 13)
		r, err := f.s.Reserve(queued(f.id(), 9*day, each(1, b)))
		f.must(err)
		f.about(r, 4*day) // one less is booked, but the last one starts in four days
	}},
	{"queue/an abandoned place gives all back at once", func(f *fixture) {
		b := slow("b", 10)
		f.reserve(long(f.id(), each(10, b)), bucket.Granted)
		q := queued(f.id(), 9*day, each(5, b))
		f.must(f.grant(q))
		f.left(f.settle(q.ID, 0, each(0, b), bucket.SettledLive).Remaining, 0)
		r, err := f.s.Reserve(queued(f.id(), 9*day, each(1, b)))
		f.must(err)
		f.about(r, day) // nobody is parked any more
	}},
	{"queue/who may not wait is refused while others do", func(f *fixture) {
		b := slow("b", 10)
		f.reserve(long(f.id(), each(10, b)), bucket.Granted)
		q := queued(f.id(), 9*day, each(3, b))
		f.must(f.grant(q))
		early := long(f.id(), each(10, b))
		f.settle("id-1", 0, each(0, b), bucket.SettledLive) // there is room again
		f.stands(b, 7, 3)
		r, err := f.s.Reserve(long(f.id(), each(1, b)))
		f.must(err)
		if d := r.Retry - 3*day; r.Outcome != bucket.Denied || d > 60*second || d < -60*second {
			f.Errorf("%+v", r)
		}
		f.settle(q.ID, 0, each(0, b), bucket.SettledLive)
		f.reserve(early, bucket.Granted)
	}},
	{"queue/nothing waits for nothing", func(f *fixture) {
		b := slow("b", 10)
		f.reserve(long(f.id(), each(10, b)), bucket.Granted)
		f.must(f.grant(queued(f.id(), 9*day, each(3, b))))
		if r := f.reserve(long(f.id(), each(0, b)), bucket.Granted); r.Start != 0 {
			f.Errorf("%+v", r)
		}
	}},
	{"queue/more than the burst never fits", func(f *fixture) {
		b := slow("b", 10)
		f.reserve(queued(f.id(), 99*day, each(11, b)), bucket.NeverFits)
	}},
	{"queue/windows and slots make nobody wait", func(f *fixture) {
		for _, l := range []bucket.Limit{f.hourly("w", 10), rolling("r", 10, 10*hour, hour), slots("c", 10)} {
			f.reserve(queued(f.id(), day, each(10, l)), bucket.Granted)
			f.reserve(queued(f.id(), day, each(1, l)), bucket.Denied)
		}
	}},
	{"queue/the rest is booked with it", func(f *fixture) {
		b, w, c := slow("b", 10), f.hourly("w", 100), slots("c", 5)
		f.reserve(long(f.id(), each(10, b)), bucket.Granted)
		q := queued(f.id(), 9*day, each(1, b, w, c))
		f.must(f.grant(q))
		f.stands(w, 99, 1)
		f.stands(c, 4, 1)
		f.settle(q.ID, 0, each(0, b, w, c), bucket.SettledLive)
		f.stands(w, 100, 0)
		f.stands(c, 5, 0)
	}},
	{"queue/a replay has the same start", func(f *fixture) {
		b := slow("b", 10)
		f.reserve(long(f.id(), each(10, b)), bucket.Granted)
		q := queued(f.id(), 9*day, each(2, b))
		first, err := f.s.Reserve(q)
		f.must(err)
		again := f.reserve(q, bucket.Replayed)
		if again.Start != first.Start || again.Deadline != first.Deadline {
			f.Errorf("%+v, then %+v", first, again)
		}
		f.left(again.Remaining, first.Remaining...)
		f.stands(b, -2, 12)
	}},
	{"queue/a renew while parked keeps the place", func(f *fixture) {
		b := slow("b", 10)
		f.reserve(long(f.id(), each(10, b)), bucket.Granted)
		q := queued(f.id(), 9*day, each(2, b))
		first, err := f.s.Reserve(q)
		f.must(err)
		r, err := f.s.Renew(bucket.RenewRequest{ID: q.ID, Lease: 5 * day, Keep: hour, Cell: 1000, Items: q.Items})
		f.must(err)
		if r.Outcome != bucket.Renewed || r.Deadline <= first.Deadline {
			f.Errorf("%+v", r)
		}
		if again := f.reserve(q, bucket.Replayed); again.Start != first.Start {
			f.Errorf("%+v", again)
		}
		f.left(f.settle(q.ID, 0, each(0, b), bucket.SettledLive).Remaining, 0)
		next, err := f.s.Reserve(queued(f.id(), 9*day, each(1, b)))
		f.must(err)
		f.about(next, day)
	}},
	{"queue/a running call's extension doesn't wait", func(f *fixture) {
		b := slow("b", 10)
		running := long(f.id(), each(5, b))
		f.reserve(running, bucket.Granted)
		other := long(f.id(), each(5, b))
		f.reserve(other, bucket.Granted)
		f.must(f.grant(queued(f.id(), 9*day, each(1, b))))
		f.extend(running.ID, each(6, b), bucket.ExtendDenied)
		f.settle(other.ID, 0, each(0, b), bucket.SettledLive)
		f.extend(running.ID, each(6, b), bucket.Extended)
	}},
}

func (f *fixture) grant(q bucket.ReserveRequest) error {
	r, err := f.s.Reserve(q)
	if err == nil && r.Outcome != bucket.Granted {
		err = fmt.Errorf("%s: %+v", q.ID, r)
	}
	return err
}

var shadowCases = []testCase{
	{"shadow/never denies, and books into the negative", func(f *fixture) {
		b, w, r, c := slow("b", 10), f.hourly("w", 10), rolling("r", 10, 10*hour, hour), slots("c", 10)
		items := each(7, b, w, r, c)
		for i := range items {
			items[i].Shadow = true
		}
		f.left(f.reserve(long(f.id(), items), bucket.Granted).Remaining, 3, 3, 3, 3)
		f.left(f.reserve(long(f.id(), items), bucket.Granted).Remaining, -4, -4, -4, -4)
		for i := range items {
			items[i].Amount = 1000
		}
		q := long(f.id(), items)
		f.left(f.reserve(q, bucket.Granted).Remaining, -1004, -1004, -1004, -1004)
		f.settle(q.ID, 0, items, bucket.SettledLive)
		f.stands(b, -1004, 14)
		f.stands(c, -4, 14)
	}},
	{"shadow/beside one that denies nothing is booked", func(f *fixture) {
		b, w := slow("b", 10), f.hourly("w", 5)
		r := f.reserve(long(f.id(), []bucket.Item{{Limit: b, Amount: 50, Shadow: true}, {Limit: w, Amount: 6}}), bucket.NeverFits)
		if r.By != 1 {
			f.Errorf("%+v", r)
		}
		f.stands(b, 10, 0)
	}},
	{"shadow/an extension is not denied either", func(f *fixture) {
		b := slow("b", 10)
		items := []bucket.Item{{Limit: b, Amount: 5, Shadow: true}}
		q := long(f.id(), items)
		f.reserve(q, bucket.Granted)
		items[0].Amount = 30
		f.left(f.extend(q.ID, items, bucket.Extended).Remaining, -20)
	}},
	{"shadow/of a class in a shared bucket", func(f *fixture) {
		p := slowPool()
		a := shared(p, "interactive")
		items := []bucket.Item{{Limit: a, Amount: 150, Shadow: true}}
		f.left(f.reserve(long(f.id(), items), bucket.Granted).Remaining, -80)
		f.stands(shared(p, "batch"), 30, 150)
	}},
	{"shadow/makes nobody wait", func(f *fixture) {
		b := slow("b", 10)
		items := []bucket.Item{{Limit: b, Amount: 30, Shadow: true, Queue: day}}
		if r := f.reserve(long(f.id(), items), bucket.Granted); r.Start != 0 {
			f.Errorf("%+v", r)
		}
	}},
}
