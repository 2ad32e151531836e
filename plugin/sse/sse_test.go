package sse

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// event is what the standard dispatches.
type event struct{ Name, Data string }

// collect joins the lines of events by the standard's rule.
type collect struct {
	events []event
	lines  []string
	cur    []byte
}

func (c *collect) Data(p []byte) { c.cur = append(c.cur, p...) }

func (c *collect) EndLine() {
	c.lines = append(c.lines, string(c.cur))
	c.cur = c.cur[:0]
}

func (c *collect) EndEvent(name []byte) {
	if len(c.cur) > 0 || len(c.lines) == 0 {
		panic("an event ends inside a line or has none")
	}
	c.events = append(c.events, event{string(name), strings.Join(c.lines, "\n")})
	c.lines = nil
}

func read(parts ...[]byte) []event {
	c := &collect{}
	r := NewReader(c)
	for _, p := range parts {
		r.Write(bytes.Clone(p))
	}
	r.Close()
	return c.events
}

// reference is the dumb reader: the whole stream, cut into lines.
func reference(stream string) (out []event) {
	stream = strings.TrimPrefix(stream, "\ufeff")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	var data []string
	name := ""
	end := func() {
		if data != nil {
			if len(name) > MaxName {
				name = ""
			}
			out = append(out, event{name, strings.Join(data, "\n")})
		}
		data, name = nil, ""
	}
	for line := range strings.SplitSeq(stream, "\n") {
		if line == "" {
			end()
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data = append(data, value)
		case "event":
			name = value
		}
	}
	end()
	return out
}

var streams = []struct {
	in   string
	want []event
}{
	{"", nil},
	{"data: 1\n\ndata: 2\n\n", []event{{"", "1"}, {"", "2"}}},
	{"data: 1\r\n\r\ndata: 2\r\n\r\n", []event{{"", "1"}, {"", "2"}}},
	{"data: 1\r\rdata: 2\r\r", []event{{"", "1"}, {"", "2"}}},
	{"data: 1\r\n\ndata: 2\n\r\n", []event{{"", "1"}, {"", "2"}}},
	{"data:1\ndata:  2\n\n", []event{{"", "1\n 2"}}},
	{"data\n\ndata:\ndata\n\n", []event{{"", ""}, {"", "\n"}}},
	{"event: ping\n\n: comment\n\nid: 7\nretry: 3\n\n", nil},
	{"event: a\nevent:b\ndata: x\n\ndata: y\n\n", []event{{"b", "x"}, {"", "y"}}},
	{"data: x\nevent: late\n\n", []event{{"late", "x"}}},
	{"data: last\n", []event{{"", "last"}}},
	{"data: last", []event{{"", "last"}}},
	{"data", []event{{"", ""}}},
	{"dat", nil},
	{"data: a\n\nevent", []event{{"", "a"}}},
	{"\ufeffdata: 1\n\n\ufeffdata: 2\n\n", []event{{"", "1"}}},
	{"\ufeff\ufeffdata: 1\n\n", nil},
	{"\xef\xbbdata: 1\n\ndata: 2\n\n", []event{{"", "2"}}},
	{"\xef\n\xbb\xbfdata: 1\n\n", nil},
	{" data: 1\nDATA: 2\ndatas: 3\ndatadata: 4\n\n", nil},
	{"data: \xe4\xbd\xa0\xff\x00:\n\n", []event{{"", "你\xff\x00:"}}},
	{"event: " + strings.Repeat("n", MaxName) + "\ndata\n\n", []event{{strings.Repeat("n", MaxName), ""}}},
	{"event: " + strings.Repeat("n", MaxName+1) + "\ndata\n\n", []event{{"", ""}}},
	{"event: " + strings.Repeat("n", MaxName+1) + "\nevent: x\ndata\n\n", []event{{"x", ""}}},
}

