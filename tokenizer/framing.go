package tokenizer

// Framing is the number of tokens that a chat template adds to the texts of a prompt: for each
// message, for each name, for each tool, and a bounded figure for each image. Counts below 0 are 0.
func Framing(messages, names, tools, images int) int {
	n := max(messages, 0)*3 + max(names, 0) + 3
	if tools > 0 {
		n += 16 + tools*7
	}
	return n + max(images, 0)*1568
}
