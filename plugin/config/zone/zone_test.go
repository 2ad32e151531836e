package zone

import (
	"bufio"
	"bytes"
	"compress/flate"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the reference: the same data in the toolchain's own packing
)

// Every zone of the toolchain tells the same time as ours, over a century and around its changes.
func TestSameAsTheToolchain(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	update, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "update.bash"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(update), "DATA="+Release+"\n") {
		t.Logf("the toolchain has another release of the zones than %s: run go generate", Release)
		return
	}
	for _, name := range []string{"UTC", "Europe/Amsterdam", "Europe/Dublin", "America/New_York", "America/Sao_Paulo", "Asia/Kathmandu",
		"Asia/Tokyo", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "Antarctica/Troll", "Etc/GMT+12", "US/Pacific", "Zulu"} {
		want, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Load(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.String() != name {
			t.Errorf("%s calls itself %s", name, got)
		}
		for at := time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2060; at = at.Add(7 * time.Hour) {
			if w, g := at.In(want).String(), at.In(got).String(); w != g {
				t.Fatalf("%s at %v: %s, want %s", name, at, g, w)
			}
		}
	}
}

func TestUnknownNames(t *testing.T) {
	for _, name := range []string{"", "Local", "Mars/Base", "europe/amsterdam", "Europe/Amsterdam ", "Europe", "../zoneinfo/UTC", "Europe/Amsterdam 0", "\n"} {
		if loc, err := Load(name); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v, %v", name, loc, err)
		}
	}
}

func TestSize(t *testing.T) {
	if len(archive) > 100_000 {
		t.Errorf("the archive has %d bytes; it is part of every .wasm", len(archive))
	}
}

func TestEveryNameLoads(t *testing.T) {
	lines := bufio.NewScanner(flate.NewReader(bytes.NewReader(archive)))
	names := 0
	for lines.Scan() && lines.Text() != "" {
		name, _, _ := strings.Cut(lines.Text(), " ")
		if _, err := Load(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		names++
	}
	if names < 590 {
		t.Errorf("%d names", names)
	}
}
