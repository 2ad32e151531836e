// Package bench_test loads the configuration that the benchmark runs with.
package bench_test

import (
	"os"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/plugin/config"
)

func TestConfigIsAccepted(t *testing.T) {
	text, err := os.ReadFile("emmer.json")
	if err != nil {
		t.Fatal(err)
	}
	env := func(name string) (string, bool) { return "token", name == "EMMER_STORE_TOKEN" }
	for _, hold := range []string{"pair", "flag"} {
		c, err := config.Parse([]byte(strings.ReplaceAll(string(text), `"HOLD"`, `"`+hold+`"`)), env)
		if err != nil {
			t.Errorf("hold %s: %v", hold, err)
			continue
		}
		if len(c.Limits) != 4 {
			t.Errorf("hold %s: %d limits, the benchmark is about 4", hold, len(c.Limits))
		}
	}
}
