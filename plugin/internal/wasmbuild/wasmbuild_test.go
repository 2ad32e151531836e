package wasmbuild

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMakefileBuildsTheSame(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "\nWASM_FLAGS := " + Flags + "\n"; !strings.Contains(string(text), want) {
		t.Errorf("the Makefile has no line %q", strings.TrimSpace(want))
	}
}
