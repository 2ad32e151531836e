package dialect

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

func known(t *testing.T, path string) Dialect {
	t.Helper()
	d, ok := Recognise("POST", path)
	if !ok {
		t.Fatal(path)
	}
	return d
}

func TestImageFacts(t *testing.T) {
	for _, c := range []struct {
		path, kind, body string
		want             Facts
		texts            []string
	}{
		{"/v1/images/generations", "application/json", `{"model":"gpt-image-1","prompt":"a cat","n":4,"size":"1024x1024","quality":"low"}`,
			Facts{Model: "gpt-image-1", Images: 4, N: 4, MaxOutput: 408, HasMaxOutput: true}, []string{"a cat"}},
		{"/v1/images/generations", "application/json", `{"model":"gpt-image-1","prompt":"a cat","stream":true,"partial_images":2,"quality":"medium"}`,
			Facts{Model: "gpt-image-1", Images: 1, N: 1, MaxOutput: 1784, HasMaxOutput: true, Stream: true}, []string{"a cat"}},
		{"/v1/images/generations", "application/json", `{"model":"m","prompt":"a","n":null,"quality":"auto"}`,
			Facts{Model: "m", Images: 1, N: 1, MaxOutput: 6240, HasMaxOutput: true}, []string{"a"}},
		{"/v1/images/generations", "application/json", `{"model":"dall-e-3","prompt":"a","quality":"hd","n":2.0}`,
			Facts{Model: "dall-e-3", Images: 2, N: 2, NoOutput: true}, []string{"a"}},
		{"/v1/images/edits", "application/json", `{"model":"m","prompt":"a","images":[{"image_url":"http://x"},{"file_id":"f"}],"mask":"data:image/png;base64,aaaa"}`,
			Facts{Model: "m", Images: 1, N: 1, MaxOutput: 6240, HasMaxOutput: true},
			[]string{"a", "image: http://x", "/image", "/image", "image: data:image/png;base64,aaaa", "/image"}},
		{"/v1/images/edits", formType, aForm("XyZ", "image[]@a.png", "\x89PNG", "image[]@b.png", "\x89PNG", "mask@m.png", "x", "model", "gpt-image-1", "prompt", "a", "n", "3", "quality", "low"),
			Facts{Model: "gpt-image-1", ModelPlain: true, Images: 3, N: 3, MaxOutput: 408, HasMaxOutput: true}, []string{"/image", "/image", "/image", "a"}},
		{"/v1/images/variations", formType, aForm("XyZ", "image@a.png", "\x89PNG", "model", "dall-e-2"),
			Facts{Model: "dall-e-2", ModelPlain: true, Images: 1, N: 1, NoOutput: true}, []string{"/image"}},
	} {
		d, h := known(t, c.path), RequestHead{ContentType: c.kind}
		run := func(w func(func([]byte))) scanned { return scanAs(d, h, w, 256) }
		got := run(func(w func([]byte)) { w([]byte(c.body)) })
		c.want.NoChat, c.want.ModelSpan = true, got.Facts.ModelSpan
		if got.Fault != nil || got.Facts != c.want || !slices.Equal(got.Texts, c.texts) {
			t.Errorf("%s:\n got %+v\nwant %+v %q", c.body, got, c.want, c.texts)
		}
		sameForEverySplit(t, c.body, got, run)
	}
	for _, c := range []struct{ kind, body, param string }{
		{"application/json", `{"n":0}`, "n"}, {"application/json", `{"n":1001}`, "n"}, {"application/json", `{"n":"2"}`, "n"},
		{"application/json", `{"partial_images":-1}`, "partial_images"}, {"application/json", `{"prompt":"a","prompt":"b"}`, "prompt"},
		{formType, aForm("XyZ", "n", "0"), "n"}, {formType, aForm("XyZ", "n", "1e3"), "n"}, {formType, aForm("XyZ", "n", ""), "n"},
		{formType, aForm("XyZ", "n", "99999999999999999999"), "n"},
	} {
		got := scanAs(known(t, "/v1/images/edits"), RequestHead{ContentType: c.kind}, func(w func([]byte)) { w([]byte(c.body)) }, 256)
		if got.Fault == nil || got.Fault.Status != 400 || got.Fault.Param != c.param {
			t.Errorf("%s: %+v", c.body, got.Fault)
		}
	}
}

