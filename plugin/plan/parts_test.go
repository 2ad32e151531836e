package plan

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

// TestMergeIsWhatOneStoreSays asks two stores that share the limits, and one that has them all: the
// merged answers must be its answer. What one of two granted and the other refused is given back.
func TestMergeIsWhatOneStoreSays(t *testing.T) {
	outcomes := map[bucket.Outcome]int{}
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 3))
		var limits []bucket.Limit
		var shard []int
		for i := range 2 + r.IntN(4) {
			l := bucket.Limit{Name: fmt.Sprint("l", i), Kind: bucket.TokenBucket, Rate: bucket.Amount(1 + r.IntN(5)), Per: 10, Burst: bucket.Amount(50 + r.IntN(100))}
			if r.IntN(2) == 0 {
				l = bucket.Limit{Name: l.Name, Kind: bucket.RollingWindow, Max: l.Burst, Window: 2000, Cell: 100}
			}
			limits, shard = append(limits, l), append(shard, r.IntN(2))
		}
		one := bucket.NewModel()
		one.WithOverrides = true
		two := [2]*bucket.Model{bucket.NewModel(), bucket.NewModel()}
		for i := range two {
			two[i].WithOverrides = true
		}
		for i, l := range limits {
			if r.IntN(3) == 0 {
				value := fmt.Sprintf("%d|0", 40+r.IntN(80))
				if r.IntN(3) == 0 || l.Kind == bucket.TokenBucket {
					value = "nonsense"
				}
				one.SetOverride(l.Name, "", value)
				two[shard[i]].SetOverride(l.Name, "", value)
			}
		}
		now := bucket.Millis(100_000)
		for n := range 60 {
			now += bucket.Millis(r.IntN(400))
			p := &Plan{Parts: []Part{{}, {Org: "o"}}}
			for i, l := range limits {
				p.Items = append(p.Items, bucket.Item{Limit: l, Amount: bucket.Amount(r.IntN(60)), Shadow: r.IntN(10) == 0})
				if r.IntN(40) == 0 {
					p.Items[i].Amount = 1000
				}
				p.Parts[shard[i]].At = append(p.Parts[shard[i]].At, i)
			}
			ask := bucket.ReserveRequest{ID: fmt.Sprint("c", n), Lease: 1000, Keep: 1000, Cell: 10, Items: p.Items}
			if r.IntN(20) == 0 {
				ask.Kills = []string{"key:a", "key:b"}
				one.SetKill("key:b", now+1, "ann", "fire")
				two[r.IntN(2)].SetKill("key:b", now+1, "ann", "fire")
			}
			want := one.Reserve(now, ask)
			replies := make([]bucket.ReserveReply, 2)
			for i := range two {
				part := ask
				if part.Items = p.Parts[i].Of(p.Items); len(part.Items) > 0 || len(part.Kills) > 0 {
					replies[i] = two[i].Reserve(now, part)
				}
			}
			got := p.Merge(replies)
			outcomes[got.Outcome]++
			got.Deadline, want.Deadline = 0, 0 // each part has its own
			if len(want.Remaining) == 0 {
				want.Remaining = nil
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, call %d:\n%+v\nwant\n%+v\nof %+v", seed, n, got, want, replies)
			}
			if want.Outcome != bucket.Granted {
				for i := range two {
					if replies[i].Outcome == bucket.Granted {
						items := append([]bucket.Item{}, p.Parts[i].Of(p.Items)...)
						for j := range items {
							items[j].Amount = 0
						}
						two[i].Settle(now, bucket.SettleRequest{ID: ask.ID, Lease: 1000, Keep: 1000, Cell: 10, Items: items})
					}
				}
			}
		}
	}
	for _, o := range []bucket.Outcome{bucket.Granted, bucket.Denied, bucket.NeverFits, bucket.Killed} {
		if outcomes[o] < 20 {
			t.Errorf("only %d calls had the outcome %d", outcomes[o], o)
		}
	}
}

// TestMergeOfWhatIsUnknown: figures of a part that doesn't tell are not made up.
func TestMergeOfWhatIsUnknown(t *testing.T) {
	l := bucket.Limit{Kind: bucket.TokenBucket, Rate: 1, Per: 1, Burst: 10}
	p := &Plan{Items: []bucket.Item{{Limit: l, Amount: 2}, {Limit: l, Amount: 3}}, Parts: []Part{{At: []int{0}}, {Org: "o", At: []int{1}}}}
	granted := bucket.ReserveReply{Outcome: bucket.Granted, By: -1, Now: 5, Remaining: []bucket.Amount{4}, Max: []bucket.Amount{10}}
	if r := p.Merge([]bucket.ReserveReply{granted, {}}); r.Outcome != bucket.Granted || r.Remaining != nil || r.Max != nil {
		t.Errorf("granted and unknown: %+v", r)
	}
	if r := p.Merge([]bucket.ReserveReply{{}, {Outcome: bucket.Denied, Retry: 7, By: 0, Remaining: []bucket.Amount{1}}}); r.Outcome != bucket.Denied || r.By != 1 || r.Remaining != nil {
		t.Errorf("unknown and denied: %+v", r)
	}
	// A replay doesn't say what a limit gives at the most.
	replayed := granted
	replayed.Outcome, replayed.Max, replayed.Start, granted.Start = bucket.Replayed, nil, 90, 80
	if r := p.Merge([]bucket.ReserveReply{granted, replayed}); !reflect.DeepEqual(r.Max, []bucket.Amount{10, 10}) || r.Start != 90 {
		t.Errorf("granted and replayed: %+v", r)
	}
	// No answer of a store has such an index, and none may trap.
	if r := p.Merge([]bucket.ReserveReply{{Outcome: bucket.Denied, By: 1}, granted}); r.Outcome != bucket.Granted {
		t.Errorf("denied by nobody: %+v", r)
	}
}
