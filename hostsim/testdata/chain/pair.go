package main

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm"
	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm/types"
)

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
		proxywasm.ReplaceHttpResponseBody([]byte(finalEvent))
		if w := wires[connectionID()]; w != nil && c.opt["wire"] == "1" {
			w.cut = func() {
				if exchanges[c.id] == c.x && proxywasm.SetEffectiveContext(c.id) == nil {
					closeStream(1)
				}
			}
		}
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
