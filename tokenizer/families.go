package tokenizer

// Sources of the rows below. Where two of them disagree, the row says which one won.
//
//	cookbook   OpenAI, How_to_count_tokens_with_tiktoken, the published rule and its worked
//	           examples (gpt-3.5, gpt-4, gpt-4o, gpt-4o-mini), read 2026-10
//	fits       npm ai-tokenizer 1.0.6, constants fitted to answers of the services, read 2026-10.
//	           Its cost of the first tool is in its "tools exist": Tools here is that less one Tool.
//	           It has no term for types and colons, which the meter counts as text: one token is
//	           taken off each description and two off each property. Its cost of an enum is one
//	           figure; it is split over two values.
//	images     OpenAI, developers.openai.com/api/docs/guides/images-vision, read 2026-10
//	forum      community.openai.com, measured: t/1262691 (2025-05), t/1377015 (2026-03)
//	measured   Hugging Face data sets JOHNISKING/image-token-cost and pdf-token-cost, 2026-10
//	vision     platform.claude.com, vision, read 2026-10
//	tool-use   docs.anthropic.com, tool-use-pricing-and-tokens, read 2026-10
//	gemini     ai.google.dev, tokens, media-resolution and image-understanding, read 2026-10
//	harmony    OpenAI's openai-harmony format guide (2025-08): "# Response Formats", "## name"
//
// Sound of OpenAI's is 1 token per 100 ms (developers.openai.com, realtime-costs, read 2026-10).
// Pages have no published figure but Google's; those of others are an image of a page and its text.
// A file that is only referred to counts as ten pages.

// gpt4 is gpt-3.5 and gpt-4: cookbook. Images (gpt-4-turbo): images, forum.
var gpt4 = Rates{
	Message: 3, Name: 1, Reply: 3,
	Tools: 12, Tool: 10, Properties: 3, Property: 3, Enum: -3, EnumValue: 3,
	Format:      12, // harmony
	ImageScheme: ImageTiles, ImageBase: 85, ImageTile: 170, ImageLow: 85,
	ImageUnknown: 1445, // 2048 by 768 at most: 8 tiles
	AudioSecond:  10, VideoSecond: 300, Page: 1800, FileUnknown: 18000,
}

// gpt35of0301: cookbook. The name stands in the role's place.
var gpt35of0301 = with(gpt4, func(r *Rates) { r.Message, r.Name = 4, -1 })

// gpt4o is gpt-4o, gpt-4.1 and gpt-4.5: cookbook, and the API agreed with it. The fits have a frame of
// 6 instead of 3, 16 for the first tool and 6 for each other.
var gpt4o = with(gpt4, func(r *Rates) { r.Tool = 7 })

// gpt4oMini: images. Its tiles cost as much money as those of gpt-4o, hence the figures.
var gpt4oMini = with(gpt4o, func(r *Rates) {
	r.ImageBase, r.ImageTile, r.ImageLow = 2833, 5667, 2833
	r.ImageUnknown, r.Page, r.FileUnknown = 48169, 37600, 376000
})

// gpt41Mini and gpt41Nano: images, confirmed by forum.
var (
	gpt41Mini = with(gpt4o, func(r *Rates) { r.patches32(1620, 1536) })
	gpt41Nano = with(gpt4o, func(r *Rates) { r.patches32(2460, 1536) })
)

// gpt5 is gpt-5 and gpt-5.1: fits for messages and tools, cookbook for what is inside a schema. Images
// count in tiles: images.
var gpt5 = with(gpt4o, func(r *Rates) {
	r.Message, r.Reply = 4, 5
	r.Tools, r.Tool = 18, 6
	r.ImageBase, r.ImageTile, r.ImageLow, r.ImageUnknown = 70, 140, 70, 1190
})

// gpt5Mini and gpt5Nano, and those of gpt-5.4: the multipliers of images. forum measured 1.2 and 1.5
// in 2026-03, below what OpenAI says it charges; the higher figure is taken.
var (
	gpt5Mini = with(gpt5, func(r *Rates) { r.Tools = 15; r.patches32(1620, 1536) })
	gpt5Nano = with(gpt5, func(r *Rates) { r.Tools = 15; r.patches32(2460, 1536) })
)

