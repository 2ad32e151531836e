package bpe

const (
	// textCap is how much text the work buffer takes.
	textCap = 8192
	// padding follows the text in the buffer: bytes that are in no UTF-8 text. Whoever looks past
	// the end sees them, so the inner loops need not ask how much text is left. No look reaches
	// further: the longest is a word's two loads of eight bytes.
	padding  = 64
	padBytes = ^uint64(0)
	textRoom = textCap + padding
)

// workspace is what counting needs for the length of one call, of any text in any encoding.
type workspace struct {
	piece      // the open piece; positions are those of text
	start  int // where the open piece starts
	n      int // bytes of text
	tokens int // counted by this call

	text  [textRoom]byte
	words wordCache
	terms termCache
	runs  runCache
	small smallMerge
	tree  treeMerge
}

// piece is how far the scanner is in a piece that is still open.
type piece struct {
	pos   int // the next character
	mark  int // where the piece ends if no later character moves it, or -1
	last  int // the last character of a run of white space
	state uint8
}

// pad puts the padding behind the text.
func (w *workspace) pad() {
	p := w.text[w.n : w.n+padding]
	for i := range p {
		p[i] = 0xff
	}
}
