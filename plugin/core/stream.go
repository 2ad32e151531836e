package core

import (
	"strconv"
	"strings"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

// State is where an exchange stands.
type State uint8

const (
	Fresh      State = iota // nothing seen yet
	Passing                 // not a call of ours: out of the way for good
	Reading                 // the request body is being collected
	Deciding                // the store was asked
	Parked                  // granted, and its turn has not come
	Forwarded               // the call went upstream, its answer has not begun
	Responding              // the answer flows past the meter
	Answered                // the metered answer is whole and settled
	Refused                 // we sent the answer ourselves
	Preempted               // another filter answered before we decided
	Closed                  // over
)

var stateNames = [...]string{"fresh", "passing", "reading", "deciding", "parked", "forwarded", "responding", "answered", "refused", "preempted", "closed"}

func (s State) String() string { return stateNames[s] }

// Stream is one exchange. Its zero value is not usable; see Worker.NewStream.
type Stream struct {
	w     *Worker
	id    string // of the reservation
	n     uint64 // of the exchange in this VM
	state State

	gate     bool        // there is a gate to hold the headers
	gateHeld bool        // it holds them now
	kept     bool        // this entry holds the body
	hadSize  bool        // the client sent content-length, which was removed
	edits    [][2]string // headers to set
	drops    []string    // headers to remove
	coded    bool        // the provider is asked for an answer in a coding
	edit     bool        // the body is to be edited before it leaves
	size     int         // bytes of the body

	dialect dialect.Dialect
	caller  plan.Caller
	cluster string
	home    string // of the kill flags of the caller's org, if it has a shard
	plan    *plan.Plan

	parts    []part        // of the reservation, one for each shard of the store
	alone    [1]part       // where there is one, as mostly
	flags    []string      // the fields of kill flags that stop the call
	askedAt  bucket.Millis // when the body was whole
	waited   bucket.Millis // from then to the decision
	deadline bucket.Millis // of the calls for one decision
	leased   bool          // all of it is held, and the Worker keeps it alive
	reply    bucket.ReserveReply
	place    *place        // in the queue, once it had one
	parkedAt bucket.Millis // when it got it
	unqueued bool          // it might have waited, had there been room here

	meter   dialect.Meter
	filter  *dialect.UsageFilter // of an answer with a frame that is not the caller's; else nil
	output  *plan.Output
	atGate  bool        // the gate's half reads the answer
	waits   *heldAnswer // the head of the answer, while it is held; else nil
	settled bool
	jobs    []*Job // the settlements, once they were told
	only    [1]*Job
	record  record
}

// State is where the exchange stands.
func (s *Stream) State() State { return s.state }

// Step takes one event and says what is to be done.
func (s *Stream) Step(event Event) []Effect {
	fx := s.w.lend()
	e := &event
	switch e.Kind {
	case RequestHeaders:
		if s.state == Fresh {
			s.onRequestHeaders(e, &fx)
		}
	case RequestBody, RequestTrailers:
		s.onRequestBody(e, &fx)
	case GateHeaders:
		s.onGateHeaders(&fx)
	case StoreReply, StoreUnsent:
		s.onStore(e, &fx)
	case Released:
		s.onReleased(e, &fx)
	case ResponseHeaders:
		s.onResponseHeaders(e, &fx)
	case ResponseBody:
		s.onResponseBody(e, &fx)
	case ResponseTrailers:
		s.onResponseTrailers(e, &fx)
	case AnswerDue:
		s.onAnswerDue(&fx)
	case StreamDone:
		s.onDone(e, &fx)
	case Recovered:
		s.onRecovered(e, &fx)
	}
	return fx
}

func (s *Stream) onRequestHeaders(e *Event, fx *effects) {
	c := s.w.config
	// Ours to set, also on what passes: a client that could would choose its own target.
	for i, h := range e.Head.Headers {
		if strings.HasPrefix(h[0], "x-emmer-") && !seen(e.Head.Headers[:i], h[0]) {
			fx.remove(h[0])
		}
	}
	d, ok := dialect.Recognise(e.Head.Method, e.Head.Path)
	if upgrade := upgrades(e.Head); !ok || upgrade {
		s.unmetered(e.Head, ok, upgrade, fx)
		return
	}
	s.dialect, s.record.dialect = d, d.Name()
	fx.count("emmer.requests")
	if dialect.Ambiguous(e.Head.Method, e.Head.Path) {
		// No client library writes such a path, and which of the calls the provider would take it for can't be known.
		s.refuse(plan.Refuse(nil, plan.AmbiguousPath()), fx)
		return
	}
	var length, foreign string
	var encoding, accept []string
	signed := false
	for _, h := range e.Head.Headers {
		switch h[0] {
		case "content-type":
			if !dialect.ReadsCharset(h[1]) {
				foreign = h[1]
			}
		case "content-length":
			length = h[1]
		case "content-encoding":
			encoding = append(encoding, h[1])
		case "accept-encoding":
			accept = append(accept, h[1])
		case "authorization":
			signed = signed || dialect.Signs(h[1], "accept-encoding")
		}
	}
	s.gate = c.Hold == config.HoldPair && e.GateInVM
	if c.Hold == config.HoldPair && !e.GateInVM {
		fx.count("emmer.mismatch")
		if c.Mismatch == config.MismatchDeny {
			fx.log("no emmer.gate in this VM: list it behind emmer with the same module, vm_id and environment, or set hold.mode to flag")
			s.refuse(plan.Refuse(nil, plan.Misconfigured()), fx)
			return
		}
	}
	s.cluster = c.Store.Cluster
	if s.cluster == "" {
		s.cluster = e.Cluster
	}
	who, refusal := plan.Identify(c, e.Head)
	if refusal != nil {
		s.refuse(plan.Refuse(nil, *refusal), fx)
		return
	}
	s.caller = who
	if org := plan.Org(c, who); org != "" {
		if s.home = s.w.layout.Of(org).Ctl(); s.w.kills.orgs.stale(s.home, e.Now) {
			fx.tell(Event{Kind: OrgSeen, Now: e.Now, Home: s.home})
		}
	}
	if s.w.kills.any() && s.refuseKilled(plan.HeadKills(c, who), e.Now, fx) {
		return
	}
	coding, ok := dialect.Coding(strings.Join(encoding, ","))
	if !ok {
		s.refuse(plan.Refuse(nil, plan.UnsupportedEncoding(strings.Join(encoding, ", "))), fx)
		return
	}
	s.caller.Body.Coding, s.caller.Body.Inflate = coding, int64(c.Body.Inflate)
	if foreign != "" {
		s.refuse(plan.Refuse(nil, plan.UnsupportedType(foreign)), fx)
		return
	}
	if n, err := strconv.ParseUint(length, 10, 63); err == nil && n > uint64(c.Body.Hold) {
		s.tooLarge(fx)
		return
	}
	if len(accept) > 0 && !signed {
		// An answer that we can't read can't be metered. One that comes in another coding all the
		// same is opaque.
		fx.remove("accept-encoding")
		if dialect.AcceptsGzip(strings.Join(accept, ",")) {
			s.coded = true
			fx.add(Effect{Kind: SetHeader, Name: "accept-encoding", Value: "gzip"})
		}
	}
	if length != "" && !e.End {
		// Envoy never corrects content-length: one that no longer fits the body is request
		// smuggling on a pooled HTTP/1.1 connection (seen on Envoy 1.40). It is set again, exactly,
		// when the decision is made and the headers are still held.
		s.hadSize = true
		fx.remove("content-length")
	}
	s.state = Reading
	if e.End {
		s.decide(nil, e.Now, fx)
		return
	}
	if c.Hold == config.HoldFlag {
		fx.hold()
	}
}

// unmetered decides on a call that no meter can read. On the path of an LLM API routes.unknown has a
// say, unless the call costs nothing; what may pass is counted and logged. A known call that asks for an
// upgrade is refused whatever it says: no API upgrades a POST, and a provider that ignores the wish would
// answer it unmetered.
func (s *Stream) unmetered(h plan.Head, known, upgrade bool, fx *effects) {
	billed := (known || dialect.LLMPath(h.Path)) && (upgrade || !dialect.Free(h.Method, h.Path))
	if billed && (known || s.w.config.UnknownRoute == config.Deny) {
		s.dialect = dialect.Speaks(h.Path)
		refusal := plan.UnknownRoute(h.Path)
		if upgrade {
			refusal = plan.UpgradeDenied()
		}
		s.refuse(plan.Refuse(nil, refusal), fx)
		return
	}
	s.state = Passing
	if billed {
		fx.count("emmer.unmetered")
		s.record.decision = "unmetered"
		fx.add(Effect{Kind: SetState, Name: "emmer", Body: s.record.json(s)})
	}
}

// upgrades says whether a request would leave HTTP: for a WebSocket, as realtime APIs do.
func upgrades(h plan.Head) bool {
	if h.Method == "CONNECT" {
		return true
	}
	for _, kv := range h.Headers {
		if kv[0] == "upgrade" {
			return true
		}
	}
	return false
}

func seen(headers [][2]string, name string) bool {
	for _, h := range headers {
		if h[0] == name {
			return true
		}
	}
	return false
}

func (s *Stream) tooLarge(fx *effects) {
	s.refuse(plan.Refuse(nil, plan.BodyTooLarge(s.w.config.Body.Hold)), fx)
}

func (s *Stream) onRequestBody(e *Event, fx *effects) {
	switch s.state {
	case Reading:
		switch {
		case e.Size > s.w.config.Body.Hold || len(e.Body) > s.w.config.Body.Hold:
			s.tooLarge(fx)
		case e.Kind == RequestBody && !e.End:
			fx.hold()
		default:
			s.decideBody(e, fx)
		}
	case Deciding, Parked:
		// More after the end can't be; trailers that follow a kept body wait with it.
		if s.kept {
			fx.hold()
		}
	case Refused:
		fx.hold()
	}
}

// decideBody decides at the end of a body. After trailers the length is not stated again: a
// message with both would have to choose.
func (s *Stream) decideBody(e *Event, fx *effects) {
	if e.Kind == RequestTrailers {
		s.hadSize = false
	}
	s.decide(e.Body, e.Now, fx)
}

// decide plans the call and asks the store. It runs inside a callback of the exchange.
func (s *Stream) decide(body []byte, now bucket.Millis, fx *effects) {
	c := s.w.config
	if len(body) == 0 {
		s.refuse(plan.Refuse(nil, plan.BodyMissing()), fx)
		return
	}
	p, refusal := s.w.memory.Build(c, s.dialect, s.caller, body, now)
	s.plan = p
	if len(p.Ignored) > 0 {
		fx.count("emmer.claim_ignored")
	}
	if refusal != nil {
		s.refuse(plan.Refuse(p, *refusal), fx)
		return
	}
	if s.refuseKilled(p.Kills, now, fx) {
		return
	}
	s.size, s.edit = len(body), len(p.Edits) > 0
	length := p.Length(s.size)
	if s.edit && length > c.Body.Hold {
		// Policy for a body that an edit makes larger than what may be held, as it can where it leaves
		// without its coding: refused, before anything is taken for it. Envoy would refuse it afterwards.
		s.tooLarge(fx)
		return
	}
	if s.hadSize {
		s.edits = append(s.edits, [2]string{"content-length", strconv.Itoa(length)})
	}
	if p.Decodes() {
		s.drops = append(s.drops, "content-encoding")
	}
	if p.Asks {
		// A frame can't be taken out of an answer that comes in a coding.
		fx.count("emmer.usage_asked")
		if s.coded {
			s.drops = append(s.drops, "accept-encoding")
		}
	} else if p.Unasked {
		fx.count("emmer.usage_unasked")
	}
	if p.Path != "" {
		s.edits = append(s.edits, [2]string{":path", p.Path})
	}
	if len(c.Targets) > 0 {
		s.edits = append(s.edits, [2]string{"x-emmer-target", p.Target.Name})
	}
	s.unqueued = !s.w.parked.offer(p.Items, s.size)
	if s.refuseRemembered(now, fx) {
		return
	}
	if len(p.Items) == 0 {
		s.record.decision = plan.Granted
		s.grant(true, fx)
		return
	}
	if !s.reserve(now, fx) {
		s.conclude(true, fx)
		return
	}
	s.state = Deciding
	// Where the gate holds the headers and nothing is left to edit, the body is handed over to it:
	// one resume instead of two. A gate that was not reached yet may not exist on this chain.
	if !(s.gateHeld && !s.edit) {
		s.kept = true
		fx.hold()
	}
}

func (s *Stream) onGateHeaders(fx *effects) {
	switch s.state {
	case Reading, Deciding, Parked:
		s.gateHeld = true
		fx.hold()
	case Forwarded:
		s.applyEdits(true, fx)
	case Refused, Preempted, Closed:
		fx.hold()
	}
}

// refuseKilled refuses by this worker's own table of kill flags, without asking the store.
func (s *Stream) refuseKilled(names []string, now bucket.Millis, fx *effects) bool {
	f, ok := s.w.kills.find(names, s.home, now)
	if !ok {
		return false
	}
	fx.count("emmer.killed_locally")
	s.refuse(plan.KilledLocally(f.Field, f.Value), fx)
	return true
}

// grant lets the request go. inCallback: the request's own callback is running, so that returning
// from it without Hold is what lets go of this entry.
func (s *Stream) grant(inCallback bool, fx *effects) {
	s.state = Forwarded
	fx.count("emmer.granted")
	if s.plan.Learned > 0 {
		fx.count("emmer.output_learned")
	}
	if s.gateHeld || !s.gate {
		s.applyEdits(s.gateHeld, fx)
	}
	if s.edit {
		fx.add(Effect{Kind: EditBody})
		s.edit = false
	}
	if s.kept && !inCallback {
		fx.add(Effect{Kind: ResumeRequest})
	}
	if s.gateHeld {
		fx.add(Effect{Kind: ResumeGate})
	}
	s.kept, s.gateHeld = false, false
}

// Edited is the body as it is to leave. It is made when it leaves: no call that waits for the store
// keeps a body in this VM, whose memory is bounded. False: body is not the one that was planned.
func (s *Stream) Edited(body []byte) ([]byte, bool) {
	if s.plan == nil || len(body) != s.size {
		return nil, false
	}
	return s.plan.Edited(body)
}

// applyEdits sets the headers that the decision brought, once.
func (s *Stream) applyEdits(atGate bool, fx *effects) {
	for _, h := range s.edits {
		fx.add(Effect{Kind: SetHeader, AtGate: atGate, Name: h[0], Value: h[1]})
	}
	for _, name := range s.drops {
		fx.add(Effect{Kind: RemoveHeader, AtGate: atGate, Name: name})
	}
	s.edits, s.drops = nil, nil
}

// latencyHeader tells the client how long the gateway held its call for the decision, in ms.
const latencyHeader = "x-gateway-latency-ms"

// refuse answers in place of the provider. At most once: the state it leaves is final.
func (s *Stream) refuse(d plan.Denial, fx *effects) {
	s.state = Refused
	s.edit, s.edits, s.drops = false, nil, nil
	dia := s.dialect
	if dia == nil {
		dia = dialect.OpenAIChat
	}
	headers, body := dia.Refusal(d.Refusal)
	headers = append(headers, d.Headers...)
	s.record.decision, s.record.limit, s.record.retry = d.Decision(), d.Limit, d.Retry
	s.record.code, s.record.status = d.Refusal.Code, d.Refusal.HTTPStatus()
	fx.count("emmer.refused")
	fx.count("emmer." + s.record.decision)
	headers = append(headers, [2]string{latencyHeader, strconv.FormatInt(int64(s.waited), 10)})
	fx.add(Effect{Kind: Answer, Status: s.record.status, Headers: headers, Body: body})
	fx.hold()
}

// onRecovered answers after a fault of the filter was caught: no stream stays parked.
func (s *Stream) onRecovered(e *Event, fx *effects) {
	fx.count("emmer.recovered")
	for _, j := range s.jobs {
		// What the faulty step asked for may be lost, and the settlement with it: the lease would be
		// renewed for ever. Told twice it is booked once.
		again := *j
		fx.tell(Event{Kind: Settle, Now: e.Now, Job: &again})
	}
	if s.place != nil && s.state != Parked {
		// The same of its place in the queue, which would be kept for ever. Left twice it is left once.
		fx.tell(Event{Kind: LeftQueue, Now: e.Now, Place: s.place})
	}
	switch s.state {
	case Fresh, Reading, Deciding, Parked:
		s.cancel(e.Now, fx)
		if s.state == Parked {
			s.leave(e.Now, fx)
		}
		s.refuse(plan.Refuse(nil, plan.Internal()), fx)
	case Forwarded:
		// It may be on its way or still parked: answer, and book the prompt as if it was sent.
		s.settle(e.Now, false, fx)
		s.refuse(plan.Refuse(nil, plan.Internal()), fx)
	case Responding:
		// The answer flows on unmetered; what was seen so far is booked.
		s.loseHeld(fx)
		s.finish(e.Now, false, fx)
	}
	if s.waits != nil {
		// Whatever was at fault, its head goes on, without the cost.
		s.dropWait(fx)
		fx.add(Effect{Kind: ResumeAnswer})
	}
}
