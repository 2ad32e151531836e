// Package shell is the only room that touches the proxy-wasm SDK: it turns callbacks of the host
// into events, gives them to the core, and applies the effects as host calls.
//
// It refuses to know what is decided and why. What it does know are the rules of the host, most of
// them seen on Envoy 1.40:
//   - The host runs resumes, local replies and closes after the callback returns; a second one in
//     the same callback can crash it. So at most one is done at once, and the rest one each in later
//     callbacks, through a shared queue of this plugin (OnQueueReady comes some 20 us later).
//   - A resume must not be asked for inside a callback of the same exchange.
//   - Only the plugin's own callbacks may send calls whose answers must survive the exchange: the SDK
//     files an answer under the context that was active when the call was sent.
//   - A Go panic kills every exchange of the VM, so every entry point recovers.
package shell

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"unicode/utf8"

	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm"
	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/core"
)

// Roles are told apart by root id (in Istio: pluginName).
const (
	roleEmmer  = "emmer"
	roleGate   = "emmer.gate"
	roleCloser = "emmer.closer"
)

// tickMillis is how often the worker is called. Envoy's timers are no finer than some 4 ms.
const tickMillis = 10

// Register makes the module answer to the host.
func Register() { proxywasm.SetVMContext(&machine{}) }

// machine is one VM: what its plugins share.
type machine struct {
	types.DefaultVMContext
	tag       string
	exchanges map[uint32]*exchange // by the first entry's context id
	gates     int                  // live plugins in the gate's role
	wires     map[uint64]*wire     // connections that the closer's role sees, by their id
	counters  counters
}

func (m *machine) OnVMStart(int) types.OnVMStartStatus { return types.OnVMStartStatusOK }

func (m *machine) NewPluginContext(id uint32) types.PluginContext {
	if m.exchanges == nil {
		m.tag = randomTag()
		m.exchanges = map[uint32]*exchange{}
		m.wires = map[uint64]*wire{}
	}
	return &plugin{vm: m, id: id}
}

// randomTag is 64 random bits in base 36.
func randomTag() string { return strconv.FormatUint(rand.Uint64(), 36) }

// plugin is one root context: a role with its configuration.
type plugin struct {
	types.DefaultPluginContext
	vm     *machine
	id     uint32
	role   string
	config *config.Compiled
	worker *core.Worker
	queue  uint32
	soon   []func()
	idle   bool // asked to end, and nothing was left to send
	ending bool // asked to end, and the host waits for PluginDone
}

func (p *plugin) OnPluginStart(int) (status types.OnPluginStartStatus) {
	defer func() {
		if e := recover(); e != nil {
			proxywasm.LogCritical("emmer: fault while starting: " + describe(e))
			status = types.OnPluginStartStatusFailed
		}
	}()
	role, _ := proxywasm.GetProperty([]string{"plugin_root_id"})
	p.role = string(role)
	if p.role != roleEmmer && p.role != roleGate && p.role != roleCloser {
		proxywasm.LogCritical("emmer: root id " + strconv.Quote(p.role) + " is unknown: set root_id (Istio: pluginName) to " + roleEmmer + ", " + roleGate + " or " + roleCloser)
		return types.OnPluginStartStatusFailed
	}
	raw, err := proxywasm.GetPluginConfiguration()
	if err != nil && err != types.ErrorStatusNotFound {
		proxywasm.LogCritical("emmer: reading the configuration: " + err.Error())
		return types.OnPluginStartStatusFailed
	}
	c, err := config.Parse(raw, os.LookupEnv)
	if err != nil {
		proxywasm.LogCritical("emmer: the configuration is wrong, nothing is let through:\n" + err.Error())
		return types.OnPluginStartStatusFailed
	}
	p.config = c
	if p.role == roleGate {
		p.vm.gates++
		return types.OnPluginStartStatusOK
	}
	tag := randomTag()
	if p.role == roleEmmer {
		p.worker = core.NewWorker(c, tag)
	}
	if p.queue, err = proxywasm.RegisterSharedQueue("emmer." + tag); err != nil {
		proxywasm.LogCritical("emmer: registering a queue: " + err.Error())
		return types.OnPluginStartStatusFailed
	}
	if p.role == roleCloser {
		return types.OnPluginStartStatusOK
	}
	if err := proxywasm.SetTickPeriodMilliSeconds(tickMillis); err != nil {
		proxywasm.LogCritical("emmer: asking for ticks: " + err.Error())
		return types.OnPluginStartStatusFailed
	}
	return types.OnPluginStartStatusOK
}

// NewTcpContext makes what sees a connection's bytes, where the module stands among network filters.
func (p *plugin) NewTcpContext(id uint32) types.TcpContext { return &wire{plugin: p, id: id} }

func (p *plugin) NewHttpContext(id uint32) types.HttpContext {
	switch p.role {
	case roleGate:
		return &gate{plugin: p, id: id}
	case roleCloser:
		return nil // the SDK then asks for a connection's context
	}
	x := &exchange{plugin: p, id: id, stream: p.worker.NewStream(uint64(id))}
	p.vm.exchanges[id] = x
	return x
}

