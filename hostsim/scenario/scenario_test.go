package scenario

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// bare is a chain without a module: the runner's own behaviour, on a real Envoy.
func bare(files ...string) Options {
	return Options{
		Files: files, Gateway: GatewayEnvoy,
		Modes: map[string][]Entry{"one": {{Name: "a"}}, "two": {{Name: "a"}, {Name: "b"}}},
		Probes: map[string]Probe{
			"get": func(ctx context.Context, env Env, args []string) (string, error) {
				v, err := env.Redis.Get(ctx, args[0]).Result()
				if errors.Is(err, redis.Nil) {
					return "none", nil
				}
				return v, err
			},
			"mode": func(_ context.Context, env Env, _ []string) (string, error) {
				if env.Mode != "one" && env.Mode != "two" {
					return env.Mode, nil
				}
				return "one", nil
			},
		},
	}
}

func TestBareChainOnEnvoy(t *testing.T) {
	RunAll(t, bare("testdata/bare/*.txtar"))
}

// TestPassingChainOnHostsim runs the same files through hostsim with a module that lets all pass: the
// runner must not see a difference.
func TestPassingChainOnHostsim(t *testing.T) {
	o := bare("testdata/bare/*.txtar")
	o.Gateway = GatewayHostsim
	o.Wasm = filepath.Join(t.TempDir(), "pass.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-o", o.Wasm, "../testdata/ask")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	RunAll(t, o)
}

// failing runs one scenario and returns its error.
func failing(t *testing.T, text string, update bool) (string, []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.txtar")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := bare(path)
	o.Modes = map[string][]Entry{"one": nil}
	o.Update = update
	var message string
	err := Run(t.Context(), o, func(r Result) {
		if r.Err != nil {
			message = r.Err.Error()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return message, after
}

func TestFailureNamesTheStepAndShowsWhatWasSeen(t *testing.T) {
	message, _ := failing(t, "-- upstream --\nwrite hi\n-- a.http --\nGET /x\n\n-- steps --\nsend a\nexpect a status == 200\n# no\nexpect a body == ho\n", false)
	for _, want := range []string{
		"f.txtar:10: [one] expect a body == ho", `got "hi", want == "ho"`,
		`client: a: status 200, 2 bytes, end "complete"`, "upstream : 1: GET /x",
	} {
		if !strings.Contains(message, want) {
			t.Errorf("no %q in\n%s", want, message)
		}
	}
	message, _ = failing(t, "-- steps --\nprobe level == 3\n", false)
	if !strings.Contains(message, "f.txtar:2: probe level: no such probe here") {
		t.Errorf("got %s", message)
	}
}

func TestUpdateWritesWhatWasFound(t *testing.T) {
	message, after := failing(t, `-- upstream --
status 404
header x-a: b
write "two\nlines"
-- a.http --
GET /x

-- body --
old
-- steps --
send a
expect a status == 200
[one] expect a header x-a == c
expect a body == one line
expect a body == file body
expect upstream 1 path == /y
`, true)
	if message != "" {
		t.Fatal(message)
	}
	want := `-- upstream --
status 404
header x-a: b
write "two\nlines"
-- a.http --
GET /x

-- body --
two
lines
-- steps --
send a
expect a status == 404
[one] expect a header x-a == b
expect a body == "two\nlines"
expect a body == file body
expect upstream 1 path == /x
`
	if string(after) != want {
		t.Errorf("got\n%s", after)
	}
}
