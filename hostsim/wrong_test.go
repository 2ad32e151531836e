package hostsim

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

// expect checks that exactly the wanted kinds of violation were recorded.
func (r *rig) expect(parts ...string) {
	r.t.Helper()
	all := r.Violations()
	for _, part := range parts {
		found := false
		for _, v := range all {
			found = found || strings.Contains(v, part)
		}
		if !found {
			r.t.Errorf("no violation %q in %q", part, all)
		}
	}
	if len(parts) == 0 && len(all) > 0 {
		r.t.Errorf("violations: %q", all)
	}
}

// Growing a body under its old content-length is request smuggling on a pooled HTTP/1.1 connection.
func TestStaleContentLength(t *testing.T) {
	for name, c := range map[string]call{
		"grow":         {options: "keepcl=1;grow=500"},
		"grow http2":   {options: "keepcl=1;grow=500", header: map[string]string{"x-target": "h2"}},
		"shrink":       {options: "keepcl=1;shrink=500"},
		"shrink http2": {options: "keepcl=1;shrink=500", header: map[string]string{"x-target": "h2"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := startRig(t, nil)
			c.body = bytes.Repeat([]byte("G"), 3000)
			r.want(c, 502, "hostsim: content-length and body differ")
			r.expect("under a content-length of 3000")
			// Nobody else's request is touched.
			r.want(call{options: "m=pass", method: "GET", path: "/victim"}, 200, "siteA:0")
			for _, q := range r.siteA.requests() {
				if q.err == nil && q.path != "/victim" {
					t.Errorf("upstream took %q", q.path)
				}
			}
			r.settled()
		})
	}
}

func TestResumeOfThePartnerFromOwnCallback(t *testing.T) {
	r := startRig(t, nil)
	// HTTP/2 body in one frame: the headers leave as the whole request, the body is lost.
	r.want(call{options: "now=direct", body: []byte("abc"), h2: true}, 200, "siteA:0")
	r.expect("resumes the request from inside one of its own callbacks", "are lost")
	r.settled()
}

func TestResumeInTheWrongOrder(t *testing.T) {
	r := startRig(t, nil)
	g := r.do(call{options: "keep=1;order=ba", body: []byte("abc"), chunked: true, trailer: map[string]string{"X-End": "1"}})
	if g.code != 200 {
		t.Errorf("got %v", g)
	}
	r.expect("continue_stream(request) after continue_stream(request) in one callback", "request ends twice")
	r.settled()
}

func TestBodyOutOfReach(t *testing.T) {
	r := startRig(t, nil)
	// Status 3, then a write in the trailers callback: on Envoy it lands in the next request.
	r.want(call{options: "m=swallow", body: []byte("abc"), chunked: true, trailer: map[string]string{"X-End": "1"}}, 429, "trailers\n")
	r.expect("touches a request body outside its callback")
	if n := strings.Count(strings.Join(r.Logs(), "\n"), "stale write: error status returned by host: bad argument"); n != 1 {
		t.Errorf("the write was refused %d times", n)
	}
	r.settled()
}

func TestResumeInTheMiddleOfABufferedBody(t *testing.T) {
	r := startRig(t, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	parts := &slowBody{parts: []string{"first", "second", "third"}, gap: 50 * time.Millisecond}
	g := r.stream(ctx, "one", "body=midresume", parts)
	if g.failed != nil || g.code != 200 {
		t.Fatalf("got %v", g)
	}
	r.expect("stay behind in the buffer")
	r.settled()
}

func TestTwoDeferredActions(t *testing.T) {
	r := startRig(t, nil)
	r.want(call{listener: "probe", header: map[string]string{"x-probe": "twice"}}, 200, "first")
	r.expect("send_local_response after send_local_response in one callback")
	r.settled()
}

func TestHeaderEditsAfterTheirRelease(t *testing.T) {
	r := startRig(t, func(o *Options) { o.Listeners[0].AccessLog = "%FILTER_STATE(wasm.late:PLAIN)%" })
	// A returned Continue: its pointer is gone, although B still holds the headers.
	r.want(call{options: "lateedit=1", body: []byte("abc")}, 200, "siteA:3")
	r.settled()
	if l := r.AccessLog("pair"); len(l) != 1 || l[0] != "error status returned by host: bad argument" {
		t.Errorf("%q", l)
	}
	if h := r.siteA.requests()[0].header.Get("x-late"); h != "" {
		t.Errorf("the edit reached upstream: %q", h)
	}
	r.expect()
}

func TestResponseResumedFromOwnCallback(t *testing.T) {
	r := startRig(t, nil)
	r.do(call{options: "resp=now", path: "/x?json=1", body: []byte("abc"), header: map[string]string{"x-target": "h2"}})
	r.expect("resumes the response from inside one of its own callbacks")
	r.settled()
}
