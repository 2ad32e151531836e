// Package dialect knows the APIs of LLM providers on the wire: which path is which API, what a
// request asks for, what an answer reports as used, and how to refuse in the caller's language.
//
// It knows nothing of limits, prices, configuration or the host. Bytes in, facts out. One file
// for each API behind the Dialect interface. Nothing here keeps a body: scanners and meters are
// incremental, give the same result for any split of the same bytes, and are capped.
package dialect

import (
	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/inflate"
)

// Dialect is one API of one family of providers.
type Dialect interface {
	// Name is the stable name used in configuration, logs and metrics, such as "openai-chat".
	Name() string
	// NewScanner reads a request body. Text that a model will be given goes to sink, which may be
	// nil. maxDepth caps the nesting of the JSON.
	NewScanner(h RequestHead, maxDepth int, sink Sink) Scanner
	// NewMeter reads a response body. Text that the model produced goes to sink, which may be nil.
	NewMeter(h ResponseHead, sink Sink) Meter
	// Refusal is a refusal in this API's error shape: its headers, content-type among them, and its body.
	Refusal(r Refusal) (headers [][2]string, body []byte)
	// RateHeaders are the headers that tell this API's callers of their limits.
	RateHeaders() RateHeaders
	// CacheApart says that the input, as this API reports it, leaves out what the cache had a part in, so
	// that Usage.Input is a sum.
	CacheApart() bool
}

// RequestHead is what the head of a request says of its body.
type RequestHead struct {
	ContentType string // with its parameters, such as the boundary of a form
	Path        string // as it was sent, with its query
	Signed      bool   // by AWS's scheme, whatever the dialect: neither the head nor the body may be edited

	Coding  inflate.Format // content coding of the body, 0 = none
	Inflate int64          // most bytes that it may decode to
}

// Span is a range of bytes of a body: [Start, End).
type Span struct{ Start, End int64 }

// Facts is what a request body says of itself.
type Facts struct {
	Model        string // unescaped; empty if absent
	ModelSpan    Span   // the JSON string with its quotes; an edit of the model replaces it
	ModelPlain   bool   // it has no quotes there: the body is a form
	Stream       bool
	IncludeUsage bool   // stream_options.include_usage
	AskUsage     Splice // what makes a stream report its usage that was not asked to; empty if nothing does or need be
	MaxOutput    int64  // the larger of the caps asked for; only if HasMaxOutput
	HasMaxOutput bool
	N            int64 // answers asked for, at least 1

	Decoded     int64 // bytes of the body, where it came in a content coding
	ModelInPath Span  // where the path names the model; then ModelSpan is empty and the body is not edited for it
	Unnamed     bool  // the API has no name for a model: its server has one
	NoChat      bool  // the prompt is texts without the frame of a chat around them
	NoOutput    bool  // the model writes nothing that is billed: embeddings, rerank
	Free        bool  // the provider bills nothing for the call: counting tokens
	Sealed      bool  // the head and the body are signed: neither may be edited
	Background  bool  // the answer comes by another call, and with it the usage

	TokenIDs    int64         // tokens of the prompt beside its texts: those that came as numbers, or as sound, or sealed
	Inputs      int64         // texts to embed or to complete
	Documents   int64         // documents to rank
	Chunks      int64         // pieces of them that count as one where searches are billed
	Images      int64         // pictures to make
	AudioMillis bucket.Millis // length of the sound to hear, as far as the body tells
}

// setModel takes the model that a body names. One in the path wins: it is who is asked.
func (f *Facts) setModel(k kinds, p []byte, at Span) {
	if k == kindString && f.ModelInPath == (Span{}) {
		f.Model, f.ModelSpan = string(unescape(nil, p)), at
	}
}

// inputItem takes an element of a list of inputs: a text, a list of tokens, or one token of an input that
// is the list itself.
func (f *Facts) inputItem(k kinds) {
	if k != kindNumber {
		f.Inputs++
		return
	}
	f.Inputs = max(f.Inputs, 1)
	f.TokenIDs++
}

// inputToken takes an element of a list of tokens.
func (f *Facts) inputToken(k kinds) {
	if k == kindNumber {
		f.TokenIDs++
	}
}

