package config

import (
	"slices"
	"strings"
)

// builtIn are the names of by and for that a request has without any identity being configured.
const builtIn = "target model provider dialect"

const (
	sourceFields   = "value header query jwt strip hash"
	identityFields = sourceFields + " from missing one_of default guard"
	identityShape  = "a-z, then at most 31 of a-z, 0-9, _ and -; not global, target, model, provider or dialect"
)

func identityName(s string) bool {
	return s != "" && len(s) <= 32 && 'a' <= s[0] && s[0] <= 'z' && plain(s) && strings.ToLower(s) == s &&
		!within(builtIn+" global", s)
}

func (r *reader) identities(c *Compiled, n *node) {
	if n == nil || !r.table(n, "identities", identityName, identityShape) {
		return
	}
	for _, kid := range n.kids {
		c.Identities = append(c.Identities, r.identity(c, kid))
	}
}

func (r *reader) identity(c *Compiled, n *node) Identity {
	id := Identity{Name: n.key}
	if n.kind == kindList {
		id.Sources = r.sources(c, n)
		return id
	}
	if !r.object(n, identityFields, "") {
		return id
	}
	if from := n.get("from"); from != nil {
		for _, field := range strings.Fields(sourceFields) {
			if v := n.get(field); v != nil {
				r.faultFound(v, "it beside from", "it in an element of from")
			}
		}
		id.Sources = r.sources(c, from)
	} else {
		id.Sources = []Source{r.source(c, n)}
	}
	id.Missing = Unknown(r.word(n.get("missing"), "deny pass", ""))
	if v := n.get("one_of"); v != nil {
		id.OneOf = r.texts(v, "a list of the allowed values")
	}
	if v := n.get("default"); v != nil {
		id.Default = r.text(v, "", "a string that isn't empty")
		if id.Default != "" && len(id.OneOf) > 0 && !has(id.OneOf, id.Default) {
			r.fault(v, "a value that is in one_of")
		}
	}
	if v := n.get("guard"); v != nil {
		id.Guards = r.guards(c, v, id)
	}
	if v := n.get("one_of"); v != nil {
		for _, kid := range v.kids {
			r.hashedValue(kid, kid.text, id)
		}
	}
	if v := n.get("guard"); v != nil {
		for _, kid := range v.kids {
			r.hashedValue(kid, kid.key, id)
		}
	}
	return id
}

// hashedValue refuses a value that an identity can never have because all that it can have are
// hashes. A trailing * may leave a part out.
func (r *reader) hashedValue(n *node, value string, id Identity) {
	for _, s := range id.Sources {
		if !s.Hash {
			return
		}
	}
	if len(id.Sources) == 0 || value == "" || value == id.Default {
		return
	}
	head, part := strings.CutSuffix(value, "*")
	if strings.Trim(head, "0123456789abcdef") != "" || len(head) > hashDigits || !part && len(head) < hashDigits {
		r.faultFound(n, "a value that "+id.Name+" never has, because it is hashed", "the hash: "+decimal(hashDigits)+" of 0-9 and a-f, as the access log shows it")
	}
}

// hashDigits is the length of a hashed value: 16 bytes in hex.
const hashDigits = 32

func (r *reader) sources(c *Compiled, n *node) []Source {
	if n.kind != kindList || len(n.kids) == 0 {
		r.fault(n, "a list of sources")
		return nil
	}
	var out []Source
	for _, kid := range n.kids {
		if r.object(kid, sourceFields, "") {
			out = append(out, r.source(c, kid))
		}
	}
	return out
}

