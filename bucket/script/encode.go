package script

import (
	"errors"
	"slices"
	"strconv"

	"github.com/emmer-proxy/emmer/bucket"
)

// Call is one call of a script: EVALSHA Script.SHA len(Keys) Keys... Args...
type Call struct {
	Script *Script
	Keys   []string // every key that the script touches
	Args   []string // the last one is the nonce
	Nonce  string
	Items  int   // how many limits it speaks of
	Kills  int   // how many kill flags
	Burns  []int // which items are burn observers
	Learns bool  // the reply has what was learned of answers
	Max    bool  // the reply has a maximum for each item, and says whether an override is none
}

const (
	mostItems = 64
	mostKills = 64
	// mostMillis bounds durations: with a date they stay far below 2^53.
	mostMillis bucket.Millis = 10 * 366 * 86_400_000
)

// Reserve encodes a request. It fails on what a script couldn't carry out; the error begins with
// the field.
func (l Layout) Reserve(r bucket.ReserveRequest, nonce string) (Call, error) {
	if len(r.Kills) > mostKills {
		return Call{}, errors.New("kills: more than " + strconv.Itoa(mostKills))
	}
	e := encoder{call: Call{Script: Reserve, Nonce: nonce, Items: len(r.Items), Kills: len(r.Kills)}}
	if err := e.open(r.ID, r.Lease, r.Keep, r.Cell); err != nil {
		return Call{}, err
	}
	e.kills(r.Kills)
	e.call.Max = l.WithOverrides && len(r.Items) > 0
	return e.close(l, r.ID, nil, r.Items)
}

// Extend encodes a request, as Reserve does.
func (l Layout) Extend(r bucket.ExtendRequest, nonce string) (Call, error) {
	return l.ExtendAt(nil, r, nonce)
}

// ExtendAt is Extend for a reservation whose call had these Keys, which are not computed again.
func (l Layout) ExtendAt(keys []string, r bucket.ExtendRequest, nonce string) (Call, error) {
	if len(r.Kills) > mostKills {
		return Call{}, errors.New("kills: more than " + strconv.Itoa(mostKills))
	}
	e := encoder{call: Call{Script: Extend, Nonce: nonce, Items: len(r.Items), Kills: len(r.Kills)}}
	if err := e.open(r.ID, max(r.Lease, 1), r.Keep, r.Cell); err != nil {
		return Call{}, err
	}
	if r.Lease == 0 { // stays as it is
		e.args, e.ends = e.args[:0], e.ends[:0]
		e.number(0)
		e.number(int64(r.Keep))
		e.number(int64(r.Cell))
	}
	e.kills(r.Kills)
	e.call.Max = l.WithOverrides && len(r.Items) > 0
	return e.close(l, r.ID, keys, r.Items)
}

// Settle encodes a request, as Reserve does.
func (l Layout) Settle(r bucket.SettleRequest, nonce string) (Call, error) {
	return l.SettleAt(nil, r, nonce)
}

// SettleAt is Settle for a reservation whose call had these Keys, which are not computed again.
func (l Layout) SettleAt(keys []string, r bucket.SettleRequest, nonce string) (Call, error) {
	e := encoder{call: Call{Script: Settle, Nonce: nonce, Items: len(r.Items)}}
	if err := e.open(r.ID, r.Lease, r.Keep, r.Cell); err != nil {
		return Call{}, err
	}
	if r.Deadline < 0 || r.Deadline > bucket.MaxAmount/8 {
		return Call{}, errors.New("deadline: " + decimal(int64(r.Deadline)) + " is no time")
	}
	if r.Answer.Tokens < 0 || r.Answer.Tokens > bucket.MaxAmount {
		return Call{}, errors.New("answer: " + decimal(int64(r.Answer.Tokens)) + " is not between 0 and 2^53-1")
	}
	e.number(int64(r.Deadline))
	e.number(int64(r.Answer.Tokens))
	c, err := e.close(l, r.ID, keys, r.Items)
	if err == nil && r.Answer.Tokens > 0 {
		at := 2 + len(r.Items)
		c.Learns = true
		c.Keys = slices.Insert(slices.Clone(c.Keys), at, l.Answers(r.Answer.Of))
	}
	return c, err
}

// Renew encodes a request, as Reserve does.
func (l Layout) Renew(r bucket.RenewRequest, nonce string) (Call, error) {
	e := encoder{call: Call{Script: Renew, Nonce: nonce, Items: len(r.Items)}}
	if err := e.open(r.ID, r.Lease, r.Keep, r.Cell); err != nil {
		return Call{}, err
	}
	return e.close(l, r.ID, nil, r.Items)
}

// Level encodes a look at one limit, which changes nothing.
func (l Layout) Level(limit bucket.Limit, nonce string) (Call, error) {
	if nonce == "" {
		return Call{}, errors.New("nonce: empty")
	}
	e := encoder{call: Call{Script: Probe, Nonce: nonce, Items: 1}}
	return e.close(l, "", nil, []bucket.Item{{Limit: limit}})
}

// encoder collects arguments as one text, which close cuts: most are numbers, and to make each a
// string of its own costs more than all the rest.
type encoder struct {
	call Call
	args []byte
	ends []int
}

func (e *encoder) text(s string) {
	e.args = append(e.args, s...)
	e.ends = append(e.ends, len(e.args))
}

func (e *encoder) number(n int64) {
	e.args = strconv.AppendInt(e.args, n, 10)
	e.ends = append(e.ends, len(e.args))
}

func (e *encoder) kills(flags []string) {
	e.number(int64(len(flags)))
	for _, k := range flags {
		e.text(k)
	}
}

