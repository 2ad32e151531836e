// Package closer ends a running answer on the wire, cleanly, where the host has no call for it: it
// walks the bytes that a downstream connection is sent and says what to put in and what to leave out,
// so that the client's library sees a normal end.
//
//   - HTTP/1.1: behind the chunk in which the answer's final bytes end, the last chunk; what the host
//     writes afterwards is left out, and the connection must be closed. So that no client sends its
//     next request on it, `connection: close` goes into the head of each answer that may be cut. Only
//     chunked answers can be ended: one with a content-length has said how long it is.
//   - HTTP/2: behind the DATA frame in which the final bytes end, an empty DATA frame with END_STREAM,
//     which takes nothing from a flow-control window. The host then resets the stream; its RST_STREAM
//     passes with NO_ERROR, which tells a client that still uploads to stop (RFC 9113, section 8.1).
//     Other streams pass as they are.
//
// The final bytes carry a mark, fresh random digits for each cut, which nobody else can know: so the
// place is found whatever the host merged, split, padded or held back for a flow-control window, and
// bytes of another stream are never taken for it.
//
// It refuses to know what is answered and why it ends, and keeps no bytes of answers: its memory is
// the cuts under way (at most MaxCuts for a connection) and some ten bytes of a frame's header. Bytes
// that it can't follow pass as they are, for good: then nothing on this connection can be cut, each
// cut under way is reported as lost, and Lost says so.
//
// The caller, for each connection,
//   - makes a Conn before its first byte toward the client,
//   - hands it all bytes toward the client, in order, and applies the edits before they go out,
//   - calls Announce when the head of an answer that may be cut is about to be written, before it is
//     (never for an answer to HEAD, nor for one that states its length),
//   - calls Arm before it writes the final bytes, and writes nothing of that answer after them,
//   - on Ended lets the host end the stream, or the connection where Close says so, not before,
//   - calls Disarm when the exchange of an armed mark is over.
package closer

import "math"

// MarkSize is the length of a mark in bytes.
const MarkSize = 32

// MaxCuts bounds the cuts that are under way on one connection.
const MaxCuts = 256

// Mark is MarkSize random digits, in the base that suits the answer's dialect.
type Mark [MarkSize]byte

// Edit changes a piece: Insert goes in before the byte at offset At, then Drop bytes are left out.
type Edit struct {
	At, Drop int
	Insert   []byte
}

// Apply returns what becomes of a piece. It takes the edits of one Outcome, which are in order.
func Apply(piece []byte, edits []Edit) []byte {
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(out, piece[at:e.At]...)
		out = append(out, e.Insert...)
		at = e.At + e.Drop
	}
	return append(out, piece[at:]...)
}

// Ended says that an answer's end is on the wire, once the edits are applied.
type Ended struct {
	Mark  Mark
	Close bool // the connection ends with it (HTTP/1.1); else the stream alone (HTTP/2)
}

// Outcome is what a piece came to. Its slices are valid until the next call.
type Outcome struct {
	Edits []Edit
	Ended []Ended
	Lost  []Mark // armed, and can't be ended any more
	// Untracked: from here on nothing of this connection can be followed. Said once.
	Untracked bool
}

type protocol uint8

const (
	unknown protocol = iota // no byte has passed
	http1
	http2
	opaque // what it is can't be followed
)

// Conn is one downstream connection, seen toward the client. The zero value is ready.
type Conn struct {
	protocol protocol
	h1       answer
	h2       frames
	cuts     []cut
	tails    []tail
	out      Outcome
}

// Announce says that the next answer of an HTTP/1.1 connection may be cut: the next bytes, or the
// first behind the answer that is being followed, are its head. On HTTP/2 it does nothing. False:
// nothing on this connection can be cut.
func (c *Conn) Announce() bool {
	switch {
	case c.protocol == opaque, c.protocol == http1 && c.h1.place == ended:
		return false
	case c.protocol == http2:
	case c.protocol == unknown, c.h1.place == idle:
		// An HTTP/2 server has sent its SETTINGS before it answers, so what is unknown is HTTP/1.1.
		c.h1 = answer{place: inHead}
	default:
		c.h1.next = true
	}
	return true
}

