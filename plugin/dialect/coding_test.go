package dialect

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/plugin/inflate"
)

func TestContentEncodings(t *testing.T) {
	for v, want := range map[string]inflate.Format{
		"": 0, "identity": 0, " Identity , ": 0, "gzip": inflate.Gzip, "GZIP": inflate.Gzip, "x-gzip": inflate.Gzip,
		"deflate": inflate.Deflate, "identity, gzip": inflate.Gzip, "gzip,identity": inflate.Gzip,
	} {
		if f, ok := Coding(v); !ok || f != want {
			t.Errorf("%q: %v %v", v, f, ok)
		}
	}
	for _, v := range []string{"br", "zstd", "compress", "gzip, gzip", "gzip,deflate", "deflate, br", "gzip;q=1", "gz ip", "*"} {
		if f, ok := Coding(v); ok {
			t.Errorf("%q is taken for %v", v, f)
		}
	}
}

func TestAcceptsGzip(t *testing.T) {
	for v, want := range map[string]bool{
		"": false, "gzip": true, "gzip, deflate, br": true, "br, GZip": true, "x-gzip": true, "br": false, "identity": false, "deflate": false,
		"gzip;q=0": false, "gzip;q=0.0": false, "gzip;q=0.000": false, "gzip;q=0.001": true, "gzip ; Q=0.5": true, "gzip;q=1.000": true, "gzip; q = 1": true,
		"*": true, "*;q=0": false, "br;q=1, *;q=0.1": true, "gzip;q=0, *": false, "*, gzip;q=0": false, "identity;q=1, *;q=0": false,
		"gzip;q=": false, "gzip;q=x": false, "gzip;q=-1": false, "gzip;q=2": false, "gzip;q=0.0001": false, "gzip;q=1e3": false, "gzip;level=9": true,
		"gzip, gzip;q=0": false, "agzip": false, "gzip2": false, ",,": false,
	} {
		if got := AcceptsGzip(v); got != want {
			t.Errorf("%q: %v", v, got)
		}
	}
}

func TestSignedHeaders(t *testing.T) {
	const aws = "AWS4-HMAC-SHA256 Credential=AK/20260101/eu/bedrock/aws4_request, SignedHeaders="
	for v, want := range map[string]bool{
		aws + "accept-encoding;host;x-amz-date, Signature=00": true, aws + "host;accept-encoding": true,
		aws + "host;x-amz-date, Signature=accept-encoding": false, aws + "host;x-accept-encoding;accept-encodings": false,
		"Bearer SignedHeaders=accept-encoding": false, "": false,
	} {
		if got := Signs(v, "accept-encoding"); got != want {
			t.Errorf("%q: %v", v, got)
		}
	}
}

