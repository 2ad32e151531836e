package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/emmer-proxy/emmer/hostsim/envoy"
	"github.com/emmer-proxy/emmer/hostsim/upstream"
)

const httpLimits = `[{"name": "tokens", "by": ["key"], "count": "tokens", "max": 10000, "window": {"calendar": "year"}},
	{"name": "parallel", "by": ["key"], "count": "concurrency", "max": 3}]`

const httpCall = `{"model":"m","max_tokens":91,"messages":[{"role":"user","content":"hello there"}]}`

// metricsOnceSettled are the metrics once so many settlements are counted: the store knows of one before the
// filter has its answer.
func (st *stand) metricsOnceSettled(n int64) (m map[string]int64) {
	st.t.Helper()
	eventually(st.t, 10*time.Second, func() string {
		if m = st.metrics(0); m["emmer.settled"] < n {
			return fmt.Sprintf("emmer.settled is %d, want %d", m["emmer.settled"], n)
		}
		return ""
	})
	return m
}

// lastLine is what the access log says of a site's n-th exchange.
func (st *stand) lastLine(site string, n int) (line string, fields map[string]any) {
	st.t.Helper()
	eventually(st.t, 5*time.Second, func() string {
		lines := st.envoys[0].AccessLog(site)
		if len(lines) != n {
			return fmt.Sprintf("%d lines in the access log, want %d: %q", len(lines), n, lines)
		}
		line = lines[n-1]
		return ""
	})
	if i := strings.IndexByte(line, '{'); i >= 0 {
		if err := json.Unmarshal([]byte(line[i:]), &fields); err != nil {
			st.t.Fatalf("%s: %v", line, err)
		}
	}
	return line, fields
}

// used is what a key has used of a site's tokens, once no call of it is held.
func (st *stand) used(site, key string, settled int) int64 {
	st.t.Helper()
	eventually(st.t, 5*time.Second, func() string {
		if held, done := st.records(site); held != 0 || done != settled {
			return fmt.Sprintf("%s: %d held and %d settled, want 0 and %d", site, held, done, settled)
		}
		return ""
	})
	return 10000 - int64(st.level(site, "tokens", key).Remaining)
}

// TestRetriesOfTheRouter lets Envoy's router, which is below the filter, try a call again: that is one call
// with one reservation, which is settled once, on the answer that the client has.
func TestRetriesOfTheRouter(t *testing.T) {
	t.Parallel()
	script := `on request 1
status 503
write {"error":{"message":"overloaded"},"usage":{"prompt_tokens":500,"completion_tokens":500}}
on request 2
chat in=12 out=8
on request 3
reset
on request 4
reset
on request 5
chat in=12 out=9 usage=always
on any
status 503
write {"error":{"message":"overloaded"}}
`
	var sites []*site
	for _, hold := range []string{"pair", "flag"} {
		provider, err := upstream.Start(upstream.MustParse(script))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { provider.Close() })
		sites = append(sites, &site{name: "retry-" + hold, hold: hold, limits: httpLimits, retryOn: "5xx,reset", provider: provider})
	}
	st := newStand(t, 1, 1, sites...)
	for _, s := range sites {
		// A 503, whose usage is nobody's in the end, then an answer.
		if a := st.call(0, s.name, "alice", httpCall); a.status != 200 || a.err != nil {
			t.Fatalf("%s: %+v", s.name, a)
		}
		if line, f := st.lastLine(s.name, 1); f["settled"] != "usage" || f["in"] != 12.0 || f["out"] != 8.0 {
			t.Errorf("%s: %s", s.name, line)
		}
		if n := st.used(s.name, "alice", 1); n != 20 {
			t.Errorf("%s: %d tokens are booked, want 20", s.name, n)
		}
		// Two resets, then a stream.
		if a := st.call(0, s.name, "alice", strings.Replace(httpCall, "{", `{"stream":true,`, 1)); a.status != 200 || !strings.HasSuffix(a.body, "data: [DONE]\n\n") {
			t.Fatalf("%s: %+v", s.name, a)
		}
		if line, f := st.lastLine(s.name, 2); f["settled"] != "usage" || f["out"] != 9.0 {
			t.Errorf("%s: %s", s.name, line)
		}
		// Three answers of 503: the client has the last, and pays nothing.
		if a := st.call(0, s.name, "alice", httpCall); a.status != 503 || !strings.Contains(a.body, "overloaded") {
			t.Fatalf("%s: %+v", s.name, a)
		}
		if line, f := st.lastLine(s.name, 3); f["settled"] != "refund" {
			t.Errorf("%s: %s", s.name, line)
		}
		if n := st.used(s.name, "alice", 3); n != 41 {
			t.Errorf("%s: %d tokens are booked, want 41", s.name, n)
		}
		requests := s.provider.Requests()
		if len(requests) != 8 {
			t.Errorf("%s: %d requests arrived, want 8", s.name, len(requests))
		}
		for i, r := range requests {
			want := httpCall
			if i >= 2 && i < 5 {
				want = strings.Replace(httpCall, "{", `{"stream":true,`, 1)
			}
			if string(r.Body) != want {
				t.Errorf("%s: request %d arrived as %q", s.name, i+1, r.Body)
			}
		}
	}
	m := st.metricsOnceSettled(6)
	for name, want := range map[string]int64{"granted": 6, "settled": 6, "settled_duplicate": 0, "host_refused": 0, "recovered": 0} {
		if m["emmer."+name] != want {
			t.Errorf("emmer.%s is %d, want %d", name, m["emmer."+name], want)
		}
	}
}

