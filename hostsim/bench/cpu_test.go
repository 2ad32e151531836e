package bench

import (
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	tests := []struct {
		name, text string
		want       time.Duration
	}{
		{"plain", "7 (redis) S 1 7 7 0 -1 4194304 100 0 0 0 12 30 0 0 20 0 4", 420 * time.Millisecond},
		{"a name that looks like fields", "7 (a) R 1 2 (b) S 1 7 7 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 4", 30 * time.Millisecond},
		{"cut", "7 (redis) S 1 7", 0},
		{"nothing", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := parseStat([]byte(tt.text)); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestPerCallSharesAmongAllRounds(t *testing.T) {
	one, two := at(time.Millisecond), at(time.Millisecond) // two answers each
	one.CPU = map[string]time.Duration{"envoy": 100 * time.Microsecond}
	two.CPU = map[string]time.Duration{"envoy": 300 * time.Microsecond}
	if got := perCall([]Sample{one, two}); len(got) != 1 || got["envoy"] != 100 {
		t.Errorf("%v, want envoy: 100", got)
	}
	if got := perCall(nil); got != nil {
		t.Errorf("%v of no rounds", got)
	}
}
