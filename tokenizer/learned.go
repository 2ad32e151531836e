package tokenizer

import "strings"

// pair is the key of what is learned.
type pair struct{ a, b string }

// table keeps a bounded number of entries. Reading changes nothing; when a new entry needs room, the
// one goes that was written longest ago. Its answers depend on the order of the writes alone.
type table[T any] struct {
	index   map[pair]int // never ranged over
	entries []entry[T]
	most    int
	writes  uint64
}

type entry[T any] struct {
	key     pair
	written uint64
	value   T
}

func newTable[T any](most int) table[T] {
	return table[T]{index: make(map[pair]int), most: max(most, 1)}
}

// get is the value of a key, or nil.
func (t *table[T]) get(key pair) *T {
	if i, ok := t.index[key]; ok {
		return &t.entries[i].value
	}
	return nil
}

// put is the value of a key, to be written to; fresh says that it was not there.
func (t *table[T]) put(key pair) (value *T, fresh bool) {
	t.writes++
	i, ok := t.index[key]
	if ok {
		t.entries[i].written = t.writes
		return &t.entries[i].value, false
	}
	// The caller's strings may be parts of a request.
	key = pair{strings.Clone(key.a), strings.Clone(key.b)}
	if len(t.entries) < t.most {
		t.entries = append(t.entries, entry[T]{})
		i = len(t.entries) - 1
	} else {
		i = t.oldest()
		delete(t.index, t.entries[i].key)
	}
	t.entries[i] = entry[T]{key: key, written: t.writes}
	t.index[key] = i
	return &t.entries[i].value, true
}

func (t *table[T]) oldest() (i int) {
	for j := range t.entries {
		if t.entries[j].written < t.entries[i].written {
			i = j
		}
	}
	return i
}
