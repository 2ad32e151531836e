package dialect

// A stream of Ollama's ends by a line that is done, with the figures.
var (
	ollamaChatEnding     = tail{spots: ollamaSpots[:], step: noSteps, write: endOllamaChat, lines: true}
	ollamaGenerateEnding = tail{spots: ollamaSpots[:], step: noSteps, write: endOllamaGenerate, lines: true}
)

var ollamaSpots = [ollaNodes]spot{ollaModel: modelSpot, ollaCreated: timeSpot, ollaReason: reasonSpot}

func endOllamaChat(w *endWriter, at *standing, e End) bool {
	return endOllama(w, at, e, `"message":{"role":"assistant","content":""}`)
}

func endOllamaGenerate(w *endWriter, at *standing, e End) bool {
	return endOllama(w, at, e, `"response":""`)
}

func endOllama(w *endWriter, at *standing, e End, empty string) bool {
	if at.stopped {
		return false
	}
	w.event("", `{`+at.text("model", modelSpot)+at.time("created_at", "")+empty+`,"done":true,"done_reason":"length","prompt_eval_count":`+
		decimal(e.Usage.Input)+`,"eval_count":`+decimal(e.Usage.Output)+`}`)
	return true
}

// A stream of Cohere's ends by content-end or tool-call-end for what is open, and message-end with the
// reason and the usage. One of v1, a document on each line, ends by stream-end.
var cohereEnding = tail{spots: cohereSpots[:], step: cohereStep, write: endCohere, lines: true}

var cohereSpots = [coaNodes]spot{coaType: typeSpot, coaIndex: indexSpot, coaID: idSpot, coaFinish: reasonSpot}

func cohereStep(name []byte) step {
	switch string(name) {
	case "message-start", "stream-start":
		return startStep
	case "content-start":
		return openStep
	case "content-end":
		return closeStep
	case "tool-call-start":
		return openToolStep
	case "tool-call-end":
		return closeToolStep
	case "message-end", "stream-end":
		return overStep
	}
	return noStep
}

func endCohere(w *endWriter, at *standing, e End) bool {
	if !at.started {
		return false
	}
	figures := `{"input_tokens":` + decimal(e.Usage.Input) + `,"output_tokens":` + decimal(e.Usage.Output) + `}`
	usage := `{"billed_units":` + figures + `,"tokens":` + figures + `}`
	if w.form != readsSSE {
		w.event("", `{"is_finished":true,"event_type":"stream-end","finish_reason":"MAX_TOKENS","response":{"text":"","finish_reason":"MAX_TOKENS","meta":`+usage+`}}`)
		return true
	}
	at.blocks(func(index int64, tool bool) {
		name := "content-end"
		if tool {
			name = "tool-call-end"
		}
		w.event(name, `{"type":"`+name+`","index":`+decimal(index)+`}`)
	})
	w.event("message-end", `{"type":"message-end",`+at.text("id", idSpot)+`"delta":{"finish_reason":"MAX_TOKENS","usage":`+usage+`}}`)
	return true
}
