// Package driver is the part of a benchmark module that the host talks to: it gives room for a text
// in linear memory, counts what the host put there, and says how many objects that took. The module
// that imports it sets Count before main ends.
package driver

import "runtime"

// Count counts the text with an encoding of the module, by its index.
var Count func(encoding int, text []byte) int

// Text is the room for the text, set by Room.
var Text []byte

// Room makes room for n bytes.
func Room(n int) { Text = make([]byte, n) }

var stats runtime.MemStats // not made anew: it would count itself

// Allocations is how many heap objects have been made so far.
func Allocations() uint64 {
	runtime.ReadMemStats(&stats)
	return stats.Mallocs
}
