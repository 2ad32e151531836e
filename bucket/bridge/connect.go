package bridge

import (
	"crypto/tls"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Redis says where Redis is and how to reach it.
type Redis struct {
	Addrs    []string // host:port, or the path of a Unix socket; several for Cluster and Sentinel
	Cluster  bool
	Master   string // name of a Sentinel's master; Addrs are then the Sentinels
	Username string
	Password string
	DB       int // not for Cluster
	// SentinelUsername and SentinelPassword are for the Sentinels themselves.
	SentinelUsername, SentinelPassword string

	TLS      *tls.Config   // nil: plain; also to the Sentinels
	Timeout  time.Duration // of a dial and of a command; 0: DefaultTimeout
	PoolSize int           // connections to each node; 0: DefaultPoolSize
}

// DefaultPoolSize is enough for some ten thousand scripts a second on one node; more callers wait
// for a connection within their timeout.
const DefaultPoolSize = 32

// topologyAge is how old a Cluster's map may grow without a fault. go-redis' default is 60 s. On a
// lost link or a timeout the bridge has it read anew at once, see Bridge.observe.
const topologyAge = time.Second

// sentinelDials is a dial's time in timeouts. Behind Sentinels a dial first asks for the master's
// address: a Sentinel that hangs (its machine may be the one that was lost with the master) costs one
// read timeout, one more to be sure, and then all others are asked at once. With less time a dial ends
// before it has asked another one (go-redis v9.23).
const sentinelDials = 3

// Connect makes a client with the properties that New asks for: RESP2, no retries, deadlines taken
// from the context, masters only, no pool of its own for pipelines, no command beyond HELLO or AUTH
// (and SELECT for a DB) on a new connection, so that a minimal ACL user does. It dials when first used.
func Connect(r Redis) (redis.UniversalClient, error) {
	switch {
	case len(r.Addrs) == 0:
		return nil, errors.New("redis: no address")
	case r.Cluster && r.Master != "":
		return nil, errors.New("redis: cluster and sentinel exclude each other")
	case r.Cluster && r.DB != 0:
		return nil, errors.New("redis: a cluster has only database 0")
	case !r.Cluster && r.Master == "" && len(r.Addrs) > 1:
		return nil, errors.New("redis: several addresses need cluster or sentinel")
	}
	timeout := or(r.Timeout, DefaultTimeout)
	pool := or(r.PoolSize, DefaultPoolSize)
	if r.Cluster {
		// ReadOnly, RouteByLatency and RouteRandomly stay off: a replica's answer may be old, and a
		// script that reads is not told from one that writes.
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: r.Addrs, Username: r.Username, Password: r.Password, TLSConfig: r.TLS,
			Protocol: 2, ContextTimeoutEnabled: true, DisableIdentity: true, MaintNotificationsConfig: quiet(),
			MaxRetries: -1, DialerRetries: 1, MaxRedirects: 3, DisableRoutingPolicies: true,
			DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, PoolTimeout: timeout,
			PoolSize: pool, PipelinePoolSize: -1, ClusterStateReloadInterval: topologyAge,
		}), nil
	}
	if r.Master != "" {
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: r.Master, SentinelAddrs: r.Addrs,
			SentinelUsername: r.SentinelUsername, SentinelPassword: r.SentinelPassword,
			Username: r.Username, Password: r.Password, DB: r.DB, TLSConfig: r.TLS,
			Protocol: 2, ContextTimeoutEnabled: true, DisableIdentity: true,
			MaxRetries: -1, DialerRetries: 1,
			DialTimeout: sentinelDials * timeout, ReadTimeout: timeout, WriteTimeout: timeout, PoolTimeout: timeout,
			PoolSize: pool, PipelinePoolSize: -1,
		}), nil
	}
	return redis.NewClient(&redis.Options{
		Addr: r.Addrs[0], Username: r.Username, Password: r.Password, DB: r.DB, TLSConfig: r.TLS,
		Protocol: 2, ContextTimeoutEnabled: true, DisableIdentity: true, MaintNotificationsConfig: quiet(),
		MaxRetries: -1, DialerRetries: 1,
		DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, PoolTimeout: timeout,
		PoolSize: pool, PipelinePoolSize: -1,
	}), nil
}

func quiet() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}
