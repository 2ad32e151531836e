package buckettest

import (
	"fmt"
	"slices"

	"github.com/emmer-proxy/emmer/bucket"
)

const (
	fewest  = bucket.LeastAnswers
	longest = bucket.LongestAnswer
)

// answer settles a call that took nothing and was answered at this length, and returns what is told.
func (f *fixture) answer(of string, tokens bucket.Tokens) bucket.Tokens {
	f.Helper()
	r, err := f.s.Settle(bucket.SettleRequest{ID: f.id(), Lease: hour, Keep: hour, Cell: 1000, Answer: bucket.Answer{Of: of, Tokens: tokens}})
	if err != nil || r.Outcome != bucket.SettledUnknown {
		f.Fatalf("settle: %+v, %v", r, err)
	}
	return r.Learned
}

// told checks what is told after n answers of one length.
func (f *fixture) told(of string, n int, tokens, want bucket.Tokens) {
	f.Helper()
	var got bucket.Tokens
	for range n {
		got = f.answer(of, tokens)
	}
	if got != want {
		f.Errorf("%d answers of %d more: %d is told, want %d", n, tokens, got, want)
	}
}

var answerCases = []testCase{
	{"answers/nothing is told of too few", func(f *fixture) {
		f.told("a", fewest-1, 7, 0)
		f.told("a", 1, 7, 7)
	}},
	{"answers/a length is told to an eighth, evenly within a step", func(f *fixture) {
		for _, c := range []struct{ tokens, told bucket.Tokens }{
			{1, 1}, {16, 16}, {17, 18}, {31, 32}, {100, 104}, {97, 104}, {1000, 1021}, {1025, 1146}, {longest, 1_045_300}, {9 * longest, 1_045_300}, {bucket.MaxAmount, 1_045_300},
		} {
			f.told(fmt.Sprint("a", c.tokens), fewest, c.tokens, c.told)
		}
	}},
	{"answers/nineteen of twenty are not longer", func(f *fixture) {
		f.told("a", 19, 10, 0)
		f.told("a", 1, 5000, 10)
		f.told("a", 1, 5000, 4864)
	}},
	{"answers/no two are mixed", func(f *fixture) {
		f.told("a", fewest, 10, 10)
		f.told("b", fewest-1, 500, 0)
		f.told("a", 1, 10, 10)
		f.told("b", 1, 16, 511)
	}},
	{"answers/a settle teaches once, together with what it books", func(f *fixture) {
		b := slow("b", 1000)
		settle := func(id string, want bucket.SettleOutcome, told bucket.Tokens) {
			f.Helper()
			r, err := f.s.Settle(bucket.SettleRequest{ID: id, Lease: hour, Keep: hour, Cell: 1000, Items: each(1, b), Answer: bucket.Answer{Of: "a", Tokens: 9}})
			if err != nil || r.Outcome != want || r.Learned != told {
				f.Fatalf("%+v, %v; want outcome %d, %d told", r, err, want, told)
			}
		}
		late, live := short(f.id(), each(2, b)), long(f.id(), each(2, b))
		f.reserve(late, bucket.Granted)
		f.reserve(live, bucket.Granted)
		f.s.Pass(3)
		f.told("a", fewest-3, 9, 0)
		settle(late.ID, bucket.SettledLate, 0)
		settle(live.ID, bucket.SettledLive, 0)
		settle(late.ID, bucket.SettledDuplicate, 0)
		settle(live.ID, bucket.SettledDuplicate, 0)
		settle(f.id(), bucket.SettledUnknown, 9)
		f.stands(b, 997, 0)
	}},
	{"answers/a settle that comes too late teaches nothing", func(f *fixture) {
		f.told("a", fewest-1, 9, 0)
		q := bucket.SettleRequest{ID: f.id(), Deadline: f.s.Now() - hour, Lease: 1, Keep: 1, Cell: 1, Answer: bucket.Answer{Of: "a", Tokens: 9}}
		if r, err := f.s.Settle(q); err != nil || r.Outcome != bucket.SettledTooOld || r.Learned != 0 {
			f.Errorf("%+v, %v", r, err)
		}
		f.told("a", 1, 9, 9)
	}},
	{"answers/of two hundred, what is told is near the truth", func(f *fixture) {
		var all []bucket.Tokens
		x := uint32(1)
		for range 200 {
			x = x*1664525 + 1013904223
			n := bucket.Tokens(20 + x>>24*(x>>16&255)/40) // few are long
			all = append(all, n)
			f.answer("a", n)
		}
		slices.Sort(all)
		truth := all[190-1]
		if got := f.answer("a", truth); got < truth*7/8 || got > truth*9/8 {
			f.Errorf("%d is told, the truth is %d", got, truth)
		}
	}},
}

// Of stores whose clock is driven.
var dayCases = []testCase{
	{"answers/of seven days, and of no others", func(f *fixture) {
		f.told("a", fewest, 1000, 1021)
		for range 6 {
			f.s.Pass(day)
			f.told("a", 1, 10, 1021)
		}
		f.s.Pass(day)
		f.told("a", 1, 10, 0) // six that are no older, and this one
		f.told("a", fewest-7, 10, 10)
	}},
	{"answers/all are forgotten after a week without", func(f *fixture) {
		f.told("a", fewest, 1000, 1021)
		f.s.Pass(7 * day)
		f.told("a", fewest-1, 10, 0)
		f.told("a", 1, 10, 10)
	}},
	{"answers/a clock that is set back goes on with the day it knows", func(f *fixture) {
		f.told("a", fewest, 10, 10)
		f.clock.SetTime(f.s.Now() - 3*day)
		f.told("a", 1, 10, 10)
		f.s.Pass(6 * day)
		f.told("a", 1, 10, 10)
		f.s.Pass(4 * day)
		f.told("a", 1, 10, 0)
	}},
	{"answers/a day of many of one length weighs less, and is as long", func(f *fixture) {
		f.told("a", 1010, 300, 319) // 510 of which are remembered
		for range 45 {
			f.answer("a", 5000)
		}
		f.s.Pass(day)
		f.told("a", 1, 5000, 4820)
	}},
}
