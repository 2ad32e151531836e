package bridge

import (
	"crypto/tls"
	"errors"
	"net/http"
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

	TLS      *tls.Config   // nil: plain
	Timeout  time.Duration // of a dial and of a command; 0: DefaultTimeout
	PoolSize int           // connections to each node; 0: DefaultPoolSize
}

// DefaultPoolSize is enough for some ten thousand scripts a second on one node; more callers wait
// for a connection within their timeout.
const DefaultPoolSize = 32

// topologyAge is how old a Cluster's map may grow. go-redis' default is 60 s, and after a failover
// whose dead master only gives dial errors nothing else renews it (measured on go-redis v9.23: with
// 1 s it served again 0.75 s after the promotion).
const topologyAge = time.Second

// Connect makes a client with the properties that New asks for: RESP2, no retries, deadlines taken
// from the context, no command beyond HELLO on a new connection (so that a minimal ACL user does).
// It dials when first used.
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
			DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, PoolTimeout: timeout,
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

// Server serves h as HTTP/1.1 and as cleartext HTTP/2 with prior knowledge, and bounds what a slow
// client can hold.
func Server(h http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           h,
		Protocols:         protocols,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		// Envoy drops an idle upstream connection after an hour by default. It must be the first to:
		// a connection that the server closes just as a callout is written to it fails that callout.
		IdleTimeout:    65 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: 1000},
	}
}
