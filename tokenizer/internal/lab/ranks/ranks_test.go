package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The tables of the project are what this program makes, byte by byte.
func TestTablesAreReproduced(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 3 {
		t.Errorf("%d tables", len(files))
	}
	for name, data := range files {
		have, err := os.ReadFile(filepath.Join("../../../bpe", name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(have, data) {
			t.Errorf("%s differs from what the generator makes; run go generate ./tokenizer/bpe", name)
		}
	}
}

func TestRankFileIsRefusedByItsSum(t *testing.T) {
	if _, err := readRanks([]byte("YQ== 0\n"), encodings[0].sum); err == nil {
		t.Error("a foreign rank file was accepted")
	}
}

func vocabularyOf(tokens ...string) *vocabulary {
	v := &vocabulary{ids: map[string]uint32{}}
	for i, token := range tokens {
		v.tokens = append(v.tokens, token)
		v.ids[token] = uint32(i)
	}
	return v
}

func TestChecksFindWhatWouldCountWrong(t *testing.T) {
	tests := []struct {
		name  string
		v     *vocabulary
		wrong bool
	}{
		{"all merge", vocabularyOf("a", "b", "c", "ab", "abc"), false},
		{"a token that nothing merges to", vocabularyOf("a", "b", "c", "abc"), true},
		{"a token whose bytes merge to others first", vocabularyOf("a", "b", "c", "ab", "bc", "d", "bcd", "abcd"), true},
		{"a token longer than the window allows for", vocabularyOf("a", "b", string(bytes.Repeat([]byte("a"), 129))), true},
		{"white space behind a line end", vocabularyOf("\n", " ", "\n "), true},
		{"white space between line ends", vocabularyOf("\n", " ", " \n", "\n \n"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.v.check()
			if err == nil {
				_, err = tt.v.merges()
			}
			if (err != nil) != tt.wrong {
				t.Errorf("error %v, wrong is %v", err, tt.wrong)
			}
		})
	}
}
