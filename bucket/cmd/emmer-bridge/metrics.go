package main

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"
)

// metrics is bridge.Metrics for Prometheus. All label values come from closed sets. README.md lists them
// all, which a test compares.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	refused  *prometheus.CounterVec
	inFlight prometheus.Gauge
	took     prometheus.Histogram
	faults   *prometheus.CounterVec
	evicts   prometheus.Gauge
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "emmer_bridge_requests_total", Help: "HTTP requests by route and status code.",
		}, []string{"route", "code"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "emmer_bridge_refused_total", Help: "HTTP requests that the bridge itself turned away, by the first word of its error.",
		}, []string{"word"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "emmer_bridge_in_flight", Help: "Requests that hold a slot now.",
		}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "emmer_bridge_redis_seconds", Help: "Time of an exchange with Redis, waiting for a connection included.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1},
		}),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "emmer_bridge_redis_faults_total", Help: "Exchanges that ended in an error: the first word of Redis' error, TIMEOUT or NOLINK.",
		}, []string{"word"}),
		evicts: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "emmer_bridge_redis_may_evict", Help: "1 while Redis' maxmemory-policy lets it evict limits.",
		}),
	}
	m.registry.MustRegister(m.requests, m.refused, m.inFlight, m.took, m.faults, m.evicts,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// pool adds the state of the client's connections, all nodes together.
func (m *metrics) pool(c redis.UniversalClient) {
	gauge := func(state string, value func(*redis.PoolStats) uint32) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "emmer_bridge_redis_connections", Help: "Connections to Redis, all nodes together.",
			ConstLabels: prometheus.Labels{"state": state},
		}, func() float64 { return float64(value(c.PoolStats())) }))
	}
	gauge("idle", func(s *redis.PoolStats) uint32 { return s.IdleConns })
	gauge("used", func(s *redis.PoolStats) uint32 { return s.TotalConns - s.IdleConns })
}

// certificate adds the end of the listener's certificate.
func (m *metrics) certificate(end func() time.Time) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "emmer_bridge_certificate_end_seconds", Help: "Unix time at which the listener's certificate ends.",
	}, func() float64 { return float64(end().Unix()) }))
}

func (m *metrics) Request(route string, status int) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
}

func (m *metrics) Refused(word string) { m.refused.WithLabelValues(word).Inc() }

func (m *metrics) InFlight(change int) { m.inFlight.Add(float64(change)) }

func (m *metrics) Redis(took time.Duration, fault string) {
	m.took.Observe(took.Seconds())
	if fault != "" {
		m.faults.WithLabelValues(fault).Inc()
	}
}