// aborts is Envoy's fault filter: it answers by itself where a header asks for it. Each of several has a name of
// its own, by which a route could change it.
func aborts(header, value string) envoy.Filter {
	raw, err := json.Marshal(map[string]any{
		"name": "aborts-" + header,
		"typed_config": map[string]any{
			"@type":   "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault",
			"abort":   map[string]any{"http_status": 503, "percentage": map[string]any{"numerator": 100}},
			"headers": []map[string]any{{"name": header, "string_match": map[string]any{"exact": value}}},
		},
	})
	if err != nil {
		panic(err) // strings only
	}
	return envoy.Filter{Raw: raw}
}

// TestLocalRepliesOfOtherFilters lets filters before and behind ours answer: who answers before costs no call of
// the store, who answers behind is no provider, so that what was reserved is given back.
func TestLocalRepliesOfOtherFilters(t *testing.T) {
	t.Parallel()
	var sites []*site
	for _, hold := range []string{"pair", "flag"} {
		sites = append(sites, &site{name: "reply-" + hold, hold: hold, limits: httpLimits,
			before: []envoy.Filter{aborts("x-abort", "before")}, behind: []envoy.Filter{aborts("x-abort", "behind")}})
	}
	st := newStand(t, 1, 1, sites...)
	for _, s := range sites {
		for n, where := range []string{"before", "behind", "nowhere", "behind", "before"} {
			a := st.call(0, s.name, "alice", httpCall, "x-abort", where)
			want := 503
			if where == "nowhere" {
				want = 200
			}
			if a.status != want || a.err != nil {
				t.Fatalf("%s, reply %s: %+v", s.name, where, a)
			}
			line, f := st.lastLine(s.name, n+1)
			switch where {
			case "before":
				if f != nil {
					t.Errorf("%s: a call that never came here is logged: %s", s.name, line)
				}
			case "behind":
				if f["d"] != "granted" || f["settled"] != "refund" {
					t.Errorf("%s, reply %s: %s", s.name, where, line)
				}
			case "nowhere":
				if f["settled"] != "usage" {
					t.Errorf("%s: %s", s.name, line)
				}
			}
		}
		used := st.used(s.name, "alice", 3)
		if used != 19 {
			t.Errorf("%s: %d tokens are booked, want 19", s.name, used)
		}
		if n := s.provider.Count(); n != 1 {
			t.Errorf("%s: %d requests arrived, want 1", s.name, n)
		}
	}
	if m := st.metricsOnceSettled(6); m["emmer.granted"] != 6 || m["emmer.settled"] != 6 || m["emmer.host_refused"] != 0 {
		t.Errorf("granted %d, settled %d, refused by the host %d", m["emmer.granted"], m["emmer.settled"], m["emmer.host_refused"])
	}
}
