package bucket

import (
	"errors"
	"strconv"
)

// Pool divides a bucket among classes. The whole refills at Rate up to Burst; each share has a
// bucket of its own in it. What is in the whole and in no share is spare: it grows by what full
// shares can't hold, and a share that may borrow takes from it what its own lacks. A reserved share
// is no part of the whole: nobody borrows what it leaves. So a provider's limit is the whole and its
// reserved shares together, and less of it (headroom) is just smaller figures.
type Pool struct {
	Rate   Amount // per Per, without the reserved shares
	Per    Millis
	Burst  Amount // at most MaxPool; at least the bursts of the shares in it together
	Shares []Share
}

// Share is the part of a class.
type Share struct {
	Name     string
	Rate     Amount // refilled per the Pool's Per; 0 is nothing of its own
	Burst    Amount
	Borrow   bool
	Reserved bool
}

const (
	// MaxPool bounds what a shared bucket counts: sums over its shares stay below 2^53.
	MaxPool   = 1<<49 - 1
	maxShares = 12
)

// Check says what keeps a store from carrying the pool out, or nil.
func (p *Pool) Check() error {
	if err := within("rate", int64(p.Rate), 1, MaxAmount); err != nil {
		return err
	}
	if err := within("per", int64(p.Per), 1, int64(MaxPer)); err != nil {
		return err
	}
	if err := within("burst", int64(p.Burst), 0, MaxPool); err != nil {
		return err
	}
	if (wide{0, MaxAmount}).less(product(uint64(p.Rate), uint64(p.Per))) {
		return errors.New("rate: times its period in milliseconds it is above 2^53-1; choose one with a larger common divisor")
	}
	if len(p.Shares) > maxShares {
		return errors.New("shares: more than " + strconv.Itoa(maxShares))
	}
	rate, burst := p.Rate, p.Burst
	for i := range p.Shares {
		s := &p.Shares[i]
		field := "shares[" + strconv.Itoa(i) + "]."
		if s.Name == "" {
			return errors.New(field + "name: empty")
		}
		for _, other := range p.Shares[:i] {
			if other.Name == s.Name {
				return errors.New(field + "name: stands twice")
			}
		}
		if err := within(field+"rate", int64(s.Rate), 0, MaxAmount/int64(p.Per)); err != nil {
			return err
		}
		if err := within(field+"burst", int64(s.Burst), 0, MaxPool); err != nil {
			return err
		}
		if s.Reserved {
			continue
		}
		if s.Rate > rate {
			return errors.New(field + "rate: the shares' rates together are above the whole")
		}
		if s.Burst > burst {
			return errors.New(field + "burst: the shares' bursts together are above the whole")
		}
		rate -= s.Rate
		burst -= s.Burst
	}
	return nil
}

// share is the part of a class, or nothing of its own and the right to borrow.
func (p *Pool) share(name string) Share {
	for _, s := range p.Shares {
		if s.Name == name {
			return s
		}
	}
	return Share{Borrow: true}
}

// Most is what a class can have at the most, if nobody else acts: its burst, and what is in no
// share's burst if it may borrow.
func (p *Pool) Most(name string) Amount {
	s := p.share(name)
	if !s.Borrow {
		return s.Burst
	}
	most := s.Burst + p.Burst
	for _, other := range p.Shares {
		if !other.Reserved {
			most -= other.Burst
		}
	}
	return most
}
