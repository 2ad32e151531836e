package plan

import (
	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
	"github.com/emmer-proxy/emmer/tokenizer"
)

const (
	// driftPairs bounds what is learned: pairs of a configured model and a class, 150 bytes each.
	driftPairs = 256
	// leastLesson is the tokens of a prompt that something is learned from. What stands around the
	// texts is most of a shorter one, and says nothing of the vocabulary.
	leastLesson = 100
	// classIdentity is the identity whose values learn apart from each other.
	classIdentity = "class"
)

// Lesson is what a call teaches of estimates: what it was estimated at, and what its provider counted.
type Lesson struct {
	model, class        string
	estimated, reported int
}

// Lesson is that of a call with this usage, reported by its provider. ok is false where nothing is to
// be learned: the count was exact, the prompt short, or the model unknown and another's figures used.
func (p *Plan) Lesson(u dialect.Usage) (l Lesson, ok bool) {
	if p.Method != Approx || !p.Known || p.Raw < leastLesson {
		return l, false
	}
	return Lesson{p.Model.Name, p.class, int(p.Raw), int(p.reported(u).Input)}, true
}

// Learn takes a lesson. The same lessons in the same order make the same plans.
func (t *Memory) Learn(l Lesson) {
	if t.drift == nil {
		t.drift = tokenizer.NewCorrection(driftPairs)
	}
	t.drift.Learn(l.model, l.class, l.estimated, l.reported)
}

// correct makes the input of what was counted.
func (p *Plan) correct(c *config.Compiled, t *Memory) {
	p.Input = p.Raw
	if p.Method != Approx {
		return
	}
	p.class = class(c, p.Caller)
	p.Factor = tokenizer.Seed(p.Model.Name)
	if t.drift != nil {
		p.Factor = t.drift.Factor(p.Model.Name, p.class)
	}
	p.Input = capped(bucket.Tokens(p.Factor.Apply(int(p.Raw))))
}

func class(c *config.Compiled, who Caller) string {
	return who.identity(c, classIdentity)
}
