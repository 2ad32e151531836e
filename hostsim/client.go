package hostsim

import "strconv"

// clientExit is the client's end of a response.
type clientExit struct {
	s     *stream
	out   *outbox
	flow  *gate
	began bool // headers are out

	declared int64 // content-length, -1 if none
	written  int64
	bodyless bool
	distrust bool // what follows on an HTTP/1.1 connection may be no request
	closing  bool // the head said connection: close; of the writing goroutine
}

// hopByHop are the headers that never cross the host.
var hopByHop = map[string]bool{"connection": true, "keep-alive": true, "proxy-connection": true, "transfer-encoding": true, "upgrade": true, "trailer": true}

func (c *clientExit) headers(head *fields, end bool) {
	s := c.s
	c.began = true
	s.code, _ = strconv.Atoi(head.value(":status"))
	sent := &fields{}
	for _, h := range head.list {
		if !hopByHop[h[0]] {
			sent.list = append(sent.list, h)
		}
	}
	c.declared = -1
	if v, ok := head.get("content-length"); ok {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && n >= 0 {
			c.declared = n
		}
	}
	req := s.paths[request]
	c.bodyless = req.head.value(":method") == "HEAD" || s.code == 204 || s.code == 304
	item := outItem{kind: outHeaders, head: sent, end: end, close: s.http1 && (!req.complete || c.distrust)}
	if !end {
		c.out.push(item)
		return
	}
	if c.declared > 0 && !c.bodyless {
		s.w.host.violate("response ends with %d of the %d bytes of its content-length", 0, c.declared)
		s.answered = true
		s.end(item, outItem{kind: outReset})
		return
	}
	s.answered = true
	s.end(item, outItem{kind: outEnd})
}

func (c *clientExit) data(d *body, end bool) {
	s := c.s
	b := d.b
	d.b = nil
	if c.bodyless {
		b = nil
	}
	if c.declared >= 0 && !c.bodyless && c.written+int64(len(b)) > c.declared {
		s.w.host.violate("response body of %d bytes under a content-length of %d", c.written+int64(len(b)), c.declared)
		b = b[:c.declared-c.written]
		end = true
	}
	c.written += int64(len(b))
	s.sent += int64(len(b))
	var items []outItem
	if len(b) > 0 {
		c.flow.add(len(b))
		items = append(items, outItem{kind: outData, data: b})
	}
	if !end {
		for _, i := range items {
			c.out.push(i)
		}
		return
	}
	last := outItem{kind: outEnd}
	if c.declared > c.written && !c.bodyless {
		s.w.host.violate("response ends with %d of the %d bytes of its content-length", c.written, c.declared)
		last.kind = outReset
	}
	s.answered = true
	s.end(append(items, last)...)
}

func (c *clientExit) trailers(tail *fields) {
	s := c.s
	s.answered = true
	s.end(outItem{kind: outTrailers, head: tail}, outItem{kind: outEnd})
}
