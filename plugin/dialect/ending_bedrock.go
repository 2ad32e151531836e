package dialect

// A stream of Converse's ends by contentBlockStop for the block that is open, messageStop with the reason,
// and metadata with the usage. Blocks of text have no event that opens them.
var converseEnding = tail{spots: converseSpots(), step: converseStep, write: endConverse}

// A stream of InvokeModel's ends as the model's own API does, by its family, and its last event has
// Bedrock's figures.
var invokeEnding = tail{spots: invokeSpots(), step: claudeStep, write: endInvoke}

func converseSpots() []spot {
	s := append(claudeSpots[:], make([]spot, baNodes-caNodes)...)
	s[caType] = noSpot
	return s
}

// Families of models that have no types of events.
const (
	novaFamily = iota // none of the others
	llamaFamily
	titanFamily
	mistralFamily
	cohereFamily
	choicesFamily // OpenAI's, AI21's and others'
)

func invokeSpots() []spot {
	s := append(claudeSpots[:], make([]spot, baNodes-caNodes)...)
	s[baEvent], s[baEventStop], s[baMetadata] = openSpot, closeSpot, overSpot
	s[baChoice] = itemSpot
	for family, n := range [...]uint8{llamaFamily: baGeneration, titanFamily: baTitanText, mistralFamily: baOutputs, cohereFamily: baCohereText, choicesFamily: baChoices} {
		if n != 0 {
			s[n] = familySpot + spot(family) - 1
		}
	}
	return s
}

func converseStep(name []byte) step {
	switch string(name) {
	case "contentBlockStart", "contentBlockDelta":
		return openStep
	case "contentBlockStop":
		return closeStep
	case "metadata":
		return overStep
	}
	return noStep
}

func endConverse(w *endWriter, at *standing, e End) bool {
	at.blocks(func(index int64, _ bool) {
		w.event("contentBlockStop", `{"contentBlockIndex":`+decimal(index)+`}`)
	})
	if !at.stopped {
		w.event("messageStop", `{"stopReason":"max_tokens"}`)
	}
	w.event("metadata", `{"metrics":{"latencyMs":0},"usage":`+converseUsage(e.Usage)+`}`)
	return true
}

func converseUsage(u Usage) string {
	return `{"inputTokens":` + decimal(freshInput(u)) + `,"outputTokens":` + decimal(u.Output) + `,"totalTokens":` + decimal(u.Input+u.Output) +
		`,"cacheReadInputTokens":` + decimal(u.CachedInput) + `,"cacheWriteInputTokens":` + decimal(u.CacheWrite+u.CacheHour) + `}`
}

func endInvoke(w *endWriter, at *standing, e End) bool {
	u := e.Usage
	metrics := `,"amazon-bedrock-invocationMetrics":{"inputTokenCount":` + decimal(freshInput(u)) + `,"outputTokenCount":` + decimal(u.Output) +
		`,"invocationLatency":0,"firstByteLatency":0}`
	if at.started {
		return endClaudeWith(w, at, e, metrics)
	}
	if at.family == novaFamily {
		at.blocks(func(index int64, _ bool) {
			w.event("", `{"contentBlockStop":{"contentBlockIndex":`+decimal(index)+`}}`)
		})
		if !at.stopped {
			w.event("", `{"messageStop":{"stopReason":"max_tokens"}}`)
		}
		w.event("", `{"metadata":{"usage":`+converseUsage(u)+`,"metrics":{}}`+metrics+`}`)
		return true
	}
	if at.stopped || at.family == choicesFamily && !at.unfinished() {
		return false
	}
	switch at.family {
	case llamaFamily:
		w.event("", `{"generation":"","prompt_token_count":null,"generation_token_count":`+decimal(u.Output)+`,"stop_reason":"length"`+metrics+`}`)
	case titanFamily:
		w.event("", `{"outputText":"","index":0,"totalOutputTextTokenCount":`+decimal(u.Output)+`,"completionReason":"LENGTH","inputTextTokenCount":`+decimal(u.Input)+metrics+`}`)
	case mistralFamily:
		w.event("", `{"outputs":[{"text":"","stop_reason":"length"}]`+metrics+`}`)
	case cohereFamily:
		w.event("", `{"text":"","is_finished":true,"finish_reason":"MAX_TOKENS"`+metrics+`}`)
	case choicesFamily:
		list := ""
		at.answers(func(i int64) {
			if list != "" {
				list += ","
			}
			list += `{"index":` + decimal(i) + `,"delta":{},"finish_reason":"length"}`
		})
		w.event("", `{"choices":[`+list+`]`+metrics+`}`)
	}
	return true
}
