package bridge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// Caps of one request.
const (
	maxArgs     = 4096 // arguments of one command
	maxCommands = 256  // commands of one pipeline
)

var errTooLarge = errors.New("too large")

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readBody reads at most limit bytes; one more is errTooLarge.
func readBody(r *http.Request, limit int) (string, error) {
	buf := buffers.Get().(*bytes.Buffer)
	defer func() {
		if buf.Cap() <= 64<<10 {
			buf.Reset()
			buffers.Put(buf)
		}
	}()
	n, err := buf.ReadFrom(io.LimitReader(r.Body, int64(limit)+1))
	if err != nil {
		return "", err
	}
	if n > int64(limit) {
		return "", errTooLarge
	}
	return buf.String(), nil
}

// parser reads what the dialect allows of JSON: an array of strings and numbers, or an array of
// such arrays. Nesting beyond that is refused at its first bracket, so depth needs no counter and
// no recursion. Numbers keep their text, so integers of any size stay exact. Bytes that are not
// UTF-8, and halves of surrogate pairs, are refused rather than replaced: a replaced byte would be
// another key.
type parser struct {
	s  string
	at int
}

type syntaxError struct {
	at   int
	what string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("byte %d: %s", e.at, e.what) }

func (p *parser) fail(what string) error { return &syntaxError{p.at, what} }

// parseCommand reads ["NAME", arg...].
func parseCommand(s string) ([]any, error) {
	p := parser{s: s}
	args, err := p.command()
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return nil, err
	}
	return args, nil
}

// parsePipeline reads [["NAME", arg...], ...].
func parsePipeline(s string) ([][]any, error) {
	p := parser{s: s}
	var all [][]any
	err := p.array(maxCommands, "commands", func() error {
		args, err := p.command()
		all = append(all, args)
		return err
	})
	if err == nil && len(all) == 0 {
		err = p.fail("no command")
	}
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

func (p *parser) command() ([]any, error) {
	p.space()
	args := make([]any, 0, 16)
	err := p.array(maxArgs, "arguments", func() error {
		p.space()
		v, err := p.scalar(len(args) == 0)
		args = append(args, v)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		return nil, p.fail("an empty command")
	}
	return args, nil
}

// array reads brackets and commas, and calls each where an element starts.
func (p *parser) array(most int, what string, each func() error) error {
	p.space()
	if !p.take('[') {
		return p.fail("expected an array")
	}
	p.space()
	if p.take(']') {
		return nil
	}
	for n := 1; ; n++ {
		if n > most {
			return p.fail(fmt.Sprintf("more than %d %s", most, what))
		}
		if err := each(); err != nil {
			return err
		}
		p.space()
		if p.take(']') {
			return nil
		}
		if !p.take(',') {
			return p.fail("expected a comma or the end of the array")
		}
	}
}

func (p *parser) end() error {
	p.space()
	if p.at < len(p.s) {
		return p.fail("something follows the array")
	}
	return nil
}

func (p *parser) space() {
	for p.at < len(p.s) {
		switch p.s[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) take(c byte) bool {
	if p.at < len(p.s) && p.s[p.at] == c {
		p.at++
		return true
	}
	return false
}

// scalar reads a string, or a number as its own text.
func (p *parser) scalar(name bool) (string, error) {
	if p.at >= len(p.s) {
		return "", p.fail("the array does not end")
	}
	switch c := p.s[p.at]; {
	case c == '"':
		return p.text()
	case name:
		return "", p.fail("the command's name must be a string")
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	default:
		return "", p.fail("an argument must be a string or a number")
	}
}

func (p *parser) number() (string, error) {
	start := p.at
	p.take('-')
	switch {
	case p.take('0'):
	case p.digits() == 0:
		return "", p.fail("expected a digit")
	}
	if p.take('.') && p.digits() == 0 {
		return "", p.fail("expected a digit")
	}
	if p.take('e') || p.take('E') {
		if !p.take('+') {
			p.take('-')
		}
		if p.digits() == 0 {
			return "", p.fail("expected a digit")
		}
	}
	return p.s[start:p.at], nil
}

func (p *parser) digits() int {
	start := p.at
	for p.at < len(p.s) && '0' <= p.s[p.at] && p.s[p.at] <= '9' {
		p.at++
	}
	return p.at - start
}

// text reads a string. Without escapes it is a slice of the body.
func (p *parser) text() (string, error) {
	p.at++
	start, ascii := p.at, true
	for ; p.at < len(p.s); p.at++ {
		switch c := p.s[p.at]; {
		case c == '"':
			v := p.s[start:p.at]
			if !ascii && !utf8.ValidString(v) {
				return "", p.fail("a string is not UTF-8")
			}
			p.at++
			return v, nil
		case c == '\\':
			return p.escaped(start)
		case c < ' ':
			return "", p.fail("a control character in a string")
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", p.fail("a string does not end")
}

// escaped goes on with a string that has escapes, at the first of them.
func (p *parser) escaped(start int) (string, error) {
	out := append(make([]byte, 0, 2*(p.at-start)+32), p.s[start:p.at]...)
	for p.at < len(p.s) {
		c := p.s[p.at]
		switch {
		case c == '"':
			if !utf8.Valid(out) {
				return "", p.fail("a string is not UTF-8")
			}
			p.at++
			return string(out), nil
		case c < ' ':
			return "", p.fail("a control character in a string")
		case c != '\\':
			out = append(out, c)
			p.at++
		default:
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		}
	}
	return "", p.fail("a string does not end")
}

func (p *parser) escape() (rune, error) {
	if p.at+1 >= len(p.s) {
		return 0, p.fail("an escape does not end")
	}
	c := p.s[p.at+1]
	if c == 'u' {
		return p.unicode()
	}
	const short, meant = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	for i := range len(short) {
		if short[i] == c {
			p.at += 2
			return rune(meant[i]), nil
		}
	}
	return 0, p.fail("no such escape")
}

func (p *parser) unicode() (rune, error) {
	r, ok := p.hex()
	if !ok {
		return 0, p.fail("an escape needs four hexadecimal digits")
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	low, ok := p.hex()
	if ok {
		r = utf16.DecodeRune(r, low)
	}
	if !ok || r == utf8.RuneError {
		return 0, p.fail("half of a surrogate pair")
	}
	return r, nil
}

func (p *parser) hex() (rune, bool) {
	if len(p.s)-p.at < 6 || p.s[p.at] != '\\' || p.s[p.at+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(p.s[p.at+2 : p.at+6]) {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	p.at += 6
	return r, true
}
