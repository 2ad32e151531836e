package bpe

// lookahead is how many bytes from a character on decide about it: all of the character, or the
// apostrophe and the two letters of a contraction, or of one letter of two bytes.
const lookahead = 4

// scan goes on in the open piece and gives its end, or -1 if that needs more text than there is; if
// final, then the text ends here, and -1 says that nothing is left of it. The first part of a piece
// that grows very long is counted on the way, and start moves on.
func (w *workspace) scan(e *Encoding, final bool) int {
	limit := w.n
	if !final {
		limit -= lookahead
	}
	i, state := w.pos, w.state
	steps := e.steps
	for {
		class, width := uint8(end), 0
		switch {
		case i < limit:
			class, width = byteClass[byteAt(&w.text, i)], 1
			if class == far {
				// Most that is not ASCII has two bytes or three: what decode would do, without the call.
				b0, b1, b2 := uint32(byteAt(&w.text, i)), uint32(byteAt(&w.text, i+1)), uint32(byteAt(&w.text, i+2))
				r := b0&0x0f<<12 | b1&0x3f<<6 | b2&0x3f
				switch {
				case b0&0xf0 == 0xe0 && b1&0xc0 == 0x80 && b2&0xc0 == 0x80 && notThree>>(r>>11&31)&1 == 0:
					class, width = classOf(r), 3
				case b0 >= 0xc2 && b0 < 0xe0 && b1&0xc0 == 0x80:
					class, width = classOf(b0&0x1f<<6|b1&0x3f), 2
				default:
					class, width = decode(&w.text, i)
				}
			}
		case !final || state == atStart:
			w.pos, w.state = i, state
			return -1
		}
		step := steps[state&15][class&15]
		if step >= setMark {
			switch step & 0xf0 {
			case setMark:
				w.mark = i + width
			case setLast:
				w.last = i
			case tryQuote:
				if k := contraction(&w.text, i); k > 0 {
					return w.close(i + k)
				}
			case endHere:
				return w.close(i)
			case endThird:
				return w.close(i + width)
			case endUpper:
				if w.mark >= 0 && w.mark < i {
					return w.close(w.mark)
				}
				return w.close(i + contraction(&w.text, i))
			case endWord:
				return w.close(i + contraction(&w.text, i))
			case endWhite:
				if w.mark >= 0 {
					return w.close(w.mark)
				}
				return w.close(w.last)
			case endText:
				if w.mark >= 0 {
					return w.close(w.mark)
				}
				return w.close(i)
			}
		}
		state = step & 15
		i += width
		if i-w.start > mergeCap {
			w.shorten(e, state)
		}
	}
}

// shorten counts the first part of an open piece of more than mergeCap bytes.
//
// If a mark lies so far back that a window could reach over it, the piece is counted as if it ended
// there, and goes on behind. For white space that is right whatever follows: no token goes on behind
// a line end for as many bytes as the scanner has passed (the generator checks it). Behind letters
// without case only capitals have passed. If a small letter should still follow them, then all was
// one piece, and a token over the mark was missed; o200k_base has four of them (such as 亚洲AV).
func (w *workspace) shorten(e *Encoding, state uint8) {
	if (state == inUpper || state == inWhite) && w.mark >= 0 && w.mark < w.start+mergeCap-tailCap+maxToken {
		w.tokens += w.countLong(e, w.start, w.mark-w.start)
		w.start, w.mark = w.mark, -1
		return
	}
	bytes, tokens := w.countWindow(e, w.start)
	w.start += bytes
	w.tokens += tokens
}

// close ends the piece that the scanner was in; the next starts at its end.
func (w *workspace) close(end int) int {
	w.piece = piece{pos: end, mark: -1}
	return end
}

// contraction is the length of the 's 't 'm 'd 're 've 'll at text[i], in any case, or 0. U+017F is
// a small s, too: the rules ignore case as Unicode does.
func contraction(text *[textRoom]byte, i int) int {
	if byteAt(text, i) != '\'' {
		return 0
	}
	a, b := byteAt(text, i+1), byteAt(text, i+2)
	switch a | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if b|0x20 == 'e' {
			return 3
		}
	case 'l':
		if b|0x20 == 'l' {
			return 3
		}
	case 0xc5 | 0x20:
		if a == 0xc5 && b == 0xbf {
			return 3
		}
	}
	return 0
}
