package dialect

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
)

// texts is a Sink that keeps each text as it stood in the JSON.
type texts struct {
	done []string
	cur  []byte
	open bool
}

func (s *texts) Text(p []byte, last bool) {
	s.cur = append(s.cur, p...)
	s.open = true
	if last {
		s.done = append(s.done, string(s.cur))
		s.cur, s.open = s.cur[:0], false
	}
}

// decoded gives the texts without their escapes.
func (s *texts) decoded() []string {
	var out []string
	for _, raw := range s.done {
		var v string
		if json.Unmarshal([]byte(`"`+raw+`"`), &v) != nil {
			v = raw // JSON handed on as it is
		}
		out = append(out, v)
	}
	return out
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
	sink := &texts{}
	s := OpenAIChat.NewScanner(depth, sink)
	write(func(p []byte) { s.Write(p) })
	facts, fault := s.Close()
	r := scanned{Facts: facts, Fault: fault}
	if fault == nil {
		r.Texts = sink.decoded()
	}
	return r
}

func scanWhole(body string) scanned {
	return scan(func(w func([]byte)) { w([]byte(body)) }, 256)
}

type metered struct {
	Usage                                  Usage
	OK, Produced, Failed, Finished, Opaque bool
	Texts                                  []string
}

func meter(h ResponseHead, write func(func([]byte))) metered {
	sink := &texts{}
	m := OpenAIChat.NewMeter(h, sink)
	write(m.Write)
	m.Close()
	m.Close()
	if sink.open {
		panic("a text was left open")
	}
	r := metered{Produced: m.Produced(), Failed: m.Failed(), Finished: m.Finished(), Opaque: m.Opaque(), Texts: sink.decoded()}
	r.Usage, r.OK = m.Usage()
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
