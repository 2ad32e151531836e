package corpus

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"unicode/utf8"
)

// digests of 100,000 bytes of each class with seed 1, and of 1,000 hostile strings: figures measured
// on these texts are only comparable while they stay the same.
var digests = map[string]string{
	"chat": "f479ad1d89cbc1e3", "english": "8309adaab3f25533", "chinese": "d2808556be541574", "russian": "a4ba8417f3adf1b5",
	"code": "6ff6d7390bdb335a", "logs": "33f9fd69a9e75c62", "base64": "53a8d50a7f13f4f7", "whitespace": "233b714f7dc27aaf",
	"a-run": "6d1cf22d7cc09b08", "letters": "e6782238925ab96f", "hostile": "d90ecefa6fed42a3",
}

func TestTextsAreTheSameEverywhere(t *testing.T) {
	for _, class := range Classes() {
		b, err := Text(class, 1, 100_000)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > 100_000 || len(b) < 99_997 || !utf8.Valid(b) {
			t.Errorf("%s: %d bytes, valid UTF-8: %v", class, len(b), utf8.Valid(b))
		}
		short, err := Text(class, 1, 5_000)
		if err != nil || string(short) != string(b[:len(short)]) {
			t.Errorf("%s: a shorter text begins differently (%v)", class, err)
		}
		check(t, class, b)
	}
	var all []byte
	r := NewRand(1)
	for i := range 1000 {
		s := Hostile(r, i)
		if len(s) > i || !utf8.ValidString(s) {
			t.Errorf("string %d: %d bytes, %q", i, len(s), s)
		}
		all = append(all, s...)
	}
	check(t, "hostile", all)
	if _, err := Text("klingon", 1, 10); err == nil {
		t.Error("an unknown class gives a text")
	}
}

func check(t *testing.T, name string, b []byte) {
	t.Helper()
	sum := sha256.Sum256(b)
	if got := hex.EncodeToString(sum[:8]); got != digests[name] {
		t.Errorf("%s: %s, want %s", name, got, digests[name])
	}
}
