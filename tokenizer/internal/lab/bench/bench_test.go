package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/emmer-proxy/emmer/tokenizer/internal/lab/corpus"
)

// The filter counts in wasm, where bytes are read in another way than natively.
func TestWasmCountsAsNatively(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "emmer.wasm")
	build := exec.Command("go", "build", "-trimpath", "-buildmode=c-shared", "-o", path, "./wasm/emmer")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m := module{Path: path, name: "emmer", encs: systems[0].encodings}
	r := corpus.NewRand(1)
	for i, class := range append(corpus.Classes(), "hostile", "hostile", "hostile") {
		text, err := corpus.Text(class, uint64(i), 30_000)
		if class == "hostile" {
			text, err = []byte(corpus.Hostile(r, 30_000)), nil
		}
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, string(rune('a'+i)))
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		for e := range m.encs {
			m.Jobs = append(m.Jobs, job{File: file, Bytes: len(text), Encoding: e, class: class})
		}
	}
	natively, err := native(dir, []module{m})
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := onWazero(dir, []module{m})
	if err != nil {
		t.Fatal(err)
	}
	for i, j := range m.Jobs {
		got, want := wasm[0].results[i], natively[0].results[i]
		if got.Tokens != want.Tokens || want.Tokens < 100 {
			t.Errorf("%s %s: %d in wasm, %d natively", m.encs[j.Encoding], j.class, got.Tokens, want.Tokens)
		}
		if got.Allocs != 0 {
			t.Errorf("%s %s: %d allocations", m.encs[j.Encoding], j.class, got.Allocs)
		}
	}
	if first, last := wasm[0].results[0].Memory, wasm[0].results[len(m.Jobs)-1].Memory; last-first > 1<<20 {
		t.Errorf("memory grew from %d to %d bytes", first, last)
	}
}
