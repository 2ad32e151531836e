package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/emmer-proxy/emmer/bucket/bridge"
)

// settings is what the command line and the environment say.
type settings struct {
	listen       string
	certs        tlsFiles                   // of the listener
	redisCert    *watched[*tls.Certificate] // the bridge's own, towards Redis; nil: none
	probes       string
	connections  int
	printACL     bool
	drain, grace time.Duration
	redis        bridge.Redis
	bridge       bridge.Options
}

var errHelp = errors.New("help was asked for")

const usage = `usage: EMMER_BRIDGE_TOKENS=TOKEN emmer-bridge [flags]
Every flag can be set by the environment (-max-in-flight: EMMER_BRIDGE_MAX_IN_FLIGHT), secrets only there:
  EMMER_BRIDGE_TOKENS             bearer tokens for commands, separated by commas or spaces (required)
  EMMER_BRIDGE_OPERATORS          name=token pairs for /emmer/v1, separated likewise
  EMMER_BRIDGE_REDIS_USERNAME     and EMMER_BRIDGE_REDIS_PASSWORD: the Redis user
  EMMER_BRIDGE_SENTINEL_USERNAME  and EMMER_BRIDGE_SENTINEL_PASSWORD: the Sentinels' user
`

func readSettings(args []string, env func(string) string, out io.Writer) (settings, error) {
	var s settings
	var addrs, allow string
	var tlsOn bool
	var secure tlsFiles
	f := flag.NewFlagSet("emmer-bridge", flag.ContinueOnError)
	f.SetOutput(out)
	f.Usage = func() {
		fmt.Fprint(out, usage)
		f.PrintDefaults()
	}
	f.StringVar(&s.listen, "listen", "127.0.0.1:8080", "`address` to serve on; where gateways reach it and clients do not")
	f.StringVar(&s.certs.cert, "listen-cert", "", "`file` of the certificate to serve with; none: clear text")
	f.StringVar(&s.certs.key, "listen-key", "", "`file` of that certificate's key")
	f.StringVar(&s.certs.ca, "listen-client-ca", "", "`file` of the authorities that each client's certificate must come from (default: clients need none)")
	f.StringVar(&s.probes, "probes", "", "`address` to serve /metrics on, and the probes too, in clear text (default: as -listen)")
	f.IntVar(&s.connections, "max-connections", 4096, "connections of clients; more wait to be accepted")
	f.StringVar(&addrs, "redis", "127.0.0.1:6379", "`addresses` of Redis, of some nodes of a Cluster, or of the Sentinels, separated by commas")
	f.BoolVar(&s.redis.Cluster, "cluster", false, "Redis is a Cluster")
	f.StringVar(&s.redis.Master, "sentinel", "", "`name` of the master to ask the Sentinels for")
	f.IntVar(&s.redis.DB, "db", 0, "`number` of the database (not for a Cluster)")
	f.IntVar(&s.redis.PoolSize, "pool", bridge.DefaultPoolSize, "connections to each Redis node, at most")
	f.BoolVar(&tlsOn, "tls", false, "speak TLS to Redis, and to the Sentinels")
	f.StringVar(&secure.ca, "tls-ca", "", "`file` of the authorities that Redis' certificate must come from (default: the system's)")
	f.StringVar(&secure.cert, "tls-cert", "", "`file` of the client certificate")
	f.StringVar(&secure.key, "tls-key", "", "`file` of the client certificate's key")
	f.StringVar(&secure.name, "tls-server-name", "", "`name` that Redis' certificate must have (default: the host of its address)")
	f.DurationVar(&s.bridge.Timeout, "timeout", bridge.DefaultTimeout, "of one command, waiting for a connection included")
	f.StringVar(&s.bridge.Namespace, "namespace", bridge.DefaultNamespace, "first `part` of every key, as in Emmer's config")
	f.StringVar(&allow, "allow", strings.Join(bridge.DefaultAllow(), ","), "`commands` that are let through")
	f.IntVar(&s.bridge.MaxInFlight, "max-in-flight", bridge.DefaultMaxInFlight, "requests at once; one more is answered 503")
	f.IntVar(&s.bridge.MaxBody, "max-body", bridge.DefaultMaxBody, "`bytes` of a request; a longer one is answered 413")
	f.IntVar(&s.bridge.MaxBodies, "max-bodies", bridge.DefaultMaxBodies, "`bytes` of all requests in flight; one more is answered 503")
	f.BoolVar(&s.bridge.Strict, "strict", false, "not ready while Redis' settings may lose limits (default: only say so)")
	f.BoolVar(&s.printACL, "print-acl", false, "print the command that makes the Redis user, and the Sentinels' user, and exit")
	f.DurationVar(&s.drain, "drain", 5*time.Second, "how long to serve on after SIGTERM with /readyz at 503")
	f.DurationVar(&s.grace, "grace", 10*time.Second, "how long requests in flight may then take")

	var faults []error
	f.VisitAll(func(fl *flag.Flag) {
		name := "EMMER_BRIDGE_" + strings.ToUpper(strings.ReplaceAll(fl.Name, "-", "_"))
		if v := env(name); v != "" {
			if err := f.Set(fl.Name, v); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", name, err))
			}
		}
	})
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return s, errHelp
	} else if err != nil {
		return s, err
	}
	if f.NArg() > 0 {
		faults = append(faults, fmt.Errorf("unexpected argument %q", f.Arg(0)))
	}
	s.redis.Addrs, s.bridge.Allow = list(addrs), list(allow)
	s.redis.Timeout = s.bridge.Timeout
	s.redis.Username, s.redis.Password = env("EMMER_BRIDGE_REDIS_USERNAME"), env("EMMER_BRIDGE_REDIS_PASSWORD")
	s.redis.SentinelUsername, s.redis.SentinelPassword = env("EMMER_BRIDGE_SENTINEL_USERNAME"), env("EMMER_BRIDGE_SENTINEL_PASSWORD")
	if s.printACL {
		if s.redis.Password == "" {
			faults = append(faults, errors.New("EMMER_BRIDGE_REDIS_PASSWORD: is needed for -print-acl; only its hash is printed"))
		}
		return s, errors.Join(faults...)
	}
	s.bridge.Tokens = list(env("EMMER_BRIDGE_TOKENS"))
	if len(s.bridge.Tokens) == 0 {
		faults = append(faults, errors.New("EMMER_BRIDGE_TOKENS: holds no token; set it to what the filter's store.token is"))
	}
	s.bridge.OperatorTokens = map[string]string{}
	for i, pair := range list(env("EMMER_BRIDGE_OPERATORS")) {
		name, token, ok := strings.Cut(pair, "=")
		if _, twice := s.bridge.OperatorTokens[token]; !ok || twice {
			// The pair itself is not printed: it may be a bare token.
			faults = append(faults, fmt.Errorf("EMMER_BRIDGE_OPERATORS: entry %d is not name=token, or repeats a token", i+1))
			continue
		}
		s.bridge.OperatorTokens[token] = name
	}
	if s.connections <= 0 {
		faults = append(faults, errors.New("max-connections: must be above zero"))
	}
	if s.drain < 0 || s.grace < 0 || s.bridge.Timeout <= 0 {
		faults = append(faults, errors.New("timeout, drain, grace: must not be negative, timeout not zero"))
	}
	if (s.certs.cert == "") != (s.certs.key == "") || s.certs.ca != "" && s.certs.cert == "" {
		faults = append(faults, errors.New("listen-cert, listen-key: each needs the other, listen-client-ca both"))
	}
	if !tlsOn && secure != (tlsFiles{}) {
		faults = append(faults, errors.New("tls: its options need -tls"))
	}
	if tlsOn {
		var err error
		if s.redis.TLS, s.redisCert, err = secure.toRedis(); err != nil {
			faults = append(faults, err)
		}
	}
	return s, errors.Join(faults...)
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
}
