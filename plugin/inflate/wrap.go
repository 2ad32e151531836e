package inflate

import "hash/crc32"

// Bits of a gzip member's flags, RFC 1952 section 2.3.1.
const (
	hasHeadCRC byte = 1 << (iota + 1)
	hasExtra
	hasName
	hasComment

	reservedFlags byte = 0xe0
)

// wrapping does one step of what stands around deflate streams.
func (r *Reader) wrapping() bool {
	switch r.step {
	case wantStart:
		return r.start()
	case wantZlibHead:
		if !r.need(16) {
			return false
		}
		if !zlibHead(r.take(16)) {
			return r.fail(Corrupt)
		}
		r.sum, r.step = 1, wantBlock
	case betweenMembers:
		if len(r.p) == 0 && r.n == 0 {
			return false
		}
		r.beginMember()
	case wantGzipHead:
		return r.gzipHead()
	case wantExtraSize:
		if r.flags&hasExtra == 0 {
			r.step = wantName
			break
		}
		if !r.need(16) {
			return false
		}
		r.left = int(r.head(8))
		r.left |= int(r.head(8)) << 8
		r.step = wantExtra
	case wantExtra:
		for ; r.left > 0; r.left-- {
			if !r.need(8) {
				return false
			}
			r.head(8)
		}
		r.step = wantName
	case wantName, wantComment:
		return r.text()
	case wantHeadCRC:
		if r.flags&hasHeadCRC != 0 {
			if !r.need(16) {
				return false
			}
			if r.take(16) != r.headSum&0xffff {
				return r.fail(Checksum)
			}
		}
		r.sum, r.size, r.step = 0, 0, wantBlock
	default:
		return r.checkEnd()
	}
	return true
}

// start tells what stands before the first deflate stream.
func (r *Reader) start() bool {
	switch r.format {
	case Raw:
		r.step = wantBlock
	case Gzip:
		r.beginMember()
	case Zlib:
		r.step = wantZlibHead
	default:
		// A bare stream whose first two bytes are a zlib header would begin with a stored block that
		// has rubbish in its padding.
		if !r.need(16) {
			return false
		}
		r.format, r.step = Raw, wantBlock
		if zlibHead(uint32(r.bits & 0xffff)) {
			r.format, r.step = Zlib, wantZlibHead
		}
	}
	return true
}

// zlibHead says whether two bytes are a header of RFC 1950 without a preset dictionary.
func zlibHead(v uint32) bool {
	method, flags := v&0xff, v>>8
	return method&15 == 8 && method>>4 <= 7 && (method<<8|flags)%31 == 0 && flags&0x20 == 0
}

// beginMember begins a member. A match does not reach back into the one before.
func (r *Reader) beginMember() {
	r.left, r.headSum, r.step = 0, 0, wantGzipHead
	r.at, r.flushed, r.wrapped = 0, 0, false
}

// head uses bits of a gzip header, a byte at a time.
func (r *Reader) head(k uint) uint32 {
	v := r.take(k)
	r.headSum = ^(crc32.IEEETable[byte(^r.headSum)^byte(v)] ^ ^r.headSum>>8)
	return v
}

// gzipHead reads the ten bytes that every header has.
func (r *Reader) gzipHead() bool {
	for ; r.left < 10; r.left++ {
		if !r.need(8) {
			return false
		}
		v := byte(r.head(8))
		switch {
		case r.left == 0 && v != 0x1f, r.left == 1 && v != 0x8b, r.left == 2 && v != 8, r.left == 3 && v&reservedFlags != 0:
			return r.fail(Corrupt)
		case r.left == 3:
			r.flags = v
		}
	}
	r.step = wantExtraSize
	return true
}

// text reads over a name or a comment up to its zero byte, if there is one.
func (r *Reader) text() bool {
	flag, then := hasName, wantComment
	if r.step == wantComment {
		flag, then = hasComment, wantHeadCRC
	}
	for r.flags&flag != 0 {
		if !r.need(8) {
			return false
		}
		if r.head(8) == 0 {
			break
		}
	}
	r.step = then
	return true
}

// checkEnd compares a sum or a size behind a stream.
func (r *Reader) checkEnd() bool {
	if !r.need(32) {
		return false
	}
	v := r.take(32)
	want, then := r.sum, wantSize
	switch r.step {
	case wantAdler:
		v = v<<24 | v<<8&0xff0000 | v>>8&0xff00 | v>>24
		then = atEnd
	case wantSize:
		want, then = r.size, betweenMembers
	}
	if v != want {
		return r.fail(Checksum)
	}
	r.step = then
	return true
}

// addSum takes what is handed on into the sum that stands behind the stream.
func (r *Reader) addSum(p []byte) {
	switch r.format {
	case Gzip:
		r.sum = crc32.Update(r.sum, crc32.IEEETable, p)
	case Zlib:
		r.sum = adler32(r.sum, p)
	}
}

// adler32 goes on with a sum of RFC 1950, which begins as 1. The standard library's can't go on.
func adler32(sum uint32, p []byte) uint32 {
	const mod, most = 65521, 5552 // that many bytes before the second sum overflows
	a, b := sum&0xffff, sum>>16
	for len(p) > 0 {
		q := p[:min(len(p), most)]
		p = p[len(q):]
		for _, c := range q {
			a += uint32(c)
			b += a
		}
		a, b = a%mod, b%mod
	}
	return b<<16 | a
}
