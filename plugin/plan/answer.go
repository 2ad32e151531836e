package plan

import (
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

// Denial is a refusal with all that is sent beside its body.
type Denial struct {
	Refusal dialect.Refusal
	Headers [][2]string
	Limit   string        // name of the binding limit, if one is
	Retry   bucket.Millis // when the call could succeed; 0 = trying again doesn't help, or nobody knows when
	By      int           // index of the binding item, or of the kill flag; else -1
}

// Decisions, as logs and the header x-emmer-decision say them.
const (
	Granted     = "granted"
	Denied      = "denied"
	Killed      = "killed"
	NeverFits   = "never_fits"
	Unavailable = "unavailable"
)

// Decision is the word for a refusal.
func (d Denial) Decision() string {
	switch d.Refusal.Reason {
	case dialect.RateLimited, dialect.OverBudget:
		return Denied
	case dialect.Killed:
		return Killed
	case dialect.Unavailable:
		return Unavailable
	case dialect.Unauthorized:
		return "unauthorized"
	case dialect.NotFound:
		return "not_found"
	case dialect.TooLarge:
		return "too_large"
	case dialect.Unsupported:
		return "unsupported"
	case dialect.BadRequest:
		if d.Refusal.Code == codeNeverFits {
			return NeverFits
		}
		return "bad_request"
	}
	return "internal"
}

const codeNeverFits = "request_exceeds_limit"

// Refuse completes a refusal that no store was asked about. p is the plan that came with it, or
// nil.
func Refuse(p *Plan, r dialect.Refusal) Denial {
	d := Denial{Refusal: r, By: -1}
	if p != nil && p.Never >= 0 && r.Code == codeNeverFits {
		d.By, d.Limit = p.Never, p.Limits[p.Never].Name
	}
	if r.Reason == dialect.Unavailable {
		d.Retry = 1000
	}
	return d.withHeaders(nil)
}

// StoreUnavailable is the refusal of a call whose limits can't be checked, under failure closed.
func StoreUnavailable() Denial { return Refuse(nil, unavailable()) }

// QueueFull is the refusal of a call that might wait for its turn, but not here, where too much waits
// already: until there is room again.
func QueueFull(retry bucket.Millis) Denial {
	d := Denial{Refusal: queueFull(), Retry: max(retry, 1), By: -1}
	return d.withHeaders(nil)
}

// KilledLocally is the refusal of a call by a kill flag that is known without asking the store:
// the flag's field "scope:id", and its value.
func KilledLocally(field, value string) Denial {
	d := Denial{Refusal: killed(field, value), By: -1}
	return d.withHeaders(nil)
}

// Deny is the refusal that a store's answer means. c is the configuration that p was built with.
func (p *Plan) Deny(c *config.Compiled, r bucket.ReserveReply) Denial {
	within := r.By >= 0 && r.By < len(p.Items)
	switch {
	case r.Outcome == bucket.Denied && within:
		d := Denial{Refusal: p.denied(r), By: r.By, Limit: p.Limits[r.By].Name, Retry: max(r.Retry, 1)}
		if p.Limits[r.By].Kind == bucket.Concurrency {
			d.Retry = 0 // it is the end of a lease, which a running call renews
		}
		return d.withHeaders(p.rates(r))
	case r.Outcome == bucket.NeverFits && within:
		d := Denial{Refusal: p.neverFits(r.By, r), By: r.By, Limit: p.Limits[r.By].Name}
		return d.withHeaders(nil)
	case r.Outcome == bucket.Killed:
		field := "global:all"
		if r.By >= 0 && r.By < len(p.Kills) {
			field = p.Kills[r.By]
		}
		d := Denial{Refusal: killed(field, r.Reason), By: r.By}
		return d.withHeaders(nil)
	}
	return StoreUnavailable()
}

// DenyLocal is the refusal by a worker's share of a limit, while the store gives no answer: by is its
// index, and left, most and retry are the share's. Of the limit itself nothing is known.
func (p *Plan) DenyLocal(by int, left, most bucket.Amount, retry, now bucket.Millis) Denial {
	r := bucket.ReserveReply{Outcome: bucket.Denied, By: by, Retry: max(retry, 1), Now: now,
		Remaining: make([]bucket.Amount, len(p.Items)), Max: make([]bucket.Amount, len(p.Items))}
	r.Remaining[by], r.Max[by] = left, most
	d := Denial{Refusal: p.denied(r), By: by, Limit: p.Limits[by].Name, Retry: r.Retry}
	d.Refusal.Message = "The count that all gateways share can't be reached. Of its part here, t" + strings.TrimPrefix(d.Refusal.Message, "T")
	if p.Limits[by].Kind == bucket.Concurrency {
		d.Retry = 0
	}
	return d.withHeaders(nil)
}

// Headers are those of an admitted call: what is left of the limits that are closest to their end.
func (p *Plan) Headers(r bucket.ReserveReply) [][2]string {
	out := append(p.rates(r), [2]string{"x-emmer-decision", Granted})
	if w := warnings(p.Notes(r)); w != "" {
		out = append(out, [2]string{"x-emmer-warn", w})
	}
	return out
}

// Settled are the headers of an admitted call that say what it has cost and, with what it did not use
// given back, what is left. r is the store's answer to the reserve, empty where it gave none; took is Actual
// of u. No store is asked: what others took meanwhile is not in it.
func (p *Plan) Settled(r bucket.ReserveReply, took []bucket.Item, u dialect.Usage) [][2]string {
	var out [][2]string
	if len(r.Remaining) == len(p.Items) && len(took) == len(p.Items) {
		left := make([]bucket.Amount, len(took))
		for i := range took {
			left[i] = r.Remaining[i] + p.Items[i].Amount - took[i].Amount
		}
		r.Remaining = left
		out = p.rates(r)
	}
	if cost, ok := p.Cost(u); ok {
		out = append(out, [2]string{"x-gateway-cost-" + strings.ToLower(p.currency.Code), decimal(cost, p.currency)})
	}
	return out
}

func (d Denial) withHeaders(rates [][2]string) Denial {
	d.Headers = append(rates, [2]string{"x-emmer-decision", d.Decision()})
	if d.Limit != "" {
		d.Headers = append(d.Headers, [2]string{"x-emmer-limit", d.Limit})
	}
	d.Refusal.Retry = d.Retry // some dialects say it in the body
	if d.Retry > 0 {
		seconds := (d.Retry-1)/1000 + 1
		d.Headers = append(d.Headers,
			[2]string{"retry-after", strconv.FormatInt(int64(seconds), 10)},
			[2]string{"retry-after-ms", strconv.FormatInt(int64(d.Retry), 10)})
	}
	if d.hopeless() {
		d.Headers = append(d.Headers, [2]string{"x-should-retry", "false"})
	}
	return d
}

// patience is the longest time that a client may be expected to wait by itself. The SDKs of OpenAI and
// Anthropic try again after each 429 and 5xx, whatever its body says. Those of 2024 wait for as long
// as retry-after says if that is at most a minute, and else as they think fit; those of 2026 sleep until the
// next month if they are told to (anthropic 2.14 for Python, 1.14 for TypeScript). They all obey
// x-should-retry first.
const patience bucket.Millis = 60_000

// hopeless says that trying again soon can't succeed, so that a program should tell a person instead.
func (d Denial) hopeless() bool {
	return d.Retry > patience || d.Refusal.Reason == dialect.Killed || d.Refusal.HTTPStatus() == 402
}

// Groups of limits of which callers are told one each.
const (
	tokenLimits = iota
	requestLimits
	inputLimits
	outputLimits
	costLimits
	limitGroups
)

// group says which limits l is told of with; false if with none. Input and output go with all tokens
// where the API has no names for them, and everybody's money is nobody's business.
func group(l *config.Limit, names *dialect.RateHeaders) (int, bool) {
	switch l.Count {
	case config.CountRequests:
		return requestLimits, told(l)
	case config.CountCost:
		return costLimits, told(l) && len(l.By) > 0
	case config.CountInputTokens:
		if names.Input != (dialect.RateNames{}) {
			return inputLimits, told(l)
		}
	case config.CountOutputTokens:
		if names.Output != (dialect.RateNames{}) {
			return outputLimits, told(l)
		}
	}
	return tokenLimits, told(l)
}

// rates describes, of each group, the limit that refused, or else the one with the least share left,
// and says how much money is left of the cost limit with the least: with the worst case of this call
// held, so that the figure is never too high.
func (p *Plan) rates(r bucket.ReserveReply) [][2]string {
	if len(r.Remaining) != len(p.Items) || p.Dialect == nil {
		return nil
	}
	names := p.Dialect.RateHeaders()
	least := [limitGroups]int{-1, -1, -1, -1, -1}
	for i, l := range p.Limits {
		of, is := group(l, &names)
		if !is {
			continue
		}
		at := least[of]
		switch {
		case at < 0 || r.Outcome == bucket.Denied && r.By == i:
			least[of] = i
		case r.Outcome == bucket.Denied && r.By == at:
		case of == costLimits && r.Remaining[i] < r.Remaining[at] || of != costLimits && p.tighter(i, at, r):
			least[of] = i
		}
	}
	out := make([][2]string, 0, 18) // those of a denial too
	for of, name := range [costLimits]dialect.RateNames{names.Tokens, names.Requests, names.Input, names.Output} {
		i := least[of]
		if i < 0 {
			continue
		}
		// What others have left to a class for now may be above what it can count on.
		most := p.most(i, r)
		full := reset(p.overridden(i, r), r.Remaining[i], r.Now)
		when := span(full)
		if names.Dated {
			when = date(r.Now + full)
		}
		out = append(out,
			[2]string{name.Limit, strconv.FormatInt(int64(most), 10)},
			[2]string{name.Remaining, strconv.FormatInt(int64(max(min(r.Remaining[i], most), 0)), 10)},
			[2]string{name.Reset, when})
	}
	if i := least[costLimits]; i >= 0 {
		out = append(out, [2]string{"x-tenant-remaining-budget-" + strings.ToLower(p.currency.Code), decimal(max(bucket.Money(r.Remaining[i]), 0), p.currency)})
	}
	return out
}

// tighter says that less is left of limit i, as a share of what it gives, than of j.
func (p *Plan) tighter(i, j int, r bucket.ReserveReply) bool {
	share := func(i int) (left, most uint64) {
		most = uint64(max(p.most(i, r), 1))
		return min(uint64(max(r.Remaining[i], 0)), most), most
	}
	left, most := share(i)
	other, whole := share(j)
	hi, lo := bits.Mul64(left, whole)
	hi2, lo2 := bits.Mul64(other, most)
	return hi < hi2 || hi == hi2 && lo < lo2
}

// reset is how long until a limit is full again, if nothing is taken from it.
func reset(l bucket.Limit, remaining bucket.Amount, now bucket.Millis) bucket.Millis {
	if l.Kind == bucket.CalendarWindow {
		for _, start := range l.Bounds {
			if start > now {
				return start - now
			}
		}
		return 0
	}
	if l.Kind == bucket.RollingWindow {
		if remaining >= l.Max || l.Cell < 1 {
			return 0
		}
		return l.Window + l.Cell - now%l.Cell // the running cell, which counts last, may hold some of it
	}
	if remaining >= l.Burst || l.Rate < 1 || l.Per < 1 {
		return 0
	}
	// A level is above -2^53, so the difference is below 2^54 and the product below 2^118.
	hi, lo := bits.Mul64(uint64(l.Burst-remaining), uint64(l.Per))
	lo, carry := bits.Add64(lo, uint64(l.Rate)-1, 0)
	hi += carry
	if hi >= uint64(l.Rate) {
		return longest
	}
	q, _ := bits.Div64(hi, lo, uint64(l.Rate))
	return bucket.Millis(min(q, uint64(longest)))
}

// longest is the longest time that is told, 290 years: time.Duration ends at 292.
const longest bucket.Millis = 290 * 365 * 86_400_000

// span writes a time as OpenAI's headers do: 120ms, 1.5s, 6m0s.
func span(ms bucket.Millis) string {
	return (time.Duration(min(max(ms, 0), longest)) * time.Millisecond).String()
}

// date writes a moment by RFC 3339, to the next whole second: then the limit is full for certain.
func date(at bucket.Millis) string {
	return time.UnixMilli(int64(at) + 999).UTC().Format("2006-01-02T15:04:05Z")
}

func (p *Plan) denied(r bucket.ReserveReply) dialect.Refusal {
	l, need := p.Limits[r.By], p.Items[r.By].Amount
	refusal := dialect.Refusal{Reason: dialect.RateLimited, Status: l.Status, Code: "rate_limit_exceeded"}
	if l.Count == config.CountRequests {
		refusal.Code = "request_rate_exceeded"
	}
	budget := l.Status == 402 || l.Status == 0 && l.Budget()
	if budget {
		refusal.Reason, refusal.Code = dialect.OverBudget, "insufficient_quota"
	}
	var b strings.Builder
	if l.Kind == bucket.Concurrency {
		refusal.Code = "concurrency_exceeded"
		refusal.Message = "The limit " + l.Name + " allows " + p.quantity(l, p.most(r.By, r)) + ", and so many are running. Try again when one of them has ended."
		return refusal
	}
	b.WriteString("The limit " + l.Name + " has ")
	if r.By < len(r.Remaining) {
		b.WriteString(p.quantity(l, max(r.Remaining[r.By], 0)) + " left of " + p.quantity(l, p.most(r.By, r)) + ofClass(&p.Items[r.By].Limit))
	} else {
		b.WriteString("too little left")
	}
	b.WriteString(", and this call needs up to " + p.quantity(l, need) + ". ")
	if retry := max(r.Retry, 1); l.Kind == bucket.CalendarWindow {
		b.WriteString("Try again at " + date(r.Now+retry) + ".")
	} else {
		if queue := p.Items[r.By].Queue; queue > 0 {
			b.WriteString("Its turn would come later than the " + span(queue) + " that it may wait. ")
		}
		b.WriteString("Try again in " + span(retry) + ".")
	}
	refusal.Message = b.String()
	return refusal
}

func (p *Plan) neverFits(i int, r bucket.ReserveReply) dialect.Refusal {
	l := p.Limits[i]
	message := "This call needs up to " + p.quantity(l, p.Items[i].Amount) + ", and the limit " + l.Name +
		" never has more than " + p.quantity(l, p.most(i, r)) + ofClass(&p.Items[i].Limit) + "."
	switch {
	case rare(l.Count):
		message += " Ask for less in one call."
	case l.Count != config.CountRequests:
		message += " Ask for less output or send a shorter prompt."
	}
	return dialect.Refusal{Reason: dialect.BadRequest, Code: codeNeverFits, Message: message}
}

// maxReason bounds what a message repeats of an operator's reason, in bytes.
const maxReason = 200

// burnActor is who sets the flags of burn observers, see bucket.BurnRule.
const burnActor = "burn"

// BurnFlag is the kill flag, as name and value, that an item's burn observer has raised.
func BurnFlag(it bucket.Item) (name, value string) {
	return it.Limit.Flag, "0|" + burnActor + "|" + it.Limit.Rule.Reason
}

// killed reads a flag's value "until_ms|actor|reason". The caller is told the reason, but neither
// who set the flag nor until when.
func killed(field, value string) dialect.Refusal {
	what := "All calls are"
	if scope, id, ok := strings.Cut(field, ":"); ok && scope != "global" {
		what = "Calls for " + scope + " " + shown(id) + " are"
	}
	_, rest, _ := strings.Cut(value, "|")
	actor, reason, _ := strings.Cut(rest, "|")
	message := what + " stopped by the operator"
	if actor == burnActor {
		message = what + " stopped by a rule"
	}
	if reason = printable(reason); reason != "" {
		message += ": " + reason
	}
	return dialect.Refusal{Reason: dialect.Killed, Code: "killed", Message: message + "."}
}

// printable leaves out control characters and what is too long.
func printable(s string) string {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			r = ' '
		}
		if len(out) > maxReason-4 {
			break
		}
		out = append(out, string(r)...)
	}
	return strings.TrimRight(strings.TrimSpace(string(out)), ".")
}

