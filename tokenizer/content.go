package tokenizer

// content looks at the bytes of a medium, one by one, for what kind it is and how large.
type content struct {
	kind kind
	n    uint8 // bytes in head
	head [32]byte
	jpeg jpegWalk
	wav  wavWalk
	pdf  pdfWalk
	w, h uint32 // pixels, 0 = not known
	over bool   // nothing more can be learned
}

type kind uint8

const (
	unknownKind kind = iota
	pngKind
	gifKind
	jpegKind
	webpKind
	wavKind
	pdfKind
	mp3Kind
	oggKind
	flacKind
	mp4Kind // and its like for sound alone
	webmKind
	otherKind
)

func (c *content) done() bool { return c.over }

// idle says that bytes other than a slash change nothing: most of a PDF.
func (c *content) idle() bool { return c.kind == pdfKind && c.pdf.state == 0 }

func (c *content) put(b byte) {
	if c.over {
		return
	}
	switch c.kind {
	case unknownKind, pngKind, gifKind, webpKind:
		if int(c.n) < len(c.head) {
			c.head[c.n] = b
			c.n++
			c.look()
		}
	case jpegKind:
		if c.jpeg.put(b) {
			c.w, c.h, c.over = c.jpeg.w, c.jpeg.h, true
		}
	case wavKind:
		c.over = c.wav.put(b)
	case pdfKind:
		c.pdf.put(b)
	}
}

// The offsets are those of the formats' specifications: PNG (ISO 15948) section 5, GIF89a section 18,
// the WebP container specification, RFC 6386 section 9.1 (VP8) and the WebP lossless bitstream
// specification section 3 (VP8L).
const (
	pngSize  = 24 // signature 8, length 4, "IHDR", width 4, height 4
	gifSize  = 10 // signature 6, width 2, height 2
	webpName = 16 // "RIFF", length 4, "WEBP", name of the first chunk 4
	vp8Size  = 30 // and its length 4, frame tag 3, start code 3, width 2, height 2
	vp8lSize = 25 // and its length 4, signature 1, width and height in 28 bits
	vp8xSize = 30 // and its length 4, flags 4, width 3, height 3
)

// look decides by the bytes so far.
func (c *content) look() {
	h := c.head[:c.n]
	switch c.n {
	case 2:
		if string(h) == "\xff\xd8" {
			c.kind = jpegKind
		}
	case 4:
		switch string(h) {
		case "%PDF":
			c.kind = pdfKind
		case "OggS":
			c.settle(oggKind)
		case "fLaC":
			c.settle(flacKind)
		case "\x1aE\xdf\xa3":
			c.settle(webmKind)
		default:
			if string(h[:3]) == "ID3" || h[0] == 0xff && h[1]&0xe6 == 0xe2 {
				c.settle(mp3Kind)
			}
		}
	case 8:
		if string(h) == "\x89PNG\r\n\x1a\n" {
			c.kind = pngKind
		} else if string(h[4:]) == "ftyp" {
			c.settle(mp4Kind)
		}
	case gifSize:
		if string(h[:6]) == "GIF87a" || string(h[:6]) == "GIF89a" {
			c.kind = gifKind
			c.size(le(h[6:8]), le(h[8:10]))
		}
	case 12:
		if string(h[:4]) == "RIFF" && string(h[8:]) == "WEBP" {
			c.kind = webpKind
		} else if string(h[:4]) == "RIFF" && string(h[8:]) == "WAVE" {
			c.kind = wavKind
		}
	case pngSize:
		if c.kind == pngKind && string(h[12:16]) == "IHDR" {
			c.size(be(h[16:20]), be(h[20:24]))
		}
	case vp8lSize:
		if c.kind == webpKind && string(h[12:webpName]) == "VP8L" && h[20] == 0x2f {
			bits := le(h[21:25])
			c.size(bits&0x3fff+1, bits>>14&0x3fff+1)
		}
	case vp8Size:
		if c.kind != webpKind {
			break
		}
		switch string(h[12:webpName]) {
		case "VP8 ":
			if string(h[23:26]) == "\x9d\x01\x2a" {
				c.size(le(h[26:28])&0x3fff, le(h[28:30])&0x3fff)
			}
		case "VP8X":
			c.size(le(h[24:27])+1, le(h[27:30])+1)
		}
	case uint8(len(c.head)):
		c.over = true
		if c.kind == unknownKind {
			c.kind = otherKind
		}
	}
}

func (c *content) settle(k kind) { c.kind, c.over = k, true }

func (c *content) size(w, h uint32) {
	c.over = true
	if w > 0 && h > 0 {
		c.w, c.h = w, h
	}
}

// text says whether the first bytes are those of a text in UTF-8 or ASCII.
func (c *content) text() bool {
	for _, b := range c.head[:c.n] {
		if b < ' ' && b != '\n' && b != '\r' && b != '\t' || b == 0x7f {
			return false
		}
	}
	return c.n > 0 && (c.kind == otherKind || c.kind == unknownKind)
}

