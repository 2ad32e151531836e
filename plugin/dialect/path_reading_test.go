package dialect

import (
	"fmt"
	"math/rand/v2"
	"path"
	"regexp"
	"strings"
	"testing"
)

// meteredPaths are the paths of all dialects, as their SDKs send them, and the models that they name.
var meteredPaths = []struct{ path, dialect, model string }{
	{"/v1/chat/completions", "openai-chat", ""},
	{"/openai/deployments/My-gpt.4o_x/chat/completions", "openai-chat", "My-gpt.4o_x"},
	{"/openai/deployments/My-gpt.4o_x/completions", "openai-completions", "My-gpt.4o_x"},
	{"/openai/deployments/d%C3%A9/embeddings", "openai-embeddings", "dé"},
	{"/openai/deployments/d1/images/generations", "openai-images", "d1"},
	{"/v1/completions", "openai-completions", ""},
	{"/v1/responses", "openai-responses", ""},
	{"/v1/responses/compact", "openai-responses", ""},
	{"/v1/embeddings", "openai-embeddings", ""},
	{"/v1/images/generations", "openai-images", ""},
	{"/v1/images/edits", "openai-images", ""},
	{"/v1/audio/transcriptions", "openai-audio", ""},
	{"/v1/audio/translations", "openai-audio", ""},
	{"/v1/audio/speech", "openai-speech", ""},
	{"/v1beta/models/gemini-2.5-pro:generateContent", "gemini-generate", "gemini-2.5-pro"},
	{"/v1beta/tunedModels/a:b@2:streamGenerateContent", "gemini-generate", "a:b@2"},
	{"/v1beta/models/e%20f:embedContent", "gemini-embed", "e f"},
	{"/v1beta/models/text-embedding-004:batchEmbedContents", "gemini-embed", "text-embedding-004"},
	{"/v1/messages", "anthropic-messages", ""},
	{"/v1/projects/p/locations/eu/publishers/anthropic/models/claude@2031:rawPredict", "anthropic-messages", "claude@2031"},
	{"/model/eu.amazon.nova-v1%3A0/converse", "bedrock-converse", "eu.amazon.nova-v1:0"},
	{"/model/eu.amazon.nova-v1:0/converse-stream", "bedrock-converse", "eu.amazon.nova-v1:0"},
	{"/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A123456789012%3Ainference-profile%2Feu.x.y-v1%3A0/invoke", "bedrock-invoke",
		"arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.x.y-v1:0"},
	{"/model/anthropic.claude/invoke-with-response-stream", "bedrock-invoke", "anthropic.claude"},
	{"/v2/chat", "cohere-chat", ""},
	{"/v1/chat", "cohere-chat", ""},
	{"/v2/embed", "cohere-embed", ""},
	{"/v2/rerank", "cohere-rerank", ""},
	{"/rerank", "tei-rerank", ""},
	{"/embed", "tei-embed", ""},
	{"/api/chat", "ollama-chat", ""},
	{"/api/generate", "ollama-generate", ""},
	{"/api/embed", "ollama-embed", ""},
	{"/api/embeddings", "ollama-embed", ""},
}

// freePaths are paths that cost nothing, by the names of their dialects, "" where they have none.
var freePaths = []struct{ path, dialect string }{
	{"/v1/messages/count_tokens", "anthropic-count-tokens"},
	{"/v1beta/models/gemini-2.5-pro:countTokens", "gemini-count-tokens"},
	{"/model/anthropic.claude/count-tokens", "bedrock-count-tokens"},
	{"/v1/responses/input_tokens", "openai-input-tokens"},
	{"/v1/responses/resp_1/cancel", ""},
	{"/v1/moderations", ""},
}

// said is what Recognise makes of a path.
func said(t *testing.T, path string) (name, model string) {
	t.Helper()
	d, ok := Recognise("POST", path)
	if !ok {
		return "", ""
	}
	return d.Name(), modelInPath(d)
}

