package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestDemoTellsItsStory plays the story that `make demo ONCE=1` plays: it ends with an error where a
// call is not answered as told. It loads examples/envoy/envoy.yaml.
func TestDemoTellsItsStoryOnEnvoy(t *testing.T) {
	wasm := filepath.Join(t.TempDir(), "emmer.wasm")
	build := exec.Command("go", "build", "-trimpath", "-buildmode=c-shared", "-o", wasm, "../../plugin")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := run(wasm, filepath.Join("..", "envoy", "envoy.yaml"), true); err != nil {
		t.Fatal(err)
	}
}
