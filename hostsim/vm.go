package hostsim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// plugin is one plugin configuration: a root context in every VM with its VM id. Filters of several listeners with
// equal configuration share it, as in Envoy.
type plugin struct {
	key, name, rootID, vmID string
	config                  []byte
	allowOnHeadersStop      bool
	policy                  string
}

// vm is one instance of the module. All its methods run on its worker's loop.
type vm struct {
	w      *worker
	id     string // VM id
	name   string
	canary bool
	ctx    context.Context
	mod    api.Module
	fns    map[string]api.Function
	failed bool

	contexts map[uint32]*vmContext
	nextID   uint32
	roots    map[string]*rootContext // by plugin key
	metrics  []*metric               // by id - 1
	nextCall uint32

	now   *invocation // the call that is on the stack
	after []func()    // what the host does after the call: resume, local reply, close
}

// invocation is one call into the module.
type invocation struct {
	name      string
	current   *vmContext
	effective *vmContext
	stop      bool   // a local reply was asked for: the return value is overridden
	deferred  string // the first deferred action
	polled    bool   // poll_oneoff was called
}

// vmContext is a context id inside one VM: a root or a filter of a stream.
type vmContext struct {
	id     uint32
	vm     *vm
	root   *rootContext
	filter *filter // of an HTTP filter's context

	network *networkFilter // of a network filter's context; a root's has neither
}

type rootContext struct {
	vmContext
	plugin   *plugin
	period   time.Duration
	timer    Timer
	arming   int // counts setTick calls, so that a tick already on its way dies with its period
	calls    map[uint32]*callout
	response *calloutResponse // readable while its callback runs
	draining bool
	finished bool
}

type vmKey struct{}

// newVM instantiates the module and calls _initialize.
func newVM(w *worker, id, name string, canary bool) (*vm, error) {
	v := &vm{w: w, id: id, name: name, canary: canary, fns: map[string]api.Function{},
		contexts: map[uint32]*vmContext{}, roots: map[string]*rootContext{}}
	v.ctx = context.WithValue(context.Background(), vmKey{}, v)
	// Without a name any number of instances of one module may live in one runtime.
	mod, err := w.host.runtime.InstantiateModule(v.ctx, w.host.compiled,
		wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, fmt.Errorf("instantiate: %w", err)
	}
	v.mod = mod
	for _, start := range []string{"_initialize", "_start"} {
		if fn := mod.ExportedFunction(start); fn != nil {
			v.now = &invocation{name: start}
			_, err := fn.Call(v.ctx)
			v.now = nil
			if err != nil {
				mod.Close(v.ctx)
				return nil, fmt.Errorf("%s: %w", start, err)
			}
			break
		}
	}
	return v, nil
}

// drop ends a VM without a word to the module.
func (v *vm) drop() {
	v.failed = true
	for _, r := range v.roots {
		if r.timer != nil {
			r.timer.Stop()
		}
		for _, c := range r.calls {
			c.abandon()
		}
		r.calls = nil
	}
	v.mod.Close(v.ctx)
}

func (v *vm) function(name string) api.Function {
	fn, ok := v.fns[name]
	if !ok {
		fn = v.mod.ExportedFunction(name)
		v.fns[name] = fn
	}
	return fn
}

// answer is what a call into the module came to.
type answer struct {
	value uint32
	stop  bool // the module asked for a local reply
	dead  bool // the VM is dead, before or by this call
}

// call runs an exported callback under a context and then what the module asked to be done after it. A callback
// that the module does not export answers missing.
func (v *vm) call(name string, c *vmContext, missing uint32, args ...uint64) answer {
	if v.failed {
		return answer{dead: true}
	}
	fn := v.function(name)
	if fn == nil {
		return answer{value: missing}
	}
	in := &invocation{name: name, current: c}
	v.now = in
	results, err := fn.Call(v.ctx, args...)
	v.now = nil
	a := answer{value: missing, stop: in.stop}
	if err != nil {
		v.trap(name, err)
		a.dead = true
		return a
	}
	if in.polled { // not of a crash: the Go runtime sleeps before it prints a panic
		v.w.host.strictly("%s: poll_oneoff, a timer or a sleep: it spins on the worker, and kills the VM on Envoy before 1.39", name)
	}
	if len(results) > 0 {
		a.value = uint32(results[0])
	}
	return a
}

