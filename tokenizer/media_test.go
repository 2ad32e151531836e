package tokenizer

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

// read gives what a medium makes of a text, whole.
func read(text string) medium {
	var m medium
	m.begin(false)
	m.write([]byte(text))
	return m
}

// sameAnyway checks that every split in three, or single bytes of a long text, give the same.
func sameAnyway(t *testing.T, text string) medium {
	t.Helper()
	want := read(text)
	check := func(how string, m medium) {
		t.Helper()
		if m != want {
			t.Fatalf("%s: %.60q: %+v, whole %+v", how, text, m, want)
		}
	}
	var m medium
	m.begin(false)
	for i := range len(text) {
		m.write([]byte(text[i : i+1]))
	}
	check("single bytes", m)
	step := len(text)/300 + 1
	for i := 0; i <= len(text); i += step {
		m.begin(false)
		m.write([]byte(text[:i]))
		m.write(nil)
		m.write([]byte(text[i:]))
		check(fmt.Sprint("split at ", i), m)
	}
	return want
}

// spellings are the ways in which a document may stand in a request.
func spellings(mime string, b []byte) []string {
	s := base64.StdEncoding.EncodeToString(b)
	var lines strings.Builder
	for i := 0; i < len(s); i += 76 {
		lines.WriteString(s[i:min(i+76, len(s))] + `\r\n`)
	}
	return []string{
		s,
		"data:" + mime + ";base64," + s,
		"DATA:" + strings.ToUpper(mime) + ";charset=utf-8;Base64," + s,
		strings.ReplaceAll("data:"+mime+";base64,"+s, "/", `\/`),
		strings.ReplaceAll("data:"+mime+";base64,"+s, "/", `\u002F`),
		"data:" + mime + ";base64," + base64.RawURLEncoding.EncodeToString(b),
		lines.String(),
	}
}

func picture(w, h int) image.Image {
	m := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Black, color.White})
	for i := range m.Pix {
		m.Pix[i] = byte(i*i/7) & 1
	}
	return m
}

func encoded(t testing.TB, kind string, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch kind {
	case "png":
		err = png.Encode(&b, picture(w, h))
	case "gif":
		err = gif.Encode(&b, picture(w, h), nil)
	case "jpeg":
		err = jpeg.Encode(&b, picture(w, h), nil)
	case "webp vp8": // key frame, width and height with their scaling bits
		b.WriteString("RIFF\x40\x00\x00\x00WEBPVP8 \x34\x00\x00\x00\x50\x01\x00\x9d\x01\x2a")
		binary.Write(&b, binary.LittleEndian, []uint16{uint16(w) | 1<<14, uint16(h) | 2<<14})
	case "webp vp8l":
		b.WriteString("RIFF\x40\x00\x00\x00WEBPVP8L\x34\x00\x00\x00\x2f")
		binary.Write(&b, binary.LittleEndian, uint32(w-1)|uint32(h-1)<<14|1<<28)
	case "webp vp8x":
		b.WriteString("RIFF\x40\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x10\x00\x00\x00")
		b.Write([]byte{byte(w - 1), byte((w - 1) >> 8), byte((w - 1) >> 16), byte(h - 1), byte((h - 1) >> 8), byte((h - 1) >> 16)})
	}
	if err != nil {
		t.Fatal(err)
	}
	b.WriteString(strings.Repeat("rest", 10))
	return b.Bytes()
}

var pictures = []string{"png", "gif", "jpeg", "webp vp8", "webp vp8l", "webp vp8x"}

func TestImageSizes(t *testing.T) {
	for _, kind := range pictures {
		for _, size := range [][2]int{{1, 1}, {2, 1}, {37, 500}, {640, 480}, {1023, 7}} {
			b := encoded(t, kind, size[0], size[1])
			if c, _, err := image.DecodeConfig(bytes.NewReader(b)); err == nil && (c.Width != size[0] || c.Height != size[1]) {
				t.Fatalf("%s: the reference has %d by %d", kind, c.Width, c.Height)
			}
			for _, text := range spellings("image/png", b) {
				m := sameAnyway(t, text)
				if int(m.content.w) != size[0] || int(m.content.h) != size[1] || m.broken {
					t.Fatalf("%s %v as %.40q: %d by %d, broken %v", kind, size, text, m.content.w, m.content.h, m.broken)
				}
				if off := m.size() - int64(len(b)); off < -3 || off > int64(len(b))/4+30 { // \u002F counts as written
					t.Errorf("%s: %d bytes, reckoned %d", kind, len(b), m.size())
				}
			}
		}
	}
	if m := read(base64.StdEncoding.EncodeToString(encoded(t, "webp vp8x", 16000, 1<<24))); m.content.w != 16000 || m.content.h != 1<<24 {
		t.Errorf("%d by %d", m.content.w, m.content.h)
	}
}

