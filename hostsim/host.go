package hostsim

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
)

// The failure policies of a filter.
const (
	FailClosed = "FAIL_CLOSED"
	FailOpen   = "FAIL_OPEN"
	FailReload = "FAIL_RELOAD"
)

// Host is a running simulator.
type Host struct {
	ctx    context.Context
	cancel context.CancelFunc
	clock  Clock
	sink   func(level, msg string)
	strict bool

	runtime       wazero.Runtime
	compiled      wazero.CompiledModule
	vmConfig      []byte
	env           []string
	plugins       []*plugin
	clusters      map[string]*cluster
	listeners     []*listener
	main          *worker
	workers       []*worker
	base          *vm
	shared        *sharedStore
	metrics       *metricStore
	reloadBackoff time.Duration
	serverLog     *log.Logger
	started       time.Time
	readings      atomic.Uint64

	nextStream, nextConnection atomic.Uint64
	running                    sync.WaitGroup // goroutines that are neither workers nor timers
	closing                    sync.Once

	mu         sync.Mutex
	lines      []string
	violations []string
}

// keptLines bounds what Logs and Violations remember.
const keptLines = 10000

// Compiled code is shared by all hosts of a process: one cache in memory, one for each directory.
var (
	cachesLock sync.Mutex
	caches     = map[string]wazero.CompilationCache{}
)

func compilationCache(dir string) (wazero.CompilationCache, error) {
	cachesLock.Lock()
	defer cachesLock.Unlock()
	if c, ok := caches[dir]; ok {
		return c, nil
	}
	if dir == "" {
		caches[dir] = wazero.NewCompilationCache()
		return caches[dir], nil
	}
	c, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, fmt.Errorf("compilation cache: %w", err)
	}
	caches[dir] = c
	return c, nil
}

// memoryPages is V8's cap in Envoy: 1 GiB.
const memoryPages = 16384

// Start compiles the module, starts it everywhere and opens the listeners. A module that refuses its configuration
// is an error, as Envoy does not boot with it. ctx bounds the start only.
func Start(ctx context.Context, o Options) (*Host, error) {
	if len(o.Wasm) == 0 || len(o.Listeners) == 0 {
		return nil, errors.New("hostsim: want a module and at least one listener")
	}
	h := &Host{clock: o.Clock, sink: o.Log, strict: o.Strict, vmConfig: o.VMConfig, env: environment(o.Env),
		clusters: map[string]*cluster{}, shared: newSharedStore(), metrics: &metricStore{byName: map[string]*metric{}},
		reloadBackoff: o.ReloadBackoff}
	h.serverLog = log.New(serverLogWriter{h}, "", 0)
	if h.clock == nil {
		h.clock = realClock{}
	}
	if h.reloadBackoff == 0 {
		h.reloadBackoff = time.Second
	}
	h.started = h.clock.Now()
	h.ctx, h.cancel = context.WithCancel(context.Background())
	if err := h.start(ctx, o); err != nil {
		h.Close()
		return nil, fmt.Errorf("hostsim: %w", err)
	}
	return h, nil
}

