package script

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

var (
	perKey = bucket.Limit{Name: "rate", Entity: "k", Kind: bucket.TokenBucket, Lost: bucket.Charge, Rate: 100, Per: 3, Burst: 5000}
	month  = bucket.Limit{Name: "month", Period: "p", Entity: "t", Kind: bucket.CalendarWindow, Max: 70, Bounds: [4]bucket.Millis{10, 20, 30, 40}}
	two    = []bucket.Item{{Limit: perKey, Amount: 7}, {Limit: month, Amount: 8}}
)

func TestArguments(t *testing.T) {
	l := Layout{Namespace: "n"}
	keys := []string{"n:1:{g}:ctl", "n:1:{g}:r:id", "n:1:{g}:l:rate:b::k", "n:1:{g}:l:month:w:p:t"}
	tail := []string{"b", "7", "c", "100", "3", "5000", "w", "8", "r", "70", "10", "20", "30", "40", "no"}
	reserve, err1 := l.Reserve(bucket.ReserveRequest{ID: "id", Lease: 1, Keep: 2, Cell: 3, Kills: []string{"x", "y"}, Items: two}, "no")
	settle, err2 := l.Settle(bucket.SettleRequest{ID: "id", Deadline: 9, Lease: 1, Keep: 2, Cell: 3, Items: two}, "no")
	renew, err3 := l.Renew(bucket.RenewRequest{ID: "id", Lease: 1, Keep: 2, Cell: 3, Items: two}, "no")
	level, err4 := l.Level(perKey, "no")
	again, err5 := l.SettleAt(reserve.Keys, bucket.SettleRequest{ID: "id", Deadline: 9, Lease: 1, Keep: 2, Cell: 3, Items: two}, "no")
	learns, err6 := l.SettleAt(reserve.Keys, bucket.SettleRequest{ID: "id", Deadline: 9, Lease: 1, Keep: 2, Cell: 3, Items: two, Answer: bucket.Answer{Of: "a b", Tokens: 70}}, "no")
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		call   Call
		script *Script
		keys   []string
		args   []string
	}{
		{reserve, Reserve, keys, append([]string{"1", "2", "3", "2", "x", "y", "0"}, tail...)},
		{settle, Settle, keys, append([]string{"1", "2", "3", "9", "0", "0"}, tail...)},
		{again, Settle, keys, append([]string{"1", "2", "3", "9", "0", "0"}, tail...)},
		{learns, Settle, append(keys[:4:4], "n:1:{g}:a:a%20b"), append([]string{"1", "2", "3", "9", "70", "0"}, tail...)},
		{renew, Renew, keys, append([]string{"1", "2", "3", "0"}, tail...)},
		{level, Probe, []string{keys[0], keys[2]}, []string{"0", "b", "0", "c", "100", "3", "5000", "no"}},
	} {
		if tt.call.Script != tt.script || !reflect.DeepEqual(tt.call.Keys, tt.keys) || !reflect.DeepEqual(tt.call.Args, tt.args) {
			t.Errorf("%s: %q %q, want %q %q", tt.script.Name, tt.call.Keys, tt.call.Args, tt.keys, tt.args)
		}
	}
}

