package bpe

import "unsafe"

// On wasm Go (1.26) neither joins byte loads into one nor drops the bounds checks of the counter's
// inner loops, and both cost more there than the work itself. So this file reads without checks
// what load.go reads with them: every index that is out of bounds here is a panic in the native
// tests, which run the same code over hostile texts.

// load64 reads the eight bytes at b[i], little-endian.
func load64(b *[textRoom]byte, i int) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(b), i))
}

// byteAt reads b[i].
func byteAt(b *[textRoom]byte, i int) byte {
	return *(*byte)(unsafe.Add(unsafe.Pointer(b), i))
}

// view is a read-only table in the data of the module.
type view = unsafe.Pointer

func viewOf(s string) view { return view(unsafe.StringData(s)) }

// byteOf, number16, number32 and number64 read the i-th number of a table.
func byteOf(v view, i uint32) byte { return *(*byte)(unsafe.Add(v, i)) }

func number16(v view, i uint64) uint32 { return uint32(*(*uint16)(unsafe.Add(v, i*2))) }

func number32(v view, i byte) uint32 { return *(*uint32)(unsafe.Add(v, uintptr(i)*4)) }

func number64(v view, i uint64) uint64 { return *(*uint64)(unsafe.Add(v, i*8)) }