func (p *plugin) OnTick() {
	defer p.guard("tick")
	if p.worker == nil {
		return
	}
	if len(p.soon) > 0 {
		p.ring() // should a ring have been lost, nothing that waits for one waits for ever
	}
	e := core.Event{Kind: core.Tick, Now: now()}
	if p.worker.WantsShared(e.Now) {
		e.OK = true
		if data, version, err := proxywasm.GetSharedData(p.worker.SharedName()); err == nil {
			e.Shared, e.Version = data, version
		}
	}
	p.step(e)
}

// later runs f in a callback of its own, one job each.
func (p *plugin) later(f func()) {
	p.soon = append(p.soon, f)
	if len(p.soon) == 1 {
		p.ring()
	}
}

func (p *plugin) ring() {
	if err := proxywasm.EnqueueSharedQueue(p.queue, []byte{1}); err != nil {
		p.vm.counters.add("emmer.host_refused", 1)
		proxywasm.LogError("emmer: enqueue: " + err.Error())
	}
}

func (p *plugin) OnQueueReady(uint32) {
	defer p.guard("queue")
	// The queue may have been read already; what matters is the list here.
	_, _ = proxywasm.DequeueSharedQueue(p.queue)
	if len(p.soon) == 0 {
		return
	}
	f := p.soon[0]
	p.soon[0] = nil
	p.soon = p.soon[1:]
	if len(p.soon) > 0 {
		p.ring()
	}
	f()
}

func (p *plugin) OnPluginDone() bool {
	defer p.guard("done")
	if p.role == roleGate {
		p.vm.gates--
		return true
	}
	if p.worker == nil {
		return true
	}
	p.step(core.Event{Kind: core.Shutdown, Now: now()})
	p.ending = !p.idle
	return p.idle
}

// step gives an event to the worker and applies what it asks for. Events that make it send calls
// (Tick, Flush, answers, Shutdown) must come in a callback of the plugin itself.
func (p *plugin) step(e core.Event) {
	fx := p.worker.Step(e)
	for i := range fx {
		switch f := &fx[i]; f.Kind {
		case core.Call:
			p.send(f.Call)
		case core.Wake:
			p.later(func() { p.step(core.Event{Kind: core.Flush, Now: now()}) })
		case core.Release:
			if x := p.vm.exchanges[uint32(f.N)]; x != nil {
				x.released(*f.Event)
			}
		case core.ShareIf:
			err := proxywasm.SetSharedData(f.Name, f.Body, f.Version)
			p.step(core.Event{Kind: core.SharedStored, Now: now(), OK: err == nil})
		case core.Share:
			if err := proxywasm.SetSharedData(f.Name, f.Body, 0); err != nil {
				p.vm.counters.add("emmer.host_refused", 1)
			}
		case core.Count:
			p.vm.counters.add(f.Name, f.N)
		case core.Log:
			proxywasm.LogWarn("emmer: " + f.Value)
		case core.Drained:
			if p.ending {
				p.ending = false
				proxywasm.PluginDone()
			}
			p.idle = true
		}
	}
	p.worker.Recycle(fx)
}

// send sends a call of the worker. Its answer comes back to the plugin, whatever became of the
// exchange that it is about.
func (p *plugin) send(c *core.StoreCall) {
	tag := c.Tag
	_, err := proxywasm.DispatchHttpCall(c.Cluster, c.Request.Headers, c.Request.Body, nil, uint32(c.Timeout), func(headers, size, _ int) {
		defer p.guard("answer")
		status, body := readReply(headers, size)
		p.step(core.Event{Kind: core.StoreReply, Now: now(), Tag: tag, Status: status, Body: body})
	})
	if err != nil {
		p.step(core.Event{Kind: core.StoreUnsent, Now: now(), Tag: tag})
	}
}

// guard keeps a fault from killing the VM with every exchange in it. The worker's state stays; what
// its faulty step asked for is lost, and the worker looks for it later.
func (p *plugin) guard(where string) {
	if e := recover(); e != nil {
		p.vm.counters.add("emmer.recovered", 1)
		proxywasm.LogCritical("emmer: fault in " + where + ": " + describe(e))
		if p.worker != nil {
			p.worker.Step(core.Event{Kind: core.Recovered, Now: now()}) // which asks for nothing
		}
	}
}

// describe says what a recovered fault was.
func describe(e any) string {
	switch v := e.(type) {
	case error:
		return v.Error()
	case string:
		return v
	}
	return "unknown"
}

// claim reads a property as text. Envoy gives numbers of dynamic metadata as 8 bytes of a float64.
func claim(path []string) (string, bool) {
	b, err := proxywasm.GetProperty(path)
	if err != nil || len(b) == 0 {
		return "", false
	}
	if len(b) == 8 && !plain(b) {
		f := math.Float64frombits(binary.LittleEndian.Uint64(b))
		if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return strconv.FormatInt(int64(f), 10), true
		}
		if !text(b) { // a name of eight bytes such as Zürich7 is one
			return fraction(f)
		}
	}
	return string(b), true
}

// fraction writes a number in the shortest way that is read as the same.
func fraction(f float64) (string, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "", false
	}
	return strconv.FormatFloat(f, 'f', -1, 64), true
}

func plain(b []byte) bool { return text(b) && utf8.RuneCount(b) == len(b) }

func text(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c == 0x7f {
			return false
		}
	}
	return utf8.Valid(b)
}
