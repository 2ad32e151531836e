package core

import (
	"os"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

// BenchmarkExchange is one call with four limits, from its headers to its settlement: what the
// filter itself computes.
func BenchmarkExchange(b *testing.B) {
	text, err := os.ReadFile("../../examples/bench/emmer.json")
	if err != nil {
		b.Fatal(err)
	}
	c, err := config.Parse([]byte(strings.Replace(string(text), "HOLD", "pair", 1)), func(string) (string, bool) { return "t", true })
	if err != nil {
		b.Fatal(err)
	}
	body := []byte(`{"model":"gpt-4o","max_tokens":16,"messages":[{"role":"user","content":"` + strings.Repeat("some words of a prompt ", 40) + `"}]}`)
	answer := []byte(`{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hello from the model"},"finish_reason":"stop"}],"usage":{"prompt_tokens":200,"completion_tokens":7,"total_tokens":207}}`)
	head := plan.Head{Method: "POST", Path: "/v1/chat/completions", Headers: [][2]string{{"authorization", "Bearer k"}, {"content-type", "application/json"}, {"content-length", "1000"}, {"x-tenant", "acme"}, {"user-agent", "bench"}}}
	b.ReportAllocs()
	w := NewWorker(c, "tag")
	const at = bucket.Millis(1_800_000_000_000)
	n := uint64(0)
	for b.Loop() {
		n++
		s := w.NewStream(n)
		// The effects are applied as the shell does: the worker is told, the rest is the host's.
		apply := func(fx []Effect) {
			for _, f := range fx {
				if f.Kind == Tell {
					w.Recycle(w.Step(*f.Event))
				}
			}
			w.Recycle(fx)
		}
		apply(s.Step(Event{Kind: RequestHeaders, Now: at, GateInVM: true, Head: head}))
		apply(s.Step(Event{Kind: GateHeaders, Now: at}))
		apply(s.Step(Event{Kind: RequestBody, Now: at, End: true, Size: len(body), Body: body}))
		if s.State() != Deciding {
			b.Fatal(s.State(), s.record)
		}
		apply(s.Step(Event{Kind: StoreReply, Now: at, Status: "200", Body: []byte(`{"result":[1,5000,65000,0,0,1000000,1000000,1000000,1000000,2000000,2000000,2000000,2000000,0,"` + s.parts[0].call.Nonce + `"]}`)}))
		if s.State() != Forwarded {
			b.Fatal(s.State(), s.record)
		}
		apply(s.Step(Event{Kind: ResponseHeaders, Now: at, Response: dialect.ResponseHead{Status: 200, ContentType: "application/json"}}))
		apply(s.Step(Event{Kind: ResponseBody, Now: at, Body: answer, End: true}))
		sent := w.Step(Event{Kind: Flush, Now: at})
		for _, f := range sent {
			if f.Kind == Call {
				w.Recycle(w.Step(Event{Kind: StoreReply, Now: at, Tag: f.Call.Tag, Status: "200",
					Body: []byte(`{"result":[1,5000,1000000,1000000,1000000,1000000,"s.` + s.id + `"]}`)}))
			}
		}
		w.Recycle(sent)
		apply(s.Step(Event{Kind: StreamDone, Now: at}))
	}
}
