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
)

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

	Max    Amount    // CalendarWindow: the most one period may take
	Bounds [4]Millis // CalendarWindow: starts of the previous, current, next period, and of the one after; see Calendar
}

// Item is a limit and what a request takes from it.
type Item struct {
	Limit  Limit
	Amount Amount
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
	Retry     Millis // Denied: how long until the call could succeed if nobody else acts
	Reason    string // Killed: the flag's value, until_ms|actor|reason
	Remaining []Amount
	// Remaining has one figure for each item, what is left after this call; a bucket in debt is
	// negative. It is given for Granted, Replayed, Denied and NeverFits, and empty otherwise.
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
