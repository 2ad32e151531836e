package core

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
)

// vm is the shared data of a host's process with its workers, as far as ticks and polls go.
type vm struct {
	t       *testing.T
	data    []byte
	version uint32
	store   map[string]map[string]string // flags by home
	polled  []string                     // homes that were asked for, since it was last cleared
	broken  string                       // a home that gives no answer
}

func (v *vm) apply(w *Worker, now bucket.Millis, fx []Effect) {
	for _, f := range fx {
		switch f.Kind {
		case ShareIf:
			ok := f.Version == v.version
			if ok {
				v.data, v.version = bytes.Clone(f.Body), v.version+1
			}
			v.apply(w, now, w.Step(Event{Kind: SharedStored, Now: now, OK: ok}))
		case Share:
			v.data, v.version = bytes.Clone(f.Body), v.version+1
		case Call:
			v.apply(w, now, w.Step(Event{Kind: StoreReply, Now: now, Tag: f.Call.Tag, Status: "200", Body: []byte(v.answer(string(f.Call.Request.Body)))}))
		case Tell:
			v.apply(w, now, w.Step(*f.Event))
		}
	}
}

func (v *vm) answer(body string) string {
	var out []string
	for _, one := range strings.Split(body, `"HGETALL","`)[1:] {
		home, _, _ := strings.Cut(one, `"`)
		v.polled = append(v.polled, home)
		if home == v.broken {
			out = append(out, `{"error":"CLUSTERDOWN x"}`)
			continue
		}
		var values []script.Value
		for field, value := range v.store[home] {
			values = append(values, script.Value{Text: field}, script.Value{Text: value})
		}
		out = append(out, result(values))
	}
	if len(out) == 1 {
		return out[0]
	}
	return "[" + strings.Join(out, ",") + "]"
}

func (v *vm) tick(now bucket.Millis, ws ...*Worker) {
	for _, w := range ws {
		v.apply(w, now, w.Step(Event{Kind: Tick, Now: now, OK: true, Shared: v.data, Version: v.version}))
	}
}

func (v *vm) call(w *Worker, org string, now bucket.Millis) State {
	s := w.NewStream(1)
	e := ofOrg(org)
	e.Now = now
	v.apply(w, now, s.Step(e))
	return s.State()
}

// TestFlagsOfOrgsReachEveryWorker: what one worker has had calls of is polled by whichever polls, and what
// is found stops calls of that org at all workers.
func TestFlagsOfOrgsReachEveryWorker(t *testing.T) {
	home := func(org string) string { return "test:1:{o." + org + "}:ctl" }
	v := &vm{t: t, version: 1, store: map[string]map[string]string{
		home("acme"):     {"key:k": script.KillValue(0, "ann", "fire")},
		home("idle"):     {"key:k": script.KillValue(0, "ann", "fire")},
		"test:1:{g}:ctl": {"model:x": script.KillValue(0, "ann", "all"), "org:umbra": script.KillValue(0, "ann", "no umbra")},
	}}
	a, b := newSharded(t, "closed", "closed"), newSharded(t, "closed", "closed")
	now := bucket.Millis(1_000_000)
	v.tick(now, a, b)
	if got := v.call(b, "acme", now); got != Reading {
		t.Fatalf("before any poll of the org: %v", got)
	}
	v.call(b, "other", now)
	for range 20 {
		now += 50
		v.tick(now, a, b)
	}
	for name, w := range map[string]*Worker{"a": a, "b": b} {
		for org, want := range map[string]State{"acme": Refused, "other": Reading, "umbra": Refused, "": Reading} {
			if got := v.call(w, org, now); got != want {
				t.Errorf("worker %s, org %q: %v, want %v", name, org, got, want)
			}
		}
	}
	if n := len(a.kills.flags); n != 3 {
		t.Errorf("%d flags are known: %v", n, a.kills.flags)
	}
	// Each is asked for once in a poll, by one worker.
	v.polled = nil
	for range 20 {
		now += 50
		v.tick(now, a, b)
	}
	times := map[string]int{}
	for _, h := range v.polled {
		times[h]++
	}
	for _, h := range []string{home("acme"), home("other"), home("umbra"), "test:1:{g}:ctl"} {
		if times[h] < 3 || times[h] > 5 {
			t.Errorf("in a second with a poll of 250ms %s was asked for %d times", h, times[h])
		}
	}
	if times[home("idle")] > 0 {
		t.Error("an org without calls was asked for")
	}
	// A shard that gives no answer keeps the flags last known; those of the others move on.
	v.broken = home("acme")
	delete(v.store["test:1:{g}:ctl"], "org:umbra")
	delete(v.store[home("acme")], "key:k")
	for range 20 {
		now += 50
		v.tick(now, a, b)
	}
	if x, y := v.call(a, "acme", now), v.call(a, "umbra", now); x != Refused || y != Reading {
		t.Errorf("acme, whose shard is down: %v; umbra, which was resumed: %v", x, y)
	}
	v.broken = ""
	for range 20 {
		now += 50
		v.tick(now, a, b)
	}
	if x := v.call(b, "acme", now); x != Reading {
		t.Errorf("acme, which was resumed: %v", x)
	}
	// Who has had no call for long is forgotten.
	for range 3 {
		now += orgFor
		v.tick(now, a, b)
	}
	v.polled = nil
	now += 1000
	v.tick(now, a, b)
	if len(v.polled) != 1 {
		t.Errorf("after a long time %q are polled", v.polled)
	}
}

