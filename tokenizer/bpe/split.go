package bpe

import "math/bits"

const (
	// fastMargin is how far from the end of a part of a text the fast path stops, as it asks no more
	// whether there is text left: a word with its contraction is shorter.
	fastMargin = 64
	// fastWord is the longest run of letters that the fast path takes.
	fastWord = 30
)

// count counts the pieces of the text, all if final, else all but the one still open, which starts at
// w.start. Pieces of ASCII are found here, all others, and those at the end, by the scanner.
//
// The fast path decides only by what it has seen, so where it stops, at a byte beyond ASCII (and the
// padding is one), the scanner begins the piece again. It is one function with jumps, since on wasm
// Go (1.26) passes arguments and results of every call through memory, and most pieces are so short
// that calls would be most of their cost.
func (w *workspace) count(e *Encoding, final bool) {
	w.pad()
	text, tag := &w.text, e.tag<<wordTagShift
	fast := w.n
	if !final {
		fast -= fastMargin
	}
	tokens := 0
	p, q := w.start, 0
	limit := fast
	if w.state != atStart {
		limit = -1 // the scanner has begun this piece
	}
	for ; ; limit = fast {
		if p < limit {
			q = p
			first := byteAt(text, p)
			k := fastClass[first]
			if k == space || k == other {
				q++
				k = fastClass[byteAt(text, q)]
				switch k {
				case other:
					if first != ' ' && fastClass[first] == space {
						goto count
					}
					goto punctuation
				case number:
					if first == '\'' && !e.byCase {
						goto slow
					}
					goto count
				case space:
					if fastClass[first] == other {
						goto count
					}
					goto white
				case line:
					if fastClass[first] == other {
						goto tail
					}
					goto white
				case far:
					goto slow
				}
				if first == '\'' && !e.byCase {
					goto slow // a contraction, perhaps
				}
			}
			switch k {
			case lower, upper:
				if e.byCase {
					for k == upper {
						q++
						k = fastClass[byteAt(text, q)]
						if q-p > fastWord {
							goto slow
						}
					}
					l := lowerRun(load64(text, q))
					q += l
					if l == 8 {
						l = lowerRun(load64(text, q))
						q += l
						if l == 8 {
							goto slow
						}
					}
					b := byteAt(text, q)
					if b >= 0x80 {
						goto slow
					}
					if b == '\'' {
						q += contraction(text, q)
					}
				} else {
					l := lowerRun(load64(text, q) | 0x2020202020202020)
					q += l
					if l == 8 {
						l = lowerRun(load64(text, q) | 0x2020202020202020)
						q += l
						if l == 8 {
							goto slow
						}
					}
					if byteAt(text, q) >= 0x80 {
						goto slow
					}
				}
				goto count
			case number:
				q++
				if fastClass[byteAt(text, q)] == number {
					q++
					if fastClass[byteAt(text, q)] == number {
						q++
						goto count
					}
				}
				if byteAt(text, q) >= 0x80 {
					goto slow
				}
				goto count
			case line:
				goto white
			}
			goto slow
		punctuation:
			for k == other {
				q++
				k = fastClass[byteAt(text, q)]
			}
			if k == far {
				goto slow
			}
			if k != line {
				goto count
			}
		tail:
			for k == line || byteAt(text, q) == '/' && e.byCase {
				q++
				k = fastClass[byteAt(text, q)]
			}
			if q >= w.n {
				goto slow
			}
			goto count
		white:
			{
				lineEnd := 0
				for q = p; ; q++ {
					k = fastClass[byteAt(text, q)]
					if k == line {
						lineEnd = q + 1
					} else if k != space {
						break
					} else if load64(text, q) == 0x2020202020202020 {
						q += 7
					}
				}
				if k == far {
					goto slow
				}
				if lineEnd > 0 {
					q = lineEnd
				} else if q-p > 1 {
					q--
				}
				goto count
			}
		}
	slow:
		if p >= fast && !final && w.state == atStart {
			break
		}
		if w.state == atStart {
			w.start, w.pos = p, p
		}
		q = w.scan(e, final)
		p = w.start
		if q < 0 {
			break
		}
	count:
		n := q - p
		if n <= wordCap {
			head, tail := wordKey(text, p, n)
			tail |= tag
			entry := w.words.entry(head, tail)
			if entry.head == head && entry.tail&^wordCountBits == tail {
				tokens += int(entry.tail >> wordCountShift)
			} else {
				tokens += w.newWord(e, entry, p, n)
			}
		} else {
			tokens += w.countLong(e, p, n)
		}
		p = q
	}
	w.start = p
	w.tokens += tokens
}

// lowerRun is the number of leading bytes of x that are a to z.
func lowerRun(x uint64) int {
	x7 := x & 0x7f7f7f7f7f7f7f7f
	fromA := x7 + 0x1f1f1f1f1f1f1f1f // the top bit of a byte: at least 'a'
	aboveZ := x7 + 0x0505050505050505
	return bits.TrailingZeros64(^(fromA&^aboveZ&^x)&0x8080808080808080) >> 3
}
