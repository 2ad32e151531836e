package main

import (
	"bytes"
	"fmt"

	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm"
	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm/types"
)

// wires are the live connections by their id, as "a" sees it too.
var wires = map[string]*roleWire{}

const finalEvent = "data: final\n\n"

// roleWire stands before the connection manager. It ends an answer behind its final event, answers questions
// through "probe", and does what bytes of the client ask for.
type roleWire struct {
	types.DefaultTcpContext
	id       uint32
	key      string
	down, up int
	cut      func() // set by "a": the final event is about to pass; what then closes the stream on HTTP/2
}

func connectionID() string { return string(property("connection", "id")) }

func (c *roleWire) OnNewConnection() types.Action {
	count("wire_new")
	c.key = connectionID()
	wires[c.key] = c
	return types.ActionContinue
}

func (c *roleWire) OnDownstreamData(n int, end bool) types.Action {
	c.down += n
	b, err := proxywasm.GetDownstreamData(0, n)
	must("downstream", err)
	switch {
	case bytes.Contains(b, []byte("wire-panic")):
		panic("asked for")
	case bytes.Contains(b, []byte("wire-pause")):
		return types.ActionPause
	case bytes.Contains(b, []byte("wire-close")):
		must("close", proxywasm.CloseDownstream())
	case bytes.Contains(b, []byte("wire-outside")):
		later(func() {
			must("effective", proxywasm.SetEffectiveContext(c.id))
			proxywasm.GetUpstreamData(0, 10)
		})
	case bytes.Contains(b, []byte("wire-swap")):
		must("swap", proxywasm.ReplaceDownstreamData(bytes.ReplaceAll(b, []byte("wire-swap"), []byte("swap-done"))))
	}
	return types.ActionContinue
}

func (c *roleWire) OnUpstreamData(n int, end bool) types.Action {
	c.up += n
	b, err := proxywasm.GetUpstreamData(0, n)
	must("upstream", err)
	switch {
	case bytes.Contains(b, []byte("pause-upstream")):
		return types.ActionPause
	case bytes.Contains(b, []byte("close-upstream")):
		must("close", proxywasm.CloseUpstream())
	}
	at := bytes.Index(b, []byte(finalEvent))
	if c.cut == nil || at < 0 {
		return types.ActionContinue
	}
	cut := c.cut
	c.cut = nil
	if at >= 9 && b[at-6] == 0 && int(b[at-7]) == len(finalEvent) { // the header of an HTTP/2 DATA frame
		b[at-5] |= 1
		must("end", proxywasm.ReplaceUpstreamData(b))
		later(cut)
		return types.ActionContinue
	}
	must("end", proxywasm.AppendUpstreamData([]byte("0\r\n\r\n")))
	later(func() {
		if wires[c.key] == c && proxywasm.SetEffectiveContext(c.id) == nil {
			must("close", proxywasm.CloseDownstream())
		}
	})
	return types.ActionContinue
}

func (c *roleWire) OnDownstreamClose(peer types.PeerType) {
	count("wire_close")
	count(fmt.Sprintf("wire_close_by_%d", peer))
	delete(wires, c.key)
}

func (c *roleWire) OnStreamDone() { count("wire_done") }

// describe says what a connection's context sees.
func (c *roleWire) describe() string {
	effective := proxywasm.SetEffectiveContext(c.id)
	out := fmt.Sprintf("effective: %v\nname: %s\nroot: %s\nmtls: %x\nbytes: %v\n", effective, property("plugin_name"), property("plugin_root_id"),
		property("connection", "mtls"), c.down > 0 || c.up > 0)
	for _, path := range [][]string{{"request", "path"}, {"response", "code"}, {"xds", "cluster_name"}} {
		_, err := proxywasm.GetProperty(path)
		out += fmt.Sprintf("%s: %v\n", path, err)
	}
	_, err := proxywasm.GetHttpRequestHeaders()
	out += fmt.Sprintf("headers: %v\nset: %v\n", err, proxywasm.SetProperty([]string{"wire"}, []byte("x")))
	b, err := proxywasm.GetHttpRequestBody(0, 10)
	out += fmt.Sprintf("body: %q %v\n", b, err)
	return out
}