func (h *Host) start(ctx context.Context, o Options) error {
	for name, c := range o.Clusters {
		made, err := newCluster(name, c)
		if err != nil {
			return err
		}
		h.clusters[name] = made
	}
	known := map[string]*plugin{}
	for _, lo := range o.Listeners {
		l := &listener{host: h, name: lo.Name, routes: lo.Routes, bufferLimit: lo.BufferLimit}
		if lo.TLS != nil {
			l.tls = &tls.Config{Certificates: []tls.Certificate{*lo.TLS}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
		}
		if l.bufferLimit == 0 {
			l.bufferLimit = 1 << 20
		}
		if lo.JWT != nil {
			l.jwt = &jwtCheck{secret: lo.JWT.Secret, metadata: lo.JWT.Metadata}
			if l.jwt.metadata == "" {
				l.jwt.metadata = "payload"
			}
		}
		format, err := parseFormat(lo.AccessLog)
		if err != nil {
			return fmt.Errorf("listener %q: %w", lo.Name, err)
		}
		l.format = format
		for _, chain := range []struct {
			of []Filter
			to *[]*plugin
		}{{lo.Network, &l.network}, {lo.Filters, &l.plugins}} {
			for _, f := range chain.of {
				p, err := h.plugin(known, o.VMID, f)
				if err != nil {
					return fmt.Errorf("listener %q: %w", lo.Name, err)
				}
				*chain.to = append(*chain.to, p)
			}
		}
		h.listeners = append(h.listeners, l)
	}
	cache, err := compilationCache(o.CompilationCacheDir)
	if err != nil {
		return err
	}
	// The runtime outlives ctx, which bounds the start.
	background := context.Background()
	h.runtime = wazero.NewRuntimeWithConfig(background, wazero.NewRuntimeConfigCompiler().
		WithCompilationCache(cache).WithMemoryLimitPages(memoryPages).WithCloseOnContextDone(false))
	if h.compiled, err = h.runtime.CompileModule(background, o.Wasm); err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	if err := checkImports(h.compiled); err != nil {
		return err
	}
	if err := instantiateHost(background, h.runtime); err != nil {
		return err
	}
	h.main = newWorker(h, "main")
	for i := range max(o.Workers, 1) {
		h.workers = append(h.workers, newWorker(h, "worker-"+strconv.Itoa(i)))
	}
	if err := h.startVMs(ctx); err != nil {
		return err
	}
	for i, l := range h.listeners {
		address := o.Listeners[i].Address
		if address == "" {
			address = "127.0.0.1:0"
		}
		if l.net, err = net.Listen("tcp", address); err != nil {
			return fmt.Errorf("listener %q: %w", l.name, err)
		}
	}
	for _, l := range h.listeners {
		l.serve()
	}
	return nil
}

// plugin returns the plugin configuration of a filter; equal ones are one.
func (h *Host) plugin(known map[string]*plugin, vmID string, f Filter) (*plugin, error) {
	if f.VMID != "" {
		vmID = f.VMID
	}
	policy := f.FailurePolicy
	switch policy {
	case "":
		policy = FailClosed
	case FailClosed, FailOpen, FailReload:
	default:
		return nil, fmt.Errorf("filter %q: unknown failure policy %q", f.Name, policy)
	}
	key := fmt.Sprintf("%q %q %q %q %v %s", f.Name, f.RootID, vmID, f.Config, f.AllowOnHeadersStop, policy)
	if p, ok := known[key]; ok {
		return p, nil
	}
	p := &plugin{key: key, name: f.Name, rootID: f.RootID, vmID: vmID, config: f.Config, allowOnHeadersStop: f.AllowOnHeadersStop, policy: policy}
	known[key] = p
	h.plugins = append(h.plugins, p)
	return p, nil
}

// startVMs is Envoy's order: a base VM, a canary for each plugin that is thrown away, then the main thread and the
// workers.
func (h *Host) startVMs(ctx context.Context) error {
	var err error
	ids := map[string]bool{}
	h.main.run(func() {
		var first string
		if len(h.plugins) > 0 {
			first = h.plugins[0].vmID
		}
		if h.base, err = newVM(h.main, first, "base", false); err != nil {
			return
		}
		for _, p := range h.plugins {
			ids[p.vmID] = true
			var canary *vm
			if canary, err = newVM(h.main, p.vmID, "canary", true); err != nil {
				return
			}
			err = canary.start(p)
			canary.drop()
			if err != nil {
				return
			}
		}
	})
	sorted := make([]string, 0, len(ids))
	for id := range ids {
		sorted = append(sorted, id)
	}
	sort.Strings(sorted)
	for _, w := range h.threads() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		w.run(func() {
			for _, id := range sorted {
				var v *vm
				if v, err = newVM(w, id, w.name, false); err != nil {
					return
				}
				w.vms[id] = v
				for _, p := range h.plugins {
					if p.vmID != id {
						continue
					}
					w.places[p] = &place{vm: v}
					if err = v.start(p); err != nil {
						return
					}
				}
			}
		})
	}
	return err
}

// threads are the main thread and the workers.
func (h *Host) threads() []*worker {
	if h.main == nil {
		return nil
	}
	return append([]*worker{h.main}, h.workers...)
}

// Addr returns host:port of a listener, "" for an unknown name.
func (h *Host) Addr(listener string) string {
	if l := h.listener(listener); l != nil {
		return l.net.Addr().String()
	}
	return ""
}

func (h *Host) listener(name string) *listener {
	for _, l := range h.listeners {
		if l.name == name {
			return l
		}
	}
	return nil
}

