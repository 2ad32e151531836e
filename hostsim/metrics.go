package hostsim

import (
	"sync"
	"sync/atomic"
)

const (
	counterMetric   = 0
	gaugeMetric     = 1
	histogramMetric = 2
)

// metric is one stat of the process: every VM that defines its name shares it.
type metric struct {
	kind  uint32
	value atomic.Int64 // of a histogram the sum
	count atomic.Int64 // of a histogram
}

type metricStore struct {
	mu     sync.Mutex
	byName map[string]*metric
}

func (m *metricStore) define(kind uint32, name string) (*metric, status) {
	if kind > histogramMetric {
		return nil, statusBadArgument
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.byName[name]
	if known == nil {
		known = &metric{kind: kind}
		m.byName[name] = known
	} else if known.kind != kind {
		return nil, statusBadArgument
	}
	return known, statusOK
}

// increment: a counter takes positive offsets only (envoy context.cc).
func (m *metric) increment(by int64) status {
	switch {
	case m.kind == counterMetric && by > 0, m.kind == gaugeMetric:
		m.value.Add(by)
		return statusOK
	}
	return statusBadArgument
}

// record adds to a counter, sets a gauge, takes a sample of a histogram.
func (m *metric) record(v int64) status {
	switch m.kind {
	case counterMetric:
		m.value.Add(v)
	case gaugeMetric:
		m.value.Store(v)
	default:
		m.value.Add(v)
		m.count.Add(1)
	}
	return statusOK
}

func (m *metricStore) snapshot() map[string]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[string]int64, len(m.byName))
	for name, v := range m.byName {
		if v.kind == histogramMetric {
			out[name+".sum"] = v.value.Load()
			out[name+".count"] = v.count.Load()
			continue
		}
		out[name] = v.value.Load()
	}
	return out
}