func le(b []byte) (v uint32) {
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | uint32(b[i])
	}
	return v
}

func be(b []byte) (v uint32) {
	for _, c := range b {
		v = v<<8 | uint32(c)
	}
	return v
}

// jpegWalk finds the size of a JPEG (ITU T.81 annex B): it walks over the segments to the first frame
// header. What is no marker between segments is passed over, as decoders do.
type jpegWalk struct {
	state jpegState
	sof   bool
	left  uint32 // bytes of the segment
	field uint64 // of a frame header, the last bytes read
	seen  uint32
	w, h  uint32
}

type jpegState uint8

const (
	jpegGap jpegState = iota
	jpegMarker
	jpegLength
	jpegLength2
	jpegSkip
	jpegFrame
)

// maxJPEG is how far into a JPEG the walk goes: past a preview and a colour profile.
const maxJPEG = 64 << 10

// put gives true when the walk is over.
func (j *jpegWalk) put(b byte) (over bool) {
	j.seen++
	if j.seen > maxJPEG {
		return true
	}
	switch j.state {
	case jpegGap:
		if b == 0xff {
			j.state = jpegMarker
		}
	case jpegMarker:
		switch {
		case b == 0xff: // fill
		case b == 0 || b == 1 || b == 0xd8 || b >= 0xd0 && b <= 0xd7: // no segment
			j.state = jpegGap
		case b == 0xd9 || b == 0xda: // the end, or a scan without a frame
			return true
		default:
			j.state = jpegLength
			// C4, C8 and CC are tables and such.
			j.sof = b >= 0xc0 && b <= 0xcf && b != 0xc4 && b != 0xc8 && b != 0xcc
		}
	case jpegLength:
		j.left = uint32(b) << 8
		j.state = jpegLength2
	case jpegLength2:
		j.left |= uint32(b)
		if j.left < 2 {
			return true
		}
		j.left -= 2
		switch {
		case j.sof && j.left < 5:
			return true
		case j.sof:
			j.state, j.left = jpegFrame, 5
		case j.left == 0:
			j.state = jpegGap
		default:
			j.state = jpegSkip
		}
	case jpegSkip:
		j.left--
		if j.left == 0 {
			j.state = jpegGap
		}
	case jpegFrame: // precision 1, height 2, width 2
		j.field = j.field<<8 | uint64(b)
		j.left--
		if j.left == 0 {
			if h, w := uint32(j.field>>16&0xffff), uint32(j.field&0xffff); h > 0 && w > 0 {
				j.w, j.h = w, h
			}
			return true
		}
	}
	return false
}

// wavWalk finds the bytes a second of a WAV, from behind "WAVE" on.
type wavWalk struct {
	n    uint8 // bytes of the chunk's head or format
	head [20]byte
	skip uint32
	seen uint32
	rate uint32 // bytes a second, 0 = not known
}

// maxWAV is how far into a WAV the walk goes.
const maxWAV = 4 << 10

func (w *wavWalk) put(b byte) (over bool) {
	w.seen++
	if w.seen > maxWAV {
		return true
	}
	if w.skip > 0 {
		w.skip--
		return false
	}
	w.head[w.n] = b
	w.n++
	if w.n < 8 {
		return false
	}
	size := le(w.head[4:8])
	if string(w.head[:4]) == "fmt " && size >= 16 {
		if int(w.n) == len(w.head) { // format 2, channels 2, samples a second 4, bytes a second 4
			w.rate = le(w.head[16:20])
			return true
		}
		return false
	}
	if string(w.head[:4]) == "data" {
		return true
	}
	w.n = 0
	w.skip = min(size, maxWAV) // and a byte where the size is odd
	w.skip += w.skip & 1
	return false
}

// pdfWalk counts the page objects of a PDF that stand in it uncompressed: /Type, white space or
// none, /Page, and no further letter.
type pdfWalk struct {
	state uint8 // bytes of pdfPage that were matched
	pages int64
}

const pdfPage = "/Type/Page"

func (p *pdfWalk) put(b byte) {
	if p.state == 0 {
		if b == '/' {
			p.state = 1
		}
		return
	}
	switch {
	case int(p.state) == len(pdfPage):
		if !regular(b) {
			p.pages++
		}
	case b == pdfPage[p.state]:
		p.state++
		return
	case p.state == 5 && white(b):
		return
	case p.state == 6 && b == 'T': // the second slash was the first of another /Type
		p.state = 2
		return
	}
	p.state = 0
	if b == '/' {
		p.state = 1
	}
}

// count is the number of pages if the document ends here.
func (p *pdfWalk) count() int64 {
	if int(p.state) == len(pdfPage) {
		return p.pages + 1
	}
	return p.pages
}

func white(b byte) bool {
	switch b {
	case 0, '\t', '\n', '\f', '\r', ' ':
		return true
	}
	return false
}

func regular(b byte) bool {
	switch b {
	case '(', ')', '<', '>', '[', ']', '{', '}', '/', '%':
		return false
	}
	return !white(b)
}
