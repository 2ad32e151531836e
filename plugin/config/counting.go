package config

import (
	"strings"

	"github.com/emmer-proxy/emmer/tokenizer"
)

// fallbackEncoding counts for models whose name tells no tokenizer.
const fallbackEncoding = "approx-o200k"

// kin has for each tokenizer a model whose rates those models have that are configured with it and
// whose own name tells nothing: a deployment may be called anything.
var kin = map[string]string{
	"o200k_base": "gpt-4o", "cl100k_base": "gpt-4", "o200k_harmony": "gpt-oss",
	"approx-o200k": "gpt-4o", "approx-cl100k": "gpt-4", "approx-claude": "claude", "approx-gemma": "gemini",
}

// counting finds out how a model's prompts are counted: by its name, else by one of its aliases,
// else by the tokenizer that the configuration names, else as those of an open model. Then the
// configuration's own figures count.
func (r *reader) counting(m *Model, n *node) {
	m.Encoding, _ = tokenizer.ForName(fallbackEncoding)
	names := append([]string{m.Name}, m.Aliases...)
	for _, name := range names {
		if e, ok := tokenizer.Lookup(name); ok {
			m.Encoding = e
			break
		}
	}
	named := ""
	if n.kind == kindObject {
		if v := n.get("tokenizer"); v != nil {
			want := either(strings.Join(tokenizer.Names(), " "))
			named = r.text(v, "", want)
			if e, ok := tokenizer.ForName(named); ok {
				m.Encoding = e
			} else if named != "" {
				r.fault(v, want)
			}
		}
	}
	unknown := tokenizer.RatesOf("")
	m.Rates = unknown
	for _, name := range append(names, kin[named]) {
		if m.Rates = tokenizer.RatesOf(name); m.Rates != unknown {
			break
		}
	}
	if n.kind == kindObject {
		r.prompt(&m.Rates, n.get("prompt"))
	}
}

const (
	promptFields = "like per_message per_name reply tools tool tool_description properties property property_description" +
		" enum enum_item response_format image audio_per_second video_per_second page file_unknown"
	imageFields = "flat tiles patches crops low unknown"
	// mostRate bounds what one thing may cost: more than any context window holds.
	mostRate = 10_000_000
)

// prompt reads what the parts of a prompt cost, in tokens. What is not given stays.
func (r *reader) prompt(to *tokenizer.Rates, n *node) {
	if n == nil || !r.object(n, promptFields, "") {
		return
	}
	if v := n.get("like"); v != nil {
		const want = "the name of a model that Emmer knows, such as gpt-4o"
		if name := r.text(v, "", want); name != "" {
			if *to = tokenizer.RatesOf(name); *to == tokenizer.RatesOf("") {
				r.fault(v, want)
			}
		}
	}
	for _, f := range []struct {
		field string
		to    *int
		least int64
	}{
		{"per_message", &to.Message, 0}, {"per_name", &to.Name, -1000}, {"reply", &to.Reply, -1000},
		{"tools", &to.Tools, -1000}, {"tool", &to.Tool, 0}, {"tool_description", &to.ToolDescription, 0},
		{"properties", &to.Properties, 0}, {"property", &to.Property, 0}, {"property_description", &to.PropertyDescription, 0},
		{"enum", &to.Enum, -1000}, {"enum_item", &to.EnumValue, 0}, {"response_format", &to.Format, 0},
		{"audio_per_second", &to.AudioSecond, 0}, {"video_per_second", &to.VideoSecond, 0},
		{"page", &to.Page, 0}, {"file_unknown", &to.FileUnknown, 0},
	} {
		*f.to = int(r.count(n.get(f.field), int64(*f.to), f.least, mostRate))
	}
	r.image(to, n.get("image"))
}

// image reads the way in which images are counted. A new way takes nothing over from the old one but
// the figure for an image of unknown size.
func (r *reader) image(to *tokenizer.Rates, n *node) {
	if n == nil || !r.object(n, imageFields, "") {
		return
	}
	rate := func(n *node, field string, must bool) int {
		v := n.get(field)
		if v == nil && must {
			r.missing(n, field, "a whole number from 0 to "+decimal(mostRate))
		}
		return int(r.count(v, 0, 0, mostRate))
	}
	ways := 0
	for _, kid := range n.kids {
		if !within("flat tiles patches crops", kid.key) {
			continue
		}
		if ways++; ways > 1 {
			r.faultFound(kid, "a second way to count", "one of flat, tiles, patches, crops")
			continue
		}
		to.ImageBase, to.ImageTile, to.ImageScale, to.ImageEdge, to.ImagePatches, to.ImageHigh, to.ImageLow = 0, 0, 0, 0, 0, 0, 0
		switch kid.key {
		case "flat":
			to.ImageScheme = tokenizer.ImageFixed
			to.ImageBase = rate(n, "flat", true)
		case "tiles":
			to.ImageScheme = tokenizer.ImageTiles
			if r.object(kid, "base tile", "") {
				to.ImageBase, to.ImageTile = rate(kid, "base", true), rate(kid, "tile", true)
				to.ImageLow = to.ImageBase
			}
		case "crops":
			to.ImageScheme = tokenizer.ImageCrops
			if r.object(kid, "crop", "") {
				to.ImageTile = rate(kid, "crop", true)
			}
		case "patches":
			to.ImageScheme = tokenizer.ImagePatches32
			if !r.object(kid, "side per_thousand longest most most_high", "") {
				break
			}
			switch v := kid.get("side"); {
			case v == nil || v.raw == "32":
			case v.raw == "28":
				to.ImageScheme = tokenizer.ImagePatches28
			default:
				r.fault(v, "28 or 32")
			}
			to.ImageScale = int(r.count(kid.get("per_thousand"), 1000, 1, mostRate))
			to.ImageEdge, to.ImagePatches, to.ImageHigh = rate(kid, "longest", false), rate(kid, "most", false), rate(kid, "most_high", false)
		}
	}
	to.ImageLow = int(r.count(n.get("low"), int64(to.ImageLow), 0, mostRate))
	to.ImageUnknown = int(r.count(n.get("unknown"), int64(to.ImageUnknown), 0, mostRate))
}
