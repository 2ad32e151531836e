// Command floor is the least that a filter of this architecture can do, the yardstick of the
// benchmark: it holds the request headers, copies the body into its own memory, makes one callout
// to emmer-bridge that runs a script of no work, and lets the request go.
//
// It holds in one of two ways. "pair": the module stands twice in the chain, as root id "emmer"
// and behind it as "emmer.gate"; the first reads the body, the second holds the headers. "flag":
// it stands once, with allow_on_headers_stop_iteration. The configuration is three words: the mode,
// the bridge's cluster, and the bridge's token.
package main

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm"
	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm/types"
)

func main() {}

func init() { proxywasm.SetVMContext(&vm{}) }

type vm struct{ types.DefaultVMContext }

func (*vm) NewPluginContext(uint32) types.PluginContext { return &root{} }

// held is a request between its two entries: the first one's context id leads to it.
type held struct {
	gate    uint32 // context id of the gate, once it has the headers
	decided bool
}

var requests = map[uint32]*held{}

// pairKey is filter state: a client can't set it, and upstream never sees it.
var pairKey = []string{"floor_pair"}

var (
	script = []byte(`["EVAL","return 1","0"]`)
	answer = []byte(`{"result":1}`)
)

const calloutTimeout = 1000 // ms

type root struct {
	types.DefaultPluginContext
	mode, cluster string
	headers       [][2]string
}

func (r *root) OnPluginStart(int) types.OnPluginStartStatus {
	text, err := proxywasm.GetPluginConfiguration()
	words := strings.Fields(string(text))
	if err != nil || len(words) != 3 {
		proxywasm.LogErrorf("floor: want MODE CLUSTER TOKEN, got %q (%v)", text, err)
		return types.OnPluginStartStatusFailed
	}
	r.mode, r.cluster = words[0], words[1]
	r.headers = [][2]string{
		{":method", "POST"}, {":path", "/"}, {":authority", r.cluster},
		{"content-type", "application/json"}, {"authorization", "Bearer " + words[2]},
	}
	return types.OnPluginStartStatusOK
}

func (r *root) NewHttpContext(id uint32) types.HttpContext {
	name, err := proxywasm.GetProperty([]string{"plugin_root_id"})
	if err == nil && string(name) == "emmer.gate" {
		return &gate{id: id}
	}
	return &entry{id: id, root: r}
}

// entry reads the body and asks the bridge.
type entry struct {
	types.DefaultHttpContext
	id   uint32
	root *root
	held *held
	body []byte
}

func (e *entry) OnHttpRequestHeaders(_ int, endOfStream bool) types.Action {
	if endOfStream {
		return types.ActionContinue
	}
	e.held = &held{}
	if e.root.mode == "flag" {
		return types.ActionPause
	}
	requests[e.id] = e.held
	if err := proxywasm.SetProperty(pairKey, []byte(strconv.Itoa(int(e.id)))); err != nil {
		return e.refuse("floor: no key")
	}
	if err := proxywasm.RemoveHttpRequestHeader("content-length"); err != nil {
		return e.refuse("floor: content-length")
	}
	return types.ActionContinue
}

func (e *entry) OnHttpRequestBody(size int, endOfStream bool) types.Action {
	if e.held == nil || e.held.decided {
		return types.ActionContinue
	}
	if !endOfStream {
		return types.ActionPause
	}
	body, err := proxywasm.GetHttpRequestBody(0, size)
	if err != nil && size > 0 {
		return e.refuse("floor: no body")
	}
	e.body = body
	if _, err := proxywasm.DispatchHttpCall(e.root.cluster, e.root.headers, script, nil, calloutTimeout, e.answered); err != nil {
		return e.refuse("floor: no callout")
	}
	if e.root.mode == "flag" {
		return types.ActionPause
	}
	return types.ActionContinue // the gate holds headers and body
}

func (e *entry) answered(_, size, _ int) {
	e.held.decided = true
	reply, err := proxywasm.GetHttpCallResponseBody(0, size)
	if err != nil || !bytes.Equal(bytes.TrimSpace(reply), answer) {
		e.refuse("floor: the bridge said " + string(reply))
		return
	}
	if e.root.mode == "flag" {
		resume()
		return
	}
	if e.held.gate != 0 {
		if err := proxywasm.SetEffectiveContext(e.held.gate); err == nil {
			resume()
		}
	}
}

func resume() {
	if err := proxywasm.ResumeHttpRequest(); err != nil {
		proxywasm.LogErrorf("floor: resume: %v", err)
	}
}

func (e *entry) refuse(why string) types.Action {
	e.held.decided = true
	if err := proxywasm.SendHttpResponse(503, nil, []byte(why), -1); err != nil {
		proxywasm.LogErrorf("floor: refuse: %v", err)
	}
	return types.ActionPause
}

func (e *entry) OnHttpStreamDone() { delete(requests, e.id) }

// gate holds the headers until its entry has decided.
type gate struct {
	types.DefaultHttpContext
	id   uint32
	held *held
}

func (g *gate) OnHttpRequestHeaders(_ int, endOfStream bool) types.Action {
	if endOfStream {
		return types.ActionContinue
	}
	key, err := proxywasm.GetProperty(pairKey)
	if err == nil {
		if id, err := strconv.Atoi(string(key)); err == nil {
			g.held = requests[uint32(id)]
		}
	}
	if g.held == nil {
		if err := proxywasm.SendHttpResponse(503, nil, []byte("floor: gate without its entry"), -1); err != nil {
			proxywasm.LogErrorf("floor: refuse: %v", err)
		}
		return types.ActionPause
	}
	if g.held.decided {
		return types.ActionContinue
	}
	g.held.gate = g.id
	return types.ActionPause
}

func (g *gate) OnHttpStreamDone() {
	if g.held != nil {
		g.held.gate = 0
	}
}
