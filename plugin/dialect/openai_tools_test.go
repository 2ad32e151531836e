package dialect

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const toolBody = `{"tools":[{"type":"function","function":{"strict":true,"name":"w\u0065ather","description":"Get \"it\".",
 "parameters":{"type":"object","description":"where","required":["a","b"],"additionalProperties":false,
  "propert\u0069es":{"type":{"type":"string","description":"a \u00e9","enum":["x","y\n",3,null]},
   "": {"type":["array","null"],"items":{"type":"object","properties":{"deep":{"type":"integer","minimum":-1.5},"en\"um":true}}},
   "b":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/T"},[]],"additionalProperties":{"type":"number"}}},
  "$defs":{"T":{"properties":{},"enum":[],"allOf":[{"description":"d"}]}}}}},
 {"type":"custom","custom":{"name":"c","format":{"type":"grammar", "grammar":{"definition":"x: \"y\""}}}}],
"functions":[{"name":"f","description":null,"parameters":{"properties":{"p":{}}}}],
"response_format":{"type":"json_schema","json_schema":{"name":"r","description":"of it","strict":true,"schema":{"a": [1, {"b": " c "}]}}}}`

// oddTools is what no provider would take, or only a lenient one.
const oddTools = `{"tools":[{"name":"flat","parameters":"p"},{"function":[1]},{"function":{"name":{"a":1},"description":[],"parameters":{
 "properties":["a"],"patternProperties":5,"$defs":"x","definitions":[1],"enum":"x","items":[{"type":7},{"type":{"a":1}},true,null],
 "oneOf":{"enum":{"a":1}},"prefixItems":[[{"description":5}]],"Type":"x","DESCRIPTION":"y"}}},{"a\u0062":"c","function":{"parameters":null}}],
"response_format":{"json_schema":[1],"x":2},"documents":[{"text":"t"}]}`

func TestChatTools(t *testing.T) {
	want := []string{
		"tool: weather", `tool description: Get "it".`, "description: where",
		"property: type", "type: string", "description: a é", "value: x", "value: y\n", "value: 3", "value: null", "/enum", "/property",
		"property: ", "type: array", "type: null", "type: object", "property: deep", "type: integer", "schema: minimum", "schema: -1.5", "/property",
		`property: en"um`, "/property", "/properties", "/property",
		"property: b", "type: string", "schema: $ref", `schema: "#/$defs/T"`, "type: number", "/property", "/properties",
		"schema: T", "description: d", "/tool",
		"tool: c", "schema: format", `schema: {"type":"grammar","grammar":{"definition":"x: \"y\""}}`, "/tool",
		"tool: f", "property: p", "/property", "/properties", "/tool",
		"tool: r", "tool description: of it", `schema: {"a":[1,{"b":" c "}]}`, "/response format",
	}
	got := scanWhole(toolBody)
	if got.Fault != nil || !slices.Equal(got.Texts, want) {
		t.Fatalf("%v\n got %q\nwant %q", got.Fault, got.Texts, want)
	}
	sameForEverySplit(t, toolBody, got, func(w func(func([]byte))) scanned { return scan(w, 256) })
}

func TestChatScannerAgreesWithTheReference(t *testing.T) {
	compared := 0
	for _, body := range chatSeeds {
		facts, want, ok := referenceScan([]byte(body))
		got := scanWhole(body)
		if !ok || got.Fault != nil {
			continue
		}
		compared++
		slices.Sort(got.Texts)
		if got.Facts.Model != facts.Model || !slices.Equal(got.Texts, want) {
			t.Errorf("%s\n got %q\nwant %q", body, got.Texts, want)
		}
		sameForEverySplit(t, body, scanWhole(body), func(w func(func([]byte))) scanned { return scan(w, 256) })
	}
	if compared < len(chatSeeds)-3 {
		t.Fatalf("%d of %d bodies compared", compared, len(chatSeeds))
	}
}

// shuffled is a JSON document with the members of each object in another order.
func shuffled(doc string, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var walk func(v json.RawMessage) string
	walk = func(v json.RawMessage) string {
		var out []string
		switch kindOf(v) {
		case '{':
			for _, m := range members(v) {
				key, _ := json.Marshal(m.key)
				out = append(out, string(key)+":"+walk(m.value))
			}
			r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
			return "{" + strings.Join(out, ",") + "}"
		case '[':
			for _, e := range elements(v) {
				out = append(out, walk(e))
			}
			return "[" + strings.Join(out, ",") + "]"
		}
		return string(bytes.TrimSpace(v))
	}
	return walk(json.RawMessage(doc))
}

// TestChatOrderOfFieldsChangesNothing compares what is heard, without its order. JSON that is heard
// as written is left out of it.
func TestChatOrderOfFieldsChangesNothing(t *testing.T) {
	for _, body := range []string{chatBody, toolBody, oddTools} {
		sorted := func(body string) []string {
			got := scanWhole(body)
			if got.Fault != nil {
				t.Fatal(got.Fault)
			}
			heard := slices.DeleteFunc(got.Texts, func(s string) bool { return strings.Contains(s, "{") })
			slices.Sort(heard)
			return heard
		}
		want := sorted(body)
		for seed := range uint64(50) {
			if got := sorted(shuffled(body, seed)); !slices.Equal(got, want) {
				t.Fatalf("%s\n got %q\nwant %q", shuffled(body, seed), got, want)
			}
		}
	}
}