// server is how some kind of server takes a path apart: the segments of the route, decoded.
type server struct {
	name string
	take func(path string) string
}

func percentDecoded(s string) string {
	b := []byte(s)
	return string(b[:decodePercent(b, nil)])
}

// eachSegment changes a path between its slashes.
func eachSegment(p string, f func(string) string) string {
	parts := strings.Split(p, "/")
	for i := range parts {
		parts[i] = f(parts[i])
	}
	return strings.Join(parts, "/")
}

func before(s, any string) string {
	if i := strings.IndexAny(s, any); i >= 0 {
		return s[:i]
	}
	return s
}

// cleaned resolves dot segments and drops empty ones and a slash at the end.
func cleaned(p string) string { return path.Clean("/" + p) }

// servers are ways to read a path that are in use, each a composition of steps that servers, proxies
// and frameworks do. They share no code with readings.
var servers = []server{
	{"as it stands", func(p string) string { return before(p, "?") }},
	{"decoded", func(p string) string { return percentDecoded(before(p, "?")) }},
	{"Go's ServeMux", func(p string) string { return cleaned(percentDecoded(before(p, "?#"))) }},
	{"nginx", func(p string) string { return cleaned(percentDecoded(before(p, "?#"))) }},
	{"Starlette", func(p string) string { return strings.TrimSuffix(percentDecoded(before(p, "?")), "\n") }},
	{"Tomcat", func(p string) string {
		return cleaned(percentDecoded(eachSegment(before(p, "?#"), func(s string) string { return before(s, ";") })))
	}},
	{"parameters at the end of the path", func(p string) string { return cleaned(percentDecoded(before(p, "?#;"))) }},
	{"parameters decoded first", func(p string) string { return cleaned(before(percentDecoded(before(p, "?#")), ";")) }},
	{"decoded by a proxy, then parsed", func(p string) string { return cleaned(percentDecoded(before(percentDecoded(before(p, "?")), "?#"))) }},
	{"decoded by a proxy, then Tomcat", func(p string) string {
		return cleaned(eachSegment(before(percentDecoded(before(p, "?")), "?#"), func(s string) string { return before(s, ";") }))
	}},
	{"IIS", func(p string) string {
		return strings.ToLower(cleaned(strings.ReplaceAll(percentDecoded(percentDecoded(before(p, "?#"))), `\`, "/")))
	}},
	{"C strings", func(p string) string { return cleaned(before(percentDecoded(before(p, "?#")), "\x00")) }},
	{"a browser's URL", func(p string) string {
		p = strings.ReplaceAll(before(p, "?#"), `\`, "/")
		dots := regexp.MustCompile(`(?i)^(\.|%2e)(\.|%2e)?$`)
		return cleaned(eachSegment(p, func(s string) string {
			if dots.MatchString(s) {
				return percentDecoded(s)
			}
			return s
		}))
	}},
	{"letter case", func(p string) string { return strings.ToLower(cleaned(percentDecoded(before(p, "?#")))) }},
	{"trimmed", func(p string) string {
		return cleaned(eachSegment(percentDecoded(before(p, "?#")), func(s string) string { return strings.TrimSpace(s) }))
	}},
}

// routes are what a server answers to, exactly, once it has taken a path apart; a star is any name.
var routes = []struct{ path, dialect string }{
	{"/v1/messages/count_tokens", "free"},
	{"/v1beta/models/*:countTokens", "free"},
	{"/model/*/count-tokens", "free"},
	{"/v1/responses/input_tokens", "free"},
	{"/v1/responses/*/cancel", "free"},
	{"/v1/moderations", "free"},
	{"/v1/chat/completions", "openai-chat"},
	{"/openai/deployments/*/chat/completions", "openai-chat"},
	{"/openai/deployments/*/completions", "openai-completions"},
	{"/openai/deployments/*/embeddings", "openai-embeddings"},
	{"/openai/deployments/*/images/generations", "openai-images"},
	{"/v1/completions", "openai-completions"},
	{"/v1/responses", "openai-responses"},
	{"/v1/responses/compact", "openai-responses"},
	{"/v1/embeddings", "openai-embeddings"},
	{"/v1/images/generations", "openai-images"},
	{"/v1/images/edits", "openai-images"},
	{"/v1/audio/transcriptions", "openai-audio"},
	{"/v1/audio/translations", "openai-audio"},
	{"/v1/audio/speech", "openai-speech"},
	{"/v1beta/models/*:generateContent", "gemini-generate"},
	{"/v1beta/tunedModels/*:streamGenerateContent", "gemini-generate"},
	{"/v1beta/models/*:embedContent", "gemini-embed"},
	{"/v1beta/models/*:batchEmbedContents", "gemini-embed"},
	{"/v1/messages", "anthropic-messages"},
	{"/v1/projects/*/locations/*/publishers/anthropic/models/*:rawPredict", "anthropic-messages"},
	{"/model/*/converse", "bedrock-converse"},
	{"/model/*/converse-stream", "bedrock-converse"},
	{"/model/*/invoke", "bedrock-invoke"},
	{"/model/*/invoke-with-response-stream", "bedrock-invoke"},
	{"/v2/chat", "cohere-chat"},
	{"/v1/chat", "cohere-chat"},
	{"/v2/embed", "cohere-embed"},
	{"/v2/rerank", "cohere-rerank"},
	{"/rerank", "tei-rerank"},
	{"/embed", "tei-embed"},
	{"/api/chat", "ollama-chat"},
	{"/api/generate", "ollama-generate"},
	{"/api/embed", "ollama-embed"},
	{"/api/embeddings", "ollama-embed"},
}

var routeSegments = func() (out [][]string) {
	for _, r := range routes {
		out = append(out, strings.Split(r.path, "/"))
	}
	return out
}()

// blanks alone are no name of anything.
var blanks = func() (s string) {
	for c := range rune(' ' + 1) {
		s += string(c)
	}
	return s + "\x7f"
}()

func routed(p string) string {
	parts := strings.Split(p, "/")
route:
	for i, want := range routeSegments {
		if len(want) != len(parts) {
			continue
		}
		for k, w := range want {
			name, ending, any := strings.Cut(w, "*")
			if !any {
				if !strings.EqualFold(parts[k], name) {
					continue route
				}
				continue
			}
			n := len(parts[k]) - len(ending)
			if n < 0 || !strings.EqualFold(parts[k][n:], ending) || strings.Trim(parts[k][:n], blanks) == "" {
				continue route
			}
		}
		return routes[i].dialect
	}
	return ""
}

func TestRoutesOfTheServers(t *testing.T) {
	for _, m := range meteredPaths {
		if got := routed(servers[1].take(m.path)); got != m.dialect && !strings.Contains(m.path, "%2F") {
			t.Errorf("%s: %q", m.path, got)
		}
	}
	for _, f := range freePaths {
		if got := routed(servers[1].take(f.path)); got != "free" {
			t.Errorf("%s: %q", f.path, got)
		}
	}
	if routed("/v1/messages/x") != "" || routed("/x/v1/messages") != "" {
		t.Error("a route is not exact")
	}
}

// respell writes a path in another way that a lenient server takes for the same, n changes deep.
func respell(r *rand.Rand, p string, n int) string {
	for range n {
		i := strings.IndexByte(p[1:], '/') + 1
		if r.IntN(2) == 0 {
			i = strings.LastIndexByte(p, '/')
		}
		switch r.IntN(13) {
		case 0: // letter case, of what is no name of a model
			for _, word := range []string{"chat", "Completions", "v1", "messages", "embed", "generateContent", "converse", "invoke", "rerank", "deployments"} {
				p = strings.Replace(p, "/"+word, "/"+strings.ToUpper(word), 1)
			}
		case 1:
			p = p[:i] + "/" + p[i:]
		case 2:
			p = p[:i] + "/." + p[i:]
		case 3:
			p = p[:i] + []string{"/x/..", "/x/%2e%2E", "/chat/.%2e", "/messages/%252e."}[r.IntN(4)] + p[i:]
		case 4:
			p += []string{"/", "//", "/.", "/x/..", "/%2e"}[r.IntN(5)]
		case 5:
			p += "?" + []string{"", "a=b", "/../../v1/models", "x?y#z"}[r.IntN(4)]
			return p
		case 6:
			j := r.IntN(len(p))
			if p[j] != '%' && p[j] != '/' && (j < 1 || p[j-1] != '%') && (j < 2 || p[j-2] != '%') {
				p = p[:j] + fmt.Sprintf("%%%02x", p[j]) + p[j+1:]
			}
		case 7:
			if p = p[:i] + "%2F" + p[i+1:]; p[0] != '/' {
				p = "/" + p
			}
		case 8:
			p = p[:i] + `\` + p[i+1:]
			if p[0] != '/' {
				p = "/" + p[1:]
			}
		case 9:
			p += []string{"%0A", "%0d%0a", "%20", "%09", "%7F"}[r.IntN(5)]
		case 10:
			p += []string{";", ";x=1", "%3Bx", "#", "#x", "%3F", "%3Fx=/y", "%23", "%00", "%00x"}[r.IntN(10)]
		case 11:
			p = "/../" + p[1:]
		case 12:
			if !strings.Contains(p, "://") && p[0] == '/' {
				p = "/a" + p
			}
		}
	}
	return p
}

func TestEveryRespellingOfAMeteredPathIsMetered(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, m := range meteredPaths {
		if name, model := said(t, m.path); name != m.dialect || model != m.model {
			t.Errorf("%s: %q of model %q", m.path, name, model)
			continue
		}
		for range 400 {
			p := respell(r, m.path, 1+r.IntN(4))
			name, model := said(t, p)
			if m.path == "/rerank" && name == "cohere-rerank" || m.path == "/embed" && name == "cohere-embed" {
				continue // of a version, by a segment that was put before
			}
			if name != m.dialect || model != m.model && !strings.HasPrefix(m.path, "/model/") {
				t.Fatalf("%s as %q: %q of model %q, want %q of %q", m.path, p, name, model, m.dialect, m.model)
			}
			if !LLMPath(m.path) && LLMPath(p) {
				t.Errorf("%q looks like an LLM path", p)
			}
		}
	}
}

// joints are what may stand between two paths so that one of them counts here and the other there.
var joints = []string{"", "/", "//", "/..", "/../..", "/../../..", "/../../../..", "/%2e%2e", "/%2e%2e/%2e%2e", "/%2e%2e%2f%2e%2e%2f%2e%2e", "/%252e%252e",
	`\`, `\..\..`, `\..\..\..`, "%5c..%5c..", ";", ";/..", ";x", ";x/../..", "/..;", "/..;/..;", "/..;/..;/..", "%3b", "%3b/../..", "%253b", "?", "?/..", "%3f", "%3F/..", "%253F",
	"#", "#/..", "#/../..", "#/../../..", "%23", "%23/../..", "%00", "%00/../..", "%0a", "%0a/..", "%20", "%20/..", "%2f", "%2f..%2f..", "/.", "/%2e", ":", "%3a", "\t"}

// slipsBy says what is wrong if some server would do paid work for a path that is free here, or would do the
// work of one API while another is metered.
func slipsBy(p string) string {
	d, ok := Recognise("POST", p)
	if Ambiguous("POST", p) {
		return "" // refused
	}
	for _, s := range servers {
		work := routed(s.take(p))
		if work == "" || work == "free" {
			continue
		}
		switch {
		case !ok:
			return fmt.Sprintf("%q: %s reads %q, which is %s; here it is not recognised, and free: %v", p, s.name, s.take(p), work, Free("POST", p))
		case d.Name() != work:
			return fmt.Sprintf("%q: %s reads %q, which is %s; here it is %s", p, s.name, s.take(p), work, d.Name())
		}
	}
	return ""
}

func TestNoFreePathReachesAPaidOne(t *testing.T) {
	wrong := 0
	check := func(p string) {
		if why := slipsBy(p); why != "" && wrong < 20 {
			t.Error(why)
			wrong++
		}
	}
	all := []string{"/x", "/v1/models", "/healthz"}
	for _, f := range freePaths {
		all = append(all, f.path)
	}
	for _, m := range meteredPaths {
		all = append(all, m.path)
	}
	for ia, a := range all {
		for ij, j := range joints {
			check(a + j)
			for ib, b := range all {
				free := min(ia, ib) < 3+len(freePaths)
				if !free && (ia+5*ij+7*ib)%8 != 0 {
					continue // an eighth of two paid ones
				}
				check(a + j + b)
				check(a + j + b[1:])
			}
		}
	}
	for _, p := range []string{"/v1/messages%3F/count_tokens", "/v1/messages%00/count_tokens", "/v1/messages#/count_tokens", "/v1/messages/count_tokens/..", "/v1/messages%0A"} {
		if name, _ := said(t, p); name != "anthropic-messages" {
			t.Errorf("%s: %q", p, name)
		}
	}
	for _, f := range freePaths {
		if d, ok := Recognise("POST", f.path); Ambiguous("POST", f.path) || ok != (f.dialect != "") || ok && d.Name() != f.dialect || !ok && !Free("POST", f.path) {
			t.Errorf("%s is no longer free", f.path)
		}
	}
}

func FuzzPath(f *testing.F) {
	for _, m := range meteredPaths {
		f.Add(m.path+"/..;", "/../"+freePaths[0].path)
	}
	for i, j := range joints {
		f.Add(freePaths[i%len(freePaths)].path+j, meteredPaths[i%len(meteredPaths)].path)
	}
	f.Add("model/ /Converse#", "0")
	f.Fuzz(func(t *testing.T, a, b string) {
		p := a + b
		if why := slipsBy(p); why != "" {
			t.Fatal(why)
		}
		for _, segments := range readings(p) {
			for _, s := range segments {
				if s.at.Start < 0 || s.at.End < s.at.Start || s.at.End > int64(len(p)) || len(s.text) != len(s.from) || s.text == "" ||
					strings.ContainsAny(s.text, "/\\") {
					t.Fatalf("%q: %+v", p, s)
				}
			}
		}
	})
}

func TestReadingsAreFew(t *testing.T) {
	long := strings.Repeat("/a;b%3fc%23d%00#e", 4000)
	if n := len(readings(long)); n != 6 {
		t.Errorf("%d readings", n)
	}
	for _, p := range []string{"/v1/chat/completions", "/model/arn%3Aaws%2Fx/invoke?a;b#c", "//v1/../%2e%2E"} {
		if n := len(readings(p)); n != 1 {
			t.Errorf("%s: %d readings", p, n)
		}
	}
}

func TestAmbiguousPaths(t *testing.T) {
	for p, want := range map[string]bool{
		"/v1/messages;/count_tokens": true, "/v1/messages%3F;/count_tokens": false,
		"/v1/chat/completions%3F/v1/embeddings": true, "/v1/chat/completions%00/v1/embeddings": true, "/v1/chat/completions#/v1/embeddings": true,
		"/openai/deployments/dear/chat/completions;/../../../cheap/chat/completions": true,
		"/v1/chat;x=1/completions;y":  true, // Cohere's chat, if the parameters are those of the path
		"/v1/messages/count_tokens;x": false, "/v1/chat/completions;x": false, "/v1/chat/completions%3Fx": false, "/v1/chat/completions#": false,
		"/v1/messages/count_tokens/..": false, "/v1/messages%2Fcount_tokens": false, "//v1//messages//count_tokens": false,
		"/v1/models;x?y#z": false, "/": false, "": false,
	} {
		if Ambiguous("POST", p) != want {
			t.Errorf("%s: %v", p, !want)
		}
	}
}
