package plan

import (
	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

// Estimate is the usage of a call whose provider reported none: the estimated prompt, what was
// counted of the answer, and what else the request asked for.
func (p *Plan) Estimate(out bucket.Tokens) dialect.Usage {
	return p.Asked(dialect.Usage{Input: p.Input, Output: capped(out)})
}

// documentsInUnit is how many documents one search unit ranks at the most (Cohere's pricing page, 2026-10).
const documentsInUnit = 100

// Asked fills in what providers seldom report of a call that they served, and the request says: how many pictures to make,
// documents to rank, seconds to hear.
func (p *Plan) Asked(u dialect.Usage) dialect.Usage {
	f := &p.Facts
	if u.SearchUnits > 0 && u.Input == 0 && u.Output == 0 {
		u.Input = p.Input // who bills searches counts no tokens
	}
	if n := max(f.Documents, f.Chunks); u.SearchUnits == 0 && n > 0 {
		u.SearchUnits = (n-1)/documentsInUnit + 1
	}
	if u.Images == 0 {
		u.Images = f.Images
	}
	if u.AudioMillis == 0 {
		u.AudioMillis = f.AudioMillis
	}
	return u
}

// reported is what a provider's figures mean: none is below 0 or above what a store can keep, parts are
// no more than their whole, and cached input is part of the input, however the target reports it.
func (p *Plan) reported(u dialect.Usage) dialect.Usage {
	u.Input, u.Output = capped(u.Input), capped(u.Output)
	if p.Target != nil && p.Dialect != nil {
		switch apart := p.Dialect.CacheApart(); {
		case p.Target.Cached == config.CachedApart && !apart:
			u.Input = plus(u.Input, u.CachedInput)
		case p.Target.Cached == config.CachedInside && apart:
			// The meter has added them up, as the API would have it.
			u.Input = capped(u.Input - plus(u.CachedInput, plus(u.CacheWrite, u.CacheHour)))
		}
	}
	// Where the parts of the input overlap, the cheapest gives way: that is against the spender.
	rest := u.Input
	for _, part := range [...]*bucket.Tokens{&u.AudioInput, &u.CacheHour, &u.CacheWrite, &u.CachedInput} {
		*part = min(capped(*part), rest)
		rest -= *part
	}
	u.AudioOutput, u.Reasoning = min(capped(u.AudioOutput), u.Output), min(capped(u.Reasoning), u.Output)
	for _, n := range [...]*int64{&u.SearchUnits, &u.Images, &u.Searches} {
		*n = min(max(*n, 0), bucket.MaxAmount)
	}
	u.AudioMillis = min(max(u.AudioMillis, 0), bucket.MaxAmount)
	return u
}

// Absurd says that no call of this kind can have used so much: more than the model's context holds,
// as a prompt or as one of the answers. A provider that searches by itself reads its model's context
// anew for each search, and what it remembers of earlier calls is part of it.
func (p *Plan) Absurd(u dialect.Usage) bool {
	if p.Model == nil || p.Model.Context == 0 || !p.Known {
		return false
	}
	u = p.reported(u)
	rounds := 1 + min(u.Searches, mostRounds)
	if p.Facts.Inputs > 1 { // each is read by itself
		rounds *= min(p.Facts.Inputs, bucket.MaxAmount>>8)
	}
	return u.Input > times(p.Model.Context, rounds) || u.Output > times(times(p.Model.Context, rounds), max(p.Facts.N, 1))
}

// mostRounds bounds how often a provider's own tools can have read the context.
const mostRounds = 100

// rare says that few calls use what a limit counts; those that don't do not meet it.
func rare(count config.Measure) bool {
	switch count {
	case config.CountSearchUnits, config.CountImages, config.CountAudioSeconds:
		return true
	}
	return false
}

// amount is what a usage takes from a limit, in the limit's unit; false where that can't be said,
// for a cost without a price or one above bucket.MaxAmount.
func (p *Plan) amount(count config.Measure, u dialect.Usage) (bucket.Amount, bool) {
	switch count {
	case config.CountRequests:
		return 1, true
	case config.CountInputTokens:
		return bucket.Amount(capped(u.Input)), true
	case config.CountOutputTokens:
		return bucket.Amount(capped(u.Output)), true
	case config.CountSearchUnits:
		return bucket.Amount(capped(bucket.Tokens(u.SearchUnits))), true
	case config.CountImages:
		return bucket.Amount(capped(bucket.Tokens(u.Images))), true
	case config.CountAudioSeconds:
		return bucket.Amount((capped(bucket.Tokens(u.AudioMillis)) + 999) / 1000), true
	case config.CountCost:
		cost, ok := p.cost(u)
		if !ok {
			return bucket.MaxAmount, false
		}
		return bucket.Amount(cost), true
	}
	return bucket.Amount(plus(u.Input, u.Output)), true
}

// covered says that the model has a price for what a call with this usage, as it was planned, is billed
// by: pictures by themselves or by the output's tokens, documents by themselves or by the input's, sound
// by the minute or by tokens.
func (p *Plan) covered(u dialect.Usage) bool {
	has := func(any config.Priced) bool { return p.Priced&any != 0 }
	switch {
	case u.Images > 0:
		return has(config.PricedImages | config.PricedOutput)
	case u.SearchUnits > 0:
		return has(config.PricedUnits | config.PricedInput)
	case u.AudioMillis > 0 && has(config.PricedAudio):
		return true
	case u.Output > 0:
		return has(config.PricedOutput) && has(config.PricedInput)
	case u.Input > 0:
		return has(config.PricedInput | config.PricedUnits | config.PricedAudio)
	}
	return true
}

// cost is what a usage costs that reported has been over. What has no price costs nothing beside what
// the call was planned to be billed by.
func (p *Plan) cost(u dialect.Usage) (bucket.Money, bool) {
	if p.Priced == 0 {
		return 0, false
	}
	cost, err := bucket.Cost(p.Price, bucket.Used{
		Input: u.Input, CachedInput: u.CachedInput, CacheWrite: u.CacheWrite, CacheHour: u.CacheHour, AudioInput: u.AudioInput,
		Output: u.Output, AudioOutput: u.AudioOutput,
		SearchUnits: u.SearchUnits, Images: u.Images, Searches: u.Searches, Audio: u.AudioMillis,
	})
	return cost, err == nil
}