// In an object that has a place for any key, what is given twice or in other letters is heard as
// often as it stands there. Keys with a meaning of their own may still stand there once only.
func TestChatKeysOfTools(t *testing.T) {
	for _, c := range []struct{ body, code, param string }{
		{`{"tools":[{"function":{"name":"a","n\u0061me":"b"}}]}`, "duplicate_key", "tools[0].function.name"},
		{`{"tools":[{"function":{"parameters":{"properties":{"p":{"type":"a","type":"b"}}}}}]}`, "duplicate_key", "tools[0].function.parameters.properties.*.type"},
		{`{"response_format":{"json_schema":{"schema":{},"schema":{}}}}`, "duplicate_key", "response_format.json_schema.schema"},
		{`{"messages":[{"content":[{"image_url":{"url":"a","url":"b"}}]}]}`, "duplicate_key", "messages[0].content[0].image_url.url"},
		{`{"messages":[{"content":[{"image_url":{"URL":"b"}}]}]}`, "misspelled_key", "messages[0].content[0].image_url.url"},
	} {
		got := scanWhole(c.body)
		if got.Fault == nil || got.Fault.Code != c.code || got.Fault.Param != c.param {
			t.Errorf("%s: %+v, want %s %s", c.body, got.Fault, c.code, c.param)
		}
		sameForEverySplit(t, c.body, got, func(w func(func([]byte))) scanned { return scan(w, 256) })
	}
	long := strings.Repeat(`k\u00e9`, 1000)
	for _, c := range []struct {
		body string
		want []string
	}{
		{`{"tools":[{"function":{"parameters":{"properties":{"a":{},"a":{}}}}}]}`,
			[]string{"property: a", "/property", "property: a", "/property", "/properties", "/tool"}},
		{`{"tools":[{"function":{"Name":"f","parameters":{"Type":"x"}}}]}`,
			[]string{"schema: Name", `schema: "f"`, "schema: Type", `schema: "x"`, "/tool"}},
		{`{"tools":[{"` + long + `":1,"function":{"parameters":{"properties":{"` + long + `":1}}}}]}`,
			[]string{"schema: " + strings.Repeat("ké", 1000), "schema: 1", "property: " + strings.Repeat("ké", 1000), "schema: 1", "/property", "/properties", "/tool"}},
		{`{"tools":[{"a\\b\"c\u0064":1}]}`, []string{`schema: a\b"cd`, "schema: 1", "/tool"}},
	} {
		got := scanWhole(c.body)
		if got.Fault != nil || !slices.Equal(got.Texts, c.want) {
			t.Errorf("%.200s: %v\n got %.200q\nwant %.200q", c.body, got.Fault, got.Texts, c.want)
		}
		if len(c.body) < 1000 {
			sameForEverySplit(t, c.body, got, func(w func(func([]byte))) scanned { return scan(w, 256) })
		} else if split := scan(func(w func([]byte)) {
			for i := range len(c.body) {
				w([]byte{c.body[i]})
			}
		}, 256); !reflect.DeepEqual(split, got) {
			t.Errorf("in single bytes: %.200q", split.Texts)
		}
	}
}

func TestChatToolsHoldNothing(t *testing.T) {
	s := OpenAIChat.NewScanner(RequestHead{}, 0, discard{}).(*requestScanner)
	s.Write([]byte(`{"tools":[{"function":{"parameters":{"properties":{"x":{"enum":[`))
	chunk := []byte(`"v\u00e9",` + strings.Repeat(`"value",1,{"a":[]},`, 500))
	s.Write(chunk)
	if n := testing.AllocsPerRun(50, func() { s.Write(chunk) }); n != 0 {
		t.Errorf("%v allocations for values", n)
	}
	s.Write([]byte(`0]},`))
	properties := []byte(strings.Repeat(`"na\u006de":{"typ\u0065":"string","description":"d","x-`+strings.Repeat("k", 2000)+`":[1]},`, 20))
	s.Write(properties)
	if n := testing.AllocsPerRun(50, func() { s.Write(properties) }); n != 0 {
		t.Errorf("%v allocations for properties", n)
	}
	deep := []byte(strings.Repeat(`"p":{"properties":{`, 100000))
	if fault := s.Write(deep); fault == nil || fault.Code != "json_too_deep" {
		t.Fatalf("%v", fault)
	}
	if cap(s.json.stack) > 512 || cap(s.json.held) > 2*maxHeld || cap(s.json.plain) > 2*maxHeld {
		t.Errorf("%d frames, %d and %d bytes held", cap(s.json.stack), cap(s.json.held), cap(s.json.plain))
	}
}
