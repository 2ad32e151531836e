package config

import "strings"

// What bounds the work that a name makes: no model is called by more bytes, and no gateway puts
// more prefixes in front of a name.
const (
	maxAsked    = 256
	maxPrefixes = 8
)

// Model finds the model that a caller's name means: the exact name, an alias, and then the
// spellings under which gateways and providers hand names around: any case, behind a provider's
// prefix ("x/y/name"), with a date at the end ("-2031-01-05", "-20310105"). A more literal reading
// wins over a freer one. Where none fits, known is false and the answer is the model whose figures
// unknown ones get, or nil if they are to be refused.
func (c *Compiled) Model(name string) (m *Model, known bool) {
	if len(name) > maxAsked {
		return c.UnknownModel, false
	}
	if m := c.spelled(name); m != nil {
		return m, true
	}
	if short, ok := undated(name); ok {
		if m := c.spelled(short); m != nil {
			return m, true
		}
	}
	return c.UnknownModel, false
}

// spelled tries a name as it is, then without one more step of its prefix each time.
func (c *Compiled) spelled(name string) *Model {
	for range 1 + maxPrefixes {
		if m := c.named(name); m != nil {
			return m
		}
		if m := c.folded(name); m != nil {
			return m
		}
		_, rest, ok := strings.Cut(name, "/")
		if !ok {
			return nil
		}
		name = rest
	}
	return nil
}

// named finds a name or alias exactly as written; names come before aliases.
func (c *Compiled) named(name string) *Model {
	for _, m := range c.Models {
		if m.Name == name {
			return m
		}
	}
	for _, m := range c.Models {
		if has(m.Aliases, name) {
			return m
		}
	}
	return nil
}

func (c *Compiled) folded(name string) *Model {
	for _, m := range c.Models {
		if strings.EqualFold(m.Name, name) {
			return m
		}
		for _, alias := range m.Aliases {
			if strings.EqualFold(alias, name) {
				return m
			}
		}
	}
	return nil
}

// undated takes a date off the end of a name. On Vertex AI it stands behind an @.
func undated(name string) (string, bool) {
	for _, shape := range []string{"-0000-00-00", "-00000000", "@00000000"} {
		at := len(name) - len(shape)
		if at > 0 && shaped(name[at:], shape) {
			return name[:at], true
		}
	}
	return name, false
}

func shaped(s, shape string) bool {
	for i := 0; i < len(shape); i++ {
		if shape[i] == '0' && !digit(s[i]) || shape[i] != '0' && s[i] != shape[i] {
			return false
		}
	}
	return true
}
