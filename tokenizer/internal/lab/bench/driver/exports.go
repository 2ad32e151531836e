//go:build wasip1

package driver

import "unsafe"

//go:wasmexport room
func room(n uint32) uint32 {
	Room(int(n))
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(Text))))
}

//go:wasmexport count
func count(encoding, n uint32) uint32 { return uint32(Count(int(encoding), Text[:n])) }

//go:wasmexport allocations
func allocations() uint64 { return Allocations() }
