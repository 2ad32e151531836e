package main

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/emmer-proxy/emmer/bucket/buckettest"
	"github.com/emmer-proxy/emmer/hostsim/scenario"
	"github.com/emmer-proxy/emmer/plugin/internal/wasmbuild"
)

// cutHere makes the filter end each answer, if it can, at the piece that says so, and fail in the
// closer's entry where bytes say so.
var cutHere = []wasmbuild.Change{
	in(shellExchange, "	gone   bool\n", "	gone   bool\n	cut    bool\n"),
	in(shellExchange, "	defer x.guard(\"response headers\", &action)\n", `	defer x.guard("response headers", &action)
	if method, _ := proxywasm.GetProperty([]string{"request", "method"}); string(method) != "HEAD" && responseHeader("content-length") == "" {
		x.mayCut()
	}
`),
	in(shellExchange, "	defer x.guard(\"response body\", &action)\n", `	defer x.guard("response body", &action)
	if b, _ := proxywasm.GetHttpResponseBody(0, size); strings.Contains(string(b), "cut-here") && x.canCut() {
		mark := randomMark()
		if x.arm(mark, 2) {
			x.cut = true
			proxywasm.ReplaceHttpResponseBody([]byte("data: [DONE]\n\n: " + string(mark[:]) + "\n\n"))
			return types.ActionContinue
		}
	}
	if x.cut {
		if size > 0 {
			proxywasm.ReplaceHttpResponseBody(nil)
		}
		return types.ActionContinue
	}
`),
	in(shellExchange, "	\"strconv\"\n", "	\"strconv\"\n	\"strings\"\n"),
	in("plugin/shell/wire.go", "	defer w.guard(\"bytes of a connection\")\n", `	defer w.guard("bytes of a connection")
	if b, _ := proxywasm.GetUpstreamData(0, size); strings.Contains(string(b), "fault-here") {
		panic("asked for")
	}
`),
	in("plugin/shell/wire.go", "	\"math/rand/v2\"\n", "	\"math/rand/v2\"\n	\"strings\"\n"),
}

// TestCutOnTheWire ends answers of a filter that cuts where the provider says so, with the closer's
// entry before the HTTP server.
func TestCutOnTheWire(t *testing.T) {
	t.Parallel()
	cutting := wasmbuild.Changed(t, cutHere...)
	for gateway, redis := range map[string]string{scenario.GatewayHostsim: "", scenario.GatewayEnvoy: buckettest.StartRedis(t)} {
		t.Run(gateway, func(t *testing.T) {
			t.Parallel()
			scenario.RunAll(t, scenario.Options{
				Files: []string{filepath.Join("testdata", "wires", "*.txtar")}, Gateway: gateway, Wasm: cutting,
				Probes: probes(), Redis: redis, CompilationCache: filepath.Join("..", ".cache", "wazero"),
			})
		})
	}
}

// TestCutsFailWhereTheConnectionIsClosedAtOnce closes the connection in the callback in which its
// final bytes are written: the host runs the close before the write, and the bytes are lost.
func TestCutsFailWhereTheConnectionIsClosedAtOnce(t *testing.T) {
	t.Parallel()
	broken := wasmbuild.Changed(t, append(slices.Clone(cutHere), in("plugin/shell/wire.go", "		w.plugin.later(w.close)\n", "		w.close()\n"))...)
	for gateway, redis := range map[string]string{scenario.GatewayHostsim: "", scenario.GatewayEnvoy: buckettest.StartRedis(t)} {
		t.Run(gateway, func(t *testing.T) {
			t.Parallel()
			ran := 0
			err := scenario.Run(context.Background(), scenario.Options{
				Files: []string{filepath.Join("testdata", "wires", "a-cut-stream-ends-on-http1.txtar")}, Gateway: gateway, Wasm: broken,
				Probes: probes(), Redis: redis, CompilationCache: filepath.Join("..", ".cache", "wazero"),
			}, func(r scenario.Result) {
				ran++
				if r.Err == nil {
					t.Errorf("%s holds", r.Name)
				}
			})
			if err != nil || ran != 2 {
				t.Errorf("%d ran, %v", ran, err)
			}
		})
	}
}
