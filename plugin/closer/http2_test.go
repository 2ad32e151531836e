package closer

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// reference is the dumb way: the whole wire at once, frame by frame, and each stream's data as one
// string. It knows every mark from the start.
func reference(wire []byte, marks map[Mark]int) (out []byte, endedBy []Mark) {
	type stream struct {
		data  []byte
		ended bool
	}
	streams := map[uint32]*stream{}
	for len(wire) >= headerSize {
		n := int(wire[0])<<16 | int(wire[1])<<8 | int(wire[2])
		if len(wire) < headerSize+n {
			break
		}
		f, kind, flags := wire[:headerSize+n], wire[3], wire[4]
		id := uint32(wire[5]&0x7f)<<24 | uint32(wire[6])<<16 | uint32(wire[7])<<8 | uint32(wire[8])
		wire = wire[headerSize+n:]
		s := streams[id]
		if s == nil {
			s = &stream{}
			streams[id] = s
		}
		ends := kind == frameReset || flags&flagEndStream != 0 && (kind == frameData || kind == frameHeaders)
		switch {
		case kind == frameData && s.ended:
		case kind == frameReset && s.ended:
			out = append(out, f[:headerSize]...)
			out = append(out, make([]byte, n)...)
		default:
			out = append(out, f...)
		}
		if kind == frameData && !s.ended {
			p := f[headerSize:]
			if flags&flagPadded != 0 && n > 0 {
				p = p[1 : len(p)-int(p[0])]
			}
			s.data = append(s.data, p...)
			for m, after := range marks {
				at := bytes.Index(s.data, m[:])
				if at >= 0 && len(s.data) >= at+MarkSize+after {
					endedBy = append(endedBy, m)
					s.ended = true
					if !ends {
						out = append(out, 0, 0, 0, 0, 1, byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
					}
				}
			}
		}
		if ends {
			delete(streams, id)
		}
	}
	return append(out, wire...), endedBy
}

func TestHTTP2(t *testing.T) {
	a, b := markOf(1), markOf(2)
	am, bm := string(a[:]), string(b[:])
	small := []frame{settings, head(1), head(3)}
	for i, c := range "data: tiny\n\n: " + am + "\n\n" { // one byte a frame, with other things between
		small = append(small, data(1, string(c)))
		switch i % 5 {
		case 1:
			small = append(small, ping, data(3, am[:i%32]))
		case 3:
			small = append(small, padded(3, "", 3), frame{kind: 8, stream: 0, payload: []byte{0, 0, 1, 0}})
		}
	}
	small = append(small, data(3, "other"), reset(1, 2), data(3, "").ending())
	for name, c := range map[string]struct {
		wire  []frame
		after int
		want  []frame // nil: as the reference says
		ended int
		lost  int
	}{
		"cut": {wire: []frame{settings, head(1), data(1, "data: 1\n\n"), data(1, ": "+am+"\n\n"), reset(1, 2), ping}, after: 2,
			want: []frame{settings, head(1), data(1, "data: 1\n\n"), data(1, ": "+am+"\n\n"), endOf(1), reset(1, 0), ping}, ended: 1},
		"two at once":              {wire: []frame{settings, head(1), head(3), data(1, am[:10]), data(3, bm[:10]), data(1, am[10:]), data(3, bm[10:]), reset(3, 2), reset(1, 2), head(5), data(5, "x").ending()}, ended: 2},
		"small windows":            {wire: small, after: 2, ended: 1},
		"padding":                  {wire: []frame{settings, head(1), padded(1, am[:5], 200), padded(1, am[5:], 0), padded(1, "\n\n", 7), reset(1, 2)}, after: 2, ended: 1},
		"padding that looks right": {wire: []frame{settings, head(1), {kind: frameData, flags: flagPadded, stream: 1, payload: []byte("\x20" + am)}, data(1, "x").ending()}},
		"ended by the host": {wire: []frame{settings, head(1), data(1, am).ending(), head(3), data(3, "x").ending()},
			want: []frame{settings, head(1), data(1, am).ending(), head(3), data(3, "x").ending()}, ended: 1},
		"the host ends it too": {wire: []frame{settings, head(1), data(1, am), ping, data(1, "").ending(), ping},
			want: []frame{settings, head(1), data(1, am), endOf(1), ping, ping}, ended: 1},
		"data behind the end":     {wire: []frame{settings, head(1), data(1, am), data(1, "late"), ping, padded(1, "late", 9), reset(1, 8), ping}, ended: 1},
		"trailers behind the end": {wire: []frame{settings, head(1), data(1, am), head(1).ending(), more(1), ping}, ended: 1},
		"continued heads":         {wire: []frame{settings, head(1), more(1), more(1), data(1, "x"), data(1, am+"--"), reset(1, 2)}, after: 2, ended: 1},
		"reset before the mark":   {wire: []frame{settings, head(1), data(1, am[:20]), reset(1, 5), head(3), data(3, am[20:]).ending()}},
		"reset before the end":    {wire: []frame{settings, head(1), data(1, am), reset(1, 5), ping}, after: 2, lost: 1},
		"the wrong stream's end":  {wire: []frame{settings, head(1), head(3), data(1, am[:16]), data(3, am[16:]), data(1, "no"), data(3, "no").ending()}},
		"more than was said":      {wire: []frame{settings, head(1), data(1, am+"\n\nmore"), reset(1, 2)}, after: 2, ended: 1},
		"empty frames":            {wire: []frame{settings, {kind: frameSettings, flags: 1}, head(1), data(1, ""), data(1, am[:7]), data(1, ""), data(1, am[7:]), reset(1, 2)}, ended: 1},
	} {
		t.Run(name, func(t *testing.T) {
			wire := frameBytes(c.wire...)
			start := len(frameBytes(settings))
			tells := []armAt{{at: start, mark: a, after: c.after}, {at: start, mark: b, after: c.after}}
			r := everySplit(t, wire, tells)
			want, endedBy := reference(wire, map[Mark]int{a: c.after, b: c.after})
			if c.want != nil {
				if explicit := frameBytes(c.want...); !bytes.Equal(explicit, want) {
					t.Fatalf("the reference says\n%q\nnot\n%q", want, explicit)
				}
			}
			if !bytes.Equal(r.wire, want) {
				t.Errorf("got\n%q\nwant\n%q", r.wire, want)
			}
			if len(r.ended) != c.ended || len(endedBy) != c.ended || len(r.lost) != c.lost || r.untracked != 0 || r.refused != 0 {
				t.Errorf("ended %v, by the reference %d, lost %d, untracked %d, refused %d", r.ended, len(endedBy), len(r.lost), r.untracked, r.refused)
			}
		})
	}
}

// Marks may be armed at any time before their bytes pass, in the middle of any frame that they are
// not in; and without any, a connection's payloads are not read.
func TestArmedInTheMiddle(t *testing.T) {
	m := markOf(3)
	before := frameBytes(settings, head(1), head(3), data(3, strings.Repeat("a", 50)), padded(1, "data: 1\n\n", 20), ping)
	wire := append(bytes.Clone(before), frameBytes(data(1, string(m[:])), reset(1, 2), data(3, "z").ending())...)
	want, _ := reference(wire, map[Mark]int{m: 0})
	for at := 1; at <= len(before); at++ {
		for _, cut := range []int{0, at + 1, at + 9, len(before) + 5} {
			r := play(wire, []armAt{{at: at, mark: m}}, []int{cut})
			if !bytes.Equal(r.wire, want) || len(r.ended) != 1 {
				t.Fatalf("armed at %d, split at %d: %v", at, cut, r)
			}
		}
	}
	c := &Conn{}
	read := 0
	big := frameBytes(settings, head(1), data(1, strings.Repeat("a", 16000)), data(1, strings.Repeat("b", 16000)).ending())
	c.Pass(len(big), func(from, to int) []byte { read += to - from; return big[from:to] })
	if read > len(frameBytes(settings))+3*headerSize+len(big)-32000 {
		// The first bytes tell the protocol, so the first piece may be read whole.
		if read > len(big) {
			t.Errorf("%d bytes of %d were read", read, len(big))
		}
	}
	read = 0
	c.Pass(len(big)-15, func(from, to int) []byte { read += to - from; return big[15:][from:to] })
	if read != 3*headerSize {
		t.Errorf("%d bytes were read of three frames", read)
	}
}

func TestBounds(t *testing.T) {
	c := &Conn{}
	pass := func(f ...frame) {
		wire := frameBytes(f...)
		c.Pass(len(wire), func(from, to int) []byte { return wire[from:to] })
	}
	pass(settings)
	for i := range MaxCuts {
		if !c.Arm(markOf(i+1), 0) {
			t.Fatalf("cut %d is refused", i)
		}
	}
	if c.CanCut() || c.Arm(markOf(9999), 0) {
		t.Error("one cut too many is taken")
	}
	for i := range 3 * MaxCuts { // each stream ends like the beginning of a mark
		m := markOf(i%MaxCuts + 1)
		pass(data(uint32(2*i+1), string(m[:20])))
	}
	if len(c.tails) > MaxCuts {
		t.Errorf("%d ends of streams are kept", len(c.tails))
	}
	m := markOf(MaxCuts) // the youngest still counts
	wire := frameBytes(data(uint32(2*(3*MaxCuts-1)+1), string(m[20:])))
	if out := c.Pass(len(wire), func(from, to int) []byte { return wire[from:to] }); len(out.Ended) != 1 {
		t.Errorf("%+v", out)
	}
	for i := range MaxCuts {
		c.Disarm(markOf(i + 1))
	}
	pass(reset(uint32(2*(3*MaxCuts-1)+1), 0))
	if c.cuts != nil || c.tails != nil || !c.CanCut() {
		t.Errorf("%d cuts and %d ends are left", len(c.cuts), len(c.tails))
	}
}

func TestNoPreface(t *testing.T) {
	for name, wire := range map[string][]byte{
		"no settings first": frameBytes(ping, settings), "settings of a stream": frameBytes(frame{kind: frameSettings, stream: 1}),
		"too much padding": frameBytes(settings, frame{kind: frameData, flags: flagPadded, stream: 1, payload: []byte{9, 1, 2}}),
	} {
		r := everySplit(t, wire, []armAt{{at: 0, announce: true}, {at: 0, mark: markOf(1)}})
		if r.untracked != 1 || !bytes.Equal(r.wire, wire) || len(r.lost) != 1 {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// A header that was kept back goes out even if its cut is forgotten meanwhile.
func TestDisarmedInAHeader(t *testing.T) {
	wire := frameBytes(settings, head(1), data(1, "abc"), ping)
	for at := len(frameBytes(settings)); at < len(wire); at++ {
		for next := at; next < len(wire); next++ {
			c := &Conn{}
			var got []byte
			for i, piece := range [][]byte{wire[:len(frameBytes(settings))], wire[len(frameBytes(settings)):at], wire[at:next], wire[next:]} {
				out := c.Pass(len(piece), func(from, to int) []byte { return piece[from:to] })
				got = append(got, Apply(piece, out.Edits)...)
				switch i {
				case 0:
					c.Arm(markOf(1), 0)
				case 1:
					c.Disarm(markOf(1))
				}
			}
			if !bytes.Equal(got, wire) {
				t.Fatalf("%d, %d: got\n%q\nwant\n%q", at, next, got, wire)
			}
		}
	}
}

func FuzzHTTP2(f *testing.F) {
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz"), uint8(3))
	f.Add([]byte{0, 1, 2, 3, 0x81, 0x42, 9, 9, 0xff, 0xfe, 7, 7, 7}, uint8(1))
	f.Fuzz(func(t *testing.T, script []byte, after uint8) {
		// Each byte of the script is a frame of one of three streams; the marks' bytes go out in order,
		// some at a time, on streams 1 and 3. Stream 5 is a bystander that says the same in vain.
		marks := []Mark{markOf(11), markOf(12)}
		texts := map[uint32][]byte{}
		for i, m := range marks {
			texts[uint32(2*i+1)] = append(append([]byte("data: x\n\n"), m[:]...), bytes.Repeat([]byte{'.'}, int(after))...)
		}
		list := []frame{settings}
		closed := map[uint32]bool{}
		for i, b := range script {
			id := uint32(b%3)*2 + 1
			if closed[id] {
				continue
			}
			n := min(int(b>>4)+1, len(texts[id]))
			text := string(texts[id][:n])
			texts[id] = texts[id][n:]
			if id == 5 {
				text = string(marks[i%2][:min(32, i)])
				if len(text) == 32 {
					text = text[:31] + "x"
				}
			}
			switch b >> 2 & 3 {
			case 0, 1:
				list = append(list, data(id, text))
			case 2:
				list = append(list, padded(id, text, i%256))
			default:
				list = append(list, ping, head(id), data(id, text))
			}
			if b > 0xf0 {
				list = append(list, reset(id, b))
				closed[id] = true
			}
		}
		wire := frameBytes(list...)
		start := len(frameBytes(settings))
		tells := []armAt{{at: start, mark: marks[0], after: int(after)}, {at: start, mark: marks[1], after: int(after)}}
		want, endedBy := reference(wire, map[Mark]int{marks[0]: int(after), marks[1]: int(after)})
		for _, cuts := range [][]int{nil, every(len(wire), 1), every(len(wire), 7), every(len(wire), int(after)+2)} {
			r := play(wire, tells, cuts)
			if !bytes.Equal(r.wire, want) {
				t.Fatalf("got\n%q\nwant\n%q", r.wire, want)
			}
			if len(r.ended) != len(endedBy) {
				t.Fatalf("ended %v, want %d", r.ended, len(endedBy))
			}
		}
	})
}

// FuzzAnyBytes: whatever comes, nothing traps, every split gives the same, and without a mark in it
// nothing is changed but a head.
func FuzzAnyBytes(f *testing.F) {
	f.Add([]byte(chunkedHead+chunks("data: 1\n\n")+lastChunk), true)
	f.Add([]byte("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel"), true)
	f.Add(frameBytes(settings, head(1), padded(1, "abc", 3), reset(1, 2)), true)
	f.Add([]byte{0, 0, 1, 4, 0, 0, 0, 0, 0, 9, 0, 0, 1, 0, 8, 0, 0, 0, 1, 200}, false)
	f.Fuzz(func(t *testing.T, wire []byte, arm bool) {
		tells := []armAt{{announce: true}}
		if arm {
			tells = append(tells, armAt{mark: markOf(5), after: 3})
		}
		want := play(wire, tells, nil)
		for _, cuts := range [][]int{every(len(wire), 1), every(len(wire), 2), every(len(wire), 5)} {
			if got := play(wire, tells, cuts); !sameButKept(got, want) {
				t.Fatalf("got\n%v\nwant\n%v", got, want)
			}
		}
		plain := bytes.ReplaceAll(want.wire, []byte("connection: close\r\n"), nil)
		if len(want.ended) == 0 && !bytes.HasPrefix(bytes.ReplaceAll(wire, []byte("connection: close\r\n"), nil), plain) {
			t.Fatalf("%q became %q", wire, want.wire)
		}
	})
}

// sameButKept: a header that the wire broke off in may still be kept back.
func sameButKept(a, b result) bool {
	a.wire, b.wire = bytes.Clone(a.wire), bytes.Clone(b.wire)
	if n := len(a.wire) - len(b.wire); n < headerSize && n > -headerSize {
		short := min(len(a.wire), len(b.wire))
		a.wire, b.wire = a.wire[:short], b.wire[:short]
	}
	return a.String() == b.String()
}

// FuzzHTTP1 ends a chunked answer whose final bytes stand anywhere in chunks of any size.
func FuzzHTTP1(f *testing.F) {
	f.Add([]byte{1, 2, 3, 40, 1, 1, 1}, uint8(2))
	f.Add([]byte{200}, uint8(0))
	f.Fuzz(func(t *testing.T, sizes []byte, after uint8) {
		m := markOf(21)
		rest := "data: 1\n\n" + string(m[:12]) + string(m[:]) + strings.Repeat("~", int(after))
		total := len(rest)
		wire := chunkedHead
		for _, n := range sizes {
			if n := min(int(n), len(rest)); n > 0 {
				wire += chunks(rest[:n])
				rest = rest[n:]
			}
		}
		tells := []armAt{{announce: true}, {mark: m, after: int(after)}}
		want := closedHead + wire[len(chunkedHead):]
		wire += lastChunk
		want += lastChunk
		for _, step := range []int{1, 2, 3, 11, len(wire)} {
			r := play([]byte(wire), tells, every(len(wire), step))
			if string(r.wire) != want || (len(r.ended) == 1) != (rest == "" && total > 0) || len(r.ended)+len(r.lost) != 1 {
				t.Fatalf("pieces of %d: %v\nwant %q", step, r, want)
			}
		}
	})
}

func every(n, step int) []int {
	var out []int
	for i := step; i < n; i += step {
		out = append(out, i)
	}
	return slices.Clip(out)
}

func ExampleApply() {
	fmt.Printf("%s\n", Apply([]byte("a stream of bytes"), []Edit{{At: 1, Drop: 7}, {At: 17, Insert: []byte(", ended")}}))
	// Output: a of bytes, ended
}
