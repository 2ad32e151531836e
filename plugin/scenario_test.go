package main

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/emmer-proxy/emmer/bucket/buckettest"
	"github.com/emmer-proxy/emmer/hostsim/scenario"
	"github.com/emmer-proxy/emmer/plugin/internal/wasmbuild"
)

var only = flag.String("scenario", "*", "scenarios to run, by name; may hold *")

func runScenarios(t *testing.T, gateway, redis string) {
	scenario.RunAll(t, scenario.Options{
		Files:            []string{filepath.Join("testdata", "scenarios", *only+".txtar")},
		Gateway:          gateway,
		Wasm:             wasmbuild.Path(t),
		Probes:           probes(),
		Redis:            redis,
		Update:           *update,
		CompilationCache: filepath.Join("..", ".cache", "wazero"),
	})
}

// TestScenariosOnHostsim runs what Emmer must do on the simulated host and an embedded Redis.
func TestScenariosOnHostsim(t *testing.T) { runScenarios(t, scenario.GatewayHostsim, "") }

// TestScenariosOnEnvoy runs the same files on a real Envoy and a real Redis: equal results are the
// proof that the simulated host is faithful.
func TestScenariosOnEnvoy(t *testing.T) {
	runScenarios(t, scenario.GatewayEnvoy, buckettest.StartRedis(t))
}
