package envoy

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Listener is one listener with its own filter chain. It speaks HTTP/1.1 and HTTP/2.
type Listener struct {
	Name              string
	Addr              string // "" = a free port of 127.0.0.1
	Network           []Wasm // network filters before the connection manager
	TLS               *TLS   // nil = cleartext
	JWT               *JWT   // checked before the filters
	Filters           []Filter
	Routes            []Route       // first match wins; with Header "" it matches all
	BufferLimit       int           // per_connection_buffer_limit_bytes; 0 = Envoy's default of 1 MiB
	AccessLog         string        // format of a line, without line end; "" = none
	StreamIdleTimeout time.Duration // 0 = 60 s
	RequestTimeout    time.Duration // 0 = none
}

// TLS is what a listener shows its clients, who choose HTTP/2 or HTTP/1.1 by ALPN. Both are PEM.
type TLS struct{ Certificate, Key string }

func (t *TLS) socket() object {
	return object{
		"name": "envoy.transport_sockets.tls",
		"typed_config": object{
			"@type": typeURL + "extensions.transport_sockets.tls.v3.DownstreamTlsContext",
			"common_tls_context": object{
				"alpn_protocols": []string{"h2", "http/1.1"},
				"tls_certificates": []object{{
					"certificate_chain": object{"inline_string": t.Certificate},
					"private_key":       object{"inline_string": t.Key},
				}},
			},
		},
	}
}

// Filter is one entry of a chain: a plugin, or any HTTP filter as Envoy's own JSON.
type Filter struct {
	Wasm *Wasm
	Raw  json.RawMessage
}

// Wasm is a plugin's entry. Entries with the same File, VMID and Env share one VM per thread.
type Wasm struct {
	Name               string
	RootID             string
	File               string // path of the .wasm
	VMID               string
	Env                map[string]string
	Config             []byte // handed to the plugin as it is
	AllowOnHeadersStop bool   // allow_on_headers_stop_iteration, Envoy 1.35 and later
	FailurePolicy      string // "" = FAIL_RELOAD
}

// Route sends requests whose header has exactly this value to a cluster.
type Route struct {
	Header, Value, Cluster string
	RetryOn                string // retry_on, such as 5xx,reset; "" = the router tries once
	Retries                int    // how often it tries again
}

// Cluster is a set of one host, or of none.
type Cluster struct {
	Name  string
	Addr  string // host:port; "" = no host
	HTTP2 bool
}

// JWT makes jwt_authn verify HS256 tokens and hand their claims on as dynamic metadata. A request
// without a token passes, one with a bad token gets 401.
type JWT struct {
	Secret   []byte
	Metadata string // payload_in_metadata
	Issuer   string // "" = any
}

// StatsTag makes a tag of a part of the names of counters.
type StatsTag struct{ Name, Regex string }

// Delay is Envoy's fault filter: it holds each request for a while, asynchronously.
func Delay(d time.Duration) Filter {
	raw, err := json.Marshal(object{
		"name": "envoy.filters.http.fault",
		"typed_config": object{
			"@type": typeURL + "extensions.filters.http.fault.v3.HTTPFault",
			"delay": object{"fixed_delay": seconds(d), "percentage": object{"numerator": 100}},
		},
	})
	if err != nil {
		panic(err) // plain values only
	}
	return Filter{Raw: raw}
}

type object = map[string]any

const typeURL = "type.googleapis.com/envoy."

// seconds is a duration as protobuf's JSON writes it.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}

func (e *Envoy) writeBootstrap(o Options) (string, error) {
	if o.BootstrapFile != "" {
		b, err := os.ReadFile(o.BootstrapFile)
		if err != nil {
			return "", fmt.Errorf("envoy: bootstrap: %w", err)
		}
		text := string(b)
		for _, from := range slices.Sorted(maps.Keys(o.Replace)) {
			if !strings.Contains(text, from) {
				return "", fmt.Errorf("envoy: bootstrap: %s has no %q to replace", o.BootstrapFile, from)
			}
			text = strings.ReplaceAll(text, from, o.Replace[from])
		}
		path := filepath.Join(e.dir, "bootstrap"+filepath.Ext(o.BootstrapFile))
		return path, os.WriteFile(path, []byte(text), 0o600)
	}
	b, err := e.bootstrap(o)
	if err != nil {
		return "", err
	}
	path := filepath.Join(e.dir, "bootstrap.json")
	return path, os.WriteFile(path, b, 0o600)
}

