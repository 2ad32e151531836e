// Package plan turns what a call says of itself into what it may cost: whom it counts for, which
// limits it meets and how much of each it needs at worst, or why it is refused at once. Afterwards
// it says what was truly used, and what the caller is told.
//
// It knows nothing of the host, of the store and of time beyond the argument now. It keeps no
// body. Its caller, in this order:
//   - asks Identify who calls, from the head; a refusal is sent as it is,
//   - may look up HeadKills in flags that it knows of, before it reads a body,
//   - calls Build with the whole body; a refusal is sent by way of Refuse,
//   - reserves what each of Parts has of Items, in its order, with Kills, and sends what Deny or
//     Headers say of the answers' Merge,
//   - forwards Edited(body) to Target,
//   - settles once with Actual of the provider's usage, or of Estimate where there was none, or
//     with Nothing for a call that cost nothing.
package plan

import (
	"github.com/emmer-proxy/emmer/bucket"
	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
	"github.com/emmer-proxy/emmer/tokenizer"
)

// Plan is a call as limits see it.
type Plan struct {
	Dialect dialect.Dialect
	Facts   dialect.Facts
	Caller  Caller
	Model   *config.Model // whose figures count
	Known   bool          // false: the name asked for is unknown, and Model is unknown_model
	Target  *config.Target
	Input   bucket.Tokens // estimate of the prompt, with what a provider puts around its texts
	Method  Method        // how Input was counted
	Raw     bucket.Tokens // Input before its correction, if it is an estimate
	Factor  tokenizer.Factor
	Output  bucket.Tokens // the most that may be produced, all answers together
	Learned bucket.Tokens // what was learned that one answer has; 0: Output is not by that
	Price   bucket.Price
	Priced  config.Priced
	Limits  []*config.Limit // those that the call meets, in the order of the configuration
	Items   []bucket.Item   // what it takes from each at worst; parallel to Limits
	Never   int             // index of a limit that the call can never fit, else -1
	Ignored []string        // limits whose claim says no maximum, so that their default holds
	Kills   []string        // flags that stop the call, as "scope:id"
	Edits   []Edit          // of the body, in ascending order, apart from each other
	Asks    bool            // one of them asks for the usage of a stream: the frame that reports it is not the caller's
	Unasked bool            // the target is to be asked for it, but this call may not be edited so
	Path    string          // to be sent in place of the request's, if it is not empty
	Parts   []Part          // Items by shard; none without Items

	sole     [1]Part
	currency config.Currency
	exact    int    // bytes of a text that may be counted exactly
	class    string // whose estimates are corrected together
	answers  string // whose answers' lengths are learned together; empty: this call's is not
}

// defaultTarget stands where no targets are configured.
var defaultTarget = config.Target{Name: "default"}

// Build plans a call. The body is read once, for its facts and for the count of its prompt; once more
// for the count where the model that it names counts otherwise than was thought. now chooses
// the periods of calendar windows. Beside a refusal the plan says how far it got, for logs; it must
// not be carried out.
func Build(c *config.Compiled, d dialect.Dialect, who Caller, body []byte, now bucket.Millis) (*Plan, *dialect.Refusal) {
	return new(Memory).Build(c, d, who, body, now)
}

// Memory saves work: it remembers the present period of each calendar window, which takes as long to
// find as a third of a plan, and what counted the call before, which is the guess for the next. That
// changes no plan; what Learn was told does, where prompts are estimated, and what Told was, where a
// call asks for no cap. Its zero value is ready; one belongs to one configuration.
type Memory struct {
	periods map[*config.Limit][4]bucket.Millis
	prompt  prompt
	drift   *tokenizer.Correction
	lengths lengths
}

func (t *Memory) bounds(l *config.Limit, now bucket.Millis) [4]bucket.Millis {
	if b, ok := t.periods[l]; ok && b[1] <= now && now < b[2] {
		return b
	}
	if t.periods == nil {
		t.periods = map[*config.Limit][4]bucket.Millis{}
	}
	b := l.Window.Bounds(now)
	t.periods[l] = b
	return b
}

