package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/emmer-proxy/emmer/hostsim"
	"github.com/emmer-proxy/emmer/hostsim/redisgw"
	"github.com/emmer-proxy/emmer/hostsim/scenario"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	config, wasm string
	upstreams    words
	listen       string
	redis        string
	workers      int
	jwtSecret    string
}

// words is a flag that may be given several times.
type words []string

func (w *words) String() string     { return fmt.Sprint([]string(*w)) }
func (w *words) Set(s string) error { *w = append(*w, s); return nil }

const listenerName = "serve"

func serveCommand(ctx context.Context, args []string, out, notes io.Writer) error {
	var o serveOptions
	f := flag.NewFlagSet("emmer-sim serve", flag.ContinueOnError)
	f.SetOutput(notes)
	f.StringVar(&o.config, "config", "emmer.yaml", "`file` with the filter's settings, YAML")
	f.StringVar(&o.wasm, "wasm", "bin/emmer.wasm", "`file` of the filter")
	f.Var(&o.upstreams, "upstream", "`URL` of the provider, http or https; NAME=URL adds a target; repeatable")
	f.StringVar(&o.listen, "listen", "127.0.0.1:10000", "`address` to serve on")
	f.StringVar(&o.redis, "redis", "", "`address` of a Redis; default: one in this process, forgotten at its end")
	f.IntVar(&o.workers, "workers", 1, "workers, each with a VM of its own")
	f.StringVar(&o.jwtSecret, "jwt-secret", "", "`secret` of HS256 tokens in `authorization: Bearer`; their claims are verified and handed to the filter")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("serve: unexpected %q", f.Arg(0))
	}
	g, err := startGateway(ctx, o, notes)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	g.greet(out)
	g.follow(ctx, out)
	fmt.Fprintln(notes, "stopping: what is under way may finish")
	return g.stop()
}

// gateway is a running reverse proxy with all that stands behind it.
type gateway struct {
	settings settings
	operator string // token of the operators' verbs
	bridge   *redisgw.Gateway
	relays   []*relay
	host     *hostsim.Host
	once     sync.Once
	stopped  error
}

func startGateway(ctx context.Context, o serveOptions, notes io.Writer) (g *gateway, err error) {
	g = &gateway{operator: rand.Text()}
	defer func() {
		if err != nil {
			g.stop()
			g = nil
		}
	}()
	text, err := readFile(o.config)
	if err != nil {
		return g, err
	}
	if g.settings, err = readSettings(text, os.LookupEnv); err != nil {
		return g, fmt.Errorf("%s: %w", o.config, err)
	}
	module, err := os.ReadFile(o.wasm)
	if errors.Is(err, os.ErrNotExist) {
		return g, fmt.Errorf("%w (`make wasm` builds it)", err)
	}
	if err != nil {
		return g, err
	}
	targets, err := parseTargets(o.upstreams)
	if err != nil {
		return g, err
	}
	g.bridge, err = redisgw.Start(redisgw.Options{
		RedisAddr: o.redis, Token: g.settings.token, OperatorToken: g.operator, Namespace: g.settings.namespace,
	})
	if err != nil {
		return g, err
	}
	clusters := map[string]hostsim.Cluster{g.settings.cluster: {URL: g.bridge.URL()}}
	l := hostsim.Listener{Name: listenerName, Address: o.listen, AccessLog: "%REQ(:METHOD)% %REQ(:PATH)% " + scenario.EmmerAccessLog}
	for _, e := range scenario.EmmerNetwork() {
		l.Network = append(l.Network, hostsim.Filter{Name: e.Name, RootID: e.RootID, Config: g.settings.json, FailurePolicy: "FAIL_RELOAD"})
	}
	for _, e := range scenario.EmmerModes()[g.settings.mode] {
		l.Filters = append(l.Filters, hostsim.Filter{
			Name: e.Name, RootID: e.RootID, Config: g.settings.json,
			AllowOnHeadersStop: e.AllowOnHeadersStop, FailurePolicy: "FAIL_RELOAD",
		})
	}
	last := hostsim.Route{}
	for name, url := range targets {
		r, err := startRelay(url, notes)
		if err != nil {
			return g, err
		}
		g.relays = append(g.relays, r)
		cluster := "upstream." + name
		clusters[cluster] = hostsim.Cluster{URL: r.url()}
		if name == "" {
			last.Cluster = cluster
		} else {
			l.Routes = append(l.Routes, hostsim.Route{Header: targetHeader, Value: name, Cluster: cluster})
		}
	}
	l.Routes = append(l.Routes, last)
	if o.jwtSecret != "" {
		l.JWT = &hostsim.JWT{Secret: []byte(o.jwtSecret)}
	}
	g.host, err = hostsim.Start(ctx, hostsim.Options{
		Wasm: module, Workers: o.workers, VMID: "emmer", Env: g.settings.env,
		Clusters: clusters, Listeners: []hostsim.Listener{l}, CompilationCacheDir: cacheDir(),
		Log: func(level, msg string) { fmt.Fprintf(notes, "%s: %s\n", level, msg) },
	})
	return g, err
}

func (g *gateway) url() string { return "http://" + g.host.Addr(listenerName) }

func (g *gateway) greet(out io.Writer) {
	fmt.Fprintf(out, `serving on %[1]s (hold.mode: %[2]s)

try it:
  curl -s %[1]s/v1/chat/completions -H 'content-type: application/json' -H "authorization: Bearer $OPENAI_API_KEY" \
    -d '{"model":"gpt-4o-mini","max_tokens":20,"messages":[{"role":"user","content":"hello"}]}'
  or point any OpenAI client at it: OPENAI_BASE_URL=%[1]s/v1

stop all calls, and let them go on:
  curl -s %[3]s/emmer/v1/kill -H 'authorization: Bearer %[4]s' -d '{"scope":"global","id":"all","reason":"drill"}'
  curl -s %[3]s/emmer/v1/resume -H 'authorization: Bearer %[4]s' -d '{"scope":"global","id":"all"}'

one line for each call; ^C ends:
`, g.url(), g.settings.mode, g.bridge.URL(), g.operator)
}

// follow prints the access log until the context ends.
func (g *gateway) follow(ctx context.Context, out io.Writer) {
	poll := time.NewTicker(200 * time.Millisecond)
	defer poll.Stop()
	printed := 0
	for {
		lines := g.host.AccessLog(listenerName)
		for _, line := range lines[printed:] {
			fmt.Fprintln(out, line)
		}
		printed = len(lines)
		select {
		case <-poll.C:
		case <-ctx.Done():
			return
		}
	}
}

// patience is how long the calls under way may take after a stop was asked for.
const patience = 10 * time.Second

// stop lets calls and settles under way finish, within patience, and ends all.
func (g *gateway) stop() error {
	g.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if g.host != nil {
			for poll := time.NewTicker(20 * time.Millisecond); g.host.Streams() > 0 && ctx.Err() == nil; <-poll.C {
			}
			g.stopped = g.host.Drain(ctx)
			g.host.Close()
		}
		for _, r := range g.relays {
			r.finish(ctx)
		}
		if g.bridge != nil {
			g.bridge.Close()
		}
	})
	return g.stopped
}
