package main

import (
	"encoding/json"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cutPlain takes a file as it is.
func cutPlain(data []byte, _ func(string) bool) string { return string(data) }

var (
	hidden    = regexp.MustCompile(`(?is)<(script|style|head|info|footer)\b.*?</(script|style|head|info|footer)>|<!--.*?-->|<\?.*?\?>`)
	blockEnd  = regexp.MustCompile(`(?i)</(p|h[1-6]|li|dt|dd|td|th|pre|div|title|item|note|tr|desc)>|<br ?/?>`)
	anyTag    = regexp.MustCompile(`<[^>]*>`)
	manySpace = regexp.MustCompile(`[ \t\r\n]+`)
)

// cutMarkup takes the paragraphs of an HTML or Mallard page.
func cutMarkup(data []byte, keep func(string) bool) string {
	text := hidden.ReplaceAllString(string(data), "")
	text = blockEnd.ReplaceAllString(text, "\x00")
	text = anyTag.ReplaceAllString(text, "")
	return paragraphs(strings.Split(text, "\x00"), "\n\n", func(s string) string {
		return strings.TrimSpace(manySpace.ReplaceAllString(html.UnescapeString(s), " "))
	}, keep)
}

// cutFortunes takes the sayings of a fortune file.
func cutFortunes(data []byte, keep func(string) bool) string {
	return paragraphs(strings.Split(string(data), "\n%\n"), "\n\n", strings.TrimSpace, keep)
}

// cutConversation takes what is said in a file of chatterbot-corpus.
func cutConversation(data []byte, keep func(string) bool) string {
	return paragraphs(strings.Split(string(data), "\n"), "\n", func(s string) string {
		if !strings.Contains(s, "- ") {
			return ""
		}
		return strings.Trim(strings.TrimLeft(s, " -"), "\" ")
	}, keep)
}

// cutCatalogue takes the translations of a gettext catalogue.
func cutCatalogue(data []byte, keep func(string) bool) string {
	var parts []string
	var part strings.Builder
	inside := false
	end := func() {
		if inside && part.Len() > 0 {
			parts = append(parts, part.String())
		}
		part.Reset()
		inside = false
	}
	for _, line := range strings.Split(string(data), "\n") {
		quoted := line
		switch {
		case strings.HasPrefix(line, "msgstr"):
			end()
			inside = true
			if _, after, ok := strings.Cut(line, " "); ok {
				quoted = after
			}
		case strings.HasPrefix(line, "\""):
		default:
			end()
			continue
		}
		if s, err := strconv.Unquote(quoted); err == nil && inside {
			part.WriteString(s)
		}
	}
	end()
	if len(parts) > 0 && strings.Contains(parts[0], "Content-Type") {
		parts = parts[1:]
	}
	return paragraphs(parts, "\n", strings.TrimSpace, keep)
}

// cutStrings takes the strings of a JSON file that have letters, as lines; not the keys.
func cutStrings(data []byte, keep func(string) bool) string {
	var parts []string
	for _, m := range jsonString.FindAllSubmatch(data, -1) {
		var s string
		if json.Unmarshal(m[1], &s) == nil && len(s) > 1 {
			parts = append(parts, s)
		}
	}
	return paragraphs(slices.Compact(parts), "\n", strings.TrimSpace, keep)
}

// jsonString is a string that is a value or an item.
var jsonString = regexp.MustCompile(`("(?:[^"\\]|\\.)*")\s*[,\]}]`)

// cutAfterRule takes what stands below a line of dashes: the JSON of Caddy's adapter tests.
func cutAfterRule(data []byte, _ func(string) bool) string {
	_, after, _ := strings.Cut(string(data), "\n----------\n")
	return after
}

func paragraphs(parts []string, sep string, clean func(string) string, keep func(string) bool) string {
	var out strings.Builder
	for _, s := range parts {
		s = clean(s)
		if s == "" || keep != nil && !keep(s) {
			continue
		}
		if out.Len() > 0 {
			out.WriteString(sep)
		}
		out.WriteString(s)
	}
	return out.String()
}

// inScript keeps paragraphs whose letters are mostly of a script: translated documentation leaves
// paragraphs in English.
func inScript(script *unicode.RangeTable) func(string) bool {
	if script == nil {
		return nil
	}
	return func(s string) bool {
		in, latin := 0, 0
		for _, r := range s {
			switch {
			case r < utf8.RuneSelf:
				if r|0x20 >= 'a' && r|0x20 <= 'z' {
					latin++
				}
			case unicode.In(r, script, unicode.Hiragana, unicode.Katakana, unicode.M):
				in += 2
			}
		}
		return in >= latin
	}
}

// notEnglish drops paragraphs that English words hold together.
func notEnglish(s string) bool {
	words := strings.Fields(strings.ToLower(s))
	english := 0
	for _, w := range words {
		switch w {
		case "the", "of", "to", "and", "you", "your", "this", "that", "with", "from":
			english++
		}
	}
	return english*12 <= len(words)
}
