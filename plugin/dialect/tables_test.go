package dialect

import (
	"slices"
	"testing"
)

// TestTablesAreSound looks at every table for what the scanner takes for granted: it has a bit for each of 32
// members of an object, looks a place up without asking whether it exists, and finds the first of two equal keys.
func TestTablesAreSound(t *testing.T) {
	seen := map[string]bool{}
	for _, path := range []string{
		"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/responses/input_tokens",
		"/v1/images/generations", "/v1/images/edits", "/v1/audio/transcriptions", "/v1/audio/speech",
		"/v1/messages", "/v1/messages/count_tokens", "/v2/chat", "/v2/embed", "/v2/rerank", "/embed", "/rerank",
		"/v1/models/m:generateContent", "/v1/models/m:countTokens", "/v1/models/m:embedContent",
		"/model/m/converse", "/model/m/invoke", "/model/m/count-tokens", "/api/chat", "/api/generate", "/api/embed",
	} {
		d, ok := Recognise("POST", path)
		if !ok {
			t.Fatal(path)
		}
		seen[d.Name()] = true
		scanner := d.NewScanner(RequestHead{ContentType: "application/json", Path: path}, 256, nil)
		if s, ok := scanner.(*invokeScanner); ok {
			scanner = s.requestScanner
		}
		if s, ok := scanner.(*requestScanner); ok {
			sound(t, d.Name()+", request", s.api.schema)
			if n := len(s.api.schema); len(s.api.texts) < n || len(s.api.items) < n {
				t.Errorf("%s: %d places, %d texts, %d items", d.Name(), n, len(s.api.texts), len(s.api.items))
			}
		}
		if m, ok := d.NewMeter(okJSON, nil).(*answerMeter); ok {
			sound(t, d.Name()+", answer", m.api.schema)
			if n := len(m.api.schema); len(m.api.roles) < n {
				t.Errorf("%s: %d places, %d roles", d.Name(), n, len(m.api.roles))
			}
			for _, n := range reached(m.api.schema) {
				nd, r := m.api.schema[n], m.api.roles[n]
				missing := (r == usageRole || r == openingRole) && (nd.raw == 0 || m.api.usage == nil) ||
					r == figureRole && m.api.figure == nil || r == typeRole && (!nd.value || m.api.event == nil) ||
					(r == textRole || r == reasoningRole || r == repeatRole) && !nd.text && nd.raw == 0
				if missing {
					t.Errorf("%s: place %d has a role that it can't play", d.Name(), n)
				}
			}
		}
	}
	for _, name := range Names() {
		if !seen[name] {
			t.Errorf("%s was not looked at", name)
		}
	}
}

// reached are the places that the root leads to.
func reached(schema []node) []uint8 {
	all := []uint8{1}
	for i := 0; i < len(all); i++ {
		nd := schema[all[i]]
		to := []uint8{nd.elem, nd.other}
		for _, f := range nd.fields {
			to = append(to, f.node)
		}
		for _, n := range to {
			if n != 0 && !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}
	return all
}

func sound(t *testing.T, name string, schema []node) {
	t.Helper()
	for n, nd := range schema {
		if len(nd.fields) > 32 {
			t.Errorf("%s: place %d has %d members", name, n, len(nd.fields))
		}
		to := []uint8{nd.elem, nd.other}
		var keys []string
		for _, f := range nd.fields {
			to = append(to, f.node)
			if slices.Contains(keys, f.key) || f.key == "" || len(f.key) > maxHeld/6 {
				t.Errorf("%s: place %d has %q", name, n, f.key)
			}
			keys = append(keys, f.key)
		}
		for _, k := range to {
			if int(k) >= len(schema) {
				t.Errorf("%s: place %d leads to %d of %d", name, n, k, len(schema))
			}
		}
	}
}
