package scenario

import (
	"strings"
	"testing"
)

const smallest = "-- a.http --\nGET /\n\n-- steps --\n"

func TestParseNamesEveryFaultByLine(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "t/x.txtar: no file \"steps\""},
		{"-- settings --\nwokers: 3\n-- steps --\n", "t/x.txtar: settings (from line 2): yaml: unmarshal errors:\n  line 1: field wokers not found in type scenario.Settings"},
		{"-- settings --\nbridge: maybe\n-- steps --\n", `t/x.txtar: settings: bridge: want up or none, found "maybe"`},
		{"-- settings --\njwt: {secret: short}\n-- steps --\n", "t/x.txtar: settings: jwt.secret: want at least 32 bytes, found 5"},
		{"-- settings --\ntokens: {a: {sub: b}}\n-- steps --\n", "t/x.txtar: settings: tokens: there is no jwt to sign them with"},
		{"-- settings --\nbetween: [{}]\n-- steps --\n", "t/x.txtar: settings: between[0]: want either delay or envoy"},
		{"-- upstream --\n\nfrob\n-- steps --\n", `t/x.txtar:3: unknown step "frob"`},
		{"-- steps --\n-- steps --\n", `t/x.txtar:2: second file "steps"`},
		{"-- a.http --\nGET\n-- steps --\n", "t/x.txtar:2: want `METHOD path`, found \"GET\""},
		{"-- a.http --\nGET /\nx\n-- steps --\n", "t/x.txtar:3: want `name: value`, found \"x\""},
		{"-- a.http --\nGET /\n@moon\n-- steps --\n", "t/x.txtar:3: @moon: unknown, want @raw, @chunked, @trailer, @gzip, @deflate, @text, @file or @repeat"},
		{"-- a.http --\nGET /\n@repeat 999999999 ab\n-- steps --\n", "t/x.txtar:3: @repeat: above 134217728 bytes"},
		{smallest + "frob\n", `t/x.txtar:5: unknown step "frob"`},
		{smallest + "\n# c\nsend b\n", `t/x.txtar:7: send: no file "b.http"`},
		{smallest + "send a hold\n", "t/x.txtar:5: send: hold: the request never ends; use start"},
		{smallest + "send a as a.b\n", `t/x.txtar:5: send: a label has no dot, found "a.b"`},
		{smallest + "send a times=0\n", "t/x.txtar:5: send: times=0: want 1 to 10000"},
		{smallest + "send a split=0\n", `t/x.txtar:5: send: split=0: want sizes from 1, found "0"`},
		{smallest + "send a gateway=2\n", "t/x.txtar:5: send: gateway=2: want 1 to 1"},
		{smallest + "send a loudly\n", `t/x.txtar:5: send: unknown word "loudly"`},
		{smallest + "abort a\n", `t/x.txtar:5: abort: no request was sent as "a"`},
		{smallest + "expect a status == 1\n", `t/x.txtar:5: no request was sent as "a"`},
		{smallest + "send a\nexpect a colour == red\n", `t/x.txtar:6: a: unknown attribute "colour"`},
		{smallest + "send a\nexpect a header == red\n", "t/x.txtar:6: a: header: want 1 more words, found 0"},
		{smallest + "send a\nexpect a status\n", "t/x.txtar:6: no operator: want ==, !=, <, <=, >, >=, contains, lacks, matches, starts, ends, absent or present"},
		{smallest + "send a\nexpect a header x absent now\n", `t/x.txtar:6: absent: takes no value, found "now"`},
		{smallest + "send a\nexpect a body == file b\n", `t/x.txtar:6: no file "b" in this scenario`},
		{smallest + "send a\nexpect a body matches (\n", "t/x.txtar:6: matches: error parsing regexp: missing closing ): `(`"},
		{smallest + "expect upstream.b requests == 1\n", `t/x.txtar:5: no file "upstream.b" in this scenario`},
		{smallest + "expect upstream colour == 1\n", "t/x.txtar:5: upstream: want requests, bytes, connections, or a number or last and an attribute"},
		{smallest + "expect log == 1\n", "t/x.txtar:5: log: want lines, or a number or any, and code, text or json PATH"},
		{smallest + "bridge dance\n", `t/x.txtar:5: bridge: want kill, restart, stall, go or drop N, found "dance"`},
		{smallest + "redis fail\n", `t/x.txtar:5: redis: want stall, go, kill, restart or fail TEXT, found "fail"`},
		{smallest + "advance 1h\n", "t/x.txtar:5: advance: only with `clock: frozen` in settings"},
		{smallest + "pass 1h\n", "t/x.txtar:5: pass: want a duration of at most 10s, found 1h0m0s"},
		{smallest + `write "a` + "\n", `t/x.txtar:5: bad quoted text "a`},
		{smallest + "[pair\n", `t/x.txtar:5: no ] in "[pair"`},
	} {
		_, err := Parse("t/x.txtar", []byte(c.text))
		if err == nil || err.Error() != c.want {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
	_, err := Parse("x", []byte(smallest+"frob\nfrab\n"))
	if err == nil || strings.Count(err.Error(), "unknown step") != 2 {
		t.Errorf("not all faults at once: %v", err)
	}
}

func TestMessageOnTheWire(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"GET /x\n", "GET /x HTTP/1.1\r\nhost: h\r\n\r\n"},
		{"POST /x\nA: 1\na:  2\n\nbody\n\nmore\n", "POST /x HTTP/1.1\r\nhost: h\r\nA: 1\r\na:  2\r\ncontent-length: 10\r\n\r\nbody\n\nmore"},
		{"POST /x\nhost: other\ncontent-length: 99\n\nab\n", "POST /x HTTP/1.1\r\nhost: other\r\ncontent-length: 99\r\n\r\nab"},
		{"POST /x\n@trailer t: 1\n@text \"\\x00\"\n@repeat 2 z\n\nab\n", "POST /x HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n5\r\n\x00zzab\r\n0\r\nt: 1\r\n\r\n"},
	} {
		m, err := parseMessage("f", 1, []byte(c.file), nil)
		if err != nil {
			t.Errorf("%q: %v", c.file, err)
			continue
		}
		got := string(m.head("h")) + string(m.frame(m.body)) + string(m.last())
		if got != c.want {
			t.Errorf("%q:\n got %q\nwant %q", c.file, got, c.want)
		}
	}
}