// gpt52 is gpt-5.2 and gpt-5.3: forum. Not in images.
var gpt52 = with(gpt5, func(r *Rates) { r.patches32(1200, 1536) })

// gpt54 is gpt-5.4 and gpt-5.5: images, and measured for gpt-5.5: all sizes to 12 megapixels with
// detail auto (which is "original") and high. An image of unknown size counts as the largest at high.
var gpt54 = with(gpt5, func(r *Rates) {
	r.patches32(1200, 10000)
	r.ImageHigh, r.ImageEdge, r.ImageUnknown = 2500, 6000, 3000
})

// gpt6: measured. 11,970 patches were not scaled down, so where its cap lies is not known.
var gpt6 = with(gpt54, func(r *Rates) { r.ImagePatches = 20000 })

// oSeries is o1 and o3: fits; images 75 and 150 as read in images. forum measured 236 for a small
// image on o3, of which 10 are text, and 44 on o1.
var oSeries = with(gpt5, func(r *Rates) {
	r.Tools = 13
	r.ImageBase, r.ImageTile, r.ImageLow, r.ImageUnknown = 75, 150, 75, 1275
})

// o4Mini is o4-mini and codex-mini: fits, images.
var o4Mini = with(oSeries, func(r *Rates) { r.patches32(1720, 1536) })

// gptOSS: fits. Its template has a system message of its own.
var gptOSS = with(gpt5, func(r *Rates) {
	r.Reply, r.Tools, r.Tool = 68, 31, 9
	r.ImageScheme, r.ImageBase = ImageFixed, r.ImageUnknown
})

// claude4 is Claude 3.5 to Opus 4.6: fits, and vision, confirmed by measured. A page is measured at
// 2,098 to 2,278; Anthropic says 1,500 to 3,000 for its text.
var claude4 = Rates{
	Message: 2, Reply: 6,
	// tool-use has 346 for the system prompt that tools bring, fits 366 with the first tool.
	Tools: 313, Tool: 53, ToolDescription: 4, Properties: 1, Property: 10, PropertyDescription: 4, Enum: 3, EnumValue: 3,
	Format:      200, // not published: a system prompt explains the format; measured by nobody that we know of
	ImageScheme: ImagePatches28, ImageScale: 1000, ImageEdge: 1568, ImagePatches: 1568, ImageUnknown: 1568,
	AudioSecond: 32, VideoSecond: 300, Page: 3000, FileUnknown: 30000,
}

// claude3Haiku: fits (tool-use has 264 without the first tool); claude3Opus: fits (530).
var (
	claude3Haiku = with(claude4, func(r *Rates) { r.Tools = 264 })
	claude3Opus  = with(claude4, func(r *Rates) { r.Tools = 533 })
)

// claude45 is Sonnet 4.5, Haiku 4.5 and Opus 4.5 and 4.6: fits.
var claude45 = with(claude4, func(r *Rates) { r.Tools = 496 })

// claude47 is Opus 4.7 and what came after: vision, confirmed by measured ("Claude 5.5").
var claude47 = with(claude45, func(r *Rates) {
	r.Tools = 675 // those of 4.5 by the drift of its vocabulary on English, see seeds in correct.go
	r.ImageEdge, r.ImagePatches, r.ImageUnknown = 2576, 4784, 4784
})

// gemini2 is Gemini 2.0 and 2.5: fits for tools of the previews of 2025-09, which are the highest; gemini
// for images and sound. An image of unknown size counts as 3 by 2 crops, those of a 16:9 photo.
var gemini2 = Rates{
	Tool: 18, Property: 8, Enum: 3, EnumValue: 1, Format: 10,
	ImageScheme: ImageCrops, ImageTile: 258, ImageUnknown: 1548,
	AudioSecond: 32, VideoSecond: 295, // 263 and the sound
	Page: 258, FileUnknown: 2580,
}

// gemini1 is Gemini 1.5: gemini.
var gemini1 = with(gemini2, func(r *Rates) { r.ImageScheme, r.ImageBase, r.ImageUnknown = ImageFixed, 258, 258 })

