package bench

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// fault takes the store away and gives it back.
type fault struct {
	name        string
	break_, fix func(context.Context) error
}

func faultsOf(s *stack) []fault {
	return []fault{
		{
			"redis-stopped", // accepts connections, never answers
			func(context.Context) error { return s.redis.signal(syscall.SIGSTOP) },
			func(context.Context) error { return s.redis.signal(syscall.SIGCONT) },
		},
		{
			"redis-killed",
			func(context.Context) error { s.redis.kill(); return nil },
			s.startRedis,
		},
		{
			"bridge-killed",
			func(context.Context) error { s.bridge.kill(); return nil },
			s.startBridge,
		},
	}
}

// patience is how long a service may take to return before that is an error.
const patience = 30 * time.Second

// measureFaults measures how long clients wait while the store is away, and how long the service
// takes to return after it is back.
func measureFaults(ctx context.Context, o Options, s *stack) ([]Line, error) {
	const size, conns = 1 << 10, 16
	request := chatRequest(chatBody(size))
	var lines []Line
	for _, hold := range o.Holds {
		c := cell{size, conns, Filter, hold}
		load := Load{Addr: s.envoy.Addr(c.listener()), Request: request, Conns: conns, For: max(o.For, time.Second), Timeout: 10 * time.Second}
		for _, f := range faultsOf(s) {
			if err := f.break_(ctx); err != nil {
				return lines, fmt.Errorf("%s: %w", f.name, err)
			}
			sample := load.Run()
			if err := f.fix(ctx); err != nil {
				return lines, fmt.Errorf("%s: back: %w", f.name, err)
			}
			back, err := awaitService(ctx, load)
			if err != nil {
				return lines, fmt.Errorf("%s: %w", f.name, err)
			}
			p99 := sample.Percentile(99)
			line := Line{
				Bench: f.name, Hold: hold, Bytes: size, Conns: conns, System: Filter,
				P50: sample.Percentile(50).Microseconds(), P99: p99.Microseconds(), RPS: round2(sample.RPS()),
				P99OverTimeout: ptr((p99 - o.Timeout).Microseconds()),
				BackMillis:     ptr(back.Milliseconds()),
				Statuses:       sample.Statuses,
			}
			for _, n := range sample.Errors {
				line.Wrong += n
			}
			lines = append(lines, line)
		}
		fmt.Fprintf(o.Notes, "bench: faults with hold %s done\n", hold)
	}
	return lines, nil
}

// awaitService is the time until a probe of one request on each connection is all 200.
func awaitService(ctx context.Context, load Load) (time.Duration, error) {
	start := time.Now()
	probe := load
	probe.Most, probe.For = load.Conns, patience
	for time.Since(start) < patience {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		sample := probe.Run()
		if sample.Only("200") {
			return time.Since(start), nil
		}
	}
	return 0, fmt.Errorf("the service has not returned in %v", patience)
}
