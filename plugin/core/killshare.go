package core

import (
	"slices"
	"strconv"
	"strings"

	"github.com/emmer-proxy/emmer/bucket"
)

// One worker of the host's process polls the store's flags, in turn, and publishes what it read as
// shared data that all workers read at their ticks. Of orgs it polls those that any of them has lately
// had calls of, which they tell each other in the same text:
//
//	polled_ms
//	field TAB value                 a flag that stops all calls
//	TAB home TAB seen_ms            an org
//	TAB home TAB field TAB value    a flag of its calls
//
// No part holds a tab or a line feed: homes are keys, which are escaped, and flags that do are left out.

const (
	// orgCap bounds the orgs whose flags are polled: with those of all calls they are one pipeline, and
	// a bridge takes 256 commands. Of others, flags stop calls through the store's answer alone.
	orgCap = 255
	// orgFor is how long an org is polled for after its last call.
	orgFor bucket.Millis = 10 * 60_000
	// orgFresh is how old the time may be at which an org is said to have been seen.
	orgFresh bucket.Millis = 30_000
)

// orgTable has the orgs that calls were lately seen of.
type orgTable struct {
	of   map[string]orgSeen // by home
	told bucket.Millis      // when this worker last told the others
}

type orgSeen struct{ seen, shared bucket.Millis }

// stale says that a call of an org is worth a word to the table.
func (t *orgTable) stale(home string, now bucket.Millis) bool {
	at, ok := t.of[home]
	return !ok || now-at.seen >= 1000 || now < at.seen
}

func (t *orgTable) see(home string, at, shared bucket.Millis) {
	if t.of == nil {
		t.of = map[string]orgSeen{}
	}
	have := t.of[home]
	t.of[home] = orgSeen{max(have.seen, at), max(have.shared, shared)}
	if len(t.of) <= orgCap {
		return
	}
	oldest := ""
	for home, o := range t.of {
		if was := t.of[oldest]; oldest == "" || o.seen < was.seen || o.seen == was.seen && home < oldest {
			oldest = home
		}
	}
	delete(t.of, oldest) // who has had no call for longest
}

// forget drops the orgs that had no call for long, and times to come: a clock was set back.
func (t *orgTable) forget(now bucket.Millis) {
	for home, o := range t.of {
		if now-o.seen > orgFor || o.seen > now+orgFor {
			delete(t.of, home)
		}
	}
}

// news says that the others should be told, at most once in a poll.
func (t *orgTable) news(now, poll bucket.Millis) bool {
	if now-t.told < poll && now >= t.told {
		return false
	}
	for _, o := range t.of {
		if o.seen-o.shared >= orgFresh {
			t.told = now
			return true
		}
	}
	return false
}

func (t *orgTable) names() []string {
	names := make([]string, 0, len(t.of))
	for home := range t.of {
		names = append(names, home)
	}
	slices.Sort(names)
	return names
}

func (t *killTable) encode() []byte {
	ids := make([]flagID, 0, len(t.flags))
	for id := range t.flags {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b flagID) int {
		if a.home != b.home {
			return strings.Compare(a.home, b.home)
		}
		return strings.Compare(a.field, b.field)
	})
	b := append(strconv.AppendInt(nil, int64(t.polled), 10), '\n')
	for _, home := range t.orgs.names() {
		b = append(append(append(b, '\t'), home...), '\t')
		b = append(strconv.AppendInt(b, int64(t.orgs.of[home].seen), 10), '\n')
	}
	for _, id := range ids {
		if id.home != "" {
			b = append(append(append(b, '\t'), id.home...), '\t')
		}
		b = append(append(append(append(b, id.field...), '\t'), t.flags[id].Value...), '\n')
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
	for home, o := range t.orgs.of {
		o.shared = 0
		t.orgs.of[home] = o
	}
	for line := range strings.SplitSeq(rest, "\n") {
		home := ""
		if of, ok := strings.CutPrefix(line, "\t"); ok {
			home, line, _ = strings.Cut(of, "\t")
		}
		if field, value, ok := strings.Cut(line, "\t"); ok {
			if f, ok := parseFlag(home, field, value); ok && field != "" {
				t.set(f)
			}
		} else if seen, err := strconv.ParseInt(line, 10, 64); err == nil && home != "" {
			t.orgs.see(home, bucket.Millis(seen), bucket.Millis(seen))
		}
	}
}
