package dialect

// onOpenAI says whether a call is one that makes a model work by OpenAI's API, on a path that ends
// in these segments, and what that path says of it. Azure names the model before them, as a
// deployment (/openai/deployments/NAME/...), as OpenAI once did (/v1/engines/NAME/...): then what the
// body says of the model is ignored there. GET and DELETE on the same paths read and delete what is
// stored.
func (c *call) onOpenAI(texts ...string) (inPath, bool) {
	if c.method != "POST" || !c.ends(texts...) {
		return inPath{}, false
	}
	before := c.seg[:len(c.seg)-len(texts)]
	if n := len(before); n >= 2 {
		switch before[n-2].text {
		case "deployments", "engines":
			return inPath{model: c.named(before[n-1]), at: before[n-1].at}, true
		}
	}
	return inPath{}, true
}

// recogniseOpenAI knows the calls of all of OpenAI's APIs.
func recogniseOpenAI(c *call) Dialect {
	for _, recognise := range [...]func(c *call) Dialect{
		recogniseOpenAIChat, recogniseOpenAICompletions, recogniseOpenAIEmbeddings, recogniseOpenAIResponses,
		recogniseOpenAIImages, recogniseOpenAIAudio, recogniseOpenAISpeech,
	} {
		if d := recognise(c); d != nil {
			return d
		}
	}
	return nil
}
