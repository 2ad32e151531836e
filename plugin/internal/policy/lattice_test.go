package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lattice is the project's import policy. `a, b < c, d` means: c and d may import a and b, and all
// that a and b may import. A line may go on: `a < b < c`. NONE stands for no dependency at all.
// Names of externals stand for modules; other names are the project's directories, and `dir/...` is the directory and everything below. The standard library is not part of this
// policy; purity_test.go says what the pure rooms may take from it.
//
// DO NOT CHANGE THIS TO FIX A BUILD. A new edge is a decision about the structure of the project.
const lattice = `
	NONE < tokenizer/bpe, tokenizer/approx < tokenizer;
	NONE < bucket < bucket/script;
	bucket/script, go-redis < bucket/bridge;
	bucket/script, go-redis, miniredis < bucket/buckettest;

	NONE < plugin/closer, plugin/sse, plugin/eventstream, plugin/inflate;
	bucket, gjson, plugin/sse, plugin/eventstream, plugin/inflate < plugin/dialect;
	NONE < plugin/config/zone < plugin/config;
	plugin/dialect, tokenizer, bucket < plugin/config < plugin/plan;
	bucket/script < plugin/callout;
	plugin/plan, plugin/callout, plugin/closer, plugin/inflate < plugin/core;
	plugin/core, sdk < plugin/shell < plugin;

	wazero < hostsim;
	NONE < hostsim/upstream, hostsim/envoy;
	bucket/bridge, miniredis < hostsim/redisgw;
	hostsim, hostsim/redisgw, hostsim/upstream, hostsim/envoy < hostsim/bench;
	hostsim, hostsim/redisgw, hostsim/upstream, hostsim/envoy, txtar, yaml, gjson < hostsim/scenario;
	hostsim/scenario, hostsim/bench < hostsim/cmd/emmer-sim;
	# Modules that tests run, each compiled to a .wasm of its own.
	sdk < hostsim/testdata/..., hostsim/cmd/emmer-sim/testdata/...;

	plugin/plan, plugin/callout, yaml < plugin/cmd/emmerctl;
	bucket/bridge, prometheus < bucket/cmd/emmer-bridge;

	hostsim/scenario, bucket/script, plugin/plan, plugin/callout, yaml < examples/...;

	NONE < plugin/internal/policy, plugin/internal/wasmbuild;
	# Generators and fits, run by hand.
	tokenizer/bpe, tokenizer/approx < tokenizer/internal/...;
	NONE < plugin/config/zone/internal/...;
`

// externals names the modules that the lattice speaks of.
var externals = map[string]string{
	"sdk":        "github.com/proxy-wasm/proxy-wasm-go-sdk",
	"wazero":     "github.com/tetratelabs/wazero",
	"gjson":      "github.com/tidwall/gjson",
	"go-redis":   "github.com/redis/go-redis/v9",
	"miniredis":  "github.com/alicebob/miniredis/v2",
	"txtar":      "golang.org/x/tools/txtar",
	"yaml":       "go.yaml.in/yaml/v3",
	"prometheus": "github.com/prometheus/client_golang",
}

const module = "github.com/emmer-proxy/emmer"

// policyOf is a parsed lattice: for each name what it may import, closed under "may import".
type policyOf map[string]map[string]bool

func parsePolicy(text string) (policyOf, error) {
	direct := policyOf{}
	for _, rule := range strings.Split(stripComments(text), ";") {
		if strings.TrimSpace(rule) == "" {
			continue
		}
		var below []string
		sides := strings.Split(rule, "<")
		if len(sides) < 2 {
			return nil, fmt.Errorf("rule %q has no <", strings.TrimSpace(rule))
		}
		for i, side := range sides {
			names := strings.Split(side, ",")
			for j := range names {
				names[j] = strings.TrimSpace(names[j])
				if names[j] == "" {
					return nil, fmt.Errorf("rule %q has an empty name", strings.TrimSpace(rule))
				}
			}
			if i > 0 {
				for _, name := range names {
					if direct[name] == nil {
						direct[name] = map[string]bool{}
					}
					for _, b := range below {
						if b != "NONE" {
							direct[name][b] = true
						}
					}
				}
			}
			below = names
		}
	}
	for _, may := range direct {
		for name := range may {
			if direct[name] == nil && externals[name] == "" {
				return nil, fmt.Errorf("%s is used but stands on no right side and names no module", name)
			}
		}
	}
	closed := policyOf{}
	for name := range direct {
		seen := map[string]bool{}
		todo := []string{name}
		for len(todo) > 0 {
			next := todo[0]
			todo = todo[1:]
			for b := range direct[next] {
				if !seen[b] {
					seen[b] = true
					todo = append(todo, b)
				}
			}
		}
		if seen[name] {
			return nil, fmt.Errorf("%s may import itself through others", name)
		}
		closed[name] = seen
	}
	return closed, nil
}

