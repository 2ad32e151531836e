package dialect

import (
	"os"
	"strings"
	"testing"
)

// The README has each dialect's facts and its usage.
func TestReadmeHasEveryDialect(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## Facts\n")
	facts, rest, _ := strings.Cut(rest, "## Usage\n")
	usage, _, ok := strings.Cut(rest, "## Ends and refusals\n")
	if !ok {
		t.Fatal("a section is missing")
	}
	for _, name := range Names() {
		if !strings.Contains(facts, "\n| `"+name+"` |") {
			t.Errorf("the table of facts has no row for %s", name)
		}
		if !strings.Contains(usage, "`"+name+"`") {
			t.Errorf("the table of usage has no row for %s", name)
		}
	}
	for _, line := range strings.Split(facts, "\n") {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "`"); ok && strings.HasPrefix(line, "| `") && !strings.Contains(","+strings.Join(Names(), ",")+",", ","+name+",") {
			t.Errorf("the table of facts has a row for %s, which is no dialect", name)
		}
	}
}
