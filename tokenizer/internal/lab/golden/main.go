// Command golden writes the test set of package bpe: some thousand strings out of a seed, counted by
// npm tiktoken, which holds OpenAI's own code. It needs node and npm.
package main

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed count.mjs
var countProgram string

//go:embed package.json
var packageFile []byte

// line is one line of the file that bpe's tests read.
type line struct {
	Class  string `json:"c"`
	Text   string `json:"t"`
	O200K  int    `json:"o"`
	CL100K int    `json:"k"`
}

func main() {
	cache := flag.String("cache", "../../../.cache/golden", "folder for the tokenizer")
	out := flag.String("o", "../../bpe/testdata/project.jsonl.gz", "file to write")
	flag.Parse()
	if err := run(*cache, *out); err != nil {
		fmt.Fprintln(os.Stderr, "golden:", err)
		os.Exit(1)
	}
}

func run(cache, out string) error {
	all, err := texts()
	if err != nil {
		return err
	}
	if err := install(cache); err != nil {
		return err
	}
	lines, err := count(cache, all)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(z)
	enc.SetEscapeHTML(false)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	fmt.Printf("%s: %d texts, %d bytes\n", filepath.Base(out), len(lines), b.Len())
	return os.WriteFile(out, b.Bytes(), 0o644)
}

func install(cache string) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(cache, "package.json"), packageFile, 0o644); err != nil {
		return err
	}
	npm := exec.Command("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent")
	npm.Dir = cache
	npm.Stderr = os.Stderr
	if err := npm.Run(); err != nil {
		return fmt.Errorf("npm install: %w", err)
	}
	return nil
}

func count(cache string, all []text) ([]line, error) {
	var in bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, t := range all {
		if err := enc.Encode(t.text); err != nil {
			return nil, err
		}
	}
	node := exec.Command("node", "--input-type=module", "--eval", countProgram, cache)
	node.Stdin, node.Stderr = &in, os.Stderr
	counted, err := node.Output()
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	rows := strings.Split(strings.TrimSpace(string(counted)), "\n")
	if len(rows) != len(all) {
		return nil, fmt.Errorf("%d counts for %d texts", len(rows), len(all))
	}
	lines := make([]line, len(all))
	for i, t := range all {
		lines[i] = line{Class: t.class, Text: t.text}
		if _, err := fmt.Sscan(rows[i], &lines[i].O200K, &lines[i].CL100K); err != nil {
			return nil, fmt.Errorf("text %d: %w", i, err)
		}
	}
	return lines, nil
}
