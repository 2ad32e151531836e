package buckettest

import (
	"os"
	"strconv"
	"testing"
)

// steps is how long the checker runs on a real Redis: EMMER_STEPS, or a modest number.
func steps(t testing.TB) int { return setting(t, "EMMER_STEPS", 12_000) }

// setting is a whole number from the environment.
func setting(t testing.TB, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
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
	n, seed := steps(t), setting(t, "EMMER_SEED", 21)
	if fault := Check(d, int64(seed), n); fault != "" {
		t.Error(fault)
	}
	t.Logf("%d steps from seed %d", n, seed)
	checkKeys(t, d.Redis, d.now)
}