// segments puts segments of n bytes each before a JPEG's own.
func segments(b []byte, sizes ...int) []byte {
	out := append([]byte(nil), b[:2]...)
	for i, n := range sizes {
		out = append(out, 0xff, 0xff, 0xe1+byte(i)) // a fill byte is allowed
		out = binary.BigEndian.AppendUint16(out, uint16(n+2))
		for j := range n {
			out = append(out, [...]byte{0xff, 0xc0, 0, 17, 8, 0, 1, 0, 1}[j%9]) // what looks like a frame
		}
	}
	return append(out, b[2:]...)
}

func TestJPEGWalk(t *testing.T) {
	b := encoded(t, "jpeg", 321, 123)
	for _, sizes := range [][]int{{}, {0}, {1, 2, 3}, {30000}, {20000, 20000, 20000}} {
		if m := sameAnyway(t, "data:image/jpeg;base64,"+base64.StdEncoding.EncodeToString(segments(b, sizes...))); m.content.w != 321 || m.content.h != 123 {
			t.Errorf("behind %v: %d by %d", sizes, m.content.w, m.content.h)
		}
	}
	for _, sizes := range [][]int{{65533}, {40000, 40000}} {
		m := read(base64.StdEncoding.EncodeToString(segments(b, sizes...)))
		if m.content.w != 0 || !m.content.over || m.content.jpeg.seen != maxJPEG+1 {
			t.Errorf("behind %v: found %d after %d bytes", sizes, m.content.w, m.content.jpeg.seen)
		}
	}
	for _, s := range []string{
		"\xff\xd8\xff\xd9", "\xff\xd8\xff\xda\x00\x08", "\xff\xd8\xff\xe0\x00\x01", "\xff\xd8\xff\xc0\x00\x06\x08\x00\x01\x00\x01\x00",
		"\xff\xd8\xff\xc0\x00\x11\x08\x00\x00\x00\x05", // the height comes later (DNL)
	} {
		if m := read(base64.StdEncoding.EncodeToString([]byte(s + strings.Repeat("x", 9)))); m.content.w != 0 || !m.content.over {
			t.Errorf("%q: %+v", s, m.content)
		}
	}
	for sof := range byte(16) {
		s := "\xff\xd8\xff" + string([]byte{0xc0 + sof}) + "\x00\x11\x08\x00\x07\x00\x09" + strings.Repeat("x", 40)
		m := read(base64.StdEncoding.EncodeToString([]byte(s)))
		if isTable := sof == 4 || sof == 8 || sof == 12; isTable == (m.content.w == 9 && m.content.h == 7) {
			t.Errorf("marker C%X: %+v", sof, m.content)
		}
	}
}

func TestMediaThatTellNothing(t *testing.T) {
	r := RatesOf("claude-opus-4-5")
	png := base64.StdEncoding.EncodeToString(encoded(t, "png", 560, 560))
	for _, text := range []string{
		"", "x", "https://example.com/a.png", "http:", "gs://bucket/a.png", "file-abc123", "data:", "data:image/png", "data:image/png;base64", "data:image/png,abc",
		"data:image/png;base64x," + png, "data:image/png;base64," + png[:10] + "*" + png[10:], "data:image/png;base64," + png[:12] + "==" + png[12:],
		"data:image/png;base64,\\u00e9" + png, "data:image/png;base64,\\x" + png, "data:" + strings.Repeat("a", 600) + ";base64," + png,
		"*" + png, strings.Repeat(" ", 40) + "data:image/png;base64," + png,
		"data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x00\x00\x00\x00\x09 and so on")),
		"data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte("<svg xmlns='http://www.w3.org/2000/svg' width='9'>")),
	} {
		m := sameAnyway(t, text)
		if got := r.image(&m, new(word)); got != 1568 {
			t.Errorf("%.60q costs %d", text, got)
		}
	}
	m := read("data:image/png;base64," + png)
	if got := r.image(&m, new(word)); got != 400 {
		t.Errorf("560 by 560 costs %d", got)
	}
}

