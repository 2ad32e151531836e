package core

import (
	"runtime"
	"strings"
	"testing"
)

// TestParkedCallsKeepNoBodies: a VM dies with all its calls when its memory is used up, and a slow
// store parks as many calls as clients care to make.
func TestParkedCallsKeepNoBodies(t *testing.T) {
	const calls, size = 64, 1 << 20
	targets := `{"up": {"provider": "openai", "models": {"m": {"name": "a-much-longer-deployment-name"}}}}`
	w := newWorkerWith(t, "flag", "closed", targets)
	body := []byte(strings.Replace(chat, "{", "{"+strings.Repeat(" ", size-len(chat)), 1))
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	var parked []*Stream
	for i := range calls {
		s := w.NewStream(uint64(i + 1))
		s.Step(headersEvent(false))
		if got := kinds(s.Step(bodyEvent(string(body)))); got != "call hold" {
			t.Fatalf("at the end of the body: %q", got)
		}
		parked = append(parked, s)
	}
	if grown := int64(heap() - before); grown > calls*size/8 {
		t.Errorf("%d calls that wait for the store keep %d bytes", len(parked), grown)
	}
	runtime.KeepAlive(parked)
}
