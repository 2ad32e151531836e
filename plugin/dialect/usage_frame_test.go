package dialect

import (
	"encoding/json"
	"math/rand"
	"regexp"
	"strings"
	"testing"
)

// TestAskUsage: what asks for the usage of a stream is a splice, and nothing else of the body changes.
func TestAskUsage(t *testing.T) {
	const m = `"model":"m","messages":[{"role":"user","content":"{\"stream_options\":1}"}]`
	for _, c := range []struct{ body, want string }{
		{`{"stream":true,` + m + `}`, `{"stream_options":{"include_usage":true},"stream":true,` + m + `}`},
		{" {\n " + m + `, "stream" : true } `, " {" + `"stream_options":{"include_usage":true},` + "\n " + m + `, "stream" : true } `},
		{`{"stream":true,"stream_options":null,` + m + `}`, `{"stream":true,"stream_options":{"include_usage":true},` + m + `}`},
		{`{"stream":true,"stream_options":{},` + m + `}`, `{"stream":true,"stream_options":{"include_usage":true},` + m + `}`},
		{`{"stream":true,"stream_options":{ },` + m + `}`, `{"stream":true,"stream_options":{"include_usage":true },` + m + `}`},
		{`{"stream_options" : { "x": {"include_usage":true} },"stream":true,` + m + `}`, `{"stream_options" : {"include_usage":true, "x": {"include_usage":true} },"stream":true,` + m + `}`},
		{`{"stream":true,"stream_options":{"x":1,"include_usage":false,"y":[]},` + m + `}`, `{"stream":true,"stream_options":{"x":1,"include_usage":true,"y":[]},` + m + `}`},
		{`{"stream":true,` + m + `,"stream_options":{"include_usage": null}}`, `{"stream":true,` + m + `,"stream_options":{"include_usage": true}}`},
		{`{"stream":true,"stream_options":{"include_us\u0061ge":false},` + m + `}`, `{"stream":true,"stream_options":{"include_us\u0061ge":true},` + m + `}`},
		{`{"stream":true,"stream_options":{"include_usage":true},` + m + `}`, ""},
		{`{"stream":true,"stream_options":{"x":{},"include_usage":true},` + m + `}`, ""},
		{`{"stream":false,` + m + `}`, ""}, {`{` + m + `}`, ""}, {`{"stream_options":{},` + m + `}`, ""},
	} {
		whole := scanWhole(c.body)
		if whole.Fault != nil {
			t.Fatalf("%s: %v", c.body, whole.Fault)
		}
		s, got := whole.Facts.AskUsage, ""
		if s.With != "" {
			got = c.body[:s.At.Start] + s.With + c.body[s.At.End:]
			if again := scanWhole(got); again.Fault != nil || !again.Facts.IncludeUsage || again.Facts.AskUsage != (Splice{}) {
				t.Errorf("%s: edited, it is %+v", c.body, again)
			}
		}
		if got != c.want {
			t.Errorf("%s\n gives %s\n want %s", c.body, got, c.want)
		}
		sameForEverySplit(t, c.body, whole, func(w func(func([]byte))) scanned { return scan(w, 256) })
	}
}

