//go:build !wasm

package dialect

import "encoding/binary"

// load64 reads eight bytes at p[i], little-endian.
func load64(p []byte, i int) uint64 { return binary.LittleEndian.Uint64(p[i:]) }
