package dialect

import "strings"

// openAISpeech is OpenAI's text to speech (POST /v1/audio/speech). Its answer is sound, which passes at
// once and tells nothing, or events of it.
type openAISpeech struct{ inPath }

func (openAISpeech) Name() string { return "openai-speech" }

func (openAISpeech) Refusal(r Refusal) ([][2]string, []byte) { return openAIRefusal(r) }

func (d openAISpeech) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	f := d.facts()
	f.NoChat = true
	return speechRequest.newScanner(f, maxDepth, sink)
}

func (openAISpeech) NewMeter(h ResponseHead, sink Sink) Meter { return speechAnswer.newMeter(h, sink) }

func recogniseOpenAISpeech(c *call) Dialect {
	if at, ok := c.onOpenAI("audio", "speech"); ok {
		return openAISpeech{at}
	}
	return nil
}

const (
	speechRoot uint8 = iota + 1
	speechModel
	speechText
	speechStream
	speechNodes
)

var speechRequest = request{
	schema: []node{
		speechRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
			{"model", speechModel}, {"input", speechText}, {"instructions", speechText}, {"stream_format", speechStream},
		}},
		speechModel:  {kinds: kindString, want: "a string", value: true},
		speechText:   {text: true},
		speechStream: {value: true},
	},
	texts: make([]Part, speechNodes), items: make([]Item, speechNodes),
	set: func(f *Facts, n uint8, k kinds, p []byte, at Span) string {
		switch n {
		case speechModel:
			f.setModel(k, p, at)
		case speechStream:
			f.Stream = string(p) == "sse"
		}
		return ""
	},
	length: speechText,
	done: func(f *Facts, said int64) {
		if strings.HasPrefix(f.Model, "tts-") { // billed by the letter
			f.NoOutput = true
			return
		}
		// A minute of speech is 1250 tokens (gpt-4o-mini-tts: 0.015 $ at 12 $ a million), and some 800
		// letters of English or 200 signs of Chinese, of three bytes each.
		f.MaxOutput, f.HasMaxOutput = 2*said+1, true
	},
}

// speechAnswer reads events; the sound in them is no text. Plain sound is opaque, and what was
// reserved is then the estimate.
var speechAnswer = answer{
	schema: []node{
		audioAnsRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
			{"type", audioAnsType}, {"usage", audioAnsUsage}, {"error", audioAnsError}, {"audio", audioAnsDelta},
		}},
		audioAnsType:  {value: true},
		audioAnsUsage: {raw: kindAny},
		audioAnsError: {},
		audioAnsDelta: {},
	},
	roles: []role{audioAnsType: typeRole, audioAnsUsage: usageRole, audioAnsError: errorRole, audioAnsDelta: producedRole},
	usage: readOpenAIUsage, event: audioEvent,
}