// Metrics returns the module's metrics by their own names, summed over all VMs. A histogram is name.count and
// name.sum.
func (h *Host) Metrics() map[string]int64 { return h.metrics.snapshot() }

// AccessLog returns the lines of a listener so far, one per finished stream. A line is there before the client
// reads the end of its response.
func (h *Host) AccessLog(listener string) []string {
	l := h.listener(listener)
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

// Logs returns what the module logged, "level: message", the last ten thousand lines.
func (h *Host) Logs() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.lines...)
}

// Violations lists what the module did against the ABI's or Envoy's rules.
func (h *Host) Violations() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.violations...)
}

// Memory returns the linear memory of each VM in bytes, by thread and VM id.
func (h *Host) Memory() map[string]uint64 {
	var mu sync.Mutex
	out := map[string]uint64{}
	for _, w := range h.threads() {
		w.run(func() {
			mu.Lock()
			defer mu.Unlock()
			if w == h.main && h.base != nil {
				out["base"] = uint64(h.base.mod.Memory().Size())
			}
			for id, v := range w.vms {
				name := w.name
				if id != "" && len(w.vms) > 1 {
					name += " " + id
				}
				out[name] = uint64(v.mod.Memory().Size())
			}
		})
	}
	mu.Lock()
	defer mu.Unlock()
	return out
}

// Streams returns how many exchanges are under way.
func (h *Host) Streams() int {
	var n atomic.Int64
	for _, w := range h.threads() {
		w.run(func() { n.Add(int64(len(w.streams))) })
	}
	return int(n.Load())
}

// Drain asks every plugin to finish, as Envoy does when a configuration goes away: proxy_on_done, then, where it
// answered not yet, proxy_done. It returns when all have or ctx ends. Requests still work meanwhile.
func (h *Host) Drain(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		left := 0
		for _, w := range h.threads() {
			w.run(func() {
				for _, v := range w.vms {
					for _, r := range v.roots {
						if !v.failed && !r.draining {
							r.drain()
						}
						if !v.failed && !r.finished {
							left++
						}
					}
				}
			})
		}
		if left == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("hostsim: %d plugins did not finish: %w", left, ctx.Err())
		}
	}
}

// Close ends all streams, listeners, VMs and goroutines.
func (h *Host) Close() {
	h.closing.Do(func() {
		h.cancel()
		for _, l := range h.listeners {
			if l.server != nil {
				_ = l.server.Close()
			} else if l.net != nil {
				_ = l.net.Close()
			}
		}
		// Streams still end by the rules: the workers run until the last handler has returned.
		h.running.Wait()
		for _, w := range h.threads() {
			w.run(func() {
				for _, v := range w.vms {
					v.drop()
				}
				if w == h.main && h.base != nil {
					h.base.drop()
				}
			})
			w.close()
		}
		for _, c := range h.clusters {
			if c.transport != nil {
				c.transport.CloseIdleConnections()
			}
		}
		if h.runtime != nil {
			_ = h.runtime.Close(context.Background())
		}
	})
}

func (h *Host) log(level, msg string) {
	h.mu.Lock()
	h.lines = append(h.lines, level+": "+msg)
	if len(h.lines) > keptLines {
		h.lines = append([]string(nil), h.lines[keptLines/2:]...)
	}
	h.mu.Unlock()
	if h.sink != nil {
		h.sink(level, msg)
	}
}

func (h *Host) logf(level, format string, args ...any) { h.log(level, fmt.Sprintf(format, args...)) }

// violate records what cost bytes, or would have on Envoy.
func (h *Host) violate(format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	h.mu.Lock()
	if len(h.violations) < keptLines {
		h.violations = append(h.violations, msg)
	}
	h.mu.Unlock()
	h.log("error", "violation: "+msg)
}

// strictly records, under Options.Strict, what goes well by luck only.
func (h *Host) strictly(format string, args ...any) {
	if h.strict {
		h.violate(format, args...)
	}
}

// monotonic is the module's monotonic clock. Under a manual clock it still creeps, a tenth of a microsecond a
// reading, for a runtime that waits for time to pass.
func (h *Host) monotonic() uint64 {
	t := uint64(h.clock.Now().Sub(h.started)) + 1
	if _, manual := h.clock.(*ManualClock); manual {
		t += h.readings.Add(100)
	}
	return t
}

// newRequestID is a version 4 UUID.
func newRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
