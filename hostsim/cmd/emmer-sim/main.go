// Command emmer-sim is a gateway for laptops: it runs a proxy-wasm .wasm in hostsim, with a Redis of
// its own, in front of any model provider.
//
//	emmer-sim serve --config emmer.yaml --upstream https://api.example.com
//	emmer-sim test [--envoy] scenarios/*.txtar
//	emmer-sim bench
//	emmer-sim size
//
// It knows what a filter's settings must say to reach the store (store, hold), and nothing else of
// them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// errSaid ends the program with a code, for faults that were told already.
var errSaid = errors.New("failed")

type command struct {
	name, about string
	run         func(ctx context.Context, args []string, out, notes io.Writer) error
}

var commands = []command{
	{"serve", "a reverse proxy with the filter in it, in front of a provider", serveCommand},
	{"test", "run scenarios, on hostsim or on a real Envoy", testCommand},
	{"bench", "measure the filter beside bare Envoy and a floor", benchCommand},
	{"size", "weigh the filter: bytes, and memory of a VM", sizeCommand},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errSaid):
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "emmer-sim:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, notes io.Writer) error {
	if len(args) > 0 {
		for _, c := range commands {
			if c.name == args[0] {
				return c.run(ctx, args[1:], out, notes)
			}
		}
	}
	fmt.Fprintln(notes, "usage: emmer-sim COMMAND [flags], with --help for a command's flags")
	for _, c := range commands {
		fmt.Fprintf(notes, "  %-6s %s\n", c.name, c.about)
	}
	switch {
	case len(args) == 0:
		return errSaid
	case args[0] == "help" || args[0] == "-h" || args[0] == "--help":
		return nil
	}
	return fmt.Errorf("no command %q", args[0])
}
