package plan

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/emmer-proxy/emmer/bucket"
)

// CountID names one count of a store in few bytes, however long its caller made the entity: nobody
// finds two counts with the same 128 bits of SHA-256, so nobody can pass for another.
type CountID [16]byte

// IDOf is the name of the count that an item takes from, in the shard of a store that tag names. A
// class of a shared bucket has a count of its own.
func IDOf(tag string, l *bucket.Limit) CountID {
	b := make([]byte, 0, 192)
	for _, part := range [...]string{tag, l.Name, l.Span(), l.Share, l.Entity} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	sum := sha256.Sum256(append(b, byte(l.Kind)))
	return CountID(sum[:len(CountID{})])
}

// WholeOf is one name for a whole list of items, in their order.
func WholeOf(tag string, items []bucket.Item) CountID {
	b := make([]byte, 0, 16*len(items))
	for i := range items {
		id := IDOf(tag, &items[i].Limit)
		b = append(b, id[:]...)
	}
	sum := sha256.Sum256(b)
	return CountID(sum[:len(CountID{})])
}

// Capacity is the most that a limit gives as it is configured, or as the caller's claim sets it.
func Capacity(l *bucket.Limit) bucket.Amount { return capacity(l) }

// Enforced says whether an item may refuse a call.
func Enforced(it *bucket.Item) bool { return !it.Shadow && it.Limit.Kind != bucket.Burn }

// Refill is how fast a bucket refills, a shared one for the call's class; other kinds have no rate.
func Refill(l *bucket.Limit) (bucket.Amount, bucket.Millis) {
	if l.Kind != bucket.TokenBucket && l.Kind != bucket.SharedBucket {
		return 0, 0
	}
	return refill(l)
}
