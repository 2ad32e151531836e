package plan

import (
	"reflect"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

func TestABookingInALaterPeriodStatesThatPeriod(t *testing.T) {
	day := bucket.Calendar{Unit: bucket.Day, Zone: time.UTC}
	c := &config.Compiled{Limits: []*config.Limit{{Name: "day", Kind: bucket.CalendarWindow, Window: day}}}
	const hour = bucket.Millis(3_600_000)
	reserved := bucket.Millis(1_700_000_000_000)
	items := []bucket.Item{
		{Limit: bucket.Limit{Name: "tpm", Kind: bucket.TokenBucket}, Amount: 1},
		{Limit: bucket.Limit{Name: "day", Kind: bucket.CalendarWindow, Bounds: day.Bounds(reserved)}, Amount: 2},
	}
	if got := Fresh(c, items, reserved+1); &got[0] != &items[0] {
		t.Error("the list was copied though the period is the same")
	}
	later := reserved + 72*hour
	got := Fresh(c, items, later)
	if got[1].Limit.Bounds != day.Bounds(later) || got[1].Amount != 2 || got[0] != items[0] {
		t.Errorf("got %+v", got)
	}
	if items[1].Limit.Bounds != day.Bounds(reserved) {
		t.Error("the reserve's own list was changed")
	}
}

func TestRememberedPeriodsAreThoseOfTheCalendar(t *testing.T) {
	l := &config.Limit{Name: "h", Kind: bucket.CalendarWindow, Window: bucket.Calendar{Unit: bucket.Hour, Zone: time.UTC}}
	periods := new(Memory)
	const hour = bucket.Millis(3_600_000)
	start := bucket.Millis(1_700_000_000_000) / hour * hour
	for _, now := range []bucket.Millis{start, start + 1, start + hour - 1, start + hour, start + 5*hour, start - 1, start} {
		if got, want := periods.bounds(l, now), l.Window.Bounds(now); got != want {
			t.Errorf("at %d: %v, want %v", now, got, want)
		}
	}
}

// A plan is the same whatever was planned before it, with whichever tokenizer.
func TestRememberingChangesNoPlan(t *testing.T) {
	c := compiled(t, "models", `{"a": {"tokenizer": "o200k_base"}, "b": {"tokenizer": "approx-claude"}, "c": {"tokenizer": "o200k_base"}}`,
		"limits", `[{"name": "day", "by": [], "count": "tokens", "max": 100000, "window": {"calendar": "day"}}]`)
	m := new(Memory)
	counts := map[string]bucket.Tokens{}
	for i, name := range []string{"a", "b", "b", "a", "c", "b", "nobody", "a", "b"} {
		for _, body := range []string{
			`{"model": "` + name + `", "messages": [{"role": "user", "content": "Zwölf Boxkämpfer jagen Viktor quer über den Deich."}]}`,
			`{"messages": [{"role": "user", "content": "Zwölf Boxkämpfer jagen Viktor quer über den Deich."}], "model": "` + name + `"}`,
		} {
			got, refused := m.Build(c, dialect.OpenAIChat, Caller{}, []byte(body), now)
			want, refusedAfresh := Build(c, dialect.OpenAIChat, Caller{}, []byte(body), now)
			if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(refused, refusedAfresh) {
				t.Errorf("call %d, %s: got %+v, %+v; want %+v, %+v", i, body, got, refused, want, refusedAfresh)
			}
			counts[name] = got.Input
		}
	}
	if counts["a"] == counts["b"] {
		t.Errorf("the two tokenizers count alike, which shows nothing: %v", counts)
	}
}
