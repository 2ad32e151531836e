package closer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// armAt says before which byte of the wire something is told to a Conn.
type armAt struct {
	at       int
	announce bool
	mark     Mark
	after    int
}

// result is what a whole wire came to.
type result struct {
	wire      []byte
	ended     []Ended
	lost      []Mark
	untracked int
	refused   int // by Arm
}

// play sends a wire through a Conn in pieces that end at cuts and where something is told.
func play(wire []byte, tells []armAt, cuts []int) result {
	c := &Conn{}
	var r result
	ends := append([]int{len(wire)}, cuts...)
	for _, t := range tells {
		ends = append(ends, t.at)
	}
	slices.Sort(ends)
	at := 0
	tell := func() {
		for _, t := range tells {
			switch {
			case t.at != at:
			case t.announce:
				c.Announce()
			case !c.Arm(t.mark, t.after):
				r.refused++
			}
		}
	}
	tell()
	for _, end := range ends {
		if end == at {
			continue
		}
		piece := wire[at:end]
		seen := 0
		out := c.Pass(len(piece), func(from, to int) []byte {
			if from < seen || to <= from || to > len(piece) {
				panic(fmt.Sprintf("asks for [%d,%d) of %d, after %d", from, to, len(piece), seen))
			}
			seen = to
			return append([]byte(nil), piece[from:to]...)
		})
		r.wire = append(r.wire, Apply(piece, out.Edits)...)
		r.ended = append(r.ended, out.Ended...)
		r.lost = append(r.lost, out.Lost...)
		if out.Untracked {
			r.untracked++
		}
		at = end
		tell()
	}
	if len(c.cuts) > MaxCuts || len(c.tails) > MaxCuts {
		panic("more is kept than may be")
	}
	return r
}

func (r result) String() string {
	return fmt.Sprintf("%q ended=%v lost=%d untracked=%d refused=%d", r.wire, r.ended, len(r.lost), r.untracked, r.refused)
}

// everySplit plays a wire whole, split in two at every offset, in single bytes and in random pieces,
// and wants the same of each.
func everySplit(t *testing.T, wire []byte, tells []armAt) result {
	t.Helper()
	want := play(wire, tells, nil)
	check := func(what string, cuts []int) {
		t.Helper()
		if got := play(wire, tells, cuts); got.String() != want.String() {
			t.Fatalf("%s:\n got %v\nwant %v", what, got, want)
		}
	}
	single := []int{}
	for i := range wire {
		check(fmt.Sprintf("split at %d", i), []int{i})
		single = append(single, i)
	}
	check("in single bytes", single)
	rng := rand.New(rand.NewPCG(1, uint64(len(wire))))
	for range 20 {
		var cuts []int
		for i := range wire {
			if rng.IntN(7) == 0 {
				cuts = append(cuts, i)
			}
		}
		check(fmt.Sprint("split at ", cuts), cuts)
	}
	return want
}

func markOf(n int) Mark {
	return Mark([]byte(fmt.Sprintf("%032x", uint64(n)*0x9e3779b97f4a7c15)))
}

// chunks is a body in HTTP/1.1 chunks, without its end.
func chunks(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(p), p)
	}
	return b.String()
}

const (
	chunkedHead = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
	closedHead  = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
	lastChunk   = "0\r\n\r\n"
)

// frame is one HTTP/2 frame.
type frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

func (f frame) append(b []byte) []byte {
	n := len(f.payload)
	b = append(b, byte(n>>16), byte(n>>8), byte(n), f.kind, f.flags,
		byte(f.stream>>24), byte(f.stream>>16), byte(f.stream>>8), byte(f.stream))
	return append(b, f.payload...)
}

func frameBytes(list ...frame) []byte {
	var b []byte
	for _, f := range list {
		b = f.append(b)
	}
	return b
}

func data(stream uint32, text string) frame {
	return frame{kind: frameData, stream: stream, payload: []byte(text)}
}

func padded(stream uint32, text string, padding int) frame {
	p := append([]byte{byte(padding)}, text...)
	return frame{kind: frameData, flags: flagPadded, stream: stream, payload: append(p, bytes.Repeat([]byte{'P'}, padding)...)}
}

func reset(stream uint32, code byte) frame {
	return frame{kind: frameReset, stream: stream, payload: []byte{0, 0, 0, code}}
}

func endOf(stream uint32) frame { return frame{kind: frameData, flags: flagEndStream, stream: stream} }

func (f frame) ending() frame { f.flags |= flagEndStream; return f }

var (
	settings = frame{kind: frameSettings, payload: []byte{0, 3, 0, 0, 0, 100}}
	ping     = frame{kind: 6, payload: []byte("12345678")}
)

func head(stream uint32) frame {
	return frame{kind: frameHeaders, flags: 4, stream: stream, payload: []byte("\x88headers")}
}

func more(stream uint32) frame {
	return frame{kind: 9, flags: 4, stream: stream, payload: []byte("continued")}
}
