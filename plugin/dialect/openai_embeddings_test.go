package dialect

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

var embeddings, _ = Recognise("POST", "/v1/embeddings")

func scanEmbeddings(w func(func([]byte))) scanned { return scanAs(embeddings, RequestHead{}, w, 256) }

func TestEmbeddingFacts(t *testing.T) {
	for _, c := range []struct {
		name, body    string
		model         string
		inputs, token int64
		texts         []string
	}{
		{"a text", `{"model":"e","input":"one two","dimensions":256,"encoding_format":"base64","user":"u"}`, "e", 1, 0, []string{"one two"}},
		{"texts", `{"input":["one","two\n"],"model":"e"}`, "e", 2, 0, []string{"one", "two\n"}},
		{"C70 tokens of one text", `{"model":"e","input":[1,2,3]}`, "e", 1, 3, nil},
		{"C70 tokens of two", `{"model":"e","input":[[1,2,3],[4,5]]}`, "e", 2, 5, nil},
		{"nothing", `{"model":"e","input":[]}`, "e", 0, 0, nil},
		{"null", `{"model":"e","input":null}`, "e", 0, 0, nil},
		{"an empty text", `{"model":"e","input":""}`, "e", 1, 0, []string{""}},
		{"Jina", `{"model":"e","input":[{"text":"a"},{"image":"https://x/y.png"},"b"],"task":"t","late_chunking":true}`, "e", 3, 0,
			[]string{"a", "image: https://x/y.png", "/image", "b"}},
		{"Voyage, multimodal", `{"model":"e","inputs":[{"content":[{"type":"text","text":"a"},{"type":"image_base64","image_base64":"data:image/png;base64,aaaa"}]},{"content":[{"type":"image_url","image_url":"http://x"}]}]}`,
			"e", 2, 0, []string{"a", "image: data:image/png;base64,aaaa", "/image", "image: http://x", "/image"}},
		{"Voyage, in context", `{"model":"e","inputs":[["a","b"],["c"]]}`, "e", 2, 0, []string{"a", "b", "c"}},
		{"vLLM", `{"model":"e","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://x"}},{"type":"text","text":"a"}]},{"role":"user","content":"b"}]}`,
			"e", 1, 0, []string{"image: http://x", "/image", "a", "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := Facts{Model: c.model, N: 1, NoChat: true, NoOutput: true, Inputs: c.inputs, TokenIDs: c.token}
			got := scanEmbeddings(func(w func([]byte)) { w([]byte(c.body)) })
			if s := got.Facts.ModelSpan; c.body[s.Start:s.End] != `"`+c.model+`"` {
				t.Fatalf("the model stands at %v", s)
			}
			want.ModelSpan = got.Facts.ModelSpan
			if got.Fault != nil || got.Facts != want || !slices.Equal(got.Texts, c.texts) {
				t.Fatalf("\n got %+v\nwant %+v %q", got, want, c.texts)
			}
			sameForEverySplit(t, c.body, got, scanEmbeddings)
		})
	}
	for body, param := range map[string]string{
		`{"model":"e","input":"a","input":"b"}`: "input", `{"model":"e","model":"f"}`: "model", `{"model":["e"]}`: "model",
		`{"Input":"a"}`: "input", `{"model":"e","input":[1,2}`: "",
	} {
		got := scanEmbeddings(func(w func([]byte)) { w([]byte(body)) })
		if got.Fault == nil || got.Fault.Status != 400 || got.Fault.Param != param {
			t.Errorf("%s: %+v", body, got.Fault)
		}
	}
}