// gemini3: gemini, confirmed by measured (1,065 to 1,101 for an image of any size, 560 for a page).
var gemini3 = with(gemini2, func(r *Rates) {
	r.ImageScheme, r.ImageBase, r.ImageLow, r.ImageUnknown = ImageFixed, 1120, 280, 1120
	r.VideoSecond, r.Page, r.FileUnknown = 102, 560, 5600
})

// openModel is Qwen 3: fits. Many open models have its template, which writes tools as JSON.
// Images: 28 by 28 pixels, up to 16,384 of them (preprocessor_config.json of Qwen2.5-VL: max_pixels
// 12,845,056), though servers usually set less.
var openModel = Rates{
	Message: 4, Name: 1, Reply: 9,
	Tools: 86, Tool: 56, Properties: 3, Property: 9, PropertyDescription: 4, Enum: 3, EnumValue: 3,
	Format:      12,
	ImageScheme: ImagePatches28, ImageScale: 1000, ImagePatches: 16384, ImageUnknown: 2500,
	AudioSecond: 32, VideoSecond: 300, Page: 2500, FileUnknown: 25000,
}

// deepseek (V3 to V3.2), grok and mistral: fits, the highest of each maker's.
var (
	deepseek = with(openModel, func(r *Rates) { r.Message, r.Reply, r.Tools, r.Tool = 3, 7, 107, 71 })
	grok     = with(openModel, func(r *Rates) {
		r.Message, r.Reply, r.Tools, r.Tool = 3, 6, 230, 32
		r.ToolDescription, r.Properties, r.Property, r.PropertyDescription = 2, 2, 5, 2
		r.ImageScheme, r.ImageBase, r.ImageUnknown = ImageFixed, 1792, 1792 // docs.x.ai: 7 tiles of 256 at most, read 2025-11
	})
	grok4   = with(grok, func(r *Rates) { r.Reply, r.Tools = 683, 155 })
	mistral = with(openModel, func(r *Rates) {
		r.Message, r.Reply, r.Tools, r.Tool = 1, 2, 3, 57
		// params.json of Mistral-Small-3.1: image_size 1540, patches of 14, two by two.
		r.ImageEdge, r.ImagePatches, r.ImageUnknown = 1540, 3080, 3080
	})
	// pixtral: params.json of Pixtral-12B: 1024 pixels in patches of 16, and an end of each row.
	pixtral = with(mistral, func(r *Rates) { r.ImageScheme, r.ImageBase, r.ImageUnknown = ImageFixed, 4160, 4160 })
)

// llama: fits of 3.3 and 4, the highest of both. Images: docs.together.ai, vision-overview, read 2026-10:
// up to four tiles of 1,601.
var llama = with(openModel, func(r *Rates) {
	r.Message, r.Reply, r.Tools, r.Tool = 4, 34, 126, 47
	r.Properties, r.Property, r.PropertyDescription, r.Enum, r.EnumValue = 1, 5, 2, 1, 2
	r.ImageScheme, r.ImageBase, r.ImageUnknown = ImageFixed, 6404, 6404
})

var llama4 = with(llama, func(r *Rates) {
	r.Tools, r.Tool, r.Properties, r.Property, r.PropertyDescription, r.Enum, r.EnumValue = 492, 40, 23, 15, 5, 6, 5
})

// nova is Amazon's: fits.
var nova = with(openModel, func(r *Rates) { r.Message, r.Reply, r.Tools, r.Tool, r.ToolDescription = 2, -1, 353, 41, 4 })

// glm and kimi: fits.
var (
	glm  = with(openModel, func(r *Rates) { r.Message, r.Reply, r.Tools, r.Tool = 3, 9, 100, 33 })
	kimi = with(openModel, func(r *Rates) { r.Message, r.Reply, r.Tools, r.Tool = 4, 24, 13, 54 })
)