func TestReader(t *testing.T) {
	for _, c := range streams {
		if got := reference(c.in); !reflect.DeepEqual(got, c.want) {
			t.Fatalf("%.60q: the reference gives %q, want %q", c.in, got, c.want)
		}
		in := []byte(c.in)
		for n := 0; n <= len(in); n++ {
			if got := read(in[:n], in[n:]); !reflect.DeepEqual(got, c.want) {
				t.Fatalf("%.60q cut at %d: %q, want %q", c.in, n, got, c.want)
			}
		}
		var single [][]byte
		for i := range in {
			single = append(single, in[i:i+1])
		}
		if got := read(single...); !reflect.DeepEqual(got, c.want) {
			t.Fatalf("%.60q in single bytes: %q, want %q", c.in, got, c.want)
		}
	}
}

func TestEventsComeAtOnce(t *testing.T) {
	c := &collect{}
	r := NewReader(c)
	r.Write([]byte("data: 1\r\n\r"))
	if len(c.events) != 1 {
		t.Fatal("the event waits for the byte behind its end")
	}
	r.Write([]byte("\ndata: 2\n\n"))
	if want := []event{{"", "1"}, {"", "2"}}; !reflect.DeepEqual(c.events, want) {
		t.Fatalf("%q", c.events)
	}
}

type count struct{ bytes, lines, events int }

func (c *count) Data(p []byte)   { c.bytes += len(p) }
func (c *count) EndLine()        { c.lines++ }
func (c *count) EndEvent([]byte) { c.events++ }

func TestNothingIsHeld(t *testing.T) {
	for _, start := range []string{"data: ", "event: ", "a field without end ", ": comment "} {
		c := &count{}
		r := NewReader(c)
		r.Write([]byte(start))
		part := bytes.Repeat([]byte("x"), 64<<10)
		if n := testing.AllocsPerRun(200, func() { r.Write(part) }); n != 0 {
			t.Errorf("%q: %v allocations for a part of a line", start, n)
		}
		r.Write([]byte("\n\ndata: y\n\n"))
		if c.events != 1 && start != "data: " || c.events != 2 && start == "data: " {
			t.Errorf("%q: %d events", start, c.events)
		}
	}
	c := &count{}
	r := NewReader(c)
	frame := []byte("event: x\r\ndata: {\"a\":1}\r\ndata: 2\r\n\r\n")
	if n := testing.AllocsPerRun(200, func() { r.Write(frame) }); n != 0 {
		t.Errorf("%v allocations for an event", n)
	}
}

func FuzzReader(f *testing.F) {
	for _, s := range streams {
		f.Add([]byte(s.in), uint16(3), uint16(9))
	}
	f.Fuzz(func(t *testing.T, in []byte, a, b uint16) {
		want := reference(string(in))
		i := int(a) % (len(in) + 1)
		j := i + int(b)%(len(in)-i+1)
		if got := read(in[:i], in[i:j], in[j:]); !reflect.DeepEqual(got, want) {
			t.Fatalf("cut at %d and %d:\n got %q\nwant %q", i, j, got, want)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	for _, size := range []int{200, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			frame := []byte("data: " + strings.Repeat("x", size) + "\n\n")
			r := NewReader(&count{})
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				r.Write(frame)
			}
		})
	}
}

// What was written up to Ended is whole events by the dumb reader's rule: what follows changes nothing of it.
func TestEndedIsBetweenEvents(t *testing.T) {
	for _, c := range streams {
		for n := 0; n <= len(c.in); n++ {
			for m := n; m <= len(c.in); m++ {
				col := &collect{}
				r := NewReader(col)
				r.Write([]byte(c.in[:n]))
				whole := r.Whole()
				r.Write([]byte(c.in[n:m]))
				end := r.Ended()
				if end < 0 {
					if whole {
						t.Fatalf("%.60q, %d to %d: it stood between events and does not say so", c.in, n, m)
					}
					continue
				}
				const more = "data: more\n\n"
				want := append(reference(c.in[:n+end]), event{"", "more"})
				if got := read([]byte(c.in[:n+end] + more)); !reflect.DeepEqual(got, want) {
					t.Fatalf("%.60q cut at %d: %q, want %q", c.in, n+end, got, want)
				}
				if r.Whole() != (end == m-n) {
					t.Fatalf("%.60q, %d to %d: Ended is %d", c.in, n, m, end)
				}
			}
		}
	}
}
