package dialect

import "bytes"

// maxPathRounds bounds how many layers of percent-encoding are taken off.
const maxPathRounds = 3

// params is what a server takes for a path's parameters, which are no part of a name.
type params uint8

const (
	paramsOfSegment params = iota // from ';' to the end of the segment, as RFC 3986 section 3.3 has it
	paramsOfPath                  // from the first ';' to the end of the path, as RFC 1808 had it
	paramsNone                    // ';' is a letter
)

// A mark is a byte that ends a path where it is taken for the delimiter that it looks like, and is a letter
// elsewhere: '?' and '#' that were encoded (a server behind a proxy that decodes sees them bare), a '#',
// which no client sends, and a zero byte.
const marks = "?#\x00"

// readings are the ways in which servers may take a path apart, the likeliest first; one, unless the
// path holds a ';' or a mark.
func readings(path string) [][]segment {
	b, at := letters(path)
	all := [][]segment{split(path, b, at, paramsOfSegment, true)}
	marked, param := bytes.ContainsAny(b, marks), bytes.IndexByte(b, ';') >= 0
	if marked {
		all = append(all, split(path, b, at, paramsOfSegment, false))
	}
	if param {
		all = append(all, split(path, b, at, paramsOfPath, true), split(path, b, at, paramsNone, true))
	}
	if marked && param {
		all = append(all, split(path, b, at, paramsOfPath, false), split(path, b, at, paramsNone, false))
	}
	return all
}

// segments gives the segments of a path as it is most likely read.
func segments(path string) []segment {
	b, at := letters(path)
	return split(path, b, at, paramsOfSegment, true)
}

// letters gives a path without its query, decoded and in lower case, and where in it each letter was.
func letters(path string) (b []byte, at []int) {
	from, to := 0, len(path)
	for i := range len(path) {
		if path[i] == '?' {
			to = i
			break
		}
	}
	if to > 0 && path[0] != '/' {
		// The absolute form of HTTP/1.1: scheme://authority/path.
		for i := 0; i+2 < to; i++ {
			if path[i] == ':' && path[i+1] == '/' && path[i+2] == '/' {
				for from = i + 3; from < to && path[from] != '/'; {
					from++
				}
				if from == to {
					from = i + 3
				}
				break
			}
		}
	}
	b, at = []byte(path[from:to]), make([]int, to-from)
	for i := range at {
		at[i] = from + i
	}
	for range maxPathRounds {
		n := decodePercent(b, at)
		if n == len(b) {
			break
		}
		b, at = b[:n], at[:n]
	}
	n := 0
	for i, c := range b {
		switch {
		case c == '\\':
			c = '/'
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case isControl(c):
			// URL parsers of browsers and of Node drop tabs and line ends; the routes of Python's web
			// frameworks are expressions that end in $, which lets a line end pass.
			continue
		}
		b[n], at[n] = c, at[i]
		n++
	}
	return b[:n], at[:n]
}

// isControl says whether a letter is one that does not count. A zero byte does: it is a mark.
func isControl(c byte) bool { return c > 0 && c < ' ' || c == 0x7f }

// split gives the segments of what letters made of a path.
func split(path string, b []byte, at []int, params params, cut bool) []segment {
	stop := len(path)
	if cut {
		if i := bytes.IndexAny(b, marks); i >= 0 {
			stop, b = at[i], b[:i]
		}
	}
	if params == paramsOfPath {
		if i := bytes.IndexByte(b, ';'); i >= 0 {
			stop, b = at[i], b[:i]
		}
	}
	var out []segment
	for begin := 0; begin <= len(b); {
		end := begin
		for end < len(b) && b[end] != '/' {
			end++
		}
		next := end + 1
		if i := bytes.IndexByte(b[begin:end], ';'); i >= 0 && params == paramsOfSegment {
			end = begin + i
		}
		for begin < end && b[begin] == ' ' {
			begin++
		}
		for begin < end && b[end-1] == ' ' {
			end--
		}
		switch text := b[begin:end]; string(text) {
		case "", ".":
		case "..":
			if len(out) > 0 {
				out = out[:len(out)-1]
			}
		default:
			s := segment{string(text), Span{int64(at[begin]), int64(stop)}, at[begin:end]}
			if end < len(b) {
				s.at.End = int64(at[end])
			}
			out = append(out, s)
		}
		begin = next
	}
	return out
}
