package dialect

import (
	"reflect"
	"testing"
)

// The answers of providers that speak Chat, as their references show them, with the figures that are
// theirs alone.
func TestChatUsageOfManyProviders(t *testing.T) {
	say := func(text string) []string { return []string{text} }
	whole := func(u Usage, texts ...string) metered {
		return metered{Usage: u, Trust: WholeUsage, Produced: len(texts) > 0, Finished: true, Texts: texts}
	}
	for _, c := range []struct {
		name string
		head ResponseHead
		body string
		want metered
	}{
		{"OpenAI", okJSON, `{"id":"c","object":"chat.completion","model":"gpt-5","choices":[{"index":0,"message":{"role":"assistant","content":"hi","refusal":null,"annotations":[]},"finish_reason":"stop"}],
			"usage":{"prompt_tokens":19,"completion_tokens":110,"total_tokens":129,"prompt_tokens_details":{"cached_tokens":8,"audio_tokens":2},
			"completion_tokens_details":{"reasoning_tokens":100,"audio_tokens":3,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default"}`,
			whole(Usage{Input: 19, CachedInput: 8, AudioInput: 2, Output: 110, Reasoning: 100, AudioOutput: 3}, say("hi")...)},
		{"OpenAI, obfuscated", okSSE, frames(`{"choices":[{"index":0,"delta":{"content":"hi"}}],"usage":null,"obfuscation":"xYz"}`, stop, `{"choices":[],`+usage(9, 1)+`,"obfuscation":""}`, done),
			whole(used(9, 0, 1), "hi")},
		{"Azure", okSSE, frames(`{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false}}}]}`,
			`{"choices":[{"content_filter_results":{},"delta":{"content":"hi"},"finish_reason":null,"index":0,"logprobs":null}],"usage":null}`,
			`{"choices":[{"content_filter_offsets":{"check_offset":1},"content_filter_results":{},"finish_reason":null,"index":0}]}`, stop, `{"choices":[],`+usage(9, 1)+`}`, done),
			whole(used(9, 0, 1), "hi")},
		{"Mistral", okSSE, frames(`{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
			`{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":16,"total_tokens":50,"completion_tokens":34,"prompt_audio_seconds":null}}`, done),
			whole(used(16, 0, 34), "hmhi")},
		{"C128 Groq, then", okSSE, frames(`{"choices":[{"index":0,"delta":{"content":"hi"}}],"x_groq":{"id":"req"}}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"req","usage":{"queue_time":0.01,"prompt_tokens":21,"prompt_time":0.002,"completion_tokens":6,"completion_time":0.05,"total_tokens":27,"total_time":0.051}}}`, done),
			whole(used(21, 0, 6), "hi")},
		{"Groq, now", okSSE, frames(`{"choices":[{"index":0,"delta":{"reasoning":"hm"}}]}`, `{"choices":[{"index":0,"delta":{"content":"hi"}}]}`,
			`{"choices":[],"usage":{"queue_time":0.01,"prompt_tokens":21,"completion_tokens":6,"total_tokens":27,"total_time":0.051,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}},"usage_breakdown":null}`, done),
			metered{Usage: Usage{Input: 21, CachedInput: 3, Output: 6, Reasoning: 2}, Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"hm", "hi"}}},
		{"xAI, reasoning on top", okJSON, `{"choices":[{"message":{"content":"hi","reasoning_content":"hm"},"finish_reason":"stop"}],
			"usage":{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,"prompt_tokens_details":{"text_tokens":32,"audio_tokens":0,"image_tokens":0,"cached_tokens":6},
			"completion_tokens_details":{"reasoning_tokens":94,"audio_tokens":0},"num_sources_used":2}}`,
			metered{Usage: Usage{Input: 32, CachedInput: 6, Output: 103, Reasoning: 94, Searches: 2}, Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"hi", "hm"}}},
		{"DeepSeek", okJSON, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":320,"completion_tokens":7,"total_tokens":327,
			"prompt_tokens_details":{"cached_tokens":256},"completion_tokens_details":{"reasoning_tokens":5},"prompt_cache_hit_tokens":256,"prompt_cache_miss_tokens":64}}`,
			whole(Usage{Input: 320, CachedInput: 256, Output: 7, Reasoning: 5}, "hi")},
		{"DeepSeek keeps the connection alive", okSSE, ": keep-alive\n\n: keep-alive\n\n" + frames(delta("hi"), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],`+usage(9, 1)+`}`, done),
			whole(used(9, 0, 1), "hi")},
		{"OpenRouter", okSSE, ": OPENROUTER PROCESSING\n\n" + frames(`{"provider":"x","choices":[{"index":0,"delta":{"role":"assistant","content":"hi"}}]}`,
			`{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop","native_finish_reason":"end_turn"}],"usage":{"prompt_tokens":194,"completion_tokens":2,"total_tokens":196,"cost":0.00095,"is_byok":false,"prompt_tokens_details":{"cached_tokens":10,"cache_write_tokens":100,"audio_tokens":0},"cost_details":{"upstream_inference_cost":null},"completion_tokens_details":{"reasoning_tokens":1}}}`, done),
			whole(Usage{Input: 194, CachedInput: 10, CacheWrite: 100, Output: 2, Reasoning: 1}, "hi")},
		{"OpenRouter fails half way", okSSE, frames(delta("hi"), `{"error":{"code":"server_error","message":"x"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`),
			metered{Produced: true, Finished: true, Texts: say("hi")}},
		{"vLLM, on every frame", okSSE, frames(`{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":{"prompt_tokens":12,"total_tokens":12,"completion_tokens":0}}`,
			`{"choices":[{"index":0,"delta":{"reasoning_content":"hm","reasoning":"hm"}}],"usage":{"prompt_tokens":12,"total_tokens":13,"completion_tokens":1}}`,
			`{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens":12,"total_tokens":14,"completion_tokens":2}}`,
			`{"choices":[],"usage":{"prompt_tokens":12,"total_tokens":14,"completion_tokens":2,"prompt_tokens_details":null}}`, done),
			metered{Usage: used(12, 0, 2), Trust: WholeUsage, Produced: true, Finished: true, Texts: []string{"hm", "hi"}}},
		{"Moonshot", okJSON, `{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":19,"completion_tokens":2,"total_tokens":21,"cached_tokens":10}}`,
			whole(used(19, 10, 2), "hi")},
		{"Perplexity", okJSON, `{"choices":[{"message":{"content":"hi"}}],"citations":["http://x"],"usage":{"prompt_tokens":14,"completion_tokens":70,"total_tokens":84,"search_context_size":"low","num_search_queries":3,
			"cost":{"input_tokens_cost":0.0,"output_tokens_cost":0.1,"request_cost":0.005,"total_cost":0.105}}}`,
			whole(Usage{Input: 14, Output: 70, Searches: 3}, "hi")},
		{"Google's compatible API leaves the thoughts out", okJSON, `{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":20,"completion_tokens":198,"total_tokens":623}}`,
			whole(Usage{Input: 20, Output: 603, Reasoning: 405}, "hi")},
		{"a total with the cache, told apart", okJSON, `{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":20,"completion_tokens":8,"total_tokens":128,"prompt_tokens_details":{"cached_tokens":100}}}`,
			whole(Usage{Input: 20, CachedInput: 20, Output: 8}, "hi")},
		{"Together", okSSE, frames(`{"choices":[{"index":0,"text":"hi","logprobs":null,"finish_reason":null,"delta":{"token_id":1,"role":"assistant","content":"hi","tool_calls":null}}],"usage":null}`,
			`{"choices":[{"index":0,"text":"","finish_reason":"eos","delta":{"content":""}}],`+usage(9, 1)+`}`, done),
			metered{Usage: used(9, 0, 1), Trust: WholeUsage, Produced: true, Finished: true, Texts: say("hi")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := meterWhole(c.head, c.body)
			if !reflect.DeepEqual(got, c.want) {
				t.Fatalf("\n got %+v\nwant %+v", got, c.want)
			}
			sameForEverySplit(t, c.body, c.want, func(w func(func([]byte))) metered { return meter(c.head, w) })
		})
	}
}
