package dialect

import "strings"

// ReadsCharset says whether a body of this content type reads the same to a decoder that honours
// its charset as to one that takes it for UTF-8, as all scanners here do. In UTF-7 or ISO-2022-JP a
// body can hold other keys and values than its bytes show. What gives ASCII its own bytes and never
// uses them for anything else differs in the letters of texts only.
func ReadsCharset(contentType string) bool {
	rest := strings.ToLower(contentType)
	for {
		_, after, found := strings.Cut(rest, "charset")
		if !found {
			return true
		}
		after = strings.TrimLeft(after, " \t")
		value, ok := strings.CutPrefix(after, "=")
		if !ok {
			return false
		}
		if at := strings.IndexAny(value, ";,"); at >= 0 {
			value, rest = value[:at], value[at:]
		} else {
			rest = ""
		}
		switch strings.Trim(value, " \t\"") {
		case "utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1", "windows-1252":
		default:
			return false
		}
	}
}
