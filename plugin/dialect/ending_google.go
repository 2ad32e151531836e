package dialect

// A stream of Gemini's ends by a piece with a finishReason for each candidate and the usage, and as an
// array by its bracket too. google-genai takes every line for JSON that does not begin with "data: "
// (HttpResponse._iter_response_stream of 3.6.1), so a comment would raise in it. Its chats keep no turn
// whose last piece has no part.
var geminiEnding = tail{spots: geminiSpots[:], step: noSteps, write: endGemini, silent: true}

var geminiSpots = [gemaNodes]spot{
	gemaID: idSpot, gemaModel: modelSpot, gemaWrapped: familySpot,
	gemaCandidate: itemSpot, gemaIndex: indexSpot, gemaFinish: reasonSpot, gemaBlocked: reasonSpot,
}

func endGemini(w *endWriter, at *standing, e End) bool {
	if !at.unfinished() {
		return false
	}
	list := ""
	at.answers(func(i int64) {
		if list != "" {
			list += ","
		}
		list += `{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"MAX_TOKENS","index":` + decimal(i) + `}`
	})
	u := e.Usage
	doc := `{"candidates":[` + list + `],"usageMetadata":{"promptTokenCount":` + decimal(u.Input)
	if u.CachedInput > 0 {
		doc += `,"cachedContentTokenCount":` + decimal(u.CachedInput)
	}
	doc += `,"candidatesTokenCount":` + decimal(u.Output-u.Reasoning)
	if u.Reasoning > 0 {
		doc += `,"thoughtsTokenCount":` + decimal(u.Reasoning)
	}
	doc += `,"totalTokenCount":` + decimal(u.Input+u.Output) + `},` + at.text("modelVersion", modelSpot) + at.text("responseId", idSpot)
	doc = doc[:len(doc)-1] + `}`
	if at.family != 0 { // Code Assist's
		doc = `{"response":` + doc + `}`
	}
	w.event("", doc)
	return true
}
