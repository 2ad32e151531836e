package tokenizer

import "math/bits"

// image is the cost of an image.
func (r *Rates) image(m *medium, detail *word) int64 {
	switch c := &m.content; {
	case c.kind == pdfKind:
		return r.pages(m)
	case m.mime.begins("video/"):
		return r.video(m)
	case detail.is("low") && r.ImageLow > 0:
		return int64(r.ImageLow)
	case c.w > 0 && !m.broken:
		return r.imageOf(int64(c.w), int64(c.h), detail.is("high"))
	}
	return int64(r.ImageUnknown)
}

// maxSide bounds a side in pixels, so that products of two fit.
const maxSide = 1 << 20

// imageOf is the cost of an image of w by h pixels.
func (r *Rates) imageOf(w, h int64, high bool) int64 {
	w, h = min(max(w, 1), maxSide), min(max(h, 1), maxSide)
	budget := int64(r.ImagePatches)
	if high && r.ImageHigh > 0 {
		budget = int64(r.ImageHigh)
	}
	switch r.ImageScheme {
	case ImageTiles:
		w, h = shrink(w, h, 2048)
		if short := min(w, h); short > 768 {
			w, h = (w*768+short-1)/short, (h*768+short-1)/short
		}
		return plus(int64(r.ImageBase), times(int64(r.ImageTile), over(w, 512)*over(h, 512)))
	case ImagePatches32:
		return r.scaled(patches32(w, h, int64(r.ImageEdge), budget))
	case ImagePatches28:
		return r.scaled(patches28(w, h, int64(r.ImageEdge), budget))
	case ImageCrops:
		crops := int64(1)
		if max(w, h) > 384 {
			side := min(max(min(w, h)*2/3, 256), 768)
			crops = over(w, side) * over(h, side)
		}
		return plus(int64(r.ImageBase), times(int64(r.ImageTile), crops))
	}
	return int64(r.ImageBase)
}

// scaled is what that many patches cost.
func (r *Rates) scaled(patches int64) int64 {
	return plus(int64(r.ImageBase), over(times(int64(r.ImageScale), patches), 1000))
}

// patches32 is how many patches of 32 by 32 an image has once it fits. The rule is published (images)
// and agrees with what was measured: the factor that would spend the whole budget is lowered until
// the side that loses less is a whole number of patches.
func patches32(w, h, edge, budget int64) int64 {
	w, h = shrink(w, h, edge)
	n := over(w, 32) * over(h, 32)
	if budget <= 0 || n <= budget {
		return n
	}
	budget = min(budget, 1<<20)
	// In patches, the sides are sqrt(budget*w/h) and sqrt(budget*h/w) at that factor.
	a, b := max(root(budget*w/h), 1), max(root(budget*h/w), 1)
	if a*h < b*w {
		b = over(a*h, w)
	} else {
		a = over(b*w, h)
	}
	return min(a*b, budget)
}

// patches28 is how many patches of 28 by 28 an image has once it fits: that of the largest copy of
// it that does. vision says as much; measured shows that nothing more is lost.
func patches28(w, h, edge, budget int64) int64 {
	w, h = shrink(w, h, edge)
	n := over(w, 28) * over(h, 28)
	if budget <= 0 || n <= budget {
		return n
	}
	long, short := max(w, h), min(w, h)
	fits := func(side int64) (int64, bool) {
		n := over(side, 28) * over(max((short*side+long/2)/long, 1), 28)
		return n, n <= budget
	}
	low, high := int64(1), long // the longer side: low fits or is the least there is, high does not fit
	for high-low > 1 {
		mid := (low + high) / 2
		if _, ok := fits(mid); ok {
			low = mid
		} else {
			high = mid
		}
	}
	n, _ = fits(low)
	return n
}

// shrink scales an image down to a longer side of edge, if that is above 0.
func shrink(w, h, edge int64) (int64, int64) {
	long := max(w, h)
	if edge <= 0 || long <= edge {
		return w, h
	}
	return max((w*edge+long/2)/long, 1), max((h*edge+long/2)/long, 1)
}

// over is a divided by b, rounded up. Below 0 it is 0.
func over(a, b int64) int64 {
	if a <= 0 {
		return 0
	}
	return (a-1)/b + 1
}

// times is the product, at most maxTokens.
func times(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if hi != 0 || lo > maxTokens {
		return maxTokens
	}
	return int64(lo)
}

// root is the whole part of a square root.
func root(n int64) int64 {
	if n <= 0 {
		return 0
	}
	x := int64(1) << ((bits.Len64(uint64(n)) + 1) / 2) // not below the root
	for {
		y := (x + n/x) / 2
		if y >= x {
			return x
		}
		x = y
	}
}

