// Package bucket holds limits as integers: what a limit is, what a reservation asks of it, and a
// pure model that says what every store must answer.
//
// It knows nothing of Redis, HTTP, configuration or clocks: `now` is an argument. Its caller
//   - reserves the worst case of a call under an id of its own choosing,
//   - keeps the list of items, in the same order, until the call is settled,
//   - renews the reservation before its deadline if the call is still running,
//   - settles it once with what was truly used; a repetition changes nothing.
package bucket

// Amount counts in a limit's own unit: tokens, requests, or Money for limits of cost.
// It is never negative in a request and never above MaxAmount.
type Amount int64

// Tokens is a number of model tokens.
type Tokens int64

// Money is an amount of a currency in nano-units (10^-9 of one unit).
type Money int64

// Millis is a duration or a Unix time in milliseconds.
type Millis int64

// MaxAmount bounds every number that a store keeps: 2^53-1, the largest integer that Redis' Lua
// (a double) holds exactly together with all its smaller neighbours.
const MaxAmount = 1<<53 - 1

// Kind says how a limit gives back what was taken.
type Kind uint8

const (
	// TokenBucket refills at a rate up to a burst; its level may go negative, which is debt.
	TokenBucket Kind = iota + 1
	// CalendarWindow is full again at the start of its next period.
	CalendarWindow
	// RollingWindow counts what was taken within the last Window, in cells: a cell counts until its
	// end and Window, so that no span of Window ever holds more than Max.
	RollingWindow
	// Concurrency counts what is taken right now: a slot is free again when its call is settled or
	// its lease ends, whatever amount the settle names.
	Concurrency
	// Burn observes and never denies: what settles and extensions say was used, in cells of
	// BurnCell. Where each of the last minutes is above Max, it raises a kill flag.
	Burn
	// SharedBucket is a bucket divided among classes, see Pool.
	SharedBucket
)

// BurnCell is the length of a burn observer's cells: so fine does its minute roll.
const BurnCell Millis = 10_000

// Lost says what becomes of an amount whose lease ended unsettled.
type Lost uint8

const (
	// Refund gives it back at the deadline.
	Refund Lost = iota
	// Charge keeps it as spent; a late settle still corrects it to what was used.
	Charge
)

// Limit is one limit as it stands for one entity: all that a store needs to know of it.
type Limit struct {
	Name   string // the policy's name
	Period string // of a window: its unit and zone, part of its key; empty for a bucket
	Entity string // whom it counts for; free text, the store makes it safe for a key
	Kind   Kind
	Lost   Lost

	Rate  Amount // TokenBucket: refilled per Per; Rate x Per is at most MaxAmount, see Check
	Per   Millis // TokenBucket: 1 to MaxPer; Rate and Per are reduced by their gcd, see ReduceRate
	Burst Amount // TokenBucket: the most it holds

	Max    Amount    // the most one period, one Window, or all calls together may take; Burn: what a minute may use
	Bounds [4]Millis // CalendarWindow: starts of the previous, current, next period, and of the one after; see Calendar

	Window Millis // RollingWindow: how far back it looks, a multiple of Cell, 120 cells at most
	Cell   Millis // RollingWindow: length of a cell

	Rule *BurnRule // Burn: when it trips
	Flag string    // Burn: the kill flag that it raises, "scope:id"

	Pool  *Pool  // SharedBucket
	Share string // SharedBucket: the class of this call; one that the Pool doesn't list has nothing of its own
}

// BurnRule says when a burn observer trips and what it raises: a kill flag of the actor "burn".
type BurnRule struct {
	Minutes int    // so many minutes in a row, each above Max; 1 to 30
	For     Millis // how long the flag stands; 0 is for ever
	Reason  string
}

// Item is a limit and what a request takes from it.
type Item struct {
	Limit  Limit
	Amount Amount
	// Shadow books and never denies: a Remaining below zero says that it would have.
	Shadow bool
	// Queue is how long a call may wait for its start where a bucket has too little now; 0 is not at
	// all. Other kinds than buckets make nobody wait.
	Queue Millis
}

// ReserveRequest asks for all items or none.
type ReserveRequest struct {
	ID    string   // chosen by the caller; [A-Za-z0-9_-], at most 64 bytes; the key of idempotency
	Lease Millis   // how long the amounts stay reserved
	Keep  Millis   // how long after the deadline a settle is still accepted
	Cell  Millis   // deadlines are rounded up to a multiple of it
	Kills []string // kill flags that stop this request, as "scope:id"
	Items []Item
}

// Outcome is what a store answers to a reserve.
type Outcome int8

const (
	Granted   Outcome = iota + 1 // the amounts are held until Deadline
	Replayed                     // this id was granted before and still lives; same figures
	Denied                       // at least one limit has too little; nothing was taken
	Killed                       // a kill flag is set; nothing was taken
	Settled                      // this id was already settled or cancelled; nothing was taken
	NeverFits                    // the amount is above a limit's burst or maximum; nothing was taken
)

