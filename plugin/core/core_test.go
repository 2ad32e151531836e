package core

import (
	"fmt"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
	"github.com/emmer-proxy/emmer/plugin/callout"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

const testConfig = `{
 "version": 1, "currency": "EUR",
 "store": {"cluster": "bridge", "token": "t", "timeout": "50ms", "namespace": "test"},
 "hold": {"mode": "HOLD"},
 "failure": {"mode": "FAILURE"},
 "identity": {"key": {"header": "x-api-key"}},
 "models": {"m": {"tokenizer": "o200k_base", "max_output": 1000, "default_output": 100, "price": {"input": "1", "output": "2"}}},
 "targets": TARGETS,
 "limits": [{"name": "tpm", "by": ["key"], "count": "tokens", "bucket": {"rate": "6000/m", "burst": 6000}}]
}`

func newWorker(t *testing.T, hold, failure string) *Worker {
	t.Helper()
	return newWorkerWith(t, hold, failure, `{"up": {"provider": "openai"}}`)
}

func newWorkerWith(t *testing.T, hold, failure, targets string) *Worker {
	t.Helper()
	text := strings.NewReplacer("HOLD", hold, "FAILURE", failure, "TARGETS", targets).Replace(testConfig)
	c, err := config.Parse([]byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return NewWorker(c, "tag")
}

const chat = `{"model":"m","messages":[{"role":"user","content":"hello there"}],"max_tokens":10}`

func headersEvent(gate bool, extra ...[2]string) Event {
	return Event{Kind: RequestHeaders, Now: 1000, GateInVM: gate, Head: plan.Head{
		Method: "POST", Path: "/v1/chat/completions",
		Headers: append([][2]string{{"x-api-key", "k"}, {"content-type", "application/json"}, {"content-length", fmt.Sprint(len(chat))}}, extra...),
	}}
}

func bodyEvent(body string) Event {
	return Event{Kind: RequestBody, Now: 1001, End: true, Size: len(body), Body: []byte(body)}
}

// reply is the script's answer to the call that the effects hold.
func reply(t *testing.T, s *Stream, outcome bucket.Outcome) Event {
	t.Helper()
	v := numbers(int64(outcome), 5000)
	switch outcome {
	case bucket.Granted, bucket.Replayed:
		v = append(v, numbers(65000, 0, 0)...)
	case bucket.Denied:
		v = append(v, numbers(0, 1, 2500)...)
	case bucket.NeverFits:
		v = append(v, numbers(0, 1, 0)...)
	case bucket.Killed:
		v = append(v, numbers(0, 1, 0)...)
		v = append(v, script.Value{Text: script.KillValue(0, "ann", "fire")})
	case bucket.Settled:
		v = append(v, numbers(0, 0, 0)...)
	}
	if outcome != bucket.Killed && outcome != bucket.Settled {
		for range s.plan.Items {
			v = append(v, numbers(100)...)
		}
		if outcome != bucket.Replayed {
			for range s.plan.Items { // what each gives at the most
				v = append(v, numbers(1000)...)
			}
			v = append(v, numbers(0)...) // and no override is a bad one
		}
	}
	v = append(v, script.Value{Text: s.parts[0].call.Nonce})
	if _, err := script.DecodeReserve(s.parts[0].call, v); err != nil {
		t.Fatalf("the test's reply is not one: %v", err)
	}
	return storeReply(1002, 0, v)
}

// parkedReply grants a start so many ms after the store's present.
func parkedReply(t *testing.T, s *Stream, wait int64) Event {
	t.Helper()
	v := numbers(int64(bucket.Granted), 5000, 65000+wait, 0, 5000+wait)
	for range s.plan.Items {
		v = append(v, numbers(-100)...)
	}
	for range s.plan.Items {
		v = append(v, numbers(1000)...)
	}
	v = append(v, numbers(0)...)
	v = append(v, script.Value{Text: s.parts[0].call.Nonce})
	if _, err := script.DecodeReserve(s.parts[0].call, v); err != nil {
		t.Fatalf("the test's reply is not one: %v", err)
	}
	return storeReply(1002, 0, v)
}

// storeReply is the store's answer with a script's values.
func storeReply(now bucket.Millis, tag uint64, v []script.Value) Event {
	return Event{Kind: StoreReply, Now: now, Tag: tag, Status: "200", Body: []byte(result(v))}
}

func result(v []script.Value) string {
	var b strings.Builder
	for i, one := range v {
		if i > 0 {
			b.WriteByte(',')
		}
		if one.IsInt {
			fmt.Fprint(&b, one.Int)
		} else {
			fmt.Fprintf(&b, "%q", one.Text)
		}
	}
	return `{"result":[` + b.String() + `]}`
}

// storeFails is an answer without a result.
func storeFails(now bucket.Millis, tag uint64, c callout.Class) Event {
	e := Event{Kind: StoreReply, Now: now, Tag: tag}
	switch c {
	case callout.NoScript:
		e.Status, e.Body = "400", []byte(`{"error":"NOSCRIPT No matching script."}`)
	case callout.Unsent:
		e.Kind = StoreUnsent
	case callout.Misconfigured:
		e.Status, e.Body = "401", []byte(`{"error":"UNAUTHORIZED"}`)
	default:
		e.Status, e.Body = "503", []byte(`{"error":"TIMEOUT"}`)
	}
	return e
}

func numbers(n ...int64) (v []script.Value) {
	for _, i := range n {
		v = append(v, script.Value{Int: i, IsInt: true})
	}
	return v
}

func kinds(fx []Effect) string {
	var b strings.Builder
	for _, f := range fx {
		if f.Kind == Count || f.Kind == SetResponseHeader {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(effectNames[f.Kind])
		switch f.Kind {
		case SetHeader:
			b.WriteString("(" + f.Name + "=" + f.Value)
			if f.AtGate {
				b.WriteString("@gate")
			}
			b.WriteString(")")
		case RemoveHeader:
			b.WriteString("(" + f.Name + ")")
		case Answer:
			fmt.Fprintf(&b, "(%d)", f.Status)
		case Tell:
			b.WriteString("(" + eventNames[f.Event.Kind] + ")")
		}
	}
	return b.String()
}

var effectNames = map[EffectKind]string{Hold: "hold", Call: "call", SetHeader: "set", RemoveHeader: "remove", SetResponseHeader: "respond", RemoveResponseHeader: "unrespond", EditResponse: "edit-response",
	EditBody: "replace", Answer: "answer", ResumeRequest: "resume", ResumeGate: "resume-gate", SetState: "state", Count: "count", Log: "log",
	Tell: "tell", Release: "release", Wake: "wake", ShareIf: "share-if", Share: "share", Drained: "drained", ResumeAnswer: "resume-answer"}

var eventNames = map[EventKind]string{RequestHeaders: "request-headers", RequestBody: "request-body", RequestTrailers: "request-trailers",
	GateHeaders: "gate-headers", StoreReply: "store-reply", StoreUnsent: "store-unsent", ResponseHeaders: "response-headers",
	ResponseBody: "response-body", ResponseTrailers: "response-trailers", StreamDone: "stream-done", Recovered: "recovered",
	StoreFault: "store-fault", StoreRefused: "store-refused", RefusalAsked: "refusal-asked", RefusalOver: "refusal-over", Drawn: "drawn", StoreAway: "store-away", StoreBack: "store-back", Released: "released", Queued: "queued", LeftQueue: "left-queue", Tick: "tick", Flush: "flush", Settle: "settle", LeaseTaken: "lease-taken", OrgSeen: "org-seen", KillSeen: "kill-seen", SharedStored: "shared-stored", Shutdown: "shutdown", AnswerDue: "answer-due", AnswerHeld: "answer-held", AnswerLet: "answer-let"}

func responseEvent() Event {
	return Event{Kind: ResponseHeaders, Now: 1100, Response: dialect.ResponseHead{Status: 200, ContentType: "application/json"}}
}

const answer = `{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`

func jobOf(t *testing.T, fx []Effect) *Job {
	t.Helper()
	for _, f := range fx {
		if f.Kind == Tell && f.Event.Kind == Settle {
			return f.Event.Job
		}
	}
	return nil
}
