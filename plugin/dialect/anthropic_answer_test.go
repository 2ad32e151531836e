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

// events writes each document as Anthropic does: with its type as the event's name.
func events(docs ...string) string {
	var b strings.Builder
	for _, d := range docs {
		var v struct{ Type string }
		json.Unmarshal([]byte(d), &v)
		b.WriteString("event: " + v.Type + "\ndata: " + d + "\n\n")
	}
	return b.String()
}

func clOpens(usage string) string {
	return `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"claude","stop_reason":null,"usage":{` + usage + `}}}`
}

func clDelta(index int, delta string) string {
	return `{"type":"content_block_delta","index":` + strconv.Itoa(index) + `,"delta":{` + delta + `}}`
}

func clSays(text string) string { return clDelta(0, `"type":"text_delta","text":"`+text+`"`) }

func clUses(usage string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{` + usage + `}}`
}

const (
	clBegins = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	clPing   = `{"type":"ping"}`
	clStops  = `{"type":"content_block_stop","index":0}`
	clEnds   = `{"type":"message_stop"}`
	clFails  = `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
)

func TestClaudeMeter(t *testing.T) {
	whole := func(u Usage, texts ...string) metered {
		return metered{Usage: u, Trust: WholeUsage, Produced: len(texts) > 0, Finished: true, Texts: texts}
	}
	for _, c := range []struct {
		name string
		head ResponseHead
		body string
		want metered
	}{
		{"C17 cumulative", okSSE, events(clOpens(`"input_tokens":40,"output_tokens":2`), clBegins, clPing, clSays("a"), clSays("b"), clStops,
			clUses(`"output_tokens":23`), clEnds), whole(used(40, 0, 23), "ab")},
		{"C19 zero input at the end", okSSE, events(clOpens(`"input_tokens":19,"output_tokens":1`), clSays("a"),
			clUses(`"input_tokens":0,"output_tokens":8`), clEnds), whole(used(19, 0, 8), "a")},
		{"C20 zeros at the start", okSSE, events(clOpens(`"input_tokens":0,"output_tokens":0`), clSays("a"),
			clUses(`"input_tokens":77,"output_tokens":31`), clEnds), whole(used(77, 0, 31), "a")},
		{"input found in the cache later", okSSE, events(clOpens(`"input_tokens":1000,"output_tokens":0`), clSays("a"),
			clUses(`"input_tokens":50,"cache_read_input_tokens":950,"output_tokens":31`), clEnds), whole(used(1000, 950, 31), "a")},
		{"cache at the start only", okSSE, events(clOpens(`"input_tokens":3,"cache_read_input_tokens":1500,"output_tokens":0`), clSays("a"),
			clUses(`"input_tokens":40,"cache_read_input_tokens":0,"output_tokens":31`), clEnds), whole(used(1540, 1500, 31), "a")},
		{"C22 cache read", okJSON, `{"type":"message","content":[{"type":"text","text":"hey"}],"usage":{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":1500,"output_tokens":20}}`,
			whole(used(1503, 1500, 20), "hey")},
		{"C23 cache writes of both kinds", okJSON, `{"type":"message","content":[],"usage":{"input_tokens":3,"cache_creation_input_tokens":1000,"cache_creation":{"ephemeral_5m_input_tokens":200,"ephemeral_1h_input_tokens":800},"output_tokens":20}}`,
			whole(Usage{Input: 1003, CacheWrite: 200, CacheHour: 800, Output: 20})},
		{"C23 the sum alone", okJSON, `{"usage":{"input_tokens":3,"cache_creation_input_tokens":1000,"cache_creation":null,"output_tokens":20}}`,
			whole(Usage{Input: 1003, CacheWrite: 1000, Output: 20})},
		{"C23 the parts alone", okJSON, `{"usage":{"input_tokens":3,"cache_creation":{"ephemeral_5m_input_tokens":200,"ephemeral_1h_input_tokens":800},"output_tokens":20}}`,
			whole(Usage{Input: 1003, CacheWrite: 200, CacheHour: 800, Output: 20})},
		{"C23 the parts at the start, the sum at the end", okSSE, events(
			clOpens(`"input_tokens":3,"cache_creation_input_tokens":1000,"cache_creation":{"ephemeral_5m_input_tokens":200,"ephemeral_1h_input_tokens":800},"output_tokens":1`),
			clSays("a"), clUses(`"input_tokens":3,"cache_creation_input_tokens":1000,"output_tokens":20`), clEnds),
			whole(Usage{Input: 1003, CacheWrite: 200, CacheHour: 800, Output: 20}, "a")},
		{"C25 error in the middle", okSSE, events(clOpens(`"input_tokens":60,"output_tokens":1`), clBegins, clSays("a"), clSays("b"), clSays("c"), clFails),
			metered{Usage: used(60, 0, 0), Trust: InputUsage, Produced: true, Texts: []string{"abc"}}},
		{"an error at once", okSSE, events(clFails), metered{Failed: true}},
		{"an error without names", okSSE, frames(clFails), metered{Failed: true}},
		{"an error after the opening", okSSE, events(clOpens(`"input_tokens":60,"output_tokens":1`), clFails),
			metered{Usage: used(60, 0, 0), Trust: InputUsage, Failed: true}},
		{"an error in JSON", ResponseHead{Status: 529, ContentType: "application/json"}, clFails, metered{Failed: true, Finished: true}},
		{"an error with 200", okJSON, clFails, metered{Failed: true, Finished: true}},
		{"C26 the client leaves", okSSE, events(clOpens(`"input_tokens":25,"output_tokens":1`), clBegins, clSays("one two")),
			metered{Usage: used(25, 0, 0), Trust: InputUsage, Produced: true, Texts: []string{"one two"}}},
		{"C26 the client leaves at once", okSSE, events(clOpens(`"input_tokens":25,"output_tokens":1`), clBegins),
			metered{Usage: used(25, 0, 0), Trust: InputUsage}},
		{"cut behind the last usage", okSSE, events(clOpens(`"input_tokens":25,"output_tokens":1`), clSays("a"), clUses(`"output_tokens":9`)),
			whole(used(25, 0, 9), "a")},
		{"more output behind a usage", okSSE, events(clOpens(`"input_tokens":25,"output_tokens":1`), clSays("a"),
			`{"type":"message_delta","delta":{},"usage":{"output_tokens":9}}`, clSays("b")),
			metered{Usage: used(25, 0, 9), Trust: InputUsage, Produced: true, Texts: []string{"ab"}}},
		{"no usage at the end", okSSE, events(clOpens(`"input_tokens":25,"output_tokens":1`), clSays("a"), `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, clEnds),
			metered{Usage: used(25, 0, 0), Trust: InputUsage, Produced: true, Finished: true, Texts: []string{"a"}}},
		{"no usage at all", okSSE, events(`{"type":"message_start","message":{"usage":null}}`, clSays("a"), clEnds),
			metered{Produced: true, Finished: true, Texts: []string{"a"}}},
		{"C29 searches", okSSE, events(clOpens(`"input_tokens":60,"output_tokens":1`), clSays("a"),
			clUses(`"input_tokens":900,"output_tokens":50,"server_tool_use":{"web_search_requests":3,"web_fetch_requests":1}`), clEnds),
			whole(Usage{Input: 900, Output: 50, Searches: 3}, "a")},
		{"C29 none", okJSON, `{"usage":{"input_tokens":9,"output_tokens":5,"server_tool_use":null}}`, whole(used(9, 0, 5))},
		{"thoughts are part of the output", okJSON, `{"usage":{"input_tokens":9,"output_tokens":50,"output_tokens_details":{"thinking_tokens":40}}}`,
			whole(Usage{Input: 9, Output: 50, Reasoning: 40})},
		{"work beside the answer", okJSON, `{"usage":{"input_tokens":9,"output_tokens":5,"iterations":[{"type":"compaction","input_tokens":1000,"cache_read_input_tokens":10,"output_tokens":30},
			{"type":"message","input_tokens":9,"output_tokens":5},{"type":"advisor_message","input_tokens":100,"output_tokens":7},{"type":"compaction","input_tokens":-1,"output_tokens":1},8]}}`,
			whole(used(1119, 10, 42))},
		{"output of every kind", okSSE, events(clOpens(`"input_tokens":5,"output_tokens":1`),
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			clDelta(0, `"type":"thinking_delta","thinking":"h"`), clDelta(0, `"type":"thinking_delta","thinking":"m"`),
			clDelta(0, `"type":"signature_delta","signature":"bm90IHRleHQ="`),
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"I "}}`, clDelta(1, `"type":"text_delta","text":"am"`),
			clDelta(1, `"type":"citations_delta","citation":{"cited_text":"no"}`),
			`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"look","input":{}}}`,
			clDelta(2, `"type":"input_json_delta","partial_json":"{\"a\""`), clDelta(2, `"type":"input_json_delta","partial_json":":1}"`),
			`{"type":"content_block_start","index":3,"content_block":{"type":"web_search_tool_result","content":[{"title":"not output"}]}}`,
			clUses(`"output_tokens":40`), clEnds),
			whole(used(5, 0, 40), "hm", "I am", "look", `{"a":1}`)},
		{"blocks of JSON", okJSON, `{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":" so"},
			{"type":"tool_use","id":"t","name":"look","input":{"a": 1}},{"type":"web_search_tool_result","content":[{"title":"no"}]}],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":9}}`,
			whole(used(5, 0, 9), "hm so", "look", `{"a":1}`)},
		{"C43 a letter in two chunks", okSSE, events(clSays("\xE4\xBD\xA0"), clUses(`"input_tokens":5,"output_tokens":9`)), whole(used(5, 0, 9), "你")},
		{"C44 CRLF", okSSE, strings.ReplaceAll(events(clOpens(`"input_tokens":5,"output_tokens":1`), clSays("a"), clUses(`"output_tokens":9`), clEnds), "\n", "\r\n"),
			whole(used(5, 0, 9), "a")},
		{"C55 SSE as JSON", okJSON, events(clOpens(`"input_tokens":5,"output_tokens":1`), clSays("a"), clUses(`"output_tokens":9`), clEnds), whole(used(5, 0, 9), "a")},
		{"C56 JSON as SSE", okSSE, `{"type":"message","content":[{"text":"hey"}],"usage":{"input_tokens":5,"output_tokens":1}}`, whole(used(5, 0, 1), "hey")},
		{"JSON, cut behind the usage", okJSON, `{"content":[{"text":"ab"}],"usage":{"input_tokens":5,"output_tokens":9}`,
			metered{Usage: used(5, 0, 9), Trust: WholeUsage, Produced: true, Texts: []string{"ab"}}},
		{"absurd: negative", okSSE, events(clUses(`"input_tokens":-5,"output_tokens":9`)), metered{Finished: true}},
		{"absurd: above 2^40", okSSE, events(clUses(`"input_tokens":5,"cache_read_input_tokens":1099511627777,"output_tokens":9`)), metered{Finished: true}},
		{"absurd: words", okJSON, `{"usage":{"input_tokens":"5","output_tokens":9}}`, metered{Finished: true}},
		{"zeros", okJSON, `{"usage":{"input_tokens":0,"output_tokens":0}}`, metered{Finished: true}},
		{"no figures", okJSON, `{"usage":{"service_tier":"standard"}}`, metered{Finished: true}},
		{"gzip", ResponseHead{Status: 200, ContentType: "application/json", ContentEncoding: "gzip"}, "\x1f\x8b....", metered{Opaque: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := func(w func(func([]byte))) metered { return meterAs(claude, c.head, w) }
			if got := run(func(w func([]byte)) { w([]byte(c.body)) }); !reflect.DeepEqual(got, c.want) {
				t.Fatalf("\n got %+v\nwant %+v", got, c.want)
			}
			sameForEverySplit(t, c.body, c.want, run)
		})
	}
}

