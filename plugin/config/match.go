package config

import (
	"slices"
	"strings"

	"github.com/emmer-proxy/emmer/plugin/dialect"
)

// key resolves a name of by or for.
func (c *Compiled) key(name string) (Key, bool) {
	for i, id := range c.Identities {
		if id.Name == name {
			return Key{name, i}, true
		}
	}
	return Key{name, -1}, within(builtIn, name)
}

func (c *Compiled) keyNames() string {
	var b strings.Builder
	for _, id := range c.Identities {
		b.WriteString(id.Name + " ")
	}
	return b.String() + builtIn
}

func (r *reader) by(c *Compiled, l *Limit, n *node) {
	if n.kind != kindList {
		r.fault(n, "a list of names, [] for one count for all")
		return
	}
	for _, kid := range n.kids {
		want := "one of " + listed(c.keyNames())
		name := r.text(kid, "", want)
		if name == "" {
			continue
		}
		key, ok := c.key(name)
		if !ok {
			r.fault(kid, want)
			continue
		}
		for _, have := range l.By {
			if have == key {
				r.faultFound(kid, kid.found()+" a second time", "it once")
			}
		}
		l.By = append(l.By, key)
	}
}

func (r *reader) matches(c *Compiled, l *Limit, n *node) {
	if n.kind != kindObject {
		r.fault(n, "an object of names and the values that they must have")
		return
	}
	for _, kid := range n.kids {
		key, ok := c.key(kid.key)
		if !ok {
			r.faultFound(kid, "a name that is not known", "one of "+listed(c.keyNames()))
			continue
		}
		m := Match{Key: key}
		values := []*node{kid}
		if kid.kind == kindList {
			values = kid.kids
			if len(values) == 0 {
				r.faultFound(kid, "an empty list", "at least one value, or the field left out")
			}
		}
		for _, v := range values {
			for _, p := range r.pattern(c, key, v) {
				if !has(m.Any, p) {
					m.Any = append(m.Any, p)
				}
			}
		}
		l.For = append(l.For, m)
	}
}

// pattern reads one value of a match. Patterns of models become the names of the models that they
// mean, so that no spelling a caller chooses slips past a limit.
func (r *reader) pattern(c *Compiled, key Key, n *node) []string {
	p := r.text(n, "", "a string, or a list of strings")
	if p == "" {
		return nil
	}
	if at := strings.IndexByte(p, '*'); at >= 0 && at != len(p)-1 {
		r.fault(n, "a * only at the end")
		return nil
	}
	known, want := c.values(key)
	if known == nil {
		if key.Identity >= 0 {
			r.hashedValue(n, p, c.Identities[key.Identity])
		}
		return []string{p}
	}
	var out []string
	for _, v := range known {
		if Matches(p, v.spelling) && !has(out, v.name) {
			out = append(out, v.name)
		}
	}
	if out == nil {
		r.fault(n, want)
	}
	if key.Name == "model" && key.Identity < 0 {
		return out
	}
	return []string{p}
}

type spelling struct{ spelling, name string }

// values lists all values that a name can have, or nil where they aren't known beforehand.
func (c *Compiled) values(key Key) (out []spelling, want string) {
	add := func(s, name string) { out = append(out, spelling{s, name}) }
	switch {
	case key.Identity >= 0:
		id := c.Identities[key.Identity]
		for _, v := range id.OneOf {
			add(v, v)
		}
		if len(id.OneOf) == 0 && id.constant() {
			for _, s := range id.Sources {
				add(s.Value, s.Value)
			}
			return out, "a value that " + key.Name + " can have"
		}
		if id.Missing == Pass && len(id.OneOf) > 0 {
			add("", "")
		}
		return out, "a value that is in one_of of " + key.Name
	case key.Name == "model":
		for _, m := range c.Models {
			add(m.Name, m.Name)
			for _, a := range m.Aliases {
				add(a, m.Name)
			}
		}
		return out, "a name or alias under models, or a pattern that fits one"
	case key.Name == "dialect":
		names := dialect.Names()
		for _, name := range names {
			add(name, name)
		}
		return out, "one of " + strings.Join(names, ", ") + ", or a pattern that fits one"
	case key.Name == "target":
		for _, t := range c.Targets {
			add(t.Name, t.Name)
		}
		return out, "a name under targets, or a pattern that fits one"
	case key.Name == "provider":
		for _, t := range c.Targets {
			add(t.Provider, t.Provider)
		}
		return out, "a provider of a target, or a pattern that fits one"
	}
	return nil, ""
}

// constant says that no caller has a say in the value.
func (id Identity) constant() bool {
	return !slices.ContainsFunc(id.Sources, func(s Source) bool { return s.Value == "" })
}

// Matches says whether a value fits a pattern: equal, or beginning as the pattern does before its
// trailing *.
func Matches(pattern, value string) bool {
	if head, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(value, head)
	}
	return pattern == value
}

// priced checks that no call which a limit of cost counts can be without a price.
func (r *reader) priced(c *Compiled, l *Limit, n *node) {
	var without []string
	for _, t := range c.Targets {
		if !l.reaches("target", t.Name) || !l.reaches("provider", t.Provider) {
			continue
		}
		for _, m := range c.Models {
			tm, serves := t.Serves(m)
			if serves && l.reaches("model", m.Name) && m.Priced == 0 && (tm == nil || tm.Priced == 0) && !has(without, m.Name) {
				without = append(without, m.Name)
			}
		}
	}
	if len(without) > 0 {
		at := n
		if v := n.get("count"); v != nil {
			at = v
		}
		r.faultFound(at, "cost, and unpriced models: "+strings.Join(without, ", "), "a price for each, or a for that leaves them out")
	}
}

// reaches says whether a call with this value of a built-in name can match.
func (l *Limit) reaches(name, value string) bool {
	for _, m := range l.For {
		if m.Key.Identity < 0 && m.Key.Name == name && !m.Fits(value) {
			return false
		}
	}
	return true
}

// Fits says whether one of the patterns fits the value.
func (m Match) Fits(value string) bool {
	for _, p := range m.Any {
		if Matches(p, value) {
			return true
		}
	}
	return false
}

// Serves says whether the target serves a model, and as what; nil means under its own name.
func (t *Target) Serves(m *Model) (*TargetModel, bool) {
	if len(t.Models) == 0 {
		return nil, true
	}
	for i := range t.Models {
		if t.Models[i].Model == m {
			return &t.Models[i], true
		}
	}
	return nil, false
}
