package main

import (
	"os"
	"testing"
)

// The table that is checked in is the one that this program makes.
func TestClassTable(t *testing.T) {
	want, err := os.ReadFile("../../../approx/class.bin")
	if err != nil {
		t.Fatal(err)
	}
	if got := classTable(); string(got) != string(want) {
		t.Errorf("the classes changed: %d bytes, class.bin has %d; run `make fit-tokenizer`", len(got), len(want))
	}
}

func TestClassesFitARow(t *testing.T) {
	if n := classMarks + len(asciiMarks); n != firstScript {
		t.Errorf("marks end at class %d, scripts begin at %d", n, firstScript)
	}
	if n := firstScript + len(scriptClasses); n > row {
		t.Errorf("%d classes, at most %d", n, row)
	}
}
