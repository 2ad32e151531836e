package core

import (
	"sort"
	"strconv"
	"strings"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
	"github.com/emmer-proxy/emmer/plugin/callout"
)

// KillFlag is one flag of the store: Field is "scope:id", Value "until_ms|actor|reason".
type KillFlag struct {
	Field, Value string
	Until        bucket.Millis // 0 = until it is lifted
}

func parseFlag(field, value string) (KillFlag, bool) {
	until, _, _, ok := script.ParseKill(value)
	return KillFlag{Field: field, Value: value, Until: until}, ok
}

// killCap bounds the table: flags are set by people and rules, not by traffic.
const killCap = 1024

// killTable is what this worker knows of the store's flags.
//
// One worker of the host's process polls the store, in turn, and publishes what it read as shared
// data that all workers read at their ticks: "polled_ms\n" and one "field\tvalue\n" for each flag.
type killTable struct {
	flags   map[string]KillFlag
	polled  bucket.Millis // when the flags were last asked for, by any worker
	version uint32        // of the shared data last read
	changes uint64        // how often a flag was set
}

// any is false in the usual case, where not even the names of flags need to be made.
func (t *killTable) any() bool { return len(t.flags) > 0 }

func (t *killTable) find(names []string, now bucket.Millis) (KillFlag, bool) {
	if len(t.flags) == 0 {
		return KillFlag{}, false
	}
	for _, name := range names {
		if k, ok := t.flags[script.FieldOf(name)]; ok && (k.Until == 0 || k.Until > now) {
			k.Field = name // as the caller wrote it
			return k, true
		}
	}
	return KillFlag{}, false
}

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
		t.flags = map[string]KillFlag{}
	}
	if len(t.flags) < killCap {
		t.flags[f.Field] = f
		t.changes++
	}
}

func (t *killTable) encode() []byte {
	fields := make([]string, 0, len(t.flags))
	for f := range t.flags {
		fields = append(fields, f)
	}
	sort.Strings(fields)
	b := append(strconv.AppendInt(nil, int64(t.polled), 10), '\n')
	for _, f := range fields {
		b = append(append(append(append(b, f...), '\t'), t.flags[f].Value...), '\n')
	}
	return b
}

// decode takes what another worker published. Data that is not of this form is left alone.
func (t *killTable) decode(b []byte) {
	head, rest, ok := strings.Cut(string(b), "\n")
	at, err := strconv.ParseInt(head, 10, 64)
	if !ok || err != nil {
		return
	}
	t.polled, t.flags = bucket.Millis(at), nil
	for line := range strings.SplitSeq(rest, "\n") {
		if field, value, ok := strings.Cut(line, "\t"); ok {
			if f, ok := parseFlag(field, value); ok {
				t.set(f)
			}
		}
	}
}

// pollKills takes what is published and, when that is older than the poll, tries to be the one
// that asks the store: whoever stores a newer time first.
func (w *Worker) pollKills(e *Event, fx *effects) {
	if len(e.Shared) > 0 && e.Version != w.kills.version {
		w.kills.decode(e.Shared)
		w.kills.version = e.Version
	}
	// A clock that was set back must not stop the poll.
	if age := e.Now - w.kills.polled; w.drain || age >= 0 && age < w.config.KillPoll {
		return
	}
	w.kills.polled = e.Now
	fx.add(Effect{Kind: ShareIf, Name: w.SharedName(), Body: w.kills.encode(), Version: e.Version})
}

func (w *Worker) askKills(fx *effects) {
	if w.config.Store.Cluster == "" {
		return // the cluster is only known for each request; scripts' answers tell the flags
	}
	w.call(call{poll: true}, "", w.store.Command("HGETALL", w.layout.Ctl()), fx)
}

func (w *Worker) onKills(r callout.Reply, now bucket.Millis, fx *effects) {
	if r.Class != callout.OK || len(r.Values)%2 != 0 {
		// Policy: the flags last known stay in force.
		fx.count("emmer.kill_poll_failed")
		w.complain(r.Class, r.Error, "", now, fx)
		return
	}
	w.kills.flags = nil
	for i := 0; i < len(r.Values); i += 2 {
		f, ok := parseFlag(r.Values[i].Text, r.Values[i+1].Text)
		if !ok || strings.ContainsAny(f.Field+f.Value, "\t\n") {
			continue
		}
		if len(w.kills.flags) == killCap {
			fx.log("more than " + strconv.Itoa(killCap) + " kill flags are set; the others stop calls only through the store's answer")
			break
		}
		w.kills.set(f)
	}
	fx.add(Effect{Kind: Share, Name: w.SharedName(), Body: w.kills.encode()})
}
