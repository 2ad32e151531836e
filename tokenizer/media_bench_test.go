package tokenizer

import (
	"encoding/base64"
	"testing"
)

// A medium is 1 MB of base64, as it comes: in pieces of 16 KB.
func BenchmarkMedium(b *testing.B) {
	for _, c := range []struct {
		name  string
		start []byte
		fill  byte
	}{
		{"image", encoded(b, "png", 640, 480), 'A'},
		{"jpeg with a long preview", segments(encoded(b, "jpeg", 640, 480), 60000), 'A'},
		{"pdf", pdf(100), 'x'},
		{"pdf of slashes", pdf(100), '/'},
	} {
		doc := c.start
		for len(doc) < 750_000 {
			doc = append(doc, c.fill)
		}
		text := []byte("data:application/pdf;base64," + base64.StdEncoding.EncodeToString(doc))
		b.Run(c.name, func(b *testing.B) {
			p := prompt(b, "gpt-4o")
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				for rest := text; len(rest) > 0; {
					n := min(len(rest), 16<<10)
					p.Text(FileData, rest[:n], false)
					rest = rest[n:]
				}
				p.Text(FileData, nil, true)
				p.End(File)
			}
		})
	}
}