// TestLongMediaAreBounded: what a medium keeps, and that base64 is no text.
func TestLongMediaAreBounded(t *testing.T) {
	p := prompt(t, "gpt-4o")
	chunk := []byte(strings.Repeat("iVBORw0KGgoAAAANSUhE", 5000))
	for range 100 {
		p.Text(MediaURL, chunk, false)
	}
	p.Text(MediaURL, nil, true)
	p.End(Image)
	p.Text(FileRef, chunk, true)
	p.End(File)
	if got := p.Total(); got != 3+1445+18000+342 {
		t.Errorf("%d tokens", got)
	}
	if m, all := unsafe.Sizeof(medium{}), unsafe.Sizeof(Prompt{}); m > 256 || all > 640 {
		t.Errorf("a medium takes %d bytes, a prompt %d", m, all)
	}
}

func TestMediaAddUp(t *testing.T) {
	url := func(w, h int) string {
		return "data:image/png;base64," + base64.StdEncoding.EncodeToString(encoded(t, "png", w, h))
	}
	type text struct {
		part Part
		s    string
	}
	for _, c := range []struct {
		name  string
		texts []text
		end   Item
		want  int
	}{
		{"no detail", []text{{MediaURL, url(1024, 1024)}}, Image, 765},
		{"detail after", []text{{MediaURL, url(1024, 1024)}, {MediaDetail, "low"}}, Image, 85},
		{"detail before", []text{{MediaDetail, "LOW"}, {MediaURL, url(1024, 1024)}}, Image, 85},
		{"unknown detail", []text{{MediaDetail, "lowest"}, {MediaURL, url(128, 64)}}, Image, 255},
		{"url", []text{{MediaURL, `https:\/\/example.com\/x.png`}}, Image, 1445},
		{"url, low", []text{{MediaURL, `https:\/\/example.com\/x.png`}, {MediaDetail, "low"}}, Image, 85},
		{"nothing", nil, Image, 1445},
		{"two in one item", []text{{MediaURL, url(128, 64)}, {MediaURL, url(1024, 1024)}}, Image, 255 + 765},
		{"sound without data", nil, Audio, 18000},
		{"wav", []text{{AudioFormat, "wav"}, {AudioData, base64.StdEncoding.EncodeToString(wav(16000, 32000*3))}}, Audio, 30},
		{"pcm16", []text{{AudioData, base64.StdEncoding.EncodeToString(make([]byte, 48000*2))}, {AudioFormat, "pcm16"}}, Audio, 20},
		{"file id", []text{{FileRef, "file-abc"}}, File, 18000 + 3},
		{"file without anything", nil, File, 18000},
		{"file, name before", []text{{FileRef, "a.pdf"}, {FileData, base64.StdEncoding.EncodeToString(pdf(2))}}, File, 3600},
		{"file, name after", []text{{FileData, "data:application/pdf;base64," + base64.StdEncoding.EncodeToString(pdf(2))}, {FileRef, "a.pdf"}}, File, 3600},
		{"data where a reference is meant", []text{{FileRef, "data:application/pdf;base64," + base64.StdEncoding.EncodeToString(pdf(3))}, {FileRef, "a.pdf"}}, File, 5400},
		{"pdf as an image", []text{{MediaURL, "data:application/pdf;base64," + base64.StdEncoding.EncodeToString(pdf(3))}}, Image, 5400},
		{"image as a file", []text{{FileData, url(1024, 1024)}}, File, 765},
		{"text file", []text{{FileData, "data:text/plain;base64," + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("abc"), 100))}}, File, 100},
		{"text file that says nothing", []text{{FileData, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("a\nc"), 100))}}, File, 100},
		{"other file", []text{{FileData, base64.StdEncoding.EncodeToString(append([]byte("PK\x03\x04"), make([]byte, 120<<10)...))}}, File, 3 * 1800},
		{"video, its type beside it", []text{{AudioFormat, "video/mp4"}, {FileData, base64.StdEncoding.EncodeToString(make([]byte, 120000))}}, File, 600},
		{"video, its format beside it", []text{{AudioFormat, "mp4"}, {FileData, base64.StdEncoding.EncodeToString(make([]byte, 120000))}}, File, 600},
		{"sound, its type beside it", []text{{FileData, base64.StdEncoding.EncodeToString(make([]byte, 48000*2))}, {AudioFormat, "audio/pcm16"}}, File, 20},
		{"video", []text{{MediaURL, "data:video/mp4;base64," + base64.StdEncoding.EncodeToString(make([]byte, 120000))}}, Image, 600},
	} {
		p := prompt(t, "gpt-4o")
		for range 2 { // nothing of the first may stay behind
			for _, x := range c.texts {
				p.Text(x.part, []byte(x.s), true)
			}
			p.End(c.end)
		}
		if got := p.Total(); got != 3+2*c.want {
			t.Errorf("%s: %d tokens, want %d", c.name, (got-3)/2, c.want)
		}
	}
}

