package callout

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/emmer-proxy/emmer/bucket/script"
)

func TestRequestsAreTheJSONArrayThatRedisIsGiven(t *testing.T) {
	c := script.Call{
		Script: &script.Script{Name: "reserve", Text: "return 1 -- \"x\"\n", SHA: "abc"},
		Keys:   []string{"k:{g}:a", "k:{g}:b"},
		Args:   []string{"1", `q"\` + "\x01", "nonce"},
	}
	for _, full := range []bool{false, true} {
		r := Upstash{Authority: "bridge", Token: "t"}.Script(c, full)
		var got []string
		if err := json.Unmarshal(r.Body, &got); err != nil {
			t.Fatalf("%s: %v", r.Body, err)
		}
		want := []string{"EVALSHA", "abc", "2", "k:{g}:a", "k:{g}:b", "1", `q"\` + "\x01", "nonce"}
		if full {
			want[0], want[1] = "EVAL", c.Script.Text
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("full=%v: got %q, want %q", full, got, want)
		}
		if r.Headers[4] != [2]string{"authorization", "Bearer t"} || r.Headers[2] != [2]string{":authority", "bridge"} {
			t.Errorf("headers %q", r.Headers)
		}
	}
	if got := string((Upstash{}).Command("HGETALL", "x").Body); got != `["HGETALL","x"]` {
		t.Errorf("command: %s", got)
	}
	r := Upstash{}.Commands([][]string{{"HGETALL", "x"}, {"HMGET", "y", "a\"b"}})
	if got, path := string(r.Body), r.Headers[1][1]; got != `[["HGETALL","x"],["HMGET","y","a\"b"]]` || path != "/pipeline" {
		t.Errorf("commands: %s to %s", got, path)
	}
}

func TestRepliesAreClassified(t *testing.T) {
	for _, c := range []struct {
		status, body string
		want         Class
		values       []script.Value
	}{
		{"200", `{"result":[1,-20,"ab\"\u0041\n",null]}`, OK, []script.Value{{Int: 1, IsInt: true}, {Int: -20, IsInt: true}, {Text: "ab\"A\n"}, {}}},
		{"200", ` { "result" : [ ] } `, OK, nil},
		{"200", `{"result":"PONG"}`, OK, []script.Value{{Text: "PONG"}}},
		{"200", `{"result":9007199254740991}`, OK, []script.Value{{Int: 9007199254740991, IsInt: true}}},
		{"200", `{"result":99999999999999999999}`, Unavailable, nil},
		{"200", `{"result":[1,[2]]}`, Unavailable, nil},
		{"200", `{"result":[1.5]}`, Unavailable, nil},
		{"200", `{"result":[1 2]}`, Unavailable, nil},
		{"200", `{"result":[1]} x`, Unavailable, nil},
		{"200", `{"error":"x"}`, Unavailable, nil},
		{"200", ``, Unavailable, nil},
		{"200", `<html>`, Unavailable, nil},
		{"400", `{"error":"NOSCRIPT No matching script. Please use EVAL."}`, NoScript, nil},
		{"400", `{"error":"MOVED 1 127.0.0.1:1"}`, Unavailable, nil},
		{"400", `{"error":"READONLY You can't write against a read only replica."}`, Unavailable, nil},
		{"400", `{"error":"WRONGTYPE Operation"}`, Misconfigured, nil},
		{"400", `{"error":"ERR NOSCRIPT"}`, Misconfigured, nil},
		{"400", `nonsense`, Misconfigured, nil},
		{"401", `{"error":"unauthorized"}`, Misconfigured, nil},
		{"403", `{"error":"NOPERM"}`, Misconfigured, nil},
		{"503", `{"error":"timeout"}`, Unavailable, nil},
		{"504", `upstream request timeout`, Unavailable, nil},
		{"", ``, Unavailable, nil},
	} {
		got := Read(c.status, []byte(c.body))
		if got.Class != c.want || !reflect.DeepEqual(got.Values, c.values) {
			t.Errorf("%s %q: got %v %v, want %v %v", c.status, c.body, got.Class, got.Values, c.want, c.values)
		}
		if got.Class != OK && got.Error == "" {
			t.Errorf("%s %q: a failure without a word", c.status, c.body)
		}
	}
}

func TestAPipelineIsOneRequestAndOneAnswerForEachCall(t *testing.T) {
	a, b := &script.Script{Text: "return 1", SHA: "aa"}, &script.Script{Text: "return 2", SHA: "bb"}
	calls := []script.Call{{Script: a, Keys: []string{"k"}, Args: []string{"1"}}, {Script: a, Keys: []string{"k"}}, {Script: b}, {Script: a, Keys: []string{"other"}}}
	for _, full := range []bool{false, true} {
		r := Upstash{}.Pipeline(calls, full)
		var got [][]string
		if err := json.Unmarshal(r.Body, &got); err != nil || r.Headers[1][1] != "/pipeline" {
			t.Fatalf("%s to %s: %v", r.Body, r.Headers[1][1], err)
		}
		want := [][]string{{"EVALSHA", "aa", "1", "k", "1"}, {"EVALSHA", "aa", "1", "k"}, {"EVALSHA", "bb", "0"}, {"EVALSHA", "aa", "1", "other"}}
		if full {
			want[0][0], want[0][1], want[2][0], want[2][1] = "EVAL", a.Text, "EVAL", b.Text
			want[3][0], want[3][1] = "EVAL", a.Text // another shard may be on another server
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("full=%v: %q", full, got)
		}
	}
	classes := func(status, body string) (out []Class) {
		for _, r := range ReadPipeline(status, []byte(body), 2) {
			out = append(out, r.Class)
		}
		return out
	}
	for _, c := range []struct {
		status, body string
		want         []Class
	}{
		{"200", `[{"result":[1,"n"]},{"error":"NOSCRIPT x"}]`, []Class{OK, NoScript}},
		{"200", ` [ {"error":"READONLY x"} , {"result":1} ] `, []Class{Unavailable, OK}},
		{"200", `[{"result":1}]`, []Class{Unavailable, Unavailable}},
		{"200", `[{"result":1},{"result":1},{"result":1}]`, []Class{Unavailable, Unavailable}},
		{"200", `[{"result":1},7]`, []Class{Unavailable, Unavailable}},
		{"200", `{"result":1}`, []Class{Unavailable, Unavailable}},
		{"503", `{"error":"TIMEOUT"}`, []Class{Unavailable, Unavailable}},
		{"403", `{"error":"FORBIDDEN"}`, []Class{Misconfigured, Misconfigured}},
		{"", ``, []Class{Unavailable, Unavailable}},
	} {
		if got := classes(c.status, c.body); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %s: got %v, want %v", c.status, c.body, got, c.want)
		}
	}
}

