package approx

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// Documents that the fit has not seen, with the counts of the vocabularies' own tokenizers: on each
// family the mean error is at most 3 %, the 95th percentile at most 8 %.
func TestErrorOnHeldOutDocuments(t *testing.T) {
	file, err := os.Open("testdata/held-out.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	errors := map[string][]float64{}
	for lines := bufio.NewReader(z); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var doc struct {
			Class, Source, Text string
			Tokens              map[string]int
		}
		if err := json.Unmarshal(line, &doc); err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			got, want := count(f, doc.Text), doc.Tokens[f.Name()]
			errors[f.Name()] = append(errors[f.Name()], 100*float64(max(got-want, want-got))/float64(want))
		}
	}
	for _, f := range families {
		e := errors[f.Name()]
		if len(e) < 200 {
			t.Fatalf("%s: %d documents", f.Name(), len(e))
		}
		slices.Sort(e)
		sum := 0.0
		for _, x := range e {
			sum += x
		}
		mean, p95 := sum/float64(len(e)), e[len(e)*95/100]
		t.Logf("%s: %d documents, mean %.1f %%, p95 %.1f %%", f.Name(), len(e), mean, p95)
		if mean > 3 || p95 > 8 {
			t.Errorf("%s: mean error %.1f %%, want at most 3; p95 %.1f %%, want at most 8", f.Name(), mean, p95)
		}
		if claimed := f.ErrorP95(); claimed <= 0 || claimed > 80 {
			t.Errorf("%s claims a p95 of %d per thousand", f.Name(), claimed)
		}
	}
}
