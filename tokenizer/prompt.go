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
	AudioFormat                     // such as wav; of a file, its media type or format
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

// maxTokens is what a sum stops at: the largest whole number that all parts of Emmer can hold.
const maxTokens = 1 << 53

// Prompt counts the tokens of a prompt: of its texts, and what a provider puts around them. It keeps
// nothing of the prompt but the first 32 bytes of a medium. Where OpenAI has published the rule (a
// conversation, tools without nesting) and the counter is exact, so is the sum; else it is an
// estimate that leans to the high side.
//
// A tool is counted in the form that OpenAI's cookbook gives it, "name:description" and for each
// property "name:type:description", each description without its last dot. No token spans a colon
// that follows a word, so the texts are counted one by one, in any order. What the cookbook is
// silent about, such as properties of properties, follows the same rule.
//
// Its caller gives it each text in pieces, ended by last, and after the texts of an item its End.
// Texts don't overlap. Media and their details, formats and names belong to the next End of Image,
// Audio or File.
type Prompt struct {
	counter *Counter
	rates   Rates
	total   int64
	tools   bool
	begun   bool // a text has begun and not ended
	dot     bool // of a description: its last byte so far is a dot, which is not counted yet
	medium  medium
	detail  word
	format  word
	named   int64 // bytes of FileRef of the file at hand
	refers  bool  // the FileRef at hand goes to medium
}

// NewPrompt makes a Prompt that counts texts by c, which is then its own, and the rest by r.
func NewPrompt(c *Counter, r Rates) *Prompt {
	return &Prompt{counter: c, rates: r}
}

// Reset drops all that was counted.
func (p *Prompt) Reset() {
	p.counter.Reset()
	*p = Prompt{counter: p.counter, rates: p.rates}
}

// Text takes the next piece of a text in the form that it has inside a JSON string: escapes
// untouched, quotes left out, split anywhere. last ends the text. Base64 never counts as text.
func (p *Prompt) Text(part Part, json []byte, last bool) {
	first := !p.begun
	p.begun = !last
	switch part {
	case MediaURL, AudioData, FileData:
		if first {
			p.replace()
		}
		p.medium.write(json)
	case MediaDetail:
		p.detail.write(json, first)
	case AudioFormat:
		p.format.write(json, first)
	case FileRef:
		p.reference(json, first)
	default:
		p.text(part, json, first, last)
	}
}

var (
	colon = [...]byte{':'}
	dot   = [...]byte{'.'}
)

func (p *Prompt) text(part Part, json []byte, first, last bool) {
	describes := part == ToolDescription || part == PropertyDescription
	if first && (describes || part == PropertyType) {
		p.counter.Write(colon[:])
	}
	if describes && len(json) > 0 {
		if p.dot {
			p.dot = false
			p.counter.WriteJSON(dot[:])
		}
		if n := len(json) - 1; json[n] == '.' {
			p.dot = true
			json = json[:n]
		}
	}
	if len(json) > 0 {
		p.counter.WriteJSON(json)
	}
	if !last {
		return
	}
	p.dot = false
	p.add(int64(p.counter.Finish()))
	switch part {
	case ToolDescription:
		p.add(int64(p.rates.ToolDescription))
	case PropertyDescription:
		p.add(int64(p.rates.PropertyDescription))
	case EnumValue:
		p.add(int64(p.rates.EnumValue))
	}
}

// maxReference is how many bytes of a file's names count, at three bytes a token: a provider may
// show the name to the model. What is longer is no name.
const maxReference = 1024

func (p *Prompt) reference(json []byte, first bool) {
	if first {
		// Some APIs take a data URL where a file is referred to.
		p.refers = !p.medium.used || p.medium.reference()
		if p.refers {
			p.medium.begin(true)
		}
	}
	if p.refers {
		p.medium.write(json)
	}
	p.named = min(p.named+int64(len(json)), maxReference)
}

// replace makes room for a medium. One that came before it within the same item counts as well.
func (p *Prompt) replace() {
	if p.medium.used && !p.medium.reference() {
		p.add(p.rates.file(&p.medium, &p.detail, &p.format))
	}
	p.medium.begin(false)
}

// End takes the end of an item; all of its texts have ended.
func (p *Prompt) End(item Item) {
	r := &p.rates
	n := 0
	switch item {
	case Message:
		n = r.Message
	case Name:
		n = r.Name
	case Tool:
		p.tools = true
		n = r.Tool
	case Properties:
		n = r.Properties
	case Property:
		n = r.Property
	case Enum:
		n = r.Enum
	case ResponseFormat:
		n = r.Format
	case Image:
		p.end(p.rates.image(&p.medium, &p.detail))
	case Audio:
		p.end(p.rates.sound(&p.medium, &p.format))
	case File:
		n := p.rates.file(&p.medium, &p.detail, &p.format)
		if !p.medium.used || p.medium.reference() {
			n += (p.named + 2) / 3
		}
		p.end(n)
	}
	p.add(int64(n))
}

// end adds what a medium costs and makes ready for another item.
func (p *Prompt) end(n int64) {
	p.add(n)
	p.medium.begin(false)
	p.medium.used = false
	p.detail, p.format, p.named, p.refers = word{}, word{}, 0, false
}

func (p *Prompt) add(n int64) { p.total = plus(p.total, n) }

func plus(a, b int64) int64 {
	return min(max(a+min(max(b, -maxTokens), maxTokens), -maxTokens), maxTokens)
}

// Bare is Total of a prompt that is no chat, such as a text to embed: nothing goes before an answer.
func (p *Prompt) Bare() int { return int(max(p.total, 0)) }

// Total is the number of tokens so far, from 0 to 2^53. A text or item that has not ended is not in it.
func (p *Prompt) Total() int {
	n := plus(p.total, int64(p.rates.Reply))
	if p.tools {
		n = plus(n, int64(p.rates.Tools))
	}
	return int(max(n, 0))
}
