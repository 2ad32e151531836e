package buckettest

import "github.com/emmer-proxy/emmer/bucket"

var settleCases = []testCase{
	{"settle books the difference, once", func(f *fixture) {
		b, w := slow("b", 100), f.hourly("w", 100)
		q := long(f.id(), each(40, b, w))
		r := f.reserve(q, bucket.Granted)
		s := f.settle(q.ID, r.Deadline, []bucket.Item{{Limit: b, Amount: 10}, {Limit: w, Amount: 60}}, bucket.SettledLive)
		f.left(s.Remaining, 90, 40)
		for range 3 {
			if s := f.settle(q.ID, r.Deadline, each(10, b, w), bucket.SettledDuplicate); len(s.Remaining) != 0 {
				f.Errorf("%+v", s)
			}
		}
		f.stands(b, 90, 0)
		f.stands(w, 40, 0)
		f.reserve(q, bucket.Settled)
		f.stands(b, 90, 0)
	}},
	{"an overrun is debt", func(f *fixture) {
		b, w := slow("b", 100), f.hourly("w", 100)
		q := long(f.id(), each(40, b, w))
		f.reserve(q, bucket.Granted)
		f.left(f.settle(q.ID, 0, each(170, b, w), bucket.SettledLive).Remaining, -70, -70)
		f.left(f.reserve(long(f.id(), each(1, b, w)), bucket.Denied).Remaining, -70, -70)
	}},
	{"a cancel gives all back", func(f *fixture) {
		b, w := slow("b", 100), f.hourly("w", 100)
		q := long(f.id(), each(40, b, w))
		f.reserve(q, bucket.Granted)
		f.left(f.settle(q.ID, 0, each(0, b, w), bucket.SettledLive).Remaining, 100, 100)
		f.stands(b, 100, 0)
		f.stands(w, 100, 0)
	}},
	{"a cancel that comes first blocks its reserve", func(f *fixture) {
		b := slow("b", 100)
		q := long(f.id(), each(40, b))
		f.left(f.settle(q.ID, 0, each(0, b), bucket.SettledUnknown).Remaining, 100)
		f.reserve(q, bucket.Settled)
		f.settle(q.ID, 0, each(0, b), bucket.SettledDuplicate)
		f.stands(b, 100, 0)
	}},
	{"a settle without a record is booked in full, once", func(f *fixture) {
		b, w := slow("b", 100), f.hourly("w", 100)
		id, deadline := f.id(), f.s.Now()+hour
		f.left(f.settle(id, deadline, each(30, b, w), bucket.SettledUnknown).Remaining, 70, 70)
		f.settle(id, deadline, each(30, b, w), bucket.SettledDuplicate)
		f.stands(b, 70, 0)
		f.stands(w, 70, 0)
	}},
	{"a settle that comes too late books nothing", func(f *fixture) {
		b := slow("b", 100)
		q := short(f.id(), each(30, b))
		q.Keep = 1
		r := f.reserve(q, bucket.Granted)
		f.s.Pass(5)
		late := bucket.SettleRequest{ID: q.ID, Deadline: r.Deadline, Lease: 1, Keep: 1, Cell: 1, Items: each(30, b)}
		s, err := f.s.Settle(late)
		f.must(err)
		if s.Outcome != bucket.SettledTooOld || len(s.Remaining) != 0 {
			f.Errorf("%+v", s)
		}
		late.ID = f.id() // as where the record has been forgotten
		if s, err = f.s.Settle(late); err != nil || s.Outcome != bucket.SettledTooOld {
			f.Errorf("%+v, %v", s, err)
		}
		f.stands(b, 100, 0)
	}},
	{"other items than the reserve's are a fault", func(f *fixture) {
		b, c := slow("b", 100), slow("c", 100)
		q := long(f.id(), each(30, b, c))
		f.reserve(q, bucket.Granted)
		if r, err := f.s.Settle(bucket.SettleRequest{ID: q.ID, Lease: 1, Keep: hour, Cell: 1, Items: each(1, b)}); err == nil {
			f.Errorf("%+v", r)
		}
		f.stands(b, 70, 30)
		f.settle(q.ID, 0, each(30, b, c), bucket.SettledLive)
	}},
}

