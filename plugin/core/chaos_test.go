package core

import (
	"math/rand/v2"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/callout"
	"github.com/emmer-proxy/emmer/plugin/config"
)

// TestManyCallsAtRandom lets up to a few dozen calls of two shards run at once in one worker: they are granted
// now or later, refused, or get no answer; they wait, pass by shares, end, leave, meet kill flags and
// faults, each of which loses the rest of what its step asked for; the clock is set on and back. When all have
// ended nobody waits, nothing is renewed, no share counts a call, and each reservation that a shard may hold was
// settled there under its id.
func TestManyCallsAtRandom(t *testing.T) {
	parkedOnce, passedLocally, faults := 0, 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 3))
		w := newSharded(t, "local", "local",
			`{"name": "rps", "by": ["key"], "count": "requests", "bucket": {"rate": "6000/m", "burst": 500}, "queue": "5s", "failure": "local"}`,
			`{"name": "all", "by": ["model"], "count": "requests", "bucket": {"rate": "6000/m", "burst": 500}, "queue": "5s", "failure": "local"}`,
			`{"name": "parallel", "by": ["key"], "count": "concurrency", "max": 300, "failure": "local"}`)
		w.parked.most = config.Park{Calls: 5, Bytes: 1 << 20}
		type exchange struct {
			s       *Stream
			calls   []StoreCall
			resumes int
			said    int
			over    bool
		}
		now, clock := bucket.Millis(1_000_000), bucket.Millis(0)
		live := map[uint64]*exchange{}
		var all []*exchange
		mayHold, settled := map[leaseID]bool{}, map[leaseID]bool{}
		type sent struct{ call StoreCall }
		var outgoing []sent
		var release []Effect
		var worker func(fx []Effect)
		worker = func(fx []Effect) {
			for _, f := range fx {
				switch f.Kind {
				case Call:
					outgoing = append(outgoing, sent{*f.Call})
				case Release:
					release = append(release, f)
				case Wake:
					worker(w.Step(Event{Kind: Flush, Now: now}))
				}
			}
		}
		var apply func(x *exchange, fx []Effect)
		apply = func(x *exchange, fx []Effect) {
			lost := -1
			if r.IntN(12) == 0 && len(fx) > 0 {
				lost = r.IntN(len(fx))
				faults++
			}
			for i, f := range fx {
				if i == lost {
					apply(x, x.s.Step(Event{Kind: Recovered, Now: now}))
					return
				}
				switch f.Kind {
				case Call:
					x.calls = append(x.calls, *f.Call)
				case Answer:
					x.said++
				case ResumeRequest:
					x.resumes++
				case Tell:
					switch f.Event.Kind {
					case Settle:
						settled[leaseOf(f.Event.Job)] = true
					case Queued:
						parkedOnce++
					case Drawn:
						passedLocally++
					}
					worker(w.Step(*f.Event))
				}
			}
		}
		end := func(x *exchange) {
			x.over = true
			delete(live, x.s.n)
			apply(x, x.s.Step(Event{Kind: StreamDone, Now: now}))
		}
		pick := func() *exchange {
			for i, k := 0, r.IntN(max(len(all), 1)); i < len(all); i++ {
				if x := all[(i+k)%len(all)]; !x.over {
					return x
				}
			}
			return nil
		}
		answer := func(x *exchange, down bool) {
			if len(x.calls) == 0 {
				return
			}
			c := x.calls[0]
			x.calls = x.calls[1:]
			p := &x.s.parts[c.Tag]
			e := storeFails(now, c.Tag, callout.Unavailable)
			switch k := r.IntN(10); {
			case down && r.IntN(2) == 0:
				e = storeFails(now, c.Tag, callout.Unsent)
			case down || k == 0:
				mayHold[leaseID{x.s.id, p.layout.Tag}] = true
			case p.watches():
			case k < 5:
				mayHold[leaseID{x.s.id, p.layout.Tag}] = true
				e = parkedPart(p, int64(r.IntN(4000)))
			case k < 8:
				mayHold[leaseID{x.s.id, p.layout.Tag}] = true
				e = says(p, bucket.Granted, 0, 0, 100)
			default:
				e = says(p, bucket.Denied, 1, int64(1+r.IntN(90)), 0)
			}
			e.Now, e.Tag = now, c.Tag
			apply(x, x.s.Step(e))
		}
		down := false
		step := func(k int) {
			switch {
			case k < 4 && len(live) < 30:
				x := &exchange{s: w.NewStream(uint64(len(all) + 1))}
				all, live[x.s.n] = append(all, x), x
				h := ofOrg([]string{"acme", "umbra"}[r.IntN(2)])
				h.Now, h.Head.Headers[0][1] = now, []string{"a", "b"}[r.IntN(2)]
				apply(x, x.s.Step(h))
				if x.s.State() == Reading {
					b := bodyEvent(chat)
					b.Now = now
					apply(x, x.s.Step(b))
				}
			case k < 12:
				if x := pick(); x != nil {
					answer(x, down)
				}
			case k < 14:
				if x := pick(); x != nil && x.s.State() == Forwarded {
					e := responseEvent()
					e.Now = now
					apply(x, x.s.Step(e))
				}
			case k < 16:
				if x := pick(); x != nil {
					end(x)
				}
			case k == 16:
				down = !down
			case k == 17 && r.IntN(4) == 0:
				clock += bucket.Millis(r.IntN(8_000_000) - 4_000_000)
			case k == 18 && r.IntN(8) == 0:
				w.Step(Event{Kind: KillSeen, Flag: KillFlag{Field: "key:a", Value: "0|ann|fire", Until: now + 500}})
			}
		}
		tick := func() {
			worker(w.Step(Event{Kind: Tick, Now: now}))
			todo := release
			release = nil
			for _, f := range todo {
				if x := live[uint64(f.N)]; x != nil {
					e := *f.Event
					e.Now = now
					apply(x, x.s.Step(e))
				}
			}
			calls := outgoing
			outgoing = nil
			for _, o := range calls {
				c := w.calls[o.call.Tag]
				switch {
				case len(c.jobs) == 1 && !down:
					worker(w.Step(storeReply(now, o.call.Tag, done(c.sent[0].Nonce, int64(bucket.SettledLive), 9000, 593))))
				default:
					worker(w.Step(storeFails(now, o.call.Tag, callout.Unavailable)))
				}
			}
		}
		base := now
		for i := range 600 {
			now = base + bucket.Millis(i*10) + clock
			step(r.IntN(19))
			tick()
		}
		for x := pick(); x != nil; x = pick() {
			end(x)
		}
		for _, x := range all {
			if x.said > 1 && x.s.State() != Closed || x.said > 0 && x.resumes > 0 && x.s.record.decision != "internal" {
				t.Errorf("seed %d: %d answers and %d resumes: %+v", seed, x.said, x.resumes, x.s.record)
			}
		}
		if n := len(w.parked.places); n != 0 || w.parked.bytes != 0 {
			t.Errorf("seed %d: %d wait", seed, n)
		}
		if n := len(w.leases.byID); n != 0 || w.leases.first != nil {
			t.Errorf("seed %d: %d leases are renewed", seed, n)
		}
		if w.shares.running != 0 {
			t.Errorf("seed %d: %d calls run", seed, w.shares.running)
		}
		for _, s := range w.shares.byID {
			if s.running != 0 || s.kind == bucket.Concurrency && s.used != 0 {
				t.Errorf("seed %d: %+v", seed, s)
			}
		}
		for id := range mayHold {
			if !settled[id] {
				t.Errorf("seed %d: %v was not settled", seed, id)
			}
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d waited, %d draws, %d faults", parkedOnce, passedLocally, faults)
}
