package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/emmer-proxy/emmer/hostsim/bench"
)

// holdMark stands in a benchmark's configuration where the way to hold goes.
const holdMark = `"HOLD"`

// benchCommand measures a filter beside bare Envoy and beside a floor: emmer-sim bench.
func benchCommand(ctx context.Context, args []string, out, notes io.Writer) error {
	o := bench.Options{Out: out, Notes: notes}
	var config, holds, sizes, conns string
	f := flag.NewFlagSet("emmer-sim bench", flag.ContinueOnError)
	f.SetOutput(notes)
	f.StringVar(&o.Filter, "wasm", "bin/emmer.wasm", "`file` of the filter")
	f.StringVar(&o.Floor, "floor", "bin/floor.wasm", "`file` of the floor to compare with")
	f.StringVar(&o.Bridge, "bridge", "bin/emmer-bridge", "`program` of the bridge")
	f.StringVar(&o.Redis, "redis", redisServer(), "`program` of Redis")
	f.StringVar(&config, "config", "examples/bench/emmer.json", "`file` of the filter's configuration, with "+holdMark+" for the way to hold")
	f.StringVar(&o.TokenEnv, "token-env", "EMMER_STORE_TOKEN", "`variable` of the VM that holds the bridge's token")
	f.DurationVar(&o.Timeout, "timeout", 50*time.Millisecond, "the store timeout in the configuration")
	f.StringVar(&holds, "hold", "pair,flag", "ways to hold")
	f.StringVar(&sizes, "bytes", "1024,102400", "sizes of the body")
	f.StringVar(&conns, "conns", "1,16", "numbers of connections")
	f.IntVar(&o.Workers, "workers", 2, "workers of Envoy")
	f.IntVar(&o.Rounds, "rounds", 5, "rounds of each measurement; the figures are their medians; 0 = only the faults")
	f.DurationVar(&o.For, "for", time.Second, "`time` of one measurement in one round")
	f.BoolVar(&o.Faults, "faults", true, "also measure with the store away")
	if err := parseFlags(f, args); err != nil {
		return err
	}
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), holdMark) {
		return fmt.Errorf("%s: no %s to put the way to hold in place of", config, holdMark)
	}
	o.Holds = strings.Split(holds, ",")
	o.Configs = map[string][]byte{}
	for _, hold := range o.Holds {
		o.Configs[hold] = []byte(strings.ReplaceAll(string(text), holdMark, strconv.Quote(hold)))
	}
	if o.Sizes, err = numbers(sizes); err != nil {
		return fmt.Errorf("-bytes: %w", err)
	}
	if o.Conns, err = numbers(conns); err != nil {
		return fmt.Errorf("-conns: %w", err)
	}
	if o.Rounds < 0 || o.For <= 0 || o.Workers < 1 {
		return errors.New("-for and -workers must be positive, -rounds not negative")
	}
	_, err = bench.Run(ctx, o)
	return err
}

// sizeCommand weighs a filter: emmer-sim size.
func sizeCommand(ctx context.Context, args []string, out, notes io.Writer) error {
	o := bench.SizeOptions{Out: out}
	var config string
	f := flag.NewFlagSet("emmer-sim size", flag.ContinueOnError)
	f.SetOutput(notes)
	f.StringVar(&o.Filter, "wasm", "bin/emmer.wasm", "`file` of the filter")
	f.StringVar(&config, "config", "examples/bench/emmer.json", "`file` of the filter's configuration")
	f.StringVar(&o.TokenEnv, "token-env", "EMMER_STORE_TOKEN", "`variable` of the VM that holds the bridge's token")
	f.IntVar(&o.Calls, "calls", 1000, "mixed calls before the second look at the memory")
	if err := parseFlags(f, args); err != nil {
		return err
	}
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	o.Config = []byte(strings.ReplaceAll(string(text), holdMark, `"pair"`))
	_, err = bench.Weigh(ctx, o)
	return err
}

func parseFlags(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return nil
}

func numbers(text string) ([]int, error) {
	var all []int
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no positive number", word)
		}
		all = append(all, n)
	}
	return all, nil
}

// redisServer is the Redis that `make tools` found, or the one on PATH.
func redisServer() string {
	if path := os.Getenv("EMMER_REDIS"); path != "" {
		return path
	}
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return "redis-server"
	}
	return path
}
