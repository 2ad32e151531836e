package closer

import (
	"strings"
	"testing"
)

func TestHTTP1(t *testing.T) {
	m := markOf(7)
	mark := ": " + string(m[:]) + "\n\n"
	announce, arm := armAt{announce: true}, armAt{mark: m, after: 2}
	end := Ended{Mark: m, Close: true}
	events := chunks("data: 1\n\n", "data: 2\n\n")
	final := chunks("data: last\n\n" + mark)
	for name, c := range map[string]struct {
		wire, want       string
		tells            []armAt
		ended            bool
		lost, unfollowed int
	}{
		"cut":                  {wire: chunkedHead + events + final, want: closedHead + events + final + lastChunk, tells: []armAt{announce, arm}, ended: true},
		"what comes after":     {wire: chunkedHead + final + chunks("x") + lastChunk + chunkedHead, want: closedHead + final + lastChunk, tells: []armAt{announce, arm}, ended: true},
		"the same end":         {wire: chunkedHead + final + lastChunk, want: closedHead + final + lastChunk, tells: []armAt{announce, arm}, ended: true},
		"mark over chunks":     {wire: chunkedHead + chunks("data: a"+mark[:9], mark[9:20], mark[20:35], mark[35:]), want: closedHead + chunks("data: a"+mark[:9], mark[9:20], mark[20:35], mark[35:]) + lastChunk, tells: []armAt{announce, arm}, ended: true},
		"bytes behind":         {wire: chunkedHead + chunks(mark, "data: [DONE]", "\n\n", "!"), want: closedHead + chunks(mark, "data: [DONE]", "\n\n") + lastChunk, tells: []armAt{announce, {mark: m, after: 16}}, ended: true},
		"a false start":        {wire: chunkedHead + chunks(string(m[:20]), string(m[:20]), string(m[20:31]), string(m[:3]), string(m[3:])+"\n\n"), want: closedHead + chunks(string(m[:20]), string(m[:20]), string(m[20:31]), string(m[:3]), string(m[3:])+"\n\n") + lastChunk, tells: []armAt{announce, arm}, ended: true},
		"not cut":              {wire: chunkedHead + events + lastChunk + chunkedHead + events + lastChunk, want: closedHead + events + lastChunk + chunkedHead + events + lastChunk, tells: []armAt{announce}},
		"ended before":         {wire: chunkedHead + events + lastChunk, want: closedHead + events + lastChunk, tells: []armAt{announce, arm}, lost: 1},
		"not announced":        {wire: chunkedHead + final + lastChunk, want: chunkedHead + final + lastChunk},
		"closing already":      {wire: "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + final, want: "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + final + lastChunk, tells: []armAt{announce, arm}, ended: true},
		"interim heads":        {wire: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + chunkedHead + final, want: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + closedHead + final + lastChunk, tells: []armAt{announce, arm}, ended: true},
		"content-length":       {wire: "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello" + chunkedHead, want: "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello" + chunkedHead, tells: []armAt{announce, arm}, lost: 1},
		"no content":           {wire: "HTTP/1.1 204 No Content\r\n\r\n" + chunkedHead, want: "HTTP/1.1 204 No Content\r\n\r\n" + chunkedHead, tells: []armAt{announce, arm}, lost: 1},
		"not modified":         {wire: "HTTP/1.1 304 Not Modified\r\ntransfer-encoding: chunked\r\n\r\n" + chunkedHead, want: "HTTP/1.1 304 Not Modified\r\ntransfer-encoding: chunked\r\n\r\n" + chunkedHead, tells: []armAt{announce, arm}, lost: 1},
		"an answer to HEAD":    {wire: chunkedHead + chunkedHead + final, want: closedHead + chunkedHead + final, tells: []armAt{announce}},
		"HEAD, then announced": {wire: chunkedHead + chunkedHead + final, want: closedHead + closedHead + final + lastChunk, tells: []armAt{announce, {at: len(chunkedHead), announce: true}, {at: 2 * len(chunkedHead), mark: m, after: 2}}, ended: true},
		"announced early":      {wire: chunkedHead + events + lastChunk + chunkedHead + final, want: closedHead + events + lastChunk + closedHead + final + lastChunk, tells: []armAt{announce, {at: len(chunkedHead), announce: true}, {at: len(chunkedHead + events + lastChunk), mark: m, after: 2}}, ended: true},
		"pipelined":            {wire: chunkedHead + events + lastChunk + "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi" + chunkedHead + final, want: closedHead + events + lastChunk + "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi" + closedHead + final + lastChunk, tells: []armAt{announce, {at: len(chunkedHead+events+lastChunk) + 40, announce: true}, {at: len(chunkedHead+events+lastChunk) + 40, mark: m, after: 2}}, ended: true},
		"trailers":             {wire: chunkedHead + events + "0\r\nx-a: b\r\nx-c: d\r\n\r\n" + chunkedHead, want: closedHead + events + "0\r\nx-a: b\r\nx-c: d\r\n\r\n" + chunkedHead, tells: []armAt{announce, arm}, lost: 1},
		"a chunk's extension":  {wire: chunkedHead + "1f;a=\"b\"\r\n" + strings.Repeat("x", 31) + "\r\n" + final, want: closedHead + "1f;a=\"b\"\r\n" + strings.Repeat("x", 31) + "\r\n" + final + lastChunk, tells: []armAt{announce, arm}, ended: true},
		"HTTP/1.0":             {wire: "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + final, want: "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + final, tells: []armAt{announce, arm}, lost: 1, unfollowed: 1},
		"another protocol":     {wire: "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n" + final, want: "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n" + final, tells: []armAt{announce, arm}, lost: 1, unfollowed: 1},
		"rubbish":              {wire: "\x16\x03\x01 TLS", want: "\x16\x03\x01 TLS", unfollowed: 1},
		"a chunk without size": {wire: chunkedHead + "\r\nabc", want: closedHead + "\r\nabc", tells: []armAt{announce, arm}, lost: 1, unfollowed: 1},
		"too large a chunk":    {wire: chunkedHead + "123456789\r\n", want: closedHead + "123456789\r\n", tells: []armAt{announce, arm}, lost: 1, unfollowed: 1},
		"a chunk too long":     {wire: chunkedHead + "1\r\nab\r\n", want: closedHead + "1\r\nab\r\n", tells: []armAt{announce, arm}, lost: 1, unfollowed: 1},
		"a long line":          {wire: chunkedHead + "1;" + strings.Repeat("a", maxSizeLine) + "\r\n", want: closedHead + "1;" + strings.Repeat("a", maxSizeLine) + "\r\n", tells: []armAt{announce, arm}, lost: 1, unfollowed: 1},
		"a broken head's end":  {wire: "HTTP/1.1 200 OK\r\n\rx", want: "HTTP/1.1 200 OK\r\n\rx", tells: []armAt{announce, arm}, lost: 1, unfollowed: 1},
		"long headers":         {wire: strings.Replace(chunkedHead, "\r\n\r\n", "\r\nx: "+strings.Repeat("connection: close", 1000)+"\r\n\r\n", 1) + final, want: strings.Replace(chunkedHead, "\r\n\r\n", "\r\nx: "+strings.Repeat("connection: close", 1000)+"\r\nconnection: close\r\n\r\n", 1) + final + lastChunk, tells: []armAt{announce, arm}, ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			var r result
			if len(c.wire) < 2000 {
				r = everySplit(t, []byte(c.wire), c.tells)
			} else {
				r = play([]byte(c.wire), c.tells, nil)
			}
			if string(r.wire) != c.want {
				t.Errorf("got\n%q\nwant\n%q", r.wire, c.want)
			}
			if ended := len(r.ended) == 1 && r.ended[0] == end; ended != c.ended || len(r.ended) > 1 {
				t.Errorf("ended %v", r.ended)
			}
			if len(r.lost) != c.lost || r.untracked != c.unfollowed || r.refused != 0 {
				t.Errorf("lost %d, untracked %d, refused %d", len(r.lost), r.untracked, r.refused)
			}
		})
	}
}

