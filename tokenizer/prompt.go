package tokenizer

// What a chat costs besides its texts, in tokens. Providers change these without notice: every
// figure is an estimate as of its source.
const (
	// Markers around each message. OpenAI cookbook, How_to_count_tokens_with_tiktoken (gpt-3.5-turbo-0613
	// to gpt-4o, read 2026-10); ai-tokenizer 1.0.6 fits 3 for gpt-4o, 4 for gpt-5, 2 for Claude.
	perMessage = 3
	// A message's name, besides the text of the name. Same source.
	perName = 1
	// The reply is primed with <|start|>assistant<|message|>. Same source.
	perReply = 3
	// The preamble if there are tools at all, and each tool besides its text. The cookbook has 12 and
	// 7 (gpt-4o); ai-tokenizer 1.0.6 fits 16 and 6 (gpt-4o), 24 and 6 (gpt-5).
	anyTools = 16
	perTool  = 7
	// An image of unknown size. The largest that Claude up to 4.6 counts is 1,568
	// (platform.claude.com, vision, read 2026-10); OpenAI's tiles at high detail reach 1,445 (2048x768,
	// 85 + 8*170, developers.openai.com images-vision, read 2026-10).
	perImage = 1568
)

// Framing is the number of tokens that a chat template adds to the texts of a prompt: for each
// message, for each name, for each tool, and a bounded figure for each image. Counts below 0 are 0.
func Framing(messages, names, tools, images int) int {
	n := max(messages, 0)*perMessage + max(names, 0)*perName + perReply
	if tools > 0 {
		n += anyTools + tools*perTool
	}
	return n + max(images, 0)*perImage
}
