package config

import (
	"slices"
	"strings"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config/zone"
)

// maxLimits bounds what one script call may touch, and so how long it keeps Redis busy.
const maxLimits = 64

const (
	limitFields = "name by for count bucket headroom reserved shares max window burn warn status failure lost on_overrun mode queue"
	limitLater  = "then"
	limitShape  = "1 to 64 of A-Z, a-z, 0-9, _, - and ."
)

func (r *reader) limits(c *Compiled, n *node) {
	if n == nil {
		return
	}
	if n.kind != kindList {
		r.fault(n, "a list of limits")
		return
	}
	if len(n.kids) > maxLimits {
		r.faultFound(n, decimal(int64(len(n.kids)))+" limits", "at most "+decimal(maxLimits))
		return
	}
	names := make(map[string]bool, len(n.kids))
	for _, kid := range n.kids {
		if !r.object(kid, limitFields, limitLater) {
			continue
		}
		l := r.limit(c, kid)
		if names[l.Name] && l.Name != "" {
			r.faultFound(kid.get("name"), "\""+l.Name+"\" a second time", "a name that no other limit has")
		}
		names[l.Name] = true
		c.Limits = append(c.Limits, l)
	}
}

// orgNames are the identities that belong to one org: the same name of another org is another one.
const orgNames = "org tenant team key"

var measures = [...]Measure{CountTokens, CountInputTokens, CountOutputTokens, CountRequests, CountCost, CountConcurrency, CountSearchUnits, CountImages, CountAudioSeconds}

func (r *reader) limit(c *Compiled, n *node) *Limit {
	l := &Limit{}
	r.ownFailure(c, l, n.get("failure"))
	if v := n.get("name"); v == nil {
		r.missing(n, "name", limitShape)
	} else if l.Name = r.text(v, "", limitShape); l.Name != "" && !targetName(l.Name) {
		r.fault(v, limitShape)
	}
	if v := n.get("by"); v != nil {
		r.by(c, l, v)
	}
	l.OfOrg = c.Store.Shard == ShardOrg && slices.ContainsFunc(l.By, func(k Key) bool { return k.Identity >= 0 && within(orgNames, k.Name) })
	if v := n.get("for"); v != nil {
		r.matches(c, l, v)
	}
	const counts = "tokens input_tokens output_tokens requests cost concurrency search_units images audio_seconds"
	if v := n.get("count"); v == nil {
		r.missing(n, "count", "one of "+listed(counts))
	} else {
		l.Count = measures[r.word(v, counts, "")]
	}
	r.shape(c, l, n)
	if l.Kind == bucket.Burn {
		l.Status = 403 // of a call that meets the flag
	} else {
		r.consequences(c, l, n)
	}
	if l.Count == CountCost {
		r.priced(c, l, n)
	}
	return l
}

// shape reads the kind of a limit and its amounts.
func (r *reader) shape(c *Compiled, l *Limit, n *node) {
	b, w := n.get("bucket"), n.get("window")
	switch {
	case n.has("burn"):
		r.burn(c, l, n)
	case l.Count == CountConcurrency:
		l.Kind = bucket.Concurrency
		r.undivided(n, "count: concurrency")
		for _, v := range []*node{b, w} {
			if v != nil {
				r.faultFound(v, "it beside count: concurrency", "max alone: a slot is free when its call has ended")
			}
		}
		r.most(c, l, n)
	case b == nil && w == nil:
		r.faultFound(n, "neither bucket nor window nor burn", "one of them")
	case b != nil && w != nil:
		r.faultFound(n, "bucket and window", "one of them")
	case b != nil:
		l.Kind = bucket.TokenBucket
		before := len(r.faults)
		r.bucket(c, l, b)
		r.divided(c, l, n, len(r.faults) == before)
		if v := n.get("max"); v != nil {
			r.faultFound(v, "max beside bucket", "bucket.burst, or a window")
		}
	default:
		l.Kind = bucket.CalendarWindow
		r.undivided(n, "window")
		r.window(l, w)
		r.most(c, l, n)
	}
}

func (r *reader) amountShape(l *Limit) string {
	if l.Count == CountCost {
		return "an amount of money above 0, a decimal string such as \"50\""
	}
	return "a whole number from 1 to " + decimal(l.mostAmount())
}

// mostAmount is the most that a store can keep of what the limit counts.
func (l *Limit) mostAmount() int64 {
	if l.Count == CountConcurrency {
		return bucket.MaxSlots
	}
	return bucket.MaxAmount
}

// amount reads a maximum in the limit's own unit, at least 1.
func (r *reader) amount(c *Compiled, l *Limit, n *node) bucket.Amount {
	if l.Count != CountCost {
		return bucket.Amount(r.count(n, 1, 1, l.mostAmount()))
	}
	before := len(r.faults)
	m := r.money(c, n, r.amountShape(l))
	if m == 0 && len(r.faults) == before {
		r.fault(n, r.amountShape(l))
	}
	return bucket.Amount(max(m, 1))
}

func (r *reader) bucket(c *Compiled, l *Limit, n *node) {
	l.Rate, l.Per, l.Burst = 1, 1, 1
	if !r.object(n, "rate burst", "") {
		return
	}
	want := "a rate such as 60000/m, from 1 to " + decimal(bucket.MaxAmount) + " per s, m, h or d"
	if l.Count == CountCost {
		want = "a rate of money such as \"0.50/h\", above 0, per s, m, h or d"
	}
	if v := n.get("rate"); v == nil {
		r.missing(n, "rate", want)
	} else if rate, per, ok := r.rate(c, l, v); ok {
		l.Rate, l.Per = bucket.ReduceRate(rate, per)
		check := bucket.Limit{Kind: bucket.TokenBucket, Rate: l.Rate, Per: l.Per}
		if check.Check() != nil {
			r.fault(v, "a rounder rate: reduced, it times its period in ms must stay below 2^53")
		}
	} else {
		r.fault(v, want)
	}
	if v := n.get("burst"); v == nil {
		r.missing(n, "burst", r.amountShape(l))
	} else {
		l.Burst = r.amount(c, l, v)
	}
}