// Bytes of answers that may not be cut are not even looked at.
func TestAnswersThatAreNotAnnouncedAreNotRead(t *testing.T) {
	c := &Conn{}
	read := 0
	pass := func(s string) {
		c.Pass(len(s), func(from, to int) []byte { read += to - from; return []byte(s[from:to]) })
	}
	pass(chunkedHead) // the first bytes tell the protocol
	read = 0
	for range 10 {
		pass(chunks("data: 1\n\n"))
	}
	pass(lastChunk + chunkedHead)
	if read != 0 {
		t.Errorf("%d bytes were read", read)
	}
}

func TestWhatCanBeCut(t *testing.T) {
	c := &Conn{}
	pass := func(s string) {
		c.Pass(len(s), func(from, to int) []byte { return []byte(s[from:to]) })
	}
	can := func(when string, want bool) {
		t.Helper()
		if got := c.CanCut(); got != want {
			t.Errorf("%s: %v", when, got)
		}
	}
	can("nothing announced", false)
	if c.Arm(markOf(1), 0) {
		t.Error("armed without an answer")
	}
	c.Announce()
	can("announced", true)
	pass("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc")
	can("of known length", false)
	c.Announce()
	pass(chunkedHead)
	can("chunked", true)
	if !c.Arm(markOf(1), 0) || c.Arm(markOf(2), 0) {
		t.Error("one cut, and one only, is possible")
	}
	c.Disarm(markOf(1))
	can("disarmed", true)
	c.Arm(markOf(3), 0)
	m := markOf(3)
	pass(chunks(string(m[:])))
	can("ended", false)
	if c.Announce() {
		t.Error("announced on a connection that ends")
	}
}

// Bytes that can't be read pass, and the connection is given up.
func TestUnreadableBytes(t *testing.T) {
	c := &Conn{}
	c.Announce()
	c.Arm(markOf(1), 0)
	out := c.Pass(10, func(int, int) []byte { return nil })
	if len(out.Edits) != 0 || len(out.Lost) != 1 || !out.Untracked || c.CanCut() || c.Announce() {
		t.Errorf("%+v", out)
	}
}
