package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/emmer-proxy/emmer/hostsim/scenario"
)

// testCommand runs scenario files. Probes of a plugin's store are not known here: scenarios with one
// are not run, and it says so.
func testCommand(ctx context.Context, args []string, out, notes io.Writer) error {
	o := scenario.Options{Gateway: scenario.GatewayHostsim, CompilationCache: cacheDir()}
	var real bool
	f := flag.NewFlagSet("emmer-sim test", flag.ContinueOnError)
	f.SetOutput(notes)
	f.BoolVar(&real, "envoy", false, "on a real Envoy instead of hostsim")
	f.StringVar(&o.Wasm, "wasm", "bin/emmer.wasm", "`file` of the filter")
	f.StringVar(&o.Redis, "redis", "", "`address` of a real Redis; default: an embedded one for each scenario")
	f.BoolVar(&o.Update, "update", false, "write what was found into the files where it differs")
	if err := f.Parse(args); err != nil {
		return err
	}
	o.Files = f.Args()
	if len(o.Files) == 0 {
		return errors.New("test: no files")
	}
	if real {
		o.Gateway = scenario.GatewayEnvoy
	}
	passed, failed, left := 0, 0, 0
	err := scenario.Run(ctx, o, func(r scenario.Result) {
		switch {
		case r.Err == nil:
			passed++
			fmt.Fprintf(out, "ok    %s\n", r.Name)
		case errors.Is(r.Err, scenario.ErrNoProbe):
			left++
			fmt.Fprintf(out, "left  %s: %v\n", r.Name, r.Err)
		default:
			failed++
			fmt.Fprintf(out, "FAIL  %s\n%v\n", r.Name, r.Err)
		}
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d passed, %d failed, on %s\n", passed, failed, o.Gateway)
	if left > 0 {
		fmt.Fprintf(out, "%d were not run: they ask the filter's store, and need `go test ./plugin`\n", left)
	}
	if failed > 0 {
		return errSaid
	}
	return nil
}

// cacheDir is where compiled modules are kept between runs, "" if there is no place.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	dir = filepath.Join(dir, "emmer-sim")
	if os.MkdirAll(dir, 0o755) != nil {
		return ""
	}
	return dir
}