func TestTooManyValuesAreNotAnAnswer(t *testing.T) {
	body := []byte(`{"result":[0`)
	for range maxValues {
		body = append(body, ",1"...)
	}
	if got := Read("200", append(body, "]}"...)); got.Class != Unavailable {
		t.Errorf("got %v", got.Class)
	}
}

// FuzzRead holds the reader to encoding/json on what both accept.
func FuzzRead(f *testing.F) {
	for _, s := range []string{`{"result":[1,"a\u00e9",null,-3]}`, `{"result":"x"}`, `{"result":[}`, `{"result":"\ud83d`, `{"error":"NOSCRIPT x"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		Read("400", b)
		if got := ReadPipeline("200", b, 3); len(got) != 3 {
			t.Fatalf("%d replies", len(got))
		}
		got := Read("200", b)
		if got.Class != OK {
			return
		}
		var any struct{ Result json.RawMessage }
		if !json.Valid(b) {
			// Control bytes inside strings are let through; Redis errors may hold them.
			return
		}
		if err := json.Unmarshal(b, &any); err != nil {
			t.Fatalf("accepted what is not JSON: %q: %v", b, err)
		}
		if len(got.Values) > 0 && got.Values[0].IsInt {
			var one int64
			var list []json.RawMessage
			if json.Unmarshal(any.Result, &one) != nil {
				if err := json.Unmarshal(any.Result, &list); err != nil || json.Unmarshal(list[0], &one) != nil {
					t.Fatalf("%q: %v", b, err)
				}
			}
			if one != got.Values[0].Int {
				t.Fatalf("%q: got %d, want %d", b, got.Values[0].Int, one)
			}
		}
	})
}
