package dialect

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/emmer-proxy/emmer/bucket"
)

// texts is a Sink that keeps all that it hears.
type texts struct {
	done []string
	cur  []byte
	part Part
	open bool
}

var partNames = [Parts]string{"", "tool", "tool description", "property", "type", "description", "value", "schema",
	"image", "detail", "audio", "format", "file", "file ref", "query"}

var itemNames = [Items]string{"none", "message", "name", "tool", "properties", "property", "enum", "response format",
	"image", "audio", "file", "document"}

func (s *texts) Text(part Part, p []byte, last bool) {
	if s.open && part != s.part {
		panic("texts overlap")
	}
	s.cur = append(s.cur, p...)
	s.open, s.part = true, part
	if last {
		s.done = append(s.done, heard(part, string(s.cur)))
		s.cur, s.open = s.cur[:0], false
	}
}

func (s *texts) End(item Item) {
	if s.open {
		panic("an item ends within a text")
	}
	s.done = append(s.done, "/"+itemNames[item])
}

// heard is a text without its escapes, behind the name of its part.
func heard(part Part, raw string) string {
	var v string
	if json.Unmarshal([]byte(`"`+raw+`"`), &v) != nil {
		v = raw // JSON handed on as it is
	}
	if part == Text {
		return v
	}
	return partNames[part] + ": " + v
}

// pieces calls f with every way to cut body in two, and with single bytes.
func pieces(body string, f func(name string, write func(func(p []byte)))) {
	cut := func(n int) func(func([]byte)) {
		return func(w func([]byte)) {
			// Copies with no room behind them show reads beyond a piece and pieces that are kept.
			w([]byte(body[:n]))
			w([]byte(body[n:]))
		}
	}
	for n := 0; n <= len(body); n++ {
		f(fmt.Sprintf("cut at %d", n), cut(n))
	}
	f("single bytes", func(w func([]byte)) {
		one := make([]byte, 1)
		for i := range len(body) {
			one[0] = body[i]
			w(one)
		}
	})
}

type scanned struct {
	Facts Facts
	Fault *Fault
	Texts []string
}

func scan(write func(func([]byte)), depth int) scanned {
	return scanAs(OpenAIChat, RequestHead{}, write, depth)
}

func scanAs(d Dialect, h RequestHead, write func(func([]byte)), depth int) scanned {
	sink := &texts{}
	s := d.NewScanner(h, depth, sink)
	write(func(p []byte) { s.Write(p) })
	facts, fault := s.Close()
	r := scanned{Facts: facts, Fault: fault}
	if fault == nil {
		r.Texts = sink.done
	}
	return r
}

func scanWhole(body string) scanned {
	return scan(func(w func([]byte)) { w([]byte(body)) }, 256)
}

// used is a usage of which no more is known.
func used(input, cached, output bucket.Tokens) Usage {
	return Usage{Input: input, CachedInput: cached, Output: output}
}

type metered struct {
	Usage                              Usage
	Trust                              Trust
	Produced, Failed, Finished, Opaque bool
	Texts                              []string
}

func meter(h ResponseHead, write func(func([]byte))) metered { return meterAs(OpenAIChat, h, write) }

func meterAs(d Dialect, h ResponseHead, write func(func([]byte))) metered {
	sink := &texts{}
	m := d.NewMeter(h, sink)
	write(m.Write)
	m.Close()
	m.Close()
	if sink.open {
		panic("a text was left open")
	}
	r := metered{Produced: m.Produced(), Failed: m.Failed(), Finished: m.Finished(), Opaque: m.Opaque(), Texts: sink.done}
	r.Usage, r.Trust = m.Usage()
	return r
}

func meterWhole(h ResponseHead, body string) metered {
	return meter(h, func(w func([]byte)) { w([]byte(body)) })
}

func sameForEverySplit[T any](t *testing.T, body string, want T, run func(func(func([]byte))) T) {
	t.Helper()
	pieces(body, func(name string, write func(func([]byte))) {
		if got := run(write); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	})
}
