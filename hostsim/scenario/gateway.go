package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/emmer-proxy/emmer/hostsim"
	"github.com/emmer-proxy/emmer/hostsim/envoy"
)

// Names of gateways for Options.Gateway.
const (
	GatewayHostsim = "hostsim"
	GatewayEnvoy   = "envoy"
)

// Entry is one entry of the module in a filter chain.
type Entry struct {
	Name               string
	RootID             string
	AllowOnHeadersStop bool
}

// door is what one scenario in one mode needs of a gateway: a listener with its chain and routes.
type door struct {
	name        string
	entries     []Entry
	network     []Entry
	config      []byte
	between     []Between
	routes      []envoy.Route
	clusters    []envoy.Cluster
	identity    *identity // of TLS; nil without
	jwt         *JWT
	bufferLimit int
	idleTimeout time.Duration
}

// gateway is a running one, of either kind.
type gateway interface {
	addr(door string) string
	metrics(ctx context.Context) (map[string]int64, error)
	accessLog(door string) []string
	logs() []string
	complaints() []string // rules of the host that the module broke
	close()
}

// start starts a gateway with all its doors.
func start(ctx context.Context, o *Options, workers int, doors []door) (gateway, error) {
	switch o.Gateway {
	case GatewayEnvoy:
		return startEnvoy(ctx, o, workers, doors)
	case GatewayHostsim:
		return startHostsim(ctx, o, workers, doors)
	}
	return nil, fmt.Errorf("gateway: want %s or %s, found %q", GatewayHostsim, GatewayEnvoy, o.Gateway)
}

const vmID = "scenario"

type envoyGateway struct{ *envoy.Envoy }

func startEnvoy(ctx context.Context, o *Options, workers int, doors []door) (gateway, error) {
	var opt envoy.Options
	opt.Concurrency = workers
	for _, d := range doors {
		l := envoy.Listener{
			Name: d.name, BufferLimit: d.bufferLimit, StreamIdleTimeout: d.idleTimeout,
			Routes: d.routes, AccessLog: o.AccessLog,
		}
		if d.identity != nil {
			l.TLS = &d.identity.pem
		}
		if d.jwt != nil {
			l.JWT = &envoy.JWT{Secret: []byte(d.jwt.Secret), Metadata: d.jwt.Metadata}
		}
		for _, e := range d.network {
			if o.Wasm != "" {
				l.Network = append(l.Network, envoy.Wasm{Name: e.Name, RootID: e.RootID, File: o.Wasm, VMID: vmID, Env: o.Env, Config: d.config})
			}
		}
		for i, e := range d.entries {
			if i > 0 {
				for _, b := range d.between {
					f, err := b.filter()
					if err != nil {
						return nil, fmt.Errorf("%s: %w", d.name, err)
					}
					l.Filters = append(l.Filters, f)
				}
			}
			if o.Wasm == "" {
				continue
			}
			l.Filters = append(l.Filters, envoy.Filter{Wasm: &envoy.Wasm{
				Name: e.Name, RootID: e.RootID, File: o.Wasm, VMID: vmID, Env: o.Env,
				Config: d.config, AllowOnHeadersStop: e.AllowOnHeadersStop,
			}})
		}
		opt.Listeners = append(opt.Listeners, l)
		opt.Clusters = append(opt.Clusters, d.clusters...)
	}
	e, err := envoy.Start(ctx, opt)
	if err != nil {
		return nil, err
	}
	return envoyGateway{e}, nil
}

func (b Between) filter() (envoy.Filter, error) {
	if b.Delay > 0 {
		return envoy.Delay(b.Delay), nil
	}
	raw, err := json.Marshal(b.Envoy)
	return envoy.Filter{Raw: raw}, err
}

func (g envoyGateway) addr(door string) string        { return g.Addr(door) }
func (g envoyGateway) accessLog(door string) []string { return g.AccessLog(door) }
func (g envoyGateway) logs() []string                 { return strings.Split(strings.TrimSpace(g.Logs()), "\n") }
func (g envoyGateway) complaints() []string           { return nil }
func (g envoyGateway) close()                         { g.Stop() }
func (g envoyGateway) metrics(ctx context.Context) (map[string]int64, error) {
	return g.Metrics(ctx)
}

type simGateway struct{ *hostsim.Host }

// startHostsim leaves out what stands between the entries: hostsim runs one module. What such a
// filter does to timing is for Envoy to show.
func startHostsim(ctx context.Context, o *Options, workers int, doors []door) (gateway, error) {
	if o.Wasm == "" {
		return nil, fmt.Errorf("hostsim: no .wasm to run")
	}
	module, err := os.ReadFile(o.Wasm)
	if err != nil {
		return nil, err
	}
	opt := hostsim.Options{
		Wasm: module, Workers: workers, VMID: vmID, Env: o.Env, Strict: true,
		Clusters: map[string]hostsim.Cluster{}, CompilationCacheDir: o.CompilationCache,
	}
	for _, d := range doors {
		l := hostsim.Listener{Name: d.name, BufferLimit: d.bufferLimit, AccessLog: o.AccessLog}
		if d.identity != nil {
			l.TLS = &d.identity.certificate
		}
		if d.jwt != nil {
			l.JWT = &hostsim.JWT{Secret: []byte(d.jwt.Secret), Metadata: d.jwt.Metadata}
		}
		for _, e := range d.network {
			l.Network = append(l.Network, hostsim.Filter{Name: e.Name, RootID: e.RootID, Config: d.config, FailurePolicy: "FAIL_RELOAD"})
		}
		for _, e := range d.entries {
			l.Filters = append(l.Filters, hostsim.Filter{
				Name: e.Name, RootID: e.RootID, Config: d.config,
				AllowOnHeadersStop: e.AllowOnHeadersStop, FailurePolicy: "FAIL_RELOAD",
			})
		}
		for _, r := range d.routes {
			l.Routes = append(l.Routes, hostsim.Route{Header: r.Header, Value: r.Value, Cluster: r.Cluster})
		}
		opt.Listeners = append(opt.Listeners, l)
		for _, c := range d.clusters {
			url := ""
			if c.Addr != "" {
				url = "http://" + c.Addr
			}
			opt.Clusters[c.Name] = hostsim.Cluster{URL: url, HTTP2: c.HTTP2}
		}
	}
	h, err := hostsim.Start(ctx, opt)
	if err != nil {
		return nil, err
	}
	return simGateway{h}, nil
}

func (g simGateway) addr(door string) string        { return g.Addr(door) }
func (g simGateway) accessLog(door string) []string { return g.AccessLog(door) }
func (g simGateway) logs() []string                 { return g.Logs() }
func (g simGateway) complaints() []string           { return g.Violations() }
func (g simGateway) close()                         { g.Close() }
func (g simGateway) metrics(context.Context) (map[string]int64, error) {
	return g.Metrics(), nil
}

// sum adds up the counters of several gateways.
func sum(ctx context.Context, gateways []gateway) (map[string]int64, error) {
	out := map[string]int64{}
	for _, g := range gateways {
		m, err := g.metrics(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(m)) {
			out[name] += m[name]
		}
	}
	return out, nil
}
