// Command bench times the tokenizer next to the two Go libraries that do the same, natively, on
// wazero and in V8, and prints a line of JSON for each figure, then one for each aim.
//
// mb_s is 10^6 bytes of UTF-8 a second, of the best round; allocs the heap objects of one round;
// vm_bytes the linear memory of the instance after this text and those before it, less that of a
// module that does nothing, with the same room for the text; setup_ms the time to instantiate a
// compiled module, initialise it and count eleven bytes.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/emmer-proxy/emmer/tokenizer/internal/lab/corpus"
)

// line is one figure.
type line struct {
	Engine   string  `json:"engine"`
	System   string  `json:"system"`
	Encoding string  `json:"encoding"`
	Class    string  `json:"class"`
	MBs      float64 `json:"mb_s"`
	Allocs   int     `json:"allocs"`
	VMBytes  int     `json:"vm_bytes"`
	SetupMS  float64 `json:"setup_ms"`
	Tokens   int     `json:"tokens"`
	Bytes    int     `json:"bytes"`
	Skipped  string  `json:"skipped,omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "emmer-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	files, err := write(dir)
	if err != nil {
		return err
	}
	engines := []engine{{"native", native}, {"wazero", onWazero}}
	if _, err := exec.LookPath("node"); err == nil {
		engines = append(engines, engine{"v8", onV8})
	} else if os.Getenv("CI") != "" {
		return err
	} else {
		fmt.Fprintln(os.Stderr, "bench: no node here, so no lines for v8")
	}
	once := func(encodings int) (jobs []job) {
		for e := range encodings {
			for _, class := range corpus.Classes() {
				jobs = append(jobs, job{File: files[class], Bytes: whole, Encoding: e, Rounds: 1, class: class})
			}
		}
		return jobs
	}
	modules := []module{{name: "bare", Jobs: once(1)}}
	for _, s := range systems {
		modules = append(modules, module{name: s.module, encs: s.encodings, Jobs: s.jobs(files)})
	}
	// Once more, every class in every encoding: memory must not have grown since. Then what is long.
	own := &modules[1]
	own.Jobs = append(append(own.Jobs, once(len(own.encs))...), long(files)...)
	// For their memory alone: the exact encodings, and the estimates.
	modules = append(modules, module{name: "exact", Jobs: once(2)}, module{name: "estimate", Jobs: once(1)})
	for i := range modules {
		m := &modules[i]
		m.Path = filepath.Join(dir, m.name+".wasm")
		build := exec.Command("go", "build", "-trimpath", "-buildmode=c-shared", "-o", m.Path, "./bench/wasm/"+m.name)
		build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build %s: %w", m.name, err)
		}
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	var s summary
	for _, e := range engines {
		outcomes, err := e.run(dir, modules)
		if err != nil {
			return err
		}
		lines := linesOf(e.name, outcomes)
		for _, l := range lines {
			if err := out.Encode(l); err != nil {
				return err
			}
		}
		if err := s.take(e.name, lines, outcomes); err != nil {
			return err
		}
	}
	for _, a := range s.aims() {
		if err := out.Encode(a); err != nil {
			return err
		}
	}
	return nil
}

func linesOf(engine string, outcomes []outcome) []line {
	bare := 0
	if r := outcomes[0].results; len(r) > 0 {
		bare = r[0].Memory
	}
	var all []line
	for i, s := range systems {
		o := outcomes[i+1]
		next := 0
		for e := range s.encodings {
			for _, class := range corpus.Classes() {
				l := line{Engine: engine, Class: class, SetupMS: o.setup}
				l.System, l.Encoding = s.label(e)
				if why := s.left(class); why != "" {
					l.Skipped = why
					all = append(all, l)
					continue
				}
				r := o.results[next]
				next++
				l.Tokens, l.Allocs, l.Bytes = r.Tokens, r.Allocs, s.bytes
				l.MBs = rounded(float64(s.bytes) / r.Seconds / 1e6)
				if engine != "native" {
					l.VMBytes = r.Memory - bare
				}
				all = append(all, l)
			}
		}
	}
	return all
}

// rounded keeps two places.
func rounded(x float64) float64 { return float64(int(x*100+0.5)) / 100 }
