package bench

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/emmer-proxy/emmer/hostsim"
	"github.com/emmer-proxy/emmer/hostsim/redisgw"
)

// SizeOptions say what to weigh.
type SizeOptions struct {
	Filter   string // module
	Config   []byte // for a chain of the pair
	TokenEnv string // variable of the VM that holds the bridge's token
	Calls    int
	CacheDir string // of compiled modules; "" = none
	Out      io.Writer
}

// Size is what a module weighs.
type Size struct {
	Bench     string `json:"bench"`
	WasmBytes int    `json:"wasm_bytes"`
	GzipBytes int    `json:"gzip_bytes"`
	Calls     int    `json:"calls"`
	// Linear memory of the largest VM, which is a worker's.
	StartBytes uint64 `json:"vm_start_bytes"`
	AfterBytes uint64 `json:"vm_after_bytes"`
	// Statuses of the calls' answers.
	Statuses map[string]int `json:"statuses"`
}

// mix is the kinds of calls, in turn: small and large, streamed, refused for their body or path.
func mix() [][]byte {
	stream := chatBody(2 << 10)
	stream = append([]byte(`{"stream":true,`), stream[1:]...)
	unknown := chatRequest(chatBody(1 << 10))
	unknown = append([]byte("POST /v1/nothing"), unknown[len("POST /v1/chat/completions"):]...)
	return [][]byte{
		chatRequest(chatBody(1 << 10)),
		chatRequest(chatBody(100 << 10)),
		chatRequest(stream),
		chatRequest(chatBody(10 << 10)),
		chatRequest([]byte(`{"model":"gpt-4o","messages":[`)),
		unknown,
	}
}

// Weigh measures a module's bytes, and the memory of its VM in hostsim at start and after calls.
func Weigh(ctx context.Context, o SizeOptions) (size Size, err error) {
	wasm, err := os.ReadFile(o.Filter)
	if err != nil {
		return size, err
	}
	size = Size{Bench: "size", WasmBytes: len(wasm), Statuses: map[string]int{}}
	if size.GzipBytes, err = zipped(wasm); err != nil {
		return size, err
	}
	provider, err := startUpstream("application/json", []byte(chatAnswer))
	if err != nil {
		return size, err
	}
	defer func() { err = errors.Join(err, provider.close()) }()
	gateway, err := redisgw.Start(redisgw.Options{Token: token})
	if err != nil {
		return size, err
	}
	defer gateway.Close()
	host, err := hostsim.Start(ctx, hostsim.Options{
		Wasm: wasm, Workers: 1, VMID: "emmer", Env: map[string]string{o.TokenEnv: token},
		Clusters: map[string]hostsim.Cluster{
			"upstream":     {URL: "http://" + provider.addr()},
			"emmer-bridge": {URL: gateway.URL()},
		},
		Listeners: []hostsim.Listener{{
			Name: "pair", Routes: []hostsim.Route{{Cluster: "upstream"}},
			Filters: []hostsim.Filter{
				{Name: "emmer", RootID: "emmer", Config: o.Config, FailurePolicy: "FAIL_RELOAD"},
				{Name: "emmer.gate", RootID: "emmer.gate", Config: o.Config, FailurePolicy: "FAIL_RELOAD"},
			},
		}},
		CompilationCacheDir: o.CacheDir,
	})
	if err != nil {
		return size, err
	}
	defer host.Close()
	size.StartBytes = largest(host.Memory())
	kinds := mix()
	for i := range kinds {
		share := o.Calls / len(kinds)
		if i < o.Calls%len(kinds) {
			share++
		}
		sample := Load{Addr: host.Addr("pair"), Request: kinds[i], Conns: 4, For: time.Minute, Most: share, Timeout: 10 * time.Second}.Run()
		for status, n := range sample.Statuses {
			size.Statuses[status] += n
			size.Calls += n
		}
		if len(sample.Errors) > 0 {
			return size, fmt.Errorf("calls of kind %d: %v", i, sample.Errors)
		}
	}
	size.AfterBytes = largest(host.Memory())
	text, err := json.Marshal(size)
	if err != nil {
		return size, err
	}
	w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\n\nmodule\t%.2f MB, gzip %.2f MB\n", text, mb(size.WasmBytes), mb(size.GzipBytes))
	fmt.Fprintf(w, "memory of a VM at start\t%.2f MB\n", mb(size.StartBytes))
	fmt.Fprintf(w, "after %d mixed calls\t%.2f MB\n", size.Calls, mb(size.AfterBytes))
	return size, w.Flush()
}

func mb[T int | uint64](n T) float64 { return float64(n) / 1e6 }

func largest(vms map[string]uint64) uint64 {
	most := uint64(0)
	for _, n := range vms {
		most = max(most, n)
	}
	return most
}

// zipped is the size under gzip -9, about what a registry stores and a gateway fetches.
func zipped(b []byte) (int, error) {
	var n counter
	w, err := gzip.NewWriterLevel(&n, gzip.BestCompression)
	if err != nil {
		return 0, err
	}
	if _, err := w.Write(b); err != nil {
		return 0, err
	}
	err = w.Close()
	return int(n), err
}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
