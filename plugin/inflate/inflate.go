// Package inflate undoes the content codings gzip (RFC 1952) and deflate (RFC 1950 and 1951) in the
// direction in which a filter meets them: bytes are pushed in as they arrive, and what they decode to
// is handed on at once. The decoder of the standard library pulls from a reader, which would need a
// goroutine or the whole body.
//
// It knows nothing of HTTP beyond the names of codings, nor of what the bytes mean. It holds the 32 KiB
// that a match may reach back to, some 6 KiB of tables and a few bytes of input, whatever it is given.
// Its caller
//   - writes one body in pieces of any size; the split never changes what is handed on, nor the fault,
//   - says with Limits how much may come out, since 1 byte may become 1032,
//   - closes it once: only then is a body known to be whole.
package inflate

import "strings"

// Format is how the deflate stream is wrapped.
type Format uint8

const (
	Raw     Format = iota + 1 // RFC 1951, bare
	Zlib                      // RFC 1950, its Adler-32 checked
	Gzip                      // RFC 1952, one member after another, each CRC-32 and size checked
	Deflate                   // what HTTP calls deflate: Zlib, or the bare stream that some senders mean by it
)

// ForCoding is the format of a content coding, by its name in HTTP.
func ForCoding(name string) (Format, bool) {
	switch strings.ToLower(strings.Trim(name, " \t")) {
	case "gzip", "x-gzip": // RFC 9110, section 8.4.1.3: the same
		return Gzip, true
	case "deflate":
		return Deflate, true
	}
	return 0, false
}

// Fault is why a body can't be decoded, or not to its end.
type Fault uint8

const (
	Corrupt   Fault = iota + 1 // it is no such stream
	Checksum                   // it decodes, but not to what was sent
	Truncated                  // it ends too early
	TooLarge                   // more comes out than Limits allow
	Stopped                    // the sink wanted no more
)

var faultTexts = [...]string{"", "the data is corrupt", "the checksum is wrong", "the data ends too early", "too much comes out", "stopped"}

func (f Fault) Error() string { return faultTexts[f] }

// Sink is given what was decoded.
type Sink interface {
	// Inflated takes the next bytes; p is only valid during the call. False ends the decoding.
	Inflated(p []byte) (more bool)
}

// Limits bound what comes out.
type Limits struct {
	Most int64 // bytes; not one more comes out
	// With PerByte, so many more may come out for each byte that went in, which is looked at each time
	// that 32 KiB have come out.
	PerByte int64
}

const (
	windowSize = 1 << 15 // of a match's distance, RFC 1951 section 2
	maxMatch   = 258
)

// step is what is read next.
type step uint8

const (
	wantStart step = iota
	wantZlibHead
	wantGzipHead
	wantExtraSize
	wantExtra
	wantName
	wantComment
	wantHeadCRC
	wantBlock
	wantStoredSize
	inStored
	wantCounts
	wantCodeLengths
	wantLengths
	inCodes
	wantAdler
	wantCRC
	wantSize
	betweenMembers // of gzip: here it may end
	atEnd
)

// Reader decodes one body. It is made by NewReader.
type Reader struct {
	sink   Sink
	limits Limits
	format Format
	step   step
	last   bool // this block is the stream's last
	fault  Fault
	in     int64 // bytes taken
	out    int64 // bytes handed on

	p    []byte // what is left of the piece at hand
	bits uint64 // taken from it but not used yet, the next one lowest
	n    uint   // how many

	flags   byte   // of a gzip member
	left    int    // bytes or lengths still to come
	sum     uint32 // of what was handed on: CRC-32 or Adler-32
	headSum uint32 // CRC-32 of a gzip header
	size    uint32 // bytes of this member, modulo 2^32

	counts      [3]int // of literal, distance and code length codes
	lengths     [maxLit + maxDist]uint8
	nLen        int
	lit, dist   *codes
	ownL, ownD  codes
	at, flushed int // in the window: where the next byte goes, and up to where it was handed on
	wrapped     bool
	window      [windowSize]byte
}

// NewReader makes a reader of one body.
func NewReader(f Format, l Limits, s Sink) *Reader { return &Reader{format: f, limits: l, sink: s} }

// Out is how many bytes were handed on.
func (r *Reader) Out() int64 { return r.out }

// Write takes the next bytes. What they decode to was handed on when it returns. The error is a Fault;
// after one every further call returns the same.
func (r *Reader) Write(p []byte) error {
	r.in += int64(len(p))
	r.p = p
	for r.fault == 0 && r.next() {
	}
	r.p = nil
	r.flush()
	if r.fault != 0 {
		return r.fault
	}
	return nil
}

// Close ends the body.
func (r *Reader) Close() error {
	if r.fault == 0 && r.step != atEnd && (r.step != betweenMembers || r.n > 0) {
		r.fault = Truncated
	}
	if r.fault != 0 {
		return r.fault
	}
	return nil
}

func (r *Reader) fail(f Fault) bool {
	if r.fault == 0 {
		r.fault = f
	}
	return false
}

// need makes sure of k bits, at most 32. False: they have not come yet.
func (r *Reader) need(k uint) bool {
	for r.n < k {
		if len(r.p) == 0 {
			return false
		}
		r.bits |= uint64(r.p[0]) << r.n
		r.p = r.p[1:]
		r.n += 8
	}
	return true
}

// take uses k bits that need made sure of.
func (r *Reader) take(k uint) uint32 {
	v := uint32(r.bits & (1<<k - 1))
	r.bits >>= k
	r.n -= k
	return v
}

// align drops the rest of a byte.
func (r *Reader) align() { r.take(r.n & 7) }

