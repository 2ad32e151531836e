// Package scenario runs what a gateway must do, written as text: requests, the provider's answers,
// faults, and what must then be true. The same file runs through hostsim and through a real Envoy.
// The grammar is in README.md.
//
// The runner talks HTTP to a gateway as a client and as an upstream, and reads counters and access
// logs. It knows nothing of a plugin's keys or formats: what stands in a store is asked through
// probes, which the caller registers, and a plugin's settings come from the file and from the
// caller's Modes and Defaults.
//
// The caller calls RunAll in a test, or Run elsewhere. Both start what they need and stop it again.
package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"

	"github.com/emmer-proxy/emmer/hostsim/upstream"
)

// Names of files that mean something to the runner. All others are data.
const (
	fileSettings  = "settings"
	fileConfig    = "config.yaml"
	fileRawConfig = "config.json" // instead: handed on as it is, without defaults
	fileUpstream  = "upstream"    // also upstream.NAME
	fileSteps     = "steps"
	requestExt    = ".http"
)

// Scenario is one parsed file.
type Scenario struct {
	Name     string // the file's name without directory and extension
	Path     string
	Settings Settings

	archive   *txtar.Archive
	lines     map[string]int // number of the first line of each file's content
	config    []byte
	upstreams map[string]*upstream.Script // "" is the default one
	requests  map[string]*message
	files     map[string][]byte
	steps     []step
}

// Settings are the part of a scenario that must be known before a gateway starts.
type Settings struct {
	About         string                    `yaml:"about"`
	Cases         []string                  `yaml:"cases"`
	Modes         []string                  `yaml:"modes"`    // of Options.Modes; none = all
	Workers       int                       `yaml:"workers"`  // 0 = 1
	Gateways      int                       `yaml:"gateways"` // processes with the same listeners on one Redis; 0 = 1
	BufferLimit   int                       `yaml:"buffer_limit"`
	TLS           bool                      `yaml:"tls"`
	Closer        bool                      `yaml:"closer"` // Options.Network stands before the HTTP server
	IdleTimeout   time.Duration             `yaml:"idle_timeout"`
	HTTP2Upstream bool                      `yaml:"http2_upstream"`
	HTTP2Bridge   bool                      `yaml:"http2_bridge"`
	JWT           *JWT                      `yaml:"jwt"`
	Tokens        map[string]map[string]any `yaml:"tokens"` // claims by name, used as ${token.NAME}
	Between       []Between                 `yaml:"between"`
	Bridge        string                    `yaml:"bridge"`         // up, or none: its cluster has no host
	BridgeTimeout time.Duration             `yaml:"bridge_timeout"` // of a command of the bridge; 0 = 5 s
	Clock         string                    `yaml:"clock"`          // of the embedded Redis: real, or frozen: it moves by `advance` only
	NoHost        []string                  `yaml:"no_host"`        // targets whose cluster has no host
}

// JWT says how tokens are signed and where their claims appear.
type JWT struct {
	Secret   string `yaml:"secret"`
	Metadata string `yaml:"metadata"` // "" = payload
}

// Between is a filter between the entries of a mode that has several.
type Between struct {
	Delay time.Duration  `yaml:"delay"`
	Envoy map[string]any `yaml:"envoy"` // any HTTP filter as Envoy writes it; only real Envoy has it
}

// Load reads scenario files. Patterns may hold *.
func Load(patterns ...string) ([]*Scenario, error) {
	var out []*Scenario
	var faults []error
	names := map[string]string{}
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pattern, err)
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("%s: no such scenario", pattern)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			s, err := Parse(path, data)
			if err != nil {
				faults = append(faults, err)
				continue
			}
			if other, ok := names[s.Name]; ok {
				faults = append(faults, fmt.Errorf("%s: has the name of %s", path, other))
			}
			names[s.Name] = path
			out = append(out, s)
		}
	}
	return out, errors.Join(faults...)
}