var windowCases = []testCase{
	{"a new period starts at nothing used", func(f *fixture) {
		w := f.hourly("w", 100)
		f.settle(f.id(), 0, each(130, w), bucket.SettledUnknown)
		f.stands(w, -30, 0)
		w = f.turned(w)
		f.stands(w, 100, 0)
		f.left(f.reserve(long(f.id(), each(100, w)), bucket.Granted).Remaining, 0)
	}},
	{"a settle names the period it reserved in", func(f *fixture) {
		old := f.hourly("w", 100)
		q := long(f.id(), each(80, old))
		f.reserve(q, bucket.Granted)
		w := f.turned(old)
		f.reserve(long(f.id(), each(90, w)), bucket.Granted)
		f.left(f.settle(q.ID, 0, each(20, w), bucket.SettledLive).Remaining, 10)
		f.stands(w, 10, 90)
	}},
	{"a late settle names the period it reserved in", func(f *fixture) {
		for _, lost := range []bucket.Lost{bucket.Refund, bucket.Charge} {
			old := f.hourly("w", 100)
			old.Lost, old.Entity = lost, string(rune('a'+lost))
			q := short(f.id(), each(80, old))
			f.reserve(q, bucket.Granted)
			w := f.turned(old)
			f.reserve(long(f.id(), each(90, w)), bucket.Granted)
			f.left(f.settle(q.ID, 0, each(99, w), bucket.SettledLate).Remaining, 10)
		}
	}},
	{"a lease that ends in the next period gives nothing to it", func(f *fixture) {
		old := f.hourly("w", 100)
		f.reserve(short(f.id(), each(80, old)), bucket.Granted)
		w := f.turned(old)
		f.left(f.reserve(long(f.id(), each(90, w)), bucket.Granted).Remaining, 10)
	}},
	{"of a period that is no longer kept, only an overrun is booked, in this one", func(f *fixture) {
		old := f.hourly("w", 100)
		less, more := long(f.id(), each(30, old)), long(f.id(), each(30, old))
		f.reserve(less, bucket.Granted)
		f.reserve(more, bucket.Granted)
		w := f.turned(f.turned(old))
		f.left(f.settle(less.ID, 0, each(10, w), bucket.SettledLive).Remaining, 100)
		f.left(f.settle(more.ID, 0, each(37, w), bucket.SettledLive).Remaining, 93)
	}},
	{"a settle with bounds of long ago is booked", func(f *fixture) {
		w := f.hourly("w", 100)
		q := long(f.id(), each(30, w))
		f.reserve(q, bucket.Granted)
		f.s.Pass(5)
		stale, now := w, f.s.Now()
		stale.Bounds = [4]bucket.Millis{w.Bounds[0], w.Bounds[1], now - 3, now - 2}
		f.settle(q.ID, 0, each(10, stale), bucket.SettledLive)
		f.settle(q.ID, 0, each(10, stale), bucket.SettledDuplicate)
	}},
	{"the period is chosen by the store's clock", func(f *fixture) {
		w := f.hourly("w", 100)
		now := f.s.Now()
		ahead, behind := w, w // of gateways whose clocks are an hour off
		ahead.Bounds = [4]bucket.Millis{w.Bounds[1], w.Bounds[2], w.Bounds[3], w.Bounds[3] + hour}
		behind.Bounds = [4]bucket.Millis{w.Bounds[0] - hour, w.Bounds[0], w.Bounds[1], w.Bounds[2]}
		for i, l := range []bucket.Limit{w, ahead, behind} {
			f.left(f.reserve(long(f.id(), each(30, l)), bucket.Granted).Remaining, 70-30*bucket.Amount(i))
		}
		r := f.reserve(long(f.id(), each(30, w)), bucket.Denied)
		if r.Now < now || w.Bounds[2] <= now {
			f.Errorf("%+v", r)
		}
	}},
}