// Build is the function Build, with what is remembered.
func (t *Memory) Build(c *config.Compiled, d dialect.Dialect, who Caller, body []byte, now bucket.Millis) (*Plan, *dialect.Refusal) {
	p := &Plan{Dialect: d, Caller: who, Never: -1, currency: c.Currency, exact: c.Body.CountExact}
	var sink dialect.Sink
	if t.prompt.encoding != nil {
		t.prompt.begin(p.exact)
		sink = &t.prompt
	}
	facts, fault := scan(d, who.Body, c.Body.Depth, body, sink)
	if fault != nil {
		r := FromFault(fault)
		return p, &r
	}
	p.Facts = facts
	p.Facts.Sealed = facts.Sealed || who.Body.Signed
	if facts.Background && c.Background == config.Deny {
		// Nothing that this call brings back says what it used, and the worst case of it may be far off.
		r := backgroundDenied()
		return p, &r
	}
	if refusal := p.choose(c); refusal != nil {
		return p, refusal
	}
	p.askUsage(c.Body.Hold, len(body))
	p.Kills = kills(c, p)
	if !t.prompt.counts(p.Model) {
		t.prompt.become(p.Model)
		t.prompt.begin(p.exact)
		if _, fault := scan(d, who.Body, c.Body.Depth, body, &t.prompt); fault != nil {
			r := FromFault(fault)
			return p, &r
		}
	}
	p.Raw, p.Method = t.prompt.total(!facts.NoChat)
	p.Raw = plus(p.Raw, bucket.Tokens(facts.TokenIDs))
	p.Raw = plus(p.Raw, times(t.prompt.query, facts.Documents-1)) // it is read with each document
	if facts.Free {
		p.Raw = 0
	}
	p.correct(c, t)
	if !facts.NoOutput && !facts.Free {
		guess := p.Model.DefaultOutput
		if p.learns() {
			p.answers = p.alike(c)
			if n := t.lengths.get(p.answers, now); n > 0 {
				guess, p.Learned = n, n
			}
		}
		p.Output = output(p.Model, facts, guess, p.Input, p.Method)
		if p.Learned > 0 {
			p.Learned = p.Output / bucket.Tokens(max(facts.N, 1))
		}
	}
	return p, p.take(c, t, now)
}

func scan(d dialect.Dialect, h dialect.RequestHead, depth int, body []byte, sink dialect.Sink) (dialect.Facts, *dialect.Fault) {
	s := dialect.NewScanner(d, h, depth, sink)
	if fault := s.Write(body); fault != nil {
		return dialect.Facts{}, fault
	}
	return s.Close()
}

// choose finds the model, the first target that serves it, its price and its name there.
func (p *Plan) choose(c *config.Compiled) *dialect.Refusal {
	if p.Facts.Model == "" && !p.Facts.Unnamed {
		return &dialect.Refusal{Reason: dialect.BadRequest, Code: "missing_model", Param: "model",
			Message: "The request names no model. Set model to the name of one."}
	}
	p.Model, p.Known = c.Model(p.Facts.Model)
	if p.Model == nil && p.Facts.Model == "" {
		return &dialect.Refusal{Reason: dialect.NotFound, Code: "model_not_found",
			Message: "This API's calls name no model, and no unknown_model says what they count as."}
	}
	if p.Model == nil {
		return noModel(p.Facts.Model, "is not known here")
	}
	var as *config.TargetModel
	if len(c.Targets) == 0 {
		p.Target = &defaultTarget
	}
	for _, t := range c.Targets {
		if tm, serves := t.Serves(p.Model); serves {
			p.Target, as = t, tm
			break
		}
	}
	if p.Target == nil {
		return noModel(p.Facts.Model, "is served by no target")
	}
	p.Price, p.Priced = p.Model.Price, p.Model.Priced
	if as != nil && as.Priced != 0 {
		p.Price, p.Priced = as.Price, as.Priced
	}
	// An unknown model is counted like another one, but nobody said that it should become that.
	if as != nil && p.Known && as.SendName != "" && as.SendName != p.Facts.Model {
		p.rename(as.SendName)
	}
	return nil
}

// rename makes the call ask for the model by its name at the target, where the call names it. What is
// signed goes as it came: an edit would break its signature.
func (p *Plan) rename(name string) {
	at := p.Facts.ModelInPath
	switch path := p.Caller.Body.Path; {
	case p.Facts.Sealed:
	case at == dialect.Span{}:
		with := quoted(name)
		if p.Facts.ModelPlain {
			with = []byte(name)
		}
		p.Edits = append(p.Edits, Edit{p.Facts.ModelSpan, with})
	case at.Start >= 0 && at.Start < at.End && at.End <= int64(len(path)):
		p.Path = path[:at.Start] + escaped(name) + path[at.End:]
	}
}

// escaped is s as a segment of a path (RFC 3986, section 3.3).
func escaped(s string) string {
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '_', c == '~', c == '@':
			out = append(out, c)
		default:
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(out)
}

func noModel(name, why string) *dialect.Refusal {
	return &dialect.Refusal{Reason: dialect.NotFound, Code: "model_not_found", Param: "model",
		Message: "The model " + shown(name) + " " + why + "."}
}

// quoted is s as a JSON string.
func quoted(s string) []byte {
	const hex = "0123456789abcdef"
	out := append(make([]byte, 0, len(s)+2), '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ':
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
