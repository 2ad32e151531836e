package closer

import (
	"strings"
	"testing"
)

// BenchmarkPass is what a piece of a stream costs: one event, on connections where nothing is cut, and
// on one where something is.
func BenchmarkPass(b *testing.B) {
	event := "data: " + strings.Repeat("x", 200) + "\n\n"
	for name, c := range map[string]struct {
		first, piece string
		announce     bool
		armed        bool
	}{
		"http1 not announced": {first: chunkedHead, piece: chunks(event)},
		"http1 announced":     {first: chunkedHead, piece: chunks(event), announce: true},
		"http1 armed":         {first: chunkedHead, piece: chunks(event), announce: true, armed: true},
		"http2":               {first: string(frameBytes(settings)), piece: string(frameBytes(data(1, event)))},
		"http2 armed":         {first: string(frameBytes(settings)), piece: string(frameBytes(data(1, event))), armed: true},
	} {
		b.Run(name, func(b *testing.B) {
			conn := &Conn{}
			if c.announce {
				conn.Announce()
			}
			first, piece := []byte(c.first), []byte(c.piece)
			conn.Pass(len(first), func(from, to int) []byte { return first[from:to] })
			if c.armed && !conn.Arm(markOf(1), 0) {
				b.Fatal("not armed")
			}
			b.ReportAllocs()
			for b.Loop() {
				if out := conn.Pass(len(piece), func(from, to int) []byte { return piece[from:to] }); len(out.Edits) > 0 {
					b.Fatal("an edit")
				}
			}
		})
	}
}