// next does one step. False: it needs more bytes, or there is a fault.
func (r *Reader) next() bool {
	switch r.step {
	case wantBlock:
		if !r.need(3) {
			return false
		}
		return r.beginBlock()
	case wantStoredSize:
		if r.align(); !r.need(32) {
			return false
		}
		size := r.take(16)
		if r.take(16) != ^size&0xffff {
			return r.fail(Corrupt)
		}
		r.left, r.step = int(size), inStored
	case inStored:
		return r.stored()
	case wantCounts:
		if !r.need(14) {
			return false
		}
		r.counts = [3]int{int(r.take(5)) + 257, int(r.take(5)) + 1, int(r.take(4)) + 4}
		if r.counts[0] > maxLit || r.counts[1] > maxDist {
			return r.fail(Corrupt)
		}
		r.nLen, r.step = 0, wantCodeLengths
		clear(r.lengths[:19])
	case wantCodeLengths:
		for ; r.nLen < r.counts[2]; r.nLen++ {
			if !r.need(3) {
				return false
			}
			r.lengths[codeOrder[r.nLen]] = uint8(r.take(3))
		}
		// The table of distances is free until they are known.
		if !r.ownD.build(r.lengths[:19], plainTemplates[:]) {
			return r.fail(Corrupt)
		}
		r.nLen, r.step = 0, wantLengths
	case wantLengths:
		return r.readLengths()
	case inCodes:
		return r.symbols()
	case atEnd:
		if len(r.p) == 0 && r.n == 0 {
			return false
		}
		return r.fail(Corrupt) // more than one stream: what another decoder makes of it nobody knows
	default:
		return r.wrapping()
	}
	return true
}

func (r *Reader) beginBlock() bool {
	r.last = r.take(1) == 1
	switch r.take(2) {
	case 0:
		r.step = wantStoredSize
	case 1:
		r.lit, r.dist, r.step = &fixedLit, &fixedDist, inCodes
	case 2:
		r.step = wantCounts
	default:
		return r.fail(Corrupt)
	}
	return true
}

func (r *Reader) endBlock() {
	r.step = wantBlock
	if !r.last {
		return
	}
	r.flush()
	r.align()
	switch r.format {
	case Gzip:
		r.step = wantCRC
	case Zlib:
		r.step = wantAdler
	default:
		r.step = atEnd
	}
}

// stored copies the bytes of a stored block.
func (r *Reader) stored() bool {
	for r.left > 0 {
		var n int
		if r.n > 0 { // whole bytes, since the block is aligned
			r.window[r.at] = byte(r.take(8))
			n = 1
		} else if n = copy(r.window[r.at:], r.p[:min(len(r.p), r.left)]); n == 0 {
			return false
		} else {
			r.p = r.p[n:]
		}
		r.left -= n
		r.at += n
		if r.at == windowSize && !r.turn() {
			return false
		}
	}
	r.endBlock()
	return true
}

// readLengths reads the lengths of a block's codes and makes its tables.
func (r *Reader) readLengths() bool {
	total := r.counts[0] + r.counts[1]
	for r.nLen < total {
		r.need(14) // a code and what follows it, as far as it has come
		e := r.ownD.fast[r.bits&r.ownD.mask&fastMask]
		k := uint(e & lengthMask)
		if e&opMask == opBad || k == 0 {
			if r.n == 0 {
				return false
			}
			return r.fail(Corrupt)
		}
		symbol, extra, base := int(e>>baseShift), uint(0), 0
		switch symbol {
		case 16:
			extra, base = 2, 3
		case 17:
			extra, base = 3, 3
		case 18:
			extra, base = 7, 11
		}
		if r.n < k+extra {
			return false
		}
		r.take(k)
		if symbol < 16 {
			r.lengths[r.nLen] = uint8(symbol)
			r.nLen++
			continue
		}
		repeat, value := base+int(r.take(extra)), uint8(0)
		if symbol == 16 {
			if r.nLen == 0 {
				return r.fail(Corrupt)
			}
			value = r.lengths[r.nLen-1]
		}
		if r.nLen+repeat > total {
			return r.fail(Corrupt)
		}
		for range repeat {
			r.lengths[r.nLen] = value
			r.nLen++
		}
	}
	if !r.ownL.build(r.lengths[:r.counts[0]], litTemplates[:]) || !r.ownD.build(r.lengths[r.counts[0]:total], distTemplates[:]) {
		return r.fail(Corrupt)
	}
	r.lit, r.dist, r.step = &r.ownL, &r.ownD, inCodes
	return true
}

// turn hands on a window that is full and begins it anew.
func (r *Reader) turn() bool {
	r.flush()
	r.at, r.flushed, r.wrapped = 0, 0, true
	if r.limits.PerByte > 0 && r.out-r.limits.Most > r.limits.PerByte*(r.in-int64(len(r.p))) {
		r.fail(TooLarge)
	}
	return r.fault == 0
}

// flush hands on what was decoded and is not handed on yet.
func (r *Reader) flush() {
	p := r.window[r.flushed:r.at]
	r.flushed = r.at
	if len(p) == 0 || r.fault == TooLarge || r.fault == Stopped {
		return
	}
	if most := r.limits.Most - r.out; r.limits.PerByte == 0 && int64(len(p)) > most {
		p = p[:max(most, 0)]
		r.fault = TooLarge // also where the data is corrupt behind: that much came out before
		if len(p) == 0 {
			return
		}
	}
	r.out += int64(len(p))
	r.size += uint32(len(p))
	r.addSum(p)
	if !r.sink.Inflated(p) && r.fault == 0 {
		r.fault = Stopped
	}
}
