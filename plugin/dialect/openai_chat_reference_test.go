package dialect

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// reference is the dumb model of the scanner: the whole body in memory, decoded by encoding/json and
// walked by recursion. What it hears comes without an order.
type reference struct {
	heard  []string
	sealed int64 // bytes
}

// member is a field of an object: a map would lose what stands there twice.
type member struct {
	key   string // decoded
	value json.RawMessage
}

func members(v json.RawMessage) (out []member) {
	d := json.NewDecoder(bytes.NewReader(v))
	d.Token()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil
		}
		out = append(out, member{key.(string), value})
	}
	return out
}

func elements(v json.RawMessage) (out []json.RawMessage) {
	json.Unmarshal(v, &out)
	return out
}

// field is the member of that name, or nil.
func at(v json.RawMessage, key string) json.RawMessage {
	if kindOf(v) != '{' {
		return nil
	}
	for _, m := range members(v) {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// kindOf gives { [ " 0 t f n, or 0 for nothing.
func kindOf(v json.RawMessage) byte {
	v = bytes.TrimSpace(v)
	switch {
	case len(v) == 0:
		return 0
	case v[0] == '-' || v[0] >= '0' && v[0] <= '9':
		return '0'
	}
	return v[0]
}

// text hears strings.
func (r *reference) text(part Part, v json.RawMessage) bool {
	var s string
	if kindOf(v) != '"' || json.Unmarshal(v, &s) != nil {
		return false
	}
	if part != Text {
		s = partNames[part] + ": " + s
	}
	r.heard = append(r.heard, s)
	return true
}

// raw hears a value as written.
func (r *reference) raw(part Part, v json.RawMessage) {
	if v == nil {
		return
	}
	var b bytes.Buffer
	json.Compact(&b, v)
	r.heard = append(r.heard, heard(part, b.String()))
}

// either hears strings as text and all else, but null where it means nothing, as written.
func (r *reference) either(part Part, v json.RawMessage, null bool) {
	if k := kindOf(v); !r.text(part, v) && (k != 'n' || null) {
		r.raw(part, v)
	}
}

// plain hears strings and numbers as written, and says whether v is one.
func (r *reference) plain(v json.RawMessage) bool {
	k := kindOf(v)
	if k == '"' || k == '0' {
		r.raw(Schema, v)
		return true
	}
	return false
}

func (r *reference) keyword(m member) {
	r.heard = append(r.heard, partNames[Schema]+": "+m.key)
	r.raw(Schema, m.value)
}

func (r *reference) end(item Item) { r.heard = append(r.heard, "/"+itemNames[item]) }

func (r *reference) content(v json.RawMessage) {
	r.text(Text, v)
	if kindOf(v) == '[' {
		for _, p := range elements(v) {
			r.part(p)
		}
	}
	if kindOf(v) == '{' {
		r.part(v)
	}
}

func (r *reference) part(v json.RawMessage) {
	r.text(Text, v)
	r.either(Text, at(v, "text"), true)
	r.either(Text, at(v, "refusal"), true)
	r.content(at(v, "thinking"))
	for _, key := range []string{"image_url", "image", "video_url"} {
		r.media(Image, at(v, key), MediaURL, map[string]Part{"url": MediaURL, "detail": MediaDetail})
	}
	for _, key := range []string{"input_audio", "audio_url"} {
		r.media(Audio, at(v, key), AudioData, map[string]Part{"data": AudioData, "url": AudioData, "format": AudioFormat})
	}
	for _, key := range []string{"file", "document_url"} {
		r.media(File, at(v, key), FileRef, map[string]Part{"file_data": FileData, "url": FileData, "file_id": FileRef, "filename": FileRef})
	}
}

func (r *reference) media(item Item, v json.RawMessage, whole Part, parts map[string]Part) {
	if k := kindOf(v); k == 0 || k == 'n' {
		return
	}
	r.text(whole, v)
	for key, part := range parts {
		r.text(part, at(v, key))
	}
	r.end(item)
}

func (r *reference) message(v json.RawMessage) {
	r.text(Text, v)
	for _, key := range []string{"role", "refusal", "reasoning_content", "reasoning"} {
		r.either(Text, at(v, key), true)
	}
	r.content(at(v, "content"))
	if name := at(v, "name"); name != nil && kindOf(name) != 'n' {
		r.text(Text, name)
		r.end(Name)
	}
	call := func(v json.RawMessage) {
		for _, key := range []string{"name", "arguments", "input"} {
			r.either(Text, at(v, key), true)
		}
	}
	if thoughts := at(v, "reasoning_details"); kindOf(thoughts) == '[' {
		for _, t := range elements(thoughts) {
			r.either(Text, at(t, "text"), true)
			r.either(Text, at(t, "summary"), true)
			r.seal(at(t, "data"))
		}
	}
	call(at(v, "function_call"))
	if calls := at(v, "tool_calls"); kindOf(calls) == '[' {
		for _, c := range elements(calls) {
			call(at(c, "function"))
			call(at(c, "custom"))
		}
	}
	r.end(Message)
}

func (r *reference) tool(v json.RawMessage, shell bool) {
	switch k := kindOf(v); {
	case k == '{':
	case shell, k == '"', k == '0', k == '[':
		r.raw(Schema, v)
		return
	default:
		return
	}
	for _, m := range members(v) {
		switch {
		case m.key == "type" && shell, m.key == "strict":
		case m.key == "name":
			r.either(ToolName, m.value, false)
		case m.key == "description":
			r.either(ToolDescription, m.value, false)
		case m.key == "parameters":
			r.schema(m.value, true)
		case shell && (m.key == "function" || m.key == "custom"):
			r.tool(m.value, false)
		default:
			r.keyword(m)
		}
	}
}

// seal takes what only the provider can read.
func (r *reference) seal(v json.RawMessage) {
	if v = bytes.TrimSpace(v); kindOf(v) == '"' {
		r.sealed += int64(len(v)) - 2
	}
}

// choice hears the names of the tools that are chosen.
func (r *reference) choice(v json.RawMessage) {
	switch kindOf(v) {
	case '[':
		for _, c := range elements(v) {
			r.choice(c)
		}
	case '{':
		r.either(Text, at(v, "name"), true)
		for _, key := range []string{"function", "custom", "allowed_tools", "tools"} {
			r.choice(at(v, key))
		}
	}
}

func (r *reference) schemas(v json.RawMessage) {
	if kindOf(v) == '[' {
		for _, s := range elements(v) {
			r.schemas(s)
		}
		return
	}
	r.schema(v, false)
}

func (r *reference) types(v json.RawMessage) {
	switch kindOf(v) {
	case '[':
		for _, t := range elements(v) {
			r.types(t)
		}
	case '"':
		r.text(PropertyType, v)
	case '{', '0':
		r.raw(PropertyType, v)
	}
}

func (r *reference) schema(v json.RawMessage, root bool) {
	if r.plain(v) {
		return
	}
	switch kindOf(v) {
	case '[':
		r.raw(Schema, v)
		return
	case '{':
	default:
		return
	}
	for _, m := range members(v) {
		k := kindOf(m.value)
		switch m.key {
		case "required":
		case "type":
			if !root {
				r.types(m.value)
			}
		case "description":
			r.either(PropertyDescription, m.value, false)
		case "enum":
			switch k {
			case '[':
				all := elements(m.value)
				for _, value := range all {
					r.either(EnumValue, value, true)
				}
				if len(all) > 0 {
					r.end(Enum)
				}
			case '{', '"', '0':
				r.raw(Schema, m.value)
			}
		case "properties", "patternProperties":
			switch k {
			case '{':
				all := members(m.value)
				for _, p := range all {
					r.heard = append(r.heard, partNames[PropertyName]+": "+p.key)
					r.schema(p.value, false)
					r.end(Property)
				}
				if len(all) > 0 {
					r.end(Properties)
				}
			case '[', '"', '0':
				r.raw(Schema, m.value)
			}
		case "$defs", "definitions":
			switch k {
			case '{':
				for _, p := range members(m.value) {
					r.heard = append(r.heard, partNames[Schema]+": "+p.key)
					r.schemas(p.value)
				}
			case '[', '"', '0':
				r.raw(Schema, m.value)
			}
		case "additionalProperties", "items", "prefixItems", "anyOf", "oneOf", "allOf":
			r.schemas(m.value)
		default:
			r.keyword(m)
		}
	}
}

func (r *reference) format(v json.RawMessage) {
	if kindOf(v) != '{' {
		if !r.plain(v) && kindOf(v) == '[' {
			r.raw(Schema, v)
		}
		return
	}
	for _, m := range members(v) {
		switch m.key {
		case "type":
		case "json_schema":
			k := kindOf(m.value)
			if k == '{' {
				for _, f := range members(m.value) {
					switch f.key {
					case "strict":
					case "name":
						r.either(ToolName, f.value, false)
					case "description":
						r.either(ToolDescription, f.value, false)
					case "schema":
						r.raw(Schema, f.value)
					default:
						r.keyword(f)
					}
				}
			} else if !r.plain(m.value) && k == '[' {
				r.raw(Schema, m.value)
			}
			if k != 'n' {
				r.end(ResponseFormat)
			}
		default:
			r.keyword(m)
		}
	}
}

// referenceScan gives facts and, sorted, what the model heard; ok if the body is a JSON object.
func referenceScan(body []byte) (f Facts, all []string, ok bool) {
	if !json.Valid(body) || !utf8.Valid(body) || kindOf(body) != '{' {
		return f, nil, false
	}
	f.N = 1
	json.Unmarshal(at(body, "model"), &f.Model)
	json.Unmarshal(at(body, "stream"), &f.Stream)
	json.Unmarshal(at(at(body, "stream_options"), "include_usage"), &f.IncludeUsage)
	r := &reference{}
	for _, v := range elements(at(body, "messages")) {
		r.message(v)
	}
	for _, key := range []string{"tools", "functions"} {
		if v := at(body, key); kindOf(v) == '[' {
			for _, v := range elements(v) {
				r.tool(v, true)
				r.end(Tool)
			}
		}
	}
	r.format(at(body, "response_format"))
	r.raw(Text, at(body, "documents"))
	r.choice(at(body, "tool_choice"))
	r.choice(at(body, "function_call"))
	f.TokenIDs = r.sealed / sealedBytes
	slices.Sort(r.heard)
	return f, r.heard, true
}