func TestArgumentsOfRarerKinds(t *testing.T) {
	pool := &bucket.Pool{Rate: 10, Per: 7, Burst: 100, Shares: []bucket.Share{
		{Name: "a b", Rate: 7, Burst: 70, Borrow: true}, {Name: "adm", Rate: 1, Burst: 9, Reserved: true},
	}}
	of := func(l bucket.Limit) bucket.Limit { l.Name, l.Entity, l.Max = "n", "e|", 70; return l }
	for _, tt := range []struct {
		item bucket.Item
		key  string
		args []string
	}{
		{bucket.Item{Limit: of(bucket.Limit{Kind: bucket.RollingWindow, Window: 60, Cell: 5}), Amount: 7}, "r:60.5", []string{"r", "7", "r", "70", "5", "60"}},
		{bucket.Item{Limit: of(bucket.Limit{Kind: bucket.Concurrency, Lost: bucket.Charge}), Amount: 1}, "c:", []string{"c", "1", "r", "70"}},
		{bucket.Item{Limit: of(bucket.Limit{Kind: bucket.Burn, Flag: "tenant:a b", Rule: &bucket.BurnRule{Minutes: 2, For: 9, Reason: "x\x00"}}), Amount: 7}, "o:", []string{"o", "7", "c", "70", "2", "9", "tenant:a%20b", "x?"}},
		{bucket.Item{Limit: of(bucket.Limit{Kind: bucket.SharedBucket, Pool: pool, Share: "a b"}), Amount: 7}, "s:", []string{"s", "7", "r", "~a%20b", "1", "10", "7", "100", "100", "2", "~a%20b", "7", "70", "0", "~adm", "1", "9", "1"}},
		{bucket.Item{Limit: of(bucket.Limit{Kind: bucket.SharedBucket, Pool: pool, Share: "adm"}), Amount: 7}, "s:", []string{"s", "7", "r", "~adm", "0", "10", "7", "100", "9", "2", "~a%20b", "7", "70", "0", "~adm", "1", "9", "1"}},
		{bucket.Item{Limit: of(bucket.Limit{Kind: bucket.SharedBucket, Pool: pool, Share: "?"}), Amount: 7}, "s:", []string{"s", "7", "r", "*", "1", "10", "7", "100", "30", "2", "~a%20b", "7", "70", "0", "~adm", "1", "9", "1"}},
		{bucket.Item{Limit: perKey, Amount: 7, Shadow: true, Queue: 50}, "", []string{"b", "7", "c!50", "100", "3", "5000"}},
		{bucket.Item{Limit: perKey, Amount: 7, Queue: 300_000}, "", []string{"b", "7", "c300000", "100", "3", "5000"}},
	} {
		r := bucket.ExtendRequest{ID: "id", Keep: 2, Cell: 3, Kills: []string{"x"}, Items: []bucket.Item{tt.item}}
		c, err := Layout{Namespace: "n", WithOverrides: true}.Extend(r, "no")
		if err != nil {
			t.Fatal(err)
		}
		key := "n:1:{g}:l:n:" + tt.key + ":e%7C"
		field := "n|e%7C"
		if tt.key == "" {
			key, field = "n:1:{g}:l:rate:b::k", "rate|k"
		}
		if want := []string{"n:1:{g}:ctl", "n:1:{g}:r:id", key, "n:1:{g}:ovr"}; !reflect.DeepEqual(c.Keys, want) {
			t.Errorf("%q, want %q", c.Keys, want)
		}
		if want := append(append([]string{"0", "2", "3", "1", "x", "1", field}, tt.args...), "no"); !reflect.DeepEqual(c.Args, want) {
			t.Errorf("%q, want %q", c.Args, want)
		}
		again, err := Layout{Namespace: "n", WithOverrides: true}.ExtendAt(c.Keys, r, "no")
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%+v, %v", again, err)
		}
	}
}

