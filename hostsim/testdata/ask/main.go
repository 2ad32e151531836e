// Command ask is a filter for the tests of emmer-sim: it chooses a target by the header x-want, and
// answers /ask itself with what its store said to PING.
package main

import (
	"os"
	"strings"

	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm"
	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm/types"
)

func main() {}

func init() { proxywasm.SetVMContext(&vm{}) }

type vm struct{ types.DefaultVMContext }

func (*vm) NewPluginContext(uint32) types.PluginContext { return &root{} }

type root struct {
	types.DefaultPluginContext
	name  string
	first bool
}

func (r *root) OnPluginStart(int) types.OnPluginStartStatus {
	name, err := proxywasm.GetProperty([]string{"plugin_root_id"})
	r.name, r.first = string(name), err == nil && string(name) == "emmer"
	text, err := proxywasm.GetPluginConfiguration()
	if err != nil || !strings.Contains(string(text), `"version":1`) {
		proxywasm.LogErrorf("configuration %q: %v", text, err)
		return types.OnPluginStartStatusFailed
	}
	return types.OnPluginStartStatusOK
}

func (r *root) NewTcpContext(uint32) types.TcpContext { return &types.DefaultTcpContext{} }

func (r *root) NewHttpContext(uint32) types.HttpContext {
	if r.name == "emmer.closer" {
		return nil
	}
	if !r.first {
		return &types.DefaultHttpContext{}
	}
	return &exchange{}
}

type exchange struct{ types.DefaultHttpContext }

func (*exchange) OnHttpRequestHeaders(int, bool) types.Action {
	if want, err := proxywasm.GetHttpRequestHeader("x-want"); err == nil {
		proxywasm.AddHttpRequestHeader("x-emmer-target", want)
	}
	if path, err := proxywasm.GetHttpRequestHeader(":path"); err != nil || path != "/ask" {
		return types.ActionContinue
	}
	_, err := proxywasm.DispatchHttpCall("emmer-bridge", [][2]string{
		{":method", "POST"}, {":path", "/"}, {":authority", "bridge"},
		{"authorization", "Bearer " + os.Getenv("EMMER_STORE_TOKEN")},
	}, []byte(`["PING"]`), nil, 5000, func(_, size, _ int) {
		body, _ := proxywasm.GetHttpCallResponseBody(0, size)
		proxywasm.SendHttpResponse(200, nil, body, -1)
	})
	if err != nil {
		proxywasm.SendHttpResponse(500, nil, []byte(err.Error()), -1)
	}
	return types.ActionPause
}