const (
	spoken1 = `{"id":"c","choices":[{"index":0,"delta":{"content":"caf\u00e9"},"finish_reason":null}],"usage":null}`
	spoken2 = `{"id":"c","usage":{"prompt_tokens":1},"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	onlyUse = `{"id":"c","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":7,"x":{"choices":[1]}}}`
)

// filtered gives what goes on of a stream in these pieces.
func filtered(pieces ...string) string {
	f := NewUsageFilter()
	var b strings.Builder
	for _, p := range pieces {
		b.Write(f.Write([]byte(p)))
	}
	b.Write(f.Close())
	return b.String()
}

func TestUsageFrameIsTakenOut(t *testing.T) {
	first := "data: " + spoken1 + "\n\n"
	end := "data: [DONE]\n\n"
	for _, c := range []struct{ name, in, want string }{
		{"C13", first + "data: " + onlyUse + "\n\n" + end, first + end},
		{"no space", "data:" + spoken1 + "\n\ndata:" + onlyUse + "\n\ndata:[DONE]\n\n", "data:" + spoken1 + "\n\ndata:[DONE]\n\n"},
		{"CRLF", "data: " + spoken1 + "\r\n\r\ndata: " + onlyUse + "\r\n\r\ndata: [DONE]\r\n\r\n", "data: " + spoken1 + "\r\n\r\ndata: [DONE]\r\n\r\n"},
		{"CR", "data: " + spoken1 + "\r\rdata: " + onlyUse + "\r\rdata: [DONE]\r\r", "data: " + spoken1 + "\r\rdata: [DONE]\r\r"},
		{"mixed ends", first + "data: " + onlyUse + "\r\n\n" + end, first + end},
		{"an event with a name and an id", first + "event: x\nid: 7\ndata: " + onlyUse + "\n\n" + end, first + end},
		{"two lines of data", first + "data: " + strings.Replace(onlyUse, `"choices"`, "\ndata: \"choices\"", 1) + "\n\n" + end, first + end},
		{"usage before choices", first + `data: {"usage":{},"choices":[ ]}` + "\n\n" + end, first + end},
		{"at the end, without an empty line", first + "data: " + onlyUse + "\n", first},
		{"at the end, without any line end", first + "data: " + onlyUse, first},
		{"empty lines around", first + "\n\n\ndata: " + onlyUse + "\n\n\n" + end, first + "\n\n\n\n" + end},
		{"a comment before", first + ": keep-alive\n\n: x\ndata: " + onlyUse + "\n\n" + end, first + ": keep-alive\n\n: x\n" + end},
		{"a comment with CRLF before", first + ": x\r\ndata: " + onlyUse + "\r\n\r\n" + end, first + ": x\r\n" + end},
		{"twice", first + strings.Repeat("data: "+onlyUse+"\n\n", 2) + end, first + end},
		{"many frames", strings.Repeat(first, 3) + "data: " + spoken2 + "\n\ndata: " + onlyUse + "\n\n" + end, strings.Repeat(first, 3) + "data: " + spoken2 + "\n\n" + end},
		{"no stream at all", `{"choices":[],"usage":{}}`, `{"choices":[],"usage":{}}`},
	} {
		if got := filtered(c.in); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
		everyPiece(t, c.in, c.want)
	}
	for name, in := range map[string]string{
		"usage with choices":        first + "data: " + spoken2 + "\n\n" + end,
		"null":                      first + `data: {"choices":[],"usage":null}` + "\n\n",
		"no usage":                  first + `data: {"choices":[],"prompt_filter_results":[]}` + "\n\n",
		"no choices":                first + `data: {"usage":{"prompt_tokens":1}}` + "\n\n",
		"choices of another kind":   first + `data: {"choices":{},"usage":{}}` + "\n\n",
		"an error":                  first + `data: {"choices":[],"usage":{},"error":{"message":"x"}}` + "\n\n",
		"nested":                    first + `data: {"x":` + onlyUse + `}` + "\n\n",
		"two documents":             first + "data: " + onlyUse + "\ndata: " + onlyUse + "\n\n",
		"half a document":           first + "data: " + onlyUse[:len(onlyUse)-1] + "\n\n" + end,
		"half a document, and over": first + "data: " + onlyUse[:len(onlyUse)-1],
		"broken":                    first + `data: {"choices":[],"usage":{},}` + "\n\n",
		"another field":             first + "date: " + onlyUse + "\n\n",
		"before anything was said":  "data: " + onlyUse + "\n\n" + end,
		"a line end within a word":  first + "data: {\"choices\":[],\"us\ndata: age\":{}}\n\n",
		"nothing":                   "",
		"only comments":             ": a\n\n: b\r\n\r\n",
	} {
		if got := filtered(in); got != in {
			t.Errorf("%s:\n got %q\nwant %q", name, got, in)
		}
		everyPiece(t, in, in)
	}
}

// everyPiece checks that the way in which a stream is cut changes nothing.
func everyPiece(t *testing.T, in, want string) {
	t.Helper()
	for i := range len(in) {
		if got := filtered(in[:i], in[i:]); got != want {
			t.Fatalf("cut at %d of %q:\n got %q\nwant %q", i, in, got, want)
		}
	}
	if got := filtered(strings.Split(in, "")...); got != want {
		t.Fatalf("single bytes of %q:\n got %q\nwant %q", in, got, want)
	}
}

var frameEnd = regexp.MustCompile(`(\r\n|\n|\r)(\r\n|\n|\r)`)

// withoutUsage is the dumb model: the frames of a stream whose every frame is one line of data, each
// decoded whole.
func withoutUsage(stream string) string {
	var out strings.Builder
	spoke := false
	for stream != "" {
		frame := stream
		if at := frameEnd.FindStringIndex(stream); at != nil {
			frame = stream[:at[1]]
		}
		stream = stream[len(frame):]
		var v struct {
			Choices *[]any
			Usage   map[string]any
		}
		_, data, _ := strings.Cut(frame, "data:")
		err := json.Unmarshal([]byte(data), &v)
		if err == nil && v.Choices != nil && len(*v.Choices) == 0 && v.Usage != nil && spoke {
			continue
		}
		spoke = spoke || err == nil && v.Choices != nil && len(*v.Choices) > 0
		out.WriteString(frame)
	}
	return out.String()
}

// TestUsageFilterAgreesWithTheReference, and gives at the end of each frame all that there is to give:
// no event is later than it came.
func TestUsageFilterAgreesWithTheReference(t *testing.T) {
	rnd := rand.New(rand.NewSource(3))
	data := []string{spoken1, spoken2, onlyUse, onlyUse, "[DONE]", `{"choices":[],"usage":null}`, `{}`, `x`, `{"choices":[]}`, "", `{"usage":{"a":[{}]},"choices":[]}`, `"\u0000`}
	ends := []string{"\n\n", "\r\n\r\n", "\r\r"}
	for seed := range 2000 {
		end := ends[seed%len(ends)]
		f := NewUsageFilter()
		in, got := "", ""
		for range rnd.Intn(12) {
			frame := "data: " + data[rnd.Intn(len(data))] + end
			in += frame
			for frame != "" {
				n := 1 + rnd.Intn(len(frame))
				got += string(f.Write([]byte(frame[:n])))
				frame = frame[n:]
			}
			if want := withoutUsage(in); got != want {
				t.Fatalf("%q:\n got %q\nwant %q", in, got, want)
			}
		}
	}
}

