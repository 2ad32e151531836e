package tokenizer

// Rates is what a prompt costs besides its texts, for one family of models: tokens, unless a field
// says otherwise. Providers change these without notice and publish few of them; the table in
// families.go gives source and date of each. A caller may override any field. No value is wrong: a
// sum below 0 counts as 0, one above 2^53 as 2^53.
type Rates struct {
	Message int // each message
	Name    int // each name of a message, besides its text; may be negative
	Reply   int // once: the frame of the prompt and the start of the answer; may be negative

	Tools               int // once, if there is a tool
	Tool                int // each tool
	ToolDescription     int // each description of a tool or a response format
	Properties          int // each object of properties that isn't empty
	Property            int // each property
	PropertyDescription int // each description within a tool's schema
	Enum                int // each list of allowed values that isn't empty; may be negative
	EnumValue           int // each of these values
	Format              int // each schema that the answer must have

	ImageScheme  ImageScheme
	ImageBase    int // each image; all of it for ImageFixed
	ImageTile    int // each tile or crop of it
	ImageScale   int // each patch, in parts per thousand of a token
	ImageEdge    int // pixels that its longer side is scaled down to; 0 = any
	ImagePatches int // patches that it is scaled down to; 0 = any
	ImageHigh    int // ImagePatches where detail is high; 0 = the same
	ImageLow     int // all of an image whose detail is low; 0 = detail changes nothing
	ImageUnknown int // all of an image of unknown size

	AudioSecond int // each second of sound
	VideoSecond int // each second of video
	Page        int // each page of a PDF: its text and its image
	FileUnknown int // a file that is only referred to, and so of unknown size
}

// ImageScheme is the way in which a family of models counts an image of known size.
type ImageScheme int

const (
	// ImageFixed: every image costs ImageBase.
	ImageFixed ImageScheme = iota
	// ImageTiles: the image is shrunk into 2048 by 2048 pixels, then to a shorter side of 768. It
	// costs ImageBase, and ImageTile for each 512 by 512 of what is left.
	ImageTiles
	// ImagePatches32: ImageScale for each 32 by 32 pixels. An image with a longer side than ImageEdge
	// or more than ImagePatches is shrunk until it fits, in the way of OpenAI: in such a manner that one
	// side is a whole number of patches.
	ImagePatches32
	// ImagePatches28: ImageScale for each 28 by 28 pixels. An image that is too large is shrunk until
	// it just fits, in the way of Anthropic.
	ImagePatches28
	// ImageCrops: ImageTile up to 384 by 384 pixels, else ImageTile for each square crop, whose side
	// is two thirds of the image's shorter one, but at least 256 and at most 768.
	ImageCrops
)

// RatesOf gives the rates of a model by the name that requests use, in the forms that Lookup takes.
// A model that no row is for gets the rates of an open model, whose template writes tools as JSON.
func RatesOf(model string) Rates {
	i := longest(len(families), bareName(model), func(i int) string { return families[i].prefix })
	if i < 0 {
		return openModel
	}
	return *families[i].rates
}