func wav(rate uint32, bytes int) []byte {
	b := []byte("RIFF\xff\xff\xff\xffWAVELIST\x03\x00\x00\x00abc\x00fmt \x12\x00\x00\x00\x01\x00\x01\x00")
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = binary.LittleEndian.AppendUint32(b, rate*2)
	b = append(b, "\x02\x00\x10\x00\x00\x00data\xff\xff\xff\xff"...)
	return append(b, make([]byte, bytes-len(b))...)
}

func TestSoundRates(t *testing.T) {
	data := func(b []byte) string { return base64.StdEncoding.EncodeToString(append(b, make([]byte, 100)...)) }
	for _, c := range []struct {
		text, format string
		want         int64
	}{
		{data(wav(44100, 100)), "", 88200},
		{data(wav(44100, 100)), "mp3", 88200}, // the header knows better
		{data(wav(1, 100)), "wav", ratePCM16},
		{data(wav(1<<30, 100)), "wav", ratePCM16},
		{data([]byte("RIFF0000WAVEdata0000")), "wav", ratePCM16},
		{data([]byte("ID3\x04")), "", rateMP3},
		{data([]byte("\xff\xfb\x90\x00")), "", rateMP3},
		{data([]byte("OggS")), "wav", rateOpus},
		{data([]byte("fLaC")), "", rateFLAC},
		{data([]byte("\x00\x00\x00\x20ftypM4A ")), "", rateAAC},
		{data([]byte("\x1aE\xdf\xa3")), "", rateOpus},
		{data(nil), "g711_ulaw", rateG711},
		{data(nil), "PCM16", ratePCM24},
		{data(nil), "", rateUnknown},
		{"data:audio/mpeg;base64," + data(nil), "", rateMP3},
		{"data:audio/x-wav;base64," + data(nil), "", ratePCM16},
		{"data:audio/l16;rate=16000;base64," + data(nil), "", ratePCM16},
		{"data:audio/mp;base64," + data(nil), "", rateUnknown},
	} {
		m := sameAnyway(t, c.text)
		var format word
		format.write([]byte(c.format), true)
		if got := soundRate(&m, &format); got != c.want {
			t.Errorf("%.50s as %q: %d bytes a second, want %d", c.text, c.format, got, c.want)
		}
	}
	long := append([]byte("RIFF0000WAVEJUNK\xff\xff\xff\x7f"), make([]byte, 5000)...)
	if m := read(data(long)); !m.content.over || m.content.wav.seen != maxWAV+1 {
		t.Errorf("%+v", m.content.wav)
	}
}

// pdf is a document with that many page objects, and what must not be taken for one.
func pdf(pages int) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n1 0 obj<</Type/Pages/Count " + strconv.Itoa(pages) + ">>\n/Type /PageLabel /Type /Type/Pag /Page")
	for i := range pages {
		b.WriteString([]string{"<</Type /Page/Parent 1 0 R>>", "<</Type\n\n/Page>>", "<</Type/Page\n/X /Y>>", "<</Type//Type/Page<<>>"}[i%4])
	}
	return b.Bytes()
}

func TestPages(t *testing.T) {
	for pages := range 9 {
		b := pdf(pages)
		if got := referencePages(b); got != pages {
			t.Fatalf("the reference finds %d of %d pages", got, pages)
		}
		for _, text := range spellings("application/pdf", b) {
			if m := sameAnyway(t, text); m.content.pdf.count() != int64(pages) {
				t.Fatalf("%d of %d pages in %.40s", m.content.pdf.count(), pages, text)
			}
		}
	}
	r := Rates{Page: 10}
	m := read(base64.StdEncoding.EncodeToString(append([]byte("%PDF-1.7 all is compressed"), make([]byte, 3*bytesOfPage)...)))
	if got := r.pages(&m); got != 40 {
		t.Errorf("%d for three pages and a bit by size", got)
	}
}

// referencePages looks at each place by itself.
func referencePages(b []byte) (n int) {
	for i := range b {
		rest, ok := bytes.CutPrefix(b[i:], []byte("/Type"))
		if !ok {
			continue
		}
		rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, "\x00\t\n\f\r "), []byte("/Page"))
		if ok && (len(rest) == 0 || strings.IndexByte("\x00\t\n\f\r ()<>[]{}/%", rest[0]) >= 0) {
			n++
		}
	}
	return n
}

