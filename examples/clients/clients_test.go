package clients

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// record is what a client says of a case.
type record struct {
	Case   string `json:"case"`
	Text   string `json:"text"`
	In     int    `json:"in"`
	Out    int    `json:"out"`
	Units  int    `json:"units"`
	Error  string `json:"error"`
	Status int    `json:"status"`
	Says   string `json:"says"`
}

// want is what a case must come to: a text with its usage, or an error of the client's own kind.
type want struct {
	text    string
	in, out int
	units   int
	error   string
	status  int
	says    string // part of what the error says
}

func hello(in, out int) want { return want{text: "Hello there.", in: in, out: out} }

// refusals are the cases that end in an error, with the errors' names: of a limit, a budget, a call too
// large and a kill flag.
func refusals(w map[string]want, limit, budget, large, killed string) map[string]want {
	w["limited"] = want{error: limit, status: 429, says: "day"}
	w["broke"] = want{error: budget, status: 402, says: "budget"}
	w["big"] = want{error: large, status: 400, says: "small"}
	w["killed"] = want{error: killed, status: 403, says: "an exercise"}
	return w
}

// clients are the official clients, and what each must make of its cases.
var clients = []struct {
	name string
	argv []string // under .cache's Python or node; nil: in this program
	want map[string]want
	// Cases whose client asks the gateway more than the two times that it was told to: it has heard when
	// to come back.
	again map[string]int
}{
	{"python-openai", []string{"python", "openai_client.py"}, refusals(map[string]want{
		"chat": hello(12, 3), "stream": hello(12, 3), "silent": hello(0, 0), "brief": hello(12, 3),
		"tools": {text: `look_up{"city":"Paris"}`, in: 12, out: 3}, "structured": {text: "Paris", in: 12, out: 3},
		"embeddings": {text: "[0.5, 0.25]", in: 12}, "responses": hello(12, 3), "responses-stream": hello(12, 3),
		"anonymous": {error: "AuthenticationError", status: 401, says: "must be Bearer"},
	}, "RateLimitError", "APIStatusError", "BadRequestError", "PermissionDeniedError"), nil},
	{"python-anthropic", []string{"python", "anthropic_client.py"}, refusals(map[string]want{
		"chat": hello(12, 3), "stream": hello(12, 3), "brief": hello(12, 3), "tools": {text: "look_upParis", in: 12, out: 3},
	}, "RateLimitError", "PaymentRequiredError", "BadRequestError", "PermissionDeniedError"), nil},
	{"python-langchain", []string{"python", "langchain_client.py"}, map[string]want{
		"chat": hello(12, 3), "stream": hello(12, 3), "structured": {text: "Paris"}, "embeddings": {text: "[0.5, 0.25]"},
		"limited":        {error: "OpenAIRateLimitError", status: 429, says: "day"},
		"anthropic-chat": hello(12, 3), "anthropic-stream": hello(12, 3), "anthropic-tools": {text: "{'city': 'Paris'}"},
		// It counts as one of the same key's calls.
		"anthropic-limited": {error: "AnthropicRateLimitError", status: 429, says: "day"},
	}, nil},
	{"python-cohere", []string{"python", "cohere_client.py"}, refusals(map[string]want{
		"chat": hello(12, 3), "stream": hello(12, 3), "brief": hello(12, 3), "tools": {text: `look_up{"city":"Paris"}`, in: 12, out: 3},
		"structured": {text: `{"city":"Paris"}`, in: 12, out: 3}, "embeddings": {text: "[0.5, 0.25]", in: 12}, "rerank": {text: "[1, 0]", units: 1},
	}, "TooManyRequestsError", "ApiError", "BadRequestError", "ForbiddenError"), map[string]int{"limited": 2}},
	{"python-google", []string{"python", "google_client.py"}, refusals(map[string]want{
		"chat": hello(12, 3), "stream": hello(12, 3), "tools": {text: "look_upParis", in: 12, out: 3},
		"structured": {text: "Paris", in: 12, out: 3}, "embeddings": {text: "[0.5, 0.25]"},
	}, "ClientError", "ClientError", "ClientError", "ClientError"), nil},
	{"node-openai", []string{"node", "openai.mjs"}, refusals(map[string]want{
		"chat": hello(12, 3), "stream": hello(12, 3), "brief": hello(12, 3),
		"tools": {text: `look_up{"city":"Paris"}`, in: 12, out: 3}, "structured": {text: "Paris", in: 12, out: 3},
		"embeddings": {text: "[0.5,0.25]", in: 12}, "responses": hello(12, 3), "responses-stream": hello(12, 3),
	}, "RateLimitError", "APIError", "BadRequestError", "PermissionDeniedError"), nil},
	{"node-anthropic", []string{"node", "anthropic.mjs"}, refusals(map[string]want{
		"chat": hello(12, 3), "stream": hello(12, 3), "brief": hello(12, 3), "tools": {text: "look_upParis", in: 12, out: 3},
	}, "RateLimitError", "PaymentRequiredError", "BadRequestError", "PermissionDeniedError"), nil},
	{"go-openai", nil, refusals(map[string]want{
		"chat": hello(12, 3), "stream": hello(12, 3), "brief": hello(12, 3),
		"tools": {text: `look_up{"city":"Paris"}`, in: 12, out: 3}, "embeddings": {text: "[0.5 0.25]", in: 12},
	}, "Error", "Error", "Error", "Error"), nil},
	{"go-anthropic", nil, refusals(map[string]want{
		"chat": hello(12, 3), "stream": hello(12, 3), "brief": hello(12, 3),
	}, "Error", "Error", "Error", "Error"), nil},
}

