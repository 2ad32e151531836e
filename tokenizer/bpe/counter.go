package bpe

// openRoom holds a piece that is still open: at most mergeCap bytes that the scanner has passed, the
// character that made it longer, and those that it has not looked at yet. A write that fits beside
// it is only copied, so small writes cost no more than large ones.
const openRoom = 576

// Counter counts texts one after the other. It holds no more of a text than the piece that is still
// open; many may be in use at a time. Reset it before the first text.
type Counter struct {
	enc    *Encoding
	tokens int
	piece  piece // positions are those of open
	n      int   // bytes of open
	open   [openRoom]byte
}

// Reset drops the text so far; the next is counted with enc.
func (c *Counter) Reset(enc *Encoding) {
	c.enc, c.tokens, c.n, c.piece = enc, 0, 0, piece{mark: -1}
}

// Write takes the next bytes of the text. It does not keep p.
func (c *Counter) Write(p []byte) {
	if len(p) <= openRoom-c.n {
		c.n += copy(c.open[c.n:], p)
		return
	}
	c.count(p)
}

// count counts all of the text but the piece that stays open.
func (c *Counter) count(p []byte) {
	w := takeWorkspace()
	c.load(w)
	for len(p) > 0 {
		k := copy(w.text[w.n:textCap], p)
		p = p[k:]
		w.n += k
		w.count(c.enc, false)
		w.keepOpen()
	}
	c.tokens += w.tokens
	c.piece = w.piece
	c.n = copy(c.open[:], w.text[:w.n])
	w.putBack()
}

// Finish ends the text and gives its number of tokens. The counter is ready for the next text.
func (c *Counter) Finish() int {
	if c.n > 0 {
		w := takeWorkspace()
		c.load(w)
		w.count(c.enc, true)
		c.tokens += w.tokens
		w.putBack()
	}
	n := c.tokens
	c.Reset(c.enc)
	return n
}

func (c *Counter) load(w *workspace) {
	w.piece, w.start, w.tokens = c.piece, 0, 0
	w.n = copy(w.text[:], c.open[:c.n])
}

// keepOpen moves the open piece to the front of the buffer.
func (w *workspace) keepOpen() {
	copy(w.text[:], w.text[w.start:w.n])
	w.n -= w.start
	w.pos -= w.start
	w.last -= w.start
	if w.mark >= 0 {
		w.mark -= w.start
	}
	w.start = 0
}
