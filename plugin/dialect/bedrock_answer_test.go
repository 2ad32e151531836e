package dialect

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

// awsMessage encodes a message of an AWS event stream.
func awsMessage(payload string, headers ...string) string {
	var h []byte
	for i := 0; i < len(headers); i += 2 {
		h = append(append(append(h, byte(len(headers[i]))), headers[i]...), 7)
		h = append(binary.BigEndian.AppendUint16(h, uint16(len(headers[i+1]))), headers[i+1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(h)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, h...), payload...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

func awsEvent(name, payload string) string {
	return awsMessage(payload, ":event-type", name, ":content-type", "application/json", ":message-type", "event")
}

func awsException(name string) string {
	return awsMessage(`{"message":"no","usage":{"inputTokens":5,"outputTokens":5}}`, ":exception-type", name, ":message-type", "exception")
}

// chunks are events of a model's own, wrapped as InvokeModelWithResponseStream does.
func chunks(docs ...string) string {
	var b strings.Builder
	for i, d := range docs {
		b.WriteString(awsEvent("chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(d))+`","p":"`+"abcdefgh"[:i%8]+`"}`))
	}
	return b.String()
}

func converseText(text string) string {
	return awsEvent("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"`+text+`"},"p":"abc"}`)
}

var okFrames = ResponseHead{Status: 200, ContentType: "application/vnd.amazon.eventstream"}

// spoiled is a stream whose last byte is wrong.
func spoiled(s string) string { return s[:len(s)-1] + string([]byte{s[len(s)-1] ^ 1}) }

func TestBedrockMeter(t *testing.T) {
	const (
		invoke  = invokePath
		titan   = "/model/amazon.titan-text-express-v1/invoke"
		metrics = `"amazon-bedrock-invocationMetrics":{"inputTokenCount":26,"outputTokenCount":40,"invocationLatency":2100,"firstByteLatency":400}`
	)
	whole := func(u Usage, texts ...string) metered {
		return metered{Usage: u, Trust: WholeUsage, Produced: len(texts) > 0, Finished: true, Texts: texts}
	}
	head := func(values ...string) ResponseHead {
		return ResponseHead{Status: 200, ContentType: "application/json", Usage: append(values, "", "", "", "")[:4]}
	}
	usage := `"usage":{"inputTokens":26,"outputTokens":40,"totalTokens":66}`
	stopped := awsEvent("contentBlockStop", `{"contentBlockIndex":0}`) + awsEvent("messageStop", `{"stopReason":"end_turn"}`)
	metadata := awsEvent("metadata", `{"metrics":{"latencyMs":500},`+usage+`}`)
	for _, c := range []struct {
		name, path string
		head       ResponseHead
		body       string
		want       metered
	}{
		{"converse", conversePath, okJSON, `{"metrics":{"latencyMs":1},"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm"}}},{"text":"ab"},{"toolUse":{"toolUseId":"t","name":"f","input":{"a": 1}}}]}},"stopReason":"end_turn",` + usage + `}`,
			whole(used(26, 0, 40), "hm", "ab", "f", `{"a":1}`)},
		{"converse, cached", conversePath, okJSON, `{"stopReason":"end_turn","usage":{"cacheDetails":[{"inputTokens":2000,"ttl":"1h"},{"inputTokens":5502,"ttl":"5m"}],"cacheReadInputTokenCount":100,"cacheReadInputTokens":100,"cacheWriteInputTokenCount":7502,"cacheWriteInputTokens":7502,"inputTokens":18,"outputTokens":386,"serverToolUsage":{},"totalTokens":8006}}`,
			whole(Usage{Input: 7620, CachedInput: 100, CacheWrite: 5502, CacheHour: 2000, Output: 386})},
		{"stream", conversePath, okFrames, awsEvent("messageStart", `{"role":"assistant"}`) + converseText("a") + converseText("b") + stopped + metadata,
			whole(used(26, 0, 40), "ab")},
		{"stream, labelled as JSON", conversePath, okJSON, converseText("a") + stopped + metadata, whole(used(26, 0, 40), "a")},
		{"stream of tools and thoughts", conversePath, okFrames,
			awsEvent("contentBlockStart", `{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"t","name":"f"}}}`) +
				awsEvent("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"toolUse":{"input":"{\"a\""}}}`) + awsEvent("contentBlockDelta", `{"contentBlockIndex":1,"delta":{"toolUse":{"input":":1}"}}}`) +
				awsEvent("contentBlockDelta", `{"contentBlockIndex":2,"delta":{"reasoningContent":{"text":"hm"}}}`) +
				awsEvent("contentBlockDelta", `{"contentBlockIndex":2,"delta":{"reasoningContent":{"signature":"c2ln"}}}`) + stopped + metadata,
			whole(used(26, 0, 40), "f", `{"a":1}`, "hm")},
		{"stream without metadata", conversePath, okFrames, converseText("a") + stopped, metered{Produced: true, Finished: true, Texts: []string{"a"}}},
		{"stream, cut", conversePath, okFrames, converseText("a") + converseText("b")[:90], metered{Produced: true, Texts: []string{"a"}}},
		{"stream, usage spoiled", conversePath, okFrames, converseText("a") + stopped + spoiled(metadata), metered{Produced: true, Texts: []string{"a"}}},
		{"stream, text spoiled", conversePath, okFrames, converseText("a") + spoiled(converseText("b")) + stopped + metadata, metered{Produced: true, Texts: []string{"ab"}}},
		{"stream, spoiled at once", conversePath, okFrames, "\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00", metered{Opaque: true}},
		{"exception first", conversePath, okFrames, awsException("throttlingException"), metered{Failed: true}},
		{"exception after output", conversePath, okFrames, converseText("a") + awsException("modelStreamErrorException"), metered{Produced: true, Texts: []string{"a"}}},
		{"exception after usage", conversePath, okFrames, converseText("a") + metadata + awsException("internalServerException"),
			metered{Usage: used(26, 0, 40), Trust: WholeUsage, Produced: true, Texts: []string{"a"}}},
		{"error message", conversePath, okFrames, awsMessage("", ":message-type", "error", ":error-code", "x"), metered{Failed: true}},
		{"a payload that is no JSON", conversePath, okFrames, awsEvent("contentBlockDelta", `{"delta":{"text":"a`) + awsEvent("x", "?") + awsEvent("y", "") + converseText("b") + stopped + metadata,
			whole(used(26, 0, 40), "ab")},
		{"refused", conversePath, ResponseHead{Status: 429, ContentType: "application/json"}, `{"message":"Too many tokens"}`, metered{Failed: true, Finished: true}},
		{"a picture", conversePath, okFrames, awsEvent("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"image":{"source":{"bytes":"iVBORw0K"}}}}`), metered{Produced: true}},
		{"absurd: negative", conversePath, okJSON, `{"usage":{"inputTokens":-1,"outputTokens":5}}`, metered{Finished: true}},
		{"absurd: above 2^40", conversePath, okJSON, `{"usage":{"inputTokens":1,"outputTokens":1099511627777}}`, metered{Finished: true}},
		{"absurd: in the details", conversePath, okJSON, `{"usage":{"inputTokens":1,"outputTokens":1,"cacheDetails":[{"ttl":"1h","inputTokens":-5}]}}`, metered{Finished: true}},
		{"absurd: words", conversePath, okJSON, `{"usage":"none"}`, metered{Finished: true}},

		{"Anthropic", invoke, okJSON, `{"type":"message","content":[{"type":"text","text":"ab"}],"stop_reason":"end_turn","usage":{"input_tokens":6,"cache_creation_input_tokens":0,"cache_read_input_tokens":20,"output_tokens":40}}`,
			whole(used(26, 20, 40), "ab")},
		{"Anthropic, with the head", invoke, head("6", "40", "20", "0"), `{"type":"message","content":[{"type":"text","text":"ab"}],"stop_reason":"end_turn","usage":{"input_tokens":6,"cache_read_input_tokens":20,"output_tokens":40}}`,
			whole(used(26, 20, 40), "ab")},
		{"Anthropic, streamed", invoke, okFrames, chunks(
			`{"type":"message_start","message":{"type":"message","usage":{"input_tokens":26,"output_tokens":1}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"é"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":40}}`,
			`{"type":"message_stop",`+metrics+`}`), whole(used(26, 0, 40), "aé")},
		{"C26 Anthropic, cut", invoke, okFrames, chunks(
			`{"type":"message_start","message":{"type":"message","usage":{"input_tokens":25,"output_tokens":1}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`),
			metered{Usage: used(25, 0, 0), Trust: InputUsage, Produced: true, Texts: []string{"a"}}},
		{"Anthropic, an error inside", invoke, okFrames, chunks(`{"type":"error","error":{"type":"overloaded_error"}}`), metered{Failed: true}},
		{"Anthropic, an exception", invoke, okFrames, awsException("modelTimeoutException"), metered{Failed: true}},
		{"Nova", "/model/amazon.nova-lite-v1:0/invoke", okJSON, `{"output":{"message":{"content":[{"text":"ab"}],"role":"assistant"}},"stopReason":"end_turn","usage":{"inputTokens":6,"outputTokens":40,"totalTokens":46,"cacheReadInputTokenCount":20,"cacheWriteInputTokenCount":0}}`,
			whole(used(26, 20, 40), "ab")},
		{"Nova, streamed", invoke, okFrames, chunks(`{"messageStart":{"role":"assistant"}}`, `{"contentBlockDelta":{"delta":{"text":"a"},"contentBlockIndex":0}}`,
			`{"contentBlockDelta":{"delta":{"text":"b"},"contentBlockIndex":0}}`, `{"messageStop":{"stopReason":"end_turn"}}`, `{"metadata":{`+usage+`,"metrics":{}},`+metrics+`}`),
			whole(used(26, 0, 40), "ab")},
		{"Llama", invoke, okJSON, `{"generation":"ab","prompt_token_count":26,"generation_token_count":40,"stop_reason":"stop"}`, whole(used(26, 0, 40), "ab")},
		{"Llama, streamed", invoke, okFrames, chunks(`{"generation":"a","prompt_token_count":26,"generation_token_count":1,"stop_reason":null}`,
			`{"generation":"b","prompt_token_count":null,"generation_token_count":2,"stop_reason":null}`,
			`{"generation":"","prompt_token_count":null,"generation_token_count":40,"stop_reason":"stop",`+metrics+`}`), whole(used(26, 0, 40), "ab")},
		{"Llama, cut", invoke, okFrames, chunks(`{"generation":"a","prompt_token_count":26,"generation_token_count":1,"stop_reason":null}`),
			metered{Usage: used(26, 0, 1), Trust: WholeUsage, Produced: true, Texts: []string{"a"}}},
		{"Mistral, told by the head", invoke, head("26", "40"), `{"outputs":[{"text":"ab","stop_reason":"stop"}]}`, whole(used(26, 0, 40), "ab")},
		{"Mistral, told by nobody", invoke, okJSON, `{"outputs":[{"text":"ab","stop_reason":"stop"}]}`, metered{Produced: true, Finished: true, Texts: []string{"ab"}}},
		{"Mistral, streamed", invoke, okFrames, chunks(`{"outputs":[{"text":"a","stop_reason":null}]}`, `{"outputs":[{"text":"b","stop_reason":"stop"}],`+metrics+`}`), whole(used(26, 0, 40), "ab")},
		{"Titan", titan, okJSON, `{"inputTextTokenCount":26,"results":[{"tokenCount":40,"outputText":"ab","completionReason":"FINISH"}]}`, whole(used(26, 0, 40), "ab")},
		{"Titan, streamed", titan, okFrames, chunks(`{"outputText":"ab","index":0,"totalOutputTextTokenCount":40,"completionReason":"FINISH","inputTextTokenCount":26,` + metrics + `}`), whole(used(26, 0, 40), "ab")},
		{"OpenAI", invoke, okJSON, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"ab"}}],"usage":{"prompt_tokens":26,"completion_tokens":40,"total_tokens":66}}`, whole(used(26, 0, 40), "ab")},
		{"Cohere", invoke, head("26", "40"), `{"text":"ab","generation_id":"g","finish_reason":"COMPLETE"}`, whole(used(26, 0, 40), "ab")},
		{"embeddings, told by the head", "/model/cohere.embed-english-v3/invoke", head("26"), `{"embeddings":[[0.1,-2e-3]],"id":"x","texts":["a"]}`, whole(used(26, 0, 0))},
		{"Titan's embeddings", "/model/amazon.titan-embed-text-v2:0/invoke", okJSON, `{"embedding":[0.1],"inputTextTokenCount":26}`, whole(used(26, 0, 0))},
		{"the head is absurd", invoke, head("-6", "40"), `{"outputs":[{"text":"ab"}]}`, metered{Produced: true, Finished: true, Texts: []string{"ab"}}},
		{"the head is too large", invoke, head("6", "99999999999999999999"), `{"outputs":[{"text":"ab"}]}`, metered{Produced: true, Finished: true, Texts: []string{"ab"}}},
		{"the head says the output alone", invoke, head("", "40"), `{"outputs":[{"text":"ab"}]}`, metered{Usage: used(0, 0, 40), Trust: OutputUsage, Produced: true, Finished: true, Texts: []string{"ab"}}},
		{"the head, of a body that can't be read", invoke, head("26", "40"), "\x89PNG", metered{Usage: used(26, 0, 40), Trust: WholeUsage}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := func(w func(func([]byte))) metered { return meterAs(bedrockCall(t, c.path), c.head, w) }
			if got := run(all(c.body)); !reflect.DeepEqual(got, c.want) {
				t.Fatalf("\n got %+v\nwant %+v", got, c.want)
			}
			sameForEverySplit(t, c.body, c.want, run)
		})
	}
	if got := meterAs(bedrockCall(t, "/model/m/count-tokens"), okJSON, all(`{"inputTokens":31}`)); got.Trust != WholeUsage || got.Usage != (Usage{}) || got.Failed {
		t.Errorf("count-tokens: %+v", got)
	}
	if got := meterAs(OpenAIChat, okFrames, all(metadata)); !got.Opaque {
		t.Errorf("frames of an API that has none: %+v", got)
	}
}

func TestBedrockMeterHoldsNothing(t *testing.T) {
	m := bedrockCall(t, invokePath).NewMeter(okFrames, discard{})
	one := []byte(chunks(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word"}}`))
	m.Write(one)
	if n := testing.AllocsPerRun(100, func() { m.Write(one) }); n > 1 { // the name of its type
		t.Errorf("%v allocations for a message", n)
	}
}

// TestBase64 compares with the library's decoder, over all lengths, paddings and escapes.
func TestBase64(t *testing.T) {
	raw := make([]byte, 70)
	for i := range raw {
		raw[i] = byte(i * 37)
	}
	for n := range raw {
		for _, s := range []string{
			base64.StdEncoding.EncodeToString(raw[:n]), base64.RawStdEncoding.EncodeToString(raw[:n-n%3]), base64.URLEncoding.EncodeToString(raw[:n]),
			strings.ReplaceAll(base64.StdEncoding.EncodeToString(raw[:n]), "/", `\/`),
			strings.ReplaceAll(base64.StdEncoding.EncodeToString(raw[:n]), "=", `\u003d`),
		} {
			want := raw[:n]
			if len(s) > 0 && len(s) < base64.StdEncoding.EncodedLen(n) {
				want = raw[:n-n%3]
			}
			for cut := range len(s) + 1 {
				var d base64Text
				var got []byte
				for _, p := range []string{s[:cut], s[cut:]} {
					for len(p) > 0 {
						var out [5]byte
						n, read := d.decode(out[:], []byte(p))
						got, p = append(got, out[:n]...), p[read:]
					}
				}
				if !bytes.Equal(got, want) && !(len(s) == 0 && len(got) == 0) {
					t.Fatalf("%q cut at %d: %x, want %x", s, cut, got, want)
				}
			}
		}
	}
}

func TestBedrockMeterAgreesWithTheReference(t *testing.T) {
	for seed := range 100 {
		body := ""
		var want Usage
		for i := range 4 {
			in, out := 1+(seed*7+i*3)%11, 1+(seed*5+i*i)%13
			doc := `{"usage":{"inputTokens":` + strconv.Itoa(in) + `,"outputTokens":` + strconv.Itoa(out) + `}}`
			body += awsEvent("metadata", doc)
			var v struct {
				Usage struct{ InputTokens, OutputTokens bucket.Tokens }
			}
			json.Unmarshal([]byte(doc), &v)
			want.Input, want.Output = v.Usage.InputTokens, max(want.Output, v.Usage.OutputTokens)
		}
		if got := meterAs(bedrockCall(t, conversePath), okFrames, all(body)); got.Usage != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}

func FuzzBedrockMeter(f *testing.F) {
	f.Add([]byte(`{"usage":{"inputTokens":26,"outputTokens":40,"cacheDetails":[{"ttl":"1h","inputTokens":5}]}}`), uint16(7), uint8(0))
	f.Add([]byte(`{"generation":"a","prompt_token_count":26,"generation_token_count":40}`), uint16(7), uint8(1))
	f.Add([]byte(converseText("a")), uint16(7), uint8(2))
	f.Add([]byte(`{"outputs":[{"text":"a"}],"amazon-bedrock-invocationMetrics":{"inputTokenCount":1}}`), uint16(7), uint8(3))
	converse, invoke := bedrockCall(f, conversePath), bedrockCall(f, invokePath)
	f.Fuzz(func(t *testing.T, body []byte, cut uint16, how uint8) {
		d := converse
		switch how & 3 {
		case 0:
			body = []byte(awsEvent("x", string(body)))
		case 1:
			d, body = invoke, []byte(chunks(string(body), string(body)))
		case 3:
			d = invoke
		}
		n := int(cut) % (len(body) + 1)
		whole := meterAs(d, okFrames, all(string(body)))
		split := meterAs(d, okFrames, func(w func([]byte)) { w(bytes.Clone(body[:n])); w(bytes.Clone(body[n:])) })
		if !reflect.DeepEqual(whole, split) {
			t.Fatalf("cut at %d:\n%+v\n%+v", n, whole, split)
		}
		if u := whole.Usage; u.Input < 0 || u.Output < 0 || u.CachedInput > u.Input || u.CacheHour > u.Input || u.Reasoning > u.Output {
			t.Fatalf("%+v", u)
		}
	})
}
