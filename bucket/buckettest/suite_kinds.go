package buckettest

import (
	"strings"

	"github.com/emmer-proxy/emmer/bucket"
)

func rolling(name string, most bucket.Amount, window, cell bucket.Millis) bucket.Limit {
	return bucket.Limit{Name: name, Entity: "someone", Kind: bucket.RollingWindow, Max: most, Window: window, Cell: cell}
}

func slots(name string, most bucket.Amount) bucket.Limit {
	return bucket.Limit{Name: name, Entity: "someone", Kind: bucket.Concurrency, Max: most}
}

var rollingCases = []testCase{
	{"rolling/grants until nothing is left", func(f *fixture) {
		w := rolling("w", 100, 10*hour, hour)
		f.left(f.reserve(long(f.id(), each(60, w)), bucket.Granted).Remaining, 40)
		f.left(f.reserve(long(f.id(), each(40, w)), bucket.Granted).Remaining, 0)
		f.reserve(long(f.id(), each(1, w)), bucket.Denied)
		f.reserve(long(f.id(), each(101, w)), bucket.NeverFits)
		f.stands(w, 0, 100)
	}},
	{"rolling/settle books the difference", func(f *fixture) {
		w := rolling("w", 100, 10*hour, hour)
		q := long(f.id(), each(60, w))
		f.reserve(q, bucket.Granted)
		f.left(f.settle(q.ID, 0, each(10, w), bucket.SettledLive).Remaining, 90)
		q = long(f.id(), each(60, w))
		f.reserve(q, bucket.Granted)
		f.left(f.settle(q.ID, 0, each(95, w), bucket.SettledLive).Remaining, -5)
	}},
	{"rolling/a cancel leaves nothing", func(f *fixture) {
		w := rolling("w", 100, 10*hour, hour)
		q := long(f.id(), each(60, w))
		f.reserve(q, bucket.Granted)
		f.settle(q.ID, 0, each(0, w), bucket.SettledLive)
		f.stands(w, 100, 0)
	}},
	{"rolling/an ended lease is refunded or charged", func(f *fixture) {
		r, c := rolling("r", 100, 10*hour, hour), rolling("c", 100, 10*hour, hour)
		c.Lost = bucket.Charge
		q := short(f.id(), each(30, r, c))
		f.reserve(q, bucket.Granted)
		f.s.Pass(3)
		f.stands(r, 100, 0)
		f.stands(c, 70, 0)
		f.left(f.settle(q.ID, 0, each(12, r, c), bucket.SettledLate).Remaining, 88, 88)
	}},
	{"rolling/lengths and cells are apart", func(f *fixture) {
		a, b := rolling("w", 100, 10*hour, hour), rolling("w", 100, 10*hour, 2*hour)
		f.settle(f.id(), 0, each(30, a), bucket.SettledUnknown)
		f.stands(a, 70, 0)
		f.stands(b, 100, 0)
	}},
	{"rolling/a changed maximum keeps what was used", func(f *fixture) {
		w := rolling("w", 100, 10*hour, hour)
		f.settle(f.id(), 0, each(70, w), bucket.SettledUnknown)
		w.Max = 50
		f.stands(w, -20, 0)
		w.Max = 200
		f.stands(w, 130, 0)
	}},
	{"rolling/figures up to 2^53-1 are exact", func(f *fixture) {
		w := rolling("w", bucket.MaxAmount, 10*hour, hour)
		f.left(f.reserve(long(f.id(), each(bucket.MaxAmount-1, w)), bucket.Granted).Remaining, 1)
		f.reserve(long(f.id(), each(2, w)), bucket.Denied)
	}},
}