// TestUsageFilterHoldsLittle: nothing of the first frame, then nothing beyond what may be the frame that
// is looked for, and never more than maxFrame.
func TestUsageFilterHoldsLittle(t *testing.T) {
	f := NewUsageFilter()
	for i, c := range []byte("data: " + spoken1 + "\n\n: a comment") {
		if got := f.Write([]byte{c}); len(got) != 1 || got[0] != c {
			t.Fatalf("byte %d is held: %q", i, got)
		}
	}
	f.Write([]byte("\n\n"))
	if got := f.Write([]byte(`data: {"id":"c","choices":[`)); len(got) != 0 {
		t.Fatalf("%q goes on", got)
	}
	if got := string(f.Write([]byte(`{`))); got != `data: {"id":"c","choices":[{` {
		t.Fatalf("at the first choice %q goes on", got)
	}
	for _, c := range []byte(strings.Repeat("x", 100)) {
		if got := f.Write([]byte{c}); len(got) != 1 {
			t.Fatal("the rest of the frame is held")
		}
	}
	f.Write([]byte("\n\n"))
	in := `data: {"choices":[],"usage":{"x":"`
	f.Write([]byte(in))
	out := 0
	for range 3 * maxFrame {
		in += "y"
		out += len(f.Write([]byte("y")))
		if len(in)-out > maxFrame {
			t.Fatalf("%d bytes are held", len(in)-out)
		}
	}
	if got := out + len(f.Write([]byte(`"}}`+"\n\n"))); got != len(in)+5 || f.Removed() > 0 {
		t.Fatalf("%d bytes of %d went on, %d frames did not", got, len(in)+5, f.Removed())
	}
}

func FuzzUsageFilter(f *testing.F) {
	first := "data: " + spoken1 + "\n\n"
	for _, end := range []string{"\n", "\r\n", "\r"} {
		f.Add(strings.ReplaceAll(first+"data: "+onlyUse+"\n\ndata: [DONE]\n\n", "\n", end), uint8(7))
		f.Add(strings.ReplaceAll(first+": c\nevent: e\ndata: "+strings.Replace(onlyUse, ",", ",\ndata:", 2)+"\n\n", "\n", end), uint8(3))
	}
	f.Fuzz(func(t *testing.T, in string, piece uint8) {
		want := filtered(in)
		var cut []string
		for rest := in; rest != ""; {
			n := min(len(rest), int(piece)+1)
			cut = append(cut, rest[:n])
			rest = rest[n:]
		}
		if got := filtered(cut...); got != want {
			t.Fatalf("pieces of %d:\n got %q\nwant %q", int(piece)+1, got, want)
		}
		// What goes on stands in the stream in this order, and what doesn't speaks of choices and usage.
		if len(want) < len(in) {
			if !strings.Contains(in, "[") || !strings.Contains(in, "data:") {
				t.Fatalf("%q loses something", in)
			}
		}
		i := 0
		for j := range len(in) {
			if i < len(want) && want[i] == in[j] {
				i++
			}
		}
		if i < len(want) {
			t.Fatalf("%q became %q", in, want)
		}
	})
}

func BenchmarkUsageFilter(b *testing.B) {
	frame := []byte("data: " + spoken1 + "\n\n")
	b.SetBytes(int64(len(frame)))
	f := NewUsageFilter()
	for b.Loop() {
		f.Write(frame)
	}
}
