package core

import (
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

// answering is a worker whose calls are granted, and answered as told.
type answering struct {
	t *testing.T
	w *Worker
	n uint64
}

func newAnswering(t *testing.T) *answering {
	t.Helper()
	return &answering{t: t, w: newWorker(t, "pair", "closed")}
}

// call is one exchange; it returns the stream and what its settlement teaches.
func (a *answering) call(body string, response ...Event) (*Stream, bucket.Answer) {
	a.t.Helper()
	a.n++
	s := a.w.NewStream(a.n)
	s.Step(headersEvent(true))
	s.Step(Event{Kind: GateHeaders, Now: 1000})
	s.Step(bodyEvent(body))
	s.Step(reply(a.t, s, bucket.Granted))
	var told bucket.Answer
	for _, e := range append(response, Event{Kind: StreamDone, Now: 1300}) {
		for _, f := range s.Step(e) {
			if f.Kind == Tell && f.Event.Kind == Settle {
				told = f.Event.Job.answer
			}
		}
	}
	return s, told
}

func TestOnlyAnswersThatEndedByThemselvesTeach(t *testing.T) {
	const open, capped = `{"model":"m","messages":[]}`, `{"model":"m","max_tokens":7,"messages":[]}`
	const whole = `{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":9,"completion_tokens":5}}`
	body := func(text string, end bool) Event {
		return Event{Kind: ResponseBody, Now: 1200, Body: []byte(text), End: end}
	}
	failed := responseEvent()
	failed.Response.Status = 500
	packed := responseEvent()
	packed.Response.ContentEncoding = "br"
	for _, tt := range []struct {
		name     string
		body     string
		response []Event
		tokens   bucket.Tokens
	}{
		{"whole", open, []Event{responseEvent(), body(whole, true)}, 5},
		{"with a cap", capped, []Event{responseEvent(), body(whole, true)}, 0},
		{"the client left", open, []Event{responseEvent(), body(whole[:40], false)}, 0},
		{"the client left before it began", open, nil, 0},
		{"an error", open, []Event{failed, body(`{"error":{"message":"no"}}`, true)}, 0},
		{"not to be read", open, []Event{packed, body("?", true)}, 0},
		{"nothing in it", open, []Event{responseEvent(), body(`{"choices":[]}`, true)}, 0},
	} {
		_, got := newAnswering(t).call(tt.body, tt.response...)
		if got.Tokens != tt.tokens {
			t.Errorf("%s: %+v, want %d tokens", tt.name, got, tt.tokens)
		}
	}
}

// TestAWorkerReservesByWhatTheStoreTold: only the answer to a settlement that taught something counts.
func TestAWorkerReservesByWhatTheStoreTold(t *testing.T) {
	a := newAnswering(t)
	const open = `{"model":"m","messages":[]}`
	s, taught := a.call(open, responseEvent(), Event{Kind: ResponseBody, Now: 1200, Body: []byte(`{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":9,"completion_tokens":5}}`), End: true})
	if s.plan.Learned != 0 {
		t.Fatal("something was known at first")
	}
	for _, tt := range []struct {
		outcome bucket.SettleOutcome
		told    bucket.Tokens
		learned bucket.Tokens
	}{
		{bucket.SettledLive, 40, 40},
		{bucket.SettledDuplicate, 0, 40}, // of a repetition whose first answer was lost
		{bucket.SettledTooOld, 0, 40},
		{bucket.SettledLate, 60, 60},
		{bucket.SettledUnknown, 0, 0},
	} {
		j := &Job{ID: "x", layout: a.w.layout, answer: taught}
		one, err := j.layout.SettleAt(nil, bucket.SettleRequest{ID: "x", Lease: 1000, Keep: 1000, Cell: 100, Answer: taught}, "s.x")
		if err != nil {
			t.Fatal(err)
		}
		v := numbers(int64(tt.outcome), 1000)
		if tt.outcome != bucket.SettledDuplicate && tt.outcome != bucket.SettledTooOld {
			v = append(v, numbers(int64(tt.told))...)
		}
		a.w.calls[77] = call{jobs: []*Job{j}, sent: []script.Call{one}}
		a.w.Step(storeReply(1400, 77, append(v, script.Value{Text: "s.x"})))
		if s, _ := a.call(open); s.plan.Learned != tt.learned {
			t.Errorf("%+v: %d is reserved by", tt, s.plan.Learned)
		}
	}
}

// TestACallIsAskedForAgainWithLess: an override below what was learned makes no call one that never fits; one
// question more, and the second answer is final.
func TestACallIsAskedForAgainWithLess(t *testing.T) {
	a := newAnswering(t)
	const open = `{"model":"m","messages":[]}`
	s, _ := a.call(open)
	a.w.memory.Told(s.plan.Answer(dialect.Usage{}).Of, 400, 1000)
	s = a.w.NewStream(99)
	s.Step(headersEvent(true))
	s.Step(Event{Kind: GateHeaders, Now: 1000})
	s.Step(bodyEvent(open))
	if s.plan.Learned != 400 {
		t.Fatalf("%+v", s.plan)
	}
	first := s.plan.Items[0].Amount
	never := func() Event {
		return storeReply(1002, 0, append(numbers(int64(bucket.NeverFits), 5000, 0, 1, 0, 100, 100, 0), script.Value{Text: s.parts[0].call.Nonce}))
	}
	calls, refused := 0, 0
	for range 2 {
		for _, f := range s.Step(never()) {
			if f.Kind == Call {
				calls++
			}
			if f.Kind == Answer {
				refused++
			}
		}
		if s.plan.Learned >= 100 || s.plan.Learned < 50 || s.plan.Items[0].Amount > 100 || first <= 100 {
			t.Errorf("%d learned, %d asked for, before %d", s.plan.Learned, s.plan.Items[0].Amount, first)
		}
	}
	if calls != 1 || refused != 1 {
		t.Errorf("asked %d times more, refused %d times", calls, refused)
	}
}

// TestOneShardLearnsOfACall: a call that settles in two shards teaches once, in its org's own.
func TestOneShardLearnsOfACall(t *testing.T) {
	w := newSharded(t, "closed", "closed")
	s := w.NewStream(1)
	s.Step(ofOrg("acme"))
	s.Step(bodyEvent(`{"model":"m","messages":[]}`))
	for i := range s.parts {
		e := says(&s.parts[i], bucket.Granted, 0, 0, 100)
		e.Tag = uint64(i)
		s.Step(e)
	}
	s.Step(responseEvent())
	taught := map[string]bucket.Tokens{}
	for _, f := range s.Step(Event{Kind: ResponseBody, Now: 1200, End: true, Body: []byte(`{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":9,"completion_tokens":5}}`)}) {
		if f.Kind == Tell && f.Event.Kind == Settle {
			taught[f.Event.Job.layout.Tag] = f.Event.Job.answer.Tokens
		}
	}
	if len(taught) != 2 || taught["g"] != 0 || taught["o.acme"] != 5 {
		t.Errorf("%v", taught)
	}
}
