package main

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

//go:embed count.mjs package.json package-lock.json
var script embed.FS

// families are the vocabularies fitted to, in the order of reports.
var families = []string{"o200k", "cl100k", "claude", "gemma"}

// counts gives the true counts of the documents; those counted before come from the cache.
func counts(family string, docs []document, cache string) ([]int, error) {
	path := filepath.Join(cache, "counts-"+family+".json")
	known := map[string]int{}
	if data, err := os.ReadFile(path); err == nil {
		if err := json.Unmarshal(data, &known); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	keys := make([]string, len(docs))
	var missing []document
	for i, d := range docs {
		keys[i] = digest(d.Text)
		if _, ok := known[keys[i]]; !ok {
			missing = append(missing, d)
		}
	}
	if len(missing) > 0 {
		fmt.Fprintf(os.Stderr, "counting %d documents with %s\n", len(missing), family)
		var n []int
		var err error
		switch family {
		case "o200k", "cl100k":
			n, err = countTiktoken(family+"_base", missing)
		default:
			n, err = countNode(family, missing, cache)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", family, err)
		}
		for i, d := range missing {
			known[digest(d.Text)] = n[i]
		}
		data, err := json.Marshal(known)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return nil, err
		}
	}
	all := make([]int, len(docs))
	for i, k := range keys {
		all[i] = known[k]
	}
	return all, nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:10])
}

func countTiktoken(encoding string, docs []document) ([]int, error) {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	e, err := tiktoken.GetEncoding(encoding)
	if err != nil {
		return nil, err
	}
	n := make([]int, len(docs))
	for i, d := range docs {
		n[i] = len(e.EncodeOrdinary(d.Text))
	}
	return n, nil
}

// countNode runs count.mjs with the tokenizers of package.json, installed into the cache.
func countNode(family string, docs []document, cache string) ([]int, error) {
	modules := filepath.Join(cache, "node")
	if _, err := os.Stat(filepath.Join(modules, "node_modules")); err != nil {
		if err := os.MkdirAll(modules, 0o755); err != nil {
			return nil, err
		}
		for _, name := range []string{"package.json", "package-lock.json"} {
			data, err := script.ReadFile(name)
			if err != nil {
				return nil, err
			}
			if err := os.WriteFile(filepath.Join(modules, name), data, 0o644); err != nil {
				return nil, err
			}
		}
		cmd := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
		cmd.Dir = modules
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("npm: %w: %s", err, out)
		}
	}
	var in, out bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, d := range docs {
		if err := enc.Encode(d); err != nil {
			return nil, err
		}
	}
	code, err := script.ReadFile("count.mjs")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("node", "--input-type=module", "--eval", string(code), family, modules)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	var n []int
	for _, f := range bytes.Fields(out.Bytes()) {
		c, err := strconv.Atoi(string(f))
		if err != nil {
			return nil, err
		}
		n = append(n, c)
	}
	if len(n) != len(docs) {
		return nil, fmt.Errorf("%d counts for %d documents", len(n), len(docs))
	}
	return n, nil
}
