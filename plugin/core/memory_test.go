package core

import (
	"bytes"
	"compress/gzip"
	"runtime"
	"strings"
	"testing"
)

// TestParkedCallsKeepNoBodies: a VM dies with all its calls when its memory is used up, and a slow
// store parks as many calls as clients care to make.
func TestParkedCallsKeepNoBodies(t *testing.T) {
	const calls, size = 64, 1<<20 - 100 // what is put in stays below body.hold
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

// TestABombIsRefusedInFlatMemory is C59: a body that would decode to 200 MB is refused with 413 once
// body.inflate is reached, and no more memory was used for it than for any body in a coding.
func TestABombIsRefusedInFlatMemory(t *testing.T) {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = z.Write([]byte(chat[:len(chat)-len(`"}],"max_tokens":10}`)]))
	for range 200 {
		_, _ = z.Write(bytes.Repeat([]byte("a"), 1_000_000))
	}
	_, _ = z.Write([]byte(chat[len(chat)-len(`"}],"max_tokens":10}`):]))
	_ = z.Close()
	w := newWorker(t, "flag", "closed")
	used := func(body []byte, want string) uint64 {
		var before, after runtime.MemStats
		s := w.NewStream(7)
		s.Step(headersEvent(false, [2]string{"content-encoding", "gzip"}))
		e := bodyEvent(string(body))
		runtime.ReadMemStats(&before)
		if got := kinds(s.Step(e)); got != want {
			t.Errorf("%q", got)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	var small bytes.Buffer
	z.Reset(&small)
	_, _ = z.Write([]byte(chat))
	_ = z.Close()
	used(small.Bytes(), "call hold") // makes what is kept
	usual := used(small.Bytes(), "call hold")
	if got := used(b.Bytes(), "answer(413) hold"); got > usual+64<<10 {
		t.Errorf("%d bytes of memory for a bomb of %d, %d for a usual body", got, b.Len(), usual)
	}
}
