package config

import (
	"strings"

	"github.com/emmer-proxy/emmer/bucket"
)

// defaultOutput is reserved where a call names no cap, nothing was learned and the model has no default.
const defaultOutput = 1024

func (r *reader) models(c *Compiled, root *node) {
	n := root.get("models")
	if n == nil {
		r.missing(root, "models", "an object of models; without one every call would be refused")
	} else if r.table(n, "models", printable, "1 to 128 printable ASCII characters") {
		for _, kid := range n.kids {
			c.Models = append(c.Models, r.model(c, kid))
		}
		if len(n.kids) == 0 {
			r.faultFound(n, "no models", "at least one; without one every call would be refused")
		}
		r.aliases(c, n)
		for i, m := range c.Models {
			r.counting(m, n.kids[i])
		}
	}
	r.unknownModel(c, root.get("unknown_model"))
}

func printable(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

func (r *reader) model(c *Compiled, n *node) *Model {
	m := &Model{Name: n.key, DefaultOutput: defaultOutput}
	if !r.object(n, "aliases tokenizer prompt context max_output default_output learn_output price", "can") {
		return m
	}
	m.Context = bucket.Tokens(r.count(n.get("context"), 0, 1, bucket.MaxAmount))
	m.MaxOutput = bucket.Tokens(r.count(n.get("max_output"), 0, 1, bucket.MaxAmount))
	if v := n.get("default_output"); v != nil {
		m.DefaultOutput = bucket.Tokens(r.count(v, defaultOutput, 1, bucket.MaxAmount))
		if m.MaxOutput > 0 && m.DefaultOutput > m.MaxOutput {
			r.fault(v, "no more than max_output, which is "+decimal(int64(m.MaxOutput)))
		}
	} else if m.MaxOutput > 0 {
		m.DefaultOutput = min(m.DefaultOutput, m.MaxOutput)
	}
	m.LearnOutput = r.flag(n.get("learn_output"), true)
	if v := n.get("price"); v != nil {
		m.Price, m.Priced = r.price(c, v)
	}
	return m
}

// aliases reads them when all models are known, because an alias must not be another's name.
func (r *reader) aliases(c *Compiled, n *node) {
	taken := make(map[string]string, len(c.Models))
	for _, m := range c.Models {
		taken[m.Name] = m.Name
	}
	for i, m := range c.Models {
		v := n.kids[i].get("aliases")
		if v == nil || n.kids[i].kind != kindObject {
			continue
		}
		for _, alias := range r.texts(v, "a list of other names of this model") {
			if owner, ok := taken[alias]; ok {
				r.faultFound(v, "\""+alias+"\", which is a name of "+owner, "names that no other model has")
				continue
			}
			if !printable(alias) {
				r.faultFound(v, "an alias that doesn't fit", "1 to 128 printable ASCII characters")
				continue
			}
			taken[alias] = m.Name
			m.Aliases = append(m.Aliases, alias)
		}
	}
}

func (r *reader) unknownModel(c *Compiled, n *node) {
	if n == nil {
		return
	}
	const want = "deny, or {use: a name under models}"
	if n.kind != kindObject {
		if n.kind != kindString || n.text != "deny" {
			r.fault(n, want)
		}
		return
	}
	if !r.object(n, "use", "") {
		return
	}
	use := n.get("use")
	if use == nil {
		r.missing(n, "use", "a name under models")
		return
	}
	if name := r.text(use, "", "a name under models"); name != "" {
		if c.UnknownModel = c.named(name); c.UnknownModel == nil {
			r.fault(use, "a name under models")
		}
	}
}

// price reads money for a million units of each. Cached input costs as much as other input
// unless it is priced.
// money reads a decimal string. A number is refused: it may have been a float on its way here.
func (r *reader) money(c *Compiled, n *node, want string) bucket.Money {
	if n.kind != kindString {
		r.fault(n, want)
		return 0
	}
	m, err := bucket.ParseMoney(n.text, c.Currency.Unit)
	if err != nil {
		r.fault(n, want+", no finer than 1/"+decimal(int64(c.Currency.Unit))+" "+c.Currency.Code+" and below 2^53 of these")
		return 0
	}
	return m
}

func (r *reader) targets(c *Compiled, n *node) {
	if n != nil && r.table(n, "targets", targetName, "1 to 64 of A-Z, a-z, 0-9, _, - and .") {
		for _, kid := range n.kids {
			c.Targets = append(c.Targets, r.target(c, kid))
		}
		if len(n.kids) == 0 {
			r.faultFound(n, "no targets", "at least one, or the field left out")
		}
	}
	if n == nil {
		c.Targets = []*Target{{Name: "default"}}
	}
}

func targetName(s string) bool {
	return s != "" && len(s) <= 64 && plain(strings.ReplaceAll(s, ".", "-"))
}

func (r *reader) target(c *Compiled, n *node) *Target {
	t := &Target{Name: n.key}
	if !r.object(n, "provider region cached_in_input include_usage models", "") {
		return t
	}
	const want = "1 to 64 of A-Z, a-z, 0-9, _, - and ."
	for _, f := range []struct {
		field string
		to    *string
	}{{"provider", &t.Provider}, {"region", &t.Region}} {
		v := n.get(f.field)
		*f.to = r.text(v, "", want)
		if *f.to != "" && !targetName(*f.to) {
			r.fault(v, want)
		}
	}
	t.AskUsage = r.word(n.get("include_usage"), "as_asked inject", "") == 1
	if v := n.get("cached_in_input"); v != nil {
		t.Cached = CachedApart
		if r.flag(v, true) {
			t.Cached = CachedInside
		}
	}
	v := n.get("models")
	if v == nil {
		return t
	}
	if v.kind != kindObject || len(v.kids) == 0 {
		r.fault(v, "an object of models that this target serves, or the field left out for all")
		return t
	}
	for _, kid := range v.kids {
		m := c.named(kid.key)
		if m == nil {
			r.faultFound(kid, "a model that is not under models", "one that is")
		}
		if !r.object(kid, "name price", "") || m == nil {
			continue
		}
		tm := TargetModel{Model: m, Price: m.Price, Priced: m.Priced}
		if name := kid.get("name"); name != nil {
			tm.SendName = r.text(name, "", "the model's name at this target")
		}
		if price := kid.get("price"); price != nil {
			tm.Price, tm.Priced = r.price(c, price)
		}
		t.Models = append(t.Models, tm)
	}
	return t
}
