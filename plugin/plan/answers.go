package plan

import (
	"strconv"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

const (
	// toldMost bounds what a worker remembers of answers: pairs of a tenant and a model, some 150 bytes each.
	toldMost = 4096
	// toldFor is how long a figure is believed that no settlement has renewed since: what it was made of
	// is a day older by then.
	toldFor bucket.Millis = 86_400_000
)

// lengths remembers what the store said of answers. Where it is full, one goes that was not told anew
// lately: its next call reserves by the model's default_output, and learns of it again.
type lengths struct {
	at   map[string]int // into list
	list []figure
	hand int // who is looked at next
}

type figure struct {
	of     string
	tokens bucket.Tokens
	when   bucket.Millis
	again  bool // told again since the hand was here
}

func (t *lengths) put(of string, tokens bucket.Tokens, now bucket.Millis) {
	f := figure{of: of, tokens: tokens, when: now}
	if i, ok := t.at[of]; ok {
		f.again = true
		t.list[i] = f
		return
	}
	if tokens == 0 {
		return // there is nothing to remember
	}
	if t.at == nil {
		t.at = map[string]int{}
	}
	if len(t.list) < toldMost {
		t.at[of] = len(t.list)
		t.list = append(t.list, f)
		return
	}
	for t.list[t.hand].again {
		t.list[t.hand].again = false
		t.hand = (t.hand + 1) % len(t.list)
	}
	delete(t.at, t.list[t.hand].of)
	t.list[t.hand], t.at[of] = f, t.hand
	t.hand = (t.hand + 1) % len(t.list)
}

// get is the figure, or 0. One from the future is of a clock that was set back since, and as good.
func (t *lengths) get(of string, now bucket.Millis) bucket.Tokens {
	i, ok := t.at[of]
	if !ok || now-t.list[i].when >= toldFor {
		return 0
	}
	return t.list[i].tokens
}

// Told takes what the store said at the settlement of an answer: so long are most like it; 0 is that
// it doesn't know.
func (t *Memory) Told(of string, tokens bucket.Tokens, now bucket.Millis) {
	t.lengths.put(of, tokens, now)
}

// learns says whether the length of this call's answers is learned: where it asks for no cap and nothing
// else says how long they are, unless the model's learn_output is off.
func (p *Plan) learns() bool {
	f := &p.Facts
	return p.Model.LearnOutput && !f.HasMaxOutput && !f.NoOutput && !f.Free && f.Images == 0 && !f.Background
}

// alike is a name for the answers that are learned together, whose figure is nobody else's: those of one
// model to one tenant, or one key where calls have no tenant, or one org where they have no key either, and
// of one class. Unknown models are one. The names are hashed: the store is told of nobody, and its keys are short.
func (p *Plan) alike(c *config.Compiled) string {
	b := make([]byte, 0, 128)
	add := func(name, value string) {
		if value != "" {
			b = append(append(b, name...), '=')
			b = append(strconv.AppendInt(b, int64(len(value)), 10), ':')
			b = append(b, value...)
		}
	}
	value := func(name string) string { return p.Caller.identity(c, name) }
	add("org", value("org"))
	if tenant := value("tenant"); tenant != "" {
		add("tenant", tenant)
	} else {
		add("key", value("key"))
	}
	add(classIdentity, value(classIdentity))
	if p.Known {
		add("model", p.Model.Name)
	}
	return digest(string(b))
}

// identity is the value of an identity by its name.
func (c Caller) identity(by *config.Compiled, name string) string {
	for i := range by.Identities {
		if by.Identities[i].Name == name {
			return c.value(i)
		}
	}
	return ""
}

// Answer is what a call teaches whose answer ended by itself. One call teaches one length, that of its
// answers on average.
func (p *Plan) Answer(u dialect.Usage) bucket.Answer {
	if p.answers == "" {
		return bucket.Answer{}
	}
	n := bucket.Tokens(max(p.Facts.N, 1))
	out := p.reported(u).Output
	return bucket.Answer{Of: p.answers, Tokens: out/n + min(out%n, 1)}
}

// fit makes what was learned no more than the call's limits can ever give, so that no call is refused for
// good by what others of its kind have produced. Of a default_output the configuration's owner says so.
func (p *Plan) fit() {
	if p.Learned == 0 {
		return
	}
	all := make([]int, len(p.Items))
	most := make([]bucket.Amount, len(p.Items))
	for i := range p.Items {
		all[i], most[i] = i, capacity(&p.Items[i].Limit)
	}
	p.lessen(all, most)
}

// Lessen is for a call that a store can never grant, because overrides that it alone knows of let limits
// of a part give less than they are configured to: it makes what was learned no more than most, which is what
// the store says that they give, in the part's order. False: that is not what the call is too large by.
func (p *Plan) Lessen(part *Part, most []bucket.Amount) bool {
	return p.Learned > 0 && len(most) == len(part.At) && p.lessen(part.At, most)
}

// lessen changes the amounts of the items at these places, so that none is above its most. Where the
// prompt alone is, one token is learned. It says whether that made them fit.
func (p *Plan) lessen(at []int, most []bucket.Amount) bool {
	if p.fits(p.Learned, at, most) {
		return false
	}
	low, high := bucket.Tokens(0), p.Learned // the most that fits is low or above, and below high
	for high-low > 1 {
		if mid := low + (high-low)/2; p.fits(mid, at, most) {
			low = mid
		} else {
			high = mid
		}
	}
	p.Learned = max(low, 1)
	p.Output = times(p.Learned, max(p.Facts.N, 1))
	worst := p.Estimate(p.Output)
	for _, i := range at {
		p.Items[i].Amount, _ = p.need(p.Limits[i], worst)
	}
	return low > 0
}

// fits says whether each limit that can refuse could give what answers of this length need.
func (p *Plan) fits(each bucket.Tokens, at []int, most []bucket.Amount) bool {
	worst := p.Estimate(times(each, max(p.Facts.N, 1)))
	for j, i := range at {
		if amount, ok := p.need(p.Limits[i], worst); Enforced(&p.Items[i]) && (!ok || amount > most[j]) {
			return false
		}
	}
	return true
}
