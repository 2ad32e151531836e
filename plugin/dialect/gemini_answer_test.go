package dialect

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

// geminiChunk is one piece of an answer; figures are prompt, candidates, thoughts, total.
func geminiChunk(text, finish string, figures ...int) string {
	var fields []string
	if text != "" || finish != "" {
		c := `{"content":{"parts":[{"text":"` + text + `"}],"role":"model"},"index":0`
		if finish != "" {
			c += `,"finishReason":"` + finish + `"`
		}
		fields = append(fields, `"candidates":[`+c+`}]`)
	}
	if len(figures) > 0 {
		var u []string
		for i, name := range []string{"promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount"} {
			if i < len(figures) && figures[i] != 0 {
				u = append(u, `"`+name+`":`+strconv.Itoa(figures[i]))
			}
		}
		fields = append(fields, `"usageMetadata":{`+strings.Join(u, ",")+`}`)
	}
	return "{" + strings.Join(fields, ",") + `,"modelVersion":"gemini-2.5-flash"}`
}

func TestGeminiMeter(t *testing.T) {
	whole := func(u Usage, texts ...string) metered {
		return metered{Usage: u, Trust: WholeUsage, Produced: len(texts) > 0, Finished: true, Texts: texts}
	}
	usageOnly := func(u string) string { return `{"usageMetadata":` + u + `}` }
	for _, c := range []struct {
		name string
		head ResponseHead
		body string
		want metered
	}{
		{"C37 thoughts apart", okJSON, geminiChunk("a", "STOP", 40, 12, 300, 352), whole(Usage{Input: 40, Output: 312, Reasoning: 300}, "a")},
		{"C37 thoughts inside", okJSON, geminiChunk("a", "STOP", 40, 312, 300, 352), whole(Usage{Input: 40, Output: 312, Reasoning: 300}, "a")},
		{"thoughts without a total", okJSON, geminiChunk("a", "STOP", 40, 12, 300), whole(Usage{Input: 40, Output: 312, Reasoning: 300}, "a")},
		{"thoughts alone", okJSON, geminiChunk("", "MAX_TOKENS", 40, 0, 300, 340), metered{Usage: Usage{Input: 40, Output: 300, Reasoning: 300}, Trust: WholeUsage, Finished: true}},
		{"C38 tool use", okJSON, usageOnly(`{"promptTokenCount":30,"toolUsePromptTokenCount":90,"candidatesTokenCount":5,"totalTokenCount":125}`),
			whole(Usage{Input: 120, Output: 5})},
		{"tool use inside", okJSON, usageOnly(`{"promptTokenCount":120,"toolUsePromptTokenCount":90,"candidatesTokenCount":5,"totalTokenCount":125}`),
			whole(Usage{Input: 120, Output: 5})},
		{"tool use and thoughts", okJSON, usageOnly(`{"promptTokenCount":30,"toolUsePromptTokenCount":90,"candidatesTokenCount":5,"thoughtsTokenCount":7,"totalTokenCount":132}`),
			whole(Usage{Input: 120, Output: 12, Reasoning: 7})},
		{"C40 array", okJSON, "[" + geminiChunk("a", "", 5, 2, 0, 7) + "\n,\r\n" + geminiChunk("b", "STOP", 5, 9, 0, 14) + "\n]", whole(used(5, 0, 9), "ab")},
		{"C40 array cut", okJSON, "[" + geminiChunk("a", "", 5, 2, 0, 7) + ",\n" + geminiChunk("b", "")[:40],
			metered{Usage: used(5, 0, 2), Trust: WholeUsage, Produced: true, Texts: []string{"a"}}},
		{"C40 one object", okJSON, geminiChunk("ab", "STOP", 5, 9, 0, 14), whole(used(5, 0, 9), "ab")},
		{"C41 blocked", okJSON, `{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":20,"totalTokenCount":20}}`, whole(used(20, 0, 0))},
		{"C41 blocked in a stream", okSSE, frames(`{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":20,"totalTokenCount":20}}`), whole(used(20, 0, 0))},
		{"cached", okJSON, usageOnly(`{"promptTokenCount":1200,"cachedContentTokenCount":1000,"candidatesTokenCount":50,"totalTokenCount":1250,"cacheTokensDetails":[{"modality":"TEXT","tokenCount":1000}]}`),
			whole(used(1200, 1000, 50))},
		{"sounds", okJSON, usageOnly(`{"promptTokenCount":300,"candidatesTokenCount":80,"totalTokenCount":380,"promptTokensDetails":[{"modality":"TEXT","tokenCount":20},{"modality":"AUDIO","tokenCount":280}],"candidatesTokensDetails":[{"modality":"AUDIO","tokenCount":80}]}`),
			whole(Usage{Input: 300, AudioInput: 280, Output: 80, AudioOutput: 80})},

		{"stream", okSSE, frames(geminiChunk("a", "", 5, 0, 0, 5), geminiChunk("b", "", 5, 4, 0, 9), geminiChunk("c", "STOP", 5, 9, 0, 14)), whole(used(5, 0, 9), "abc")},
		{"stream, cut", okSSE, frames(geminiChunk("a", "", 5, 1, 0, 6), geminiChunk("b", "")),
			metered{Usage: used(5, 0, 1), Trust: InputUsage, Produced: true, Texts: []string{"ab"}}},
		{"stream, no output told", okSSE, frames(geminiChunk("a", "", 5, 0, 0, 5)),
			metered{Usage: used(5, 0, 0), Trust: InputUsage, Produced: true, Texts: []string{"a"}}},
		{"stream without usage", okSSE, frames(geminiChunk("a", ""), geminiChunk("b", "STOP")), metered{Produced: true, Finished: true, Texts: []string{"ab"}}},
		{"zeros", okSSE, frames(geminiChunk("a", "STOP", 0, 0, 0, 0)), metered{Produced: true, Finished: true, Texts: []string{"a"}}},
		{"null", okSSE, frames(`{"usageMetadata":null,"candidates":null}`), metered{}},
		{"a picture is no text", okJSON, `{"candidates":[{"content":{"parts":[{"text":"see"},{"inlineData":{"mimeType":"image/png","data":"` + strings.Repeat("iVBORw0K", 20) + `"}}]},"finishReason":"STOP"}]}`,
			metered{Produced: true, Finished: true, Texts: []string{"see"}}},
		{"a picture alone", okSSE, frames(`{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0K"}}]}}]}`), metered{Produced: true}},
		{"calls and code", okJSON, `{"candidates":[{"index":0,"content":{"parts":[{"functionCall":{"name":"f","args":{"a": 1}}},{"executableCode":{"language":"PYTHON","code":"1+1"}},{"codeExecutionResult":{"output":"2"}}]}},{"index":1,"content":{"parts":[{"text":"x","thought":true}]},"finishReason":"STOP"}]}`,
			metered{Produced: true, Finished: true, Texts: []string{"f", `{"a":1}`, "1+1", "x"}}},
		{"searches", okJSON, `{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["x","y"],"groundingChunks":[{}]}}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2}}`,
			whole(Usage{Input: 5, Output: 2, Searches: 2}, "a")},
		{"searches, told again", okSSE, frames(`{"candidates":[{"content":{"parts":[{"text":"a"}]},"groundingMetadata":{"webSearchQueries":["x"]}}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1}}`,
			`{"candidates":[{"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["x","y"]}}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2}}`),
			whole(Usage{Input: 5, Output: 2, Searches: 2}, "a")},
		{"Code Assist", okSSE, frames(`{"response":` + geminiChunk("a", "STOP", 5, 9, 0, 14) + `,"traceId":"1"}`), whole(used(5, 0, 9), "a")},

		{"error", ResponseHead{Status: 429}, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}`, metered{Failed: true, Finished: true}},
		{"error in an array", ResponseHead{Status: 400}, `[{"error":{"code":400}}]`, metered{Failed: true, Finished: true}},
		{"error in a 200", okJSON, "[{\"error\":{\"code\":503}}\n]", metered{Failed: true, Finished: true}},
		{"error as an event", okSSE, frames(`{"error":{"code":503}}`), metered{Failed: true}},
		{"error after output", okSSE, frames(geminiChunk("a", "", 5, 1, 0, 6), `{"error":{"code":503}}`),
			metered{Usage: used(5, 0, 1), Trust: WholeUsage, Produced: true, Texts: []string{"a"}}},
		{"error with usage", ResponseHead{Status: 500}, `{"error":{},"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2}}`,
			metered{Usage: used(5, 0, 2), Trust: WholeUsage, Failed: true, Finished: true}},

		{"absurd: negative", okJSON, usageOnly(`{"promptTokenCount":-5,"candidatesTokenCount":2}`), metered{Finished: true}},
		{"absurd: above 2^40", okJSON, usageOnly(`{"promptTokenCount":1099511627777}`), metered{Finished: true}},
		{"absurd: fraction", okJSON, usageOnly(`{"promptTokenCount":1.5}`), metered{Finished: true}},
		{"absurd: a part", okJSON, usageOnly(`{"promptTokenCount":5,"candidatesTokenCount":2,"promptTokensDetails":[{"modality":"AUDIO","tokenCount":-1}]}`), metered{Finished: true}},
		{"absurd: words", okSSE, frames(usageOnly(`"none"`), usageOnly(`[5]`), usageOnly(`{"promptTokenCount":"5"}`), usageOnly(`{}`)), metered{}},
		{"details of another kind", okJSON, usageOnly(`{"promptTokenCount":5,"candidatesTokenCount":2,"promptTokensDetails":7,"candidatesTokensDetails":["AUDIO"]}`), whole(used(5, 0, 2))},
		{"more heard than read", okJSON, usageOnly(`{"promptTokenCount":5,"candidatesTokenCount":2,"promptTokensDetails":[{"modality":"AUDIO","tokenCount":9}]}`), whole(Usage{Input: 5, AudioInput: 5, Output: 2})},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := func(w func(func([]byte))) metered { return meterAs(geminiCall(t, geminiPath), c.head, w) }
			if got := run(all(c.body)); !reflect.DeepEqual(got, c.want) {
				t.Fatalf("\n got %+v\nwant %+v", got, c.want)
			}
			sameForEverySplit(t, c.body, c.want, run)
		})
	}
}

