package plan

import (
	"slices"

	"github.com/emmer-proxy/emmer/plugin/dialect"
	"github.com/emmer-proxy/emmer/plugin/inflate"
)

// Edit replaces a range of a body, as it is without its content coding.
type Edit struct {
	At   dialect.Span
	With []byte
}

// Decodes says that the body leaves without the content coding in which it came. Policy: one that is
// not edited goes on as it came; one that is goes as it is behind its coding, since nothing here could
// code it again, and its content-encoding is to be removed.
func (p *Plan) Decodes() bool { return len(p.Edits) > 0 && p.Caller.Body.Coding != 0 }

// Length is the length of Edited for a body that came with so many bytes.
func (p *Plan) Length(came int) int {
	if p.Decodes() {
		came = int(p.Facts.Decoded)
	}
	for _, e := range p.Edits {
		came += len(e.With) - int(e.At.End-e.At.Start)
	}
	return came
}

// Edited is the body with all edits made; the body itself if there are none. false: it is not the
// body that was planned.
func (p *Plan) Edited(body []byte) ([]byte, bool) {
	if len(p.Edits) == 0 {
		return body, true
	}
	s := splicer{edits: p.Edits, out: make([]byte, 0, p.Length(len(body)))}
	if p.Decodes() {
		r := inflate.NewReader(p.Caller.Body.Coding, inflate.Limits{Most: p.Facts.Decoded}, &s)
		if r.Write(body) != nil || r.Close() != nil {
			return nil, false
		}
	} else {
		s.Inflated(body)
	}
	s.edit()
	return s.out, len(s.edits) == 0 && len(s.out) == p.Length(len(body))
}

// askUsage adds the edit that asks for the usage of a stream, where the target is to be asked. Policy:
// what is signed, and a body that would then be larger than what may be held, goes on without; the call
// is then settled by estimate, unless the provider tells its usage unasked.
func (p *Plan) askUsage(hold, came int) {
	s := p.Facts.AskUsage
	if !p.Target.AskUsage || s.With == "" {
		return
	}
	before := p.Edits
	at := len(before)
	for at > 0 && before[at-1].At.Start >= s.At.End {
		at--
	}
	p.Edits = slices.Insert(slices.Clone(before), at, Edit{s.At, []byte(s.With)})
	p.Asks = !p.Facts.Sealed && p.Length(came) <= hold
	if p.Unasked = !p.Asks; p.Unasked {
		p.Edits = before
	}
}

// splicer makes edits in a body that comes in pieces.
type splicer struct {
	edits []Edit // still to be made, ascending and apart from each other
	at    int64  // bytes of the body so far
	skip  int64  // of the next bytes, which were replaced
	out   []byte
}

// edit makes the edits that begin here.
func (s *splicer) edit() {
	for len(s.edits) > 0 && s.skip == 0 && s.edits[0].At.Start == s.at {
		s.out = append(s.out, s.edits[0].With...)
		s.skip = s.edits[0].At.End - s.at
		s.edits = s.edits[1:]
	}
}

// Inflated takes the next bytes of the body.
func (s *splicer) Inflated(p []byte) bool {
	for len(p) > 0 {
		s.edit()
		n := int64(len(p))
		if s.skip > 0 {
			n = min(n, s.skip)
			s.skip -= n
		} else {
			if len(s.edits) > 0 {
				n = min(n, s.edits[0].At.Start-s.at)
			}
			if n <= 0 {
				return false // an edit of what is behind already
			}
			s.out = append(s.out, p[:n]...)
		}
		s.at += n
		p = p[n:]
	}
	return true
}