// Parse reads one scenario. path is for names and messages only.
func Parse(path string, data []byte) (*Scenario, error) {
	base := filepath.Base(path)
	s := &Scenario{
		Name:      strings.TrimSuffix(base, filepath.Ext(base)),
		Path:      path,
		archive:   txtar.Parse(data),
		upstreams: map[string]*upstream.Script{},
		requests:  map[string]*message{},
		files:     map[string][]byte{},
	}
	s.lines = firstLines(s.archive)
	for _, f := range s.archive.Files {
		if _, ok := s.files[f.Name]; ok {
			return nil, fmt.Errorf("%s:%d: second file %q", path, s.lines[f.Name]-1, f.Name)
		}
		s.files[f.Name] = withoutLastNewline(f.Data)
	}
	var faults []error
	fault := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	fault(s.parseSettings())
	for _, f := range s.archive.Files {
		switch {
		case f.Name == fileConfig, f.Name == fileRawConfig:
			s.config = f.Data
		case f.Name == fileUpstream || strings.HasPrefix(f.Name, fileUpstream+"."):
			name := strings.TrimPrefix(strings.TrimPrefix(f.Name, fileUpstream), ".")
			script, err := upstream.Parse(path, s.lines[f.Name], string(f.Data), s.files)
			fault(err)
			s.upstreams[name] = script
		case strings.HasSuffix(f.Name, requestExt):
			m, err := parseMessage(path, s.lines[f.Name], f.Data, s.files)
			fault(err)
			if err != nil {
				m = &message{} // its fault is noted; the steps are still checked
			}
			s.requests[strings.TrimSuffix(f.Name, requestExt)] = m
		}
	}
	if _, ok := s.upstreams[""]; !ok {
		s.upstreams[""] = nil
	}
	stepsText, ok := s.file(fileSteps)
	if !ok {
		fault(fmt.Errorf("%s: no file %q", path, fileSteps))
	}
	fault(s.parseSteps(stepsText))
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Scenario) file(name string) (string, bool) {
	for _, f := range s.archive.Files {
		if f.Name == name {
			return string(f.Data), true
		}
	}
	return "", false
}

func (s *Scenario) parseSettings() error {
	text, ok := s.file(fileSettings)
	if ok {
		d := yaml.NewDecoder(bytes.NewReader([]byte(text)))
		d.KnownFields(true)
		if err := d.Decode(&s.Settings); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %s (from line %d): %w", s.Path, fileSettings, s.lines[fileSettings], err)
		}
	}
	at := func(field string, format string, args ...any) error {
		return fmt.Errorf("%s: %s: %s: %s", s.Path, fileSettings, field, fmt.Sprintf(format, args...))
	}
	set := &s.Settings
	set.Workers = max(set.Workers, 1)
	set.Gateways = max(set.Gateways, 1)
	if set.Bridge == "" {
		set.Bridge = "up"
	}
	if set.BridgeTimeout == 0 {
		set.BridgeTimeout = 5 * time.Second
	}
	switch {
	case set.Clock != "" && set.Clock != "real" && set.Clock != "frozen":
		return at("clock", "want real or frozen, found %q", set.Clock)
	case set.Bridge != "up" && set.Bridge != "none":
		return at("bridge", "want up or none, found %q", set.Bridge)
	case set.Workers > 16:
		return at("workers", "want at most 16, found %d", set.Workers)
	case set.Gateways > 4:
		return at("gateways", "want at most 4, found %d", set.Gateways)
	case len(set.Tokens) > 0 && set.JWT == nil:
		return at("tokens", "there is no jwt to sign them with")
	}
	if set.JWT != nil {
		if len(set.JWT.Secret) < 32 {
			return at("jwt.secret", "want at least 32 bytes, found %d", len(set.JWT.Secret))
		}
		if set.JWT.Metadata == "" {
			set.JWT.Metadata = "payload"
		}
	}
	for i, b := range set.Between {
		if (b.Delay > 0) == (len(b.Envoy) > 0) {
			return at(fmt.Sprintf("between[%d]", i), "want either delay or envoy")
		}
	}
	return nil
}

// modes are those of all that this scenario runs in.
func (s *Scenario) modes(all []string) ([]string, error) {
	if len(s.Settings.Modes) == 0 {
		return all, nil
	}
	for _, m := range s.Settings.Modes {
		if !slices.Contains(all, m) {
			return nil, fmt.Errorf("%s: %s: modes: want some of %s, found %q", s.Path, fileSettings, strings.Join(all, ", "), m)
		}
	}
	return s.Settings.Modes, nil
}

// embedded says whether the scenario needs what only the embedded Redis can do.
func (s *Scenario) embedded() bool {
	return s.Settings.Clock == "frozen" || slices.ContainsFunc(s.steps, func(st step) bool {
		return st.verb == "redis" && redisFaults[st.args[0]]
	})
}

// targets are the names that requests can be routed to beside the default.
func (s *Scenario) targets() []string {
	var out []string
	for name := range s.upstreams {
		if name != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// firstLines finds where each file's content begins: txtar keeps no line numbers, and its format is
// exact enough to count them.
func firstLines(a *txtar.Archive) map[string]int {
	out := map[string]int{}
	line := 1 + bytes.Count(a.Comment, []byte("\n"))
	for _, f := range a.Files {
		line++ // its marker
		out[f.Name] = line
		line += bytes.Count(f.Data, []byte("\n"))
	}
	return out
}

func withoutLastNewline(b []byte) []byte { return bytes.TrimSuffix(b, []byte("\n")) }
