package bench

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// at is a sample whose every answer took d.
func at(d time.Duration) Sample {
	return Sample{Latencies: []time.Duration{d, d}, Took: time.Second, Statuses: map[string]int{"200": 2}, Errors: map[string]int{}}
}

func TestLinesCompareTheFilterWithTheFloor(t *testing.T) {
	o := Options{Holds: []string{"pair", "flag"}, Sizes: []int{100000}, Conns: []int{1}}
	groups := groupsOf(o)
	if len(groups) != 1 || len(groups[0]) != 5 {
		t.Fatalf("groups are %v", groups)
	}
	us := func(n int) Sample { return at(time.Duration(n) * time.Microsecond) }
	rounds := map[cell][]Sample{}
	for _, c := range groups[0] {
		switch c.system + c.hold {
		case "bare":
			rounds[c] = []Sample{us(400), us(100), us(9000)} // the median is 400
		case "floorpair":
			rounds[c] = []Sample{us(800), us(800), us(800)}
		case "emmerpair":
			rounds[c] = []Sample{us(1000), us(1000), us(1000)}
		case "floorflag":
			rounds[c] = []Sample{us(700), us(700), us(700)}
		case "emmerflag":
			rounds[c] = []Sample{us(900), us(700), us(900)}
			rounds[c][1].Statuses = map[string]int{"429": 2}
		}
	}
	lines := linesOf(groups[0], rounds)
	find := func(system, hold string) Line {
		for _, l := range lines {
			if l.System == system && l.Hold == hold {
				return l
			}
		}
		t.Fatalf("no line of %s %s", system, hold)
		return Line{}
	}
	if l := find(Bare, ""); l.P50 != 400 || l.AddedP50 != nil || l.RPS != 2 {
		t.Errorf("bare: %+v", l)
	}
	if l := find(Floor, "pair"); *l.AddedP50 != 400 || l.RatioToFloor != nil {
		t.Errorf("floor: %+v", l)
	}
	if l := find(Filter, "pair"); *l.AddedP50 != 600 || *l.RatioToFloor != 1.5 || *l.NsPerByte != 2 {
		t.Errorf("emmer, pair: added %d, ratio %v, %v ns a byte", *l.AddedP50, *l.RatioToFloor, *l.NsPerByte)
	}
	// Each way to hold has a floor of its own.
	if l := find(Filter, "flag"); *l.RatioToFloor != 1.67 || l.Wrong != 2 {
		t.Errorf("emmer, flag: ratio %v, %d wrong", *l.RatioToFloor, l.Wrong)
	}
}

func TestLinesAreJSONWithTheAgreedNames(t *testing.T) {
	text, err := json.Marshal(Line{Bench: "chat", Conns: 16, System: Filter, P50: 1, P99: 2, RPS: 3, RatioToFloor: ptr(1.5), NsPerByte: ptr(0.0)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{`"bench":`, `"conns":16`, `"system":"emmer"`, `"p50_us":1`, `"p99_us":2`, `"rps":3`, `"ratio_to_floor":1.5`, `"ns_per_byte":0`} {
		if !strings.Contains(string(text), name) {
			t.Errorf("%s lacks %s", text, name)
		}
	}
}

func TestTableShowsEveryLine(t *testing.T) {
	var out bytes.Buffer
	err := table(&out, []Line{
		{Bench: "chat", Bytes: 1024, Conns: 1, System: Bare, P50: 11, P99: 12},
		{Bench: "chat", Bytes: 1024, Conns: 1, System: Filter, Hold: "pair", P50: 21, P99: 22, RatioToFloor: ptr(1.25)},
		{Bench: "redis-stopped", Conns: 16, System: Filter, Hold: "flag", P99OverTimeout: ptr(int64(777)), BackMillis: ptr(int64(5)), Statuses: map[string]int{"503": 9}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bare", "emmer-pair", "1.25", "redis-stopped", "emmer-flag", "777", "503:9"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}
