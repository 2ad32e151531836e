package dialect

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"testing"
)

var completions, _ = Recognise("POST", "/v1/completions")

func scanCompletions(w func(func([]byte))) scanned {
	return scanAs(completions, RequestHead{}, w, 256)
}

func TestCompletionsFacts(t *testing.T) {
	for _, c := range []struct {
		body  string
		want  Facts
		texts []string
	}{
		{`{"model":"m","prompt":"one two","suffix":"end","max_tokens":16,"echo":true,"logprobs":2,"temperature":0.5}`,
			Facts{Model: "m", Inputs: 1, MaxOutput: 16, HasMaxOutput: true, N: 1}, []string{"one two", "end"}},
		{`{"prompt":["a","b"],"n":2,"best_of":5,"model":"m","stream":true,"stream_options":{"include_usage":true}}`,
			Facts{Model: "m", Inputs: 2, N: 10, Stream: true, IncludeUsage: true}, []string{"a", "b"}},
		{`{"model":"m","best_of":5,"n":2,"prompt":"a"}`, Facts{Model: "m", Inputs: 1, N: 5}, []string{"a"}},
		{`{"model":"m","prompt":[1,2,3]}`, Facts{Model: "m", Inputs: 1, TokenIDs: 3, N: 1}, nil},
		{`{"model":"m","prompt":[[1,2,3],[4,5]],"n":3}`, Facts{Model: "m", Inputs: 2, TokenIDs: 5, N: 6}, nil}, // C70
		{`{"model":"m","prompt":null,"suffix":null,"max_tokens":null,"n":null}`, Facts{Model: "m", N: 1}, nil},
		{`{"model":"m","max_tokens":0,"echo":true,"prompt":"a"}`, Facts{Model: "m", Inputs: 1, MaxOutput: 1, HasMaxOutput: true, N: 1}, []string{"a"}},
		{`{"model":"m","n":9007199254740991,"prompt":["a","b"]}`, Facts{Model: "m", Inputs: 2, N: maxWhole}, []string{"a", "b"}},
	} {
		got := scanCompletions(func(w func([]byte)) { w([]byte(c.body)) })
		c.want.NoChat, c.want.ModelSpan = true, got.Facts.ModelSpan
		if got.Fault != nil || got.Facts != c.want || !slices.Equal(got.Texts, c.texts) {
			t.Errorf("%s:\n got %+v\nwant %+v %q", c.body, got, c.want, c.texts)
		}
		sameForEverySplit(t, c.body, got, scanCompletions)
	}
	for body, param := range map[string]string{
		`{"max_tokens":-1}`: "max_tokens", `{"max_tokens":1.5}`: "max_tokens", `{"max_tokens":"5"}`: "max_tokens", `{"n":0}`: "n",
		`{"best_of":0}`: "best_of", `{"best_of":"2"}`: "best_of", `{"prompt":"a","prompt":"b"}`: "prompt",
	} {
		if got := scanCompletions(func(w func([]byte)) { w([]byte(body)) }); got.Fault == nil || got.Fault.Status != 400 || got.Fault.Param != param {
			t.Errorf("%s: %+v", body, got.Fault)
		}
	}
}

// The dumb model of prompts is that of inputs to embed.
func TestCompletionsScannerAgreesWithTheReference(t *testing.T) {
	for seed := range 100 {
		n := seed % 5
		in := []any{"a\"é", slices.Repeat([]string{"x\\y"}, n), slices.Repeat([]int{seed}, n), slices.Repeat([][]int{{1, 2}, {seed}}, n)}[seed%4]
		input, _ := json.Marshal(map[string]any{"input": in})
		body, _ := json.Marshal(map[string]any{"prompt": in, "n": 1 + seed%3, "model": "m" + strconv.Itoa(seed)})
		inputs, tokens, all := referenceEmbeddings(input)
		got := scanCompletions(func(w func([]byte)) { w(body) })
		if got.Fault != nil || got.Facts.Inputs != inputs || got.Facts.TokenIDs != tokens || !slices.Equal(got.Texts, all) ||
			got.Facts.N != max(inputs, 1)*int64(1+seed%3) {
			t.Fatalf("%s:\n got %+v\nwant %d %d %q", body, got, inputs, tokens, all)
		}
	}
}

func TestCompletionsMeter(t *testing.T) {
	for _, c := range []struct {
		name string
		head ResponseHead
		body string
		want metered
	}{
		{"JSON", okJSON, `{"object":"text_completion","choices":[{"index":0,"text":"one","logprobs":{"tokens":["one"]},"finish_reason":"stop"},{"index":1,"text":"two"}],` + usage(5, 2) + `}`,
			metered{Usage: used(5, 0, 2), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"one", "two"}}},
		{"a stream", okSSE, frames(`{"choices":[{"text":"on","index":0}],"usage":null}`, `{"choices":[{"text":"e","index":0,"finish_reason":"length"}]}`, `{"choices":[],`+usage(5, 2)+`}`, done),
			metered{Usage: used(5, 0, 2), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"one"}}},
		{"no usage", okSSE, frames(`{"choices":[{"text":"one","index":0}]}`, done), metered{Produced: true, Finished: true, Texts: []string{"one"}}},
		{"cut", okSSE, frames(`{"choices":[{"text":"one","index":0}]}`), metered{Produced: true, Texts: []string{"one"}}},
		{"Mistral's fim", okJSON, `{"choices":[{"message":{"role":"assistant","content":"x"}}],` + usage(5, 2) + `}`,
			metered{Usage: used(5, 0, 2), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"x"}}},
		{"zeros", okJSON, `{"choices":[{"text":"one"}],` + usage(0, 0) + `}`, metered{Produced: true, Finished: true, Texts: []string{"one"}}},
		{"an error", ResponseHead{Status: 500}, `{"error":{}}`, metered{Failed: true, Finished: true}},
		{"an error in-band", okSSE, frames(`{"error":{"message":"no"}}`), metered{Failed: true}},
	} {
		got := meterAs(completions, c.head, func(w func([]byte)) { w([]byte(c.body)) })
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
		sameForEverySplit(t, c.body, got, func(w func(func([]byte))) metered { return meterAs(completions, c.head, w) })
	}
}
