package script

import (
	"errors"
	"strconv"

	"github.com/emmer-proxy/emmer/bucket"
)

// Call is one call of a script: EVALSHA Script.SHA len(Keys) Keys... Args...
type Call struct {
	Script *Script
	Keys   []string // every key that the script touches
	Args   []string // the last one is the nonce
	Nonce  string
	Items  int // how many limits it speaks of
	Kills  int // how many kill flags
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
	c, err := l.call(Reserve, r.ID, nonce, r.Lease, r.Keep, r.Cell, len(r.Items), 5+len(r.Kills))
	if err != nil {
		return Call{}, err
	}
	c.Kills = len(r.Kills)
	c.Args = append(c.Args, decimal(int64(r.Lease)), decimal(int64(r.Keep)), decimal(int64(r.Cell)), decimal(int64(len(r.Kills))))
	c.Args = append(c.Args, r.Kills...)
	return l.items(c, r.Items)
}

// Settle encodes a request, as Reserve does.
func (l Layout) Settle(r bucket.SettleRequest, nonce string) (Call, error) {
	c, err := l.call(Settle, r.ID, nonce, r.Lease, r.Keep, r.Cell, len(r.Items), 5)
	if err != nil {
		return Call{}, err
	}
	if r.Deadline < 0 || r.Deadline > bucket.MaxAmount/8 {
		return Call{}, errors.New("deadline: " + decimal(int64(r.Deadline)) + " is no time")
	}
	c.Args = append(c.Args, decimal(int64(r.Lease)), decimal(int64(r.Keep)), decimal(int64(r.Cell)), decimal(int64(r.Deadline)))
	return l.items(c, r.Items)
}

// Renew encodes a request, as Reserve does.
func (l Layout) Renew(r bucket.RenewRequest, nonce string) (Call, error) {
	c, err := l.call(Renew, r.ID, nonce, r.Lease, r.Keep, r.Cell, len(r.Items), 4)
	if err != nil {
		return Call{}, err
	}
	c.Args = append(c.Args, decimal(int64(r.Lease)), decimal(int64(r.Keep)), decimal(int64(r.Cell)))
	return l.items(c, r.Items)
}

// Level encodes a look at one limit, which changes nothing.
func (l Layout) Level(limit bucket.Limit, nonce string) (Call, error) {
	if nonce == "" {
		return Call{}, errors.New("nonce: empty")
	}
	c := Call{Script: Probe, Nonce: nonce, Keys: []string{l.Ctl()}}
	return l.items(c, []bucket.Item{{Limit: limit}})
}

func (l Layout) call(s *Script, id, nonce string, lease, keep, cell bucket.Millis, items, args int) (Call, error) {
	switch {
	case id == "":
		return Call{}, errors.New("id: empty")
	case nonce == "":
		return Call{}, errors.New("nonce: empty")
	case lease < 1 || lease > mostMillis:
		return Call{}, errors.New("lease: " + decimal(int64(lease)) + " ms is not between 1 ms and 10 years")
	case keep < 0 || keep > mostMillis:
		return Call{}, errors.New("keep: " + decimal(int64(keep)) + " ms is not between 0 and 10 years")
	case cell < 1 || cell > mostMillis:
		return Call{}, errors.New("cell: " + decimal(int64(cell)) + " ms is not between 1 ms and 10 years")
	case items > mostItems:
		return Call{}, errors.New("items: more than " + strconv.Itoa(mostItems))
	}
	return Call{
		Script: s, Nonce: nonce, Items: items,
		Keys: append(make([]string, 0, 2+items), l.Ctl(), l.Record(id)),
		Args: make([]string, 0, args+8*items),
	}, nil
}

// items adds the keys and arguments of the limits, and the nonce.
func (l Layout) items(c Call, items []bucket.Item) (Call, error) {
	c.Items = len(items)
	for i, item := range items {
		lim := item.Limit
		fault := func(text string) (Call, error) {
			return Call{}, errors.New("items[" + strconv.Itoa(i) + "]." + text)
		}
		if err := lim.Check(); err != nil {
			return fault(err.Error())
		}
		if item.Amount < 0 || item.Amount > bucket.MaxAmount {
			return fault("amount: " + decimal(int64(item.Amount)) + " is not between 0 and 2^53-1")
		}
		key := l.Limit(lim)
		for _, other := range c.Keys {
			if other == key {
				return fault("name: " + strconv.Quote(lim.Name) + " stands twice for the same entity")
			}
		}
		c.Keys = append(c.Keys, key)
		lost := "r"
		if lim.Lost == bucket.Charge {
			lost = "c"
		}
		c.Args = append(c.Args, kindLetter(lim.Kind), decimal(int64(item.Amount)), lost)
		if lim.Kind == bucket.TokenBucket {
			c.Args = append(c.Args, decimal(int64(lim.Rate)), decimal(int64(lim.Per)), decimal(int64(lim.Burst)))
			continue
		}
		c.Args = append(c.Args, decimal(int64(lim.Max)))
		for _, b := range lim.Bounds {
			c.Args = append(c.Args, decimal(int64(b)))
		}
	}
	c.Args = append(c.Args, c.Nonce)
	return c, nil
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