var slotCases = []testCase{
	{"slots/so many at once and no more", func(f *fixture) {
		c := slots("c", 3)
		for i := range bucket.Amount(3) {
			f.left(f.reserve(long(f.id(), each(1, c)), bucket.Granted).Remaining, 2-i)
		}
		f.reserve(long(f.id(), each(1, c)), bucket.Denied)
		f.reserve(long(f.id(), each(4, c)), bucket.NeverFits)
		f.stands(c, 0, 3)
	}},
	{"slots/a settle frees them, whatever it says", func(f *fixture) {
		c := slots("c", 3)
		for _, actual := range []bucket.Amount{0, 1, 3, 100} {
			q := long(f.id(), each(3, c))
			f.reserve(q, bucket.Granted)
			f.left(f.settle(q.ID, 0, each(actual, c), bucket.SettledLive).Remaining, 3)
			f.settle(q.ID, 0, each(actual, c), bucket.SettledDuplicate)
		}
		f.stands(c, 3, 0)
	}},
	{"slots/a lease that ends frees them, whatever its limit says", func(f *fixture) {
		c := slots("c", 3)
		c.Lost = bucket.Charge
		q := short(f.id(), each(3, c))
		f.reserve(q, bucket.Granted)
		f.s.Pass(3)
		f.stands(c, 3, 0)
		f.left(f.settle(q.ID, 0, each(3, c), bucket.SettledLate).Remaining, 3)
	}},
	{"slots/a settle without a record takes none", func(f *fixture) {
		c := slots("c", 3)
		f.left(f.settle(f.id(), 0, each(2, c), bucket.SettledUnknown).Remaining, 3)
		f.stands(c, 3, 0)
	}},
	{"slots/renew keeps them", func(f *fixture) {
		c := slots("c", 3)
		q := long(f.id(), each(2, c))
		q.Lease = hour / 2
		f.reserve(q, bucket.Granted)
		f.renew(q.ID, q.Items, bucket.Renewed)
		f.stands(c, 1, 2)
		f.settle(q.ID, 0, each(2, c), bucket.SettledLive)
		f.stands(c, 3, 0)
	}},
	{"slots/a late renew takes them again, even too many", func(f *fixture) {
		c := slots("c", 3)
		q := short(f.id(), each(2, c))
		f.reserve(q, bucket.Granted)
		f.s.Pass(3)
		f.reserve(long(f.id(), each(3, c)), bucket.Granted)
		f.renew(q.ID, q.Items, bucket.RenewedLate)
		f.stands(c, -2, 5)
		f.left(f.settle(q.ID, 0, each(2, c), bucket.SettledLive).Remaining, 0)
	}},
	{"slots/they are taken with the rest or not at all", func(f *fixture) {
		c, b := slots("c", 3), slow("b", 10)
		f.reserve(long(f.id(), []bucket.Item{{Limit: c, Amount: 1}, {Limit: b, Amount: 10}}), bucket.Granted)
		f.reserve(long(f.id(), []bucket.Item{{Limit: c, Amount: 1}, {Limit: b, Amount: 1}}), bucket.Denied)
		f.stands(c, 2, 1)
	}},
	{"slots/a lowered maximum lets those go on who run", func(f *fixture) {
		c := slots("c", 3)
		q := long(f.id(), each(3, c))
		f.reserve(q, bucket.Granted)
		c.Max = 2
		f.stands(c, -1, 3)
		f.reserve(long(f.id(), each(1, c)), bucket.Denied)
		f.left(f.settle(q.ID, 0, each(3, c), bucket.SettledLive).Remaining, 2)
	}},
}

func burning(most bucket.Amount, minutes int) bucket.Limit {
	return bucket.Limit{
		Name: "burn", Entity: "someone", Kind: bucket.Burn, Max: most, Flag: "tenant:someone",
		Rule: &bucket.BurnRule{Minutes: minutes, Reason: "too fast"},
	}
}

