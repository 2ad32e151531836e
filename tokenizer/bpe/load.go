//go:build !wasm

package bpe

import "encoding/binary"

// load64 reads the eight bytes at b[i], little-endian.
func load64(b *[textRoom]byte, i int) uint64 {
	return binary.LittleEndian.Uint64(b[i : i+8])
}

// byteAt reads b[i].
func byteAt(b *[textRoom]byte, i int) byte { return b[i] }

// view is a read-only table in the data of the program.
type view string

func viewOf(s string) view { return view(s) }

// byteOf, number16, number32 and number64 read the i-th number of a table.
func byteOf(v view, i uint32) byte { return v[i] }

func number16(v view, i uint64) uint32 {
	v = v[i*2 : i*2+2]
	return uint32(v[0]) | uint32(v[1])<<8
}

func number32(v view, i byte) uint32 {
	n := int(i) * 4
	v = v[n : n+4]
	return uint32(v[0]) | uint32(v[1])<<8 | uint32(v[2])<<16 | uint32(v[3])<<24
}

func number64(v view, i uint64) uint64 {
	v = v[i*8 : i*8+8]
	return uint64(v[0]) | uint64(v[1])<<8 | uint64(v[2])<<16 | uint64(v[3])<<24 |
		uint64(v[4])<<32 | uint64(v[5])<<40 | uint64(v[6])<<48 | uint64(v[7])<<56
}
