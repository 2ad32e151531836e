package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// The systems that are compared.
const (
	Bare   = "bare"  // Envoy with nothing but its router
	Floor  = "floor" // the least that a filter of this architecture can do
	Filter = "emmer" // the filter that is measured
)

// Options say what to measure. All paths must exist.
type Options struct {
	Redis  string // program
	Bridge string // program
	Floor  string // module
	Filter string // module

	Configs  map[string][]byte // the filter's configuration for each way to hold
	TokenEnv string            // variable of the filter's VM that holds the bridge's token
	Timeout  time.Duration     // the store timeout of these configurations

	Holds   []string // "pair", "flag"
	Sizes   []int    // of the body, in bytes
	Conns   []int
	Workers int           // of Envoy
	Rounds  int           // of each measurement; figures are the rounds' medians; 0 = no measurement but the faults
	For     time.Duration // of one measurement in one round

	Faults bool      // also measure with the store away
	Out    io.Writer // JSON lines, then tables
	Notes  io.Writer // what is going on
}

// Line is one result. A figure that does not apply is left out.
type Line struct {
	Bench  string  `json:"bench"`
	Hold   string  `json:"hold,omitempty"`
	Bytes  int     `json:"bytes"`
	Conns  int     `json:"conns"`
	System string  `json:"system"`
	P50    int64   `json:"p50_us"`
	P99    int64   `json:"p99_us"`
	RPS    float64 `json:"rps"`

	AddedP50 *int64 `json:"added_p50_us,omitempty"` // over bare Envoy
	AddedP99 *int64 `json:"added_p99_us,omitempty"`
	// RatioToFloor is the filter's added p50 over the floor's.
	RatioToFloor *float64 `json:"ratio_to_floor,omitempty"`
	// NsPerByte is what the filter's p50 has over the floor's, for each byte of a large body.
	NsPerByte *float64 `json:"ns_per_byte,omitempty"`

	// CPU is what a request costs in each process, all its callouts included.
	CPU map[string]float64 `json:"cpu_us,omitempty"`

	// Wrong counts requests that were not answered with 200.
	Wrong int `json:"wrong,omitempty"`

	// Of faults: how far p99 lies over the store timeout, and how long the service took to return.
	P99OverTimeout *int64         `json:"p99_over_timeout_us,omitempty"`
	BackMillis     *int64         `json:"back_ms,omitempty"`
	Statuses       map[string]int `json:"statuses,omitempty"`
}

// cell is one combination that is measured.
type cell struct {
	size, conns  int
	system, hold string
}

func (c cell) listener() string {
	if c.hold == "" {
		return c.system
	}
	return c.system + "-" + c.hold
}

