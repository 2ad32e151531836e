package bridge_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/bucket/bridge"
	"github.com/emmer-proxy/emmer/bucket/buckettest"
	"github.com/emmer-proxy/emmer/bucket/script"
)

func TestKillAndResume(t *testing.T) {
	for store, start := range stores {
		t.Run(store, func(t *testing.T) {
			addr := start(t)
			s := serve(t, addr, func(o *bridge.Options) { o.Namespace = "ns" })
			c := redis.NewClient(&redis.Options{Addr: addr})
			defer func() { _ = c.Close() }()
			ctx := context.Background()
			ctl := script.Layout{Namespace: "ns", Tag: "g"}.Ctl()
			order := func(verb, body string) (int, string) {
				status, body, _ := ask(t, s.h1, s.url, call{path: "/emmer/v1/" + verb, token: "ann-token", body: body})
				return status, body
			}

			before := now(t, c)
			status, body := order("kill", `{"scope":"tenant","id":"acme corp","reason":"burn rate","for":"10m"}`)
			after := now(t, c)
			if status != 200 {
				t.Fatal(status, body)
			}
			value, err := c.HGet(ctx, ctl, script.KillField("tenant", "acme corp")).Result()
			if err != nil {
				t.Fatal(err)
			}
			until, actor, reason, ok := script.ParseKill(value)
			if !ok || actor != "ann" || reason != "burn rate" || until < before+600_000 || until > after+600_000 {
				t.Errorf("flag %q, between %d and %d", value, before+600_000, after+600_000)
			}
			if status, body := order("kill", `{"scope":"global","id":"all","reason":"everything"}`); status != 200 || !strings.Contains(body, `"until":0`) {
				t.Errorf("%d %s", status, body)
			}

			// An ended flag, and one that somebody set by hand.
			c.HSet(ctx, ctl, "model:old", script.KillValue(before-1, "bob", "ended"), "team:x", "by hand")
			_, body, _ = ask(t, s.h1, s.url, call{method: "GET", path: "/emmer/v1/kills", token: "ann-token"})
			var got struct{ Result struct{ Flags []bridge.Flag } }
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(err, body)
			}
			var text []string
			for _, f := range got.Result.Flags {
				a := "ended"
				if f.Active {
					a = "active"
				}
				text = append(text, f.Scope+" "+f.Actor+" "+f.Reason+" "+a)
			}
			want := []string{"global ann everything active", "model bob ended ended", "team  by hand active", "tenant ann burn rate active"}
			if strings.Join(text, "\n") != strings.Join(want, "\n") {
				t.Errorf("list: %q", text)
			}

			// The next kill sweeps what has ended and nothing else.
			if status, body := order("kill", `{"scope":"provider","id":"openai","reason":"down","for":"1ms"}`); status != 200 {
				t.Errorf("%d %s", status, body)
			}
			if n := c.HExists(ctx, ctl, "model:old").Val(); n {
				t.Error("the ended flag is still there")
			}
			if n := c.HLen(ctx, ctl).Val(); n < 3 {
				t.Errorf("%d flags are left", n)
			}
			for id, want := range map[string]string{"acme corp": "true", "nobody": "false"} {
				if status, body := order("resume", `{"scope":"tenant","id":"`+id+`"}`); status != 200 || body != `{"result":{"resumed":`+want+`}}` {
					t.Errorf("resume %s: %d %s", id, status, body)
				}
			}
			if c.HExists(ctx, ctl, script.KillField("tenant", "acme corp")).Val() {
				t.Error("the flag is still there")
			}
			if ttl := c.TTL(ctx, ctl).Val(); ttl != -1 {
				t.Errorf("flags have a TTL: %v", ttl)
			}
		})
	}
}

