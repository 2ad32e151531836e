package plan

import (
	"strings"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
)

// named is the value that a name of by or for has in this call.
func (p *Plan) named(k config.Key) string {
	if k.Identity >= 0 {
		return p.Caller.value(k.Identity)
	}
	switch k.Name {
	case "model":
		return p.Model.Name
	case "target":
		return p.Target.Name
	case "provider":
		return p.Target.Provider
	case "dialect":
		return p.Dialect.Name()
	}
	return ""
}

func (p *Plan) meets(l *config.Limit) bool {
	for _, m := range l.For {
		if !m.Fits(p.named(m.Key)) {
			return false
		}
	}
	return true
}

// entity says whom a count is kept for, such as "key=k1,model=gpt-4o". Values are escaped, so that
// no value can pretend to be two.
func (p *Plan) entity(by []config.Key) string { return entity(by, p.named) }

func entity(by []config.Key, value func(config.Key) string) string {
	if len(by) == 0 {
		return ""
	}
	var b strings.Builder
	b.Grow(64)
	for i, k := range by {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(k.Name)
		b.WriteByte('=')
		escape(&b, value(k))
	}
	return b.String()
}

func escape(b *strings.Builder, s string) {
	if !strings.ContainsAny(s, "%,") {
		b.WriteString(s)
		return
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '%':
			b.WriteString("%25")
		case ',':
			b.WriteString("%2C")
		default:
			b.WriteByte(s[i])
		}
	}
}

// HeadKills lists the kill flags that stop a caller whatever the body says.
func HeadKills(c *config.Compiled, who Caller) []string {
	out := append(make([]string, 0, len(c.Identities)+4), "global:all")
	for i, id := range c.Identities {
		if v := who.value(i); v != "" {
			out = append(out, id.Name+":"+v)
		}
	}
	return out
}

func kills(c *config.Compiled, p *Plan) []string {
	out := append(HeadKills(c, p.Caller), "model:"+p.Model.Name)
	if p.Target.Provider != "" {
		out = append(out, "provider:"+p.Target.Provider)
	}
	return append(out, "target:"+p.Target.Name)
}

// EntityOf is the entity that a limit counts for, given values by name: for tools that ask the store
// how a limit stands. A name without a value counts as empty.
func EntityOf(l *config.Limit, values map[string]string) string {
	return entity(l.By, func(k config.Key) string { return values[k.Name] })
}

// StoreLimit is a limit as the store is asked for it.
func StoreLimit(l *config.Limit, entity string, now bucket.Millis) bucket.Limit {
	return limitOf(l, entity, new(Memory), now)
}
