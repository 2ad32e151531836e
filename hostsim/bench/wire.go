// Package bench measures what a filter adds to a gateway: latency and throughput of a bare Envoy, of
// the least that a filter of an architecture can do, and of the filter itself, side by side in one
// run on one machine. It also weighs a module: its bytes, and the memory of its VMs.
//
// It knows nothing of what a filter decides; modules and their configurations are arguments. Its
// caller gives it programs and modules that are already built.
package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// maxHead caps the start line and the headers of a message; the peers here are our own.
const maxHead = 64 << 10

var errHead = errors.New("malformed head")

// head is the part of a message's head that says where it ends.
type head struct {
	start []byte // the start line; valid until the next read
	size  int64  // of the body; -1 = chunked
	close bool
}

// readMessage reads one HTTP/1.1 message to its end and drops the body, without allocating: the
// load generator shares its cores with what it measures. A message without content-length and
// without chunks has no body.
func readMessage(r *bufio.Reader, line *[]byte) (h head, body int64, err error) {
	if h, err = readHead(r, line); err != nil {
		return h, 0, err
	}
	if h.size >= 0 {
		return h, h.size, drop(r, h.size)
	}
	for {
		text, err := r.ReadSlice('\n')
		if err != nil {
			return h, body, err
		}
		text = bytes.TrimRight(text, "\r\n")
		if i := bytes.IndexByte(text, ';'); i >= 0 {
			text = text[:i]
		}
		size, err := strconv.ParseInt(string(text), 16, 63)
		if err != nil || size < 0 {
			return h, body, fmt.Errorf("chunk size %q", text)
		}
		body += size
		if size == 0 {
			return h, body, dropTrailers(r)
		}
		if err := drop(r, size+2); err != nil {
			return h, body, err
		}
	}
}

func readHead(r *bufio.Reader, line *[]byte) (h head, err error) {
	text, err := r.ReadSlice('\n')
	if err != nil {
		return h, err
	}
	*line = append((*line)[:0], bytes.TrimRight(text, "\r\n")...)
	h.start = *line
	for read := len(text); ; {
		text, err := r.ReadSlice('\n')
		if err != nil {
			return h, unexpected(err)
		}
		if read += len(text); read > maxHead {
			return h, errHead
		}
		text = bytes.TrimRight(text, "\r\n")
		if len(text) == 0 {
			return h, nil
		}
		i := bytes.IndexByte(text, ':')
		if i <= 0 {
			return h, errHead
		}
		name, value := text[:i], bytes.TrimSpace(text[i+1:])
		switch {
		case equalFold(name, "content-length"):
			if h.size, err = strconv.ParseInt(string(value), 10, 63); err != nil || h.size < 0 {
				return h, errHead
			}
		case equalFold(name, "transfer-encoding") && equalFold(value, "chunked"):
			h.size = -1
		case equalFold(name, "connection") && equalFold(value, "close"):
			h.close = true
		}
	}
}

func equalFold(b []byte, s string) bool { return len(b) == len(s) && bytes.EqualFold(b, []byte(s)) }

func drop(r *bufio.Reader, n int64) error {
	for n > 0 {
		k, err := r.Discard(int(min(n, 1<<20)))
		n -= int64(k)
		if err != nil {
			return unexpected(err)
		}
	}
	return nil
}

func dropTrailers(r *bufio.Reader) error {
	for {
		text, err := r.ReadSlice('\n')
		if err != nil {
			return unexpected(err)
		}
		if len(bytes.TrimRight(text, "\r\n")) == 0 {
			return nil
		}
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
