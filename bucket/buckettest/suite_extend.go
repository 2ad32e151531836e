package buckettest

import (
	"strconv"

	"github.com/emmer-proxy/emmer/bucket"
)

func decimal(n bucket.Millis) string { return strconv.FormatInt(int64(n), 10) }

var extendCases = []testCase{
	{"extend/states the new total", func(f *fixture) {
		b, w, r, c := slow("b", 100), f.hourly("w", 100), rolling("r", 100, 10*hour, hour), slots("c", 100)
		q := long(f.id(), each(30, b, w, r, c))
		f.reserve(q, bucket.Granted)
		f.left(f.extend(q.ID, each(50, b, w, r, c), bucket.Extended).Remaining, 50, 50, 50, 50)
		for _, l := range []bucket.Limit{b, w, r, c} {
			f.stands(l, 50, 50)
		}
		f.left(f.settle(q.ID, 0, each(45, b, w, r, c), bucket.SettledLive).Remaining, 55, 55, 55, 100)
	}},
	{"extend/the same again, or less, changes nothing", func(f *fixture) {
		b, w := slow("b", 100), f.hourly("w", 100)
		q := long(f.id(), each(30, b, w))
		f.reserve(q, bucket.Granted)
		for _, total := range []bucket.Amount{50, 50, 10, 0, 50} {
			f.left(f.extend(q.ID, each(total, b, w), bucket.Extended).Remaining, 50, 50)
		}
		f.stands(b, 50, 50)
		f.stands(w, 50, 50)
	}},
	{"extend/all or nothing", func(f *fixture) {
		rich, poor := slow("rich", 100), slow("poor", 40)
		q := long(f.id(), each(30, rich, poor))
		f.reserve(q, bucket.Granted)
		r := f.extend(q.ID, each(41, rich, poor), bucket.ExtendDenied)
		if r.By != 1 || r.Deadline != 0 {
			f.Errorf("%+v", r)
		}
		f.left(r.Remaining, 70, 10)
		f.stands(rich, 70, 30)
		f.stands(poor, 10, 30)
		f.left(f.extend(q.ID, each(40, rich, poor), bucket.Extended).Remaining, 60, 0)
	}},
	{"extend/what can never fit says so", func(f *fixture) {
		b := slow("b", 40)
		q := long(f.id(), each(30, b))
		f.reserve(q, bucket.Granted)
		if r := f.extend(q.ID, each(71, b), bucket.ExtendDenied); r.Retry != 0 {
			f.Errorf("%+v", r)
		}
		if r := f.extend(q.ID, each(70, b), bucket.ExtendDenied); r.Retry < 1 {
			f.Errorf("%+v", r)
		}
	}},
	{"extend/moves the deadline, as a renew", func(f *fixture) {
		b := slow("b", 100)
		q := long(f.id(), each(30, b))
		q.Lease = hour / 2
		first := f.reserve(q, bucket.Granted)
		r := f.extend(q.ID, each(30, b), bucket.Extended)
		if r.Deadline < r.Now+hour || r.Deadline <= first.Deadline {
			f.Errorf("deadline %d, then %d at %d", first.Deadline, r.Deadline, r.Now)
		}
		if again := f.reserve(q, bucket.Replayed); again.Deadline != r.Deadline {
			f.Errorf("a replay says %d, not %d", again.Deadline, r.Deadline)
		}
		f.stands(b, 70, 30)
	}},
	{"extend/without a lease the deadline stays", func(f *fixture) {
		b := slow("b", 100)
		q := long(f.id(), each(30, b))
		first := f.reserve(q, bucket.Granted)
		r, err := f.s.Extend(bucket.ExtendRequest{ID: q.ID, Keep: hour, Cell: 1000, Items: each(40, b)})
		f.must(err)
		if r.Outcome != bucket.Extended || r.Deadline != first.Deadline {
			f.Errorf("%+v, the deadline was %d", r, first.Deadline)
		}
		f.stands(b, 60, 40)
	}},
	{"extend/a replay of the reserve gets its own figures", func(f *fixture) {
		b := slow("b", 100)
		q := long(f.id(), each(30, b))
		f.reserve(q, bucket.Granted)
		f.extend(q.ID, each(60, b), bucket.Extended)
		f.left(f.reserve(q, bucket.Replayed).Remaining, 70)
	}},
	{"extend/kill flags are seen, even where nothing more is asked", func(f *fixture) {
		b := slow("b", 100)
		q := long(f.id(), each(30, b))
		f.reserve(q, bucket.Granted)
		f.must(f.s.SetKill("org:acme", 0, "ann", "spent"))
		r, err := f.s.Extend(bucket.ExtendRequest{ID: q.ID, Lease: hour, Keep: hour, Cell: 1000, Kills: []string{"global:all", "org:acme"}, Items: each(30, b)})
		f.must(err)
		if r.Outcome != bucket.ExtendKilled || r.By != 1 || r.Reason != "0|ann|spent" {
			f.Errorf("%+v", r)
		}
		f.stands(b, 70, 30)
	}},
	{"extend/of what is settled or unknown", func(f *fixture) {
		b := slow("b", 100)
		q := long(f.id(), each(30, b))
		f.extend(q.ID, q.Items, bucket.ExtendUnknown)
		f.reserve(q, bucket.Granted)
		f.settle(q.ID, 0, each(5, b), bucket.SettledLive)
		f.extend(q.ID, each(60, b), bucket.ExtendSettled)
		f.stands(b, 95, 0)
	}},
	{"extend/after the lease all is taken again, if there is room", func(f *fixture) {
		b, cw := slow("b", 100), f.hourly("cw", 100)
		cw.Lost = bucket.Charge
		q := short(f.id(), each(30, b, cw))
		f.reserve(q, bucket.Granted)
		f.s.Pass(3)
		other := long(f.id(), each(65, b))
		f.reserve(other, bucket.Granted)
		if r := f.extend(q.ID, each(40, b, cw), bucket.ExtendDenied); r.By != 0 {
			f.Errorf("%+v", r)
		}
		f.stands(b, 35, 65)
		f.settle(other.ID, 0, each(10, b), bucket.SettledLive)
		f.left(f.extend(q.ID, each(40, b, cw), bucket.ExtendedLate).Remaining, 50, 60)
		f.stands(b, 50, 40)
		f.stands(cw, 60, 40)
		f.left(f.settle(q.ID, 0, each(35, b, cw), bucket.SettledLive).Remaining, 55, 65)
	}},
	{"extend/after the lease and without another it is over", func(f *fixture) {
		b := slow("b", 100)
		q := short(f.id(), each(30, b))
		f.reserve(q, bucket.Granted)
		f.s.Pass(3)
		r, err := f.s.Extend(bucket.ExtendRequest{ID: q.ID, Keep: hour, Cell: 1000, Items: each(40, b)})
		f.must(err)
		if r.Outcome != bucket.ExtendEnded {
			f.Errorf("%+v", r)
		}
		f.stands(b, 100, 0)
	}},
	{"extend/in a later period is booked there, and given back first", func(f *fixture) {
		old := f.hourly("w", 100)
		q := long(f.id(), each(30, old))
		f.reserve(q, bucket.Granted)
		w := f.turned(old)
		f.left(f.extend(q.ID, each(50, w), bucket.Extended).Remaining, 80)
		f.stands(w, 80, 50) // 20 of them in this period
		f.left(f.settle(q.ID, 0, each(35, w), bucket.SettledLive).Remaining, 95)
		f.stands(w, 95, 0)
	}},
	{"extend/in a later period, an overrun is booked there", func(f *fixture) {
		old := f.hourly("w", 100)
		q := long(f.id(), each(30, old))
		f.reserve(q, bucket.Granted)
		w := f.turned(old)
		f.extend(q.ID, each(50, w), bucket.Extended)
		f.left(f.settle(q.ID, 0, each(70, w), bucket.SettledLive).Remaining, 60)
	}},
	{"extend/other items than the reserve's are a fault", func(f *fixture) {
		b, c := slow("b", 100), slow("c", 100)
		q := long(f.id(), each(30, b, c))
		f.reserve(q, bucket.Granted)
		if r, err := f.s.Extend(bucket.ExtendRequest{ID: q.ID, Lease: hour, Keep: hour, Cell: 1, Items: each(40, b)}); err == nil {
			f.Errorf("%+v", r)
		}
		f.stands(b, 70, 30)
	}},
	{"extend/of a call without limits", func(f *fixture) {
		q := long(f.id(), nil)
		f.reserve(q, bucket.Granted)
		f.extend(q.ID, nil, bucket.Extended)
		f.settle(q.ID, 0, nil, bucket.SettledLive)
	}},
}

