package main

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"
)

// The file that is checked in holds the strings of texts, no more and no less.
func TestTheFileHoldsTheTextsOfTheSeed(t *testing.T) {
	f, err := os.Open("../../../bpe/testdata/project.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	want, err := texts()
	if err != nil {
		t.Fatal(err)
	}
	if len(want) < 3000 {
		t.Fatalf("only %d texts", len(want))
	}
	lines := json.NewDecoder(z)
	n := 0
	for ; ; n++ {
		var l line
		err := lines.Decode(&l)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if n >= len(want) || l.Text != want[n].text || l.Class != want[n].class {
			t.Fatalf("text %d (%s) is not the seed's; run make golden", n, l.Class)
		}
		if l.Text != "" && (l.O200K < 1 || l.CL100K < 1) {
			t.Fatalf("text %d has no count", n)
		}
	}
	if n != len(want) {
		t.Fatalf("%d texts, the seed gives %d", n, len(want))
	}
}
