// Module for the tests of hostsim. Roles by root id: "a" reads the body and decides, "b" stands behind it and holds
// the headers, "one" stands alone, "probe" answers questions about the host. What to do is in the request header
// x-m, "k=v;k=v"; wrong ways are in here on purpose.
package main

import (
	"encoding/binary"
	"fmt"
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

func (p *plugin) NewHttpContext(id uint32) types.HttpContext {
	switch p.root {
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

// ---- a
type roleA struct {
	types.DefaultHttpContext
	id     uint32
	p      *plugin
	x      *exchange
	opt    map[string]string
	body   []byte
	kept   []byte
	asked  bool
	paused bool
	chunks int
	out    int
}

func (c *roleA) OnHttpRequestHeaders(n int, end bool) types.Action {
	s, _ := proxywasm.GetHttpRequestHeader("x-m")
	c.opt = options(s)
	c.x = &exchange{a: c.id, opt: c.opt}
	exchanges[c.id] = c.x
	count("a_new")
	if c.opt["pan"] == "ah" {
		panic("asked for")
	}
	must("key", proxywasm.SetProperty([]string{"chain_pair"}, []byte(tag+"."+strconv.Itoa(int(c.id)))))
	switch {
	case c.opt["m"] == "pass":
		c.x.decided = true
		return types.ActionContinue
	case c.opt["m"] == "refuse":
		c.refuse("early")
		return types.ActionContinue // overridden by the host
	case end:
		c.paused = true
		c.decide()
		return types.ActionPause
	}
	if c.opt["keepcl"] == "" {
		proxywasm.RemoveHttpRequestHeader("content-length")
	}
	return types.ActionContinue
}

func (c *roleA) OnHttpRequestBody(n int, end bool) types.Action {
	c.chunks++
	if c.opt["pan"] == "ab" {
		panic("asked for")
	}
	if c.x.decided {
		return types.ActionContinue
	}
	if c.opt["m"] == "swallow" {
		b, _ := proxywasm.GetHttpRequestBody(0, n)
		c.kept = append(c.kept, b...)
		if !end {
			proxywasm.ReplaceHttpRequestBody(nil)
			return types.Action(3)
		}
		proxywasm.ReplaceHttpRequestBody(c.kept)
		c.decide()
		return types.ActionContinue
	}
	c.paused = true
	if !end || c.asked {
		return types.ActionPause
	}
	return c.whole(n)
}

// whole: the body is complete.
func (c *roleA) whole(n int) types.Action {
	b, _ := proxywasm.GetHttpRequestBody(0, n)
	if g := num(c.opt["grow"]); g > 0 {
		c.body = append(append([]byte{}, b...), strings.Repeat("x", g)...)
	}
	if g := num(c.opt["shrink"]); g > 0 {
		c.body = append([]byte{}, b[:len(b)-g]...)
	}
	c.decide()
	if c.opt["now"] == "direct" {
		return types.ActionContinue
	}
	if c.body == nil && c.opt["keep"] == "" && !c.x.refused {
		c.paused = false // b holds it
		return types.ActionContinue
	}
	return types.ActionPause
}

func (c *roleA) OnHttpRequestTrailers(int) types.Action {
	if c.x.decided {
		return types.ActionContinue
	}
	if c.opt["m"] == "swallow" {
		_, err := proxywasm.GetHttpRequestBody(0, 10)
		must("stale body", err)
		must("stale write", proxywasm.ReplaceHttpRequestBody([]byte("corrupt")))
		c.refuse("trailers")
		return types.ActionPause
	}
	c.paused = true
	return c.whole(1 << 30)
}

func (c *roleA) decide() {
	c.asked = true
	act := func() {
		if exchanges[c.id] != c.x {
			return
		}
		proxywasm.SetEffectiveContext(c.id)
		if c.opt["deny"] != "" {
			c.refuse("quota")
			return
		}
		c.grant()
	}
	switch c.opt["now"] {
	case "queue":
		later(act)
	case "direct":
		c.paused = false
		c.grant()
	default:
		must("dispatch", ask(c.opt, func() {
			count("callback")
			if c.opt["pan"] == "acb" {
				panic("asked for")
			}
			act()
		}))
	}
}

func (c *roleA) refuse(why string) {
	c.x.decided, c.x.refused = true, true
	if c.opt["by"] == "b" && c.x.b != 0 {
		proxywasm.SetEffectiveContext(c.x.b)
	}
	must("refuse", proxywasm.SendHttpResponse(429, [][2]string{{"x-why", why}}, []byte(why+"\n"), -1))
}

func (c *roleA) grant() {
	x := c.x
	x.decided = true
	if c.body != nil {
		must("replace", proxywasm.ReplaceHttpRequestBody(c.body))
	}
	if c.opt["lateedit"] != "" {
		if err := proxywasm.ReplaceHttpRequestHeader("x-late", "1"); err != nil {
			proxywasm.SetProperty([]string{"late"}, []byte(err.Error()))
		}
	}
	releaseB := func() {
		if x.b == 0 || !x.held {
			return
		}
		x.held = false
		proxywasm.SetEffectiveContext(x.b)
		must("resume b", proxywasm.ResumeHttpRequest())
	}
	if x.held {
		proxywasm.SetEffectiveContext(x.b)
		must("edit", proxywasm.ReplaceHttpRequestHeader("x-granted", "yes"))
		if to := c.opt["to"]; to != "" {
			must("route", proxywasm.ReplaceHttpRequestHeader("x-target", to))
		}
		proxywasm.SetEffectiveContext(c.id)
	}
	switch {
	case c.opt["order"] == "ba":
		releaseB()
		proxywasm.SetEffectiveContext(c.id)
		if c.paused {
			proxywasm.ResumeHttpRequest()
		}
	case c.paused:
		proxywasm.ResumeHttpRequest()
		if x.held {
			later(releaseB)
		}
	case x.held:
		releaseB()
	}
	c.paused = false
}

func (c *roleA) OnHttpResponseHeaders(n int, end bool) types.Action {
	count("a_response")
	if c.opt["pan"] == "arh" {
		panic("asked for")
	}
	if c.x.wantResp && !end {
		c.x.aResp = true
		return types.ActionPause
	}
	return types.ActionContinue
}

func (c *roleA) OnHttpResponseBody(n int, end bool) types.Action {
	if c.opt["pan"] == "arb" {
		panic("asked for")
	}
	if c.opt["hold"] == "resp" { // above the limit: 500
		return types.ActionPause
	}
	k := num(c.opt["cut"])
	if k == 0 || n == 0 {
		return types.ActionContinue
	}
	c.out++
	switch {
	case c.out == k:
		proxywasm.ReplaceHttpResponseBody([]byte("data: final\n\n"))
		if kind := c.opt["close"]; kind != "" {
			if c.opt["when"] == "now" {
				closeStream(uint32(num(kind)))
			} else {
				later(func() {
					if exchanges[c.id] == c.x && proxywasm.SetEffectiveContext(c.id) == nil {
						closeStream(uint32(num(kind)))
					}
				})
			}
		}
	case c.out > k:
		proxywasm.ReplaceHttpResponseBody(nil)
	}
	return types.ActionContinue
}

func (c *roleA) OnHttpStreamDone() {
	count("a_done")
	code := property("response", "code")
	if len(code) == 8 {
		code = []byte(strconv.Itoa(int(binary.LittleEndian.Uint64(code))))
	}
	flags := uint64(0)
	if b := property("response", "flags"); len(b) == 8 {
		flags = binary.LittleEndian.Uint64(b)
	}
	proxywasm.LogInfof("done a code=%s flags=%d details=%s", code, flags, property("response", "code_details"))
	must("log state", proxywasm.SetProperty([]string{"chain"}, []byte(fmt.Sprintf("chunks=%d flags=%d", c.chunks, flags))))
	delete(exchanges, c.id)
	if c.opt["late"] == "call" {
		must("call from done", ask(c.opt, func() { count("impossible") }))
	}
}

// ---- b
type roleB struct {
	types.DefaultHttpContext
	id   uint32
	p    *plugin
	x    *exchange
	body int
	done bool
}

func (c *roleB) OnHttpRequestHeaders(int, bool) types.Action {
	t, id, _ := strings.Cut(string(property("chain_pair")), ".")
	if t == tag {
		c.x = exchanges[uint32(num(id))]
	}
	if c.x == nil {
		count("orphan")
		proxywasm.SendHttpResponse(503, nil, []byte("no partner\n"), -1)
		return types.ActionPause
	}
	count("b_new")
	c.x.b = c.id
	if c.x.decided {
		return types.ActionContinue
	}
	c.x.held = true
	return types.ActionPause
}

func (c *roleB) OnHttpResponseHeaders(n int, end bool) types.Action {
	count("b_response")
	if c.x != nil && c.x.opt["resp"] != "" && !end {
		c.x.wantResp = true
	}
	return types.ActionContinue
}

func (c *roleB) OnHttpResponseBody(n int, end bool) types.Action {
	if c.x == nil || !c.x.wantResp {
		return types.ActionContinue
	}
	c.body += n
	if end {
		c.ended()
	}
	return types.ActionContinue
}

func (c *roleB) OnHttpResponseTrailers(int) types.Action {
	if c.x != nil && c.x.wantResp && !c.done {
		c.ended()
	}
	return types.ActionContinue
}

func (c *roleB) ended() {
	c.done = true
	x := c.x
	release := func() {
		if exchanges[x.a] != x || !x.aResp {
			return
		}
		x.aResp = false
		proxywasm.SetEffectiveContext(x.a)
		must("cost", proxywasm.AddHttpResponseHeader("x-cost", strconv.Itoa(c.body)))
		must("resume response", proxywasm.ResumeHttpResponse())
	}
	if x.opt["resp"] == "now" {
		release()
		return
	}
	later(release)
}

func (c *roleB) OnHttpStreamDone() {
	count("b_done")
	if c.x != nil {
		if exchanges[c.x.a] == c.x {
			count("b_before_a")
		}
		c.x.b, c.x.held = 0, false
	}
}

// ---- one
type roleOne struct {
	types.DefaultHttpContext
	id    uint32
	p     *plugin
	opt   map[string]string
	calls []string
}

func (c *roleOne) OnHttpRequestHeaders(n int, end bool) types.Action {
	s, _ := proxywasm.GetHttpRequestHeader("x-m")
	c.opt = options(s)
	if c.opt["nocl"] != "" {
		proxywasm.RemoveHttpRequestHeader("content-length")
	}
	if c.opt["wait"] == "headers" {
		must("dispatch", ask(c.opt, func() {
			proxywasm.ReplaceHttpRequestHeader("x-granted", "yes")
			proxywasm.ResumeHttpRequest()
		}))
		return types.ActionPause
	}
	if v := c.opt["head"]; v != "" {
		return types.Action(num(v))
	}
	return types.ActionContinue
}

func (c *roleOne) OnHttpRequestBody(n int, end bool) types.Action {
	e := ""
	if end {
		e = "!"
	}
	c.calls = append(c.calls, strconv.Itoa(n)+e)
	switch c.opt["body"] {
	case "":
		return types.ActionContinue
	case "granted": // under the flag: the headers are still held
		if end {
			must("edit", proxywasm.ReplaceHttpRequestHeader("x-granted", "yes"))
			return types.ActionContinue
		}
		return types.ActionPause
	case "deny":
		if end {
			must("dispatch", ask(c.opt, func() { proxywasm.SendHttpResponse(429, nil, []byte("no\n"), -1) }))
		}
		return types.ActionPause
	case "midresume": // resumes in the middle of a body it buffers
		if len(c.calls) == 1 {
			later(func() {
				proxywasm.SetEffectiveContext(c.id)
				proxywasm.ResumeHttpRequest()
			})
			return types.ActionPause
		}
		return types.ActionContinue
	case "edit":
		if !end {
			return types.ActionPause
		}
		must("prepend", proxywasm.PrependHttpRequestBody([]byte("<")))
		must("append", proxywasm.AppendHttpRequestBody([]byte(">")))
		return types.ActionContinue
	}
	if end {
		return types.ActionContinue
	}
	return types.Action(num(c.opt["body"]))
}

func (c *roleOne) OnHttpRequestTrailers(n int) types.Action {
	c.calls = append(c.calls, "T")
	return types.ActionContinue
}

func (c *roleOne) OnHttpStreamDone() {
	must("state", proxywasm.SetProperty([]string{"calls"}, []byte(strings.Join(c.calls, " "))))
	count("one_done")
}

// ---- probe
type probe struct {
	types.DefaultHttpContext
	id    uint32
	p     *plugin
	lines []string
	end   bool
}

func (c *probe) say(f string, a ...any) { c.lines = append(c.lines, fmt.Sprintf(f, a...)) }

func (c *probe) answer() {
	must("answer", proxywasm.SendHttpResponse(200, [][2]string{{"content-type", "text/x-probe"}}, []byte(strings.Join(c.lines, "\n")), -1))
}

func (c *probe) OnHttpRequestHeaders(n int, end bool) types.Action {
	what, _ := proxywasm.GetHttpRequestHeader("x-probe")
	switch what {
	case "headers":
		v, err := proxywasm.GetHttpRequestHeader("X-Twice")
		c.say("first=%s err=%v", v, err)
		all, _ := proxywasm.GetHttpRequestHeaders()
		for _, h := range all {
			c.say("%s=%s", h[0], h[1])
		}
		proxywasm.ReplaceHttpRequestHeader("x-twice", "new")
		proxywasm.AddHttpRequestHeader("x-twice", "more")
		proxywasm.RemoveHttpRequestHeader("x-probe")
		all, _ = proxywasm.GetHttpRequestHeaders()
		c.say("--")
		for _, h := range all {
			c.say("%s=%s", h[0], h[1])
		}
		_, err = proxywasm.GetHttpRequestHeader("absent")
		c.say("absent=%v", err)
		_, err = proxywasm.GetHttpResponseHeaders()
		c.say("response=%v", err)
	case "properties":
		for _, path := range strings.Split(c.list("x-paths"), ",") {
			b, err := proxywasm.GetProperty(strings.Split(path, "."))
			if err != nil {
				c.say("%s: %v", path, err)
				continue
			}
			c.say("%s: %q", path, b)
		}
		c.say("set: %v", proxywasm.SetProperty([]string{"mine"}, []byte("yes")))
		c.say("mine: %s %s", property("mine"), property("filter_state", "wasm.mine"))
	case "claims":
		for _, path := range strings.Split(c.list("x-claims"), ",") {
			b, err := proxywasm.GetProperty(append([]string{"metadata", "filter_metadata", "envoy.filters.http.jwt_authn", "jwt_payload"}, strings.Split(path, ".")...))
			if err != nil {
				c.say("%s: %v", path, err)
				continue
			}
			c.say("%s: %q", path, b)
		}
	case "shared":
		c.shared()
	case "metrics":
		g := proxywasm.DefineGaugeMetric("chain.gauge")
		g.Add(5)
		g.Add(-7)
		h := proxywasm.DefineHistogramMetric("chain.histogram")
		h.Record(12)
		h.Record(30)
		func() {
			defer func() { c.say("zero: %v", recover()) }()
			count("zero")
			counters["zero"].Increment(0)
		}()
		func() {
			defer func() { c.say("histogram: %v", recover() != nil) }()
			h.Value()
		}()
		c.say("gauge=%d", g.Value())
	case "call":
		return c.call()
	case "twice": // two deferred actions in one callback
		proxywasm.SendHttpResponse(200, nil, []byte("first"), -1)
		proxywasm.SendHttpResponse(201, nil, []byte("second"), -1)
		return types.ActionPause
	case "foreign":
		_, err := proxywasm.CallForeignFunction("nothing", nil)
		c.say("foreign: %v", err)
	case "exit":
		os.Exit(3)
		c.say("still here")
	case "effective":
		c.say("dead: %v", proxywasm.SetEffectiveContext(4711))
		c.say("self: %v", proxywasm.SetEffectiveContext(c.id))
	case "grow":
		big = append(big, make([]byte, num(c.list("x-size"))))
		c.say("grown")
	default:
		return types.ActionContinue
	}
	c.answer()
	return types.ActionPause
}

var big [][]byte

func (c *probe) list(name string) string { v, _ := proxywasm.GetHttpRequestHeader(name); return v }

func (c *probe) shared() {
	_, _, err := proxywasm.GetSharedData("key")
	c.say("missing: %v", err)
	c.say("any cas on a missing key: %v", proxywasm.SetSharedData("key", []byte("1"), 77))
	_, cas, _ := proxywasm.GetSharedData("key")
	c.say("wrong cas: %v", proxywasm.SetSharedData("key", []byte("2"), cas+1))
	c.say("right cas: %v", proxywasm.SetSharedData("key", []byte("3"), cas))
	c.say("stale cas: %v", proxywasm.SetSharedData("key", []byte("4"), cas))
	c.say("zero overwrites: %v", proxywasm.SetSharedData("key", []byte("5"), 0))
	v, _, _ := proxywasm.GetSharedData("key")
	c.say("value: %s", v)
	q, err := proxywasm.RegisterSharedQueue("jobs-" + tag)
	c.say("register: %v", err)
	_, err = proxywasm.DequeueSharedQueue(q)
	c.say("empty: %v", err)
	_, err = proxywasm.DequeueSharedQueue(9999)
	c.say("unknown: %v", err)
	r, err := proxywasm.ResolveSharedQueue(string(property("plugin_vm_id")), "jobs-"+tag)
	c.say("resolve: %v %v", r == q, err)
	_, err = proxywasm.ResolveSharedQueue("other", "jobs-"+tag)
	c.say("other vm: %v", err)
}

// call makes one callout and answers with what came of it.
func (c *probe) call() types.Action {
	headers := [][2]string{{":method", "POST"}, {":path", "/ask?" + c.list("x-query")}, {":authority", "bridge"}}
	if c.list("x-bare") != "" {
		headers = headers[:2]
	}
	timeout := num(c.list("x-timeout"))
	if timeout == 0 {
		timeout = 5000
	}
	_, err := proxywasm.DispatchHttpCall(c.list("x-cluster"), headers, []byte("body"), nil, uint32(timeout), func(n, size, trailers int) {
		status := ""
		hs, err := proxywasm.GetHttpCallResponseHeaders()
		for _, h := range hs {
			if h[0] == ":status" {
				status = h[1]
			}
		}
		b, err2 := proxywasm.GetHttpCallResponseBody(0, 1000)
		c.say("headers=%v status=%s body=%s err=%v err2=%v", n > 0, status, b, err, err2)
		_, err = proxywasm.GetHttpRequestHeader(":path")
		c.say("request in reach: %v", err == nil)
		c.answer()
	})
	if err != nil {
		c.say("dispatch: %v", err)
		c.answer()
	}
	return types.ActionPause
}

func (c *probe) OnHttpResponseHeaders(int, bool) types.Action {
	status, _ := proxywasm.GetHttpResponseHeader(":status")
	proxywasm.AddHttpResponseHeader("x-seen", status)
	return types.ActionContinue
}

func (c *probe) OnHttpStreamDone() { count("probe_done") }
