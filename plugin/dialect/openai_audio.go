package dialect

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/emmer-proxy/emmer/bucket"
)

// openAIAudio is OpenAI's speech to text: POST /v1/audio/transcriptions and /v1/audio/translations,
// which Azure, Groq, Mistral and vLLM speak too. The sound comes as a file of a form.
type openAIAudio struct{ inPath }

func (openAIAudio) Name() string { return "openai-audio" }

func (openAIAudio) Refusal(r Refusal) ([][2]string, []byte) { return openAIRefusal(r) }

func (d openAIAudio) NewScanner(h RequestHead, _ int, sink Sink) Scanner {
	f := d.facts()
	f.NoChat = true
	return audioForm.newScanner(h, f, sink)
}

func (openAIAudio) NewMeter(h ResponseHead, sink Sink) Meter { return audioAnswer.newMeter(h, sink) }

func recogniseOpenAIAudio(c *call) Dialect {
	for _, name := range [...]string{"transcriptions", "translations"} {
		if at, ok := c.onOpenAI("audio", name); ok {
			return openAIAudio{at}
		}
	}
	return nil
}

var audioForm = form{
	fields: []formField{
		{name: "model"}, {name: "stream"}, {name: "prompt", kind: formText}, {name: "file", kind: formFile},
	},
	set: setForm, file: hear, done: endAudio,
}

// setForm takes the fields that forms of several APIs have.
func setForm(f *Facts, name, value string, at Span) string {
	switch name {
	case "model":
		if f.ModelInPath == (Span{}) {
			f.Model, f.ModelSpan, f.ModelPlain = value, at, true
		}
	case "stream":
		switch value {
		case "true", "True", "1":
			f.Stream = true
		}
	}
	return ""
}

// hear takes the length of a sound: of a WAV as its head says, of others by the least bytes that a
// second takes as people store speech, so that the guess is on the high side. The answer tells the truth.
func hear(f *Facts, _ string, size int64, head []byte) {
	rate := int64(2000) // Opus and AAC at 16 kbit/s
	switch {
	case len(head) >= 32 && string(head[:4]) == "RIFF" && string(head[8:16]) == "WAVEfmt ":
		rate = int64(head[28]) | int64(head[29])<<8 | int64(head[30])<<16 | int64(head[31])<<24
		rate = min(max(rate, 1000), mostWAV)
	case len(head) >= 4 && string(head[:4]) == "fLaC":
		rate = 12_000 // 16 kHz, one channel
	case len(head) >= 3 && string(head[:3]) == "ID3", len(head) >= 2 && head[0] == 0xff && head[1]&0xe0 == 0xe0:
		rate = 4000 // MP3 at 32 kbit/s
	}
	f.AudioMillis = bucket.Millis(min(size, maxUsage)*1000/rate + 1)
}

// mostWAV is the bytes of a second of two channels at 48 kHz in 32 bits: no speech takes more, and a head
// that lies would make it short.
const mostWAV = 384_000

// OpenAI counts a token for each 100 ms of sound (its guide to audio, read 2026-10). Speech is below
// three words a second, and a word below two tokens.
const (
	millisHeard   = 100
	millisWritten = 200
)

// endAudio puts the sound into tokens, for models that are billed by them.
func endAudio(f *Facts) {
	if strings.HasPrefix(f.Model, "whisper") { // billed by the minute
		f.NoOutput = true
		return
	}
	f.TokenIDs += int64(f.AudioMillis)/millisHeard + 1
	f.MaxOutput, f.HasMaxOutput = int64(f.AudioMillis)/millisWritten+1, true
}

// Places of an answer, or of an event of a streamed one.
const (
	audioAnsRoot uint8 = iota + 1
	audioAnsType
	audioAnsUsage
	audioAnsError
	audioAnsText
	audioAnsDelta
	audioAnsNodes
)

var audioAnswer = answer{
	schema: []node{
		audioAnsRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
			{"type", audioAnsType}, {"usage", audioAnsUsage}, {"duration", audioAnsUsage}, {"error", audioAnsError},
			{"text", audioAnsText}, {"delta", audioAnsDelta},
		}},
		audioAnsType:  {value: true},
		audioAnsUsage: {raw: kindAny},
		audioAnsError: {},
		audioAnsText:  {text: true},
		audioAnsDelta: {text: true},
	},
	roles: []role{audioAnsType: typeRole, audioAnsUsage: usageRole, audioAnsError: errorRole,
		audioAnsText: repeatRole, audioAnsDelta: textRole},
	usage: readAudioUsage, event: audioEvent,
}

func audioEvent(name string) mark {
	switch name {
	case "transcript.text.done", "speech.audio.done":
		return endMark
	}
	return failsByName(name)
}

// readAudioUsage reads {"type":"tokens",...}, {"type":"duration","seconds":9}, Mistral's
// prompt_audio_seconds beside its tokens, or the duration that stands alone in a long answer.
func readAudioUsage(raw []byte) usageRecord {
	if len(raw) == 0 || raw[0] != '{' {
		if millis, ok := parseSeconds(raw); ok && millis > 0 {
			return usageRecord{seen: true, audioMillis: millis}
		}
		return usageRecord{}
	}
	u := readOpenAIUsage(raw)
	for _, key := range [...]string{"seconds", "prompt_audio_seconds"} {
		v := gjson.GetBytes(raw, key)
		if !v.Exists() || v.Type == gjson.Null {
			continue
		}
		millis, ok := parseSeconds([]byte(v.Raw))
		if !ok {
			return usageRecord{}
		}
		u.seen, u.audioMillis = true, max(u.audioMillis, millis)
	}
	return u
}

// parseSeconds reads a JSON number of seconds, or a string of one, as milliseconds, rounded up.
func parseSeconds(raw []byte) (int64, bool) {
	if n := len(raw); n >= 2 && raw[0] == '"' && raw[n-1] == '"' {
		raw = raw[1 : n-1]
	}
	const most = maxUsage / 1000
	whole, millis, unit, digits := int64(0), int64(0), int64(1000), 0
	fraction, more := false, false
	for _, c := range raw {
		switch {
		case c == '.' && !fraction && digits > 0:
			fraction = true
		case c < '0' || c > '9': // a sign or an exponent: no length of a sound
			return 0, false
		case !fraction:
			if whole = whole*10 + int64(c-'0'); whole > most {
				return 0, false
			}
			digits++
		case unit > 1:
			unit /= 10
			millis += int64(c-'0') * unit
		default:
			more = more || c != '0'
		}
	}
	if more {
		millis++
	}
	return whole*1000 + millis, digits > 0
}
