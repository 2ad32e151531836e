package core

import (
	"strconv"
	"strings"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
	"github.com/emmer-proxy/emmer/plugin/callout"
)

// KillFlag is one flag of the store: Field is "scope:id", Value "until_ms|actor|reason". Home is the
// key that it stands in if that is the one of an org, whose calls alone it stops then.
type KillFlag struct {
	Home, Field, Value string
	Until              bucket.Millis // 0 = until it is lifted
}

func parseFlag(home, field, value string) (KillFlag, bool) {
	until, _, _, ok := script.ParseKill(value)
	return KillFlag{Home: home, Field: field, Value: value, Until: until}, ok
}

// killCap bounds the table: flags are set by people and rules, not by traffic.
const killCap = 1024

// killTable is what this worker knows of the store's flags.
type killTable struct {
	flags   map[flagID]KillFlag
	orgs    orgTable
	polled  bucket.Millis // when the flags were last asked for, by any worker
	version uint32        // of the shared data last read
	changes uint64        // how often a flag was set
	claims  bool          // what is being stored claims the next poll
}

type flagID struct{ home, field string }

// any is false in the usual case, where not even the names of flags need to be made.
func (t *killTable) any() bool { return len(t.flags) > 0 }

// find looks among the flags that stop all calls, and among those of an org.
func (t *killTable) find(names []string, home string, now bucket.Millis) (KillFlag, bool) {
	if len(t.flags) == 0 {
		return KillFlag{}, false
	}
	for _, name := range names {
		id := flagID{field: script.FieldOf(name)}
		k, ok := t.flags[id]
		if id.home = home; !ok || k.over(now) {
			k, ok = t.flags[id]
		}
		if ok && !k.over(now) {
			k.Field = name // as the caller wrote it
			return k, true
		}
	}
	return KillFlag{}, false
}

func (k KillFlag) over(now bucket.Millis) bool { return k.Until != 0 && k.Until <= now }

// flagFields are the fields that the store keeps the named flags under: a client's bytes never get
// there as they are. The list that was given is left as it is.
func flagFields(names []string) []string {
	fields := names
	for i, name := range names {
		field := script.FieldOf(name)
		if field == name {
			continue
		}
		if &fields[0] == &names[0] {
			fields = append([]string(nil), names...)
		}
		fields[i] = field
	}
	return fields
}

func (t *killTable) set(f KillFlag) {
	if t.flags == nil {
		t.flags = map[flagID]KillFlag{}
	}
	if len(t.flags) < killCap {
		t.flags[flagID{f.Home, f.Field}] = f
		t.changes++
	}
}

// pollKills takes what is published and, when that is older than the poll, tries to be the one
// that asks the store: whoever stores a newer time first.
func (w *Worker) pollKills(e *Event, fx *effects) {
	t := &w.kills
	if len(e.Shared) > 0 && e.Version != t.version {
		t.decode(e.Shared)
		t.version = e.Version
	}
	// A clock that was set back must not stop the poll.
	age := e.Now - t.polled
	t.claims = !w.drain && (age < 0 || age >= w.config.KillPoll)
	switch {
	case t.claims:
		t.polled = e.Now
		t.orgs.forget(e.Now)
	case w.drain || !t.orgs.news(e.Now, w.config.KillPoll):
		return
	}
	fx.add(Effect{Kind: ShareIf, Name: w.SharedName(), Body: t.encode(), Version: e.Version})
}

// askKills asks for the flags of all shards that are to be looked at, in one call.
func (w *Worker) askKills(fx *effects) {
	if !w.kills.claims || w.config.Store.Cluster == "" {
		return // without a cluster but that of each request, scripts' answers alone tell the flags
	}
	homes := append([]string{""}, w.kills.orgs.names()...)
	list := make([][]string, len(homes))
	for i, home := range homes {
		if home == "" {
			home = w.layout.Ctl()
		}
		list[i] = []string{"HGETALL", home}
	}
	r := w.store.Command(list[0]...)
	if len(list) > 1 {
		r = w.store.Commands(list)
	}
	w.call(call{poll: homes}, "", r, fx)
}

// onKills takes in the answer of each shard.
func (w *Worker) onKills(homes []string, replies []callout.Reply, now bucket.Millis, fx *effects) {
	old := w.kills.flags
	w.kills.flags = nil
	heard := false
	for i, home := range homes {
		r := replies[min(i, len(replies)-1)]
		if r.Class != callout.OK || len(r.Values)%2 != 0 {
			// Policy: the flags last known stay in force.
			for id, f := range old {
				if id.home == home {
					w.kills.set(f)
				}
			}
			fx.count("emmer.kill_poll_failed")
			w.complain(r.Class, r.Error, "", now, fx)
			continue
		}
		heard = true
		for i := 0; i < len(r.Values); i += 2 {
			f, ok := parseFlag(home, r.Values[i].Text, r.Values[i+1].Text)
			if !ok || f.Field == "" || strings.ContainsAny(f.Field+f.Value, "\t\n") {
				continue
			}
			if len(w.kills.flags) == killCap {
				fx.log("more than " + strconv.Itoa(killCap) + " kill flags are set; the others stop calls only through the store's answer")
				break
			}
			w.kills.set(f)
		}
	}
	if heard {
		fx.add(Effect{Kind: Share, Name: w.SharedName(), Body: w.kills.encode()})
	}
}

// home is where the flags of a shard are kept, as KillFlag says it.
func (w *Worker) home(l script.Layout) string {
	if l == w.layout {
		return ""
	}
	return l.Ctl()
}
