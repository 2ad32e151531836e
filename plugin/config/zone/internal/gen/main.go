// Command gen packs the zone files of the running Go toolchain into zones.deflate.
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

func main() {
	log.SetFlags(0)
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		log.Fatal(err)
	}
	packed, err := pack(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("zones.deflate", packed, 0o644); err != nil {
		log.Fatal(err)
	}
}

func pack(path string) ([]byte, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	sort.Slice(z.File, func(i, j int) bool { return z.File[i].Name < z.File[j].Name })
	var index, data bytes.Buffer
	at := map[string]int{}
	for _, f := range z.File {
		if f.FileInfo().IsDir() {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		offset, ok := at[string(content)]
		if !ok {
			offset = data.Len()
			at[string(content)] = offset
			data.Write(content)
		}
		fmt.Fprintf(&index, "%s %d %d\n", f.Name, offset, len(content))
	}
	index.WriteByte('\n')
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	for _, part := range []*bytes.Buffer{&index, &data} {
		if _, err := w.Write(part.Bytes()); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
