package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sort"
	"strings"
)

// largestFile of an archive that is read, in bytes.
const largestFile = 4 << 20

// source is one file of a package.
type source struct {
	pack string // name of the package
	path string // inside of it
	data []byte
}

// name tells a source from all others; the split into fit and held-out goes by it.
func (s source) name() string { return s.pack + ":" + s.path }

// readArchive gives the files of a package that want asks for, by path.
func readArchive(p pack, path string, want func(path string) bool) ([]source, error) {
	var files []source
	add := func(name string, size int64, open func() (io.ReadCloser, error)) error {
		name = strings.TrimPrefix(name, "./")
		if size > largestFile || !want(name) {
			return nil
		}
		r, err := open()
		if err != nil {
			return err
		}
		defer r.Close()
		data, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		files = append(files, source{pack: p.name, path: name, data: data})
		return nil
	}
	var err error
	switch p.registry {
	case debian:
		err = eachOfDeb(path, add)
	case npm:
		err = eachOfTarball(path, add)
	default: // wheels and Go modules are zip files
		err = eachOfZip(path, add)
	}
	sort.Slice(files, func(i, j int) bool { return files[i].path < files[j].path })
	return files, err
}

type addFile func(name string, size int64, open func() (io.ReadCloser, error)) error

func eachOfZip(path string, add addFile) error {
	z, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, f := range z.File {
		if err := add(f.Name, int64(f.UncompressedSize64), f.Open); err != nil {
			return err
		}
	}
	return nil
}

func eachOfTarball(path string, add addFile) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	return eachOfTar(z, add)
}

// eachOfDeb leaves xz to dpkg: Go's library has none.
func eachOfDeb(path string, add addFile) error {
	cmd := exec.Command("dpkg-deb", "--fsys-tarfile", path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = eachOfTar(out, add)
	if _, e := io.Copy(io.Discard, out); err == nil {
		err = e
	}
	if e := cmd.Wait(); err == nil {
		err = e
	}
	return err
}

func eachOfTar(r io.Reader, add addFile) error {
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		open := func() (io.ReadCloser, error) { return io.NopCloser(t), nil }
		if err := add(h.Name, h.Size, open); err != nil {
			return err
		}
	}
}
