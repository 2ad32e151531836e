package shell

import "github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm"

// counters are the host's counters by name, defined when first used. A host without metrics makes
// the SDK panic; it is then asked no more.
type counters struct {
	byName map[string]proxywasm.MetricCounter
	none   bool
}

func (c *counters) add(name string, n int64) {
	if c.none || n <= 0 { // Envoy refuses an increment of 0, which the SDK turns into a panic
		return
	}
	defer func() {
		if recover() != nil {
			c.none = true
		}
	}()
	m, ok := c.byName[name]
	if !ok {
		m = proxywasm.DefineCounterMetric(name)
		if c.byName == nil {
			c.byName = map[string]proxywasm.MetricCounter{}
		}
		c.byName[name] = m
	}
	m.Increment(uint64(n))
}
