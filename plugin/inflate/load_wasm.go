package inflate

import "unsafe"

// load64 reads the first eight bytes of p, little-endian. On wasm Go (1.26) does not join byte loads
// into one; an unaligned load is allowed there.
func load64(p []byte) uint64 { return *(*uint64)(unsafe.Pointer(&p[:8][0])) }
