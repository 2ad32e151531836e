// Package config turns the plugin's configuration into a Compiled, or says everything that is
// wrong with it at once, each fault with its field path, the value found and what would be right.
//
// It knows nothing of the host, of a request or of the time. Unknown fields and settings that this
// version doesn't carry out are faults: nothing is silently not enforced.
package config

import (
	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/tokenizer"
)

// Compiled is a configuration that was checked and can be carried out. It is never changed.
type Compiled struct {
	Currency     Currency
	Store        Store
	Hold         HoldMode
	Mismatch     Mismatch
	Body         Body
	Lease        Lease
	Failure      Failure // of limits that don't set their own
	LocalShare   int     // percent, of limits that don't set their own
	Identities   []Identity
	Org          int        // index of the identity whose value names the shard, under ShardOrg
	Claims       [][]string // property paths of verified claims; sources refer to them by index
	UnknownRoute Unknown
	Background   Unknown // calls whose answer, and usage, comes by another call; Pass: booked as their worst case
	Models       []*Model
	UnknownModel *Model // nil = refuse
	Targets      []*Target
	Limits       []*Limit
	KillPoll     bucket.Millis
	Park         Park
	Answer       Answer
}

// Currency is an ISO 4217 code. Unit is how many of bucket.Money's units one unit of it is.
type Currency struct {
	Code string
	Unit bucket.Money // 10^9, or 10^6 where ISO 4217 gives the currency no minor unit
}

// Store says how to reach the shared store.
type Store struct {
	Cluster         string   // the host's name of the bridge's cluster
	ClusterProperty []string // or: the property that holds it, read for each request
	Protocol        string   // "upstash"
	Token           string
	Timeout         bucket.Millis // per decision
	Namespace       string
	Shard           Shard
}

// Shard is what divides the store. The keys of one shard live in one slot of a Cluster.
type Shard uint8

const (
	ShardNone Shard = iota // nothing
	ShardOrg               // each org has a shard, and what belongs to none has one
)

// HoldMode is how request headers are held until the decision.
type HoldMode uint8

const (
	HoldPair HoldMode = iota // two entries, the gate holds
	HoldFlag                 // one entry, allow_on_headers_stop_iteration
)

// Mismatch is what becomes of a request whose other entry is missing or in another VM.
type Mismatch uint8

const (
	MismatchDeny Mismatch = iota // 503
	MismatchPass                 // a refusal may then reach upstream
)

// Body caps what is read of request bodies.
type Body struct {
	Hold       int // bytes; more is 413
	Depth      int // nesting of JSON; more is 400
	Inflate    int // bytes that one in a content coding may decode to; more is 413
	CountExact int // bytes of text, unescaped, that are counted exactly; what follows is estimated
}

// Answer bounds how long the head of an answer in JSON waits until its cost is known.
type Answer struct {
	ExactCost bool          // false: none waits
	Hold      int           // bytes of its body; a longer one goes without
	HoldFor   bucket.Millis // a slower one goes without
}

// Lease is how long a reservation holds without being settled or renewed.
type Lease struct{ For, Keep, Cell bucket.Millis }

// Unknown is what happens to what no rule matches.
type Unknown uint8

const (
	Deny Unknown = iota
	Pass
)

// Identity is one name under which calls are counted, and where its value comes from.
type Identity struct {
	Name    string
	Sources []Source // the first that yields a value wins
	Missing Unknown  // Deny: a call without a value is refused (401); Pass: its value is ""
	OneOf   []string // allowed values; empty = any
	Default string   // used where no source yields a value, or one that is not in OneOf
	Guards  []Guard
}

// Source yields a value of an identity. Exactly one of Value, Header, Query and Claim is set.
type Source struct {
	Value  string
	Header string // lower case
	Query  string
	Claim  int // index into Compiled.Claims plus one; 0 = not a claim
	Strip  string
	Hash   bool // the value is replaced by the hex of the first 16 bytes of its SHA-256
}

// Guard allows a value only if a verified claim has a given value.
type Guard struct {
	Value  string
	Claim  int // as in Source
	Equals string
}

// Model is an entry of the model table.
type Model struct {
	Name          string
	Aliases       []string
	Encoding      tokenizer.Encoding
	Rates         tokenizer.Rates // what a prompt costs besides its texts
	Context       bucket.Tokens   // 0 = not stated
	MaxOutput     bucket.Tokens   // 0 = not stated
	DefaultOutput bucket.Tokens
	LearnOutput   bool // reserve by how long answers were, where a call asks for no cap
	Price         bucket.Price
	Priced        Priced
}

// Cached says whether a target's figure of the input has what the cache had a part in.
type Cached uint8

const (
	CachedAsUsual Cached = iota // as the API has it
	CachedInside
	CachedApart
)

// Target is a place that serves models.
type Target struct {
	Name     string
	Provider string
	Region   string
	Cached   Cached
	AskUsage bool          // streams that were not asked for their usage are
	Models   []TargetModel // empty = every model under its own name
}

// TargetModel is a model as one target serves it.
type TargetModel struct {
	Model    *Model
	SendName string // the name sent upstream; empty = the caller's
	Price    bucket.Price
	Priced   Priced
}

// Measure is what a limit counts.
type Measure uint8

const (
	CountTokens Measure = iota + 1
	CountInputTokens
	CountOutputTokens
	CountRequests
	CountCost
	CountConcurrency // calls that run now
	CountSearchUnits
	CountImages
	CountAudioSeconds // begun seconds of sound that is heard
)

// Limit is a rule.
type Limit struct {
	Name    string
	By      []Key   // what the count is kept for; empty = one for all
	For     []Match // all must hold
	Count   Measure
	Kind    bucket.Kind
	Rate    bucket.Amount    // bucket, reduced, without its headroom
	Per     bucket.Millis    // bucket
	Burst   bucket.Amount    // bucket
	Pool    *bucket.Pool     // shared bucket: all its figures
	Class   int              // shared bucket: index into Compiled.Identities of class
	Max     bucket.Amount    // window, concurrency
	Claimed *Claimed         // window, concurrency: where a claim sets the maximum; nil mostly
	Window  bucket.Calendar  // calendar window
	Period  string           // calendar window: its part of the key
	Span    bucket.Millis    // rolling window: how far back it looks
	Cell    bucket.Millis    // rolling window: what it counts in
	Rule    *bucket.BurnRule // burn: Max is what a minute may use
	Lost    bucket.Lost
	Shadow  bool   // counts, and never refuses
	Warn    []int  // percent of what the limit gives, 1 to 100, ascending
	Queue   *Queue // bucket: nil = nobody waits
	Failure Failure
	Local   int  // FailLocal: percent of the limit that each worker may pass; else 0
	Status  int  // of a refusal: 429 or 402 or as configured
	OfOrg   bool // lives in the shard of the call's org, if it has one
}

// Key names a component of a limit's entity: an identity (Identity >= 0) or a built-in name.
type Key struct {
	Name     string // "tenant", or a built-in: target, model, provider, dialect
	Identity int    // index into Compiled.Identities, -1 for a built-in
}

// Match holds if the named value equals one of Any; a trailing * in a pattern matches any rest.
type Match struct {
	Key Key
	Any []string
}
