package buckettest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
)

// Run holds a store to the contract of package bucket. Each case opens a store in which nothing was
// used. No case takes more than some milliseconds of a real clock, and none depends on being fast:
// what must live has a long lease, what must have ended is waited for. Cases that must set the clock
// are for stores that have a SetTime; a real Redis has one by a script whose clock line is exchanged.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for _, c := range timeless() {
		t.Run(c.name, func(t *testing.T) { c.run(&fixture{T: t, s: open(t)}) })
	}
	if _, driven := open(t).(clocked); !driven {
		return
	}
	for _, c := range timed() {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			c.run(&fixture{T: t, s: s, clock: s.(clocked)})
		})
	}
}

// timeless are the cases for any clock.
func timeless() []testCase {
	return slices.Concat(
		reserveCases, leaseCases, settleCases, windowCases, raceCases,
		rollingCases, slotCases, extendCases, burnCases, overrideCases, queueCases, shareCases, shadowCases, knownCases, answerCases,
	)
}

// timed are the cases that set the clock.
func timed() []testCase { return slices.Concat(calendarCases(), classicCases(), drivenCases, dayCases) }

// clocked is a store whose clock is driven.
type clocked interface{ SetTime(bucket.Millis) }

type testCase struct {
	name string
	run  func(*fixture)
}

const (
	second bucket.Millis = 1000
	hour   bucket.Millis = 3600 * second
)

// fixture asks a store and fails the test where there is no answer.
type fixture struct {
	*testing.T
	s     Store
	clock clocked // of cases that set it
	ids   int
}

// slow is a bucket that gives nothing back within a test.
func slow(name string, burst bucket.Amount) bucket.Limit {
	return bucket.Limit{Name: name, Entity: "someone", Kind: bucket.TokenBucket, Rate: 1, Per: bucket.MaxPer, Burst: burst}
}

// hourly is a window whose period began half an hour ago.
func (f *fixture) hourly(name string, most bucket.Amount) bucket.Limit {
	now := f.s.Now()
	return bucket.Limit{
		Name: name, Entity: "someone", Kind: bucket.CalendarWindow, Period: "hour", Max: most,
		Bounds: [4]bucket.Millis{now - 3*hour/2, now - hour/2, now + hour/2, now + 3*hour/2},
	}
}

// turned is a window as it stands when a new period has just begun.
func (f *fixture) turned(l bucket.Limit) bucket.Limit {
	f.s.Pass(2)
	now := f.s.Now()
	l.Bounds = [4]bucket.Millis{l.Bounds[1], now, now + hour, now + 2*hour}
	return l
}

func each(n bucket.Amount, limits ...bucket.Limit) []bucket.Item {
	items := make([]bucket.Item, len(limits))
	for i, l := range limits {
		items[i] = bucket.Item{Limit: l, Amount: n}
	}
	return items
}

func (f *fixture) id() string {
	f.ids++
	return fmt.Sprintf("id-%d", f.ids)
}

// long is a request whose lease outlives the test.
func long(id string, items []bucket.Item) bucket.ReserveRequest {
	return bucket.ReserveRequest{ID: id, Lease: hour, Keep: hour, Cell: 1000, Items: items}
}

// short is a request whose lease ends at once.
func short(id string, items []bucket.Item) bucket.ReserveRequest {
	return bucket.ReserveRequest{ID: id, Lease: 1, Keep: hour, Cell: 1, Items: items}
}

func (f *fixture) reserve(q bucket.ReserveRequest, want bucket.Outcome) bucket.ReserveReply {
	f.Helper()
	r, err := f.s.Reserve(q)
	if err != nil {
		f.Fatalf("reserve %s: %v", q.ID, err)
	}
	if r.Outcome != want {
		f.Fatalf("reserve %s: outcome %d, want %d: %+v", q.ID, r.Outcome, want, r)
	}
	switch want {
	case bucket.Granted, bucket.Replayed:
		if r.Deadline < r.Now+1 || r.Deadline%q.Cell != 0 || want == bucket.Granted && (r.Deadline < r.Now+q.Lease || r.Deadline >= r.Now+q.Lease+q.Cell) {
			f.Errorf("reserve %s: deadline %d at %d with lease %d", q.ID, r.Deadline, r.Now, q.Lease)
		}
	case bucket.Denied:
		if r.Retry < 1 {
			f.Errorf("reserve %s: denied, retry %d", q.ID, r.Retry)
		}
	}
	return r
}

func (f *fixture) settle(id string, deadline bucket.Millis, items []bucket.Item, want bucket.SettleOutcome) bucket.SettleReply {
	f.Helper()
	r, err := f.s.Settle(bucket.SettleRequest{ID: id, Deadline: deadline, Lease: hour, Keep: hour, Cell: 1000, Items: items})
	if err != nil {
		f.Fatalf("settle %s: %v", id, err)
	}
	if r.Outcome != want {
		f.Fatalf("settle %s: outcome %d, want %d: %+v", id, r.Outcome, want, r)
	}
	return r
}

func (f *fixture) renew(id string, items []bucket.Item, want bucket.RenewOutcome) bucket.RenewReply {
	f.Helper()
	r, err := f.s.Renew(bucket.RenewRequest{ID: id, Lease: hour, Keep: hour, Cell: 1000, Items: items})
	if err != nil {
		f.Fatalf("renew %s: %v", id, err)
	}
	if r.Outcome != want {
		f.Fatalf("renew %s: outcome %d, want %d: %+v", id, r.Outcome, want, r)
	}
	return r
}

func (f *fixture) extend(id string, items []bucket.Item, want bucket.ExtendOutcome) bucket.ExtendReply {
	f.Helper()
	r, err := f.s.Extend(bucket.ExtendRequest{ID: id, Lease: hour, Keep: hour, Cell: 1000, Items: items})
	if err != nil {
		f.Fatalf("extend %s: %v", id, err)
	}
	if r.Outcome != want {
		f.Fatalf("extend %s: outcome %d, want %d: %+v", id, r.Outcome, want, r)
	}
	return r
}

// stands checks what is left of a limit and what of it is reserved.
func (f *fixture) stands(l bucket.Limit, remaining, reserved bucket.Amount) {
	f.Helper()
	level, err := f.s.Level(l)
	if err != nil {
		f.Fatalf("level of %s: %v", l.Name, err)
	}
	want := script.Level{Remaining: remaining, Reserved: reserved, Now: level.Now}
	if level != want {
		f.Errorf("%s: %d left, %d reserved; want %d left, %d reserved", l.Name, level.Remaining, level.Reserved, remaining, reserved)
	}
}

func (f *fixture) left(got []bucket.Amount, want ...bucket.Amount) {
	f.Helper()
	if !slices.Equal(got, want) {
		f.Errorf("remaining %v, want %v", got, want)
	}
}