func TestFaultyRequests(t *testing.T) {
	good := bucket.ReserveRequest{ID: "id", Lease: 1, Keep: 0, Cell: 1, Items: two}
	for _, tt := range []struct {
		want   string
		change func(*bucket.ReserveRequest)
	}{
		{"", func(*bucket.ReserveRequest) {}},
		{"id: empty", func(r *bucket.ReserveRequest) { r.ID = "" }},
		{"lease: 0", func(r *bucket.ReserveRequest) { r.Lease = 0 }},
		{"keep: -1", func(r *bucket.ReserveRequest) { r.Keep = -1 }},
		{"cell: 0", func(r *bucket.ReserveRequest) { r.Cell = 0 }},
		{"lease: 9007", func(r *bucket.ReserveRequest) { r.Lease = bucket.MaxAmount }},
		{"kills: more", func(r *bucket.ReserveRequest) { r.Kills = make([]string, 65) }},
		{"items: more", func(r *bucket.ReserveRequest) { r.Items = make([]bucket.Item, 65) }},
		{"items[1].amount: -1", func(r *bucket.ReserveRequest) { r.Items[1].Amount = -1 }},
		{"items[0].rate: 0", func(r *bucket.ReserveRequest) { r.Items[0].Limit.Rate = 0 }},
		{"items[0].queue: -1", func(r *bucket.ReserveRequest) { r.Items[0].Queue = -1 }},
		{"items[0].amount: 2147483648", func(r *bucket.ReserveRequest) {
			r.Items[0] = bucket.Item{Limit: bucket.Limit{Kind: bucket.Concurrency}, Amount: 1 << 31}
		}},
		{"items[0].pool: missing", func(r *bucket.ReserveRequest) { r.Items[0].Limit.Kind = bucket.SharedBucket }},
		{`items[1].name: "rate" stands twice`, func(r *bucket.ReserveRequest) { r.Items[1] = r.Items[0] }},
	} {
		r := good
		r.Items = append([]bucket.Item{}, two...)
		tt.change(&r)
		_, err := Layout{}.Reserve(r, "no")
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
	if _, err := (Layout{}).Reserve(good, ""); err == nil {
		t.Error("a call without a nonce")
	}
}

func n(v int64) Value    { return Value{Int: v, IsInt: true} }
func txt(s string) Value { return Value{Text: s} }

func TestDecodeReserve(t *testing.T) {
	c := Call{Nonce: "no", Items: 2, Kills: 3}
	for _, tt := range []struct {
		name string
		v    []Value
		want bucket.ReserveReply
		err  string
	}{
		{"granted", []Value{n(1), n(5), n(9), n(0), n(0), n(70), n(-3), txt("no")}, bucket.ReserveReply{Outcome: bucket.Granted, Now: 5, Deadline: 9, By: -1, Remaining: []bucket.Amount{70, -3}}, ""},
		{"as strings", []Value{txt("1"), txt("5"), txt("9"), txt("0"), txt("0"), txt("70"), txt("-3"), txt("no")}, bucket.ReserveReply{Outcome: bucket.Granted, Now: 5, Deadline: 9, By: -1, Remaining: []bucket.Amount{70, -3}}, ""},
		{"denied", []Value{n(3), n(5), n(0), n(2), n(17), n(70), n(1), txt("no")}, bucket.ReserveReply{Outcome: bucket.Denied, Now: 5, By: 1, Retry: 17, Remaining: []bucket.Amount{70, 1}}, ""},
		{"killed", []Value{n(4), n(5), n(0), n(3), n(0), txt("0|a|b"), txt("no")}, bucket.ReserveReply{Outcome: bucket.Killed, Now: 5, By: 2, Reason: "0|a|b"}, ""},
		{"settled", []Value{n(5), n(5), n(0), n(0), n(0), txt("no")}, bucket.ReserveReply{Outcome: bucket.Settled, Now: 5, By: -1}, ""},
		{"of another call", []Value{n(1), n(5), n(9), n(0), n(0), n(70), n(-3), txt("on")}, bucket.ReserveReply{}, ErrNonce.Error()},
		{"nonce as a number", []Value{n(1), n(5), n(9), n(0), n(0), n(70), n(-3), n(0)}, bucket.ReserveReply{}, ErrNonce.Error()},
		{"empty", nil, bucket.ReserveReply{}, "no elements"},
		{"only a nonce", []Value{txt("no")}, bucket.ReserveReply{}, "too few"},
		{"one figure short", []Value{n(1), n(5), n(9), n(0), n(0), n(70), txt("no")}, bucket.ReserveReply{}, "7 elements, not 8"},
		{"one figure more", []Value{n(1), n(5), n(9), n(0), n(0), n(70), n(1), n(1), txt("no")}, bucket.ReserveReply{}, "9 elements, not 8"},
		{"unknown outcome", []Value{n(7), n(5), n(9), n(0), n(0), n(70), n(1), txt("no")}, bucket.ReserveReply{}, "element 0"},
		{"by nobody", []Value{n(3), n(5), n(0), n(3), n(17), n(70), n(1), txt("no")}, bucket.ReserveReply{}, "element 3"},
		{"a fraction", []Value{n(1), txt("5.5"), n(9), n(0), n(0), n(70), n(1), txt("no")}, bucket.ReserveReply{}, "element 1"},
		{"from a script that returns a level", []Value{n(3), n(5), n(0), txt("no")}, bucket.ReserveReply{}, "too few"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := DecodeReserve(c, tt.v)
			if !reflect.DeepEqual(got, tt.want) || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%+v, %v; want %+v, %q", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestDecodeFurtherFigures(t *testing.T) {
	c := Call{Nonce: "no", Items: 2, Kills: 1, Max: true, Burns: []int{1}}
	no := txt("no")
	reserve := func(v ...Value) any { r, err := DecodeReserve(c, v); return fmt.Sprintf("%+v %v", r, err) }
	extend := func(v ...Value) any { r, err := DecodeExtend(c, v); return fmt.Sprintf("%+v %v", r, err) }
	learns := func(v ...Value) any {
		with := c
		with.Learns = true
		r, err := DecodeSettle(with, v)
		return fmt.Sprintf("%+v %v", r, err)
	}
	settle := func(v ...Value) any { r, err := DecodeSettle(c, v); return fmt.Sprintf("%+v %v", r, err) }
	for _, tt := range []struct {
		got, want any
	}{
		{reserve(n(1), n(5), n(9), n(0), n(7), n(70), n(0), n(100), n(60), n(2), no),
			fmt.Sprintf("%+v <nil>", bucket.ReserveReply{Outcome: bucket.Granted, Now: 5, Deadline: 9, By: -1, Start: 7, Remaining: []bucket.Amount{70, 0}, Max: []bucket.Amount{100, 60}, BadOverride: 2})},
		{reserve(n(2), n(5), n(9), n(0), n(7), n(70), n(0), no),
			fmt.Sprintf("%+v <nil>", bucket.ReserveReply{Outcome: bucket.Replayed, Now: 5, Deadline: 9, By: -1, Start: 7, Remaining: []bucket.Amount{70, 0}})},
		{reserve(n(1), n(5), n(9), n(0), n(7), n(70), n(0), no), fmt.Sprintf("%+v %v", bucket.ReserveReply{}, errShape("8 elements, not 11"))},
		{reserve(n(1), n(5), n(9), n(0), n(7), n(70), n(0), n(100), n(60), n(3), no), fmt.Sprintf("%+v %v", bucket.ReserveReply{}, errShape("an element 9 that is no such number"))},
		{settle(n(1), n(5), n(70), n(3), n(1), no), fmt.Sprintf("%+v <nil>", bucket.SettleReply{Outcome: 1, Now: 5, Remaining: []bucket.Amount{70, 3}, Tripped: []int{1}})},
		{settle(n(1), n(5), n(70), n(3), n(0), no), fmt.Sprintf("%+v <nil>", bucket.SettleReply{Outcome: 1, Now: 5, Remaining: []bucket.Amount{70, 3}})},
		{settle(n(1), n(5), n(70), n(3), no), fmt.Sprintf("%+v %v", bucket.SettleReply{}, errShape("too few elements: 5"))},
		{learns(n(2), n(5), n(70), n(3), n(1), n(900), no), fmt.Sprintf("%+v <nil>", bucket.SettleReply{Outcome: 2, Now: 5, Remaining: []bucket.Amount{70, 3}, Tripped: []int{1}, Learned: 900})},
		{learns(n(4), n(5), no), fmt.Sprintf("%+v <nil>", bucket.SettleReply{Outcome: 4, Now: 5})},
		{learns(n(1), n(5), n(70), n(3), n(1), no), fmt.Sprintf("%+v %v", bucket.SettleReply{}, errShape("too few elements: 6"))},
		{learns(n(1), n(5), n(70), n(3), n(1), n(1<<20+1), no), fmt.Sprintf("%+v %v", bucket.SettleReply{}, errShape("an element 5 that is no such number"))},
		{settle(n(1), n(5), n(70), n(3), n(1), n(900), no), fmt.Sprintf("%+v %v", bucket.SettleReply{}, errShape("7 elements, not 6"))},
		{extend(n(1), n(5), n(9), n(0), n(0), n(70), n(3), n(100), n(60), n(0), n(1), no),
			fmt.Sprintf("%+v <nil>", bucket.ExtendReply{Outcome: bucket.Extended, Now: 5, Deadline: 9, By: -1, Remaining: []bucket.Amount{70, 3}, Max: []bucket.Amount{100, 60}, Tripped: []int{1}})},
		{extend(n(3), n(5), n(0), n(2), n(17), n(70), n(3), n(100), n(60), n(0), n(0), no),
			fmt.Sprintf("%+v <nil>", bucket.ExtendReply{Outcome: bucket.ExtendDenied, Now: 5, By: 1, Retry: 17, Remaining: []bucket.Amount{70, 3}, Max: []bucket.Amount{100, 60}})},
		{extend(n(4), n(5), n(0), n(1), n(0), txt("0|a|b"), no), fmt.Sprintf("%+v <nil>", bucket.ExtendReply{Outcome: bucket.ExtendKilled, Now: 5, By: 0, Reason: "0|a|b"})},
		{extend(n(6), n(5), n(0), n(0), n(0), no), fmt.Sprintf("%+v <nil>", bucket.ExtendReply{Outcome: bucket.ExtendUnknown, Now: 5, By: -1})},
		{extend(n(8), n(5), n(0), n(0), n(0), no), fmt.Sprintf("%+v %v", bucket.ExtendReply{}, errShape("an element 0 that is no such number"))},
		{extend(n(1), n(5), n(9), n(0), n(0), n(70), n(3), txt("on")), fmt.Sprintf("%+v %v", bucket.ExtendReply{}, ErrNonce)},
	} {
		if tt.got != tt.want {
			t.Errorf("%v\nwant %v", tt.got, tt.want)
		}
	}
}

// FuzzDecode makes replies of bytes: each byte chooses an integer, a text, or the nonce.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{1, 5, 9, 0, 0, 70, 3, 255}, 2, 3)
	f.Add([]byte{3, 5, 9, 2, 0, 70, 3, 255}, 2, 0)
	f.Add([]byte{4, 5, 0, 1, 0, 201, 255}, 0, 1)
	f.Add([]byte{255}, 0, 0)
	f.Fuzz(func(t *testing.T, b []byte, items, kills int) {
		if items < 0 || items > mostItems || kills < 0 || kills > mostKills {
			return
		}
		c := Call{Nonce: "no", Items: items, Kills: kills, Max: kills%2 > 0, Learns: items%2 > 0}
		if items > 2 {
			c.Burns = []int{0, 2}
		}
		v := make([]Value, len(b))
		for i, x := range b {
			switch {
			case x < 100:
				v[i] = n(int64(x) - 5)
			case x < 150:
				v[i] = n(int64(x) << 50)
			case x < 200:
				v[i] = txt("1" + string(rune('.'+x-150)))
			case x == 255:
				v[i] = txt("no")
			default:
				v[i] = txt(string(b[i:]))
			}
		}
		own := len(b) > 0 && b[len(b)-1] == 255
		r, err := DecodeReserve(c, v)
		if err == nil && (!own || r.Now < 0 || r.Deadline < 0 || r.Retry < 0 || r.By >= max(items, kills) || len(r.Remaining) > items) {
			t.Fatalf("%v: %+v", v, r)
		}
		s, err := DecodeSettle(c, v)
		if err == nil && (!own || s.Outcome < 1 || s.Outcome > 5 || len(s.Remaining) > items) {
			t.Fatalf("%v: %+v", v, s)
		}
		w, err := DecodeRenew(c, v)
		if err == nil && (!own || w.Outcome < 1 || w.Outcome > 4) {
			t.Fatalf("%v: %+v", v, w)
		}
		x, err := DecodeExtend(c, v)
		if err == nil && (!own || x.Outcome < 1 || x.Outcome > 7 || x.By >= max(items, kills) || x.BadOverride > items || len(x.Tripped) > len(c.Burns)) {
			t.Fatalf("%v: %+v", v, x)
		}
		if _, err = DecodeLevel(c, v); err == nil && !own {
			t.Fatalf("%v", v)
		}
	})
}

// Scripts are fixed texts that touch declared keys only, carry numbers out as integers, and use
// nothing that one of the stores lacks.
func TestTexts(t *testing.T) {
	command := regexp.MustCompile(`\bcall\('([A-Z]+)'(?:,([^,)]+))?`)
	for _, s := range All() {
		if len(s.SHA) != 40 || len(s.Text) > 40_000 {
			t.Errorf("%s: SHA %q, %d bytes", s.Name, s.SHA, len(s.Text))
		}
		for _, m := range command.FindAllStringSubmatch(s.Text, -1) {
			if key := m[2]; m[1] != "TIME" && key != "KEYS[1]" && key != "KEYS[2]" && key != "q.key" && key != "KEYS[3+#L]" && key != "KEYS[#KEYS]" {
				t.Errorf("%s: %s touches %s", s.Name, m[1], key)
			}
		}
		if strings.Count(s.Text, "redis.call") != 2 {
			t.Errorf("%s: commands that this test doesn't see", s.Name)
		}
		for _, word := range []string{"struct.", "cmsgpack", "cjson", "bit.", "tostring", "#!", "redis.pcall", "math.random", "HINCRBY"} {
			if strings.Contains(s.Text, word) {
				t.Errorf("%s uses %s", s.Name, word)
			}
		}
	}
	for _, write := range []string{"save(", "write(", "book(", "hold("} {
		if strings.Contains(levelText, write) {
			t.Errorf("level writes: %s", write)
		}
	}
}
