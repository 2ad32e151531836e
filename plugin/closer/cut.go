package closer

import "bytes"

type cutState uint8

const (
	armed  cutState = iota // its mark has not passed
	ending                 // its mark has passed, its last bytes or their frame not yet
	over                   // its end is on the wire; the host may still write about the stream
)

// cut is one answer that is being ended.
type cut struct {
	mark   Mark
	after  int // bytes of the answer behind its mark that have not passed
	state  cutState
	stream uint32 // known once the mark has passed; 0 on HTTP/1.1
}

// tail is how an answer's bytes ended, where that may be the beginning of a mark.
type tail struct {
	stream uint32
	n      int
	bytes  [MarkSize - 1]byte
}

// onStream finds the cut of a stream whose mark has passed.
func (c *Conn) onStream(stream uint32) int {
	for i := range c.cuts {
		if c.cuts[i].state != armed && c.cuts[i].stream == stream {
			return i
		}
	}
	return -1
}

func (c *Conn) forget(i int) {
	last := len(c.cuts) - 1
	c.cuts[i] = c.cuts[last]
	c.cuts = c.cuts[:last]
	if last == 0 {
		c.cuts, c.tails = nil, nil
	}
}

// body takes bytes of an answer's body and says whether its final bytes ended in them.
func (c *Conn) body(stream uint32, p []byte) (final bool) {
	if len(c.cuts) == 0 || len(p) == 0 {
		return false
	}
	if i := c.onStream(stream); i >= 0 {
		return c.count(i, len(p))
	}
	i, end := c.find(stream, p)
	if i < 0 {
		return false
	}
	c.cuts[i].state, c.cuts[i].stream = ending, stream
	c.setTail(stream, nil)
	return c.count(i, len(p)-end)
}

// count takes n bytes behind a mark.
func (c *Conn) count(i, n int) bool {
	k := &c.cuts[i]
	k.after -= min(n, k.after)
	return k.state == ending && k.after == 0
}

// find looks for an armed mark that ends in p, and says where behind it is. Else it keeps how p ends.
func (c *Conn) find(stream uint32, p []byte) (i, end int) {
	joint := c.getTail(stream)
	before := len(joint)
	joint = append(joint, p[:min(len(p), MarkSize-1)]...)
	for i := range c.cuts {
		k := &c.cuts[i]
		if k.state != armed {
			continue
		}
		if at := bytes.Index(joint, k.mark[:]); at >= 0 {
			return i, at + MarkSize - before
		}
		if at := bytes.Index(p, k.mark[:]); at >= 0 {
			return i, at + MarkSize
		}
	}
	last := p
	if len(p) < MarkSize {
		last = joint
	}
	c.setTail(stream, c.beginning(last))
	return -1, 0
}

// beginning returns the longest end of b that an armed mark begins with.
func (c *Conn) beginning(b []byte) []byte {
	for n := min(len(b), MarkSize-1); n > 0; n-- {
		end := b[len(b)-n:]
		for i := range c.cuts {
			if c.cuts[i].state == armed && c.cuts[i].mark[0] == end[0] && bytes.HasPrefix(c.cuts[i].mark[:], end) {
				return end
			}
		}
	}
	return nil
}

func (c *Conn) getTail(stream uint32) []byte {
	for i := range c.tails {
		if c.tails[i].stream == stream {
			return append(make([]byte, 0, 2*MarkSize), c.tails[i].bytes[:c.tails[i].n]...)
		}
	}
	return make([]byte, 0, MarkSize)
}

// setTail keeps or, with no bytes, forgets. A stream too many drives out the oldest: the marks are
// random, so only one connection with hundreds of streams comes here, and what is lost is a cut,
// which its exchange then ends in another way.
func (c *Conn) setTail(stream uint32, b []byte) {
	at := -1
	for i := range c.tails {
		if c.tails[i].stream == stream {
			at = i
		}
	}
	if len(b) == 0 {
		if at >= 0 {
			c.tails = append(c.tails[:at], c.tails[at+1:]...)
		}
		return
	}
	if at < 0 {
		if len(c.tails) == MaxCuts {
			c.tails = append(c.tails[:0], c.tails[1:]...)
		}
		c.tails = append(c.tails, tail{stream: stream})
		at = len(c.tails) - 1
	}
	c.tails[at].n = copy(c.tails[at].bytes[:], b)
}
