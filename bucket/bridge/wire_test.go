package bridge_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket/bridge"
	"github.com/emmer-proxy/emmer/bucket/buckettest"
)

type call struct {
	method, path, token, body string
	header                    http.Header
}

// ask sends one request and returns status, body and the response's head.
func ask(t testing.TB, c *http.Client, url string, q call) (int, string, *http.Response) {
	t.Helper()
	if q.method == "" {
		q.method = http.MethodPost
	}
	r, err := http.NewRequest(q.method, url+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range q.header {
		r.Header[k] = v
	}
	if q.token != "" {
		r.Header.Set("Authorization", "Bearer "+q.token)
	}
	w, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Body.Close() }()
	b, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.StatusCode, string(b), w
}

const token = "first-token"

func TestReplies(t *testing.T) {
	b64 := http.Header{"Upstash-Encoding": {"base64"}}
	tests := []struct {
		name   string
		q      call
		status int
		want   string // an ending in … means "begins with"
	}{
		{"ping", call{body: `["PING"]`}, 200, `{"result":"PONG"}`},
		{"names in any case", call{body: `["pInG"]`}, 200, `{"result":"PONG"}`},
		{"second token", call{token: "second-token", body: `["PING"]`}, 200, `{"result":"PONG"}`},
		{"space anywhere", call{body: " [ \"PING\" \n] \t"}, 200, `{"result":"PONG"}`},
		{"integer", call{body: `["EVAL","return 9007199254740991","0"]`}, 200, `{"result":9007199254740991}`},
		{"negative integer", call{body: `["EVAL","return -9007199254740991","0"]`}, 200, `{"result":-9007199254740991}`},
		{"an integer above 2^53", call{body: `["HINCRBY","h","f",9223372036854775806]`}, 200, `{"result":9223372036854775806}`},
		{"integer arguments keep their text", call{body: `["EVAL","return ARGV",0,12345678901234567890123,-0,1.50,1e5]`}, 200, `{"result":["12345678901234567890123","-0","1.50","1e5"]}`},
		{"null", call{body: `["EVAL","return false","0"]`}, 200, `{"result":null}`},
		{"null in an array", call{body: `["HMGET","none","a","b"]`}, 200, `{"result":[null,null]}`},
		{"empty array", call{body: `["HGETALL","none"]`}, 200, `{"result":[]}`},
		{"nested array", call{body: `["EVAL","return {1,{'a',{2}},'z'}","0"]`}, 200, `{"result":[1,["a",[2]],"z"]}`},
		{"status in an array", call{body: `["EVAL","return {redis.status_reply('FINE'),1}","0"]`}, 200, `{"result":["FINE",1]}`},
		{"empty string", call{body: `["EVAL","return ARGV[1]","0",""]`}, 200, `{"result":""}`},
		{"escapes", call{body: `["EVAL","return ARGV[1]","0","\"\\\/\b\f\n\r\t\u0000\u20ac\ud83d\ude00 \u007f<>&"]`}, 200, `{"result":"\"\\/\u0008\u000c\n\u000d\u0009\u0000€😀 \u007f<>&"}`},
		{"bytes that are no text", call{body: `["EVAL","return {'a\\255b','\\237\\160\\128',2}","0"]`}, 200, `{"result":["a` + "\uFFFD" + `b","` + strings.Repeat("\uFFFD", 3) + `",2]}`},
		{"base64 on request", call{header: b64, body: `["EVAL","return {ARGV[1],1,false,{'\\255'},redis.status_reply('OK')}","0","hej"]`}, 200, `{"result":["aGVq",1,null,["/w=="],"OK"]}`},

		{"redis error keeps its first word", call{body: `["EVALSHA","0000000000000000000000000000000000000000","0"]`}, 400, `{"error":"NOSCRIPT …`},
		{"redis error of a script", call{body: `["EVAL","return redis.error_reply('MINE and \"mine\"')","0"]`}, 400, `{"error":"MINE and \"mine\""}`},
		{"redis error of a wrong arity", call{body: `["HGETALL"]`}, 400, `{"error":"ERR …`},
		{"reply nested too deep", call{body: `["EVAL","local t={1} for i=1,40 do t={t} end return t","0"]`}, 400, `{"error":"BADREPLY …`},

		{"empty body", call{body: ``}, 400, `{"error":"BADREQUEST …`},
		{"empty command", call{body: `[]`}, 400, `{"error":"BADREQUEST …`},
		{"no array", call{body: `{"PING":1}`}, 400, `{"error":"BADREQUEST …`},
		{"argument null", call{body: `["PING",null]`}, 400, `{"error":"BADREQUEST …`},
		{"argument array", call{body: `["PING",["x"]]`}, 400, `{"error":"BADREQUEST …`},
		{"deep nesting", call{body: strings.Repeat("[", 100_000)}, 400, `{"error":"BADREQUEST …`},
		{"name is a number", call{body: `[1]`}, 400, `{"error":"BADREQUEST …`},
		{"something follows", call{body: `["PING"]["PING"]`}, 400, `{"error":"BADREQUEST …`},
		{"half of a surrogate pair", call{body: `["PING","\ud83d"]`}, 400, `{"error":"BADREQUEST …`},
		{"not UTF-8", call{body: "[\"PING\",\"\xff\"]"}, 400, `{"error":"BADREQUEST …`},
		{"too many arguments", call{body: `["PING"` + strings.Repeat(",1", 4096) + `]`}, 400, `{"error":"BADREQUEST …`},

		{"no token", call{token: "-", body: `["PING"]`}, 401, `{"error":"UNAUTHORIZED …`},
		{"wrong token", call{token: "first-tokem", body: `["PING"]`}, 401, `{"error":"UNAUTHORIZED …`},
		{"two tokens", call{token: "-", header: http.Header{"Authorization": {"Bearer first-token", "Bearer first-token"}}, body: `["PING"]`}, 401, `{"error":"UNAUTHORIZED …`},
		{"basic", call{token: "-", header: http.Header{"Authorization": {"Basic first-token"}}, body: `["PING"]`}, 401, `{"error":"UNAUTHORIZED …`},
		{"operator's token", call{token: "ann-token", body: `["PING"]`}, 403, `{"error":"FORBIDDEN …`},

		{"SCRIPT", call{body: `["SCRIPT","FLUSH"]`}, 403, `{"error":"FORBIDDEN command \"SCRIPT\" is not allowed here"}`},
		{"flushall", call{body: `["flushall"]`}, 403, `{"error":"FORBIDDEN …`},
		{"SELECT", call{body: `["SELECT","1"]`}, 403, `{"error":"FORBIDDEN …`},
		{"folded by Unicode only", call{body: `["EVALſHA","0"]`}, 403, `{"error":"FORBIDDEN …`},
		{"with a space", call{body: `["PING PING"]`}, 403, `{"error":"FORBIDDEN …`},

		{"path", call{path: "/multi-exec", body: `["PING"]`}, 404, `{"error":"NOTFOUND …`},
		{"method", call{method: "PUT", body: `["PING"]`}, 405, `{"error":"METHOD use POST"}`},
		{"method of a probe", call{path: "/healthz"}, 405, `{"error":"METHOD use GET"}`},
		{"health", call{method: "GET", path: "/healthz", token: "-"}, 200, `{"result":"OK"}`},
		{"readiness", call{method: "GET", path: "/readyz", token: "-"}, 200, `{"result":"OK"}`},
		{"body at its cap", call{body: `["EVAL","return #ARGV[1]","0","` + strings.Repeat("x", 1<<20-33) + `"]`}, 200, `{"result":1048543}`},
		{"body over its cap", call{body: `["EVAL","return #ARGV[1]","0","` + strings.Repeat("x", 1<<20-32) + `"]`}, 413, `{"error":"TOOLARGE …`},

		{"pipeline", call{path: "/pipeline", body: `[["EVAL","return redis.call('SET','p','1')","1","p"],["EVAL","return redis.call('INCR','p')","1","p"],["HGETALL","p"],["EVALSHA","00","0"],["EVAL","return redis.call('INCR','p')","1","p"]]`}, 200,
			`[{"result":"OK"},{"result":2},{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"},{"error":"NOSCRIPT No matching script. Please use EVAL."},{"result":3}]`},
		{"pipeline of errors", call{path: "/pipeline", body: `[["EVALSHA","00","0"]]`}, 200, `[{"error":"NOSCRIPT …`},
		{"pipeline with a null", call{path: "/pipeline", body: `[["HMGET","none","a"],["EVAL","return false","0"]]`}, 200, `[{"result":[null]},{"result":null}]`},
		{"pipeline not allowed runs nothing", call{path: "/pipeline", body: `[["EVAL","return redis.call('SET','never','1')","1","never"],["SCRIPT","FLUSH"]]`}, 403, `{"error":"FORBIDDEN …`},
		{"nothing has run", call{body: `["EVAL","return redis.call('EXISTS','never')","1","never"]`}, 200, `{"result":0}`},
		{"pipeline empty", call{path: "/pipeline", body: `[]`}, 400, `{"error":"BADREQUEST …`},
		{"pipeline of a command", call{path: "/pipeline", body: `["PING"]`}, 400, `{"error":"BADREQUEST …`},
		{"pipeline too long", call{path: "/pipeline", body: `[["PING"]` + strings.Repeat(`,["PING"]`, 256) + `]`}, 400, `{"error":"BADREQUEST …`},
	}
	for store, start := range stores {
		t.Run(store, func(t *testing.T) {
			s := serve(t, start(t), func(o *bridge.Options) { o.Allow = append(bridge.DefaultAllow(), "HINCRBY") })
			for proto, c := range map[string]*http.Client{"HTTP/1.1": s.h1, "HTTP/2.0": s.h2} {
				for _, x := range tests {
					if x.q.path == "" {
						x.q.path = "/"
					}
					switch x.q.token {
					case "":
						x.q.token = token
					case "-":
						x.q.token = ""
					}
					if strings.Contains(x.q.body, "HINCRBY") {
						ask(t, c, s.url, call{path: "/", token: token, body: `["EVAL","redis.call('DEL','h')","0"]`})
					}
					status, body, w := ask(t, c, s.url, x.q)
					want, prefix := strings.CutSuffix(x.want, "…")
					if status != x.status || body != want && !(prefix && strings.HasPrefix(body, want)) {
						t.Errorf("%s, %s: got %d %.200s, want %d %.200s", proto, x.name, status, body, x.status, x.want)
					}
					if !json.Valid([]byte(body)) {
						t.Errorf("%s, %s: not JSON: %q", proto, x.name, body)
					}
					if w.Proto != proto || w.Header.Get("Content-Type") != "application/json" {
						t.Errorf("%s, %s: %s %v", proto, x.name, w.Proto, w.Header)
					}
				}
			}
		})
	}
}

