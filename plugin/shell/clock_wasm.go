package shell

import (
	"unsafe"

	"github.com/emmer-proxy/emmer/bucket"
)

// clockTimeGet is WASI's clock. time.Now would ask the host twice, for the monotonic clock too.
//
//go:wasmimport wasi_snapshot_preview1 clock_time_get
//go:noescape
func clockTimeGet(clock uint32, precision uint64, nanos unsafe.Pointer) uint32

const realtime = 0

func now() bucket.Millis {
	var nanos uint64
	if clockTimeGet(realtime, 1_000_000, unsafe.Pointer(&nanos)) != 0 {
		panic("the host has no clock")
	}
	return bucket.Millis(nanos / 1_000_000)
}
