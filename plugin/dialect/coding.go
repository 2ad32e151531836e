package dialect

import (
	"strconv"
	"strings"

	"github.com/emmer-proxy/emmer/plugin/inflate"
)

// Bodies in a content coding are decoded as they are read: what scanners and meters see is the body
// behind it. What is forwarded is another matter, and not known here.

// Coding is the one coding of a body by its content-encoding, 0 if it has none. false: it can't be read
// here; several codings one over another count as that, since each may make a thousand bytes of one.
func Coding(contentEncoding string) (inflate.Format, bool) {
	var f inflate.Format
	for name := range strings.SplitSeq(contentEncoding, ",") {
		name = strings.Trim(name, " \t")
		if name == "" || strings.EqualFold(name, "identity") {
			continue
		}
		next, ok := inflate.ForCoding(name)
		if !ok || f != 0 {
			return 0, false
		}
		f = next
	}
	return f, true
}

// AcceptsGzip says whether who sent this accept-encoding takes an answer in gzip (RFC 9110, section
// 12.5.3). What is malformed is taken for no.
func AcceptsGzip(acceptEncoding string) bool {
	named, star := false, false
	accepts, any := true, false
	for item := range strings.SplitSeq(acceptEncoding, ",") {
		name, rest, _ := strings.Cut(item, ";")
		switch name = strings.Trim(name, " \t"); {
		case strings.EqualFold(name, "gzip"), strings.EqualFold(name, "x-gzip"):
			named = true
			accepts = accepts && weighs(rest)
		case name == "*":
			star = true
			any = weighs(rest)
		}
	}
	if named {
		return accepts
	}
	return star && any
}

// weighs says whether the parameters of an item give it a weight above 0.
func weighs(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		name, q, ok := strings.Cut(p, "=")
		if !ok || !strings.EqualFold(strings.Trim(name, " \t"), "q") {
			continue
		}
		whole, thousandths, _ := strings.Cut(strings.Trim(q, " \t"), ".")
		if whole != "0" && whole != "1" || strings.Trim(thousandths, "0123456789") != "" || len(thousandths) > 3 {
			return false
		}
		return whole == "1" || strings.Trim(thousandths, "0") != ""
	}
	return true
}

// Signs says whether an Authorization signs this header too, as AWS's does (SigV4): an edit would break
// the signature.
func Signs(authorization, header string) bool {
	if !strings.HasPrefix(authorization, "AWS4-") {
		return false
	}
	_, list, _ := strings.Cut(authorization, "SignedHeaders=")
	list, _, _ = strings.Cut(list, ",")
	for name := range strings.SplitSeq(list, ";") {
		if strings.EqualFold(strings.TrimSpace(name), header) {
			return true
		}
	}
	return false
}

// EventStream says whether a content type is that of server-sent events.
func EventStream(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.Trim(kind, " \t"), "text/event-stream")
}

// JSON says whether a content type is that of one JSON document.
func JSON(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.ToLower(strings.Trim(kind, " \t"))
	return kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
}

// NewScanner makes d's scanner of a body as it came.
func NewScanner(d Dialect, h RequestHead, maxDepth int, sink Sink) Scanner {
	inner := d.NewScanner(h, maxDepth, sink)
	if h.Coding == 0 {
		return inner
	}
	s := &codedScanner{inner: inner, most: h.Inflate}
	s.body = inflate.NewReader(h.Coding, inflate.Limits{Most: h.Inflate}, s)
	return s
}

// codedScanner reads a request body in a content coding.
type codedScanner struct {
	inner Scanner
	body  *inflate.Reader
	most  int64
	fault *Fault
}

func (s *codedScanner) Inflated(p []byte) bool {
	s.fault = s.inner.Write(p)
	return s.fault == nil
}

func (s *codedScanner) Write(p []byte) *Fault {
	if s.fault == nil {
		s.failed(s.body.Write(p))
	}
	return s.fault
}

func (s *codedScanner) Close() (Facts, *Fault) {
	if s.fault == nil {
		s.failed(s.body.Close())
	}
	if s.fault != nil {
		return Facts{}, s.fault
	}
	facts, fault := s.inner.Close()
	facts.Decoded = s.body.Out()
	return facts, fault
}

func (s *codedScanner) failed(err error) {
	switch {
	case err == nil || s.fault != nil:
	case err == inflate.TooLarge:
		// Policy for what would not fit when decoded: refused, and not a byte more is decoded.
		s.fault = &Fault{Status: 413, Code: "request_too_large",
			Message: "The request body decodes to more than the " + strconv.FormatInt(s.most, 10) + " bytes that are accepted here. Send a shorter one."}
	default:
		s.fault = &Fault{Status: 400, Code: "invalid_content_encoding",
			Message: "The request body is not what its content-encoding says: " + err.Error() + ". Send it whole, or without a content-encoding."}
	}
}

// Bounds of what an answer decodes to. A stream of a chat may be long, but repeats itself less than
// this; what does more is a waste of time to read. It is looked at every 32 KiB.
const (
	answerMost    = 16 << 20
	answerPerByte = 64
)

// NewMeter makes d's meter of an answer as it came.
func NewMeter(d Dialect, h ResponseHead, sink Sink) Meter {
	coding, ok := Coding(h.ContentEncoding)
	if !ok {
		return d.NewMeter(h, sink) // which can't read it, and says so
	}
	h.ContentEncoding = ""
	inner := d.NewMeter(h, sink)
	if coding == 0 {
		return inner
	}
	m := &codedMeter{Meter: inner}
	m.body = inflate.NewReader(coding, inflate.Limits{Most: answerMost, PerByte: answerPerByte}, m)
	return m
}

// codedMeter reads an answer in a content coding. Policy for one that can't be decoded to its end,
// or that decodes to too much: the rest is opaque, and what was seen before it counts. One that is cut
// off is no such case: nothing came that was not read.
type codedMeter struct {
	Meter
	body   *inflate.Reader
	unread bool
}

func (m *codedMeter) Inflated(p []byte) bool {
	m.Meter.Write(p)
	return !m.Meter.Opaque()
}

func (m *codedMeter) Write(p []byte) {
	if !m.unread {
		m.unread = m.body.Write(p) != nil
	}
}

func (m *codedMeter) Usage() (Usage, Trust) {
	u, trust := m.Meter.Usage()
	if trust == WholeUsage && m.Opaque() {
		trust = InputUsage // a running figure, and more followed than it knows of
	}
	return u, trust
}

func (m *codedMeter) Opaque() bool {
	return m.Meter.Opaque() || m.unread && !m.Meter.Finished()
}