var burnCases = []testCase{
	{"burn/a settle above the rule raises the flag", func(f *fixture) {
		o, b := burning(100, 1), slow("b", 1000)
		q := long(f.id(), each(60, b, o))
		f.left(f.reserve(q, bucket.Granted).Remaining, 940, 0)
		if s := f.settle(q.ID, 0, each(60, b, o), bucket.SettledLive); len(s.Tripped) != 0 || s.Remaining[1] != 40 {
			f.Errorf("%+v", s)
		}
		s := f.settle(f.id(), 0, each(41, b, o), bucket.SettledUnknown)
		if len(s.Tripped) != 1 || s.Tripped[0] != 1 || s.Remaining[1] != -1 {
			f.Errorf("%+v", s)
		}
		q = long(f.id(), each(1, b))
		q.Kills = []string{"global:all", o.Flag}
		if r := f.reserve(q, bucket.Killed); r.By != 1 || r.Reason != "0|burn|too fast" {
			f.Errorf("%+v", r)
		}
		// It is up already, so nobody trips it again.
		if s := f.settle(f.id(), 0, each(500, b, o), bucket.SettledUnknown); len(s.Tripped) != 0 {
			f.Errorf("%+v", s)
		}
		f.must(f.s.Resume(o.Flag))
		if s := f.settle(f.id(), 0, each(1, b, o), bucket.SettledUnknown); len(s.Tripped) != 1 {
			f.Errorf("%+v", s)
		}
	}},
	{"burn/never denies and takes nothing at the reserve", func(f *fixture) {
		o := burning(10, 1)
		for range 3 {
			f.reserve(long(f.id(), each(1000, o)), bucket.Granted)
		}
		f.stands(o, 10, 0)
	}},
	{"burn/at its limit is not above it", func(f *fixture) {
		o := burning(100, 1)
		if s := f.settle(f.id(), 0, each(100, o), bucket.SettledUnknown); len(s.Tripped) != 0 {
			f.Errorf("%+v", s)
		}
		if value, err := f.s.Kill(o.Flag); err != nil || value != "" {
			f.Errorf("%q, %v", value, err)
		}
	}},
	{"burn/a settle of nothing trips nothing", func(f *fixture) {
		o := burning(100, 1)
		f.settle(f.id(), 0, each(101, o), bucket.SettledUnknown)
		f.must(f.s.Resume(o.Flag))
		if s := f.settle(f.id(), 0, each(0, o), bucket.SettledUnknown); len(s.Tripped) != 0 {
			f.Errorf("%+v", s)
		}
	}},
	{"burn/a duplicate settle is seen once", func(f *fixture) {
		o := burning(100, 1)
		id := f.id()
		f.settle(id, 0, each(60, o), bucket.SettledUnknown)
		f.settle(id, 0, each(60, o), bucket.SettledDuplicate)
		f.stands(o, 40, 0)
	}},
	{"burn/extensions count what was used so far, once", func(f *fixture) {
		o, b := burning(100, 1), slow("b", 1000)
		q := long(f.id(), each(100, b, o))
		f.reserve(q, bucket.Granted)
		f.extend(q.ID, []bucket.Item{{Limit: b, Amount: 200}, {Limit: o, Amount: 90}}, bucket.Extended)
		f.extend(q.ID, []bucket.Item{{Limit: b, Amount: 200}, {Limit: o, Amount: 90}}, bucket.Extended)
		f.stands(o, 10, 0)
		r := f.extend(q.ID, []bucket.Item{{Limit: b, Amount: 300}, {Limit: o, Amount: 150}}, bucket.Extended)
		if len(r.Tripped) != 1 || r.Tripped[0] != 1 {
			f.Errorf("%+v", r)
		}
		f.left(f.settle(q.ID, 0, each(160, b, o), bucket.SettledLive).Remaining, 840, -60)
		f.stands(o, -60, 0)
	}},
	{"burn/a flag for a time", func(f *fixture) {
		o := burning(10, 1)
		o.Rule = &bucket.BurnRule{Minutes: 1, For: hour, Reason: "a|b\x00"}
		s := f.settle(f.id(), 0, each(11, o), bucket.SettledUnknown)
		value, err := f.s.Kill(o.Flag)
		f.must(err)
		if want := decimal(s.Now+hour) + "|burn|"; !strings.HasPrefix(value, want) {
			f.Errorf("%q, want %q...", value, want)
		}
	}},
	{"burn/an old flag is replaced, a longer one stays", func(f *fixture) {
		o := burning(10, 1)
		f.must(f.s.SetKill(o.Flag, f.s.Now()-1, "ann", "over"))
		if s := f.settle(f.id(), 0, each(11, o), bucket.SettledUnknown); len(s.Tripped) != 1 {
			f.Errorf("%+v", s)
		}
		f.must(f.s.SetKill(o.Flag, f.s.Now()+hour, "ann", "mine"))
		if s := f.settle(f.id(), 0, each(11, o), bucket.SettledUnknown); len(s.Tripped) != 0 {
			f.Errorf("%+v", s)
		}
		if value, _ := f.s.Kill(o.Flag); !strings.HasSuffix(value, "|ann|mine") {
			f.Errorf("%q", value)
		}
	}},
}
