package main

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/emmer-proxy/emmer/plugin/internal/wasmbuild"
)

var update = flag.Bool("update", false, "rewrite testdata/imports.txt")

// hostWASI is what every host that can run a Go module has of wasi_snapshot_preview1: the functions
// that proxy-wasm-cpp-host has offered since its change 427. Newer hosts have more (path_open,
// fd_pread since change 533, April 2026), but a module that imports one that its host lacks is
// refused at load. fd_read and fd_seek are there from the beginning; fd_read always fails.
var hostWASI = []string{
	"args_get", "args_sizes_get", "clock_time_get", "environ_get", "environ_sizes_get",
	"fd_close", "fd_fdstat_get", "fd_fdstat_set_flags", "fd_prestat_dir_name", "fd_prestat_get",
	"fd_read", "fd_seek", "fd_write", "poll_oneoff", "proc_exit", "random_get", "sched_yield",
}

// The list of imports is part of what an operator's host must offer, so it changes only on purpose:
// look at each new line, then run with -update.
func TestWasmImportsAreTheListed(t *testing.T) {
	got := wasmImports(t)
	golden := filepath.Join("testdata", "imports.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(text))
	for _, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("the filter imports %s, which %s does not list", name, golden)
		}
	}
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("%s lists %s, which the filter does not import any more", golden, name)
		}
	}
}

func TestWasmImportsAreOfferedByTheHost(t *testing.T) {
	for _, name := range wasmImports(t) {
		module, function, _ := strings.Cut(name, ".")
		switch module {
		case "env":
			if !strings.HasPrefix(function, "proxy_") {
				t.Errorf("%s is no function of the proxy-wasm ABI", name)
			}
		case "wasi_snapshot_preview1":
			if !slices.Contains(hostWASI, function) {
				t.Errorf("not every host has %s", name)
			}
		default:
			t.Errorf("%s is of a module that no host has", name)
		}
	}
}

// wasmImports is every function that the built filter imports, as module.name, sorted.
func wasmImports(t *testing.T) []string {
	t.Helper()
	wasm, err := os.ReadFile(wasmbuild.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	// The interpreter only decodes and checks the module; the compiler would take seconds.
	runtime := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter())
	defer runtime.Close(t.Context())
	compiled, err := runtime.CompileModule(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range compiled.ImportedFunctions() {
		module, name, _ := f.Import()
		names = append(names, module+"."+name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
