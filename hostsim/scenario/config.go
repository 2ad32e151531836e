package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// MergeConfig turns a plugin's YAML settings into the JSON it gets: what they leave out at the top
// level, or in a mapping there, is taken from the defaults.
func MergeConfig(defaults, own string) ([]byte, error) {
	base, err := readYAML(defaults)
	if err != nil {
		return nil, fmt.Errorf("defaults: %w", err)
	}
	top, err := readYAML(own)
	if err != nil {
		return nil, err
	}
	for name, value := range top {
		under, isMap := base[name].(map[string]any)
		over, alsoMap := value.(map[string]any)
		if !isMap || !alsoMap {
			base[name] = value
			continue
		}
		for k, v := range over {
			under[k] = v
		}
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(base); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

func readYAML(text string) (map[string]any, error) {
	out := map[string]any{}
	err := yaml.Unmarshal([]byte(text), &out)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if out == nil {
		out = map[string]any{}
	}
	return out, err
}
