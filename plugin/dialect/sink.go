package dialect

// Sink receives what a model will be given, or what it produced, in the order of the document.
// Whatever the order of its fields, the same document gives the same texts and items.
type Sink interface {
	// Text is a piece of a text as it stands inside a JSON string: escapes untouched, quotes left out.
	// last ends the text. p is only valid during the call. Where JSON itself is the text, it comes as
	// written, its quotes included and the white space between its values left out. Texts do not
	// overlap.
	Text(part Part, p []byte, last bool)
	// End says that an item is complete: all of its texts have ended. Answers have no items.
	End(item Item)
}

// Part is what a text is within a prompt.
type Part uint8

const (
	Text                Part = iota // said by someone, roles and names included; all of an answer
	ToolName                        // of a tool or a response format
	ToolDescription                 // of a tool or a response format
	PropertyName                    // a key under properties in a tool's JSON Schema
	PropertyType                    // one of its types
	PropertyDescription             // of any schema within a tool's
	EnumValue                       // one value that a schema allows
	Schema                          // JSON of a tool or of a response format, and keys of a schema that no other part is for
	MediaURL                        // of an image: a URL, a data URL or bare base64
	MediaDetail                     // how closely it is looked at: low, high, auto
	AudioData                       // base64
	AudioFormat                     // such as wav
	FileData                        // a data URL or base64
	FileRef                         // the id, URL or name of a file
	Query                           // what documents are ranked by: read once more for each
	Parts                           // how many there are
)

// Item is something that costs tokens beside its texts.
type Item uint8

const (
	Message        Item = iota + 1
	Name                // of a message
	Tool                // a function or another tool that the model may call
	Properties          // an object of properties that isn't empty
	Property            // one of them
	Enum                // a list of allowed values that isn't empty
	ResponseFormat      // a schema that the answer must have
	Image
	Audio
	File
	Document // to rank
	Items    // one more than there are
)
