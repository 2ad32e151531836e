package dialect

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// aForm writes a form as SDKs do: pairs of a name and a value. A name with a @ is of a file.
func aForm(boundary string, pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		name, file, isFile := strings.Cut(pairs[i], "@")
		b.WriteString("--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + name + "\"")
		if isFile {
			b.WriteString("; filename=\"" + file + "\"\r\nContent-Type: application/octet-stream")
		}
		b.WriteString("\r\n\r\n" + pairs[i+1] + "\r\n")
	}
	b.WriteString("--" + boundary + "--\r\n")
	return b.String()
}

const formType = "multipart/form-data; boundary=XyZ"

var transcriptions, _ = Recognise("POST", "/v1/audio/transcriptions")

func scanForm(w func(func([]byte))) scanned {
	return scanAs(transcriptions, RequestHead{ContentType: formType}, w, 0)
}

// wav is a sound of n bytes, of so many bytes a second.
func wav(rate, n int) string {
	head := "RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00" +
		string([]byte{byte(rate), byte(rate >> 8), byte(rate >> 16), byte(rate >> 24)}) + "\x02\x00\x10\x00data"
	return head + strings.Repeat("\x00", n-len(head))
}

func TestAudioFacts(t *testing.T) {
	for _, c := range []struct {
		name  string
		body  string
		want  Facts
		texts []string
	}{
		{"a WAV", aForm("XyZ", "model", "gpt-4o-transcribe", "file@a.wav", wav(32000, 64000), "prompt", "say \"x\"\n\\", "stream", "true", "language", "en"),
			Facts{Model: "gpt-4o-transcribe", Stream: true, N: 1, AudioMillis: 2001, TokenIDs: 21, MaxOutput: 11, HasMaxOutput: true}, []string{"say \"x\"\n\\"}},
		{"whisper", aForm("XyZ", "file@a.mp3", "ID3"+strings.Repeat("x", 3997), "model", "whisper-1"),
			Facts{Model: "whisper-1", N: 1, AudioMillis: 1001, NoOutput: true}, nil},
		{"lines that look like a boundary", aForm("XyZ", "model", "whisper-1", "file@a.mp3", "a\r\n--XyQ\r\r\n-\r\n\n--\r", "prompt", "\r\n--Xy"),
			Facts{Model: "whisper-1", N: 1, AudioMillis: 10, NoOutput: true}, []string{"\r\n--Xy"}},
		{"empty values", aForm("XyZ", "model", "", "prompt", "", "file@", ""), Facts{N: 1, AudioMillis: 1, TokenIDs: 1, MaxOutput: 1, HasMaxOutput: true}, []string{""}},
		{"others before and behind", "preamble\r\n" + aForm("XyZ", "model", "whisper-1") + "epilogue", Facts{Model: "whisper-1", N: 1, NoOutput: true}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := scanForm(func(w func([]byte)) { w([]byte(c.body)) })
			if c.want.Model != "" {
				if s := got.Facts.ModelSpan; c.body[s.Start:s.End] != c.want.Model {
					t.Fatalf("the model stands at %v", s)
				}
			}
			c.want.NoChat, c.want.ModelPlain, c.want.ModelSpan = true, true, got.Facts.ModelSpan
			if got.Fault != nil || got.Facts != c.want || !slices.Equal(got.Texts, c.texts) {
				t.Fatalf("\n got %+v\nwant %+v %q", got, c.want, c.texts)
			}
			if len(c.body) < 5000 {
				sameForEverySplit(t, c.body, got, scanForm)
			}
		})
	}
}

