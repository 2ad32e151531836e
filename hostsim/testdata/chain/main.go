// Module for the tests of hostsim. Roles by root id: "a" reads the body and decides, "b" stands behind it and holds
// the headers, "one" stands alone, "wire" stands before the connection manager, "probe" answers questions about the host. What to do is in the request header
// x-m, "k=v;k=v"; wrong ways are in here on purpose.
package main

import (
	"math/rand"
	"os"
	"strconv"
	"strings"

	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm"
	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm/types"
)

//go:wasmimport env proxy_close_stream
func closeStream(kind uint32) uint32

func main() {}

func init() { proxywasm.SetVMContext(&vm{}) }

type vm struct{ types.DefaultVMContext }

func (*vm) NewPluginContext(id uint32) types.PluginContext { return &plugin{id: id} }

type exchange struct {
	a, b     uint32
	opt      map[string]string
	decided  bool
	refused  bool
	held     bool // b holds the headers
	wantResp bool // b asks a to hold the response headers
	aResp    bool
}

var (
	tag       = strconv.FormatUint(uint64(rand.Uint32()), 16)
	exchanges = map[uint32]*exchange{}
	soon      []func()
	onTick    []func()
	queue     uint32
	counters  = map[string]proxywasm.MetricCounter{}
)

func count(name string) {
	c, ok := counters[name]
	if !ok {
		c = proxywasm.DefineCounterMetric("chain." + name)
		counters[name] = c
	}
	c.Increment(1)
}

func options(s string) map[string]string {
	m := map[string]string{}
	for _, kv := range strings.Split(s, ";") {
		k, v, _ := strings.Cut(kv, "=")
		m[k] = v
	}
	return m
}

func num(s string) int { n, _ := strconv.Atoi(s); return n }

func property(path ...string) []byte { b, _ := proxywasm.GetProperty(path); return b }

type plugin struct {
	types.DefaultPluginContext
	id   uint32
	root string
	conf map[string]string
}

func (p *plugin) OnPluginStart(int) types.OnPluginStartStatus {
	b, _ := proxywasm.GetPluginConfiguration()
	p.conf = options(string(b))
	p.root = string(property("plugin_root_id"))
	if p.conf["refuse"] == "1" {
		return types.OnPluginStartStatusFailed
	}
	if queue == 0 {
		queue, _ = proxywasm.RegisterSharedQueue("soon-" + tag)
	}
	if t := num(p.conf["tick"]); t > 0 {
		proxywasm.SetTickPeriodMilliSeconds(uint32(t))
	}
	count("start_" + p.root)
	proxywasm.LogInfof("start %s id=%d env=%s", p.root, p.id, os.Getenv("GREETING"))
	return types.OnPluginStartStatusOK
}

func (p *plugin) OnPluginDone() bool {
	count("plugin_done")
	if p.conf["linger"] == "1" {
		onTick = append(onTick, func() { proxywasm.PluginDone() })
		return false
	}
	return true
}

func (p *plugin) OnTick() {
	count("tick")
	jobs := onTick
	onTick = nil
	for _, j := range jobs {
		j()
	}
}

func later(f func()) {
	soon = append(soon, f)
	proxywasm.EnqueueSharedQueue(queue, []byte{1})
}

func (p *plugin) OnQueueReady(q uint32) {
	proxywasm.DequeueSharedQueue(q)
	if len(soon) == 0 {
		return
	}
	j := soon[0]
	soon = soon[1:]
	j()
}

func (p *plugin) NewTcpContext(id uint32) types.TcpContext { return &roleWire{id: id} }

func (p *plugin) NewHttpContext(id uint32) types.HttpContext {
	switch p.root {
	case "wire":
		return nil
	case "a":
		return &roleA{id: id, p: p}
	case "b":
		return &roleB{id: id, p: p}
	case "one":
		return &roleOne{id: id, p: p}
	}
	return &probe{id: id, p: p}
}

func ask(opt map[string]string, f func()) error {
	_, err := proxywasm.DispatchHttpCall("bridge", [][2]string{{":method", "POST"}, {":path", "/ask?ms=" + opt["ms"]}, {":authority", "bridge"}},
		[]byte("[]"), nil, 5000, func(int, int, int) { f() })
	return err
}

func must(what string, err error) {
	if err != nil {
		proxywasm.LogErrorf("%s: %v", what, err)
	}
}
