// Ranks generates the tables of package tokenizer/bpe: the merges of each encoding from OpenAI's
// rank files, as the module tiktoken-go-loader ships them, and the classes of characters from the
// Unicode tables of the Go release that runs it.
//
// It refuses a rank file whose checksum is not the one it knows, and a vocabulary for which the
// counter's design would not be exact (see check.go). The same input gives the same bytes.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// encodings are the vocabularies, each with its rank file's checksum.
var encodings = []struct {
	name       string
	sum        string // sha256
	bucketBits int    // six merges to a bucket
}{
	{"o200k_base", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d", 15},
	{"cl100k_base", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7", 14},
}

// generate makes every table, by file name.
func generate() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, e := range encodings {
		data, err := assets.Assets.ReadFile(e.name + ".tiktoken")
		if err != nil {
			return nil, err
		}
		v, err := readRanks(data, e.sum)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		if err := v.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		merges, err := v.merges()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		if files[e.name+".bin"], err = layOut(v, merges, e.bucketBits); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	classes, err := classTable()
	if err != nil {
		return nil, err
	}
	files["class.bin"] = classes
	return files, nil
}

func main() {
	out := flag.String("out", "", "directory to write the tables to")
	flag.Parse()
	if *out == "" {
		flag.Usage()
		os.Exit(2)
	}
	files, err := generate()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ranks:", err)
		os.Exit(1)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(*out, name), data, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "ranks:", err)
			os.Exit(1)
		}
	}
}
