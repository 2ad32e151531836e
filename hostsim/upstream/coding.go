package upstream

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
)

// coder puts a body in a content coding, a piece at a time.
type coder interface {
	io.WriteCloser
	Flush() error
}

func newCoder(coding string, w io.Writer) coder {
	if coding == "gzip" {
		return gzip.NewWriter(w)
	}
	return zlib.NewWriter(w)
}

// Encode puts a body in a content coding: gzip or deflate.
func Encode(coding string, body []byte) []byte {
	var b bytes.Buffer
	c := newCoder(coding, &b)
	// Writing to memory does not fail.
	_, _ = c.Write(body)
	_ = c.Close()
	return b.Bytes()
}

// encode gives the next bytes of an answer in its coding; end ends it.
func (p *player) encode(b []byte, end bool) []byte {
	_, _ = p.coder.Write(b)
	if end {
		_ = p.coder.Close()
	} else {
		_ = p.coder.Flush()
	}
	out := bytes.Clone(p.coded.Bytes())
	p.coded.Reset()
	return out
}