func (e *Envoy) bootstrap(o Options) ([]byte, error) {
	var listeners, clusters []object
	names := map[string]bool{}
	for _, l := range o.Listeners {
		if file := fileName(l.Name); names[file] || l.Name == "" {
			return nil, fmt.Errorf("envoy: listener %q: no name of its own", l.Name)
		} else {
			names[file] = true
		}
		out, err := e.listener(l)
		if err != nil {
			return nil, fmt.Errorf("envoy: listener %q: %w", l.Name, err)
		}
		listeners = append(listeners, out)
	}
	for _, c := range o.Clusters {
		out, err := cluster(c)
		if err != nil {
			return nil, fmt.Errorf("envoy: cluster %q: %w", c.Name, err)
		}
		clusters = append(clusters, out)
	}
	tags := []object{}
	for _, t := range o.StatsTags {
		tags = append(tags, object{"tag_name": t.Name, "regex": t.Regex})
	}
	return json.MarshalIndent(object{
		"admin":            object{"address": socket("127.0.0.1", 0)},
		"stats_config":     object{"stats_tags": tags},
		"overload_manager": connections(1 << 16),
		"static_resources": object{"listeners": listeners, "clusters": clusters},
	}, "", " ")
}

// connections bounds what clients may open: without a bound Envoy warns at each start.
func connections(most int) object {
	return object{"resource_monitors": []object{{
		"name": "envoy.resource_monitors.global_downstream_max_connections",
		"typed_config": object{
			"@type":                             typeURL + "extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
			"max_active_downstream_connections": most,
		},
	}}}
}

func (e *Envoy) listener(l Listener) (object, error) {
	var filters []any
	if l.JWT != nil {
		filters = append(filters, l.JWT.filter())
	}
	for _, f := range l.Filters {
		switch {
		case f.Wasm != nil:
			filters = append(filters, f.Wasm.filter("http"))
		case len(f.Raw) > 0:
			filters = append(filters, f.Raw)
		default:
			return nil, fmt.Errorf("empty filter")
		}
	}
	filters = append(filters, object{
		"name":         "envoy.filters.http.router",
		"typed_config": object{"@type": typeURL + "extensions.filters.http.router.v3.Router"},
	})
	idle := l.StreamIdleTimeout
	if idle == 0 {
		idle = time.Minute
	}
	manager := object{
		"@type":                 typeURL + "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"stat_prefix":           l.Name,
		"codec_type":            "AUTO",
		"http_protocol_options": object{"enable_trailers": true},
		"stream_idle_timeout":   seconds(idle),
		"route_config":          object{"virtual_hosts": []object{{"name": "all", "domains": []string{"*"}, "routes": routes(l.Routes)}}},
		"upgrade_configs":       []object{{"upgrade_type": "websocket"}},
		"http_filters":          filters,
	}
	if l.RequestTimeout > 0 {
		manager["request_timeout"] = seconds(l.RequestTimeout)
	}
	if l.AccessLog != "" {
		manager["access_log"] = []object{{
			"name": "file",
			"typed_config": object{
				"@type":      typeURL + "extensions.access_loggers.file.v3.FileAccessLog",
				"path":       e.accessPath(l.Name),
				"log_format": object{"text_format_source": object{"inline_string": l.AccessLog + "\n"}},
			},
		}}
	}
	var chain []object
	for _, w := range l.Network {
		chain = append(chain, w.filter("network"))
	}
	chain = append(chain, object{"name": "hcm", "typed_config": manager})
	host, port := "127.0.0.1", 0
	if l.Addr != "" {
		var err error
		if host, port, err = splitAddr(l.Addr); err != nil {
			return nil, err
		}
	}
	filterChain := object{"filters": chain}
	if l.TLS != nil {
		filterChain["transport_socket"] = l.TLS.socket()
	}
	out := object{
		"name":          l.Name,
		"address":       socket(host, port),
		"filter_chains": []object{filterChain},
	}
	if l.BufferLimit > 0 {
		out["per_connection_buffer_limit_bytes"] = l.BufferLimit
	}
	return out, nil
}

