package hostsim

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// Many exchanges at once, of all the right kinds, each third with a client that leaves somewhere: every answer that
// arrives is the right one, every context ends, nothing breaks a rule.
func TestManyAtOnce(t *testing.T) {
	r := startRig(t, nil)
	modes := []string{"", "keep=1", "now=queue", "keep=1;now=queue", "grow=100", "grow=100;now=queue", "m=pass", "deny=1", "deny=1;by=b",
		"m=refuse", "resp=queue", "m=swallow", "to=siteB", "to=h2", "ms=5;keep=1", "ms=5;grow=100;resp=queue", "ms=5;deny=1;now=queue"}
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rng := rand.New(rand.NewPCG(7, uint64(g)))
			for range 60 {
				mode := modes[rng.IntN(len(modes))]
				c := call{options: mode, h2: rng.IntN(2) == 0, chunked: rng.IntN(2) == 0}
				size := []int{0, 1, 900, 20000, 200000}[rng.IntN(5)]
				if size > 0 {
					c.body = bytes.Repeat([]byte("q"), size)
					if c.chunked && rng.IntN(3) == 0 && mode != "m=swallow" { // swallow cannot edit a body that trailers end
						c.trailer = map[string]string{"X-End": "1"}
					}
				}
				if rng.IntN(3) == 0 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.IntN(12000))*time.Microsecond)
					defer cancel()
					c.ctx = ctx
				}
				got := r.do(c)
				if c.ctx != nil && (got.failed != nil || got.err != nil) {
					continue
				}
				o := r.expected(mode, size)
				if got.code != o.code || got.err != nil || got.body != o.body {
					t.Errorf("%q size=%d chunked=%v h2=%v trailer=%v: got %v, want %+v", mode, size, c.chunked, c.h2, c.trailer, got, o)
				}
			}
		}()
	}
	wg.Wait()
	r.settled()
	r.clean()
	for _, w := range r.threads() {
		w.run(func() {
			for _, v := range w.vms {
				if len(v.contexts) != len(v.roots) {
					t.Errorf("%s: %d contexts, %d roots", w.name, len(v.contexts), len(v.roots))
				}
			}
		})
	}
}

type outcome struct {
	code int
	body string
}

// expected is what a mode must come to.
func (r *rig) expected(mode string, size int) outcome {
	switch mode {
	case "deny=1", "deny=1;by=b", "ms=5;deny=1;now=queue":
		return outcome{429, "quota\n"}
	case "m=refuse":
		return outcome{429, "early\n"}
	case "grow=100", "grow=100;now=queue", "ms=5;grow=100;resp=queue":
		if size > 0 {
			size += 100
		}
	case "to=siteB":
		if size > 0 { // without a body a has the headers, and only b edits the route
			return outcome{200, fmt.Sprintf("siteB:%d", size)}
		}
	}
	return outcome{200, fmt.Sprintf("siteA:%d", size)}
}
