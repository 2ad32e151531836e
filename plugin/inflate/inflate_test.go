package inflate

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"strings"
	"testing"
	"unsafe"
)

// collector is a sink that keeps everything, up to stop bytes if that isn't 0.
type collector struct {
	b    []byte
	stop int
}

func (c *collector) Inflated(p []byte) bool {
	c.b = append(c.b, p...)
	return c.stop == 0 || len(c.b) < c.stop
}

const plenty = 1 << 40

// inflate decodes in pieces of n bytes; 0 = in one.
func inflate(f Format, l Limits, in []byte, n int) ([]byte, error) {
	var c collector
	r := NewReader(f, l, &c)
	if n == 0 {
		n = max(len(in), 1)
	}
	for len(in) > 0 {
		k := min(n, len(in))
		if err := r.Write(in[:k]); err != nil {
			if again := r.Write(in[k:]); again != err || r.Close() != err {
				return c.b, fmt.Errorf("a second fault %v after %v", again, err)
			}
			return c.b, err
		}
		in = in[k:]
	}
	return c.b, r.Close()
}

// deflated compresses with the standard library.
func deflated(t testing.TB, f Format, level int, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch f {
	case Raw:
		w, err = flate.NewWriter(&b, level)
	case Zlib:
		w, err = zlib.NewWriterLevel(&b, level)
	case Gzip:
		w, err = gzip.NewWriterLevel(&b, level)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// texts are bodies of many kinds.
func texts() map[string][]byte {
	rnd := rand.New(rand.NewSource(1))
	noise := make([]byte, 70_000)
	rnd.Read(noise)
	skewed := make([]byte, 100_000) // codes of all lengths up to the longest
	for i := range skewed {
		v := byte(0)
		for rnd.Intn(2) == 0 && v < 60 {
			v++
		}
		skewed[i] = v
	}
	far := make([]byte, 0, 100_000) // matches as far back as they can be
	for len(far) < 90_000 {
		far = append(far, noise[:32_700]...)
	}
	return map[string][]byte{
		"empty":  {},
		"one":    []byte("x"),
		"chat":   []byte(strings.Repeat(`data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"caf\u00e9 "}}]}`+"\n\n", 300)),
		"zeros":  make([]byte, 100_000),
		"noise":  noise,
		"skewed": skewed,
		"far":    far,
		"window": append(append([]byte{}, noise[:windowSize]...), noise[:windowSize]...),
	}
}

func TestWhatTheStandardLibraryWrites(t *testing.T) {
	for name, text := range texts() {
		for _, f := range []Format{Raw, Zlib, Gzip} {
			for _, level := range []int{flate.HuffmanOnly, flate.NoCompression, 1, 6, 9} {
				in := deflated(t, f, level, text)
				for _, n := range []int{0, 1, 7, 1000} {
					got, err := inflate(f, Limits{Most: plenty}, in, n)
					if err != nil || !bytes.Equal(got, text) {
						t.Errorf("%s, format %d, level %d, pieces of %d: %d of %d bytes, %v", name, f, level, n, len(got), len(text), err)
					}
				}
			}
		}
	}
}

// TestEverySplit: no border between two pieces matters, and bytes are handed on as soon as they can be
// known, whatever is still to come.
func TestEverySplit(t *testing.T) {
	text := []byte(strings.Repeat("the quick brown fox, ", 20) + "jumps; \x00\xff")
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Name, w.Comment, w.Extra = "a name", "a comment", []byte("extra")
	_, _ = w.Write(text[:200])
	_ = w.Flush()
	_, _ = w.Write(text[200:])
	_ = w.Close()
	b.Write(deflated(t, Gzip, flate.NoCompression, text))
	b.Write(deflated(t, Gzip, 9, text))
	want := bytes.Repeat(text, 3)
	in := b.Bytes()
	for i := range in {
		var c collector
		r := NewReader(Gzip, Limits{Most: plenty}, &c)
		if err := errors.Join(r.Write(in[:i]), r.Write(in[i:]), r.Close()); err != nil || !bytes.Equal(c.b, want) {
			t.Fatalf("split at %d: %d bytes, %v", i, len(c.b), err)
		}
		if _, err := inflate(Gzip, Limits{Most: plenty}, in[:i], 0); err != Truncated && !memberEnd(in, i) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
}

// memberEnd says whether in[:i] is whole by the standard library.
func memberEnd(in []byte, i int) bool {
	r, err := gzip.NewReader(bytes.NewReader(in[:i]))
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, r)
	return err == nil
}

// TestAtOnce: what a sender flushes comes out with its last byte.
func TestAtOnce(t *testing.T) {
	for _, f := range []Format{Raw, Zlib, Gzip} {
		var b bytes.Buffer
		var w interface {
			io.Writer
			Flush() error
		}
		switch f {
		case Raw:
			w, _ = flate.NewWriter(&b, 6)
		case Zlib:
			w = zlib.NewWriter(&b)
		case Gzip:
			w = gzip.NewWriter(&b)
		}
		var c collector
		r := NewReader(f, Limits{Most: plenty}, &c)
		for i := range 50 {
			event := fmt.Sprintf("data: {\"n\":%d}\n\n", i)
			_, _ = w.Write([]byte(event))
			_ = w.Flush()
			for b.Len() > 0 {
				if err := r.Write(b.Next(1)); err != nil {
					t.Fatal(err)
				}
			}
			if string(c.b) != event {
				t.Fatalf("format %d, event %d: %q", f, i, c.b)
			}
			c.b = c.b[:0]
		}
	}
}

func TestHTTPDeflate(t *testing.T) {
	text := []byte(`{"model":"m"}`)
	for _, f := range []Format{Raw, Zlib} {
		for _, level := range []int{flate.HuffmanOnly, flate.NoCompression, 1, 9} {
			for _, n := range []int{0, 1} {
				if got, err := inflate(Deflate, Limits{Most: plenty}, deflated(t, f, level, text), n); err != nil || string(got) != string(text) {
					t.Errorf("format %d, level %d: %q, %v", f, level, got, err)
				}
			}
		}
	}
	for name, want := range map[string]Format{"gzip": Gzip, "X-GZIP": Gzip, " Deflate\t": Deflate, "br": 0, "gzip, gzip": 0, "": 0, "identity": 0} {
		if f, ok := ForCoding(name); f != want || ok != (want != 0) {
			t.Errorf("%q: %v", name, f)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	text := []byte("hello hello hello hello")
	gz, zl, raw := deflated(t, Gzip, 9, text), deflated(t, Zlib, 9, text), deflated(t, Raw, 9, text)
	edit := func(in []byte, at int, v byte) []byte {
		out := bytes.Clone(in)
		if at < 0 {
			at += len(out)
		}
		out[at] ^= v
		return out
	}
	cat := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	var withDict bytes.Buffer
	w, err := flate.NewWriterDict(&withDict, 9, text)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(text)
	_ = w.Close()
	head := []byte{0x1f, 0x8b, 8, 2, 0, 0, 0, 0, 0, 255, 0, 0} // with a wrong CRC of itself
	for name, c := range map[string]struct {
		f    Format
		in   []byte
		want Fault
	}{
		"nothing":                    {Gzip, nil, Truncated},
		"no gzip":                    {Gzip, []byte(`{"model":"m"}`), Corrupt},
		"another method":             {Gzip, edit(gz, 2, 1), Corrupt},
		"reserved flags":             {Gzip, edit(gz, 3, 0x20), Corrupt},
		"a wrong sum":                {Gzip, edit(gz, -5, 1), Checksum},
		"a wrong size":               {Gzip, edit(gz, -1, 1), Checksum},
		"a wrong sum of the header":  {Gzip, cat(head, gz[10:]), Checksum},
		"rubbish behind":             {Gzip, cat(gz, []byte("rubbish")), Corrupt},
		"zeros behind":               {Gzip, cat(gz, make([]byte, 8)), Corrupt},
		"half a second member":       {Gzip, cat(gz, gz[:12]), Truncated},
		"a wrong Adler sum":          {Zlib, edit(zl, -1, 1), Checksum},
		"two zlib streams":           {Zlib, cat(zl, zl), Corrupt},
		"a preset dictionary":        {Zlib, []byte{0x78, 0xbb, 0, 0, 0, 0}, Corrupt},
		"a byte too many":            {Raw, cat(raw, []byte{0}), Corrupt},
		"a block of the fourth kind": {Raw, []byte{7}, Corrupt},
		"a length and no complement": {Raw, []byte{1, 5, 0, 5, 0}, Corrupt},
		"too far back":               {Raw, withDict.Bytes(), Corrupt},
		"too many lengths":           {Raw, []byte{0xfd, 0xff, 0xff}, Corrupt},
	} {
		for _, n := range []int{0, 1, 3} {
			if _, err := inflate(c.f, Limits{Most: plenty}, c.in, n); err != c.want {
				t.Errorf("%s, pieces of %d: %v", name, n, err)
			}
		}
	}
}

// TestLimits proves the caps: not a byte more than Most, and with PerByte no more than 32 KiB beyond.
func TestLimits(t *testing.T) {
	bomb := deflated(t, Gzip, 9, make([]byte, 8<<20))
	if len(bomb) > 8<<20/1000 {
		t.Fatalf("no bomb: %d bytes", len(bomb))
	}
	for _, most := range []int{0, 1, 257, 258, windowSize - 1, windowSize, windowSize + 1, 1 << 20, 8<<20 - 1} {
		for _, n := range []int{0, 1, 100} {
			got, err := inflate(Gzip, Limits{Most: int64(most)}, bomb, n)
			if err != TooLarge || len(got) != most {
				t.Errorf("most %d, pieces of %d: %d bytes, %v", most, n, len(got), err)
			}
		}
	}
	if got, err := inflate(Gzip, Limits{Most: 8 << 20}, bomb, 0); err != nil || len(got) != 8<<20 {
		t.Errorf("what just fits: %d bytes, %v", len(got), err)
	}
	first := -1
	for _, n := range []int{0, 1, 100} {
		got, err := inflate(Gzip, Limits{Most: 100_000, PerByte: 100}, bomb, n)
		if first < 0 {
			first = len(got)
		}
		if err != TooLarge || len(got) != first || len(got) > 100_000+100_000/9+windowSize {
			t.Errorf("pieces of %d: %d bytes, %v", n, len(got), err)
		}
	}
	if got, err := inflate(Gzip, Limits{Most: 100_000, PerByte: 1033}, bomb, 0); err != nil || len(got) != 8<<20 {
		t.Errorf("what its size allows: %d bytes, %v", len(got), err)
	}
	c := collector{stop: 1000}
	r := NewReader(Gzip, Limits{Most: plenty}, &c)
	if err := r.Write(bomb); err != Stopped || len(c.b) > windowSize {
		t.Errorf("a sink that wants no more: %d bytes, %v", len(c.b), err)
	}
}

// TestMemory proves what a reader holds, whatever it is given.
func TestMemory(t *testing.T) {
	if size := unsafe.Sizeof(Reader{}); size > 44<<10 {
		t.Errorf("a reader is %d bytes", size)
	}
	in := deflated(t, Gzip, 9, make([]byte, 1<<20))
	r := NewReader(Gzip, Limits{Most: plenty}, &counter{})
	if n := testing.AllocsPerRun(10, func() {
		*r = Reader{sink: r.sink, format: Gzip, limits: r.limits}
		if err := errors.Join(r.Write(in), r.Close()); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

type counter struct{ n int64 }

func (c *counter) Inflated(p []byte) bool { c.n += int64(len(p)); return true }

// reference decodes with the standard library.
func reference(in []byte, most int64) ([]byte, error) {
	return io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(in)), most))
}

// FuzzRaw compares with the standard library: the same bytes come out, and the same streams are whole.
// Only behind the end of a stream it is less strict.
func FuzzRaw(f *testing.F) {
	for _, text := range texts() {
		for _, level := range []int{flate.HuffmanOnly, flate.NoCompression, 1, 9} {
			f.Add(deflated(f, Raw, level, text[:min(len(text), 3000)]), uint8(7))
		}
	}
	f.Add([]byte{0x63, 0x60, 0x80, 0x01}, uint8(1))
	f.Add([]byte{0xfd, 0xff, 0xff}, uint8(1))
	f.Fuzz(func(t *testing.T, in []byte, piece uint8) {
		const most = 1 << 20
		in = in[:min(len(in), 1<<16)]
		want, wantErr := reference(in, most+1)
		whole, wholeErr := inflate(Raw, Limits{Most: most}, in, 0)
		got, err := inflate(Raw, Limits{Most: most}, in, int(piece))
		if err != wholeErr || !bytes.Equal(got, whole) {
			t.Fatalf("pieces of %d give %d bytes and %v, the whole %d and %v", piece, len(got), err, len(whole), wholeErr)
		}
		if len(want) > most {
			want, wantErr = want[:most], TooLarge
		}
		if !bytes.HasPrefix(whole, want) && !bytes.HasPrefix(want, whole) {
			t.Fatalf("%d bytes that differ from the reference's %d", len(whole), len(want))
		}
		if (wholeErr == nil) != (wantErr == nil) {
			if wantErr == nil && wholeErr == Corrupt && bytes.Equal(whole, want) {
				return // more behind the stream
			}
			t.Fatalf("%v, and the reference %v", wholeErr, wantErr)
		}
		if wholeErr == nil && !bytes.Equal(whole, want) {
			t.Fatalf("%d bytes, and the reference %d", len(whole), len(want))
		}
	})
}

// FuzzGzip compares whole files with the standard library, which takes reserved flags.
func FuzzGzip(f *testing.F) {
	for _, text := range texts() {
		one := deflated(f, Gzip, 9, text[:min(len(text), 500)])
		f.Add(one, uint8(1))
		f.Add(append(bytes.Clone(one), one...), uint8(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, piece uint8) {
		const most = 1 << 20
		in = in[:min(len(in), 1<<16)]
		got, err := inflate(Gzip, Limits{Most: most}, in, 0)
		split, splitErr := inflate(Gzip, Limits{Most: most}, in, int(piece))
		if err != splitErr || !bytes.Equal(got, split) {
			t.Fatalf("pieces of %d give %d bytes and %v, the whole %d and %v", piece, len(split), splitErr, len(got), err)
		}
		if err != nil {
			return
		}
		r, wantErr := gzip.NewReader(bytes.NewReader(in))
		var want []byte
		if wantErr == nil {
			want, wantErr = io.ReadAll(r)
		}
		if wantErr != nil || !bytes.Equal(got, want) {
			t.Fatalf("taken: %d bytes; by the reference %d and %v", len(got), len(want), wantErr)
		}
	})
}

func benchmarkTexts(b *testing.B) map[string][]byte {
	all := texts()
	rnd := rand.New(rand.NewSource(2))
	var stream bytes.Buffer
	words := strings.Fields("the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one you were all her she there would their we him been has when who will no more if out so")
	for i := range 4000 {
		fmt.Fprintf(&stream, "data: {\"id\":\"chatcmpl-AbC%d\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" %s\"},\"finish_reason\":null}]}\n\n", 7, words[rnd.Intn(len(words))])
		if i%3 == 0 {
			stream.WriteString(": keep-alive\n\n")
		}
	}
	prompt := &bytes.Buffer{}
	prompt.WriteString(`{"model":"m","messages":[{"role":"user","content":"`)
	for range 60_000 {
		fmt.Fprintf(prompt, "%s%d ", words[rnd.Intn(len(words))], rnd.Intn(90))
	}
	prompt.WriteString(`"}]}`)
	return map[string][]byte{"stream": stream.Bytes(), "prompt": prompt.Bytes(), "noise": all["noise"], "zeros": make([]byte, 4<<20)}
}

func BenchmarkInflate(b *testing.B) {
	for name, text := range benchmarkTexts(b) {
		in := deflated(b, Raw, 6, text)
		b.Run(name+"/here", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			r := NewReader(Raw, Limits{Most: plenty}, &counter{})
			for b.Loop() {
				*r = Reader{sink: r.sink, format: Raw, limits: r.limits}
				if err := errors.Join(r.Write(in), r.Close()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/standard", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			r := flate.NewReader(nil)
			for b.Loop() {
				_ = r.(flate.Resetter).Reset(bytes.NewReader(in), nil)
				if _, err := io.Copy(io.Discard, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
