package closer

// What is known of HTTP/2 frames here (RFC 9113).
const (
	headerSize = 9

	frameData     = 0x0
	frameHeaders  = 0x1
	frameReset    = 0x3
	frameSettings = 0x4

	flagEndStream = 0x1
	flagPadded    = 0x8
)

// frames is where in a connection's frames the next byte stands.
type frames struct {
	any    bool // a frame has begun: the first must be SETTINGS
	n      int  // bytes of the header that are known
	kept   int  // as many of them, the last ones, were kept back
	header [headerSize]byte

	// of the frame whose header is complete:
	left     int // bytes of its payload that have not passed
	stream   uint32
	kind     byte
	flags    byte
	padded   bool // the next byte says how long the padding is
	data     int  // bytes of data that have not passed
	final    bool // the final bytes of an answer ended in it
	dropping bool // it must not pass
	calm     bool // it is RST_STREAM, and its reason becomes NO_ERROR
}

// held are the bytes of a header that were kept back, while it is not complete.
func (f *frames) held() []byte { return f.header[f.n-f.kept : f.n] }

// unseen says that a part of the frame passes without being looked at. What is armed from here on has
// its final bytes in frames behind this one.
func (f *frames) unseen() { f.data, f.padded = 0, false }

// needs: with cuts under way all bytes are looked at, else the headers of frames alone.
func (f *frames) needs(cuts bool) (skip, want int) {
	if cuts || f.dropping || f.calm {
		return 0, all
	}
	return f.left, headerSize - f.n
}

func (c *Conn) walkFrames(p []byte, at int) {
	f := &c.h2
	for i := 0; i < len(p); {
		if f.left > 0 {
			n := min(f.left, len(p)-i)
			c.payload(p[i:i+n], at+i)
			i += n
			if f.left -= n; f.left == 0 {
				c.frameOver(at + i)
			}
		} else {
			n := copy(f.header[f.n:], p[i:])
			f.n += n
			i += n
			switch {
			case f.n == headerSize:
				c.frameBegins(at+i-n, n)
			case len(c.cuts) > 0 || f.kept > 0:
				// It may be of an answer that was ended: then not even its first bytes may pass. The
				// rest of a header always follows.
				c.drop(at+i-n, n)
				f.kept += n
			}
		}
		if c.protocol != http2 {
			return
		}
	}
}

// frameBegins reads a header whose last n bytes stand at this place.
func (c *Conn) frameBegins(at, n int) {
	f := &c.h2
	h := f.header
	kept := h[headerSize-n-f.kept : headerSize-n]
	if first := !f.any; first && (h[3] != frameSettings || h[5]|h[6]|h[7]|h[8] != 0) {
		f.n -= n
		c.lose() // no server's preface
		return
	}
	*f = frames{any: true}
	f.left = int(h[0])<<16 | int(h[1])<<8 | int(h[2])
	f.kind, f.flags = h[3], h[4]
	f.stream = uint32(h[5])<<24&0x7f000000 | uint32(h[6])<<16 | uint32(h[7])<<8 | uint32(h[8])
	if f.kind == frameData {
		f.data = f.left
		f.padded = f.flags&flagPadded != 0 && f.left > 0
	}
	if i := c.onStream(f.stream); i >= 0 && c.cuts[i].state == over {
		switch f.kind {
		case frameData:
			// Its end has passed. The host writes an empty one where the provider ended just now.
			f.dropping = true
		case frameReset:
			f.calm = true
		}
		// Trailers pass: all header blocks of a connection share one compression state.
	}
	switch {
	case f.dropping:
		c.drop(at, n) // what was kept back of it stays away too
	case len(kept) > 0:
		c.insert(at, kept)
	}
	if f.left == 0 {
		c.frameOver(at + n)
	}
}

// payload takes bytes of the frame's payload that stand at this place.
func (c *Conn) payload(p []byte, at int) {
	f := &c.h2
	switch {
	case f.dropping:
		c.drop(at, len(p))
	case f.calm:
		c.insert(at, make([]byte, len(p))) // the reason is the whole payload: four bytes of 0
		c.out.Edits[len(c.out.Edits)-1].Drop = len(p)
	case f.kind == frameData && len(c.cuts) == 0:
		f.unseen()
	case f.kind == frameData:
		if f.padded {
			f.padded = false
			f.data -= 1 + int(p[0])
			if p = p[1:]; f.data < 0 {
				c.lose()
				return
			}
		}
		n := min(f.data, len(p))
		f.final = c.body(f.stream, p[:n]) || f.final
		f.data -= n
	}
}

// frameOver does what is due behind a frame that ends at this place.
func (c *Conn) frameOver(at int) {
	f := &c.h2
	done := *f
	*f = frames{any: true}
	if len(c.cuts) == 0 {
		return
	}
	i := c.onStream(done.stream)
	ends := done.kind == frameReset || done.flags&flagEndStream != 0 && (done.kind == frameData || done.kind == frameHeaders)
	if ends {
		c.setTail(done.stream, nil)
	}
	switch {
	case i < 0:
	case done.final:
		c.out.Ended = append(c.out.Ended, Ended{Mark: c.cuts[i].mark})
		if ends { // the host ended it itself, with these bytes
			c.forget(i)
			return
		}
		c.cuts[i].state = over
		c.insert(at, []byte{0, 0, 0, frameData, flagEndStream,
			byte(done.stream >> 24), byte(done.stream >> 16), byte(done.stream >> 8), byte(done.stream)})
	case ends:
		if c.cuts[i].state != over {
			c.out.Lost = append(c.out.Lost, c.cuts[i].mark)
		}
		c.forget(i)
	}
}
