package clients

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// In Go both SDKs have one error type: what went wrong is its status.

// spend spends a budget, and asks on until that is booked, some milliseconds after the answer.
func spend(ask func(content string) record) record {
	r := ask("Say hello and spend.")
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 100 {
		if r.Error != "" {
			break
		}
		<-tick.C
		r = ask("Say hello.")
	}
	return r
}

type goOpenAI struct{ base string }

func (c goOpenAI) client(kind string) openai.Client {
	return openai.NewClient(option.WithBaseURL(c.base+"/v1/"), option.WithAPIKey(kind+"-go-openai"))
}

func (c goOpenAI) ask(kind, content, model string) record {
	client := c.client(kind)
	a, err := client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{
		Model: model, MaxTokens: openai.Int(50), Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(content)},
	})
	if err != nil {
		return openaiFault(err)
	}
	return record{Text: a.Choices[0].Message.Content, In: int(a.Usage.PromptTokens), Out: int(a.Usage.CompletionTokens)}
}

func openaiFault(err error) record {
	var e *openai.Error
	if errors.As(err, &e) {
		return record{Error: "Error", Status: e.StatusCode, Says: e.RawJSON()}
	}
	return record{Error: fmt.Sprintf("%T", err), Says: err.Error()}
}

func (c goOpenAI) stream() record {
	client := c.client("free")
	s := client.Chat.Completions.NewStreaming(context.Background(), openai.ChatCompletionNewParams{
		Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Say hello.")},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	})
	var whole openai.ChatCompletionAccumulator
	for s.Next() {
		whole.AddChunk(s.Current())
	}
	if s.Err() != nil {
		return openaiFault(s.Err())
	}
	return record{Text: whole.Choices[0].Message.Content, In: int(whole.Usage.PromptTokens), Out: int(whole.Usage.CompletionTokens)}
}

func (c goOpenAI) tools() record {
	client := c.client("free")
	a, err := client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{
		Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Where?")},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: "look_up", Parameters: openai.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}},
		})},
	})
	if err != nil {
		return openaiFault(err)
	}
	call := a.Choices[0].Message.ToolCalls[0].Function
	return record{Text: call.Name + call.Arguments, In: int(a.Usage.PromptTokens), Out: int(a.Usage.CompletionTokens)}
}

func (c goOpenAI) embeddings() record {
	client := c.client("free")
	a, err := client.Embeddings.New(context.Background(), openai.EmbeddingNewParams{Model: "embed", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("hello there")}})
	if err != nil {
		return openaiFault(err)
	}
	return record{Text: fmt.Sprint(a.Data[0].Embedding), In: int(a.Usage.PromptTokens)}
}

func (c goOpenAI) twice(kind string) record {
	if r := c.ask(kind, "Say hello.", "m"); r.Error != "" {
		return r
	}
	return c.ask(kind, "Say hello.", "m")
}

func (c goOpenAI) cases() map[string]record {
	return map[string]record{
		"chat":       c.ask("free", "Say hello.", "m"),
		"stream":     c.stream(),
		"tools":      c.tools(),
		"embeddings": c.embeddings(),
		"limited":    c.twice("limited"),
		"brief":      c.twice("brief"),
		"broke":      spend(func(content string) record { return c.ask("broke", content, "m") }),
		"big":        c.ask("big", "Say hello.", "m"),
		"killed":     c.ask("killed", "Say hello.", "stopped"),
	}
}

type goAnthropic struct{ base string }

func (c goAnthropic) client(kind string) anthropic.Client {
	return anthropic.NewClient(anthropicoption.WithBaseURL(c.base), anthropicoption.WithAPIKey(kind+"-go-anthropic"))
}

func anthropicCall(content, model string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{Model: anthropic.Model(model), MaxTokens: 50,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(content))}}
}

func anthropicFault(err error) record {
	var e *anthropic.Error
	if errors.As(err, &e) {
		return record{Error: "Error", Status: e.StatusCode, Says: e.RawJSON()}
	}
	return record{Error: fmt.Sprintf("%T", err), Says: err.Error()}
}

func (c goAnthropic) ask(kind, content, model string) record {
	client := c.client(kind)
	a, err := client.Messages.New(context.Background(), anthropicCall(content, model))
	if err != nil {
		return anthropicFault(err)
	}
	return record{Text: a.Content[0].Text, In: int(a.Usage.InputTokens), Out: int(a.Usage.OutputTokens)}
}

func (c goAnthropic) stream() record {
	client := c.client("free")
	s := client.Messages.NewStreaming(context.Background(), anthropicCall("Say hello.", "m"))
	var whole anthropic.Message
	for s.Next() {
		if err := whole.Accumulate(s.Current()); err != nil {
			return record{Error: "Accumulate", Says: err.Error()}
		}
	}
	if s.Err() != nil {
		return anthropicFault(s.Err())
	}
	return record{Text: whole.Content[0].Text, In: int(whole.Usage.InputTokens), Out: int(whole.Usage.OutputTokens)}
}

func (c goAnthropic) twice(kind string) record {
	if r := c.ask(kind, "Say hello.", "m"); r.Error != "" {
		return r
	}
	return c.ask(kind, "Say hello.", "m")
}

func (c goAnthropic) cases() map[string]record {
	return map[string]record{
		"chat":    c.ask("free", "Say hello.", "m"),
		"stream":  c.stream(),
		"limited": c.twice("limited"),
		"brief":   c.twice("brief"),
		"broke":   spend(func(content string) record { return c.ask("broke", content, "m") }),
		"big":     c.ask("big", "Say hello.", "m"),
		"killed":  c.ask("killed", "Say hello.", "stopped"),
	}
}
