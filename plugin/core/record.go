package core

import (
	"strconv"
	"strings"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/dialect"
	"github.com/emmer-proxy/emmer/plugin/plan"
)

// record is what the access log is told of one exchange.
type record struct {
	dialect  string
	decision string
	code     string // of a refusal
	limit    string
	from     string // whom a decision came from, where it was not the store: memory, local
	local    string // limits that were decided by this worker's shares
	retry    bucket.Millis
	queued   bucket.Millis // how long it waited for its turn
	status   int
	settled  string // usage, estimate, refund, cancelled
	usage    dialect.Usage
	actual   []bucket.Item
	notes    []plan.Note
}

// note counts what the operator should know of an admitted call.
func (s *Stream) note(fx *effects) {
	s.record.notes = s.plan.Notes(s.reply)
	var over, near, crossed bool
	for _, n := range s.record.notes {
		over, near, crossed = over || n.Over, near || n.Percent > 0, crossed || n.Crossed
	}
	if over {
		fx.count("emmer.shadow_denied")
	}
	if near {
		fx.count("emmer.near_limit")
	}
	if crossed {
		fx.count("emmer.warn_crossed")
	}
}

// json is one flat JSON object of strings and integers: the README lists the names. Amounts of money are in nano-units.
func (r *record) json(s *Stream) []byte {
	w := flat{b: make([]byte, 0, 512)}
	w.text("rid", s.id)
	w.text("d", r.decision)
	w.text("dialect", r.dialect)
	if r.code != "" {
		w.text("code", r.code)
	}
	if r.limit != "" {
		w.text("limit", r.limit)
	}
	if r.from != "" {
		w.text("from", r.from)
	}
	if r.local != "" {
		w.text("local", r.local)
	}
	if r.retry > 0 {
		w.number("retry_ms", int64(r.retry))
	}
	if s.place != nil {
		w.number("queued_ms", int64(r.queued))
	}
	if p := s.plan; p != nil && len(p.Ignored) > 0 {
		w.text("claim_ignored", strings.Join(p.Ignored, ","))
	}
	over := ""
	for _, n := range r.notes {
		if n.Over && over != "" {
			over += ","
		}
		if n.Over {
			over += n.Limit
		}
	}
	if over != "" {
		w.text("shadow", over)
	}
	for i, v := range s.caller.Values {
		w.text("id_"+s.w.config.Identities[i].Name, v)
	}
	if p := s.plan; p != nil && p.Model != nil && p.Target != nil {
		w.text("model", p.Model.Name)
		w.text("target", p.Target.Name)
		w.number("reserved", int64(p.Input+p.Output))
		if p.Learned > 0 {
			w.number("learned", int64(p.Learned))
		}
		if p.Method != plan.Uncounted {
			w.number("counted", int64(p.Input))
			w.text("method", p.Method.String())
			if p.Method == plan.Approx {
				w.number("factor", int64(p.Factor.PerMille()))
			}
		}
		if r.settled == "usage" || r.settled == "estimate" {
			w.number("in", int64(r.usage.Input))
			w.number("cached", int64(r.usage.CachedInput))
			w.number("out", int64(r.usage.Output))
			for _, f := range [...]struct {
				name string
				n    int64
			}{
				{"cache_write", int64(r.usage.CacheWrite + r.usage.CacheHour)}, {"audio_in", int64(r.usage.AudioInput)},
				{"audio_out", int64(r.usage.AudioOutput)}, {"reasoning", int64(r.usage.Reasoning)},
				{"search_units", r.usage.SearchUnits}, {"images", r.usage.Images}, {"searches", r.usage.Searches},
				{"audio_ms", int64(r.usage.AudioMillis)},
			} {
				if f.n > 0 {
					w.number(f.name, f.n)
				}
			}
			if cost, ok := p.Cost(r.usage); ok {
				w.number("cost", int64(cost))
			}
		}
		if at := s.reply.BadOverride; at > 0 && at <= len(p.Limits) {
			w.text("bad_override", p.Limits[at-1].Name)
		}
		for i := range s.reply.Remaining {
			if i < len(p.Items) && p.Items[i].Limit.Kind == bucket.Burn {
				continue // which a reserve doesn't look at
			}
			if i < len(r.actual) && i < len(p.Items) {
				w.number("left_"+p.Limits[i].Name, int64(s.reply.Remaining[i]+p.Items[i].Amount-r.actual[i].Amount))
			} else if i < len(p.Limits) {
				w.number("left_"+p.Limits[i].Name, int64(s.reply.Remaining[i]))
			}
		}
	}
	for _, n := range r.notes {
		if n.Percent > 0 {
			w.number("warn_"+n.Limit, int64(n.Percent))
		}
	}
	if r.settled != "" {
		w.text("settled", r.settled)
	}
	return append(w.b, '}')
}

// flat writes a flat JSON object.
type flat struct{ b []byte }

func (w *flat) name(n string) {
	if len(w.b) == 0 {
		w.b = append(w.b, '{')
	} else {
		w.b = append(w.b, ',')
	}
	w.quote(n)
	w.b = append(w.b, ':')
}

func (w *flat) number(n string, v int64) {
	w.name(n)
	w.b = strconv.AppendInt(w.b, v, 10)
}

func (w *flat) text(n, v string) {
	w.name(n)
	w.quote(v)
}

// quote writes a JSON string. Bytes above ASCII become '?': a log line is no place for a client's
// text to hide in.
func (w *flat) quote(v string) {
	w.b = append(w.b, '"')
	for i := 0; i < len(v) && i < 256; i++ {
		switch c := v[i]; {
		case c == '"' || c == '\\':
			w.b = append(w.b, '\\', c)
		case c < 0x20 || c > 0x7e:
			w.b = append(w.b, '?')
		default:
			w.b = append(w.b, c)
		}
	}
	w.b = append(w.b, '"')
}