// TestPolledOrgsAreBounded: whatever orgs callers think of, a poll is one call that a bridge takes, of
// those that were seen last.
func TestPolledOrgsAreBounded(t *testing.T) {
	v := &vm{t: t, version: 1}
	a, b := newSharded(t, "closed", "closed"), newSharded(t, "closed", "closed")
	now := bucket.Millis(1_000_000)
	for i := range 2000 {
		now++
		v.call([]*Worker{a, b}[i%2], fmt.Sprint("org", i), now)
		if i%100 == 0 {
			v.tick(now, a, b)
		}
		for _, w := range []*Worker{a, b} {
			if n := len(w.kills.orgs.of); n > orgCap {
				t.Fatalf("%d orgs after %d", n, i)
			}
		}
	}
	for range 30 {
		now += 50
		v.tick(now, a, b)
	}
	v.polled = nil
	now += 1000
	v.tick(now, a, b)
	seen := map[string]bool{}
	for _, h := range v.polled {
		seen[h] = true
	}
	if len(v.polled) > 2*(orgCap+1) || len(seen) != orgCap+1 || !seen["test:1:{o.org1999}:ctl"] || !seen["test:1:{o.org1800}:ctl"] || seen["test:1:{o.org100}:ctl"] {
		t.Errorf("%d are polled, %d of them different", len(v.polled), len(seen))
	}
	if n := len(v.data); n > (orgCap+1)*100 {
		t.Errorf("%d bytes are shared", n)
	}
}

// TestSharedFlagsAreRead: what is published is read as it was, and rubbish does nothing.
func TestSharedFlagsAreRead(t *testing.T) {
	var x, y killTable
	x.polled = 77
	x.set(KillFlag{"", "global:all", "5|ann|all of it", 5})
	x.set(KillFlag{"ns:1:{o.a}:ctl", "key:k", "0|ann|", 0})
	x.orgs.see("ns:1:{o.a}:ctl", 70, 0)
	x.orgs.see("ns:1:{o.b}:ctl", 71, 0)
	y.decode(x.encode())
	if got, want := string(y.encode()), string(x.encode()); got != want {
		t.Errorf("read\n%s\nof\n%s", got, want)
	}
	if y.orgs.of["ns:1:{o.b}:ctl"] != (orgSeen{71, 71}) || len(y.flags) != 2 {
		t.Errorf("%+v", y)
	}
	for _, text := range []string{"", "x", "\n", "5", "5\n\t", "5\n\t\t\n\t\t\t\n\ta", "5\n\ta\tb\n\ta\tb\tc\td\n", "\t\t\n5"} {
		var z killTable
		z.decode([]byte(text))
		if len(z.flags)+len(z.orgs.of) != 0 {
			t.Errorf("%q was read as %+v", text, z)
		}
	}
}

// FuzzSharedFlags: whatever stands in the shared data, what is kept of it is bounded, and is read again as
// it is written.
func FuzzSharedFlags(f *testing.F) {
	f.Add([]byte("77\nglobal:all\t5|ann|all of it\n\tns:1:{o.a}:ctl\t70\n\tns:1:{o.a}:ctl\tkey:k\t0|ann|\n"))
	f.Add([]byte("0\n\t0||\n"))
	f.Add([]byte("-5\n\t\t\n\ta\t-9223372036854775808\n\tb\t9223372036854775807\n"))
	f.Add([]byte(strings.Repeat("\ta\tkey:x\t0|a|b\n", 3)))
	f.Fuzz(func(t *testing.T, data []byte) {
		var a, b killTable
		a.decode(data)
		if len(a.flags) > killCap || len(a.orgs.of) > orgCap {
			t.Fatalf("%d flags, %d orgs", len(a.flags), len(a.orgs.of))
		}
		b.decode(a.encode())
		if x, y := string(a.encode()), string(b.encode()); x != y {
			t.Fatalf("%q was read again as %q", x, y)
		}
		a.orgs.forget(1000)
		a.orgs.news(1000, 250)
	})
}
