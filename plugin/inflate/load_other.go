//go:build !wasm

package inflate

import "encoding/binary"

// load64 reads the first eight bytes of p, little-endian.
func load64(p []byte) uint64 { return binary.LittleEndian.Uint64(p) }
