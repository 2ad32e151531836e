package main

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
)

func TestCutters(t *testing.T) {
	tests := []struct {
		name string
		how  func([]byte, func(string) bool) string
		keep func(string) bool
		in   string
		want string
	}{
		{"markup", cutMarkup, nil, "<head><title>x</title></head><h1>A &amp; B</h1>\n<p>one\n two</p><script>no</script><p> </p>", "A & B\n\none two"},
		{"markup of a script", cutMarkup, inScript(unicode.Greek), "<p>left in English</p><p>Ελληνικά apt</p>", "Ελληνικά apt"},
		{"catalogue", cutCatalogue, nil, "msgid \"\"\nmsgstr \"\"\n\"Content-Type: x\\n\"\n\nmsgid \"a\"\nmsgstr \"é\"\n\"n\\tb\"\n\nmsgid \"c\"\nmsgstr[0] \"d\"\nmsgstr[1] \"e\"\n", "én\tb\nd\ne"},
		{"conversation", cutConversation, nil, "categories:\n- x\nconversations:\n- - Hi\n  - \"Hello\"\n", "x\nHi\nHello"},
		{"fortunes", cutFortunes, nil, "a\nb\n%\nc\n%\n", "a\nb\n\nc"},
		{"strings", cutStrings, nil, `{"key": "one", "list": ["two", "tw\"o"]}`, "one\ntwo\ntw\"o"},
		{"not English", cutFortunes, notEnglish, "this is the end of that\n%\ndit is het einde\n%\n", "dit is het einde"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.how([]byte(tt.in), tt.keep); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// No source gives documents to both sides, and no document is longer than meant.
func TestDrawSplitsBySource(t *testing.T) {
	var texts []text
	for i := range 60 {
		texts = append(texts, text{source: "pack:" + strings.Repeat("x", i), rest: strings.Repeat("été or winter\n", 2000)})
	}
	side := map[string]bool{}
	fitted, held := 0, 0
	for _, d := range draw("en", texts) {
		if was, seen := side[d.Source]; seen && was != d.Held {
			t.Errorf("%s is on both sides", d.Source)
		}
		side[d.Source] = d.Held
		if n := len([]rune(d.Text)); n > 6200 {
			t.Errorf("%d characters", n)
		}
		if d.Held {
			held++
		} else {
			fitted++
		}
	}
	if fitted == 0 || held == 0 || fitted > fitDocuments || held > heldDocuments {
		t.Errorf("%d documents to fit to, %d held out", fitted, held)
	}
}

func TestRecipeIsWhole(t *testing.T) {
	named := map[string]bool{}
	for _, p := range packages {
		named[p.name] = true
	}
	used := map[string]bool{}
	for _, c := range cuts() {
		if !named[c.pack] {
			t.Errorf("%s is cut out of %s, which is not fetched", c.class, c.pack)
		}
		if _, err := regexp.Compile(c.pattern); err != nil {
			t.Error(err)
		}
		used[c.pack] = true
	}
	for p := range named {
		if !used[p] {
			t.Errorf("%s is fetched for nothing", p)
		}
	}
}