// runAfter runs the deferred actions. An action that calls into the VM again runs the rest of them from inside, as
// in Envoy: that is why there must be one only.
func (v *vm) runAfter() {
	for len(v.after) > 0 {
		f := v.after[0]
		v.after = v.after[1:]
		f()
	}
}

func (v *vm) deferAction(what string, f func()) {
	if in := v.now; in != nil {
		if in.deferred != "" {
			v.w.host.strictly("%s: %s after %s in one callback; Envoy runs both after the callback, one inside the other", in.name, what, in.deferred)
		} else {
			in.deferred = what
		}
	}
	v.after = append(v.after, f)
}

func (v *vm) trap(name string, err error) {
	v.failed = true
	v.w.host.logf("critical", "Function: %s failed: %v", name, err)
	for _, r := range v.roots {
		if r.timer != nil {
			r.timer.Stop()
		}
		for _, c := range r.calls {
			c.abandon()
		}
		r.calls = nil
	}
}

// allocate asks the module for n bytes of its memory.
func (v *vm) allocate(n int) (uint32, bool) {
	fn := v.function("malloc")
	if fn == nil {
		fn = v.function("proxy_on_memory_allocate")
	}
	if fn == nil {
		return 0, false
	}
	r, err := fn.Call(v.ctx, uint64(n))
	if err != nil || len(r) == 0 || r[0] == 0 {
		return 0, false
	}
	return uint32(r[0]), true
}

// newContext reserves an id and fills the table.
func (v *vm) newContext(c *vmContext) {
	for {
		v.nextID++
		if _, used := v.contexts[v.nextID]; !used && v.nextID != 0 {
			break
		}
	}
	c.id, c.vm = v.nextID, v
	v.contexts[c.id] = c
}

var errStartRefused = errors.New("the module refused to start")

// start makes the root context of a plugin and runs proxy_on_vm_start and proxy_on_configure in it.
func (v *vm) start(p *plugin) error {
	r := &rootContext{plugin: p, calls: map[uint32]*callout{}}
	r.vmContext.root = r
	v.newContext(&r.vmContext)
	v.roots[p.key] = r
	id := uint64(r.id)
	steps := []struct {
		name    string
		missing uint32
		args    []uint64
	}{
		{"proxy_on_context_create", 1, []uint64{id, 0}},
		{"proxy_on_vm_start", 1, []uint64{id, uint64(len(v.w.host.vmConfig))}},
		{"proxy_on_configure", 1, []uint64{id, uint64(len(p.config))}},
	}
	for i, s := range steps {
		a := v.call(s.name, &r.vmContext, s.missing, s.args...)
		v.runAfter()
		if a.dead {
			return fmt.Errorf("plugin %q: %s trapped", p.name, s.name)
		}
		if i > 0 && a.value == 0 {
			return fmt.Errorf("plugin %q: %s: %w", p.name, s.name, errStartRefused)
		}
	}
	return nil
}

// setTick arms, changes or stops the timer of a root. It is re-armed after each callback.
func (r *rootContext) setTick(period time.Duration) {
	r.period = period
	r.arming++
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	r.arm()
}

func (r *rootContext) arm() {
	if r.period == 0 || r.vm.canary || r.vm.failed || r.finished {
		return
	}
	arming := r.arming
	r.timer = r.vm.w.after(r.period, func() { r.tick(arming) })
}

func (r *rootContext) tick(arming int) {
	if r.vm.failed || r.finished || r.arming != arming {
		return
	}
	r.vm.call("proxy_on_tick", &r.vmContext, 0, uint64(r.id))
	r.vm.runAfter()
	if r.arming == arming {
		r.arm()
	}
}

// drain asks the root to finish: proxy_on_done, and proxy_done later if it said not yet.
func (r *rootContext) drain() {
	r.draining = true
	a := r.vm.call("proxy_on_done", &r.vmContext, 1, uint64(r.id))
	r.vm.runAfter()
	if !a.dead && a.value != 0 {
		r.finish()
	}
}

func (r *rootContext) finish() {
	if r.finished {
		return
	}
	r.finished = true
	if r.timer != nil {
		r.timer.Stop()
	}
	r.vm.call("proxy_on_delete", &r.vmContext, 0, uint64(r.id))
	r.vm.runAfter()
	for _, c := range r.calls {
		c.abandon()
	}
	r.calls = nil
}
