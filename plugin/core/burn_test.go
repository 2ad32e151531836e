package core

import (
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/script"
)

// A settlement that trips a burn observer stops this worker's calls at once, before any poll.
func TestABurnRuleStopsCallsWhereItWasTripped(t *testing.T) {
	const key = "k é" // not as it is in a field of the store
	w := newWorker(t, "flag", "closed")
	j := job(w, "a")
	for _, flag := range []string{"key:other", "key:" + key} {
		j.Items = append(j.Items, bucket.Item{Amount: 20, Limit: bucket.Limit{
			Name: "burn", Kind: bucket.Burn, Entity: flag, Max: 5, Flag: flag, Rule: &bucket.BurnRule{Minutes: 2, Reason: "too fast"},
		}})
	}
	w.Step(Event{Kind: Settle, Now: 0, Job: j})
	sent := callsOf(w.Step(Event{Kind: Flush, Now: 0}))
	if len(sent) != 1 {
		t.Fatalf("%d calls", len(sent))
	}
	// Of the two observers, the second was tripped.
	fx := w.Step(storeReply(1, sent[0].Tag, done("s.a", int64(bucket.SettledLive), 9000, 7, 0, -15, 0, 1)))
	tripped, told := 0, ""
	for _, f := range fx {
		if f.Kind == Count && f.Name == "emmer.burn_tripped" {
			tripped++
		}
		if f.Kind == Log {
			told += f.Value
		}
	}
	field := script.FieldOf("key:" + key)
	if want := "calls for " + field + " are stopped: too fast"; tripped != 1 || told != want || strings.Contains(told, key) {
		t.Errorf("counted %d, and told %q, want %q", tripped, told, want)
	}
	if !w.outbox.empty() {
		t.Error("the settlement is still in the outbox")
	}
	if _, ok := w.kills.find([]string{"key:other"}, "", 2); ok {
		t.Error("the other key is stopped too")
	}
	f, ok := w.kills.find([]string{"key:" + key}, "", 2)
	if !ok || f.Value != script.KillValue(0, "burn", "too fast") {
		t.Errorf("%+v, %v", f, ok)
	}
}
