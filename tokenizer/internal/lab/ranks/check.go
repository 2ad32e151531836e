package main

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// What package bpe takes for granted about a vocabulary.
const (
	// maxToken is the length of the longest token, in bytes.
	maxToken = 128
	// maxID leaves the all-ones entry free, in 18 bits for each id.
	maxID = 1<<18 - 2
	// maxGap is the longest stretch of other white space between two line ends inside a token, in
	// bytes. Behind a longer stretch no token reaches back over it to a line end, so a run of white
	// space may be closed there whatever follows.
	maxGap = 32
)

// check looks for what would make the counter wrong. That each token encodes to itself is found by
// merges.
func (v *vocabulary) check() error {
	if len(v.tokens)-1 > maxID {
		return fmt.Errorf("%d tokens are more than the table has room for", len(v.tokens))
	}
	for _, token := range v.tokens {
		if len(token) > maxToken {
			return fmt.Errorf("token %q has %d bytes, at most %d", token, len(token), maxToken)
		}
		if gap, closed := lineGap(token); gap > maxGap || !closed {
			return fmt.Errorf("token %q goes on behind a line end for %d bytes, without another line end if it ends there", token, gap)
		}
	}
	return nil
}

// lineGap gives the longest stretch of white space behind a line end in a token of white space, and
// whether each such stretch is closed by a line end.
func lineGap(token string) (longest int, closed bool) {
	gap, seen := 0, false
	for i := 0; i < len(token); {
		r, n := utf8.DecodeRuneInString(token[i:])
		switch {
		case r == '\r' || r == '\n':
			gap, seen = 0, true
		case !unicode.Is(unicode.White_Space, r):
			return 0, true // no run of white space; the rules cut before this
		case seen:
			gap += n
			longest = max(longest, gap)
		}
		i += n
	}
	return longest, gap == 0
}
