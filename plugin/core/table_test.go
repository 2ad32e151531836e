package core

import (
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/callout"
	"github.com/emmer-proxy/emmer/plugin/dialect"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

var update = flag.Bool("update", false, "rewrite testdata/transitions.txt; read the diff before you commit it")

// reach brings a new stream into a state, in each hold mode.
func reach(t *testing.T, w *Worker, pair bool, to State) *Stream {
	t.Helper()
	s := w.NewStream(7)
	step := func(e Event) { s.Step(e) }
	switch to {
	case Fresh:
	case Passing:
		step(Event{Kind: RequestHeaders, Now: 1000, GateInVM: pair, Head: plan.Head{Method: "GET", Path: "/healthz"}})
	case Reading:
		step(headersEvent(pair))
		if pair {
			step(Event{Kind: GateHeaders, Now: 1000})
		}
	case Refused:
		step(Event{Kind: RequestHeaders, Now: 1000, GateInVM: pair, Head: plan.Head{Method: "POST", Path: "/v1/chat/completions"}})
	case Preempted:
		step(headersEvent(pair))
		step(responseEvent())
	case Deciding, Parked, Forwarded, Responding, Answered, Closed:
		s = reach(t, w, pair, Reading)
		step(bodyEvent(chat))
		if to == Deciding {
			break
		}
		if to == Parked {
			step(parkedReply(t, s, 700))
			break
		}
		step(reply(t, s, bucket.Granted))
		if to == Forwarded {
			break
		}
		e := responseEvent()
		e.Gated = pair
		step(e)
		if to == Responding {
			break
		}
		step(Event{Kind: ResponseBody, Now: 1200, Body: []byte(answer), End: true, AtGate: pair})
		step(Event{Kind: AnswerDue, Now: 1200})
		if to == Closed {
			step(Event{Kind: StreamDone, Now: 1300})
		}
	}
	if s.State() != to {
		t.Fatalf("wanted %v, reached %v", to, s.State())
	}
	return s
}

// TestEveryPairOfStateAndEvent writes down what each event does in each state, illegal ones
// included: nothing is implicit.
func TestEveryPairOfStateAndEvent(t *testing.T) {
	events := func(s *Stream) []Event {
		list := []Event{
			headersEvent(true),
			{Kind: RequestBody, Now: 1001, Size: 10},
			bodyEvent(chat),
			{Kind: RequestTrailers, Now: 1001, Body: []byte(chat), End: true},
			{Kind: GateHeaders, Now: 1001},
			storeFails(1002, 0, callout.NoScript),
			storeFails(1002, 0, callout.Unavailable),
			{Kind: StoreUnsent, Now: 1002},
			{Kind: Released, Now: 1003},
			{Kind: Released, Now: 1003, Flag: KillFlag{Field: "key:k", Value: "0|ann|fire"}},
			{Kind: Released, Now: 1003, End: true},
			responseEvent(),
			{Kind: ResponseBody, Now: 1200, Body: []byte(answer)},
			{Kind: ResponseBody, Now: 1200, Body: []byte(answer), End: true},
			{Kind: ResponseTrailers, Now: 1200, End: true},
			{Kind: ResponseBody, Now: 1200, Body: []byte(answer), AtGate: true},
			{Kind: ResponseBody, Now: 1200, Body: []byte(answer), End: true, AtGate: true},
			{Kind: ResponseTrailers, Now: 1200, End: true, AtGate: true},
			{Kind: AnswerDue, Now: 1240},
			{Kind: Recovered, Now: 1250},
			{Kind: StreamDone, Now: 1300},
		}
		if s.plan != nil && len(s.parts) > 0 {
			list = append(list, parkedReply(t, s, 700), reply(t, s, bucket.Granted), reply(t, s, bucket.Denied), reply(t, s, bucket.Killed), reply(t, s, bucket.NeverFits), reply(t, s, bucket.Settled))
		}
		return list
	}
	var out strings.Builder
	for _, mode := range []string{"pair", "flag"} {
		for st := Fresh; st <= Closed; st++ {
			w := newWorker(t, mode, "closed")
			for i := range events(reach(t, w, mode == "pair", st)) {
				s := reach(t, newWorker(t, mode, "closed"), mode == "pair", st)
				e := events(s)[i]
				name := eventNames[e.Kind]
				if e.End {
					name += "/end"
				}
				if e.AtGate {
					name += "/at-gate"
				}
				if e.Flag.Field != "" {
					name += "/killed"
				}
				if e.Kind == StoreReply {
					r := callout.Read(e.Status, e.Body)
					name += "/" + r.Class.String()
					if len(r.Values) > 0 {
						name += fmt.Sprintf("(%d)", r.Values[0].Int)
						if r.Values[0].Int == 1 && r.Values[4].Int > 0 {
							name += "/later"
						}
					}
				}
				fx := s.Step(e)
				fmt.Fprintf(&out, "%s %-10s %-26s -> %-10s %s\n", mode, st, name, s.State(), kinds(fx))
			}
		}
	}
	golden(t, "transitions.txt", out.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(g), len(w)) {
		var a, b string
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			t.Errorf("%s:%d\n got %s\nwant %s", path, i+1, a, b)
		}
	}
}

