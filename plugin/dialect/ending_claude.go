package dialect

// A stream of Anthropic's ends by content_block_stop for the block that is open, message_delta with the
// reason and the usage of the whole message, and message_stop. The libraries take these figures in place
// of those of message_start, so all are said again. A tool's input that is cut off reads as far as it
// goes (jiter's partial mode, partialParse).
var claudeEnding = tail{spots: claudeSpots[:], step: claudeStep, write: endClaude}

var claudeSpots = [caNodes]spot{caType: typeSpot, caIndex: indexSpot, caFinish: reasonSpot}

func claudeStep(name []byte) step {
	switch string(name) {
	case "message_start":
		return startStep
	case "content_block_start":
		return openStep
	case "content_block_stop":
		return closeStep
	case "message_stop":
		return overStep
	}
	return noStep
}

func endClaude(w *endWriter, at *standing, e End) bool { return endClaudeWith(w, at, e, "") }

// endClaudeWith adds members to the last event.
func endClaudeWith(w *endWriter, at *standing, e End, more string) bool {
	if !at.started {
		return false
	}
	at.blocks(func(index int64, _ bool) {
		w.event("content_block_stop", `{"type":"content_block_stop","index":`+decimal(index)+`}`)
	})
	if !at.stopped {
		written := e.Usage.CacheWrite + e.Usage.CacheHour
		w.event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"input_tokens":`+
			decimal(freshInput(e.Usage))+`,"cache_creation_input_tokens":`+decimal(written)+`,"cache_read_input_tokens":`+decimal(e.Usage.CachedInput)+
			`,"output_tokens":`+decimal(e.Usage.Output)+`}}`)
	}
	w.event("message_stop", `{"type":"message_stop"`+more+`}`)
	return true
}

// freshInput is the input that the cache had no part in, as APIs report it that leave the cache's out.
func freshInput(u Usage) int64 {
	return max(int64(u.Input-u.CachedInput-u.CacheWrite-u.CacheHour), 0)
}
