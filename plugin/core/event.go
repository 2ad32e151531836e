// Package core decides: events in, effects out. A Stream is one exchange between a client and a
// provider; a Worker is what outlives exchanges in one VM (the outbox of settlements, leases to
// renew, the table of kill flags).
//
// It knows nothing of the host's API, of sockets or of clocks: every event carries the time.
// Duties of its caller, in order:
//   - give every callback of the host as one event, and apply the effects in the order given;
//   - return "stop" from the callback if Hold is among them, "continue" if not;
//   - answer every Call with exactly one StoreReply or StoreUnsent of the same Tag, unless the
//     exchange ended first;
//   - hand every Tell to the Worker, and call the Worker about every 10 ms with a Tick;
//   - never run two resumes, replies or closes in one callback of the host (the second in a later one),
//     nor a resume inside a callback of the exchange itself.
package core

import (
	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/callout"
	"github.com/emmer-proxy/emmer/plugin/dialect"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

// EventKind names what happened.
type EventKind uint8

// Events of a Stream.
const (
	RequestHeaders   EventKind = iota + 1 // Head, End, GateInVM, Cluster
	RequestBody                           // Size so far; with End also Body, whole
	RequestTrailers                       // Body, whole: trailers end a body that had no End
	GateHeaders                           // the second entry reached its header callback
	StoreReply                            // Tag, Status, Body
	StoreUnsent                           // Tag: the host would not send the call
	Released                              // what a Release said: a call that waited goes on
	ResponseHeaders                       // Response, Ungated, Gated, End
	ResponseBody                          // AtGate, Body is this piece, End
	ResponseTrailers                      // AtGate
	AnswerDue                             // what a Release said: an answer whose head is held goes on
	StreamDone                            // the exchange is over, however it ended
	Recovered                             // a fault of the filter was caught in this exchange
)

// Events of a Worker, beside StoreReply and StoreUnsent.
const (
	Tick         EventKind = iota + 32 // OK: with Shared and Version, what the workers share about kill flags
	Flush                              // the callback that a Wake asked for
	Settle                             // Job
	LeaseTaken                         // Job: a granted reservation to keep alive
	Queued                             // Place: a call waits for its turn
	LeftQueue                          // Place: it waits no longer
	OrgSeen                            // Home: a call of an org came, whose flags are kept there
	KillSeen                           // Flag: a script's answer named a kill flag
	StoreFault                         // Cluster, Class, Text: what kept a call from being decided
	StoreRefused                       // Refusal: what the store said to a call
	Drawn                              // Drawn: what a call takes from this worker's shares while the store is away
	StoreAway                          // Drawn: its shard gave no usable answer
	StoreBack                          // Drawn: its shard gave an answer
	RefusalOver                        // Job: what was granted, though the like was refused
	RefusalAsked                       // Refusal: a call that it covers asks the store all the same
	AnswerHeld                         // Held: the head of an answer waits
	AnswerLet                          // Held: it waits no longer
	SharedStored                       // OK: whether the ShareIf was stored
	Shutdown                           // the plugin ends; Drained answers when nothing is left to send
)

// Event is one thing that happened. Fields beside Kind and Now are those that the kind names.
type Event struct {
	Kind EventKind
	Now  bucket.Millis
	End  bool // nothing of this body follows

	Head     plan.Head
	GateInVM bool   // a root context of the gate lives in this VM
	Cluster  string // the store's cluster as a property of this request, where configured so
	Size     int
	Body     []byte // valid during Step only: of a request, an answer or the store's answer
	Response dialect.ResponseHead
	Ungated  bool // of an answer: the provider's, to a call that no gate held
	Gated    bool // of an answer: the gate's half has seen this head, and nothing of the body yet
	AtGate   bool // it is the gate's half that sees this

	Tag    uint64
	Status string // of the store's answer, empty if it broke off
	Class  callout.Class
	Text   string

	Job   *Job
	Flag  KillFlag
	Home  string
	Place *place
	Held  *heldAnswer

	Refusal *refusal
	Drawn   *drawn

	Shared  []byte
	Version uint32
	OK      bool
}

// EffectKind names what is to be done.
type EffectKind uint8

const (
	Hold                 EffectKind = iota + 1 // return "stop" from this callback
	Call                                       // send Call
	SetHeader                                  // request header Name = Value, at the gate if AtGate
	RemoveHeader                               // request header Name, at the gate if AtGate
	SetResponseHeader                          // Name = Value
	RemoveResponseHeader                       // Name
	EditResponse                               // the piece of the answer at hand becomes Body
	EditBody                                   // the request body, which this entry holds, becomes Stream.Edited of it
	Answer                                     // local reply: Status, Headers, Body
	ResumeRequest                              // let go what this entry holds
	ResumeGate                                 // let go what the gate holds
	ResumeAnswer                               // let go the head of the answer, if it is held here
	SetState                                   // filter state Name = Body, for access logs
	Count                                      // counter Name += N
	Log                                        // a line for the operator: Value
	Tell                                       // an event for the Worker
	Release                                    // give Event to the exchange N in a callback of its own, soon; nothing if it is over
	Wake                                       // call the Worker with Flush in a callback of its own, soon
	ShareIf                                    // store Body as shared data Name if its version is still Version; answer SharedStored
	Share                                      // store Body as shared data Name
	Drained                                    // nothing is left to send: the plugin may end
)

// Effect is one thing to do. Fields beside Kind are those that the kind names.
type Effect struct {
	Kind    EffectKind
	AtGate  bool
	Version uint32
	Status  int
	N       int64
	Name    string
	Value   string
	Body    []byte
	Headers [][2]string
	Call    *StoreCall
	Event   *Event
}

// StoreCall is a call to the store: send Request to Cluster, and answer within Timeout with an event
// that has the same Tag.
type StoreCall struct {
	Tag     uint64
	Cluster string
	Request callout.Request
	Timeout bucket.Millis
}

// effects collects what one step asks for.
type effects []Effect

func (f *effects) add(e Effect) { *f = append(*f, e) }

func (f *effects) count(name string)    { f.add(Effect{Kind: Count, Name: name, N: 1}) }
func (f *effects) log(text string)      { f.add(Effect{Kind: Log, Value: text}) }
func (f *effects) tell(e Event)         { f.add(Effect{Kind: Tell, Event: &e}) }
func (f *effects) call(c StoreCall)     { f.add(Effect{Kind: Call, Call: &c}) }
func (f *effects) hold()                { f.add(Effect{Kind: Hold}) }
func (f *effects) remove(header string) { f.add(Effect{Kind: RemoveHeader, Name: header}) }