func TestGeminiEmbedMeter(t *testing.T) {
	for _, c := range []struct {
		name string
		head ResponseHead
		body string
		want metered
	}{
		{"no usage", okJSON, `{"embedding":{"values":[0.1,-2e-3]}}`, metered{Finished: true}},
		{"a batch", okJSON, `{"embeddings":[{"values":[0.1]},{"values":[0.2]}],"usageMetadata":{"promptTokenCount":12}}`, metered{Usage: used(12, 0, 0), Trust: WholeUsage, Finished: true}},
		{"predict", okJSON, `{"predictions":[{"embeddings":{"values":[0.1],"statistics":{"truncated":false,"token_count":6}}},{"embeddings":{"statistics":{"token_count":5}}}],"metadata":{"billableCharacterCount":40}}`,
			metered{Usage: used(11, 0, 0), Trust: WholeUsage, Finished: true}},
		{"predict, absurd", okJSON, `{"predictions":[{"embeddings":{"statistics":{"token_count":-6}}}]}`, metered{Finished: true}},
		{"error", ResponseHead{Status: 400}, `{"error":{"code":400}}`, metered{Failed: true, Finished: true}},
	} {
		run := func(w func(func([]byte))) metered {
			return meterAs(geminiCall(t, "/v1/models/text-embedding-005:predict"), c.head, w)
		}
		if got := run(all(c.body)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
		sameForEverySplit(t, c.body, c.want, run)
	}
	if got := meterAs(geminiCall(t, "/v1/models/m:countTokens"), okJSON, all(`{"totalTokens":31}`)); got.Trust != WholeUsage || got.Usage != (Usage{}) || got.Failed {
		t.Errorf("countTokens: %+v", got)
	}
}

// referenceGeminiUsage is the dumb model of an array of pieces without tools and thoughts.
func referenceGeminiUsage(body []byte) (u Usage) {
	var all []struct {
		UsageMetadata struct{ PromptTokenCount, CandidatesTokenCount bucket.Tokens }
	}
	json.Unmarshal(body, &all)
	for _, a := range all {
		u.Input, u.Output = max(u.Input, a.UsageMetadata.PromptTokenCount), max(u.Output, a.UsageMetadata.CandidatesTokenCount)
	}
	return u
}

func TestGeminiMeterAgreesWithTheReference(t *testing.T) {
	for seed := range 100 {
		var pieces []string
		for i := range 4 {
			p, o := 1+(seed*7+i*3)%11, 1+(seed*5+i*i)%13
			pieces = append(pieces, geminiChunk("", "", p, o, 0, p+o))
		}
		body := strings.ReplaceAll("["+strings.Join(pieces, ",")+"]", "{,", "{")
		if got := meterAs(geminiCall(t, geminiPath), okJSON, all(body)); got.Usage != referenceGeminiUsage([]byte(body)) {
			t.Fatalf("%s: %+v", body, got)
		}
	}
}

func FuzzGeminiMeter(f *testing.F) {
	f.Add([]byte(frames(geminiChunk("a", "STOP", 5, 9, 3, 17))), uint16(7), false)
	f.Add([]byte("["+geminiChunk("a", "", 5, 2)+","+geminiChunk("b", "STOP", 5, 9)+"]"), uint16(9), false)
	f.Add([]byte(`{"predictions":[{"embeddings":{"statistics":{"token_count":6}}}]}`), uint16(9), true)
	generate, embed := geminiCall(f, geminiPath), geminiCall(f, "/v1/models/text-embedding-005:predict")
	f.Fuzz(func(t *testing.T, body []byte, cut uint16, embeds bool) {
		d := generate
		if embeds {
			d = embed
		}
		n := int(cut) % (len(body) + 1)
		whole := meterAs(d, okJSON, all(string(body)))
		split := meterAs(d, okJSON, func(w func([]byte)) { w(bytes.Clone(body[:n])); w(bytes.Clone(body[n:])) })
		if !reflect.DeepEqual(whole, split) {
			t.Fatalf("cut at %d:\n%+v\n%+v", n, whole, split)
		}
		if u := whole.Usage; u.Input < 0 || u.Output < 0 || u.CachedInput > u.Input || u.Reasoning > u.Output || u.AudioInput > u.Input {
			t.Fatalf("%+v", u)
		}
	})
}