func TestSpeechFacts(t *testing.T) {
	d := known(t, "/v1/audio/speech")
	run := func(w func(func([]byte))) scanned { return scanAs(d, RequestHead{}, w, 256) }
	for _, c := range []struct {
		body  string
		want  Facts
		texts []string
	}{
		{`{"model":"gpt-4o-mini-tts","input":"hello","voice":"alloy","instructions":"soft","stream_format":"sse"}`,
			Facts{Model: "gpt-4o-mini-tts", N: 1, Stream: true, MaxOutput: 19, HasMaxOutput: true}, []string{"hello", "soft"}},
		{`{"model":"tts-1-hd","input":"hello"}`, Facts{Model: "tts-1-hd", N: 1, NoOutput: true}, []string{"hello"}},
	} {
		got := run(func(w func([]byte)) { w([]byte(c.body)) })
		c.want.NoChat, c.want.ModelSpan = true, got.Facts.ModelSpan
		if got.Fault != nil || got.Facts != c.want || !slices.Equal(got.Texts, c.texts) {
			t.Errorf("%s:\n got %+v\nwant %+v %q", c.body, got, c.want, c.texts)
		}
		sameForEverySplit(t, c.body, got, run)
	}
}

func TestMediaMeters(t *testing.T) {
	const tokens = `"usage":{"total_tokens":1160,"input_tokens":104,"output_tokens":1056,"input_tokens_details":{"text_tokens":10,"image_tokens":94}}`
	heard := func(millis bucket.Millis, produced bool, texts ...string) metered {
		return metered{Usage: Usage{AudioMillis: millis}, Trust: WholeUsage, Produced: produced, Finished: true, Texts: texts}
	}
	for _, c := range []struct {
		name, path string
		head       ResponseHead
		body       string
		want       metered
	}{
		{"gpt-image", "/v1/images/generations", okJSON, `{"created":1,"data":[{"b64_json":"aaaa"},{"b64_json":"bbbb"}],` + tokens + `}`,
			metered{Usage: Usage{Input: 104, Output: 1056, Images: 2}, Trust: WholeUsage, Produced: true, Finished: true}},
		{"dall-e", "/v1/images/generations", okJSON, `{"created":1,"data":[{"url":"http://x","revised_prompt":"p"}]}`,
			metered{Usage: Usage{Images: 1}, Produced: true, Finished: true}},
		{"a stream of pictures", "/v1/images/generations", okSSE, event("image_generation.partial_image", `,"b64_json":"aaaa"`) +
			event("image_generation.completed", `,"b64_json":"aaaa",`+tokens),
			metered{Usage: used(104, 0, 1056), Trust: WholeUsage, Produced: true, Finished: true}},
		{"a stream that was cut", "/v1/images/edits", okSSE, event("image_edit.partial_image", `,"b64_json":"aaaa"`), metered{Produced: true}},
		{"a picture that was cut", "/v1/images/generations", okJSON, `{"data":[{"b64_json":"aaaa`, metered{Produced: true}},
		{"no picture", "/v1/images/generations", okJSON, `{"data":[]}`, metered{Finished: true}},
		{"a picture refused", "/v1/images/generations", ResponseHead{Status: 400}, `{"error":{"code":"moderation_blocked"}}`, metered{Failed: true, Finished: true}},
		{"an event of failure", "/v1/images/generations", okSSE, event("error", `,"error":{"message":"x"}`), metered{Failed: true}},

		{"by tokens", "/v1/audio/transcriptions", okJSON, `{"text":"hello","usage":{"type":"tokens","input_tokens":14,"input_token_details":{"text_tokens":10,"audio_tokens":4},"output_tokens":3,"total_tokens":17}}`,
			metered{Usage: Usage{Input: 14, AudioInput: 4, Output: 3}, Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"hello"}}},
		{"by seconds", "/v1/audio/transcriptions", okJSON, `{"text":"hello","usage":{"type":"duration","seconds":9}}`, heard(9000, true, "hello")},
		{"by parts of a second", "/v1/audio/transcriptions", okJSON, `{"text":"","usage":{"type":"duration","seconds":9.0001}}`, heard(9001, false)},
		{"the larger", "/v1/audio/translations", okJSON, `{"task":"transcribe","duration":8.47,"text":"hello","segments":[{"text":"hello"}],"usage":{"type":"duration","seconds":9}}`, heard(9000, true, "hello")},
		{"in a string", "/v1/audio/transcriptions", okJSON, `{"duration":"8.470000267","text":"hello"}`, heard(8471, true, "hello")},
		{"Mistral's", "/v1/audio/transcriptions", okJSON, `{"text":"a","usage":{"prompt_audio_seconds":203,"prompt_tokens":4,"total_tokens":3264,"completion_tokens":635}}`,
			metered{Usage: Usage{Input: 2629, AudioInput: 2625, Output: 635, AudioMillis: 203000}, Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"a"}}},
		{"nothing said", "/v1/audio/transcriptions", okJSON, `{"text":"hello","usage":null}`, metered{Produced: true, Finished: true, Texts: []string{"hello"}}},
		{"absurd seconds", "/v1/audio/transcriptions", okJSON, `{"text":"a","usage":{"type":"duration","seconds":-9}}`, metered{Produced: true, Finished: true, Texts: []string{"a"}}},
		{"a stream of text", "/v1/audio/transcriptions", okSSE, event("transcript.text.delta", `,"delta":"hel"`) + event("transcript.text.delta", `,"delta":"lo"`) +
			event("transcript.text.done", `,"text":"hello","usage":{"type":"tokens","input_tokens":14,"output_tokens":3,"total_tokens":17}`),
			metered{Usage: used(14, 0, 3), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"hello"}}},
		{"plain text", "/v1/audio/transcriptions", ResponseHead{Status: 200, ContentType: "text/plain"}, "Hello there", metered{Opaque: true}},

		{"C71 sound", "/v1/audio/speech", ResponseHead{Status: 200, ContentType: "audio/mpeg"}, "ID3\x03sound", metered{Opaque: true}},
		{"events of sound", "/v1/audio/speech", okSSE, event("speech.audio.delta", `,"audio":"aaaa"`) +
			event("speech.audio.done", `,"usage":{"input_tokens":14,"output_tokens":101,"total_tokens":115}`),
			metered{Usage: used(14, 0, 101), Trust: WholeUsage, Produced: true, Finished: true}},
		{"no sound", "/v1/audio/speech", ResponseHead{Status: 400}, `{"error":{}}`, metered{Failed: true, Finished: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := known(t, c.path)
			got := meterAs(d, c.head, func(w func([]byte)) { w([]byte(c.body)) })
			if !reflect.DeepEqual(got, c.want) {
				t.Fatalf("\n got %+v\nwant %+v", got, c.want)
			}
			sameForEverySplit(t, c.body, c.want, func(w func(func([]byte))) metered { return meterAs(d, c.head, w) })
		})
	}
}