func TestCountingTokensIsFree(t *testing.T) {
	counts := anthropicMessages{counts: true}
	for _, c := range []struct {
		head ResponseHead
		body string
		want metered
	}{
		{okJSON, `{"input_tokens":8200}`, metered{Trust: WholeUsage, Finished: true}}, // C28
		{okJSON, `{"input_tokens":8200,"context_management":{"original_input_tokens":9000}}`, metered{Trust: WholeUsage, Finished: true}},
		{okJSON, ``, metered{Trust: WholeUsage}},
		{ResponseHead{Status: 400}, clFails, metered{Failed: true, Finished: true}},
	} {
		sameForEverySplit(t, c.body, c.want, func(w func(func([]byte))) metered { return meterAs(counts, c.head, w) })
	}
}

// claudeUsageReference is the dumb model of a stream of usage records: per field the last that isn't 0,
// of the output the largest, and the input is the sum.
func claudeUsageReference(docs []string) (u Usage) {
	var fresh, read, written, hour bucket.Tokens
	last := func(to *bucket.Tokens, n int64) {
		if n != 0 {
			*to = bucket.Tokens(n)
		}
	}
	for i, d := range docs {
		var v struct {
			Message struct{ Usage json.RawMessage }
			Usage   json.RawMessage
		}
		json.Unmarshal([]byte(d), &v)
		raw := v.Usage
		if i == 0 {
			raw = v.Message.Usage
		}
		var f struct {
			Fresh   int64 `json:"input_tokens"`
			Read    int64 `json:"cache_read_input_tokens"`
			Written int64 `json:"cache_creation_input_tokens"`
			Parts   struct {
				Hour int64 `json:"ephemeral_1h_input_tokens"`
			} `json:"cache_creation"`
			Out int64 `json:"output_tokens"`
		}
		json.Unmarshal(raw, &f)
		last(&fresh, f.Fresh)
		last(&read, f.Read)
		hour = max(hour, bucket.Tokens(f.Parts.Hour))
		last(&written, f.Written)
		if i > 0 {
			u.Output = max(u.Output, bucket.Tokens(f.Out))
		}
	}
	hour = min(hour, written)
	u.CachedInput, u.CacheWrite, u.CacheHour = read, written-hour, hour
	u.Input = fresh + read + written
	return u
}

