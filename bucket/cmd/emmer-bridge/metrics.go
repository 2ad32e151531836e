package main

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics is bridge.Metrics for Prometheus. All label values come from closed sets.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	inFlight prometheus.Gauge
	took     prometheus.Histogram
	faults   *prometheus.CounterVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "emmer_bridge_requests_total", Help: "HTTP requests by route and status code.",
		}, []string{"route", "code"}),
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
	}
	m.registry.MustRegister(m.requests, m.inFlight, m.took, m.faults,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) Request(route string, status int) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
}

func (m *metrics) InFlight(change int) { m.inFlight.Add(float64(change)) }

func (m *metrics) Redis(took time.Duration, fault string) {
	m.took.Observe(took.Seconds())
	if fault != "" {
		m.faults.WithLabelValues(fault).Inc()
	}
}
