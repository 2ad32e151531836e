package core

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

// TestLeasesAgreeWithAPlainList does at random what a worker does, beside a list that is searched.
func TestLeasesAgreeWithAPlainList(t *testing.T) {
	type plain struct {
		id string
		at bucket.Millis
	}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		var l leases
		var list []plain // in the order in which they are due
		insert := func(p plain) {
			i := len(list)
			for i > 0 && list[i-1].at > p.at {
				i--
			}
			list = slices.Insert(list, i, p)
		}
		now := bucket.Millis(1000)
		for step := range 500 {
			now += bucket.Millis(r.IntN(5))
			switch r.IntN(4) {
			case 0, 1:
				id := strconv.Itoa(step)
				l.put(&Job{ID: id}, now+50)
				insert(plain{id, now + 50})
			case 2:
				if len(list) > 0 {
					i := r.IntN(len(list))
					l.drop(leaseID{id: list[i].id})
					list = slices.Delete(list, i, i+1)
				}
			case 3:
				for {
					one := l.due(now, 50)
					if one == nil {
						break
					}
					if len(list) == 0 || list[0].id != one.id || list[0].at > now {
						t.Fatalf("seed %d: %s is due at %d, want of %v", seed, one.id, now, list)
					}
					list = list[1:]
					at := now + 50
					if r.IntN(3) == 0 {
						at = now + 10
						l.again(one, at)
					}
					insert(plain{one.id, at})
				}
				if len(list) > 0 && list[0].at <= now {
					t.Fatalf("seed %d: %v is not due at %d", seed, list[0], now)
				}
			}
		}
		for _, p := range list {
			l.drop(leaseID{id: p.id})
		}
		if l.first != nil || l.last != nil || len(l.byID) > 0 {
			t.Errorf("seed %d: something is left", seed)
		}
	}
}

// TestAClockThatIsSetBackEndsNoLease: leases are renewed, and settlements repeated, by the time that passes.
func TestAClockThatIsSetBackEndsNoLease(t *testing.T) {
	w := newWorker(t, "flag", "closed")
	const start, back = bucket.Millis(10_000_000), bucket.Millis(3_600_000)
	w.Step(Event{Kind: Tick, Now: start})
	w.Step(Event{Kind: LeaseTaken, Now: start, Job: job(w, "long")})
	w.Step(Event{Kind: Settle, Now: start, Job: job(w, "over")})
	for _, c := range settles(callsOf(w.Step(Event{Kind: Flush, Now: start}))) {
		w.Step(storeFails(start, c.Tag, 0))
	}
	renewed, settled := 0, 0
	for now := start; now < start+w.config.Lease.For; now += 10 {
		for _, c := range settles(callsOf(w.Step(Event{Kind: Tick, Now: now - back}))) {
			if w.calls[c.Tag].lease != nil {
				renewed++
			} else {
				settled++
			}
		}
	}
	if renewed != 1 && renewed != 2 || settled != 1 {
		t.Errorf("renewed %d times in the time of a lease, and settled again %d times", renewed, settled)
	}
}
