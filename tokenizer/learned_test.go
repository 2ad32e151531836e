package tokenizer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A table of the most recent keys, written in the plainest way.
func TestTableEvictsTheOldest(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	tab := newTable[int](5)
	type kept struct {
		key   pair
		value int
	}
	var want []kept // the oldest first
	for i := range 5000 {
		key := pair{fmt.Sprint(r.IntN(9)), fmt.Sprint(r.IntN(2))}
		if r.IntN(2) == 0 {
			v := tab.get(key)
			j := slices.IndexFunc(want, func(k kept) bool { return k.key == key })
			if (v == nil) != (j < 0) || v != nil && *v != want[j].value {
				t.Fatalf("step %d, %v: %v, reference %v", i, key, v, want)
			}
			continue
		}
		v, fresh := tab.put(key)
		j := slices.IndexFunc(want, func(k kept) bool { return k.key == key })
		if fresh != (j < 0) || fresh && *v != 0 || !fresh && *v != want[j].value {
			t.Fatalf("step %d, %v: %d fresh %v, reference %v", i, key, *v, fresh, want)
		}
		*v = i
		if j >= 0 {
			want = slices.Delete(want, j, j+1)
		} else if len(want) == 5 {
			want = want[1:]
		}
		want = append(want, kept{key, i})
		if len(tab.entries) > 5 || len(tab.index) != len(tab.entries) {
			t.Fatalf("%d entries, %d in the index", len(tab.entries), len(tab.index))
		}
	}
}

func TestLearningAllocatesNothing(t *testing.T) {
	c := NewCorrection(6)
	tenants := []string{"a", "b", "c"}
	i := 0
	run := func() {
		c.Learn("m", tenants[i%3], 100, 100+i%7)
		c.Factor("m", tenants[i%3]).Apply(i)
		c.Factor("claude-opus-4-7", "unknown").Apply(i)
		i++
	}
	for range 3 {
		run()
	}
	if n := testing.AllocsPerRun(300, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
