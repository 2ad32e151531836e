package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/emmer-proxy/emmer/hostsim/scenario"
)

// settings are a filter's, with what the simulator must know of them.
type settings struct {
	json      []byte
	cluster   string            // by which the filter calls its store
	token     string            // that the store must accept
	env       map[string]string // of the VM
	namespace string
	mode      string // of scenario.EmmerModes
}

// defaults are what a laptop's settings may leave out.
const defaults = `
version: 1
currency: EUR
store: {cluster: emmer-bridge, protocol: upstash, token: "${EMMER_STORE_TOKEN}", timeout: 1s, namespace: emmer}
hold: {mode: pair}
`

var wholeVariable = regexp.MustCompile(`^\$\{([A-Za-z0-9_]+)\}$`)
var anyVariable = regexp.MustCompile(`\$\{([A-Za-z0-9_]+)\}`)

// readSettings turns the YAML of a file into what the filter gets. Variables in it are the VM's, and
// come from this process; the store's token is made up where it has no value.
func readSettings(text string, lookup func(string) (string, bool)) (settings, error) {
	s := settings{env: map[string]string{}}
	var err error
	if s.json, err = scenario.MergeConfig(defaults, text); err != nil {
		return s, err
	}
	var known struct {
		Store struct {
			Cluster   any    `json:"cluster"`
			Token     string `json:"token"`
			Namespace string `json:"namespace"`
		} `json:"store"`
		Hold struct {
			Mode string `json:"mode"`
		} `json:"hold"`
	}
	if err := json.Unmarshal(s.json, &known); err != nil {
		return s, errors.New("store, hold: want objects of words, such as store: {namespace: emmer}, hold: {mode: pair}")
	}
	cluster, ok := known.Store.Cluster.(string)
	if !ok {
		return s, fmt.Errorf("store.cluster: want a name here, found %v: there are no routes to read it from", known.Store.Cluster)
	}
	s.cluster, s.token, s.namespace, s.mode = cluster, known.Store.Token, known.Store.Namespace, known.Hold.Mode
	if _, ok := scenario.EmmerModes()[s.mode]; !ok {
		return s, fmt.Errorf("hold.mode: want pair or flag, found %q", s.mode)
	}
	for _, m := range anyVariable.FindAllStringSubmatch(string(s.json), -1) {
		if value, ok := lookup(m[1]); ok {
			s.env[m[1]] = value
		}
	}
	if m := wholeVariable.FindStringSubmatch(s.token); m != nil {
		if _, ok := s.env[m[1]]; !ok {
			s.env[m[1]] = rand.Text()
		}
		s.token = s.env[m[1]]
	}
	return s, nil
}

// parseTargets reads NAME=URL words; a bare URL is the default target, named "".
func parseTargets(words []string) (map[string]string, error) {
	out := map[string]string{}
	for _, word := range words {
		name, url, ok := strings.Cut(word, "=")
		if !ok || strings.Contains(name, ":") {
			name, url = "", word
		}
		if _, ok := out[name]; ok {
			return nil, fmt.Errorf("--upstream: second URL for %q", name)
		}
		if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
			return nil, fmt.Errorf("--upstream: want http://... or https://..., found %q", url)
		}
		out[name] = url
	}
	if _, ok := out[""]; !ok {
		return nil, fmt.Errorf("--upstream: want one without a name, for what is sent nowhere else")
	}
	return out, nil
}

func readFile(path string) (string, error) {
	b, err := os.ReadFile(path)
	return string(b), err
}