func routes(list []Route) []object {
	out := []object{}
	for _, r := range list {
		match := object{"prefix": "/"}
		if r.Header != "" {
			match["headers"] = []object{{"name": r.Header, "string_match": object{"exact": r.Value}}}
		}
		route := object{"cluster": r.Cluster, "timeout": "0s"}
		if r.RetryOn != "" {
			route["retry_policy"] = object{"retry_on": r.RetryOn, "num_retries": r.Retries, "retry_back_off": object{"base_interval": "0.001s"}}
		}
		out = append(out, object{"match": match, "route": route})
	}
	return out
}

// filter is the plugin's entry among filters of a kind, http or network.
func (w *Wasm) filter(kind string) object {
	policy := w.FailurePolicy
	if policy == "" {
		policy = "FAIL_RELOAD"
	}
	vm := object{
		"vm_id":   w.VMID,
		"runtime": "envoy.wasm.runtime.v8",
		"code":    object{"local": object{"filename": w.File}},
	}
	if len(w.Env) > 0 {
		vm["environment_variables"] = object{"key_values": w.Env}
	}
	config := object{
		"name": w.Name, "root_id": w.RootID, "failure_policy": policy, "vm_config": vm,
		"configuration": object{"@type": "type.googleapis.com/google.protobuf.StringValue", "value": string(w.Config)},
	}
	if w.AllowOnHeadersStop {
		config["allow_on_headers_stop_iteration"] = true
	}
	return object{
		"name":         w.Name,
		"typed_config": object{"@type": typeURL + "extensions.filters." + kind + ".wasm.v3.Wasm", "config": config},
	}
}

func (j *JWT) filter() object {
	keys := object{"keys": []object{{"kty": "oct", "alg": "HS256", "k": base64.RawURLEncoding.EncodeToString(j.Secret)}}}
	inline, err := json.Marshal(keys)
	if err != nil {
		panic(err) // strings only
	}
	provider := object{
		"local_jwks": object{"inline_string": string(inline)}, "payload_in_metadata": j.Metadata,
		"forward": true, // else the authorization header ends here
	}
	if j.Issuer != "" {
		provider["issuer"] = j.Issuer
	}
	return object{
		"name": "envoy.filters.http.jwt_authn",
		"typed_config": object{
			"@type":     typeURL + "extensions.filters.http.jwt_authn.v3.JwtAuthentication",
			"providers": object{"tokens": provider},
			"rules": []object{{
				"match": object{"prefix": "/"},
				"requires": object{"requires_any": object{"requirements": []object{
					{"provider_name": "tokens"}, {"allow_missing": object{}},
				}}},
			}},
		},
	}
}

func cluster(c Cluster) (object, error) {
	endpoints := []object{}
	if c.Addr != "" {
		host, port, err := splitAddr(c.Addr)
		if err != nil {
			return nil, err
		}
		endpoints = append(endpoints, object{"lb_endpoints": []object{{"endpoint": object{"address": socket(host, port)}}}})
	}
	const many = 1 << 16 // breakers of 1024 would refuse what a test wants to see pass
	out := object{
		"name":            c.Name,
		"type":            "STATIC",
		"connect_timeout": "1s",
		"load_assignment": object{"cluster_name": c.Name, "endpoints": endpoints},
		"circuit_breakers": object{"thresholds": []object{{
			"max_connections": many, "max_pending_requests": many, "max_requests": many, "max_retries": many,
		}}},
	}
	protocol := object{"http_protocol_options": object{"enable_trailers": true}}
	if c.HTTP2 {
		protocol = object{"http2_protocol_options": object{}}
	}
	out["typed_extension_protocol_options"] = object{
		"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": object{
			"@type":                typeURL + "extensions.upstreams.http.v3.HttpProtocolOptions",
			"explicit_http_config": protocol,
		},
	}
	return out, nil
}

func socket(host string, port int) object {
	return object{"socket_address": object{"address": host, "port_value": port}}
}

func splitAddr(addr string) (string, int, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return "", 0, fmt.Errorf("port %q: %w", port, err)
	}
	return host, n, nil
}
