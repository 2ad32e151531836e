package closer

// place is where in an HTTP/1.1 answer the next byte stands.
type place uint8

const (
	idle   place = iota // in answers that are not followed
	inHead              // status line and headers
	inSize              // the line before a chunk
	inData              // a chunk
	behind              // the line end behind a chunk
	inTail              // trailers
	ended               // the end was put in: nothing more may pass
)

// kept is how much of a line of a head is looked at: what is of interest is shorter.
const kept = 64

// maxSizeLine bounds the line before a chunk, extensions included. Envoy writes none.
const maxSizeLine = 4096

// answer is the HTTP/1.1 answer that is being followed, from its head to its end.
type answer struct {
	place   place
	next    bool // another announced answer follows this one
	chunked bool
	closes  bool // the head says connection: close
	began   bool // the first chunk's line has begun
	cr      bool // the head's empty line has begun
	final   bool // the final bytes end in this chunk
	status  int  // 0 until its line has passed
	left    int  // of a chunk, or the digits' value
	digits  int
	length  int // of a line, also beyond what is kept
	line    [kept]byte
}

// over ends the following of an answer.
func (c *Conn) over() {
	for i := len(c.cuts) - 1; i >= 0; i-- { // it ended by itself, before its final bytes or with them
		c.out.Lost = append(c.out.Lost, c.cuts[i].mark)
		c.forget(i)
	}
	if c.h1.next {
		c.h1 = answer{place: inHead}
		return
	}
	c.h1 = answer{}
}

func (c *Conn) walkAnswer(p []byte, at int) {
	a := &c.h1
	for i := 0; i < len(p); {
		switch a.place {
		case inHead:
			c.headByte(p[i], at+i)
			i++
		case inSize:
			c.sizeByte(p[i])
			i++
		case inData:
			n := min(a.left, len(p)-i)
			a.final = c.body(0, p[i:i+n]) || a.final
			if a.left -= n; a.left == 0 {
				a.place = behind
			}
			i += n
		case behind:
			i++
			if p[i-1] != '\n' {
				if p[i-1] != '\r' {
					c.lose()
				}
				break
			}
			a.place, a.digits, a.length = inSize, 0, 0
			if a.final {
				c.insert(at+i, []byte("0\r\n\r\n"))
				a.place = ended
				c.out.Ended = append(c.out.Ended, Ended{Mark: c.cuts[0].mark, Close: true})
				c.cuts, c.tails = nil, nil
			}
		case inTail:
			c.tailByte(p[i])
			i++
		case ended:
			c.drop(at+i, len(p)-i)
			return
		default: // idle, or not followed any more
			return
		}
		if c.protocol != http1 {
			return
		}
	}
}

// headByte reads a head line by line. What is wanted of it is known before its empty line begins.
func (c *Conn) headByte(b byte, at int) {
	a := &c.h1
	switch {
	case a.cr:
		if b != '\n' {
			c.lose()
			return
		}
		c.headOver()
	case b == '\r' && a.length == 0 && a.status != 0:
		if a.chunked && !a.closes && a.status >= 200 && hasBody(a.status) {
			c.insert(at, []byte("connection: close\r\n"))
		}
		a.cr = true
	case b == '\n':
		c.headLine()
		a.length = 0
	default:
		if a.length < kept {
			if 'A' <= b && b <= 'Z' {
				b += 'a' - 'A'
			}
			a.line[a.length] = b
		}
		a.length++
	}
}

func (c *Conn) headLine() {
	a := &c.h1
	line := a.line[:min(a.length, kept)]
	if len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	if a.status == 0 {
		const version = "http/1.1 "
		if len(line) < len(version)+3 || string(line[:len(version)]) != version {
			c.lose() // also HTTP/1.0, whose answers end with the connection
			return
		}
		for _, d := range line[len(version) : len(version)+3] {
			if d < '0' || d > '9' {
				c.lose()
				return
			}
			a.status = a.status*10 + int(d-'0')
		}
		if a.status < 100 {
			c.lose()
		}
		return
	}
	switch string(line) {
	case "transfer-encoding: chunked":
		a.chunked = true
	case "connection: close":
		a.closes = true
	}
}

func hasBody(status int) bool { return status != 204 && status != 304 }

func (c *Conn) headOver() {
	a := &c.h1
	switch {
	case a.status == 101: // what follows is another protocol
		c.lose()
	case a.status < 200: // an interim answer: the one that was announced follows
		c.h1 = answer{place: inHead, next: a.next}
	case !a.chunked || !hasBody(a.status):
		c.over()
	default:
		a.place, a.length = inSize, 0
	}
}

// sizeByte reads the line before a chunk: hexadecimal digits, and an extension that means nothing.
func (c *Conn) sizeByte(b byte) {
	a := &c.h1
	if !a.began && b == 'H' { // no digit: this was the answer to HEAD, and here another begins
		next := a.next
		c.over()
		if next {
			c.headByte(b, 0) // puts nothing in: that is for the end of a head
		}
		return
	}
	if !a.began {
		a.began, a.left = true, 0
	}
	if a.length++; a.length > maxSizeLine {
		c.lose()
		return
	}
	digit := hexDigit(b)
	switch {
	case digit >= 0 && a.digits == a.length-1:
		if a.digits++; a.digits > 8 {
			c.lose()
			return
		}
		a.left = a.left<<4 | digit
	case a.digits == 0:
		c.lose()
	case b == '\n':
		a.length = 0
		if a.left == 0 {
			a.place = inTail
			return
		}
		a.place = inData
	}
}

func hexDigit(b byte) int {
	switch {
	case '0' <= b && b <= '9':
		return int(b - '0')
	case 'a' <= b && b <= 'f':
		return int(b-'a') + 10
	case 'A' <= b && b <= 'F':
		return int(b-'A') + 10
	}
	return -1
}

// tailByte passes trailers up to their empty line.
func (c *Conn) tailByte(b byte) {
	a := &c.h1
	switch b {
	case '\r':
	case '\n':
		if a.length == 0 {
			c.over()
			return
		}
		a.length = 0
	default:
		a.length = 1
	}
}
