// Package wasmbuild gives tests the filter as the .wasm that hosts load, built from the sources
// under test.
//
// It is only for tests. The build goes to the module's bin/emmer.wasm, the same file that
// `make wasm` writes with the same flags; where nothing changed the go tool leaves it alone.
package wasmbuild

import (
	"encoding/json"
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

// Altered builds the filter with a file of the module replaced by a text, into the test's own
// folder: for tests that prove that another one notices a fault.
func Altered(t testing.TB, file, text string) string {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return alter(t, root, map[string]string{file: text})
}

// Change is a piece of a file of the module, which it must have exactly once, and what stands
// there instead.
type Change struct{ File, Old, New string }

// Changed is Altered for pieces of files.
func Changed(t testing.TB, changes ...Change) string {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, c := range changes {
		text, ok := texts[c.File]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(c.File)))
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		if n := strings.Count(text, c.Old); n != 1 {
			t.Fatalf("%s has this %d times, want once:\n%s", c.File, n, c.Old)
		}
		texts[c.File] = strings.Replace(text, c.Old, c.New, 1)
	}
	return alter(t, root, texts)
}

func alter(t testing.TB, root string, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	overlay, path := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "altered.wasm")
	list := map[string]map[string]string{"Replace": {}}
	for file, text := range texts {
		replaced := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(replaced, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		list["Replace"][filepath.Join(root, filepath.FromSlash(file))] = replaced
	}
	b, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := compile(root, path, "-overlay", overlay); err != nil {
		t.Fatal(err)
	}
	return path
}

func compile(root, path string, more ...string) error {
	args := append([]string{"build"}, strings.Fields(Flags)...)
	args = append(args, more...)
	cmd := exec.Command("go", append(args, "-o", path, "./plugin")...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the filter: %w\n%s", err, out)
	}
	return nil
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
	return path, compile(root, path)
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