func now(t *testing.T, c *redis.Client) bucket.Millis {
	v, err := c.Time(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return bucket.Millis(v.UnixMilli())
}

func TestOrdersAreChecked(t *testing.T) {
	s := serve(t, buckettest.StartRedis(t), nil)
	long := strings.Repeat("x", 300)
	for _, x := range []struct {
		path, token, body string
		status            int
		want              string
	}{
		{"kill", "ann-token", `{"scope":"Tenant","id":"a","reason":"r"}`, 400, "scope"},
		{"kill", "ann-token", `{"scope":"","id":"a","reason":"r"}`, 400, "scope"},
		{"kill", "ann-token", `{"scope":"` + long + `","id":"a","reason":"r"}`, 400, "scope"},
		{"kill", "ann-token", `{"scope":"a:b","id":"a","reason":"r"}`, 400, "scope"},
		{"kill", "ann-token", `{"scope":"global","id":"a","reason":"r"}`, 400, "id"},
		{"kill", "ann-token", `{"scope":"team","id":"","reason":"r"}`, 400, "id"},
		{"kill", "ann-token", `{"scope":"team","id":"a\u0000","reason":"r"}`, 400, "id"},
		{"kill", "ann-token", `{"scope":"team","id":"` + long + `","reason":"r"}`, 400, "id"},
		{"kill", "ann-token", `{"scope":"team","id":"a","reason":""}`, 400, "reason"},
		{"kill", "ann-token", `{"scope":"team","id":"a","reason":"a|b"}`, 400, "reason"},
		{"kill", "ann-token", `{"scope":"team","id":"a","reason":"a\r\nb"}`, 400, "reason"},
		{"kill", "ann-token", `{"scope":"team","id":"a","reason":"` + long + `"}`, 400, "reason"},
		{"kill", "ann-token", `{"scope":"team","id":"a","reason":"r","for":"soon"}`, 400, "for"},
		{"kill", "ann-token", `{"scope":"team","id":"a","reason":"r","for":"-1m"}`, 400, "for"},
		{"kill", "ann-token", `{"scope":"team","id":"a","reason":"r","for":"1000000h"}`, 400, "for"},
		{"kill", "ann-token", `{"scope":"team","id":"a","reason":"r","until":1}`, 400, "until"},
		{"kill", "ann-token", `{"scope":"team","id":"a","reason":"r"} {}`, 400, "follows"},
		{"kill", "ann-token", ``, 400, "body"},
		{"kill", "ann-token", `{"org":"` + long + `","scope":"team","id":"a","reason":"r"}`, 400, "org"},
		{"kill", "ann-token", `{"org":"a\n","scope":"team","id":"a","reason":"r"}`, 400, "org"},
		{"resume", "ann-token", `{"scope":"team","id":"a","reason":"r"}`, 400, "only"},
		{"kill", token, `{"scope":"team","id":"a","reason":"r"}`, 403, "FORBIDDEN"},
		{"kill", "other", `{"scope":"team","id":"a","reason":"r"}`, 401, "UNAUTHORIZED"},
		{"kill", "", `{"scope":"team","id":"a","reason":"r"}`, 401, "UNAUTHORIZED"},
		{"kills", "ann-token", ``, 405, "GET"},
		{"nothing", "ann-token", ``, 404, "NOTFOUND"},
	} {
		status, body, _ := ask(t, s.h1, s.url, call{path: "/emmer/v1/" + x.path, token: x.token, body: x.body})
		if status != x.status || !strings.Contains(body, x.want) {
			t.Errorf("%s %.80s: %d %s", x.path, x.body, status, body)
		}
	}
	off := serve(t, buckettest.StartRedis(t), func(o *bridge.Options) { o.OperatorTokens = nil })
	if status, _, _ := ask(t, off.h1, off.url, call{path: "/emmer/v1/kill", token: token}); status != 404 {
		t.Errorf("without operators: %d", status)
	}
}

// TestSweepLeavesLiveFlags: only what has ended goes.
func TestSweepLeavesLiveFlags(t *testing.T) {
	r := buckettest.StartServer(t)
	s := serve(t, r.Addr(), nil)
	c, ctx := r.Client(), context.Background()
	ctl := script.Layout{Namespace: bridge.DefaultNamespace, Tag: "g"}.Ctl()
	later := now(t, c) + bucket.Millis(time.Hour.Milliseconds())
	for i := range 50 {
		until := bucket.Millis(i % 3) // 0: no end; 1: long over
		if i%3 == 2 {
			until = later
		}
		c.HSet(ctx, ctl, "key:"+itoa(i), script.KillValue(until, "bob", "r"))
	}
	ask(t, s.h1, s.url, call{path: "/emmer/v1/kill", token: "ann-token", body: `{"scope":"team","id":"a","reason":"r"}`})
	for i := range 50 {
		if got, want := c.HExists(ctx, ctl, "key:"+itoa(i)).Val(), i%3 != 1; got != want {
			t.Errorf("flag %d: is there %v", i, got)
		}
	}
}

// TestFlagsOfAnOrg: an order that names an org touches its shard alone, and the list shows one shard.
func TestFlagsOfAnOrg(t *testing.T) {
	for store, start := range stores {
		t.Run(store, func(t *testing.T) {
			addr := start(t)
			s := serve(t, addr, func(o *bridge.Options) { o.Namespace = "ns" })
			c := redis.NewClient(&redis.Options{Addr: addr})
			defer func() { _ = c.Close() }()
			ctx := context.Background()
			layout := script.Layout{Namespace: "ns"}
			shards := map[string]string{"": layout.Of("").Ctl(), "acme corp": layout.Of("acme corp").Ctl(), "umbra": layout.Of("umbra").Ctl()}
			order := func(verb, body string) (int, string) {
				status, body, _ := ask(t, s.h1, s.url, call{path: "/emmer/v1/" + verb, token: "ann-token", body: body})
				return status, body
			}
			list := func(query string) (int, string) {
				status, body, _ := ask(t, s.h1, s.url, call{method: "GET", path: "/emmer/v1/kills" + query, token: "ann-token"})
				_, flags, _ := strings.Cut(body, `"flags":`)
				return status, flags
			}
			c.HSet(ctx, shards["acme corp"], "team:old", script.KillValue(1, "bob", "ended"))
			c.HSet(ctx, shards["umbra"], "team:old", script.KillValue(1, "bob", "ended"))
			if status, body := order("kill", `{"org":"acme corp","scope":"tenant","id":"red","reason":"r"}`); status != 200 || !strings.Contains(body, `{"org":"acme corp","scope":"tenant","id":"red",`) {
				t.Errorf("%d %s", status, body)
			}
			if status, body := order("kill", `{"scope":"tenant","id":"blue","reason":"r"}`); status != 200 || strings.Contains(body, "org") {
				t.Errorf("%d %s", status, body)
			}
			for org, want := range map[string]string{"": "tenant:blue", "acme corp": "tenant:red", "umbra": "team:old"} {
				if got := strings.Join(c.HKeys(ctx, shards[org]).Val(), " "); got != want {
					t.Errorf("org %q has %q, want %q", org, got, want)
				}
			}
			for query, want := range map[string]string{
				"":               `[{"scope":"tenant","id":"blue","until":0,"actor":"ann","reason":"r","active":true}]}}`,
				"?org=acme+corp": `[{"org":"acme corp","scope":"tenant","id":"red","until":0,"actor":"ann","reason":"r","active":true}]}}`,
				"?org=nobody":    `[]}}`,
			} {
				if status, got := list(query); status != 200 || got != want {
					t.Errorf("%s: %d %s", query, status, got)
				}
			}
			for _, query := range []string{"?scope=tenant", "?org=a&org=b", "?org=a&scope=b", "?org=%00", "?org=%zz", "?org=" + strings.Repeat("x", 300)} {
				if status, body := list(query); status != 400 {
					t.Errorf("%s: %d %s", query, status, body)
				}
			}
			for body, want := range map[string]string{
				`{"scope":"tenant","id":"red"}`:                    "false",
				`{"org":"umbra","scope":"tenant","id":"red"}`:      "false",
				`{"org":"acme corp","scope":"tenant","id":"blue"}`: "false",
				`{"org":"acme corp","scope":"tenant","id":"red"}`:  "true",
			} {
				if status, got := order("resume", body); status != 200 || got != `{"result":{"resumed":`+want+`}}` {
					t.Errorf("resume %s: %d %s", body, status, got)
				}
			}
		})
	}
}
