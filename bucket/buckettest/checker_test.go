package buckettest

import (
	"os"
	"strconv"
	"testing"
)

// steps is how long the checker runs on a real Redis: EMMER_STEPS, or a modest number.
func steps(t testing.TB) int {
	text := os.Getenv("EMMER_STEPS")
	if text == "" {
		return 12_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("EMMER_STEPS: %v", err)
	}
	return n
}

func TestCheckModel(t *testing.T) {
	for seed := range int64(25) {
		if fault := Check(NewModel(), seed, 4000); fault != "" {
			t.Error(fault)
		}
	}
}

func TestCheckMiniredis(t *testing.T) {
	m := NewMini(t)
	if fault := Check(m, 11, 2000); fault != "" {
		t.Error(fault)
	}
	checkKeys(t, m.Redis, m.Now())
}

func TestCheckRedis(t *testing.T) {
	d := newDriven(t, NewRedis(t, StartServer(t).Client()))
	n := steps(t)
	if fault := Check(d, 21, n); fault != "" {
		t.Error(fault)
	}
	t.Logf("%d steps", n)
	checkKeys(t, d.Redis, d.now)
}
