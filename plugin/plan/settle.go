package plan

import (
	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
	"github.com/emmer-proxy/emmer/tokenizer"
)

// Actual is what the call took from each limit, in the order of Items. It counts as one request.
// Numbers that no call can have become the nearest that one can.
func (p *Plan) Actual(u dialect.Usage) []bucket.Item {
	u = p.reported(u)
	items := p.Nothing()
	for i := range items {
		items[i].Amount = p.took(p.Limits[i], u)
	}
	return items
}

// Nothing gives back all that was reserved: the order of Items with amounts of 0.
func (p *Plan) Nothing() []bucket.Item {
	items := make([]bucket.Item, len(p.Items))
	for i := range p.Items {
		items[i].Limit, items[i].Shadow = p.Items[i].Limit, p.Items[i].Shadow
	}
	return items
}

// Cost is what a usage costs; false without a price.
func (p *Plan) Cost(u dialect.Usage) (bucket.Money, bool) {
	return p.cost(p.reported(u))
}

// Output counts what a model produced. It keeps no text, so its size doesn't grow with the answer.
type Output struct {
	counter *tokenizer.Counter
	sum     bucket.Tokens
	open    bool
}

// NewOutput makes a sink for the answer's meter that counts with the model's encoding.
func (p *Plan) NewOutput() *Output {
	o := &Output{counter: p.Model.Encoding.NewCounter()}
	o.counter.Budget(p.exact)
	return o
}

// Text takes the next piece of a text.
func (o *Output) Text(_ dialect.Part, p []byte, last bool) {
	o.counter.WriteJSON(p)
	o.open = true
	if last {
		o.Tokens()
	}
}

// End does nothing: answers have no items.
func (o *Output) End(dialect.Item) {}

// Tokens is the count so far. It ends a text of which not all has come: what comes later counts as
// a new one, which may make the count higher by a token, never lower.
func (o *Output) Tokens() bucket.Tokens {
	if o.open {
		o.open = false
		o.sum = plus(o.sum, bucket.Tokens(o.counter.Finish()))
	}
	return o.sum
}

// Fresh gives calendar windows the bounds around now, where the present period is no longer that of
// the reserve: a store that books late needs the present period for what the old one can't take.
// The list that was given is left as it is.
func Fresh(c *config.Compiled, items []bucket.Item, now bucket.Millis) []bucket.Item {
	fresh := items
	for i := range items {
		l := &items[i].Limit
		if l.Kind != bucket.CalendarWindow || now < l.Bounds[2] {
			continue
		}
		for _, rule := range c.Limits {
			if rule.Name != l.Name {
				continue
			}
			if &fresh[0] == &items[0] {
				fresh = append([]bucket.Item(nil), items...)
			}
			fresh[i].Limit.Bounds = rule.Window.Bounds(now)
		}
	}
	return fresh
}
