package config

import (
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

func TestHowLongCallsMayWait(t *testing.T) {
	const limits = `[
		{"name": "each", "count": "tokens", "bucket": {"rate": "1/s", "burst": 9}, "queue": {"fast": "50ms", "slow": "300s"}},
		{"name": "one", "count": "tokens", "bucket": {"rate": "1/s", "burst": 9}, "queue": {"slow": "1h"}},
		{"name": "all", "count": "tokens", "bucket": {"rate": "1/s", "burst": 9}, "queue": "2s"},
		{"name": "none", "count": "tokens", "bucket": {"rate": "1/s", "burst": 9}}]`
	c := parse(t, doc("limits", limits))
	for _, want := range []struct {
		class string
		waits [4]bucket.Millis
	}{
		{"fast", [4]bucket.Millis{50, 0, 2000, 0}},
		{"slow", [4]bucket.Millis{300_000, 3_600_000, 2000, 0}},
		{"", [4]bucket.Millis{0, 0, 2000, 0}},
	} {
		for i, l := range c.Limits {
			if got := l.Queue.Of([]string{"acme", want.class}); got != want.waits[i] {
				t.Errorf("limit %s, class %q: %d ms, want %d", l.Name, want.class, got, want.waits[i])
			}
		}
	}
	if got := c.Limits[0].Queue.Of(nil); got != 0 {
		t.Errorf("without identities: %d ms", got)
	}
}

// Where a class may be any text, a queue may name any; where there is no class, it names none.
func TestClassesOfQueues(t *testing.T) {
	const limits = `[{"name": "a", "count": "tokens", "bucket": {"rate": "1/s", "burst": 9}, "queue": {"nightly": "9s"}}]`
	c := parse(t, doc("limits", limits, "identity", `{"class": {"header": "x-class", "missing": "pass"}}`))
	if got := c.Limits[0].Queue.Of([]string{"nightly"}); got != 9000 {
		t.Errorf("%d ms", got)
	}
	_, err := Parse([]byte(doc("limits", limits, "identity", `{"org": {"value": "acme"}}`)), env)
	if err == nil || !strings.HasPrefix(err.Error(), "limits[0].queue: found classes, and no identity named class;") {
		t.Error(err)
	}
}
