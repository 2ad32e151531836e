package main

import (
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/emmer-proxy/emmer/tokenizer/approx"
)

// familyOf gives package approx's own family: reports measure the counter that ships.
func familyOf(name string) *approx.Family {
	switch name {
	case "o200k":
		return approx.O200K()
	case "cl100k":
		return approx.CL100K()
	case "claude":
		return approx.Claude()
	}
	return approx.Gemma()
}

// deviations are relative errors in per cent.
type deviations []float64

func (e deviations) mean() float64 {
	sum := 0.0
	for _, x := range e {
		sum += x
	}
	return sum / float64(max(1, len(e)))
}

// at gives a percentile.
func (e deviations) at(percent int) float64 {
	if len(e) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(e))
	return s[min(len(s)-1, len(s)*percent/100)]
}

// long says whether a document is one of those that the claimed error is of; shorter ones are
// reported on their own.
func long(d document) bool { return utf8.RuneCountInString(d.Text) >= shortText }

// short says whether a document is short, but no mere phrase.
func short(d document) bool {
	n := utf8.RuneCountInString(d.Text)
	return n >= 100 && n < shortText
}

// estimates counts the documents with the family's table.
func estimates(family string, docs []document) []int {
	var c approx.Counter
	n := make([]int, len(docs))
	for i, d := range docs {
		c.Reset(familyOf(family))
		c.Write([]byte(d.Text))
		n[i] = c.Count()
	}
	return n
}

// errorsOf gives the errors of the documents that are wanted.
func errorsOf(docs []document, got, want []int, wanted func(document) bool) deviations {
	var e deviations
	for i, d := range docs {
		if wanted(d) {
			e = append(e, relative(got[i], want[i]))
		}
	}
	return e
}

func relative(got, want int) float64 {
	d := got - want
	if d < 0 {
		d = -d
	}
	return 100 * float64(d) / float64(max(1, want))
}

// groups are the errors of ten documents together, as a conversation or a batch is.
func groups(docs []document, got, want []int) deviations {
	var held []int
	for i, d := range docs {
		if d.Held && long(d) {
			held = append(held, i)
		}
	}
	random("groups").Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
	var e deviations
	for g := range slices.Chunk(held, 10) {
		a, b := 0, 0
		for _, i := range g {
			a += got[i]
			b += want[i]
		}
		e = append(e, relative(a, b))
	}
	return e
}

// report prints the errors on the held-out documents of a family.
func report(w io.Writer, family string, docs []document, got, want []int) {
	line := func(name string, e deviations) {
		fmt.Fprintf(w, "%-8s %-28s %6d %7.1f %7.1f %7.1f %7.1f\n", family, name, len(e), e.mean(), e.at(95), e.at(99), e.at(100))
	}
	fmt.Fprintf(w, "%-8s %-28s %6s %7s %7s %7s %7s\n", "family", "held-out documents", "number", "mean %", "p95 %", "p99 %", "max %")
	line("from 600 characters", errorsOf(docs, got, want, func(d document) bool { return d.Held && long(d) }))
	line("100 to 599 characters", errorsOf(docs, got, want, func(d document) bool { return d.Held && short(d) }))
	line("below 100 characters", errorsOf(docs, got, want, func(d document) bool { return d.Held && !short(d) && !long(d) }))
	line("ten from 600 characters", groups(docs, got, want))
	line("fitted to, from 600", errorsOf(docs, got, want, func(d document) bool { return !d.Held && long(d) }))
	for _, class := range classNames(docs) {
		line("  "+class, errorsOf(docs, got, want, func(d document) bool { return d.Held && d.Class == class && long(d) }))
	}
}

func classNames(docs []document) []string {
	var names []string
	for _, d := range docs {
		if !slices.Contains(names, d.Class) {
			names = append(names, d.Class)
		}
	}
	return names
}