// Bytes a second of sound and video where no header tells. They lean to low rates, and so to long.
const (
	rateMP3     = 8000  // 64 kbit/s
	rateOpus    = 3000  // 24 kbit/s, speech
	rateAAC     = 6000  // 48 kbit/s
	rateFLAC    = 20000 // 16 kHz mono, two thirds of PCM
	ratePCM24   = 48000 // 24 kHz mono 16 bit: OpenAI's pcm16
	ratePCM16   = 32000 // 16 kHz mono 16 bit: WAV and L16 of speech
	rateG711    = 8000
	rateUnknown = 3000
	rateVideo   = 60000 // 480 kbit/s
	// A WAV below telephone quality or above 8 channels of 192 kHz and 32 bit has a header that lies.
	rateLeast, rateMost = 4000, 6144000
)

// soundFormats gives the rate of a declared format or media type.
var soundFormats = [...]struct {
	name string
	rate int64
}{
	{"mp3", rateMP3}, {"mpeg", rateMP3}, {"mpga", rateMP3}, {"wav", ratePCM16}, {"x-wav", ratePCM16}, {"wave", ratePCM16},
	{"opus", rateOpus}, {"ogg", rateOpus}, {"webm", rateOpus}, {"aac", rateAAC}, {"m4a", rateAAC}, {"mp4", rateAAC},
	{"flac", rateFLAC}, {"pcm16", ratePCM24}, {"pcm", ratePCM24}, {"l16", ratePCM16},
	{"g711_ulaw", rateG711}, {"g711_alaw", rateG711}, {"basic", rateG711},
}

// sound is the cost of a sound: its seconds, rounded up to a tenth.
func (r *Rates) sound(m *medium, format *word) int64 {
	if !m.used || m.reference() || m.place == bare && m.head == 0 {
		return int64(r.FileUnknown)
	}
	rate := soundRate(m, format)
	tenths := over(m.size()*10, rate)
	return over(times(int64(r.AudioSecond), tenths), 10)
}

func soundRate(m *medium, format *word) int64 {
	if !m.broken {
		switch m.content.kind {
		case wavKind:
			if rate := int64(m.content.wav.rate); rate >= rateLeast && rate <= rateMost {
				return rate
			}
			return ratePCM16
		case mp3Kind:
			return rateMP3
		case oggKind, webmKind:
			return rateOpus
		case flacKind:
			return rateFLAC
		case mp4Kind:
			return rateAAC
		}
	}
	for i := range soundFormats {
		f := &soundFormats[i]
		if format.is(f.name) || m.mime.begins("audio/") && m.mime.goesOn(len("audio/"), f.name) {
			return f.rate
		}
	}
	return rateUnknown
}

func (r *Rates) video(m *medium) int64 {
	return times(int64(r.VideoSecond), over(m.size(), rateVideo))
}

// bytesOfPage is what a page takes where the pages of a document can't be counted.
const bytesOfPage = 50 << 10

// pages is the cost of a document: of the pages seen in a PDF, else by its size.
func (r *Rates) pages(m *medium) int64 {
	n := m.content.pdf.count()
	if n == 0 || m.broken {
		n = max(over(m.size(), bytesOfPage), 1)
	}
	return times(int64(r.Page), n)
}

// bytesOfToken is what a token takes in a text that is only weighed; English has 4.4.
const bytesOfToken = 3

// videoFormat says whether a format that stands beside bare base64 is one of a video (Bedrock's VideoBlock).
func videoFormat(format *word) bool {
	for _, name := range [...]string{"mp4", "mov", "mkv", "webm", "flv", "mpeg", "mpg", "wmv", "three_gp"} {
		if format.is(name) {
			return true
		}
	}
	return false
}

// file is the cost of a file of any kind.
func (r *Rates) file(m *medium, detail, format *word) int64 {
	c := &m.content
	if m.mime.n == 0 && format.n != 255 {
		m.mime = *format // bare base64, its media type or format beside it
	}
	switch {
	case m.used && !m.ref && m.mime.begins("text/"):
		n := m.size()
		if m.broken || m.place == elsewhere || m.place == afterwards && m.passed > 2 {
			n = over(n*4, 3) // the text itself: what was weighed as base64 are its bytes
		}
		return over(n, bytesOfToken)
	case !m.used || m.reference() || m.place == bare && m.head == 0:
		return int64(r.FileUnknown)
	case c.kind == pdfKind || m.mime.begins("application/pdf"):
		return r.pages(m)
	case m.mime.begins("image/") || c.w > 0:
		return r.image(m, detail)
	case m.mime.begins("audio/") || c.kind == wavKind || c.kind == mp3Kind:
		return r.sound(m, format)
	case m.mime.begins("video/") || videoFormat(&m.mime):
		return r.video(m)
	case c.text() || m.place == plain:
		return over(m.size(), bytesOfToken)
	}
	return r.pages(m)
}