// TestRandomEventsKeepThePromises throws events in any order at a stream and checks the laws of
// section "one answer, one settlement": at most one local reply and no resume after it; a
// reservation that may exist is closed exactly once; nothing traps.
func TestRandomEventsKeepThePromises(t *testing.T) {
	for seed := range int64(3000) {
		r := rand.New(rand.NewSource(seed))
		mode := []string{"pair", "flag"}[r.Intn(2)]
		failure := []string{"closed", "open", "local"}[r.Intn(3)]
		w := newWorker(t, mode, failure)
		gate := mode == "pair"
		s := w.NewStream(uint64(seed))
		answers, settles, resumes, called, granted := 0, 0, 0, false, false
		var first *Job      // the settlement
		var cause EventKind // of the effects
		apply := func(fx []Effect) {
			for _, f := range fx {
				switch f.Kind {
				case Answer:
					answers++
				case ResumeRequest, ResumeGate:
					resumes++
					if answers > 0 {
						t.Fatalf("seed %d: resumed after an answer", seed)
					}
				case Call:
					called = true
				case Tell:
					switch {
					case f.Event.Kind != Settle:
					case first != nil && cause == Recovered && reflect.DeepEqual(f.Event.Job.Items, first.Items) && f.Event.Job.ID == first.ID:
						// The same once more: its id makes the store book it once.
					default:
						first = f.Event.Job
						settles++
					}
					w.Step(*f.Event)
				}
			}
		}
		for range 3 + r.Intn(14) {
			var e Event
			switch r.Intn(13) {
			case 12:
				e = Event{Kind: []EventKind{Released, AnswerDue}[r.Intn(2)], Now: 1005, End: r.Intn(4) == 0}
			case 0, 1:
				e = headersEvent(gate)
				e.End = r.Intn(8) == 0
			case 2:
				e = Event{Kind: RequestBody, Now: 1001, Size: r.Intn(2000)}
			case 3, 4:
				e = bodyEvent(chat[:len(chat)-r.Intn(2)])
			case 5:
				e = Event{Kind: GateHeaders, Now: 1001}
			case 6:
				if len(s.parts) == 0 {
					continue
				}
				outcome := bucket.Outcome(1 + r.Intn(6))
				e = reply(t, s, outcome)
				if outcome == bucket.Granted && r.Intn(2) == 0 {
					e = parkedReply(t, s, 700)
				}
				granted = granted || s.State() == Deciding && s.awaiting() && outcome <= bucket.Replayed
			case 7:
				e = storeFails(1002, 0, callout.Class(1+r.Intn(5)))
			case 8:
				e = Event{Kind: StoreUnsent, Now: 1002}
			case 9:
				e = responseEvent()
				e.Response.Status = []int{200, 500}[r.Intn(2)]
				e.End = r.Intn(4) == 0
				e.Gated = gate && r.Intn(4) > 0
			case 10:
				e = Event{Kind: ResponseBody, Now: 1003, Body: []byte(answer[:r.Intn(len(answer))]), End: r.Intn(2) == 0, AtGate: gate && r.Intn(2) == 0}
			case 11:
				e = Event{Kind: []EventKind{ResponseTrailers, Recovered, RequestTrailers}[r.Intn(3)], Now: 1004, AtGate: gate && r.Intn(2) == 0}
			}
			cause = e.Kind
			apply(s.Step(e))
		}
		cause = StreamDone
		apply(s.Step(Event{Kind: StreamDone, Now: 2000}))
		apply(s.Step(Event{Kind: StreamDone, Now: 2000}))
		if n := len(w.parked.places); n != 0 || w.parked.bytes != 0 {
			t.Fatalf("seed %d: %d calls still wait for their turn, with %d bytes", seed, n, w.parked.bytes)
		}
		if n := len(w.answers.list); n != 0 {
			t.Fatalf("seed %d: %d answers still wait for their cost", seed, n)
		}
		if answers > 1 || settles > 1 {
			t.Fatalf("seed %d: %d answers, %d settlements", seed, answers, settles)
		}
		if granted && settles != 1 {
			t.Fatalf("seed %d: granted and settled %d times (state %v)", seed, settles, s.State())
		}
		if !called && settles > 0 && failure == "closed" {
			t.Fatalf("seed %d: settled what was never reserved", seed)
		}
	}
}