// source reads the fields of one source out of n, which was checked to be an object.
func (r *reader) source(c *Compiled, n *node) Source {
	var s Source
	var given []string
	for _, field := range []string{"value", "header", "query", "jwt"} {
		if n.has(field) {
			given = append(given, field)
		}
	}
	if len(given) != 1 {
		found := "none"
		if len(given) > 1 {
			found = strings.Join(given, " and ")
		}
		r.faultFound(n, found, "one of value, header, query, jwt, or a list of such sources")
	}
	s.Value = r.text(n.get("value"), "", "a string that isn't empty")
	if v := n.get("header"); v != nil {
		s.Header = r.header(v)
	}
	s.Query = r.text(n.get("query"), "", "the name of a query parameter")
	if v := n.get("jwt"); v != nil {
		s.Claim = r.claim(c, v)
	}
	if v := n.get("strip"); v != nil {
		const want = "an authentication scheme, such as Bearer, beside header"
		s.Strip = r.text(v, "", want)
		if s.Strip != "" && (!token(s.Strip) || !n.has("header")) {
			r.fault(v, want)
		}
	}
	s.Hash = r.flag(n.get("hash"), false)
	if v := n.get("hash"); v != nil && s.Hash && n.has("value") {
		r.fault(v, "hash beside header, query or jwt; a constant needs none")
	}
	return s
}

func (r *reader) header(n *node) string {
	const want = "the name of a request header"
	name := strings.ToLower(r.text(n, "", want))
	switch {
	case name == "host":
		return ":authority" // Envoy knows it under the name of HTTP/2 only
	case name == "" || name == ":authority":
	case strings.HasPrefix(name, "x-emmer-"):
		r.fault(n, "a header that is not x-emmer-*, because those are removed from requests")
	case !token(name):
		r.fault(n, want)
	}
	return name
}

// token says that s is a token of RFC 9110 section 5.6.2.
func token(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !letter(c) && !digit(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// Verified claims are dynamic metadata of Envoy's jwt_authn filter: payload_in_metadata names the
// first step of a path below this one (envoy.extensions.filters.http.jwt_authn.v3, Envoy 1.40).
var claimRoot = []string{"metadata", "filter_metadata", "envoy.filters.http.jwt_authn"}

// claim answers the index plus one of a path in c.Claims, where equal paths share a place.
func (r *reader) claim(c *Compiled, n *node) int {
	steps := r.path(n, 2, "a list: what payload_in_metadata says, then the names that lead to the claim")
	if steps == nil {
		return 0
	}
	path := append(slices.Clone(claimRoot), steps...)
	for i, have := range c.Claims {
		if slices.Equal(have, path) {
			return i + 1
		}
	}
	c.Claims = append(c.Claims, path)
	return len(c.Claims)
}

// path reads the steps to a property; unlike in other lists the same step may come twice.
func (r *reader) path(n *node, least int, want string) []string {
	if n.kind != kindList || len(n.kids) < least {
		r.fault(n, want)
		return nil
	}
	var steps []string
	for _, kid := range n.kids {
		s := r.text(kid, "", "a string")
		if s == "" {
			return nil
		}
		steps = append(steps, s)
	}
	return steps
}

func (r *reader) guards(c *Compiled, n *node, id Identity) []Guard {
	if !r.table(n, "values with the claim that each needs", func(string) bool { return true }, "") {
		return nil
	}
	var out []Guard
	for _, kid := range n.kids {
		switch {
		case len(id.OneOf) > 0 && !has(id.OneOf, kid.key):
			r.faultFound(kid, "a guard of a value that is not in one_of", "a guard of one that is")
		case kid.key == id.Default:
			r.faultFound(kid, "a guard of the default", "a default that everybody may have")
		}
		if !r.object(kid, "jwt equals", "") {
			continue
		}
		g := Guard{Value: kid.key}
		if v := kid.get("jwt"); v != nil {
			g.Claim = r.claim(c, v)
		} else {
			r.missing(kid, "jwt", "the path of a claim")
		}
		if v := kid.get("equals"); v != nil {
			g.Equals = r.text(v, "", "the text that the claim must be")
		} else {
			r.missing(kid, "equals", "the text that the claim must be")
		}
		out = append(out, g)
	}
	return out
}
