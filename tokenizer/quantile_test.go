package tokenizer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestBuckets(t *testing.T) {
	last := 0
	for n := 0; n <= 1<<maxOctave+5; n++ {
		b := bucketOf(n)
		if b < last || b > last+1 || b >= len(histogram{}.buckets) {
			t.Fatalf("%d tokens in bucket %d, the ones before in %d", n, b, last)
		}
		last = b
		up := edgeOf(b) - min(n, 1<<maxOctave)
		if up < 0 || n > 64 && up*8 > n || n <= 64 && up > 8 {
			t.Fatalf("%d tokens in a bucket up to %d", n, edgeOf(b))
		}
	}
	if last != len(histogram{}.buckets)-1 || edgeOf(last) != 1<<maxOctave {
		t.Errorf("the last bucket is %d, up to %d", last, edgeOf(last))
	}
}

// lengths draws answers of the kinds that are met: short, long tailed, two humps, constant.
func lengths(kind int, r *rand.Rand) int {
	switch kind {
	case 0:
		return r.IntN(40)
	case 1:
		n := 1
		for r.IntN(5) > 0 && n < 1<<19 {
			n += n/2 + r.IntN(3)
		}
		return n
	case 2:
		return []int{100 + r.IntN(50), 4000 + r.IntN(3000)}[r.IntN(2)]
	}
	return 777
}

func TestQuantileAgreesWithTheReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for kind := range 4 {
		o := NewOutputs(2)
		var seen []int
		for n := 1; n <= remembered; n++ {
			v := lengths(kind, r)
			seen = append(seen, v)
			if !o.Learn("a", "m", v) {
				t.Fatalf("%d is refused", v)
			}
			if n%37 != 0 && n != fewest-1 && n != fewest {
				continue
			}
			sorted := slices.Sorted(slices.Values(seen))
			for _, q := range []int{1, 250, 500, 900, 950, 990, 999} {
				got, ok := o.Quantile("a", "m", q)
				if want := n >= fewest && (1000-q)*n >= 1000; ok != want {
					t.Fatalf("after %d answers, quantile %d: %v", n, q, ok)
				}
				exact := sorted[(n*q+999)/1000-1]
				if ok && (got < exact || got > exact+max(exact/8, 8)) {
					t.Fatalf("kind %d after %d answers, quantile %d: %d, the reference has %d", kind, n, q, got, exact)
				}
			}
		}
	}
}

// After a change the figure follows, and while nothing changes it stays where it is.
func TestQuantileAges(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	o := NewOutputs(1)
	for range 50000 {
		o.Learn("t", "m", 1000+r.IntN(100))
	}
	if got, _ := o.Quantile("t", "m", 950); got < 1080 || got > 1152 {
		t.Errorf("%d where 1,095 is right", got)
	}
	for range 2 * remembered {
		o.Learn("t", "m", 100+r.IntN(10))
	}
	if got, _ := o.Quantile("t", "m", 950); got > 1152 || got < 104 {
		t.Errorf("%d on the way to 109", got)
	}
	for range 4 * remembered {
		o.Learn("t", "m", 100+r.IntN(10))
	}
	if got, _ := o.Quantile("t", "m", 950); got < 109 || got > 120 {
		t.Errorf("%d where 109 is right", got)
	}
}

func TestAgeKeepsTheShape(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		var h histogram
		for range remembered {
			h.learn(lengths(r.IntN(4), r))
		}
		old := h
		h.age()
		if h.total < remembered/2-1 || h.total > remembered/2 {
			t.Fatalf("%d of %d are left", h.total, remembered)
		}
		// The answers above any bucket are half of what they were, less or more one half.
		var above, half int
		for i := len(h.buckets) - 1; i >= 0; i-- {
			above, half = above+int(old.buckets[i]), half+int(h.buckets[i])
			if d := above - 2*half; d < -1 || d > 1 {
				t.Fatalf("above bucket %d there were %d, now %d", i, above, half)
			}
		}
	}
}

func TestTenantsNeverMix(t *testing.T) {
	o := NewOutputs(100)
	keys := [][2]string{{"a", "bc"}, {"ab", "c"}, {"", "abc"}, {"abc", ""}, {"a\x00", "bc"}, {"a", "\x00bc"}}
	for i, k := range keys {
		for range 30 {
			o.Learn(k[0], k[1], 100<<i)
		}
	}
	for i, k := range keys {
		if got, ok := o.Quantile(k[0], k[1], 500); !ok || got < 100<<i || got > 113<<i {
			t.Errorf("%q: %d, %v", k, got, ok)
		}
	}
	if _, ok := o.Quantile("b", "bc", 500); ok {
		t.Error("a tenant that never called has a figure")
	}
}

func TestOutputsRefuse(t *testing.T) {
	o := NewOutputs(0)
	for _, n := range []int{-1, -1 << 63, maxLearned + 1, 1<<63 - 1} {
		if o.Learn("t", "m", n) {
			t.Errorf("%d was learned", n)
		}
	}
	if !o.Learn("t", "m", 0) || !o.Learn("t", "m", maxLearned) {
		t.Error("a possible figure is refused")
	}
	for range 100 {
		o.Learn("t", "m", maxLearned)
	}
	for _, q := range []int{-1 << 63, 0, 1, 999, 1000, 1<<63 - 1} {
		if got, ok := o.Quantile("t", "m", q); ok && got != 1<<maxOctave && got != edgeOf(0) {
			t.Errorf("quantile %d: %d", q, got)
		}
	}
}

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
	o, c := NewOutputs(3), NewCorrection(6)
	tenants := []string{"a", "b", "c"}
	i := 0
	run := func() {
		o.Learn(tenants[i%3], "m", i)
		o.Quantile(tenants[i%3], "m", 950)
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

func FuzzQuantile(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200}, uint16(950))
	f.Fuzz(func(t *testing.T, b []byte, q uint16) {
		o := NewOutputs(1)
		var seen []int
		for i, c := range b {
			v := int(c) << (i % 13)
			o.Learn("", "", v)
			seen = append(seen, v)
		}
		got, ok := o.Quantile("", "", int(q))
		n, p := len(seen), min(max(int(q), 1), 999)
		if !ok || n > remembered {
			return
		}
		slices.Sort(seen)
		exact := seen[(n*p+999)/1000-1]
		if got < exact || got > exact+max(exact/8, 8) {
			t.Fatalf("%d, the reference has %d", got, exact)
		}
	})
}