func TestOfficialClients(t *testing.T) {
	s := start(t)
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			got := map[string]record{}
			switch {
			case c.name == "go-openai":
				got = goOpenAI{s.base}.cases()
			case c.name == "go-anthropic":
				got = goAnthropic{s.base}.cases()
			default:
				got = run(t, s.base, c.name, c.argv)
			}
			for name := range got {
				if _, ok := c.want[name]; !ok {
					t.Errorf("%s: nobody said what it must come to", name)
				}
			}
			for name, w := range c.want {
				r, ok := got[name]
				switch {
				case !ok:
					t.Errorf("%s: not run", name)
				case r.Error != w.error || r.Status != w.status || !strings.Contains(r.Says, w.says),
					r.Text != w.text || r.In != w.in || r.Out != w.out || r.Units != w.units:
					t.Errorf("%s:\n got %+v\nwant %+v", name, r, w)
				}
			}
			s.decided(t, c.name, c.again)
		})
	}
}

// decided checks what the gateway decided for a client's calls: those that can't succeed are not tried
// again, one that was told when to come back came back, and every call that passed is settled by the
// provider's figures.
func (s *stack) decided(t *testing.T, client string, again map[string]int) {
	t.Helper()
	for kind, w := range map[string][]string{
		"limited": {"granted:usage", "denied"},
		"brief":   {"granted:usage", "denied", "granted:usage"},
		"big":     {"never_fits"},
	} {
		if client == "python-langchain" && kind != "limited" || client == "python-google" && kind == "brief" {
			continue // which have no such case
		}
		if client == "python-langchain" {
			w = append(w, "denied") // the second client on the same key
		}
		for range again[kind] {
			w = append(w, "denied")
		}
		key := kind + "-" + client
		eventually(t, key+": the calls are in the log", func() bool { return len(s.calls(key)) >= len(w) })
		if got := s.calls(key); strings.Join(got, " ") != strings.Join(w, " ") {
			t.Errorf("%s: the gateway decided %v, want %v", key, got, w)
		}
	}
	spent := s.calls("broke-" + client)
	if len(spent) > 0 && spent[len(spent)-1] != "denied" || slices.Contains(spent[:max(len(spent)-1, 0)], "denied") {
		t.Errorf("the gateway decided %v: a budget that is used up is asked for once", spent)
	}
	for _, d := range s.calls("free-" + client) {
		if d != "granted:usage" && d != "granted:estimate" {
			t.Errorf("free-%s: %s", client, d)
		}
	}
}

// run runs a client's program and reads its lines.
func run(t *testing.T, base, name string, argv []string) map[string]record {
	t.Helper()
	program, err := filepath.Abs(map[string]string{"python": "../../.cache/clients/venv/bin/python", "node": "/usr/bin/env"}[argv[0]])
	if err != nil {
		t.Fatal(err)
	}
	args := argv[1:]
	dir := argv[0]
	if argv[0] == "node" {
		args, dir = argv, "../../.cache/clients/node"
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "EMMER_BASE="+base, "EMMER_CLIENT="+name, "ANTHROPIC_LOG=", "LANGSMITH_TRACING=false", "NO_PROXY=127.0.0.1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
	}
	got := map[string]record{}
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%v in %s", err, lines.Text())
		}
		got[r.Case] = r
	}
	return got
}
