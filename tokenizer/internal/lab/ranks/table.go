package main

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

const (
	hashFactor = 0x9E3779B97F4A7C15
	idBits     = 18
	empty      = ^uint64(0)
)

// layOut builds the perfect hash that tokenizer/bpe/table.go reads; the layout stands there. One slot
// in twenty stays empty. Buckets are placed from the fullest on, each with the first displacement
// that finds free slots for all of its merges.
func layOut(v *vocabulary, merges []merge, bucketBits int) ([]byte, error) {
	type entry struct{ hash, value uint64 }
	buckets := make([][]entry, 1<<bucketBits)
	for _, m := range merges {
		key := uint64(m.left)<<idBits | uint64(m.right)
		h := key * hashFactor
		b := h >> (64 - bucketBits)
		buckets[b] = append(buckets[b], entry{h, key<<idBits | uint64(m.id)})
	}
	order := make([]int, len(buckets))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(buckets[b]), len(buckets[a])) })

	slots := make([]uint64, len(merges)*20/19)
	for i := range slots {
		slots[i] = empty
	}
	displacements := make([]uint16, len(buckets))
	for _, b := range order {
		placed := len(buckets[b]) == 0
		for d := 0; d < 1<<16 && !placed; d++ {
			placed = true
			for i, e := range buckets[b] {
				s := slotOf(e.hash, uint32(d), len(slots))
				if slots[s] != empty {
					for _, e := range buckets[b][:i] {
						slots[slotOf(e.hash, uint32(d), len(slots))] = empty
					}
					placed = false
					break
				}
				slots[s] = e.value
			}
			displacements[b] = uint16(d)
		}
		if !placed {
			return nil, fmt.Errorf("no displacement places the %d merges of bucket %d", len(buckets[b]), b)
		}
	}

	var out []byte
	for b := range 256 {
		out = binary.LittleEndian.AppendUint32(out, v.ids[string([]byte{byte(b)})])
	}
	for _, d := range displacements {
		out = binary.LittleEndian.AppendUint16(out, d)
	}
	for _, s := range slots {
		out = binary.LittleEndian.AppendUint64(out, s)
	}
	return out, nil
}

func slotOf(h uint64, displacement uint32, slots int) uint64 {
	return uint64(uint32(h>>16)+displacement*(uint32(h)|1)) * uint64(slots) >> 32
}