// ReserveReply answers a ReserveRequest.
type ReserveReply struct {
	Outcome   Outcome
	Now       Millis // the store's clock
	Deadline  Millis // Granted, Replayed: end of the lease
	By        int    // Denied, NeverFits: index of the binding item; Killed: index of the flag; else -1
	Retry     Millis // Denied: how long until the call could succeed (or be queued) if nobody else acts
	Reason    string // Killed: the flag's value, until_ms|actor|reason
	Remaining []Amount
	// Remaining has one figure for each item, what is left after this call; a bucket in debt is
	// negative. It is given for Granted, Replayed, Denied and NeverFits, and empty otherwise. A
	// reserve doesn't look at burn observers: theirs is 0.

	// Start is when a queued call may begin: its lease counts from there. 0 is at once.
	Start Millis
	// Max has, beside each Remaining, what the item's limit gives at the most, overrides included:
	// its maximum, its burst, or what a class of a shared bucket can have. It is nil where the call
	// didn't look for overrides.
	Max []Amount
	// BadOverride is 1 + the index of an item whose override is no value and was ignored; 0 for none.
	BadOverride int
}

// SettleRequest states what a call truly used. Items repeats the reserve's list in the same order,
// Amount being the actual figure; a window's Bounds are those of now, not of the reserve: the store
// knows in which period it reserved, and books an overrun of a period that is no longer kept in the
// present one. A cancel is a settle of zeros; one that arrives before its reserve blocks it.
type SettleRequest struct {
	ID       string
	Deadline Millis // from the reserve's reply; 0 where that never arrived
	Lease    Millis
	Keep     Millis
	Cell     Millis
	Items    []Item
	// Answer is learned from together with what is booked: never twice, and not by a duplicate or a
	// settle that comes too late.
	Answer Answer
}

// SettleOutcome is what a store answers to a settle.
type SettleOutcome int8

const (
	SettledLive      SettleOutcome = iota + 1 // the lease lived: the difference was booked
	SettledLate                               // the lease had ended: the actual figure was booked
	SettledUnknown                            // no record of a reserve: the actual figure was booked, once
	SettledDuplicate                          // this id was settled before: nothing was booked
	SettledTooOld                             // past the deadline and Keep: nothing was booked
)

// SettleReply answers a SettleRequest.
type SettleReply struct {
	Outcome   SettleOutcome
	Now       Millis
	Remaining []Amount // as in ReserveReply; empty for SettledDuplicate and SettledTooOld
	// Tripped are the indices of the burn observers that have raised their flag in this call.
	Tripped []int
	// Learned is how long AnswersPart of a hundred answers like the request's were at the most; 0 where
	// it named none, nothing was booked, or there are too few to say.
	Learned Tokens
}

// ExtendRequest states new totals: what a running call now needs of each item. A smaller or equal
// one changes nothing. Of a burn observer, Amount is what was used so far. All items or none.
type ExtendRequest struct {
	ID    string
	Lease Millis // also moves the deadline to at least Lease from now, as a renew; 0 leaves it
	Keep  Millis
	Cell  Millis
	Kills []string
	Items []Item // the reserve's list; window bounds are those of now
}

// ExtendOutcome is what a store answers to an extend.
type ExtendOutcome int8

const (
	Extended      ExtendOutcome = iota + 1 // the totals are held
	ExtendedLate                           // the lease had ended, and all was taken again
	ExtendDenied                           // at least one limit has too little; nothing was taken
	ExtendKilled                           // a kill flag is set; nothing was taken
	ExtendSettled                          // the id was settled: nothing to extend
	ExtendUnknown                          // no record
	ExtendEnded                            // the lease has ended and the request names no other; nothing was taken
)

// ExtendReply answers an ExtendRequest.
type ExtendReply struct {
	Outcome     ExtendOutcome
	Now         Millis
	Deadline    Millis   // Extended, ExtendedLate
	By          int      // as in ReserveReply
	Retry       Millis   // ExtendDenied: how long until it could succeed; 0: it can never
	Reason      string   // ExtendKilled
	Remaining   []Amount // Extended, ExtendedLate, ExtendDenied
	Max         []Amount // as in ReserveReply
	BadOverride int      // as in ReserveReply
	Tripped     []int    // as in SettleReply
}

// RenewRequest moves a reservation's deadline to at least Lease from now.
type RenewRequest struct {
	ID    string
	Lease Millis
	Keep  Millis
	Cell  Millis
	Items []Item // the reserve's list; amounts are those of the record, not these
}

// RenewOutcome is what a store answers to a renew.
type RenewOutcome int8

const (
	Renewed      RenewOutcome = iota + 1 // the lease lives until Deadline
	RenewedLate                          // it had ended; the amounts were taken again, even into debt
	RenewSettled                         // the id was settled: nothing to renew
	RenewUnknown                         // no record
)

// RenewReply answers a RenewRequest.
type RenewReply struct {
	Outcome  RenewOutcome
	Now      Millis
	Deadline Millis
}
