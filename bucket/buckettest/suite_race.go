package buckettest

import (
	"fmt"
	"sync"

	"github.com/emmer-proxy/emmer/bucket"
)

// Overshoot lets many calls at once reserve from a window of 10,000, 1,000 each, and returns how
// many were granted. Exactly 10 is right.
func Overshoot(s Store, calls int) (granted int, err error) {
	now := s.Now()
	w := bucket.Limit{
		Name: "race", Kind: bucket.CalendarWindow, Period: "hour", Max: 10_000,
		Bounds: [4]bucket.Millis{now - 3*hour/2, now - hour/2, now + hour/2, now + 3*hour/2},
	}
	var (
		mu    sync.Mutex
		group sync.WaitGroup
		start = make(chan struct{})
	)
	for i := range calls {
		group.Go(func() {
			<-start
			r, e := s.Reserve(long(fmt.Sprint("race-", i), each(1000, w)))
			mu.Lock()
			defer mu.Unlock()
			if e != nil {
				err = e
			}
			if r.Outcome == bucket.Granted {
				granted++
			}
		})
	}
	close(start)
	group.Wait()
	return granted, err
}

var raceCases = []testCase{
	{"calls at once never pass the limit", func(f *fixture) {
		granted, err := Overshoot(f.s, 64)
		if err != nil || granted != 10 {
			f.Errorf("%d of 64 granted, %v", granted, err)
		}
	}},
	{"one id at once is granted once and settled once", func(f *fixture) {
		b := slow("b", 1000)
		var (
			mu    sync.Mutex
			group sync.WaitGroup
			seen  = map[bucket.Outcome]int{}
			ended = map[bucket.SettleOutcome]int{}
			fault error
		)
		for i := range 32 {
			group.Go(func() {
				r, err := f.s.Reserve(long("one", each(400, b)))
				mu.Lock()
				seen[r.Outcome]++
				if err != nil {
					fault = err
				}
				mu.Unlock()
				if i%2 > 0 {
					s, err := f.s.Settle(bucket.SettleRequest{ID: "one", Deadline: r.Deadline, Lease: hour, Keep: hour, Cell: 1, Items: each(300, b)})
					mu.Lock()
					ended[s.Outcome]++
					if err != nil {
						fault = err
					}
					mu.Unlock()
				}
			})
		}
		group.Wait()
		if fault != nil || seen[bucket.Granted] != 1 || seen[bucket.Granted]+seen[bucket.Replayed]+seen[bucket.Settled] != 32 {
			f.Errorf("%v, %v", seen, fault)
		}
		if ended[bucket.SettledLive] != 1 || ended[bucket.SettledDuplicate] != 15 {
			f.Errorf("%v", ended)
		}
		f.stands(b, 700, 0)
	}},
}