// open begins a call that speaks of a reservation.
func (e *encoder) open(id string, lease, keep, cell bucket.Millis) error {
	switch {
	case id == "":
		return errors.New("id: empty")
	case e.call.Nonce == "":
		return errors.New("nonce: empty")
	case lease < 1 || lease > mostMillis:
		return errors.New("lease: " + decimal(int64(lease)) + " ms is not between 1 ms and 10 years")
	case keep < 0 || keep > mostMillis:
		return errors.New("keep: " + decimal(int64(keep)) + " ms is not between 0 and 10 years")
	case cell < 1 || cell > mostMillis:
		return errors.New("cell: " + decimal(int64(cell)) + " ms is not between 1 ms and 10 years")
	case e.call.Items > mostItems:
		return errors.New("items: more than " + strconv.Itoa(mostItems))
	}
	e.args = make([]byte, 0, 128+96*e.call.Items)
	e.ends = make([]int, 0, 5+e.call.Kills+8*e.call.Items)
	e.number(int64(lease))
	e.number(int64(keep))
	e.number(int64(cell))
	return nil
}

// close adds the limits and the nonce. An id adds the key of its record.
func (e *encoder) close(l Layout, id string, keys []string, items []bucket.Item) (Call, error) {
	// A call without limits has no overrides either, whose key is the last.
	want := 2 + len(items)
	if l.WithOverrides && len(items) > 0 {
		want++
	}
	prefix, known := "", len(keys) == want
	if !known {
		prefix = l.prefix()
		keys = append(make([]string, 0, want), prefix+"ctl")
		if id != "" {
			keys = append(keys, prefix+"r:"+part(id))
		}
	}
	if l.WithOverrides {
		e.number(int64(len(items)))
		for i := range items {
			e.text(OverrideField(items[i].Limit.Name, items[i].Limit.Entity))
		}
	} else {
		e.number(0)
	}
	for i := range items {
		lim, amount := &items[i].Limit, items[i].Amount
		fault := func(text string) (Call, error) {
			return Call{}, errors.New("items[" + strconv.Itoa(i) + "]." + text)
		}
		if err := lim.Check(); err != nil {
			return fault(err.Error())
		}
		if amount < 0 || amount > bucket.MaxAmount {
			return fault("amount: " + decimal(int64(amount)) + " is not between 0 and 2^53-1")
		}
		if lim.Kind == bucket.Concurrency && amount > bucket.MaxSlots {
			return fault("amount: " + decimal(int64(amount)) + " is not between 0 and 2^31-1")
		}
		if q := items[i].Queue; q < 0 || q > mostMillis {
			return fault("queue: " + decimal(int64(q)) + " ms is not between 0 and 10 years")
		}
		if !known {
			key := limitKey(prefix, lim)
			if slices.Contains(keys, key) {
				return fault("name: " + strconv.Quote(lim.Name) + " stands twice for the same entity")
			}
			keys = append(keys, key)
		}
		e.item(&items[i], i)
	}
	if l.WithOverrides && len(items) > 0 && !known {
		keys = append(keys, prefix+"ovr")
	}
	e.text(e.call.Nonce)
	whole, from := string(e.args), 0
	e.call.Keys, e.call.Args = keys, make([]string, len(e.ends))
	for i, end := range e.ends {
		e.call.Args[i] = whole[from:end]
		from = end
	}
	return e.call, nil
}

// item adds a limit and its amount.
func (e *encoder) item(it *bucket.Item, i int) {
	lim := &it.Limit
	e.text(kindLetter(lim.Kind))
	e.number(int64(it.Amount))
	lost := "r"
	if lim.Lost == bucket.Charge && lim.Kind != bucket.Concurrency || lim.Kind == bucket.Burn {
		lost = "c"
	}
	if it.Shadow || it.Queue > 0 {
		if it.Shadow {
			lost += "!"
		}
		if it.Queue > 0 {
			lost += decimal(int64(it.Queue))
		}
	}
	e.text(lost)
	switch lim.Kind {
	case bucket.TokenBucket:
		e.number(int64(lim.Rate))
		e.number(int64(lim.Per))
		e.number(int64(lim.Burst))
	case bucket.CalendarWindow:
		e.number(int64(lim.Max))
		for _, b := range lim.Bounds {
			e.number(int64(b))
		}
	case bucket.RollingWindow:
		e.number(int64(lim.Max))
		e.number(int64(lim.Cell))
		e.number(int64(lim.Window))
	case bucket.Concurrency:
		e.number(int64(lim.Max))
	case bucket.Burn:
		e.call.Burns = append(e.call.Burns, i)
		e.number(int64(lim.Max))
		e.number(int64(lim.Rule.Minutes))
		e.number(int64(lim.Rule.For))
		e.text(FieldOf(lim.Flag))
		e.text(ascii(lim.Rule.Reason))
	case bucket.SharedBucket:
		e.pool(lim.Pool, lim.Share)
	}
}

// pool adds what divides a shared bucket.
func (e *encoder) pool(p *bucket.Pool, share string) {
	at, borrow := "*", "1"
	for i := range p.Shares {
		if s := &p.Shares[i]; s.Name == share {
			at, borrow = "~"+part(share), flag(s.Borrow)
		}
	}
	e.text(at)
	e.text(borrow)
	e.number(int64(p.Rate))
	e.number(int64(p.Per))
	e.number(int64(p.Burst))
	e.number(int64(p.Most(share)))
	e.number(int64(len(p.Shares)))
	for i := range p.Shares {
		s := &p.Shares[i]
		e.text("~" + part(s.Name))
		e.number(int64(s.Rate))
		e.number(int64(s.Burst))
		e.text(flag(s.Reserved))
	}
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