func TestRepliesOfRedisItself(t *testing.T) {
	s := serve(t, buckettest.StartRedis(t), nil)
	for body, want := range map[string]string{
		`["EVAL","return redis.call('HGETALL','s')","1","s"]`: `{"error":"WRONGTYPE `,
		`["EVAL","return redis.call('NOSUCH')","0"]`:          `{"error":"ERR `,
		`["EVAL","return {1,{err='ERR inside'},2}","0"]`:      `{"result":[1,{"error":"ERR inside"},2]}`,
		`["EVAL","return 3.99","0"]`:                          `{"result":3}`,
	} {
		ask(t, s.h1, s.url, call{path: "/", token: token, body: `["EVAL","redis.call('SET','s','1')","1","s"]`})
		if _, got, _ := ask(t, s.h1, s.url, call{path: "/", token: token, body: body}); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := bridge.New(bridge.Options{
		Tokens: []string{"good", "b d", "op"}, OperatorTokens: map[string]string{"op": "a|b"},
		Allow: []string{"GET", "select", "CLIENT", "BLPOP", "x y"}, Timeout: -1,
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"client: missing", "tokens[1]: ", "tokens[2]: is an operator's", `actor "a|b"`, "SELECT changes", "CLIENT changes", "BLPOP changes", `"X Y" is not`, "timeout: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	for name, r := range map[string]bridge.Redis{
		"no address": {}, "both": {Addrs: []string{"a:1"}, Cluster: true, Master: "m"},
		"several": {Addrs: []string{"a:1", "b:1"}}, "database": {Addrs: []string{"a:1"}, Cluster: true, DB: 1},
	} {
		if _, err := bridge.Connect(r); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