// families maps the beginning of a model's name to its rates, by the rule of models: the longest
// match wins and ends a word. A row that stands for a whole maker is that of the newest model, so that
// a model yet to come has the rates of its elders.
var families = [...]struct {
	prefix string
	rates  *Rates
}{
	{"gpt-3.5", &gpt4},
	{"gpt-35", &gpt4},
	{"gpt-3.5-turbo-0301", &gpt35of0301},
	{"gpt-35-turbo-0301", &gpt35of0301},
	{"gpt-4", &gpt4},
	{"gpt-4o", &gpt4o},
	{"gpt-4o-mini", &gpt4oMini},
	{"gpt-4.1", &gpt4o},
	{"gpt-4.1-mini", &gpt41Mini},
	{"gpt-4.1-nano", &gpt41Nano},
	{"gpt-4.5", &gpt4o},
	{"gpt-41", &gpt4o},
	{"gpt-41-mini", &gpt41Mini},
	{"gpt-41-nano", &gpt41Nano},
	{"gpt-45", &gpt4o},
	{"chatgpt", &gpt4o},
	{"gpt-audio", &gpt4o},
	{"gpt-realtime", &gpt4o},
	{"gpt-5", &gpt5},
	{"gpt-5-chat", &gpt4o}, // fits
	{"gpt-5-mini", &gpt5Mini},
	{"gpt-5-nano", &gpt5Nano},
	{"gpt-5.2", &gpt52},
	{"gpt-5.3", &gpt52},
	{"gpt-5.4", &gpt54},
	{"gpt-5.4-mini", &gpt5Mini},
	{"gpt-5.4-nano", &gpt5Nano},
	{"gpt-5.5", &gpt54},
	{"gpt-6", &gpt6},
	{"gpt-oss", &gptOSS},
	{"codex", &gpt5},
	{"codex-mini", &o4Mini},
	{"computer-use", &gpt4o},
	{"o1", &oSeries},
	{"o3", &oSeries},
	{"o4", &o4Mini},

	{"claude", &claude47},
	{"claude-2", &claude4},
	{"claude-instant", &claude4},
	{"claude-3", &claude4},
	{"claude-3-haiku", &claude3Haiku},
	{"claude-3-5-haiku", &claude3Haiku},
	{"claude-3.5-haiku", &claude3Haiku},
	{"claude-3-opus", &claude3Opus},
	{"claude-opus-4", &claude45},
	{"claude-opus-4-0", &claude4},
	{"claude-opus-4.0", &claude4},
	{"claude-opus-4-1", &claude4},
	{"claude-opus-4.1", &claude4},
	{"claude-opus-4-7", &claude47},
	{"claude-opus-4.7", &claude47},
	{"claude-opus-4-8", &claude47},
	{"claude-opus-4.8", &claude47},
	{"claude-sonnet-4", &claude45},
	{"claude-sonnet-4-0", &claude4},
	{"claude-sonnet-4.0", &claude4},
	{"claude-sonnet-4-7", &claude47},
	{"claude-sonnet-4.7", &claude47},
	{"claude-sonnet-4-8", &claude47},
	{"claude-sonnet-4.8", &claude47},
	{"claude-haiku-4", &claude45},

	{"gemini", &gemini3},
	{"gemini-1", &gemini1},
	{"gemini-2", &gemini2},
	{"gemma", &gemini2},
	{"gemma2", &gemini2},
	{"gemma3", &gemini2},

	{"deepseek", &deepseek},
	{"grok", &grok4},
	{"grok-2", &grok},
	{"grok-3", &grok},
	{"mistral", &mistral},
	{"ministral", &mistral},
	{"magistral", &mistral},
	{"codestral", &mistral},
	{"devstral", &mistral},
	{"mixtral", &mistral},
	{"open-mistral", &mistral},
	{"open-mixtral", &mistral},
	{"pixtral", &pixtral},
	{"llama", &llama4},
	{"llama-3", &llama},
	{"llama3", &llama},
	{"llama-2", &llama},
	{"llama2", &llama},
	{"meta-llama", &llama},
	{"nova", &nova},
	{"glm", &glm},
	{"kimi", &kimi},
}

// with is a copy of the rates r with a change.
func with(r Rates, change func(*Rates)) Rates {
	change(&r)
	return r
}

// patches32 makes images count in patches, without a figure of its own for a low detail: forum found
// that detail changes nothing there.
func (r *Rates) patches32(scale, patches int) {
	r.ImageScheme, r.ImageScale, r.ImagePatches = ImagePatches32, scale, patches
	r.ImageBase, r.ImageTile, r.ImageLow, r.ImageHigh = 0, 0, 0, 0
	r.ImageUnknown = (patches*scale + 999) / 1000
	r.Page, r.FileUnknown = r.ImageUnknown+700, (r.ImageUnknown+700)*10
}