// referenceEmbeddings is the dumb model: the whole body decoded, and walked by recursion.
func referenceEmbeddings(body []byte) (inputs, tokens int64, all []string) {
	var v struct{ Input any }
	if json.Unmarshal(body, &v) != nil {
		return 0, 0, nil
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			all = append(all, v)
		case float64:
			tokens++
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(v.Input)
	switch v := v.Input.(type) {
	case string:
		inputs = 1
	case []any:
		if inputs = int64(len(v)); inputs > 0 {
			if _, ids := v[0].(float64); ids {
				inputs = 1
			}
		}
	}
	return inputs, tokens, all
}

func TestEmbeddingScannerAgreesWithTheReference(t *testing.T) {
	for seed := range 300 {
		var in any
		n := seed % 5
		switch seed % 4 {
		case 0:
			in = strings.Repeat("a\"é ", n)
		case 1:
			in = slices.Repeat([]string{"x\\y", "\u2028"}, n)
		case 2:
			in = slices.Repeat([]int{seed, 0, 1 << 20}, n)
		case 3:
			in = slices.Repeat([][]int{{1, 2}, {}, {seed}}, n)
		}
		body, err := json.Marshal(map[string]any{"input": in, "model": "m" + strconv.Itoa(seed)})
		if err != nil {
			t.Fatal(err)
		}
		inputs, tokens, all := referenceEmbeddings(body)
		got := scanEmbeddings(func(w func([]byte)) { w(body) })
		if got.Fault != nil || got.Facts.Inputs != inputs || got.Facts.TokenIDs != tokens || !slices.Equal(got.Texts, all) {
			t.Fatalf("%s:\n got %+v\nwant %d %d %q", body, got, inputs, tokens, all)
		}
	}
}

func TestEmbeddingUsage(t *testing.T) {
	vectors := `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,-2e-5]},{"embedding":"AAAA","index":1}],"model":"e"`
	whole := func(in int) metered {
		return metered{Usage: used(bucket.Tokens(in), 0, 0), Trust: WholeUsage, Finished: true}
	}
	for _, c := range []struct {
		name string
		head ResponseHead
		body string
		want metered
	}{
		{"OpenAI", okJSON, vectors + `,"usage":{"prompt_tokens":8,"total_tokens":8}}`, whole(8)},
		{"Mistral", okJSON, vectors + `,"usage":{"prompt_tokens":8,"total_tokens":8,"completion_tokens":0,"prompt_audio_seconds":null}}`, whole(8)},
		{"Voyage", okJSON, vectors + `,"usage":{"total_tokens":10}}`, whole(10)},
		{"Voyage, multimodal", okJSON, vectors + `,"usage":{"text_tokens":5,"image_pixels":2000000,"total_tokens":3576}}`, whole(3576)},
		{"Jina", okJSON, `{"model":"e","usage":{"total_tokens":6,"prompt_tokens":6},"data":[]}`, whole(6)},
		{"the larger", okJSON, `{"usage":{"total_tokens":6,"prompt_tokens":0}}`, whole(6)},
		{"no usage", okJSON, vectors + `}`, metered{Finished: true}},
		{"null", okJSON, vectors + `,"usage":null}`, metered{Finished: true}},
		{"zeros", okJSON, vectors + `,"usage":{"prompt_tokens":0,"total_tokens":0}}`, metered{Finished: true}},
		{"absurd", okJSON, vectors + `,"usage":{"prompt_tokens":-3,"total_tokens":8}}`, metered{Finished: true}},
		{"absurd words", okJSON, vectors + `,"usage":{"prompt_tokens":"8"}}`, metered{Finished: true}},
		{"cut", okJSON, vectors, metered{}},
		{"an error", ResponseHead{Status: 400}, `{"error":{"message":"no"}}`, metered{Failed: true, Finished: true}},
		{"an error in a 200", okJSON, `{"error":{"message":"no"}}`, metered{Failed: true, Finished: true}},
		{"a picture", ResponseHead{Status: 200, ContentType: "image/png"}, "\x89PNG", metered{Opaque: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := meterAs(embeddings, c.head, func(w func([]byte)) { w([]byte(c.body)) })
			if !reflect.DeepEqual(got, c.want) {
				t.Fatalf("\n got %+v\nwant %+v", got, c.want)
			}
			sameForEverySplit(t, c.body, c.want, func(w func(func([]byte))) metered { return meterAs(embeddings, c.head, w) })
		})
	}
}

func BenchmarkEmbeddingScanner(b *testing.B) {
	for name, body := range map[string]string{
		"ids":   `{"model":"e","input":[[` + strings.Repeat("15339,", 20000) + `1]]}`,
		"texts": `{"model":"e","input":[` + strings.Repeat(`"The meter reads every chunk as it passes.",`, 2500) + `""]}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				s := embeddings.NewScanner(RequestHead{}, 256, nil)
				if fault := s.Write([]byte(body)); fault != nil {
					b.Fatal(fault)
				}
			}
		})
	}
}

func BenchmarkEmbeddingMeter(b *testing.B) {
	body := []byte(`{"data":[{"embedding":[` + strings.Repeat("-0.0123456789,", 1536) + `0.1]}],"usage":{"prompt_tokens":8,"total_tokens":8}}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		m := embeddings.NewMeter(okJSON, nil)
		m.Write(body)
	}
}