func TestClaudeMeterAgreesWithTheReference(t *testing.T) {
	for seed := range 300 {
		record := func(i int) string {
			hour := (seed * 3) % 5 * (i % 2) // the truth is told once
			return `"input_tokens":` + strconv.Itoa((seed*7+i*3)%11) + `,"cache_read_input_tokens":` + strconv.Itoa((seed+i*5)%7) +
				`,"cache_creation_input_tokens":` + strconv.Itoa(hour+(seed*11+i)%4) + `,"cache_creation":{"ephemeral_1h_input_tokens":` + strconv.Itoa(hour) +
				`},"output_tokens":` + strconv.Itoa(1+(seed*5+i*i)%13)
		}
		docs := []string{clOpens(record(0)), clUses(record(1)), clUses(record(2)), clEnds}
		got := meterAs(claude, okSSE, func(w func([]byte)) { w([]byte(events(docs...))) })
		if want := claudeUsageReference(docs[:3]); got.Usage != want || got.Trust != WholeUsage {
			t.Fatalf("%q:\n got %+v\nwant %+v", docs, got.Usage, want)
		}
	}
}

func FuzzClaudeMeter(f *testing.F) {
	f.Add([]byte(events(clOpens(`"input_tokens":40,"output_tokens":2`), clSays("a"), clUses(`"output_tokens":23`), clEnds)), uint16(7), true)
	f.Add([]byte(`{"content":[{"text":"a","input":{}}],"usage":{"input_tokens":3,"cache_creation":{"ephemeral_1h_input_tokens":5},"output_tokens":1,"iterations":[{"type":"compaction","input_tokens":1}]}}`), uint16(3), false)
	f.Add([]byte(events(clOpens(`"input_tokens":1`), clFails)), uint16(2), true)
	f.Add([]byte(`{"content":[{"input":000`), uint16(97), false)
	f.Fuzz(func(t *testing.T, body []byte, cut uint16, stream bool) {
		head := okJSON
		if stream {
			head = okSSE
		}
		n := int(cut) % (len(body) + 1)
		whole := meterAs(claude, head, func(w func([]byte)) { w(body) })
		split := meterAs(claude, head, func(w func([]byte)) { w(bytes.Clone(body[:n])); w(bytes.Clone(body[n:])) })
		if !reflect.DeepEqual(whole, split) {
			t.Fatalf("cut at %d:\n%+v\n%+v", n, whole, split)
		}
		if u := whole.Usage; u.Input < 0 || u.Output < 0 || u.CachedInput < 0 || u.CachedInput+u.CacheWrite+u.CacheHour > u.Input || u.Reasoning > u.Output {
			t.Fatalf("%+v", u)
		}
	})
}
