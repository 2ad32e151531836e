package bpe

import _ "embed"

//go:embed o200k_base.bin
var o200kData string

//go:embed cl100k_base.bin
var cl100kData string

// Every token of both vocabularies encodes to itself (the generator checks it). So each token of two
// bytes or more has exactly one last merge that texts can reach, and merging a whole piece gives the
// same count as asking first whether the piece is a token. The table is that list of merges, and
// needs no byte strings: a merge is (left id, right id) -> id, and the id is also its rank.
//
// It is a perfect hash: a bucket's displacement moves its merges to slots that no other merge has.
// One load of the displacement and one of the slot tell hit from miss without a loop. The layout,
// little-endian, made by internal/lab/ranks:
//
//	256 x uint32        the id of each byte
//	2^bucketBits x uint16  the displacement of each bucket
//	slots x uint64      left<<36 | right<<18 | id, or all ones if the slot is empty
type table struct {
	bytes, displacements, entries view

	shift uint   // 64 - bucketBits
	slots uint64 // number of entries
}

const (
	idBits = 18
	idMask = 1<<idBits - 1

	// absent is what merge gives for two tokens that never merge. It is above every rank, also when
	// the merge functions shift it to make room for a position.
	absent = ^uint32(0)

	hashFactor = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio, odd
)

func newTable(data string, bucketBits uint) table {
	const bytesSize = 256 * 4
	entries := bytesSize + 2<<bucketBits
	return table{
		bytes:         viewOf(data[:bytesSize]),
		displacements: viewOf(data[bytesSize:entries]),
		entries:       viewOf(data[entries:]),
		shift:         64 - bucketBits,
		slots:         uint64(len(data)-entries) / 8,
	}
}

// merge is the token that l and r become, or absent. It must inline (a test says so): a call costs
// more than its body.
func (t *table) merge(l, r uint32) uint32 {
	key := uint64(l)<<idBits | uint64(r)
	h := key * hashFactor
	id := number64(t.entries, uint64(uint32(h>>16)+number16(t.displacements, h>>t.shift)*(uint32(h)|1))*t.slots>>32) ^ key<<idBits
	if id > idMask {
		return absent // the slot is another pair's
	}
	return uint32(id)
}