func TestSecondsAreReadExactly(t *testing.T) {
	for s, want := range map[string]int64{
		"9": 9000, "0": 0, "9.5": 9500, "9.0001": 9001, "9.9999": 10000, `"8.47"`: 8470, "0.001": 1, "1099511627": 1099511627000, "9.": 9000,
		"-1": -1, "1e3": -1, "": -1, ".5": -1, "1.2.3": -1, "null": -1, "1099511628": -1, "99999999999999999999999": -1, `"x"`: -1,
	} {
		got, ok := parseSeconds([]byte(s))
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%s: %d, %v", s, got, ok)
		}
	}
}

// Every fixture of every API of OpenAI's is read by every one of its meters: none may trap or differ by
// how the bytes are cut.
func FuzzOpenAIMeters(f *testing.F) {
	for _, body := range []string{
		respBegin + textDelta("a") + respEnd("response.completed", "completed", respUsage(5, 1, 2, 1)),
		`{"data":[{"b64_json":"aaaa"}],"usage":{"input_tokens":1,"output_tokens":2}}`,
		`{"text":"a","duration":"1.5","usage":{"type":"duration","seconds":9.01}}`,
		event("transcript.text.done", `,"text":"hello","usage":{"type":"tokens","input_tokens":14}`),
		`{"output":[{"content":[{"text":"a"}],"name":"f","arguments":"{}"}],"error":null}`,
	} {
		f.Add([]byte(body), uint16(9), uint8(1))
	}
	paths := []string{"responses", "responses/input_tokens", "completions", "embeddings", "images/generations", "audio/transcriptions", "audio/speech"}
	f.Fuzz(func(t *testing.T, body []byte, cut uint16, which uint8) {
		d := known(t, "/v1/"+paths[int(which)%len(paths)])
		n := int(cut) % (len(body) + 1)
		whole := meterAs(d, okSSE, func(w func([]byte)) { w(body) })
		split := meterAs(d, okSSE, func(w func([]byte)) { w(slices.Clone(body[:n])); w(slices.Clone(body[n:])) })
		if !reflect.DeepEqual(whole, split) {
			t.Fatalf("cut at %d:\n%+v\n%+v", n, whole, split)
		}
		if u := whole.Usage; u.Input < 0 || u.Output < 0 || u.CachedInput > u.Input || u.Reasoning > u.Output || u.Images < 0 || u.AudioMillis < 0 {
			t.Fatalf("%+v", u)
		}
	})
}