func stripComments(text string) string {
	var kept []string
	for _, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}

// pattern is the name in p that covers a directory: its own, or that of the nearest `dir/...`.
func (p policyOf) pattern(dir string) (string, bool) {
	if _, ok := p[dir]; ok {
		return dir, true
	}
	for up := dir; up != "." && up != ""; up = filepath.Dir(up) {
		if _, ok := p[up+"/..."]; ok {
			return up + "/...", true
		}
	}
	return "", false
}

// violations of the policy by a package, given by its directory and what its files import.
func (p policyOf) violations(dir string, imports []string) []string {
	name, ok := p.pattern(dir)
	if !ok {
		return []string{dir + " is not in the import policy"}
	}
	var bad []string
	for _, imp := range imports {
		first, _, _ := strings.Cut(imp, "/")
		switch below, inside := strings.CutPrefix(imp, module+"/"); {
		case inside:
			target, ok := p.pattern(below)
			if !ok {
				target = below
			}
			if !p[name][target] && target != name {
				bad = append(bad, fmt.Sprintf("%s imports %s", dir, below))
			}
		case strings.Contains(first, "."):
			if alias := externalOf(imp); alias == "" || !p[name][alias] {
				bad = append(bad, fmt.Sprintf("%s imports %s", dir, imp))
			}
		}
	}
	return bad
}

func externalOf(imp string) string {
	for alias, path := range externals {
		if imp == path || strings.HasPrefix(imp, path+"/") {
			return alias
		}
	}
	return ""
}

// listed is what the go tool says of a package.
type listed struct {
	Dir, ImportPath           string
	Standard                  bool
	Imports                   []string
	GoFiles                   []string
	TestImports, XTestImports []string
	Module                    *struct{ Path, Version, Dir string }
}

func goList(t *testing.T, env []string, args ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json"}, args...)...)
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", strings.Join(args, " "), err)
	}
	var pkgs []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return pkgs
		}
		if err != nil {
			t.Fatalf("go list %s: %v", strings.Join(args, " "), err)
		}
		pkgs = append(pkgs, p)
	}
}

// root is the directory of go.mod, two above this package.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// dirOf is a package's directory below the module root, in the lattice's own spelling.
func dirOf(p listed) string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// ownPackages is every package of the module, those below testdata (which ./... leaves out) included.
func ownPackages(t *testing.T) []listed {
	t.Helper()
	args := []string{"./..."}
	for _, file := range tracked(t) {
		dir := filepath.Dir(file)
		if strings.HasSuffix(file, ".go") && strings.Contains("/"+dir+"/", "/testdata/") && !slices.Contains(args, "./"+dir) {
			args = append(args, "./"+dir)
		}
	}
	return goList(t, nil, args...)
}

func TestLattice(t *testing.T) {
	policy, err := parsePolicy(lattice)
	if err != nil {
		t.Fatal(err)
	}
	pkgs := ownPackages(t)
	if len(pkgs) < 5 {
		t.Fatalf("go list found only %d packages", len(pkgs))
	}
	for _, p := range pkgs {
		for _, v := range policy.violations(dirOf(p), p.Imports) {
			t.Error(v)
		}
		// Tests may see every room, but no module that the policy has no name for.
		for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
			if first, _, _ := strings.Cut(imp, "/"); strings.Contains(first, ".") && !strings.HasPrefix(imp, module+"/") && externalOf(imp) == "" {
				t.Errorf("tests of %s import %s, which the policy does not name", dirOf(p), imp)
			}
		}
	}
}

