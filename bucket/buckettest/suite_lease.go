package buckettest

import "github.com/emmer-proxy/emmer/bucket"

var leaseCases = []testCase{
	{"an ended lease is refunded or charged, as its limit says", func(f *fixture) {
		b, w := slow("b", 100), f.hourly("w", 100)
		cb, cw := slow("cb", 100), f.hourly("cw", 100)
		cb.Lost, cw.Lost = bucket.Charge, bucket.Charge
		f.left(f.reserve(short(f.id(), each(30, b, w, cb, cw)), bucket.Granted).Remaining, 70, 70, 70, 70)
		f.s.Pass(3)
		f.stands(b, 100, 0)
		f.stands(w, 100, 0)
		f.stands(cb, 70, 0)
		f.stands(cw, 70, 0)
		f.left(f.reserve(long(f.id(), each(10, b, w, cb, cw)), bucket.Granted).Remaining, 90, 90, 60, 60)
	}},
	{"a late settle books what was used", func(f *fixture) {
		b, w := slow("b", 100), f.hourly("w", 100)
		cb, cw := slow("cb", 100), f.hourly("cw", 100)
		cb.Lost, cw.Lost = bucket.Charge, bucket.Charge
		q := short(f.id(), each(30, b, w, cb, cw))
		r := f.reserve(q, bucket.Granted)
		f.s.Pass(3)
		f.left(f.settle(q.ID, r.Deadline, each(12, b, w, cb, cw), bucket.SettledLate).Remaining, 88, 88, 88, 88)
		f.settle(q.ID, r.Deadline, each(12, b, w, cb, cw), bucket.SettledDuplicate)
		f.stands(b, 88, 0)
		f.stands(cw, 88, 0)
		q = short(f.id(), each(30, b, w, cb, cw))
		f.reserve(q, bucket.Granted)
		f.s.Pass(3)
		f.left(f.settle(q.ID, 0, each(50, b, w, cb, cw), bucket.SettledLate).Remaining, 38, 38, 38, 38)
	}},
	{"what a lease gives back ends a denial", func(f *fixture) {
		b, w := slow("b", 100), f.hourly("w", 100)
		// The far lease alone is not enough, and the near one is.
		f.reserve(long(f.id(), each(40, b, w)), bucket.Granted)
		q := long(f.id(), each(60, b, w))
		q.Lease, q.Cell = 40, 1
		near := f.reserve(q, bucket.Granted)
		r, err := f.s.Reserve(long(f.id(), each(60, b, w)))
		f.must(err)
		if r.Outcome == bucket.Denied {
			if r.Now+r.Retry != near.Deadline {
				f.Errorf("retry at %d, the lease ends at %d", r.Now+r.Retry, near.Deadline)
			}
			f.s.Pass(r.Retry)
			f.reserve(long(f.id(), each(60, b, w)), bucket.Granted)
		} else if r.Now < near.Deadline { // a slow machine may have taken the 40 ms to get here
			f.Errorf("%+v before %d", r, near.Deadline)
		}
	}},
	{"renew moves the deadline", func(f *fixture) {
		b, w := slow("b", 100), f.hourly("w", 100)
		q := long(f.id(), each(30, b, w))
		q.Lease = hour / 2
		first := f.reserve(q, bucket.Granted)
		r := f.renew(q.ID, q.Items, bucket.Renewed)
		if r.Deadline < first.Deadline+hour/4 || r.Deadline < r.Now+hour {
			f.Errorf("deadline %d, then %d at %d", first.Deadline, r.Deadline, r.Now)
		}
		f.stands(b, 70, 30)
		f.stands(w, 70, 30)
		replay := f.reserve(q, bucket.Replayed)
		if replay.Deadline != r.Deadline {
			f.Errorf("a replay says %d, not %d", replay.Deadline, r.Deadline)
		}
		f.left(replay.Remaining, 70, 70)
		f.left(f.settle(q.ID, first.Deadline, each(10, b, w), bucket.SettledLive).Remaining, 90, 90)
		f.stands(b, 90, 0)
	}},
	{"renew to an earlier deadline changes nothing", func(f *fixture) {
		b := slow("b", 100)
		q := long(f.id(), each(30, b))
		q.Lease = 5 * hour
		first := f.reserve(q, bucket.Granted)
		if r := f.renew(q.ID, q.Items, bucket.Renewed); r.Deadline != first.Deadline {
			f.Errorf("deadline %d, then %d", first.Deadline, r.Deadline)
		}
		f.stands(b, 70, 30)
	}},
	{"a late renew takes again, even into debt", func(f *fixture) {
		b, w := slow("b", 100), f.hourly("w", 100)
		cb, cw := slow("cb", 200), f.hourly("cw", 200)
		cb.Lost, cw.Lost = bucket.Charge, bucket.Charge
		q := short(f.id(), each(80, b, w, cb, cw))
		f.reserve(q, bucket.Granted)
		f.s.Pass(3)
		f.reserve(long(f.id(), each(90, b, w, cb, cw)), bucket.Granted)
		f.renew(q.ID, q.Items, bucket.RenewedLate)
		f.stands(b, -70, 170)
		f.stands(w, -70, 170)
		f.stands(cb, 30, 170) // it had stayed spent
		f.stands(cw, 30, 170)
		f.left(f.settle(q.ID, 0, each(80, b, w, cb, cw), bucket.SettledLive).Remaining, -70, -70, 30, 30)
	}},
	{"renew of what is settled or unknown", func(f *fixture) {
		b := slow("b", 100)
		q := long(f.id(), each(30, b))
		f.renew(q.ID, q.Items, bucket.RenewUnknown)
		f.reserve(q, bucket.Granted)
		f.settle(q.ID, 0, each(5, b), bucket.SettledLive)
		f.renew(q.ID, q.Items, bucket.RenewSettled)
		f.stands(b, 95, 0)
	}},
	{"a clock that goes back refills nothing twice", func(f *fixture) {
		driven, ok := f.s.(interface{ SetTime(bucket.Millis) })
		if !ok {
			return // a real clock can't be turned
		}
		b := bucket.Limit{Name: "b", Kind: bucket.TokenBucket, Rate: 4, Per: second, Burst: 4}
		w := f.hourly("w", 4)
		start := f.s.Now()
		granted := 0
		for _, at := range []bucket.Millis{0, -second, 0, -second, 0} {
			driven.SetTime(start + at)
			for range 4 {
				r, err := f.s.Reserve(long(f.id(), each(1, b, w)))
				f.must(err)
				if r.Outcome == bucket.Granted {
					granted++
				}
				if r.Now < start {
					f.Errorf("the store's clock went back to %d", r.Now-start)
				}
			}
		}
		if granted != 4 {
			f.Errorf("%d were granted", granted)
		}
	}},
}
