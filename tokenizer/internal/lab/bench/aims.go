package main

import (
	"fmt"

	"github.com/emmer-proxy/emmer/tokenizer/internal/lab/corpus"
)

// aim is one target and what came of it.
type aim struct {
	Aim  string  `json:"aim"`
	Got  float64 `json:"got"`
	Want string  `json:"want"`
	OK   bool    `json:"ok"`
}

// summary gathers what the aims are about.
type summary struct {
	tokens map[string]int // by encoding and class, as counted first
	v8     []line
	after  []result // Emmer in V8: each class in each encoding once more, then the long texts
	bare   int      // memory of modules in V8, in bytes
	exact  int
	guess  int
}

// take checks that counts are the same on every engine, and keeps V8's figures.
func (s *summary) take(engine string, lines []line, outcomes []outcome) error {
	if s.tokens == nil {
		s.tokens = map[string]int{}
	}
	for _, l := range lines {
		if l.System != "emmer" && l.System != "emmer-approx" {
			continue
		}
		what := l.Encoding + " " + l.Class
		if was, ok := s.tokens[what]; ok && was != l.Tokens {
			return fmt.Errorf("%s: %s has %d tokens, natively %d", engine, what, l.Tokens, was)
		}
		s.tokens[what] = l.Tokens
	}
	if engine == "v8" {
		memory := func(o outcome) int { return o.results[len(o.results)-1].Memory }
		n := len(systems[0].encodings) * len(corpus.Classes())
		s.v8, s.after = lines, outcomes[1].results[n:]
		s.bare, s.exact, s.guess = memory(outcomes[0]), memory(outcomes[len(systems)+1]), memory(outcomes[len(systems)+2])
	}
	return nil
}

func (s *summary) mbs(system, encoding, class string) float64 {
	for _, l := range s.v8 {
		if l.System == system && l.Encoding == encoding && l.Class == class {
			return l.MBs
		}
	}
	return 0
}

func (s *summary) aims() []aim {
	if s.v8 == nil {
		return nil
	}
	var all []aim
	least := func(name string, got, want float64) {
		all = append(all, aim{name, rounded(got), fmt.Sprintf(">= %v", want), got >= want})
	}
	most := func(name string, got, want float64) {
		all = append(all, aim{name, rounded(got), fmt.Sprintf("<= %v", want), got <= want})
	}
	for _, e := range []string{"o200k_base", "cl100k_base"} {
		least("v8 MB/s, "+e+", chat", s.mbs("emmer", e, corpus.Chat), 45)
		least("v8 MB/s, "+e+", chinese", s.mbs("emmer", e, corpus.Chinese), 28)
		least("v8 MB/s, "+e+", russian", s.mbs("emmer", e, corpus.Russian), 28)
		worst := 1e9
		for _, class := range corpus.Classes() {
			worst = min(worst, s.mbs("emmer", e, class))
		}
		least("v8 MB/s, "+e+", slowest class", worst, 10)
		library := max(s.mbs("tiktoken-go/tokenizer", e, corpus.Chat), s.mbs("pkoukk/tiktoken-go", e, corpus.Chat))
		least("v8, times the faster library, "+e+", chat", s.mbs("emmer", e, corpus.Chat)/library, 30)
	}
	least("v8 MB/s, approx-o200k, english", s.mbs("emmer-approx", "approx-o200k", corpus.English), 220)
	allocs := 0
	for _, l := range s.v8 {
		if l.System == "emmer" || l.System == "emmer-approx" {
			allocs += l.Allocs
		}
	}
	most("v8, heap objects of all classes", float64(allocs), 0)
	n := len(systems[0].encodings) * len(corpus.Classes())
	first, second := 0, s.after[n-1].Memory
	for _, l := range s.v8 {
		if l.System == "emmer-approx" {
			first = l.VMBytes + s.bare
		}
	}
	most("v8, bytes of memory grown when all is counted again", float64(second-first), 0)
	most("v8, MiB of a VM over a bare module, both encodings", float64(s.exact-s.bare)/(1<<20), 2.95)
	most("v8, MiB of a VM over a bare module, the estimates", float64(s.guess-s.bare)/(1<<20), 0.25)
	longs := s.after[n:]
	english := longs[0].Seconds
	slowest := 0.0
	for _, r := range longs[1:] {
		slowest = max(slowest, r.Seconds)
	}
	most("v8, 10 MB of the slowest class, times that of English", slowest/english, 10)
	return all
}
