package tokenizer

// Part is what a text is within a prompt.
type Part uint8

const (
	Text                Part = iota // said by someone, roles and names included
	ToolName                        // of a tool or a response format
	ToolDescription                 // of a tool or a response format
	PropertyName                    // a key under properties in a tool's JSON Schema
	PropertyType                    // one of its types
	PropertyDescription             // of any schema within a tool's
	EnumValue                       // one value that a schema allows
	Schema                          // other JSON of a tool or of a response format, as written
	MediaURL                        // of an image: a URL, a data URL or bare base64
	MediaDetail                     // how closely an image is looked at: low, high, auto
	AudioData                       // base64 or a data URL
	AudioFormat                     // such as wav
	FileData                        // a data URL or base64
	FileRef                         // the id, URL or name of a file
	Parts                           // how many there are
)

// Item is something that costs tokens besides its texts.
type Item uint8

const (
	Message        Item = iota + 1
	Name                // of a message
	Tool                // that the model may call
	Properties          // an object of properties that isn't empty
	Property            // one of them
	Enum                // a list of allowed values that isn't empty
	ResponseFormat      // a schema that the answer must have
	Image
	Audio
	File
	Items // one more than there are
)

// Prompt counts the tokens of a prompt: of its texts, and what a provider puts around them. It
// keeps none of the prompt. It is an estimate even where the texts are counted exactly, except
// where the provider has published the rule.
type Prompt struct {
	counter *Counter
	rates   Rates
	total   int
	tools   bool
	open    bool
	part    Part
	dot     bool
}

// NewPrompt makes a Prompt that counts texts by c, which it then owns, and the rest by r.
func NewPrompt(c *Counter, r Rates) *Prompt {
	return &Prompt{counter: c, rates: r}
}

// Reset drops all that was counted.
func (p *Prompt) Reset() {
	p.counter.Reset()
	*p = Prompt{counter: p.counter, rates: p.rates}
}

var colon = [...]byte{':'}

// Text takes the next piece of a text, in the form in which it stands inside a JSON string: escapes
// untouched, quotes left out, split anywhere. last ends the text. Base64 is never counted as text.
func (p *Prompt) Text(part Part, json []byte, last bool) {
	switch part {
	case MediaURL, MediaDetail, AudioData, AudioFormat, FileData, FileRef:
		return
	}
	p.counter.WriteJSON(json)
	p.open = !last
	if last {
		p.add(p.counter.Finish())
	}
}

// End takes the end of an item; all of its texts have ended.
func (p *Prompt) End(item Item) {
	r := &p.rates
	switch item {
	case Message:
		p.add(r.Message)
	case Name:
		p.add(r.Name)
	case Tool:
		p.tools = true
		p.add(r.Tool)
	case Properties:
		p.add(r.Properties)
	case Property:
		p.add(r.Property)
	case Enum:
		p.add(r.Enum)
	case ResponseFormat:
		p.add(r.Format)
	case Image, Audio, File:
		p.add(r.ImageUnknown)
	}
}

func (p *Prompt) add(n int) { p.total += n }

// Total is the number of tokens so far, never below 0. A text that has not ended is not in it.
func (p *Prompt) Total() int {
	n := p.total + p.rates.Reply
	if p.tools {
		n += p.rates.Tools
	}
	return max(n, 0)
}
