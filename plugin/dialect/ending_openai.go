package dialect

// A stream of Chat's ends by a chunk with a finish_reason for each choice, the usage if it was asked for,
// and [DONE]. openai-node wants the reason of every choice it has seen (finalizeChatCompletion), and a
// role of it, which its first chunk had. Tool calls whose arguments are cut off stay as they are: where
// the reason is length, both libraries leave them unread.
var (
	chatEnding       = tail{spots: chatSpots[:], step: noSteps, write: endChat}
	completionEnding = tail{spots: chatSpots[:], step: noSteps, write: endCompletion}
)

var chatSpots = [ansNodes]spot{
	ansID: idSpot, ansModel: modelSpot, ansCreated: timeSpot,
	ansChoice: itemSpot, ansPlace: indexSpot, ansFinish: reasonSpot, ansUsage: usageSpot,
}

func noSteps([]byte) step { return noStep }

func endChat(w *endWriter, at *standing, e End) bool {
	delta := `"delta":{}`
	if at.seen == 0 {
		delta = `"delta":{"role":"assistant","content":""}`
	}
	return endChoices(w, at, e, `"object":"chat.completion.chunk",`, delta)
}

func endCompletion(w *endWriter, at *standing, e End) bool {
	return endChoices(w, at, e, `"object":"text_completion",`, `"text":""`)
}

func endChoices(w *endWriter, at *standing, e End, object, empty string) bool {
	head := `{` + at.text("id", idSpot) + object + at.time("created", "0") + at.text("model", modelSpot) + `"choices":[`
	usage := ""
	if e.Report {
		usage = `,"usage":null` // as in all chunks but the last of a stream that was asked for it
	}
	at.answers(func(i int64) {
		w.event("", head+`{"index":`+decimal(i)+`,`+empty+`,"logprobs":null,"finish_reason":"length"}]`+usage+`}`)
	})
	if e.Report && !at.reported {
		w.event("", head+`],"usage":`+chatUsage(e.Usage)+`}`)
	}
	w.line("[DONE]")
	return true
}

func chatUsage(u Usage) string {
	return `{"prompt_tokens":` + decimal(u.Input) + `,"completion_tokens":` + decimal(u.Output) + `,"total_tokens":` + decimal(u.Input+u.Output) +
		`,"prompt_tokens_details":{"cached_tokens":` + decimal(u.CachedInput) + `,"audio_tokens":` + decimal(u.AudioInput) +
		`},"completion_tokens_details":{"reasoning_tokens":` + decimal(u.Reasoning) + `,"audio_tokens":` + decimal(u.AudioOutput) + `}}`
}

// A stream of the Responses API ends by one event with the whole response. What was written is not kept
// here, so its output is empty; none is not allowed, since openai-node and LangChain read through it
// unasked. openai-python raises where its id is not that of response.created. The texts and calls that
// are open stay so: the events that end them repeat all of their text, which the libraries take in place
// of what they have gathered.
var responsesEnding = tail{spots: responsesSpots[:], step: responsesStep, write: endResponse}

var responsesSpots = [respAnsNodes]spot{
	respAnsType: typeSpot, respAnsNumber: numberSpot,
	respAnsID: idSpot, respAnsModel: modelSpot, respAnsCreated: timeSpot,
}

func responsesStep(name []byte) step {
	switch {
	case string(name) == "response.created":
		return startStep
	case respEvent(string(name)) == endMark:
		return overStep
	}
	return noStep
}

func endResponse(w *endWriter, at *standing, e End) bool {
	u := e.Usage
	if !at.started || at.words[0] == "" {
		return false
	}
	w.event("response.incomplete", `{"type":"response.incomplete","sequence_number":`+decimal(at.number+1)+
		`,"response":{`+at.text("id", idSpot)+`"object":"response",`+at.time("created_at", "0")+`"status":"incomplete","error":null,"incomplete_details":{"reason":"max_output_tokens"},`+
		`"instructions":null,"metadata":{},`+at.text("model", modelSpot)+`"output":[],"parallel_tool_calls":true,"tool_choice":"auto","tools":[],`+
		`"usage":{"input_tokens":`+decimal(u.Input)+`,"input_tokens_details":{"cached_tokens":`+decimal(u.CachedInput)+
		`},"output_tokens":`+decimal(u.Output)+`,"output_tokens_details":{"reasoning_tokens":`+decimal(u.Reasoning)+
		`},"total_tokens":`+decimal(u.Input+u.Output)+`}}}`)
	return true
}
