package scenario

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"
)

// Options say what to run, and with which gateway.
type Options struct {
	Files   []string // paths of scenarios, may hold *
	Gateway string   // GatewayHostsim or GatewayEnvoy
	Wasm    string   // path of the module; "" = a chain without it, on Envoy only

	Modes    map[string][]Entry // chains by name; nil = EmmerModes
	Network  []Entry            // before the HTTP server, where a scenario says closer; nil = EmmerNetwork
	Defaults string             // YAML, see MergeConfig; "" = EmmerDefaults
	Env      map[string]string  // of the VM; BridgeToken is added as EMMER_STORE_TOKEN
	Probes   map[string]Probe
	Redis    string // address of a real Redis; "" = an embedded one for each scenario

	AccessLog        string // a line's format: a code, and behind a blank a JSON object or -; "" = EmmerAccessLog
	PerGateway       int    // scenarios times modes that share a gateway; 0 = 48
	Update           bool   // write what was found into the files where it differs
	CompilationCache string // hostsim's, see its Options
}

// Probe asks for something that a store holds. args are the words behind its name.
type Probe func(ctx context.Context, env Env, args []string) (string, error)

// Env is what a probe may look at.
type Env struct {
	Redis     redis.UniversalClient // past the bridge
	Namespace string
	Mode      string
	Config    []byte // JSON, as the plugin got it
}

// ErrNoProbe says that a scenario asks for a probe that the caller of the runner has not registered.
var ErrNoProbe = errors.New("no such probe here: scenarios that ask a plugin's store run in that plugin's tests (go test ./plugin)")

// BridgeToken is the token that every scenario's bridge accepts.
const BridgeToken = "scenario-token"

// EmmerModes are the two ways in which Emmer holds requests.
func EmmerModes() map[string][]Entry {
	return map[string][]Entry{
		"pair": {{Name: "emmer", RootID: "emmer"}, {Name: "emmer.gate", RootID: "emmer.gate"}},
		"flag": {{Name: "emmer", RootID: "emmer", AllowOnHeadersStop: true}},
	}
}

// EmmerNetwork is the entry that ends a running answer on the wire.
func EmmerNetwork() []Entry { return []Entry{{Name: "emmer.closer", RootID: "emmer.closer"}} }

// EmmerDefaults are the settings that a scenario need not repeat. The timeout is far above Emmer's
// own: a slow machine must not decide a test that is not about time.
const EmmerDefaults = `
version: 1
currency: EUR
store: {cluster: "${BRIDGE}", protocol: upstash, token: "${TOKEN}", timeout: 3s, namespace: "${NAMESPACE}"}
hold: {mode: "${MODE}"}
`

// EmmerAccessLog shows the status and Emmer's filter state.
const EmmerAccessLog = "%RESPONSE_CODE% %FILTER_STATE(wasm.emmer:PLAIN)%"

func (o *Options) complete() {
	if o.Modes == nil {
		o.Modes = EmmerModes()
	}
	if o.Network == nil {
		o.Network = EmmerNetwork()
	}
	if o.Defaults == "" {
		o.Defaults = EmmerDefaults
	}
	if o.AccessLog == "" {
		o.AccessLog = EmmerAccessLog
	}
	if o.PerGateway == 0 {
		o.PerGateway = 48
	}
	env := map[string]string{"EMMER_STORE_TOKEN": BridgeToken}
	maps.Copy(env, o.Env)
	o.Env = env
}

func (o *Options) modeNames() []string { return slices.Sorted(maps.Keys(o.Modes)) }
