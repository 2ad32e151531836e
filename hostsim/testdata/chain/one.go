package main

import (
	"strconv"
	"strings"

	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm"
	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm/types"
)

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