var overrideCases = []testCase{
	{"override/a maximum for one entity", func(f *fixture) {
		for _, l := range []bucket.Limit{f.hourly("w", 100), rolling("r", 100, 10*hour, hour), slots("c", 100)} {
			f.must(f.s.SetOverride(l.Name, l.Entity, bucket.Override{Max: 150}.String()))
			r := f.reserve(long(f.id(), each(120, l)), bucket.Granted)
			f.left(r.Remaining, 30)
			f.left(r.Max, 150)
			if r.BadOverride != 0 {
				f.Errorf("%+v", r)
			}
			f.stands(l, 30, 120)
			l.Entity = "another"
			f.left(f.reserve(long(f.id(), each(120, l)), bucket.NeverFits).Max, 100)
		}
	}},
	{"override/a rate and a burst for one entity", func(f *fixture) {
		b := slow("b", 100)
		f.must(f.s.SetOverride(b.Name, b.Entity, bucket.Override{Rate: 1, Per: 1, Burst: 500}.String()))
		r := f.reserve(long(f.id(), each(500, b)), bucket.Granted)
		f.left(r.Max, 500)
		f.s.Pass(5)
		if level, err := f.s.Level(b); err != nil || level.Remaining < 5 {
			f.Errorf("%+v, %v", level, err)
		}
	}},
	{"override/lower than what is used", func(f *fixture) {
		w := f.hourly("w", 100)
		q := long(f.id(), each(80, w))
		f.reserve(q, bucket.Granted)
		f.must(f.s.SetOverride(w.Name, w.Entity, "50|0"))
		f.left(f.reserve(long(f.id(), each(1, w)), bucket.Denied).Remaining, -30)
		f.left(f.settle(q.ID, 0, each(10, w), bucket.SettledLive).Remaining, 40)
		f.must(f.s.SetOverride(w.Name, w.Entity, ""))
		f.stands(w, 90, 0)
	}},
	{"override/nothing at all may pass", func(f *fixture) {
		w := f.hourly("w", 100)
		f.must(f.s.SetOverride(w.Name, w.Entity, "0|0"))
		f.reserve(long(f.id(), each(1, w)), bucket.NeverFits)
	}},
	{"override/one that is over counts no more", func(f *fixture) {
		w := f.hourly("w", 100)
		f.must(f.s.SetOverride(w.Name, w.Entity, bucket.Override{Max: 150, Until: f.s.Now() - 1}.String()))
		r := f.reserve(long(f.id(), each(120, w)), bucket.NeverFits)
		if r.BadOverride != 0 {
			f.Errorf("%+v", r)
		}
		f.must(f.s.SetOverride(w.Name, w.Entity, bucket.Override{Max: 150, Until: f.s.Now() + hour}.String()))
		f.reserve(long(f.id(), each(120, w)), bucket.Granted)
	}},
	{"override/what is none is ignored, and told", func(f *fixture) {
		b, w := slow("b", 100), f.hourly("w", 100)
		for _, value := range []string{"x", "5", "|0", "5|", "5|x", "-5|0", "1/2|0", "1/2/3/4|0", "0/1/1|0", "1/0/1|0", "1/86400001/1|0", "5.5|0", "1e3|0", " 5|0", "9007199254740992|0", "00000000000000005|0", "9007199254740991/2/1|0", "5|0|"} {
			f.must(f.s.SetOverride(b.Name, b.Entity, value))
			f.must(f.s.SetOverride(w.Name, w.Entity, "77|0"))
			r := f.reserve(long(f.id(), each(0, w, b)), bucket.Granted)
			f.left(r.Max, 77, 100)
			if r.BadOverride != 2 {
				f.Errorf("%q: %+v", value, r)
			}
		}
		f.must(f.s.SetOverride(b.Name, b.Entity, "77|0")) // of a window
		if r := f.reserve(long(f.id(), each(0, b)), bucket.Granted); r.BadOverride != 1 {
			f.Errorf("%+v", r)
		}
	}},
	{"override/an extension asks for it", func(f *fixture) {
		w := f.hourly("w", 100)
		q := long(f.id(), each(80, w))
		f.reserve(q, bucket.Granted)
		f.extend(q.ID, each(120, w), bucket.ExtendDenied)
		f.must(f.s.SetOverride(w.Name, w.Entity, "150|0"))
		r := f.extend(q.ID, each(120, w), bucket.Extended)
		f.left(r.Remaining, 30)
		f.left(r.Max, 150)
	}},
	{"override/of an observer", func(f *fixture) {
		o := burning(100, 1)
		f.must(f.s.SetOverride(o.Name, o.Entity, "1000|0"))
		if s := f.settle(f.id(), 0, each(500, o), bucket.SettledUnknown); len(s.Tripped) != 0 {
			f.Errorf("%+v", s)
		}
		f.stands(o, 500, 0)
	}},
	{"override/entities of any text are apart", func(f *fixture) {
		for i, text := range []string{"", "a", "a|b", "a%7Cb", "b", "é", "a b"} {
			w := f.hourly("w", 100)
			w.Entity = text
			f.must(f.s.SetOverride(w.Name, w.Entity, strconv.Itoa(200+i)+"|0"))
		}
		for i, text := range []string{"", "a", "a|b", "a%7Cb", "b", "é", "a b"} {
			w := f.hourly("w", 100)
			w.Entity = text
			f.stands(w, 200+bucket.Amount(i), 0)
		}
	}},
}