// Three statements of the design, checked over the closed policy rather than over today's code.
func TestLatticeKeepsTheRoomsApart(t *testing.T) {
	policy, err := parsePolicy(lattice)
	if err != nil {
		t.Fatal(err)
	}
	for name, may := range policy {
		for target := range may {
			switch in := func(room, n string) bool { return n == room || strings.HasPrefix(n, room+"/") }; {
			case in("hostsim", name) && in("plugin", target):
				t.Errorf("hostsim must not know the plugin, but %s may import %s", name, target)
			case in("plugin", name) && in("hostsim", target):
				t.Errorf("the plugin must not know hostsim, but %s may import %s", name, target)
			case target == "sdk" && name != "plugin/shell" && name != "plugin" && !strings.HasSuffix(name, "/testdata/..."):
				t.Errorf("only the shell imports the SDK, but %s may", name)
			}
		}
	}
}

// What the .wasm must not carry: it would not fit the host's imports, or parse foreign bytes
// recursively on a small stack, or only make it large. Of other modules one import is known: gjson's
// modifiers (@pretty and the like, which no path of ours uses) bring it.
func TestLatticeOfTheWasm(t *testing.T) {
	heavy := []string{"net", "net/http", "encoding/json", "regexp", "text/template", "html/template", "crypto/tls", "go.yaml.in/yaml/v3"}
	env := []string{"GOOS=wasip1", "GOARCH=wasm"}
	var rooms []string
	for _, p := range goList(t, env, "./plugin/...", "./bucket", "./bucket/script", "./tokenizer") {
		if dir := dirOf(p); dir != "plugin/cmd/emmerctl" && !strings.Contains(dir, "/internal/") && len(p.GoFiles) > 0 {
			rooms = append(rooms, "./"+dir)
		}
	}
	importers := map[string][]string{}
	for _, p := range goList(t, env, append([]string{"-deps"}, rooms...)...) {
		for _, imp := range p.Imports {
			if p.ImportPath != "github.com/tidwall/pretty" || imp != "encoding/json" {
				importers[imp] = append(importers[imp], p.ImportPath)
			}
		}
	}
	for _, path := range heavy {
		if by := importers[path]; by != nil {
			t.Errorf("%s goes into the .wasm, imported by %s", path, strings.Join(by, ", "))
		}
	}
}

func TestLatticeCheckerSeesViolations(t *testing.T) {
	policy, err := parsePolicy(`
		NONE < a < b; # comment
		b, wazero < c;
		a < x/...;
	`)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, dir string
		imports   []string
		want      []string
	}{
		{"allowed directly", "b", []string{module + "/a", "strings"}, nil},
		{"allowed through another", "c", []string{module + "/a", module + "/b"}, nil},
		{"module and its packages", "c", []string{"github.com/tetratelabs/wazero/api"}, nil},
		{"below a pattern", "x/deep/er", []string{module + "/a"}, nil},
		{"upwards", "a", []string{module + "/b"}, []string{"a imports b"}},
		{"sideways", "x/deep", []string{module + "/b"}, []string{"x/deep imports b"}},
		{"module not granted", "b", []string{"github.com/tetratelabs/wazero"}, []string{"b imports github.com/tetratelabs/wazero"}},
		{"module not named", "c", []string{"example.org/other"}, []string{"c imports example.org/other"}},
		{"module with a similar name", "c", []string{"github.com/tetratelabs/wazero2"}, []string{"c imports github.com/tetratelabs/wazero2"}},
		{"package not named", "y", nil, []string{"y is not in the import policy"}},
		{"imports a package not named", "b", []string{module + "/y"}, []string{"b imports y"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := policy.violations(tt.dir, tt.imports); !slices.Equal(got, tt.want) {
				t.Errorf("violations are %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLatticeParserRefuses(t *testing.T) {
	for _, text := range []string{
		"a, b;",                         // no edge
		"NONE < a; a < b, ;",            // empty name
		"NONE < a; a, wasero < b;",      // a misspelt module
		"NONE < a; a < b; b < c < a;",   // a cycle
		"NONE < hostsim; plugins < a; ", // a misspelt room
	} {
		if _, err := parsePolicy(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