// CanCut says whether an answer could be ended now: on HTTP/1.1 the announced one, unless its head
// has passed and it was not chunked; on HTTP/2 any.
func (c *Conn) CanCut() bool {
	switch c.protocol {
	case unknown, http1:
		return c.h1.place != idle && c.h1.place != ended && !c.h1.next && len(c.cuts) == 0
	case http2:
		return len(c.cuts) < MaxCuts
	}
	return false
}

// Arm says that the final bytes of an answer are about to be written: they contain mark once, and
// after bytes follow it. False: this one can't be ended here.
func (c *Conn) Arm(mark Mark, after int) bool {
	if !c.CanCut() {
		return false
	}
	c.cuts = append(c.cuts, cut{mark: mark, after: after})
	return true
}

// Disarm forgets a mark whose final bytes have not passed.
func (c *Conn) Disarm(mark Mark) {
	for i := range c.cuts {
		if c.cuts[i].mark == mark && c.cuts[i].state != over {
			c.forget(i)
			return
		}
	}
}

// Pass walks the next piece. read gives the bytes [from, to) of it; what need not be seen is not
// asked for. Bytes that can't be read make the connection one that can't be followed.
func (c *Conn) Pass(size int, read func(from, to int) []byte) Outcome {
	c.out.Edits, c.out.Ended, c.out.Lost, c.out.Untracked = c.out.Edits[:0], c.out.Ended[:0], c.out.Lost[:0], false
	for at := 0; at < size; {
		skip, want := c.needs()
		skip = min(skip, size-at)
		c.skip(at, skip)
		if at += skip; at == size {
			break
		}
		to := at + min(want, size-at)
		p := read(at, to)
		if len(p) != to-at {
			c.lose()
			break
		}
		c.walk(p, at)
		at = to
	}
	return c.out
}

const all = math.MaxInt

// needs says how many of the next bytes need not be seen, and how many behind them are wanted.
func (c *Conn) needs() (skip, want int) {
	switch c.protocol {
	case unknown:
		return 0, all
	case http1:
		if c.h1.place == idle || c.h1.place == ended {
			return all, 0
		}
		return 0, all
	case http2:
		return c.h2.needs(len(c.cuts) > 0)
	}
	return all, 0
}

// skip passes bytes unseen.
func (c *Conn) skip(at, n int) {
	switch {
	case n == 0:
	case c.protocol == http1 && c.h1.place == ended:
		c.drop(at, n)
	case c.protocol == http2:
		c.h2.unseen()
		c.h2.left -= n
		if c.h2.left == 0 {
			c.frameOver(at + n)
		}
	}
}

func (c *Conn) walk(p []byte, at int) {
	if c.protocol == unknown {
		switch p[0] {
		case 'H', 'h':
			c.protocol = http1
		case 0: // a frame shorter than 64 KiB; the first one is SETTINGS
			c.protocol = http2
		default:
			c.lose()
			return
		}
	}
	switch c.protocol {
	case http1:
		c.walkAnswer(p, at)
	case http2:
		c.walkFrames(p, at)
	}
}

// lose gives up: bytes pass as they are from here on.
func (c *Conn) lose() {
	for i := range c.cuts {
		if c.cuts[i].state != over {
			c.out.Lost = append(c.out.Lost, c.cuts[i].mark)
		}
	}
	if b := c.h2.held(); len(b) > 0 { // of the piece before this one; it must not be missing
		c.insert(0, b)
	}
	*c = Conn{protocol: opaque, out: c.out}
	c.out.Untracked = true
}

// insert and drop keep edits in order of their places: each call is about a place not before the
// last one's.
func (c *Conn) insert(at int, b []byte) {
	c.out.Edits = append(c.out.Edits, Edit{At: at, Insert: append([]byte(nil), b...)})
}

func (c *Conn) drop(at, n int) {
	if k := len(c.out.Edits) - 1; k >= 0 && c.out.Edits[k].At+c.out.Edits[k].Drop == at {
		c.out.Edits[k].Drop += n
		return
	}
	c.out.Edits = append(c.out.Edits, Edit{At: at, Drop: n})
}