// Run starts the stack, measures everything, and writes the results.
func Run(ctx context.Context, o Options) ([]Line, error) {
	fmt.Fprintln(o.Notes, "bench: starting Redis, emmer-bridge, an upstream and Envoy")
	s, err := startStack(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var lines []Line
	if o.Rounds > 0 {
		lines, err = measure(ctx, o, s)
	}
	if err == nil && o.Faults {
		var more []Line
		more, err = measureFaults(ctx, o, s)
		lines = append(lines, more...)
	}
	if err != nil {
		return lines, err
	}
	encoder := json.NewEncoder(o.Out)
	for _, line := range lines {
		if err := encoder.Encode(line); err != nil {
			return lines, err
		}
	}
	return lines, table(o.Out, lines)
}

// measure goes round by round through all cells, the systems of a cell one right after the other
// and in another order each round, so that a slow minute of the machine hits all of them.
func measure(ctx context.Context, o Options, s *stack) ([]Line, error) {
	groups := groupsOf(o)
	rounds := map[cell][]Sample{}
	for round := range o.Rounds + 1 { // round 0 warms up: connections, scripts, caches
		each := o.For
		if round == 0 {
			each = min(o.For, 300*time.Millisecond)
		}
		for _, group := range groups {
			request := chatRequest(chatBody(group[0].size))
			for i := range group {
				c := group[(i+round)%len(group)]
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				before := s.cpu()
				sample := Load{Addr: s.envoy.Addr(c.listener()), Request: request, Conns: c.conns, For: each, Timeout: 10 * time.Second}.Run()
				sample.CPU = since(before, s.cpu())
				if len(sample.Latencies) == 0 {
					return nil, fmt.Errorf("%s: no answer at all (%v); Envoy's log:\n%s", c.listener(), sample.Errors, s.envoy.Logs())
				}
				if !sample.Only("200") {
					fmt.Fprintf(o.Notes, "bench: %s, %d connections: statuses %v, errors %v\n", c.listener(), c.conns, sample.Statuses, sample.Errors)
				}
				if round > 0 {
					rounds[c] = append(rounds[c], sample)
				}
			}
		}
		fmt.Fprintf(o.Notes, "bench: round %d of %d done\n", round, o.Rounds)
	}
	var lines []Line
	for _, group := range groups {
		lines = append(lines, linesOf(group, rounds)...)
	}
	return lines, nil
}

// groupsOf is the cells, those in one group to be compared with each other; bare Envoy first.
func groupsOf(o Options) [][]cell {
	var groups [][]cell
	for _, size := range o.Sizes {
		for _, conns := range o.Conns {
			group := []cell{{size, conns, Bare, ""}}
			for _, hold := range o.Holds {
				group = append(group, cell{size, conns, Floor, hold}, cell{size, conns, Filter, hold})
			}
			groups = append(groups, group)
		}
	}
	return groups
}

// perByteFrom is the size of a body from which a cost for each byte is told; on a smaller one the
// cost of a request, whatever its size, would hide it.
const perByteFrom = 64 << 10

// linesOf compares the systems of a group.
func linesOf(group []cell, rounds map[cell][]Sample) []Line {
	var lines []Line
	var bare Line
	floors := map[string]Line{}
	for _, c := range group {
		l := Line{
			Bench: "chat", Hold: c.hold, Bytes: c.size, Conns: c.conns, System: c.system,
			P50: micros(rounds[c], 50), P99: micros(rounds[c], 99),
			RPS: round2(median(rounds[c], Sample.RPS)), CPU: perCall(rounds[c]),
		}
		for _, s := range rounds[c] {
			l.Wrong += wrong(s)
		}
		if c.system == Bare {
			bare = l
		} else {
			l.AddedP50, l.AddedP99 = ptr(l.P50-bare.P50), ptr(l.P99-bare.P99)
		}
		switch c.system {
		case Floor:
			floors[c.hold] = l
		case Filter:
			if floor, ok := floors[c.hold]; ok {
				if *floor.AddedP50 > 0 {
					l.RatioToFloor = ptr(round2(float64(*l.AddedP50) / float64(*floor.AddedP50)))
				}
				if c.size >= perByteFrom {
					l.NsPerByte = ptr(round2(float64(l.P50-floor.P50) * 1000 / float64(c.size)))
				}
			}
		}
		lines = append(lines, l)
	}
	return lines
}

func wrong(s Sample) int {
	n := 0
	for status, k := range s.Statuses {
		if status != "200" {
			n += k
		}
	}
	for _, k := range s.Errors {
		n += k
	}
	return n
}

func micros(rounds []Sample, percentile float64) int64 {
	return int64(median(rounds, func(s Sample) float64 { return float64(s.Percentile(percentile).Microseconds()) }))
}

// median of a figure over the rounds; of an even number, the mean of the middle two.
func median(rounds []Sample, figure func(Sample) float64) float64 {
	if len(rounds) == 0 {
		return 0
	}
	var all []float64
	for _, s := range rounds {
		all = append(all, figure(s))
	}
	slices.Sort(all)
	middle := len(all) / 2
	if len(all)%2 == 0 {
		return (all[middle-1] + all[middle]) / 2
	}
	return all[middle]
}

func ptr[T any](v T) *T { return &v }

func round2(v float64) float64 {
	if v < 0 {
		return -round2(-v)
	}
	return float64(int64(v*100+0.5)) / 100
}

// table prints the lines for people.
func table(out io.Writer, lines []Line) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nbench\tbytes\tconns\tsystem\tp50 us\tp99 us\tadded p50\tadded p99\trps\tto floor\tns/byte\tcpu us: envoy\tbridge\tredis\twrong\t")
	for _, l := range lines {
		if l.P99OverTimeout != nil {
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%d\t%d\t%s\t%s\t%.0f\t%s\t%s\t%.0f\t%.0f\t%.0f\t%d\t\n", l.Bench, l.Bytes, l.Conns, cell{system: l.System, hold: l.Hold}.listener(),
			l.P50, l.P99, show(l.AddedP50), show(l.AddedP99), l.RPS, show(l.RatioToFloor), show(l.NsPerByte),
			l.CPU["envoy"], l.CPU["bridge"], l.CPU["redis"], l.Wrong)
	}
	first := true
	for _, l := range lines {
		if l.P99OverTimeout == nil {
			continue
		}
		if first {
			fmt.Fprintln(w, "\nfault\tconns\tsystem\tp50 us\tp99 us\tp99 over the timeout\tback after ms\tanswers\t")
			first = false
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%d\t%s\t%s\t%v\t\n", l.Bench, l.Conns, cell{system: l.System, hold: l.Hold}.listener(),
			l.P50, l.P99, show(l.P99OverTimeout), show(l.BackMillis), l.Statuses)
	}
	return w.Flush()
}

func show[T any](v *T) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}