func (r *reader) rate(c *Compiled, l *Limit, n *node) (bucket.Amount, bucket.Millis, bool) {
	if n.kind != kindString {
		return 0, 0, false
	}
	number, per, ok := splitRate(n.text)
	if !ok {
		return 0, 0, false
	}
	var rate int64
	if l.Count == CountCost {
		m, err := bucket.ParseMoney(number, c.Currency.Unit)
		rate, ok = int64(m), err == nil
	} else {
		rate, ok = parseWhole(number)
	}
	if !ok || rate < 1 || rate > bucket.MaxAmount {
		return 0, 0, false
	}
	return bucket.Amount(rate), per, true
}

var calendarUnits = [...]bucket.Unit{bucket.Hour, bucket.Day, bucket.Week, bucket.Month, bucket.Quarter, bucket.Year}

const calendarWords = "hour day week month quarter year"

// lastStart is the highest starts of each unit; 0 where there is none.
var lastStart = [...]int64{0, 0, 7, 31, 12, 12}

func (r *reader) window(l *Limit, n *node) {
	if !r.object(n, "calendar rolling timezone starts", "") {
		return
	}
	v := n.get("calendar")
	if rolling := n.get("rolling"); rolling != nil {
		r.rolling(l, rolling)
		for _, kid := range n.kids {
			if kid != rolling && within("calendar timezone starts", kid.key) {
				r.faultFound(kid, "it beside rolling", "it left out")
			}
		}
		return
	}
	if v == nil {
		r.missing(n, "calendar", "one of "+listed(calendarWords)+", or rolling")
		return
	}
	unit := r.word(v, calendarWords, "")
	word := strings.Fields(calendarWords)[unit]
	name := "UTC"
	l.Window = bucket.Calendar{Unit: calendarUnits[unit], Starts: 1}
	const want = "the name of a time zone, such as Europe/Amsterdam"
	if v := n.get("timezone"); v != nil {
		name = r.text(v, "UTC", want)
	}
	loc, err := zone.Load(name)
	if err != nil {
		r.fault(n.get("timezone"), want)
	}
	l.Window.Zone = loc
	if v := n.get("starts"); v != nil {
		if last := lastStart[unit]; last == 0 {
			r.faultFound(v, "starts for calendar "+word, "it left out")
		} else {
			l.Window.Starts = int(r.count(v, 1, 1, last))
		}
	}
	l.Period = l.Window.Period()
}

// maxRolling is the longest rolling window, 30 days; mostCells is how many cells one has at the most.
const (
	maxRolling bucket.Millis = 30 * 86_400_000
	mostCells  bucket.Millis = 60
)

// rolling reads how far back a window looks. It counts in 50 to 60 cells, all equally long: any whole
// number of seconds can be cut into 50.
func (r *reader) rolling(l *Limit, n *node) {
	l.Kind, l.Span = bucket.RollingWindow, r.duration(n, 3_600_000, 1000, maxRolling)
	if l.Span%1000 != 0 {
		r.fault(n, "a whole number of seconds")
		return
	}
	cells := mostCells
	for l.Span%cells != 0 {
		cells--
	}
	l.Cell = l.Span / cells
}

// Budget says that the limit is money for a time: what is spent of it stays spent.
func (l *Limit) Budget() bool {
	return l.Count == CountCost && (l.Kind == bucket.CalendarWindow || l.Kind == bucket.RollingWindow)
}

// consequences reads what becomes of refusals, of lost leases, of overruns, and of calls while
// the store can't be asked.
func (r *reader) consequences(c *Compiled, l *Limit, n *node) {
	l.Status = 429
	if l.Budget() {
		l.Status, l.Lost = 402, bucket.Charge
	}
	if v := n.get("status"); v != nil {
		switch s := int(r.count(v, 429, 0, 999)); s {
		case 402, 403, 429, 503:
			l.Status = s
		default:
			r.fault(v, "one of 402, 403, 429, 503")
		}
	}
	if v := n.get("lost"); v != nil {
		l.Lost = bucket.Lost(r.word(v, "refund charge", ""))
		if l.Count == CountConcurrency && l.Lost == bucket.Charge {
			r.fault(v, "refund, because a call that is lost runs no longer")
		}
	}
	r.word(n.get("on_overrun"), "debt", "cut")
	l.Shadow = r.word(n.get("mode"), "enforce shadow", "") == 1
	if v := n.get("warn"); v != nil {
		r.warn(l, v)
	}
	if v := n.get("queue"); v != nil {
		r.queue(c, l, v)
	}
}

const mostWarnings = 10

func (r *reader) warn(l *Limit, n *node) {
	const want = "a list of at most 10 shares in ascending order, such as [80%, 95%]"
	if n.kind != kindList || len(n.kids) == 0 || len(n.kids) > mostWarnings {
		r.fault(n, want)
		return
	}
	last := int64(0)
	for _, kid := range n.kids {
		p, ok := numbered(kid.text, "%")
		switch {
		case kid.kind != kindString || !ok || p < 1 || p > 100:
			r.fault(kid, "a whole share from 1% to 100%")
		case p <= last:
			r.fault(kid, "more than the share before it")
		default:
			last, l.Warn = p, append(l.Warn, int(p))
		}
	}
}
