package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/emmer-proxy/emmer/plugin/config"
)

// TestReadmeLimits starts with the limits that the README shows.
func TestReadmeLimits(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Limits\n")
	_, block, _ := strings.Cut(section, "```yaml\n")
	block, _, ok := strings.Cut(block, "```\n")
	if !ok {
		t.Fatal("the README has no block of limits")
	}
	doc := map[string]any{}
	if err := yaml.Unmarshal([]byte(`
version: 1
currency: EUR
store: {cluster: bridge}
identity: {key: {header: x-key}, tenant: {header: x-tenant}, class: {header: x-class, one_of: [interactive-search, batch-ingestion, admin]}}
models: {m: {price: {input: "1", output: "2"}}}
`+block), &doc); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(asJSON, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Limits) != 9 {
		t.Errorf("%d limits", len(c.Limits))
	}
}
