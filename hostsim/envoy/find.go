package envoy

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
)

// ErrNotFound says that there is no Envoy binary on this machine.
var ErrNotFound = errors.New("envoy: no binary: set EMMER_ENVOY, run `make test`, which fetches one into .cache, or put envoy on PATH")

// cached is where `make test` puts Envoy, relative to the module's root.
const cached = ".cache/envoy-venv/lib/python3*/site-packages/envoy/_bin/envoy"

// Find returns the path of the Envoy binary: EMMER_ENVOY, or the one in the module's .cache, or the
// one on PATH.
func Find() (string, error) {
	if path := os.Getenv("EMMER_ENVOY"); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("envoy: EMMER_ENVOY: %w", err)
		}
		return path, nil
	}
	if root, ok := moduleRoot(); ok {
		found, err := filepath.Glob(filepath.Join(root, cached))
		if err != nil {
			return "", err
		}
		sort.Strings(found)
		if len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	if path, err := exec.LookPath("envoy"); err == nil {
		return path, nil
	}
	return "", ErrNotFound
}

// moduleRoot is the nearest directory above the working directory with a go.mod.
func moduleRoot() (string, bool) {
	dir, err := os.Getwd()
	if err != nil {
		return "", false
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}
