package clients

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/hostsim/envoy"
	"github.com/emmer-proxy/emmer/hostsim/redisgw"
)

// Keys say what becomes of a client's calls: their first part is what a limit is for, the rest is
// the client's name, so that clients do not meet each other's limits.
const settings = `{
  "version": 1,
  "currency": "EUR",
  "store": {"cluster": "emmer-bridge", "token": "${EMMER_STORE_TOKEN}", "timeout": "2s"},
  "identity": {
    "key": [{"header": "authorization", "strip": "Bearer"}, {"header": "x-api-key"}, {"header": "x-goog-api-key"}, {"query": "key"}]
  },
  "models": {
    "m": {"tokenizer": "o200k_base", "max_output": 4096, "default_output": 100, "price": {"input": "1", "output": "100"}},
    "stopped": {"price": {"input": "1", "output": "100"}},
    "embed": {"price": {"input": "1"}},
    "rerank": {"price": {"search_unit": "0.002"}}
  },
  "limits": [
    {"name": "day", "by": ["key"], "for": {"key": "limited-*"}, "count": "requests", "max": 1, "window": {"calendar": "year"}},
    {"name": "brief", "by": ["key"], "for": {"key": "brief-*"}, "count": "requests", "bucket": {"rate": "1/s", "burst": 1}},
    {"name": "budget", "by": ["key"], "for": {"key": "broke-*"}, "count": "cost", "max": "0.1", "window": {"calendar": "year"}},
    {"name": "small", "by": ["key"], "for": {"key": "big-*"}, "count": "tokens", "max": 5, "window": {"calendar": "year"}},
    {"name": "all", "by": ["key"], "count": "tokens", "max": 1000000, "window": {"calendar": "year"}}
  ],
  "kill": {"poll": "100ms"}
}`

// stack is all that runs.
type stack struct {
	base     string // http://host:port of the gateway
	provider *provider
	gateway  *envoy.Envoy
}

func start(t *testing.T) *stack {
	t.Helper()
	wasm := os.Getenv("EMMER_WASM")
	if wasm == "" {
		wasm = "../../bin/emmer.wasm"
	}
	wasm, err := filepath.Abs(wasm)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(wasm); err != nil {
		t.Fatalf("%v: run `make test-clients`, which builds it", err)
	}
	p := startProvider(t)
	bridge, err := redisgw.Start(redisgw.Options{Token: "token", OperatorToken: "operator"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bridge.Close)
	entry := func(role string) envoy.Filter {
		return envoy.Filter{Wasm: &envoy.Wasm{Name: role, RootID: role, File: wasm, VMID: "emmer",
			Env: map[string]string{"EMMER_STORE_TOKEN": "token"}, Config: []byte(settings)}}
	}
	e, err := envoy.Start(context.Background(), envoy.Options{
		Listeners: []envoy.Listener{{
			Name: "llm", Filters: []envoy.Filter{entry("emmer"), entry("emmer.gate")}, Routes: []envoy.Route{{Cluster: "provider"}},
			AccessLog: "%RESPONSE_CODE% %REQ(:PATH)% %FILTER_STATE(wasm.emmer:PLAIN)%",
		}},
		Clusters: []envoy.Cluster{{Name: "provider", Addr: p.addr}, {Name: "emmer-bridge", Addr: bridge.Addr()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	// Calls for the model `stopped` are killed.
	kill, err := http.NewRequest("POST", "http://"+bridge.Addr()+"/emmer/v1/kill", strings.NewReader(`{"scope":"model","id":"stopped","reason":"an exercise"}`))
	if err != nil {
		t.Fatal(err)
	}
	kill.Header.Set("authorization", "Bearer operator")
	answer, err := http.DefaultClient.Do(kill)
	if err != nil || answer.StatusCode != 200 {
		t.Fatalf("kill: %v %v", answer, err)
	}
	answer.Body.Close()
	return &stack{base: "http://" + e.Addr("llm"), provider: p, gateway: e}
}

// calls are the lines of the access log of a key: what the gateway decided, in order.
func (s *stack) calls(key string) []string {
	var out []string
	for _, line := range s.gateway.AccessLog("llm") {
		_, rest, ok := strings.Cut(line, "{")
		if !ok {
			continue
		}
		var entry struct {
			Key      string `json:"id_key"`
			Decision string `json:"d"`
			Settled  string `json:"settled"`
		}
		if json.Unmarshal([]byte("{"+rest), &entry) == nil && entry.Key == key {
			word := entry.Decision
			if entry.Settled != "" {
				word += ":" + entry.Settled
			}
			out = append(out, word)
		}
	}
	return out
}

// eventually waits for what a gateway writes after a client has its answer.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}
