// Package wasmbuild gives tests the filter as the .wasm that hosts load, built from the sources
// under test.
//
// It is only for tests. The build goes to the module's bin/emmer.wasm, the same file that
// `make wasm` writes with the same flags; where nothing changed the go tool leaves it alone.
package wasmbuild

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Flags is how the filter is built; WASM_FLAGS of the Makefile says the same.
const Flags = "-trimpath -buildmode=c-shared"

var once = sync.OnceValues(build)

// Path builds the filter, once in a process, and is the path of the .wasm.
func Path(t testing.TB) string {
	t.Helper()
	path, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func build() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(root, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", err
	}
	// The tests of several packages run at once, each in a process of its own. The first one in
	// builds; the others wait here and then find the file up to date, so that nobody reads half of one.
	lock, err := os.OpenFile(filepath.Join(bin, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	path := filepath.Join(bin, "emmer.wasm")
	args := append([]string{"build"}, strings.Fields(Flags)...)
	cmd := exec.Command("go", append(args, "-o", path, "./plugin")...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the filter: %w\n%s", err, out)
	}
	return path, nil
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if file == "" || file == os.DevNull {
		return "", fmt.Errorf("not inside a Go module")
	}
	return filepath.Dir(file), nil
}
