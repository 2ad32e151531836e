package dialect

import "unsafe"

// load64 reads eight bytes at p[i], little-endian. On wasm Go (1.26) does not join byte loads into
// one; an unaligned load is allowed there.
func load64(p []byte, i int) uint64 {
	return *(*uint64)(unsafe.Pointer(&p[i : i+8][0]))
}