// quantity is an amount in words of its limit: 1500 tokens, 0.25 EUR.
func (p *Plan) quantity(l *config.Limit, a bucket.Amount) string {
	n := strconv.FormatInt(int64(a), 10)
	switch l.Count {
	case config.CountCost:
		return money(bucket.Money(a), p.currency)
	case config.CountRequests:
		if a == 1 {
			return "1 request"
		}
		return n + " requests"
	case config.CountConcurrency:
		if a == 1 {
			return "1 call at a time"
		}
		return n + " calls at a time"
	case config.CountInputTokens:
		return n + " input tokens"
	case config.CountSearchUnits:
		return n + " search units"
	case config.CountImages:
		return n + " images"
	case config.CountAudioSeconds:
		return n + " seconds of audio"
	case config.CountOutputTokens:
		return n + " output tokens"
	}
	return n + " tokens"
}

// money writes an amount with its currency, exactly.
func money(m bucket.Money, c config.Currency) string {
	return strings.TrimSpace(decimal(m, c) + " " + c.Code)
}

// decimal writes an amount exactly, without zeros at its end. It is not negative.
func decimal(m bucket.Money, c config.Currency) string {
	unit := max(c.Unit, 1)
	s := strconv.FormatInt(int64(m/unit), 10)
	if rest := m % unit; rest > 0 {
		digits := strconv.FormatInt(int64(unit+rest), 10)[1:] // the unit is a power of ten
		s += "." + strings.TrimRight(digits, "0")
	}
	return s
}
