package hostsim

import (
	"context"
	"errors"
)

// Host is a running simulator.
type Host struct{}

// Start compiles and starts the module and opens the listeners.
func Start(ctx context.Context, o Options) (*Host, error) { return nil, errors.New("hostsim: no engine in this build") }

// Addr returns host:port of a listener, "" for an unknown name.
func (h *Host) Addr(listener string) string { return "" }

// Metrics returns the module's metrics by their own names, summed over all VMs.
func (h *Host) Metrics() map[string]int64 { return nil }

// AccessLog returns the lines of a listener so far, one per finished stream.
func (h *Host) AccessLog(listener string) []string { return nil }

// Logs returns what the module logged, "level: message".
func (h *Host) Logs() []string { return nil }

// Violations lists what the module did against the ABI's or Envoy's rules.
func (h *Host) Violations() []string { return nil }

// Memory returns the linear memory of each VM in bytes.
func (h *Host) Memory() map[string]uint64 { return nil }

// Close ends all streams, listeners, VMs and goroutines.
func (h *Host) Close() {}
