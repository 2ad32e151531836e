package config

import "github.com/emmer-proxy/emmer/bucket"

// Priced says which uses of a model have a price; none is 0.
type Priced uint8

const (
	PricedInput Priced = 1 << iota
	PricedOutput
	PricedUnits
	PricedImages
	PricedAudio // sound that is heard, by the minute
)

const (
	priceFields = "input cached_input cache_write cache_write_1h audio_input output audio_output search_unit image web_search audio_minute"

	perMillion = "the price of 1,000,000 tokens, a decimal string such as \"2.50\""
	each       = "the price of one, a decimal string such as \"0.04\""
)

// price reads what a model costs. Input and output go together, save for models that write nothing;
// parts of the input or output that have no price of their own cost what the whole costs.
func (r *reader) price(c *Compiled, n *node) (bucket.Price, Priced) {
	var p bucket.Price
	if !r.object(n, priceFields, "") {
		return p, PricedInput | PricedOutput
	}
	if len(n.kids) == 0 {
		r.faultFound(n, "no prices", "at least one of "+listed(priceFields))
	}
	has := Priced(0)
	money := func(field, want string, or bucket.Money, kind Priced) bucket.Money {
		v := n.get(field)
		if v == nil {
			return or
		}
		has |= kind
		return r.money(c, v, want)
	}
	p.Input = money("input", perMillion, 0, PricedInput)
	p.CachedInput = money("cached_input", perMillion, p.Input, 0)
	p.CacheWrite = money("cache_write", perMillion, p.Input, 0)
	p.CacheHour = money("cache_write_1h", perMillion, p.CacheWrite, 0)
	p.AudioInput = money("audio_input", perMillion, p.Input, 0)
	p.Output = money("output", perMillion, 0, PricedOutput)
	p.AudioOutput = money("audio_output", perMillion, p.Output, 0)
	p.SearchUnit = money("search_unit", each, 0, PricedUnits)
	p.Image = money("image", each, 0, PricedImages)
	p.Search = money("web_search", each, 0, 0)
	p.AudioMinute = money("audio_minute", "the price of a minute, a decimal string such as \"0.006\"", 0, PricedAudio)
	for _, part := range [...]struct {
		field, of string
		whole     Priced
	}{
		{"cached_input", "input", PricedInput}, {"cache_write", "input", PricedInput}, {"cache_write_1h", "input", PricedInput},
		{"audio_input", "input", PricedInput}, {"output", "input", PricedInput}, {"audio_output", "output", PricedOutput},
	} {
		if n.has(part.field) && has&part.whole == 0 {
			r.missing(n, part.of, perMillion)
			has |= part.whole
		}
	}
	return p, has
}