// TestAnySplitOfAnAnswerSettlesTheSame cuts an answer at every offset.
func TestAnySplitOfAnAnswerSettlesTheSame(t *testing.T) {
	stream := "data: {\"choices\":[{\"delta\":{\"content\":\"h\u00e9llo there\"}}]}\r\n\r\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n"
	for _, c := range []struct{ kind, body string }{{"application/json", answer}, {"text/event-stream", stream}} {
		settle := func(cuts ...int) string {
			s := reach(t, newWorker(t, "flag", "closed"), false, Forwarded)
			s.Step(Event{Kind: ResponseHeaders, Now: 1100, Response: dialect.ResponseHead{Status: 200, ContentType: c.kind}})
			at := 0
			for _, cut := range append(cuts, len(c.body)) {
				piece := c.body[at:cut]
				at = cut
				if fx := s.Step(Event{Kind: ResponseBody, Now: 1200, Body: []byte(piece), End: cut == len(c.body)}); cut == len(c.body) {
					j := jobOf(t, fx)
					if j == nil {
						t.Fatal("not settled at the end of the answer")
					}
					return fmt.Sprint(j.Items)
				}
			}
			return ""
		}
		want := settle()
		for i := 1; i < len(c.body); i++ {
			if got := settle(i); got != want {
				t.Fatalf("%s cut at %d: %s, whole: %s", c.kind, i, got, want)
			}
		}
	}
}

func TestAbortMidStreamCostsThePromptAndWhatWasSeen(t *testing.T) {
	s := reach(t, newWorker(t, "flag", "closed"), false, Forwarded)
	s.Step(Event{Kind: ResponseHeaders, Now: 1100, Response: dialect.ResponseHead{Status: 200, ContentType: "text/event-stream"}})
	s.Step(Event{Kind: ResponseBody, Now: 1100, Body: []byte("data: {\"choices\":[{\"delta\":{\"content\":\"one two three four five\"}}]}\n\n")})
	j := jobOf(t, s.Step(Event{Kind: StreamDone, Now: 1200}))
	if j == nil {
		t.Fatal("an aborted stream was not settled")
	}
	got, in := j.Items[0].Amount, bucket.Amount(s.plan.Input)
	if got <= in || got >= s.plan.Items[0].Amount {
		t.Errorf("settled %d: want more than the prompt (%d) and less than the reservation (%d)", got, in, s.plan.Items[0].Amount)
	}
}

func TestTheBodyIsHandedOverOnlyToAGateThatHoldsTheHeaders(t *testing.T) {
	held := reach(t, newWorker(t, "pair", "closed"), true, Reading)
	if got := kinds(held.Step(bodyEvent(chat))); got != "call" {
		t.Errorf("with a gate that holds: %q, want the call and the body let go", got)
	}
	s := newWorker(t, "pair", "closed").NewStream(1)
	s.Step(headersEvent(true))
	if got := kinds(s.Step(bodyEvent(chat))); got != "call hold" {
		t.Errorf("with a gate that was not reached: %q, want the body held here", got)
	}
}

func TestAnEditedBodyWaitsHereAndLeavesInOrder(t *testing.T) {
	targets := `{"up": {"provider": "openai", "models": {"m": {"name": "a-much-longer-deployment-name"}}}}`
	s := reach(t, newWorkerWith(t, "pair", "closed", targets), true, Reading)
	if got := kinds(s.Step(bodyEvent(chat))); got != "call hold" {
		t.Errorf("at the end of the body: %q", got)
	}
	fx := s.Step(reply(t, s, bucket.Granted))
	body := strings.Replace(chat, `"m"`, `"a-much-longer-deployment-name"`, 1)
	want := fmt.Sprintf("tell(lease-taken) set(content-length=%d@gate) set(x-emmer-target=up@gate) replace resume resume-gate", len(body))
	if got := kinds(fx); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, ok := s.Edited([]byte(chat)); !ok || string(got) != body {
		t.Errorf("the body became %s", got)
	}
	if _, ok := s.Edited([]byte(chat + " ")); ok {
		t.Error("another body than the one that was planned was edited: its length has been stated already")
	}
}

// TestOurHeadersAreTakenOffWhateverPasses: a route table obeys x-emmer-target also on paths that are
// not metered.
func TestOurHeadersAreTakenOffWhateverPasses(t *testing.T) {
	for _, path := range []string{"/healthz", "/v1/chat/completions"} {
		s := newWorker(t, "flag", "closed").NewStream(1)
		fx := s.Step(Event{Kind: RequestHeaders, Now: 1000, Head: plan.Head{Method: "POST", Path: path, Headers: [][2]string{
			{"x-api-key", "k"}, {"x-emmer-target", "a"}, {"x-emmerson", "b"}, {"x-emmer-target", "c"}, {"x-emmer-", "d"},
		}}})
		if got, want := kinds(fx), "remove(x-emmer-target) remove(x-emmer-)"; !strings.HasPrefix(got, want) || strings.Count(got, "x-emmer") != 2 {
			t.Errorf("%s: got %q, want %q once", path, got, want)
		}
	}
}