func FuzzMedium(f *testing.F) {
	for _, kind := range pictures {
		f.Add("data:image/x;base64,"+base64.StdEncoding.EncodeToString(encoded(f, kind, 33, 44)), uint64(1))
	}
	f.Add(`data:a\/b;base64,\/9j\/4A\u0041QSkZ`, uint64(2))
	f.Add(base64.StdEncoding.EncodeToString(pdf(3)), uint64(3))
	f.Add(base64.StdEncoding.EncodeToString(wav(8000, 200)), uint64(4))
	f.Add(`https://x`, uint64(5))
	f.Add(`data:0000,\`, uint64(2))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		for _, ref := range []bool{false, true} {
			var whole, split medium
			whole.begin(ref)
			whole.write([]byte(text))
			split.begin(ref)
			r := rand.New(rand.NewPCG(seed, 9))
			for rest := []byte(text); len(rest) > 0; {
				n := r.IntN(min(len(rest), 40) + 1)
				split.write(rest[:n])
				rest = rest[n:]
			}
			if whole != split {
				t.Fatalf("whole %+v\nsplit %+v", whole, split)
			}
			if n := whole.size(); n < 0 || n > int64(len(text)) {
				t.Fatalf("%d bytes of %d", n, len(text))
			}
			for _, model := range []string{"gpt-4o", "claude", "gemini-2.0", "qwen", "gpt-5.5"} {
				rates := RatesOf(model)
				var detail, format word
				for _, n := range []int64{rates.image(&whole, &detail), rates.sound(&whole, &format), rates.file(&whole, &detail, &format)} {
					if n < 0 || n > maxTokens {
						t.Fatalf("%d tokens", n)
					}
				}
			}
		}
	})
}

// FuzzPicture holds the sizes against the decoders of the standard library.
func FuzzPicture(f *testing.F) {
	for _, kind := range pictures[:3] {
		f.Add(encoded(f, kind, 33, 44))
	}
	f.Add(segments(encoded(f, "jpeg", 5, 6), 30, 9))
	f.Add([]byte("\xff\xd80\xff\xc0\x00\x11\b0000\x030A\x001\x11\x012\x11\x01\xff\xda00")) // no marker at first
	f.Fuzz(func(t *testing.T, b []byte) {
		c, kind, err := image.DecodeConfig(bytes.NewReader(b))
		m := read("data:;base64," + base64.StdEncoding.EncodeToString(b))
		if err != nil || c.Width == 0 || c.Height == 0 {
			return
		}
		if int(m.content.w) != c.Width || int(m.content.h) != c.Height {
			t.Fatalf("%s: %d by %d, the reference has %d by %d", kind, m.content.w, m.content.h, c.Width, c.Height)
		}
	})
}

func FuzzPages(f *testing.F) {
	f.Add(pdf(4))
	f.Add([]byte("%PDF/Type/Type/Page"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p pdfWalk
		for _, c := range b {
			p.put(c)
		}
		if got := p.count(); got != int64(referencePages(b)) {
			t.Fatalf("%d pages, the reference has %d in %q", got, referencePages(b), b)
		}
	})
}

// TestPlainTextAsAFile: Anthropic takes the text of a document itself where others take base64. It is
// weighed by its bytes, whatever it looks like, and whichever comes first, the text or its type.
func TestPlainTextAsAFile(t *testing.T) {
	long := strings.Repeat("The meter reads every chunk as it passes. ", 2500) // about 105,000 bytes
	for _, text := range []string{
		long, "Subject: x\n" + long, "data: x, y " + long, "a = b; " + long, "http://x/y " + long, "x=" + long,
		base64.StdEncoding.EncodeToString([]byte(long)),
	} {
		for _, first := range []bool{true, false} {
			p := NewPrompt(named(t, "approx-claude").NewCounter(), claude4)
			if first {
				p.Text(AudioFormat, []byte("text/plain"), true)
			}
			for at := 0; at < len(text); at += 1000 {
				p.Text(FileData, []byte(text[at:min(at+1000, len(text))]), at+1000 >= len(text))
			}
			if !first {
				p.Text(AudioFormat, []byte("text/plain"), true)
			}
			p.End(File)
			if n := p.Bare(); n < len(long)/4 || n > len(long)/2 {
				t.Errorf("%.20q, type first %v: %d tokens of %d bytes", text, first, n, len(long))
			}
		}
	}
}