// inPath is what a path says of a call.
type inPath struct {
	model  string
	at     Span
	stream bool
	sealed bool
}

// CacheApart: most APIs count cached input as input.
func (inPath) CacheApart() bool { return false }

func (c inPath) facts() Facts {
	return Facts{Model: c.model, ModelInPath: c.at, Stream: c.stream, Sealed: c.sealed}
}

// Fault is why a request body can't be read: Status 400 or 413, Code a stable snake_case word,
// Param the field's path if there is one, Message a sentence that says what to do.
type Fault struct {
	Status         int
	Code           string
	Param, Message string
}

func (f *Fault) Error() string { return f.Message }

// Scanner reads one request body in pieces of any size.
type Scanner interface {
	// Write takes the next bytes. After a Fault every further call returns the same one.
	Write(p []byte) *Fault
	// Close ends the body and gives its facts.
	Close() (Facts, *Fault)
}

// UsageHeaders is a Dialect whose answers may say in their heads what was used.
type UsageHeaders interface {
	// UsageHeaders are the names of those headers.
	UsageHeaders() []string
}

// ResponseHead is what the head of an answer says of its body.
type ResponseHead struct {
	Usage           []string // values of the headers that the dialect names; empty where they are absent
	Status          int
	ContentType     string
	ContentEncoding string
	HasLength       bool // it states its length
	Length          int64
}

// Usage is what a provider reports. What is said to be part of a figure is included in it.
type Usage struct {
	Input       bucket.Tokens
	CachedInput bucket.Tokens // part of Input that was read from the provider's cache
	CacheWrite  bucket.Tokens // part of Input that was written to it, for as long as is usual
	CacheHour   bucket.Tokens // part of Input that was written to it for an hour
	AudioInput  bucket.Tokens // part of Input
	Output      bucket.Tokens
	Reasoning   bucket.Tokens // part of Output
	AudioOutput bucket.Tokens // part of Output

	SearchUnits int64         // of reranking
	Images      int64         // made
	Searches    int64         // of the web, by the provider's own tool
	AudioMillis bucket.Millis // heard
}

// Trust says how far a usage can be trusted.
type Trust uint8

const (
	NoUsage     Trust = iota // there is none
	InputUsage               // what is said of the input is right; more was produced than it says
	OutputUsage              // what is said of the output is right; of the input nothing is said
	WholeUsage               // it is the truth
)

// Meter reads one response body in pieces of any size.
type Meter interface {
	// Write takes the next bytes that the client is given.
	Write(p []byte)
	// Close ends the body, whether or not it was whole.
	Close()
	// Usage is the provider's figure so far. Pictures are counted, also where none is reported.
	Usage() (Usage, Trust)
	// Produced says whether any output of the model was seen.
	Produced() bool
	// Failed says whether the answer is an error, by status or in-band.
	Failed() bool
	// Finished says whether the answer came to its own end ([DONE], or a whole JSON body).
	Finished() bool
	// Opaque says that the body is of a kind this meter can't read; it need not be fed further.
	Opaque() bool
	// Plain says that what was seen so far may be a JSON answer that comes whole, whatever its label says.
	Plain() bool
}

// Reason classes a refusal.
type Reason uint8

const (
	RateLimited  Reason = iota + 1 // 429: try again later
	OverBudget                     // 402: a budget is used up
	Killed                         // 403: a kill flag is set
	Unavailable                    // 503: the store can't be asked and the policy is closed
	BadRequest                     // 400
	TooLarge                       // 413
	Unsupported                    // 415
	Unauthorized                   // 401: no identity
	NotFound                       // 404: unknown path or model
	Internal                       // 500: recovered fault of the filter itself
)

// Refusal is a decision not to forward a call.
type Refusal struct {
	Reason  Reason
	Status  int           // HTTP status; 0 = the usual one of Reason
	Code    string        // stable snake_case word, such as rate_limit_exceeded
	Message string        // a sentence for the person who reads the error
	Param   string        // the field at fault, if any
	Retry   bucket.Millis // after which it is worth trying again; 0 if that is not known
}