func TestFormsThatTwoDecodersMayReadDifferently(t *testing.T) {
	part := func(head, value string) string {
		return "--XyZ\r\n" + head + "\r\n\r\n" + value + "\r\n--XyZ--\r\n"
	}
	const plain = `Content-Disposition: form-data; name="model"`
	for _, c := range []struct{ body, param string }{
		{aForm("XyZ", "model", "cheap", "model", "dear"), "model"},
		{aForm("XyZ", "model", "cheap", "Model", "dear"), "model"},
		{aForm("XyZ", "model@x", "cheap"), "model"},
		{aForm("XyZ", "file@a", "x", "file@b", "y"), "file"},
		{aForm("XyZ", "model", strings.Repeat("m", maxFormValue+1)), "model"},
		{strings.ReplaceAll(aForm("XyZ", "model", "m"), "\r\n", "\n"), ""},
		{"--XyZ\r\n" + plain + "\r\n\r\na\n--XyZ\r\n" + plain + "\r\n\r\nb\r\n--XyZ--\r\n", ""},
		{"--XyZ\r\n" + plain + "\r\n\r\n--XyZ--\r\n", ""}, // of the part, or its end
		{part(`Content-Disposition: form-data; name="mod\el"`, "m"), ""},
		{part(`Content-Disposition: form-data; name=model; name=x`, "m"), ""},
		{part(`Content-Disposition: form-data; name*=utf-8''model`, "m"), ""},
		{part(`Content-Disposition: form-data; name="mod%65l"`, "m"), ""},
		{part(`Content-Disposition: form-data`, "m"), ""},
		{part(`Content-Disposition: attachment; name="model"`, "m"), ""},
		{part(plain+"\r\n"+plain, "m"), ""},
		{part(plain+"\r\nContent-Transfer-Encoding: base64", "bQ=="), ""},
		{part(plain+"\r\nContent-Type: text/plain; charset=utf-7", "m"), ""},
		{part("Content-Disposition: form-data;\r\n name=\"model\"", "m"), ""},
		{part(plain+"\r\nno header", "m"), ""},
		{part("X: "+strings.Repeat("x", maxFormHead), "m"), ""},
		{part("X: y", "m"), ""},
		{"--XyZ x\r\n" + plain + "\r\n\r\nm\r\n--XyZ--", ""},
		{"--XyZ\r\n" + plain + "\r\n\r\nm\r\n--XyZ-x", ""},
		{"--XyZ\r\n" + plain + "\r\n\r\nm\r\n--XyZ", ""},
		{"--XyZ\r\n" + plain + "\r\n\r\nm", ""},
		{"--XyZ\r\n" + plain, ""},
		{"", ""},
		{`{"model":"m"}`, ""},
		{strings.Repeat("--XyZ\r\nContent-Disposition: form-data; name=x\r\n\r\ny\r\n", maxFormParts+1) + "--XyZ--", ""},
	} {
		got := scanForm(func(w func([]byte)) { w([]byte(c.body)) })
		if got.Fault == nil || got.Fault.Status != 400 || got.Fault.Param != c.param {
			t.Errorf("%.200q: %+v %+v", c.body, got.Fault, got.Facts)
		}
		if len(c.body) < 2000 {
			sameForEverySplit(t, c.body, got, scanForm)
		}
	}
	for _, kind := range []string{"", "application/json", "multipart/form-data", "multipart/form-data; boundary=", "multipart/mixed; boundary=XyZ",
		`multipart/form-data; boundary="XyZ`, "multipart/form-data; boundary=XyZ; boundary=Q", `multipart/form-data; boundary="X\yZ"`,
		"multipart/form-data; boundary=" + strings.Repeat("x", 71), "multipart/form-data; boundary=a b"} {
		s := transcriptions.NewScanner(RequestHead{ContentType: kind}, 0, nil)
		if _, fault := s.Close(); fault == nil || fault.Status != 415 {
			t.Errorf("%q: %v", kind, fault)
		}
	}
	for kind, boundary := range map[string]string{
		`Multipart/Form-Data; charset=utf-8; Boundary="a b"`: "a b", "multipart/form-data;boundary=----WebKitFormBoundaryx": "----WebKitFormBoundaryx",
	} {
		if got, ok := formBoundary(kind); got != boundary || !ok {
			t.Errorf("%q: %q", kind, got)
		}
	}
}

// referenceForm is the dumb model: Go's decoder, with all of the body in memory.
func referenceForm(contentType string, body []byte) (fields map[string][]string, ok bool) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, false
	}
	r := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	fields = map[string][]string{}
	for {
		p, err := r.NextRawPart()
		if err == io.EOF {
			return fields, true
		}
		if err != nil {
			return nil, false
		}
		value, err := io.ReadAll(p)
		if err != nil {
			return nil, false
		}
		fields[p.FormName()] = append(fields[p.FormName()], string(value))
	}
}

func FuzzForm(f *testing.F) {
	for _, body := range []string{
		aForm("XyZ", "model", "m", "file@a.wav", wav(16000, 100), "prompt", "p\r\n--Xy", "stream", "true"),
		aForm("XyZ", "model", "m", "n", "2"), "x\r\n" + aForm("XyZ", "a", "b") + "y", "--XyZ--", "--XyZ\n\n",
		"--XyZ\r\nContent-Disposition: form-data; name=model\r\n\r\n\r\n--XyZ\r\n\r\n--XyZ--",
	} {
		f.Add([]byte(body), uint16(5))
	}
	f.Fuzz(func(t *testing.T, body []byte, cut uint16) {
		n := int(cut) % (len(body) + 1)
		whole := scanForm(func(w func([]byte)) { w(body) })
		split := scanForm(func(w func([]byte)) { w(bytes.Clone(body[:n])); w(bytes.Clone(body[n:])) })
		if !reflect.DeepEqual(whole, split) {
			t.Fatalf("cut at %d:\n%+v\n%+v", n, whole, split)
		}
		if whole.Fault != nil {
			return
		}
		fields, ok := referenceForm(formType, body)
		if !ok {
			return // stricter than we are about what doesn't matter
		}
		if model := fields["model"]; len(model) > 1 || len(model) == 1 && model[0] != whole.Facts.Model {
			t.Fatalf("model %q, the reference has %q", whole.Facts.Model, model)
		}
		if s := whole.Facts.ModelSpan; whole.Facts.ModelPlain && string(body[s.Start:s.End]) != whole.Facts.Model {
			t.Fatalf("the span holds %q", body[s.Start:s.End])
		}
		if prompt := fields["prompt"]; len(prompt) == 1 && len(whole.Texts) != 1 {
			t.Fatalf("heard %q of %q", whole.Texts, prompt)
		}
	})
}

func TestFormHoldsNoBody(t *testing.T) {
	s := transcriptions.NewScanner(RequestHead{ContentType: formType}, 0, discard{}).(*formScanner)
	body := aForm("XyZ", "model", "m", "file@a", "")
	s.Write([]byte(body[:len(body)-len("\r\n--XyZ--\r\n")]))
	chunk := bytes.Repeat([]byte("sound\r\n-- and noise \r \n"), 1000)
	if n := testing.AllocsPerRun(50, func() { s.Write(chunk) }); n > 2500 {
		t.Fatalf("%v allocations for a piece of a file", n)
	}
	s.Write([]byte("\r\n--XyZ--\r\n"))
	if _, fault := s.Close(); fault != nil || cap(s.value) > 2*maxFormValue || cap(s.line) > 2*maxFormHead {
		t.Fatal(fault, cap(s.value), cap(s.line))
	}
}
