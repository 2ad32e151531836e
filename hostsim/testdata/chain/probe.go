package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm"
	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm/types"
)

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
	case "wire":
		w := wires[connectionID()]
		c.say("same: %v", w != nil)
		if w != nil {
			c.say("%s", w.describe())
			proxywasm.SetEffectiveContext(c.id)
		}
	case "say":
		c.say("%s", c.list("x-say"))
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
