package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// Result is the outcome of one scenario in one mode.
type Result struct {
	Name string // scenario/mode
	Err  error  // nil = all held; ErrNoProbe = it was not run, for it needs a probe that is not registered
}

// group is what shares gateway processes.
type group struct {
	workers  int
	plans    []plan
	gateways []gateway
	worlds   []*world
}

// plan is one scenario in one mode, before anything of it runs.
type plan struct {
	scenario *Scenario
	mode     string
	updates  *updates
}

// prepare reads the files and groups them by what they need of a gateway.
func prepare(o *Options) ([]*group, error) {
	o.complete()
	scenarios, err := Load(o.Files...)
	if err != nil {
		return nil, err
	}
	var groups []*group
	open := map[[2]int]*group{}
	for _, s := range scenarios {
		modes, err := s.modes(o.modeNames())
		if err != nil {
			return nil, err
		}
		found := &updates{lines: map[int]string{}, files: map[string]string{}}
		key := [2]int{s.Settings.Workers, s.Settings.Gateways}
		for _, mode := range modes {
			g := open[key]
			if g == nil || len(g.plans) >= o.PerGateway {
				g = &group{workers: s.Settings.Workers, gateways: make([]gateway, s.Settings.Gateways)}
				open[key] = g
				groups = append(groups, g)
			}
			g.plans = append(g.plans, plan{s, mode, found})
		}
	}
	return groups, nil
}

// open starts all that the group needs: upstreams and bridges, then gateways with a door for each
// world. close it even after an error.
func (g *group) open(ctx context.Context, o *Options) error {
	var doors []door
	for _, p := range g.plans {
		w, err := newWorld(p.scenario, p.mode, o)
		g.worlds = append(g.worlds, w)
		if err != nil {
			return err
		}
		w.updates = p.updates
		doors = append(doors, w.door())
	}
	for i := range g.gateways {
		started, err := start(ctx, o, g.workers, doors)
		if err != nil {
			return err
		}
		g.gateways[i] = started
	}
	for _, w := range g.worlds {
		w.gateways = g.gateways
	}
	return nil
}

// close stops the gateways, and then what they talk to.
func (g *group) close() {
	for _, gw := range g.gateways {
		if gw != nil {
			gw.close()
		}
	}
	for _, w := range g.worlds {
		w.close()
	}
}

// alone says whether a world must not run beside others: counters belong to the whole gateway.
func (w *world) alone() bool {
	return slices.ContainsFunc(w.s.steps, func(st step) bool {
		return len(st.expect.subject) > 0 && (st.expect.subject[0] == "metric" || st.expect.subject[0] == "gateway")
	})
}

// RunAll runs every scenario in each of its modes as a subtest. Those that look at counters run
// first and one by one, the others then as many at once as go test allows.
func RunAll(t *testing.T, o Options) {
	t.Helper()
	groups, err := prepare(&o)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range groups {
		t.Run(fmt.Sprintf("workers=%d#%d", g.workers, i+1), func(t *testing.T) {
			t.Cleanup(g.close) // runs after the parallel subtests
			if err := g.open(t.Context(), &o); err != nil {
				t.Fatal(err)
			}
			for _, w := range g.worlds {
				t.Run(w.name, func(t *testing.T) {
					if !w.alone() {
						t.Parallel()
					}
					if err := w.play(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
	if !o.Update {
		return
	}
	for _, g := range groups {
		for _, w := range g.worlds {
			if err := w.updates.write(w.s); err != nil {
				t.Error(err)
			}
		}
	}
}

// Run runs every scenario in each of its modes, one after the other, and tells each outcome as soon
// as it is known. The error is about what kept scenarios from running.
func Run(ctx context.Context, o Options, tell func(Result)) error {
	groups, err := prepare(&o)
	if err != nil {
		return err
	}
	var faults []error
	for _, g := range groups {
		err := g.open(ctx, &o)
		for _, w := range g.worlds {
			if err != nil {
				break
			}
			tell(Result{Name: w.name, Err: w.play(ctx)})
			if o.Update {
				faults = append(faults, w.updates.write(w.s))
			}
		}
		g.close()
		if err != nil {
			return err
		}
	}
	return errors.Join(faults...)
}
