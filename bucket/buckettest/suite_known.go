package buckettest

import (
	"strings"

	"github.com/emmer-proxy/emmer/bucket"
)

// knownCases are faults that limiters in the field have had, as their users reported them.
var knownCases = []testCase{
	{"C80: ten at once of 400 against 1000: two pass", func(f *fixture) {
		b := slow("b", 1000)
		results := make(chan bool)
		for i := range 10 {
			go func() {
				r, err := f.s.Reserve(long("at-once-"+string(rune('a'+i)), each(400, b)))
				results <- err == nil && r.Outcome == bucket.Granted
			}()
		}
		granted := 0
		for range 10 {
			if <-results {
				granted++
			}
		}
		if granted != 2 {
			f.Errorf("%d passed", granted)
		}
		f.stands(b, 200, 800)
	}},
	{"C86: several signs of the end settle once", func(f *fixture) {
		b := slow("b", 1000)
		q := long(f.id(), each(500, b))
		r := f.reserve(q, bucket.Granted)
		f.settle(q.ID, r.Deadline, each(60, b), bucket.SettledLive)
		for _, n := range []bucket.Amount{60, 0, 500} {
			f.settle(q.ID, r.Deadline, each(n, b), bucket.SettledDuplicate)
			f.settle(q.ID, 0, each(n, b), bucket.SettledDuplicate)
		}
		f.stands(b, 940, 0)
	}},
	{"C92: a reserve whose reply was lost is not taken twice", func(f *fixture) {
		w := f.hourly("w", 1000)
		q := long(f.id(), each(300, w))
		f.reserve(q, bucket.Granted)
		f.left(f.reserve(q, bucket.Replayed).Remaining, 700)
		f.stands(w, 700, 300)
	}},
	{"C97: an unknown outcome is cancelled, whichever comes first", func(f *fixture) {
		w := f.hourly("w", 1000)
		first, later := long(f.id(), each(300, w)), long(f.id(), each(300, w))
		f.reserve(first, bucket.Granted)
		f.settle(first.ID, 0, each(0, w), bucket.SettledLive)
		f.settle(later.ID, 0, each(0, w), bucket.SettledUnknown)
		f.reserve(later, bucket.Settled)
		f.stands(w, 1000, 0)
	}},
	{"C100: 9007199254740990 less 1 is exact, in every kind", func(f *fixture) {
		for _, l := range []bucket.Limit{slow("b", 9007199254740990), f.hourly("w", 9007199254740990), rolling("r", 9007199254740990, 10*hour, hour)} {
			f.left(f.reserve(long(f.id(), each(1, l)), bucket.Granted).Remaining, 9007199254740989)
			q := long(f.id(), each(9007199254740988, l))
			f.left(f.reserve(q, bucket.Granted).Remaining, 1)
			f.left(f.settle(q.ID, 0, each(9007199254740987, l), bucket.SettledLive).Remaining, 2)
			f.left(f.reserve(long(f.id(), each(1, l)), bucket.Granted).Remaining, 1)
			f.reserve(long(f.id(), each(2, l)), bucket.Denied)
		}
	}},
	{"C100: above 2^53-1 is a fault", func(f *fixture) {
		b := slow("b", bucket.MaxAmount)
		if bucket.Limit(b).Check() != nil {
			f.Error("2^53-1 is a fault")
		}
		b.Burst++
		if b.Check() == nil {
			f.Error("2^53 is none")
		}
	}},
	{"C101: a limit's text steers no key", func(f *fixture) {
		victim := f.hourly("w", 100)
		victim.Entity = "victim"
		f.settle(f.id(), 0, each(40, victim), bucket.SettledUnknown)
		for _, text := range []string{"x:l:w:w:hour:victim", "victim\x00", "../victim", "vict\xefim", strings.Repeat("v", 8192), "victim}", "{victim}"} {
			w := f.hourly("w", 100)
			w.Entity = text
			f.left(f.reserve(long(text, each(1, w)), bucket.Granted).Remaining, 99)
		}
		f.stands(victim, 60, 0)
	}},
	{"a replay after its lease is refused", func(f *fixture) {
		for _, l := range []bucket.Limit{slow("b", 100), f.hourly("w", 100), rolling("r", 100, 10*hour, hour), slots("c", 100), shared(slowPool(), "batch")} {
			q := short(f.id(), each(30, l))
			f.reserve(q, bucket.Granted)
			f.s.Pass(3)
			f.reserve(q, bucket.Settled)
			f.settle(q.ID, 0, each(0, l), bucket.SettledLate)
		}
	}},
	{"all kinds in one call, and all back", func(f *fixture) {
		p := slowPool()
		b, w, r, c, s, o := slow("b", 100), f.hourly("w", 100), rolling("r", 100, 10*hour, hour), slots("c", 100), shared(p, "interactive"), burning(100, 1)
		q := long(f.id(), each(10, b, w, r, c, s, o))
		f.left(f.reserve(q, bucket.Granted).Remaining, 90, 90, 90, 90, 60, 0)
		f.left(f.extend(q.ID, each(20, b, w, r, c, s, o), bucket.Extended).Remaining, 80, 80, 80, 80, 50, 80)
		f.left(f.settle(q.ID, 0, each(0, b, w, r, c, s, o), bucket.SettledLive).Remaining, 100, 100, 100, 100, 70, 100)
	}},
	{"all or none, over all kinds", func(f *fixture) {
		all := []bucket.Limit{slow("b", 100), f.hourly("w", 100), rolling("r", 100, 10*hour, hour), slots("c", 100), shared(slowPool(), "interactive")}
		full := []bucket.Amount{100, 100, 100, 100, 70}
		for i := range all {
			hold := long(f.id(), []bucket.Item{{Limit: all[i], Amount: full[i]}})
			f.reserve(hold, bucket.Granted)
			r := f.reserve(long(f.id(), each(1, all...)), bucket.Denied)
			if r.By != i {
				f.Errorf("refused by %d, want %d", r.By, i)
			}
			f.settle(hold.ID, 0, []bucket.Item{{Limit: all[i]}}, bucket.SettledLive)
			for j, l := range all {
				f.stands(l, full[j], 0)
			}
		}
	}},
}
