package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
)

// vocabulary is the tokens of an encoding. A token's place is its id and its rank.
type vocabulary struct {
	tokens []string
	ids    map[string]uint32
}

// readRanks reads lines of a token in base64 and its rank, in the order of the ranks.
func readRanks(data []byte, sum string) (*vocabulary, error) {
	if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
		return nil, fmt.Errorf("sha256 is %x, want %s", got, sum)
	}
	v := &vocabulary{ids: map[string]uint32{}}
	for line := range bytes.Lines(data) {
		fields := bytes.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("line %q is not a token and its rank", line)
		}
		token, err := base64.StdEncoding.DecodeString(string(fields[0]))
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
		rank, err := strconv.Atoi(string(fields[1]))
		if err != nil || rank != len(v.tokens) {
			return nil, fmt.Errorf("line %q: want rank %d", line, len(v.tokens))
		}
		v.ids[string(token)] = uint32(rank)
		v.tokens = append(v.tokens, string(token))
	}
	if len(v.ids) != len(v.tokens) {
		return nil, errors.New("a token stands twice")
	}
	for b := range 256 {
		if _, ok := v.ids[string([]byte{byte(b)})]; !ok {
			return nil, fmt.Errorf("byte %d is no token", b)
		}
	}
	return v, nil
}

// merge is how a token of two bytes or more comes about.
type merge struct{ left, right, id uint32 }

// merges gives the last merge of every token, in the order of the ids.
func (v *vocabulary) merges() ([]merge, error) {
	var all []merge
	for id, token := range v.tokens {
		if len(token) < 2 {
			continue
		}
		left, right, err := v.lastMerge(token)
		if err != nil {
			return nil, err
		}
		all = append(all, merge{left, right, uint32(id)})
	}
	return all, nil
}

// lastMerge encodes a token's own bytes, until two parts are left. That it gets there is the check
// that the token encodes to itself.
func (v *vocabulary) lastMerge(token string) (left, right uint32, err error) {
	parts := make([]string, 0, len(token))
	for i := range len(token) {
		parts = append(parts, token[i:i+1])
	}
	for len(parts) > 2 {
		at, lowest := -1, uint32(0)
		for i := range len(parts) - 1 {
			if id, ok := v.ids[parts[i]+parts[i+1]]; ok && (at < 0 || id < lowest) {
				at, lowest = i, id
			}
		}
		if at < 0 {
			return 0, 0, fmt.Errorf("token %q does not encode to itself", token)
		}
		parts[at] += parts[at+1]
		parts = append(parts[:at+1], parts[at+2:]...)
	}
	return v.ids[parts[0]], v.ids[parts[1]], nil
}