func TestConfigTakesFromDefaultsWhatItLeavesOut(t *testing.T) {
	got, err := MergeConfig("version: 1\nstore: {cluster: c, timeout: 3s}\nhold: {mode: pair}\n", "store: {timeout: 1s}\nhold: none\nlimits: [{rate: 1e3, name: <a>}]\n")
	want := `{"hold":"none","limits":[{"name":"<a>","rate":1000}],"store":{"cluster":"c","timeout":"1s"},"version":1}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(smallest + "send a split=1,2 pause=1ms as b\nexpect b body == \"x\"\n[pair] probe limit x remaining == 3\n"))
	f.Add([]byte("c\n-- settings --\nworkers: 2\n-- upstream --\non any\n-- config.yaml --\na: 1\n-- steps --\nbridge drop 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse("f.txtar", text)
		if err == nil && s.Settings.Workers < 1 {
			t.Errorf("workers %d", s.Settings.Workers)
		}
	})
}

func TestExamplesParse(t *testing.T) {
	all, err := Load("testdata/emmer/*.txtar")
	if err != nil || len(all) < 5 {
		t.Fatalf("%d scenarios: %v", len(all), err)
	}
	for _, s := range all {
		if len(s.Settings.Cases) == 0 || len(s.steps) == 0 {
			t.Errorf("%s: cases %v, %d steps", s.Name, s.Settings.Cases, len(s.steps))
		}
	}
	if _, err := Load("testdata/emmer/absent.txtar"); err == nil {
		t.Error("a scenario that is not there passed")
	}
}