func FuzzOpenAIScanners(f *testing.F) {
	for _, body := range []string{responsesBody, shuffled(responsesBody, 3), `{"prompt":[[1,2],[3]],"n":2,"best_of":3,"max_tokens":0}`,
		`{"input":[{"text":"a"},{"image":"b"},[1]],"model":"m"}`, `{"input":"hello","model":"m"}`, `{"n":4,"quality":"low","images":[{"image_url":"x"}]}`} {
		f.Add([]byte(body), uint16(9), uint8(0))
	}
	paths := []string{"responses", "completions", "embeddings", "images/generations", "audio/speech"}
	f.Fuzz(func(t *testing.T, body []byte, cut uint16, which uint8) {
		d := known(t, "/v1/"+paths[int(which)%len(paths)])
		n := int(cut) % (len(body) + 1)
		whole := scanAs(d, RequestHead{}, func(w func([]byte)) { w(body) }, 256)
		split := scanAs(d, RequestHead{}, func(w func([]byte)) { w(slices.Clone(body[:n])); w(slices.Clone(body[n:])) }, 256)
		if !reflect.DeepEqual(whole, split) {
			t.Fatalf("cut at %d:\n%+v\n%+v", n, whole, split)
		}
		if f := whole.Facts; whole.Fault == nil && (f.N < 1 || f.TokenIDs < 0 || f.Inputs < 0 || f.Images < 0 || f.HasMaxOutput && f.MaxOutput < 1) {
			t.Fatalf("%+v", f)
		}
		if int(which)%len(paths) != 0 || whole.Fault != nil {
			return
		}
		facts, all, ok := referenceResponses(body)
		heard := slices.Sorted(slices.Values(whole.Texts))
		if got := whole.Facts; !ok || got.Model != facts.Model || got.TokenIDs != facts.TokenIDs || got.Background != facts.Background || !slices.Equal(heard, all) {
			t.Fatalf("\n got %+v %q\nwant %+v %q", got, heard, facts, all)
		}
	})
}

func TestMediaAreRefusedInOpenAIsShape(t *testing.T) {
	for _, path := range []string{"/v1/images/generations", "/v1/audio/speech", "/v1/audio/transcriptions", "/v1/embeddings", "/v1/completions", "/v1/responses"} {
		_, body := known(t, path).Refusal(Refusal{Reason: OverBudget, Message: "x"})
		if !strings.Contains(string(body), `"type":"insufficient_quota"`) {
			t.Errorf("%s: %s", path, body)
		}
	}
}
