package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/emmer-proxy/emmer/tokenizer/internal/lab/bench/counters"
	"github.com/emmer-proxy/emmer/tokenizer/internal/lab/bench/counters/pkoukk"
	"github.com/emmer-proxy/emmer/tokenizer/internal/lab/bench/counters/tiktokengo"
	"github.com/emmer-proxy/emmer/tokenizer/internal/lab/bench/driver"
)

// result is what one job gave.
type result struct {
	Tokens  int     `json:"tokens"`
	Seconds float64 `json:"seconds"` // the best round
	Allocs  int     `json:"allocs"`
	Memory  int     `json:"memory"` // of the instance, in bytes; 0 natively
}

// outcome is what one module gave.
type outcome struct {
	setup   float64 // ms to instantiate, initialise and count eleven bytes
	results []result
}

// engine runs the jobs of some modules, by their folder.
type engine struct {
	name string
	run  func(dir string, modules []module) ([]outcome, error)
}

type module struct {
	Path string `json:"path"`
	Jobs []job  `json:"jobs"`
	name string
	encs []string
}

func native(_ string, modules []module) ([]outcome, error) {
	makers := map[string]func(...string) func(int, []byte) int{"emmer": counters.Emmer, "pkoukk": pkoukk.New, "tiktokengo": tiktokengo.New}
	var all []outcome
	for _, m := range modules {
		if makers[m.name] == nil { // a module that only memory is measured of
			all = append(all, outcome{})
			continue
		}
		start := time.Now()
		count := makers[m.name](m.encs...)
		count(0, []byte("hello world"))
		o := outcome{setup: ms(time.Since(start))}
		for _, j := range m.Jobs {
			text, err := os.ReadFile(j.File)
			if err != nil {
				return nil, err
			}
			text = text[:min(j.Bytes, len(text))]
			r := result{Tokens: count(j.Encoding, text)}
			for i := range j.Rounds {
				start := time.Now()
				count(j.Encoding, text)
				if s := time.Since(start).Seconds(); i == 0 || s < r.Seconds {
					r.Seconds = s
				}
			}
			before := driver.Allocations()
			count(j.Encoding, text)
			r.Allocs = int(driver.Allocations() - before)
			o.results = append(o.results, r)
		}
		all = append(all, o)
	}
	return all, nil
}

func onWazero(_ string, modules []module) ([]outcome, error) {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	defer r.Close(ctx)
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return nil, err
	}
	var all []outcome
	for _, m := range modules {
		o, err := instance(ctx, r, m)
		if err != nil {
			return nil, fmt.Errorf("wazero: %s: %w", m.name, err)
		}
		all = append(all, o)
	}
	return all, nil
}

func instance(ctx context.Context, r wazero.Runtime, m module) (o outcome, err error) {
	code, err := os.ReadFile(m.Path)
	if err != nil {
		return o, err
	}
	compiled, err := r.CompileModule(ctx, code)
	if err != nil {
		return o, err
	}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").WithSysWalltime().WithSysNanotime()
	start := time.Now()
	mod, err := r.InstantiateModule(ctx, compiled, config)
	if err != nil {
		return o, err
	}
	defer mod.Close(ctx)
	call := func(name string, args ...uint64) uint64 {
		if err != nil {
			return 0
		}
		var out []uint64
		if out, err = mod.ExportedFunction(name).Call(ctx, args...); err != nil {
			return 0
		}
		return out[0]
	}
	at := uint32(call("room", room))
	put := func(text []byte) {
		if err == nil && !mod.Memory().Write(at, text) {
			err = errors.New("no room for the text")
		}
	}
	put([]byte("hello world"))
	call("count", 0, 11)
	o.setup = ms(time.Since(start))
	for _, j := range m.Jobs {
		text, readErr := os.ReadFile(j.File)
		if readErr != nil {
			return o, readErr
		}
		text = text[:min(j.Bytes, len(text))]
		put(text)
		args := []uint64{api.EncodeI32(int32(j.Encoding)), api.EncodeI32(int32(len(text)))}
		res := result{Tokens: int(call("count", args...))}
		for i := range j.Rounds {
			start := time.Now()
			call("count", args...)
			if s := time.Since(start).Seconds(); i == 0 || s < res.Seconds {
				res.Seconds = s
			}
		}
		before := call("allocations")
		call("count", args...)
		res.Allocs = int(call("allocations") - before)
		res.Memory = int(mod.Memory().Size())
		o.results = append(o.results, res)
	}
	return o, err
}

//go:embed host.mjs
var host []byte

func onV8(dir string, modules []module) ([]outcome, error) {
	program, jobs := filepath.Join(dir, "host.mjs"), filepath.Join(dir, "jobs.json")
	b, err := json.Marshal(map[string]any{"room": room, "modules": modules})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.WriteFile(program, host, 0o600), os.WriteFile(jobs, b, 0o600)); err != nil {
		return nil, err
	}
	node := exec.Command("node", program, jobs)
	node.Stderr = os.Stderr
	out, err := node.Output()
	if err != nil {
		return nil, fmt.Errorf("v8: node: %w", err)
	}
	lines := json.NewDecoder(bytes.NewReader(out))
	var all []outcome
	for _, m := range modules {
		var o outcome
		var first struct {
			Setup float64 `json:"setup_ms"`
		}
		if err := lines.Decode(&first); err != nil {
			return nil, fmt.Errorf("v8: %s: %w", m.name, err)
		}
		o.setup = first.Setup
		for range m.Jobs {
			var r result
			if err := lines.Decode(&r); err != nil {
				return nil, fmt.Errorf("v8: %s: %w", m.name, err)
			}
			o.results = append(o.results, r)
		}
		all = append(all, o)
	}
	if lines.Decode(new(result)) != io.EOF {
		return nil, errors.New("v8: more lines than jobs")
	}
	return all, nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
