package dialect

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// camel is a key as the JSON form of protocol buffers spells it.
func camel(key string) string {
	var b strings.Builder
	up := false
	for i, r := range key {
		switch {
		case r == '_' && i > 0:
			up = true
		case up:
			b.WriteRune(unicode.ToUpper(r))
			up = false
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// protoAt is the member of that name in either spelling, or nil.
func protoAt(v json.RawMessage, key string) json.RawMessage {
	if kindOf(v) == '{' {
		for _, m := range members(v) {
			if m.key == key || camel(m.key) == key {
				return m.value
			}
		}
	}
	return nil
}

// several are the values that stand where a list is meant.
func several(v json.RawMessage) []json.RawMessage {
	switch kindOf(v) {
	case '[':
		return elements(v)
	case '{', '"':
		return []json.RawMessage{v}
	}
	return nil
}

// geminiReference is the dumb model of the scanner of Gemini's requests.
type geminiReference struct{ reference }

func (r *geminiReference) optional(part Part, v json.RawMessage) {
	if v != nil && kindOf(v) != 'n' {
		r.raw(part, v)
	}
}

func (r *geminiReference) file(v json.RawMessage, data string, as Part) {
	if v == nil || kindOf(v) == 'n' {
		return
	}
	r.text(AudioFormat, protoAt(v, "mimeType"))
	r.text(as, protoAt(v, data))
	r.end(File)
}

func (r *geminiReference) parts(v json.RawMessage) {
	for _, p := range several(v) {
		r.text(Text, p)
		r.text(Text, protoAt(p, "text"))
		r.file(protoAt(p, "inlineData"), "data", FileData)
		r.file(protoAt(p, "fileData"), "fileUri", FileRef)
		call, back := protoAt(p, "functionCall"), protoAt(p, "functionResponse")
		r.text(Text, protoAt(call, "name"))
		r.optional(Text, protoAt(call, "args"))
		r.text(Text, protoAt(back, "name"))
		r.optional(Text, protoAt(back, "response"))
		r.parts(protoAt(back, "parts"))
		r.text(Text, protoAt(protoAt(p, "executableCode"), "code"))
		r.text(Text, protoAt(protoAt(p, "codeExecutionResult"), "output"))
	}
}

func (r *geminiReference) content(v json.RawMessage) {
	r.text(Text, v)
	r.text(Text, protoAt(v, "role"))
	r.parts(protoAt(v, "parts"))
}

func (r *geminiReference) schema(v json.RawMessage, root bool) {
	switch kindOf(v) {
	case '"', '0':
		r.raw(Schema, v)
	case '[':
		if root {
			r.raw(Schema, v)
			return
		}
		for _, e := range elements(v) {
			r.schema(e, false)
		}
	case '{':
		for _, m := range members(v) {
			r.member(m, root)
		}
	}
}

func (r *geminiReference) member(m member, root bool) {
	k := kindOf(m.value)
	key := m.key
	if c := camel(key); slices.Contains([]string{"propertyOrdering", "additionalProperties", "prefixItems", "anyOf", "oneOf", "allOf"}, c) {
		key = c
	}
	switch key {
	case "required", "propertyOrdering":
	case "type":
		if !root {
			r.types(m.value)
		}
	case "description":
		r.either(PropertyDescription, m.value, false)
	case "enum":
		if k != '[' {
			r.schema2(m.value, k == '{')
			return
		}
		for _, e := range elements(m.value) {
			r.either(EnumValue, e, true)
		}
		if len(elements(m.value)) > 0 {
			r.end(Enum)
		}
	case "properties":
		if k != '{' {
			r.schema2(m.value, k == '[')
			return
		}
		for _, p := range members(m.value) {
			r.heard = append(r.heard, partNames[PropertyName]+": "+p.key)
			r.schema(p.value, kindOf(p.value) == '[')
			r.end(Property)
		}
		if len(members(m.value)) > 0 {
			r.end(Properties)
		}
	case "$defs", "definitions", "defs":
		if k != '{' {
			r.schema2(m.value, k == '[')
			return
		}
		for _, p := range members(m.value) {
			r.heard = append(r.heard, partNames[Schema]+": "+p.key)
			r.schema(p.value, false)
		}
	case "additionalProperties", "items", "prefixItems", "anyOf", "oneOf", "allOf":
		r.schema(m.value, false)
	default:
		r.keyword(m)
	}
}

// schema2 hears strings and numbers, and containers if whole says so, as written.
func (r *geminiReference) schema2(v json.RawMessage, whole bool) {
	if k := kindOf(v); whole || k == '"' || k == '0' {
		r.raw(Schema, v)
	}
}

func (r *geminiReference) function(v json.RawMessage) {
	if kindOf(v) != '{' {
		return
	}
	r.text(ToolName, protoAt(v, "name"))
	r.text(ToolDescription, protoAt(v, "description"))
	r.schema(protoAt(v, "parameters"), true)
	r.schema(protoAt(v, "parametersJsonSchema"), true)
	r.raw(Schema, protoAt(v, "response"))
	r.raw(Schema, protoAt(v, "responseJsonSchema"))
}

func (r *geminiReference) body(v json.RawMessage) {
	contents := protoAt(v, "contents")
	switch kindOf(contents) {
	case '[':
		for _, c := range elements(contents) {
			r.content(c)
			r.end(Message)
		}
	case 0:
	default:
		r.content(contents)
		r.end(Message)
	}
	if system := protoAt(v, "systemInstruction"); system != nil && kindOf(system) != 0 {
		r.content(system)
		r.end(Message)
	}
	for _, t := range several(protoAt(v, "tools")) {
		list := protoAt(t, "functionDeclarations")
		if k := kindOf(list); k != 0 && k != '[' {
			r.function(list)
			r.end(Tool)
		}
		for _, f := range elements(list) {
			r.function(f)
			r.end(Tool)
		}
	}
	config := protoAt(v, "generationConfig")
	for _, key := range []string{"responseSchema", "responseJsonSchema"} {
		if s := protoAt(config, key); s != nil && kindOf(s) != 'n' {
			r.raw(Schema, s)
			r.end(ResponseFormat)
		}
	}
	for _, key := range []string{"generateContentRequest", "request"} {
		if inner := protoAt(v, key); kindOf(inner) == '{' {
			r.body(inner)
		}
	}
}

// referenceGemini gives, sorted, what the model heard; ok if the body is a JSON object.
func referenceGemini(body []byte) (all []string, ok bool) {
	if !json.Valid(body) || !utf8.Valid(body) || kindOf(body) != '{' {
		return nil, false
	}
	r := &geminiReference{}
	r.body(body)
	slices.Sort(r.heard)
	return r.heard, true
}
