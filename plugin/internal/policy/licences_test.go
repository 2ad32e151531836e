package policy

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// permissive are the licences that a dependency may have: those that ask for no more than keeping
// their notice. Each is told by sentences of its own text.
var permissive = []struct {
	name string
	text []string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0"}},
	{"MIT", []string{"permission is hereby granted, free of charge", "without restriction"}},
	{"BSD", []string{"redistribution and use in source and binary forms", "redistributions in binary form must reproduce"}},
	{"ISC", []string{"permission to use, copy, modify, and", "distribute this software for any purpose with or without fee"}},
}

// refused are words of licences that ask for more, even beside a permissive text.
var refused = []string{"gnu general public license", "gnu lesser general public", "gnu affero", "mozilla public license",
	"server side public license", "business source license", "commons clause"}

var spaces = regexp.MustCompile(`\s+`)

// licenceOf is the name of the permissive licence that a text is, or "".
func licenceOf(text string) string {
	text = spaces.ReplaceAllString(strings.ToLower(text), " ")
	for _, word := range refused {
		if strings.Contains(text, word) {
			return ""
		}
	}
	for _, l := range permissive {
		if !slices.ContainsFunc(l.text, func(s string) bool { return !strings.Contains(text, s) }) {
			return l.name
		}
	}
	return ""
}

// Every module that a program, the filter, a test or a pinned tool is built from.
func TestLicencesOfDependencies(t *testing.T) {
	modules := map[string]string{} // path@version -> directory
	add := func(pkgs []listed) {
		for _, p := range pkgs {
			if p.Module != nil && p.Module.Path != module {
				modules[p.Module.Path+"@"+p.Module.Version] = p.Module.Dir
			}
		}
	}
	add(goList(t, nil, "-deps", "-test", "./..."))
	add(goList(t, []string{"GOOS=wasip1", "GOARCH=wasm"}, "-deps", "./hostsim/testdata/floor"))
	add(goList(t, nil, "-deps", "tool"))
	for name, dir := range modules {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		found := 0
		for _, e := range entries {
			base := strings.ToUpper(e.Name())
			if e.IsDir() || !strings.HasPrefix(base, "LICEN") && !strings.HasPrefix(base, "COPYING") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			found++
			kind := licenceOf(string(text))
			if kind == "" {
				t.Errorf("%s: %s is no licence on the list", name, e.Name())
			}
			t.Logf("%s: %s", name, kind)
		}
		if found == 0 {
			t.Errorf("%s has no licence file", name)
		}
	}
	if len(modules) < 3 {
		t.Errorf("only %d modules found", len(modules))
	}
}

// A file that is no text says where it comes from: the NOTICE.md beside it names it.
func TestNoticesOfDataFiles(t *testing.T) {
	for _, path := range tracked(t) {
		data, err := os.ReadFile(filepath.Join(root(t), path))
		if err != nil {
			t.Error(err)
			continue
		}
		if utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 {
			continue
		}
		notice := filepath.Join(filepath.Dir(path), "NOTICE.md")
		text, err := os.ReadFile(filepath.Join(root(t), notice))
		if err != nil {
			t.Errorf("%s has no %s that says where it comes from and under which licence", path, notice)
		} else if !strings.Contains(string(text), filepath.Base(path)) {
			t.Errorf("%s does not name %s", notice, filepath.Base(path))
		}
	}
}

func TestLicencesCheckerTellsTexts(t *testing.T) {
	own, err := os.ReadFile(filepath.Join(root(t), "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, text, want string }{
		{"the project's own", string(own), "Apache-2.0"},
		{"MIT", "Permission is hereby granted, free\nof charge, to any person ... without restriction", "MIT"},
		{"GPL", "GNU General Public License, version 3", ""},
		{"MIT with a rider", "Permission is hereby granted, free of charge ... without restriction. Commons Clause", ""},
		{"nothing", "all rights reserved", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := licenceOf(tt.text); got != tt.want {
				t.Errorf("licence is %q, want %q", got, tt.want)
			}
		})
	}
}