// coded puts a body in a coding, with a flush after each part.
func coded(t testing.TB, f inflate.Format, parts ...string) string {
	t.Helper()
	var b bytes.Buffer
	var w interface {
		io.WriteCloser
		Flush() error
	}
	if w = gzip.NewWriter(&b); f == inflate.Deflate {
		w = zlib.NewWriter(&b)
	}
	for _, p := range parts {
		_, _ = w.Write([]byte(p))
		_ = w.Flush()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func scanCoded(f inflate.Format, most int64, write func(func([]byte))) scanned {
	sink := &texts{}
	s := NewScanner(OpenAIChat, RequestHead{Coding: f, Inflate: most}, 256, sink)
	write(func(p []byte) { s.Write(p) })
	facts, fault := s.Close()
	r := scanned{Facts: facts, Fault: fault}
	if fault == nil {
		r.Texts = sink.done
	}
	return r
}

func TestCodedRequests(t *testing.T) {
	const body = `{"stream":true,"model":"m","messages":[{"role":"user","content":"hello there, hello there"}],"max_tokens":7}`
	want := scanWhole(body)
	want.Facts.Decoded = int64(len(body))
	for _, f := range []inflate.Format{inflate.Gzip, inflate.Deflate} {
		in := coded(t, f, body[:20], body[20:])
		run := func(w func(func([]byte))) scanned { return scanCoded(f, int64(len(body)), w) }
		sameForEverySplit(t, in, want, run)
		for n := range len(in) { // C58: whatever is missing, never half a body
			if got := run(func(w func([]byte)) { w([]byte(in[:n])) }); got.Fault == nil || got.Fault.Status != 400 || got.Fault.Code != "invalid_content_encoding" {
				t.Fatalf("%d bytes of %d: %+v", n, len(in), got)
			}
		}
		got := scanCoded(f, int64(len(body))-1, func(w func([]byte)) { w([]byte(in)) })
		if got.Fault == nil || got.Fault.Status != 413 || got.Fault.Code != "request_too_large" {
			t.Errorf("a byte too many: %+v", got.Fault)
		}
		if got := run(func(w func([]byte)) { w([]byte(body)) }); got.Fault == nil || got.Fault.Status != 400 {
			t.Errorf("a body that is not in its coding: %+v", got)
		}
		if got := run(func(w func([]byte)) { w([]byte(coded(t, f, body[:50]))) }); got.Fault == nil || got.Fault.Code != "invalid_json" {
			t.Errorf("half a body in a whole coding: %+v", got)
		}
	}
}

// TestCodedBombs is C59: what decodes to 200 MB is refused after 8 MiB, whether it is JSON or not.
func TestCodedBombs(t *testing.T) {
	for _, c := range []struct {
		start, fill string
		status      int
	}{
		{`{"model":"m","messages":[{"role":"user","content":"`, strings.Repeat("a", 1<<20), 413},
		{`{"model":"m","x":`, strings.Repeat(" ", 1<<20), 413},
		{"", strings.Repeat("\x00", 1<<20), 400}, // no JSON from its first byte on
		{strings.Repeat("[", 300), strings.Repeat("[", 1<<20), 400},
	} {
		in := coded(t, inflate.Gzip, append([]string{c.start}, slices.Repeat([]string{c.fill}, 200)...)...)
		s := NewScanner(OpenAIChat, RequestHead{Coding: inflate.Gzip, Inflate: 8 << 20}, 256, nil)
		fault := s.Write([]byte(in))
		if fault == nil || fault.Status != c.status {
			t.Errorf("%.20q: %+v", c.start, fault)
		}
		if out := s.(*codedScanner).body.Out(); out > 8<<20 {
			t.Errorf("%.20q: decoded %d bytes", c.start, out)
		}
	}
}

func meterCoded(h ResponseHead, write func(func([]byte))) metered {
	sink := &texts{}
	m := NewMeter(OpenAIChat, h, sink)
	write(m.Write)
	m.Close()
	r := metered{Produced: m.Produced(), Failed: m.Failed(), Finished: m.Finished(), Opaque: m.Opaque(), Texts: sink.done}
	r.Usage, r.Trust = m.Usage()
	return r
}

func TestCodedAnswers(t *testing.T) {
	const end = "data: " + `{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":7}}` + "\n\ndata: [DONE]\n\n"
	frame := func(s string) string {
		return `data: {"choices":[{"index":0,"delta":{"content":"` + s + `"}}]}` + "\n\n"
	}
	stream := frame("one two") + frame(" three four") + end
	answer := `{"choices":[{"message":{"content":"one two"}}],"usage":{"prompt_tokens":12,"completion_tokens":7}}`
	for _, c := range []struct {
		head   ResponseHead
		coding string
		body   string
	}{
		{okSSE, "gzip", stream}, {okSSE, "deflate", stream}, {okJSON, "x-gzip", answer}, {okJSON, "identity, gzip", answer},
	} {
		want := meterWhole(c.head, c.body)
		if want.Trust != WholeUsage || !want.Finished {
			t.Fatalf("%+v", want)
		}
		f, _ := Coding(c.coding)
		c.head.ContentEncoding = c.coding
		in := coded(t, f, c.body[:70], c.body[70:])
		run := func(w func(func([]byte))) metered { return meterCoded(c.head, w) }
		sameForEverySplit(t, in, want, run)
		// Cut off anywhere: what was decoded counts, and it is what the same bytes without a coding say.
		for n := range len(in) {
			var plain keep
			r := inflate.NewReader(f, inflate.Limits{Most: 1 << 20}, &plain)
			_ = r.Write([]byte(in[:n]))
			head := c.head
			head.ContentEncoding = ""
			if got, want := run(func(w func([]byte)) { w([]byte(in[:n])) }), meterWhole(head, string(plain)); !reflect.DeepEqual(got, want) {
				t.Fatalf("%d bytes of %d:\n got %+v\nwant %+v", n, len(in), got, want)
			}
		}
	}
	opaque := metered{Opaque: true}
	for _, coding := range []string{"br", "gzip, gzip"} {
		if got := meterCoded(ResponseHead{Status: 200, ContentEncoding: coding}, func(w func([]byte)) { w([]byte(stream)) }); !reflect.DeepEqual(got, opaque) {
			t.Errorf("%s: %+v", coding, got)
		}
	}
	head := okSSE
	head.ContentEncoding = "gzip"
	if got := meterCoded(head, func(w func([]byte)) { w([]byte(stream)) }); !reflect.DeepEqual(got, opaque) {
		t.Errorf("not in its coding: %+v", got)
	}
	// Broken behind two frames: what was seen of them stays, and the rest is opaque.
	in := coded(t, inflate.Gzip, frame("one two"), frame(" three"))
	in = in[:len(in)-13] + "\xff\xff\xff\xff\xff\xff" // where the last block begins
	got := meterCoded(head, func(w func([]byte)) { w([]byte(in)) })
	if !got.Opaque || !got.Produced || got.Finished || got.Trust != NoUsage || !slices.Equal(got.Texts, []string{"one two three"}) {
		t.Errorf("broken behind two frames: %+v", got)
	}
	// A running figure there is less than the truth.
	in = coded(t, inflate.Gzip, `data: {"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":12,"completion_tokens":1}}`+"\n\n")
	in = in[:len(in)-13] + "\xff\xff\xff\xff\xff\xff"
	if got := meterCoded(head, func(w func([]byte)) { w([]byte(in)) }); !got.Opaque || got.Trust != InputUsage || got.Usage.Input != 12 {
		t.Errorf("broken behind a running figure: %+v", got)
	}
	// A wrong sum behind the end takes nothing back.
	in = coded(t, inflate.Gzip, stream)
	in = in[:len(in)-8] + "\x00\x00\x00\x00" + in[len(in)-4:]
	if got := meterCoded(head, func(w func([]byte)) { w([]byte(in)) }); got.Opaque || got.Trust != WholeUsage || got.Usage.Output != 7 {
		t.Errorf("a wrong sum: %+v", got)
	}
}

type keep []byte

func (k *keep) Inflated(p []byte) bool { *k = append(*k, p...); return true }

// TestCodedAnswerBombs: an answer that decodes to far too much is not read to its end.
func TestCodedAnswerBombs(t *testing.T) {
	fill := strings.Repeat(`data: {"choices":[{"index":0,"delta":{"content":"aaaaaaaa"}}]}`+"\n\n", 16<<10)
	in := coded(t, inflate.Gzip, slices.Repeat([]string{fill}, 40)...)
	head := okSSE
	head.ContentEncoding = "gzip"
	m := NewMeter(OpenAIChat, head, nil)
	for i := 0; i < len(in); i += 1000 {
		m.Write([]byte(in[i:min(i+1000, len(in))]))
	}
	m.Close()
	if out := m.(*codedMeter).body.Out(); out > answerMost+answerPerByte*int64(len(in))+64<<10 || out >= int64(40*len(fill)) {
		t.Errorf("decoded %d bytes of %d, from %d", out, 40*len(fill), len(in))
	}
	if !m.Opaque() || !m.Produced() || m.Finished() {
		t.Errorf("opaque %v, produced %v, finished %v", m.Opaque(), m.Produced(), m.Finished())
	}
	// The same text in a usual coding, and as long as one likes, is read.
	m = NewMeter(OpenAIChat, head, nil)
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	for i := range 60_000 {
		_, _ = w.Write([]byte(`data: {"choices":[{"index":0,"delta":{"content":"` + string(rune('a'+i*7%26)) + string(rune('a'+i/3%26)) + `"}}]}` + "\n\n"))
		_ = w.Flush()
		m.Write(b.Bytes())
		b.Reset()
	}
	if m.Opaque() || !m.Produced() {
		t.Error("a long stream is not read to its end")
	}
}
