package upstream

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// usage is what the chat answer reports. A negative output means as many as the request allows.
type usage struct {
	in, out, cached int
	reasoning       int
	text            string
	none            bool // no usage in the answer
	always          bool // streams carry it even if it was not asked for
	pieces          int  // parts the text is cut into on a stream
}

var defaultUsage = usage{in: 12, out: 7, text: "Hello from the model, how can I help?", pieces: 3}

// outMax stands for "as many tokens as the request allows".
const outMax = -1

func parseUsage(text string) (usage, error) {
	u := defaultUsage
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		var err error
		switch name {
		case "in":
			u.in, err = strconv.Atoi(value)
		case "out":
			if value == "max" {
				u.out = outMax
			} else {
				u.out, err = strconv.Atoi(value)
			}
		case "cached":
			u.cached, err = strconv.Atoi(value)
		case "reasoning":
			u.reasoning, err = strconv.Atoi(value)
		case "pieces":
			u.pieces, err = strconv.Atoi(value)
			if err == nil && u.pieces < 1 {
				err = fmt.Errorf("below 1")
			}
		case "text":
			u.text = strings.ReplaceAll(value, "_", " ")
		case "usage":
			u.none, u.always = value == "none", value == "always"
			if !u.none && !u.always {
				err = fmt.Errorf("want none or always")
			}
		default:
			return u, fmt.Errorf("unknown word %q", word)
		}
		if err != nil {
			return u, fmt.Errorf("%s: %w", word, err)
		}
	}
	return u, nil
}

// ask is what the default answer reads of a request.
type ask struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	MaxTokens     int    `json:"max_tokens"`
	MaxCompletion int    `json:"max_completion_tokens"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

func readAsk(body []byte) ask {
	a := ask{Model: "unknown"}
	json.Unmarshal(body, &a) // what can't be read stays as it is
	return a
}

type object = map[string]any

func (u usage) object(a ask) object {
	out := u.out
	if out == outMax {
		out = max(a.MaxTokens, a.MaxCompletion)
	}
	return object{
		"prompt_tokens":             u.in,
		"completion_tokens":         out,
		"total_tokens":              u.in + out,
		"prompt_tokens_details":     object{"cached_tokens": u.cached},
		"completion_tokens_details": object{"reasoning_tokens": u.reasoning},
	}
}

// chat gives the answer of OpenAI's Chat Completions in the shape the request asks for.
func (p *player) chat(u usage) error {
	a := readAsk(p.body)
	if a.Stream {
		return p.chatStream(a, u)
	}
	answer := object{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1900000000, "model": a.Model,
		"choices": []object{{
			"index": 0, "finish_reason": "stop",
			"message": object{"role": "assistant", "content": u.text},
		}},
	}
	if !u.none {
		answer["usage"] = u.object(a)
	}
	body := marshal(answer)
	if !p.started {
		p.w.Header().Set("Content-Type", "application/json")
		if p.coder == nil {
			p.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		}
	}
	return p.write(body)
}

func (p *player) chatStream(a ask, u usage) error {
	p.asStream()
	frame := func(choices []object, usage any) error {
		f := object{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1900000000,
			"model": a.Model, "choices": choices,
		}
		if usage != nil {
			f["usage"] = usage
		}
		return p.write([]byte("data: " + string(marshal(f)) + "\n\n"))
	}
	for i := range u.pieces {
		piece := u.text[len(u.text)*i/u.pieces : len(u.text)*(i+1)/u.pieces]
		delta := object{"content": piece}
		if i == 0 {
			delta["role"] = "assistant"
		}
		if err := frame([]object{{"index": 0, "delta": delta, "finish_reason": nil}}, nil); err != nil {
			return err
		}
	}
	if err := frame([]object{{"index": 0, "delta": object{}, "finish_reason": "stop"}}, nil); err != nil {
		return err
	}
	if !u.none && (u.always || a.StreamOptions.IncludeUsage) {
		if err := frame([]object{}, u.object(a)); err != nil {
			return err
		}
	}
	return p.write([]byte("data: [DONE]\n\n"))
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings and numbers only
	}
	return b
}
