// Package dialect knows the APIs of LLM providers on the wire: which path is which API, what a
// request asks for, what an answer reports as used, and how to refuse in the caller's language.
//
// It knows nothing of limits, prices, configuration or the host. Bytes in, facts out. One file
// for each API behind the Dialect interface. Nothing here keeps a body: scanners and meters are
// incremental, give the same result for any split of the same bytes, and are capped.
package dialect

import "github.com/emmer-proxy/emmer/bucket"

// Dialect is one API of one family of providers.
type Dialect interface {
	// Name is the stable name used in configuration, logs and metrics, such as "openai-chat".
	Name() string
	// NewScanner reads a request body. Text that a model will be given goes to sink, which may be
	// nil. maxDepth caps the nesting of the JSON.
	NewScanner(maxDepth int, sink Sink) Scanner
	// NewMeter reads a response body. Text that the model produced goes to sink, which may be nil.
	NewMeter(h ResponseHead, sink Sink) Meter
	// Refusal is the content type and the body of a refusal in this API's error shape.
	Refusal(r Refusal) (contentType string, body []byte)
}

// Span is a range of bytes of a body: [Start, End).
type Span struct{ Start, End int64 }

// Facts is what a request body says of itself.
type Facts struct {
	Model        string // unescaped; empty if absent
	ModelSpan    Span   // the JSON string with its quotes; an edit of the model replaces it
	Stream       bool
	IncludeUsage bool  // stream_options.include_usage
	MaxOutput    int64 // the larger of the caps asked for; only if HasMaxOutput
	HasMaxOutput bool
	N            int64 // answers asked for, at least 1
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

// ResponseHead is what the head of an answer says of its body.
type ResponseHead struct {
	Status          int
	ContentType     string
	ContentEncoding string
}

// Usage is what a provider reports. Input includes cached input, Output includes reasoning.
type Usage struct {
	Input, CachedInput, Output bucket.Tokens
}

// Meter reads one response body in pieces of any size.
type Meter interface {
	// Write takes the next bytes that the client is given.
	Write(p []byte)
	// Close ends the body, whether or not it was whole.
	Close()
	// Usage is the provider's figure, if it reported a trustworthy one so far.
	Usage() (Usage, bool)
	// Produced says whether any output of the model was seen.
	Produced() bool
	// Failed says whether the answer is an error, by status or in-band.
	Failed() bool
	// Finished says whether the answer came to its own end ([DONE], or a whole JSON body).
	Finished() bool
	// Opaque says that the body is of a kind this meter can't read; it need not be fed further.
	Opaque() bool
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
	Status  int    // HTTP status; 0 = the usual one of Reason
	Code    string // stable snake_case word, such as rate_limit_exceeded
	Message string // a sentence for the person who reads the error
	Param   string // the field at fault, if any
}
