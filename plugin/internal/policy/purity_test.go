package policy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pureRooms stand below the shell: bytes and integers in, bytes and integers out. They have no
// clock, no randomness, no goroutine, no log, no panic, and no float.
var pureRooms = []string{
	"tokenizer", "tokenizer/bpe", "tokenizer/approx",
	"bucket", "bucket/script",
	"plugin/config", "plugin/config/zone", "plugin/dialect", "plugin/sse", "plugin/eventstream", "plugin/inflate", "plugin/closer", "plugin/plan", "plugin/callout", "plugin/core",
}

// impureImports are what a pure room's files may not import. What a room takes of "time" is
// limited by impureCalls.
var impureImports = []string{
	"os", "os/exec", "os/signal", "io/ioutil", "log", "log/slog", "net", "net/http", "net/url", "math/rand", "math/rand/v2",
	"crypto/rand", "encoding/json", "regexp", "text/template", "html/template", "sync/atomic", "syscall",
	"context", "runtime/debug", "unsafe", "reflect",
}

// impureCalls are names of otherwise permitted packages.
var impureCalls = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick",
		// The host's file system has no zone files, and older Envoys lack the imports that this adds.
		"LoadLocation", "Local"},
	"strconv": {"ParseFloat", "FormatFloat", "AppendFloat"},
	"fmt":     {"Print", "Printf", "Println"},
}

// exceptions are single files that may import one of them, each with its reason.
var exceptions = map[string]string{
	// One unaligned load in place of eight: what the compiler does by itself on other machines.
	"plugin/dialect/load_wasm.go": "unsafe",
	// The same.
	"plugin/inflate/load_wasm.go": "unsafe",
	// The same, without the bounds checks that load.go makes natively, where every test runs.
	"tokenizer/bpe/load_wasm.go": "unsafe",
	// One work space for all counters, also where several count at a time.
	"tokenizer/bpe/shared.go": "sync/atomic",
}

// impurities of one file, each with its line.
func impurities(fset *token.FileSet, file *ast.File) []string {
	var bad []string
	say := func(pos token.Pos, format string, args ...any) {
		bad = append(bad, fmt.Sprintf("line %d: ", fset.Position(pos).Line)+fmt.Sprintf(format, args...))
	}
	packages := map[string]string{} // local name -> import path
	for _, imp := range file.Imports {
		path, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			continue
		}
		if slices.Contains(impureImports, path) {
			say(imp.Pos(), "imports %s", path)
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if imp.Name != nil {
			name = imp.Name.Name
		}
		if name == "." {
			say(imp.Pos(), "imports %s into its own names", path)
		}
		packages[name] = path
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			say(n.Pos(), "starts a goroutine")
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "panic" || id.Name == "print" || id.Name == "println") {
				say(n.Pos(), "calls %s", id.Name)
			}
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok && slices.Contains(impureCalls[packages[id.Name]], n.Sel.Name) {
				say(n.Pos(), "uses %s.%s", packages[id.Name], n.Sel.Name)
			}
		case *ast.Ident:
			switch n.Name {
			case "float32", "float64", "complex64", "complex128":
				say(n.Pos(), "uses %s", n.Name)
			}
		case *ast.BasicLit:
			if n.Kind == token.FLOAT {
				say(n.Pos(), "holds the fraction %s", n.Value)
			}
		}
		return true
	})
	return bad
}

func TestPureRooms(t *testing.T) {
	checked := 0
	for _, room := range pureRooms {
		files, err := filepath.Glob(filepath.Join(root(t), room, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Error(err)
				continue
			}
			checked++
			allowed := exceptions[room+"/"+filepath.Base(path)]
			for _, bad := range impurities(fset, file) {
				if allowed != "" && strings.HasSuffix(bad, "imports "+allowed) {
					continue
				}
				t.Errorf("%s/%s: %s", room, filepath.Base(path), bad)
			}
		}
	}
	if checked < 3 {
		t.Errorf("only %d files were found", checked)
	}
}

// A room of the lattice below the shell that is missing above would go unchecked.
func TestPureRoomsAreAllListed(t *testing.T) {
	policy, err := parsePolicy(lattice)
	if err != nil {
		t.Fatal(err)
	}
	for below := range policy["plugin/core"] {
		if externals[below] == "" && !slices.Contains(pureRooms, below) {
			t.Errorf("%s goes into the core but is not among the pure rooms", below)
		}
	}
	for _, room := range pureRooms {
		if _, err := os.Stat(filepath.Join(root(t), room)); err == nil {
			if _, ok := policy[room]; !ok {
				t.Errorf("%s is not in the import policy", room)
			}
		}
	}
}

func TestPureCheckerSeesImpurities(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"goroutine", "func f() { go f() }", "starts a goroutine"},
		{"panic", `func f() { panic("x") }`, "calls panic"},
		{"clock", `import "time"; var f = time.Now`, "uses time.Now"},
		{"clock by another name", `import tm "time"; var f = tm.Since`, "uses time.Since"},
		{"clock without a name", `import . "time"; var f = Now`, "imports time into its own names"},
		{"log", `import "log"; var f = log.Print`, "imports log"},
		{"float", "var f float64", "uses float64"},
		{"conversion", "func f(i int) int { return int(float32(i)) }", "uses float32"},
		{"fraction", "var f = 0.5", "holds the fraction 0.5"},
		{"parse", `import "strconv"; var f = strconv.ParseFloat`, "uses strconv.ParseFloat"},
		{"random", `import "math/rand/v2"; var f = rand.Int`, "imports math/rand/v2"},
		{"allowed", `import "time"; func f(t time.Time) int64 { return t.UnixMilli() }`, ""},
		{"a method named like a clock", "type c struct{}; func (c) Now() {}; func f(time c) { time.Now() }", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, "p.go", "package p; "+tt.body, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(impurities(fset, file), "; ")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}
