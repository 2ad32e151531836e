package dialect

// openAIResponses is OpenAI's Responses API: POST /v1/responses, and /v1/responses/compact, which
// has a model shorten a conversation. vLLM, Azure, xAI and OpenRouter speak it too.
type openAIResponses struct{ inPath }

func (openAIResponses) Name() string { return "openai-responses" }

func (openAIResponses) Refusal(r Refusal) ([][2]string, []byte) { return openAIRefusal(r) }

func (d openAIResponses) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	return respRequest.newScanner(d.facts(), maxDepth, sink)
}

func (openAIResponses) NewMeter(h ResponseHead, sink Sink) Meter {
	return respAnswer.newMeter(h, sink)
}

// openAICount counts the tokens of such a request (POST /v1/responses/input_tokens). It is free.
type openAICount struct{ openAIResponses }

func (openAICount) Name() string { return "openai-input-tokens" }

func (d openAICount) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	f := d.facts()
	f.Free = true
	return respRequest.newScanner(f, maxDepth, sink)
}

func (openAICount) NewMeter(h ResponseHead, sink Sink) Meter { return freeAnswer.newMeter(h, sink) }

func recogniseOpenAIResponses(c *call) Dialect {
	if at, ok := c.onOpenAI("responses"); ok {
		return openAIResponses{at}
	}
	if at, ok := c.onOpenAI("responses", "compact"); ok {
		return openAIResponses{at}
	}
	if at, ok := c.onOpenAI("responses", "input_tokens"); ok {
		return openAICount{openAIResponses{at}}
	}
	return nil
}

// Places of an answer, or of one event of a streamed one. The events that repeat what the deltas
// said (response.output_text.done, response.output_item.done, the output of response.completed) are
// not read for their text.
const (
	respAnsRoot uint8 = iota + 1
	respAnsType
	respAnsIndex
	respAnsDelta
	respAnsResponse
	respAnsUsage
	respAnsTools
	respAnsSearch
	respAnsSearches
	respAnsDrawing
	respAnsDrawInput
	respAnsDrawOutput
	respAnsError
	respAnsOutput
	respAnsItem
	respAnsContent
	respAnsText
	respAnsNumber
	respAnsID
	respAnsModel
	respAnsCreated
	respAnsNodes
)

var respAnswer = answer{schema: respAnsSchema[:], roles: respAnsRoles[:], usage: readOpenAIUsage, event: respEvent,
	figure: setToolUsage, tail: &responsesEnding}

var respAnsSchema = [respAnsNodes]node{
	respAnsRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
		{"type", respAnsType}, {"output_index", respAnsIndex}, {"delta", respAnsDelta}, {"response", respAnsResponse},
		{"usage", respAnsUsage}, {"tool_usage", respAnsTools}, {"error", respAnsError}, {"output", respAnsOutput},
		{"sequence_number", respAnsNumber},
	}},
	respAnsType:  {value: true},
	respAnsIndex: {},
	respAnsDelta: {text: true},
	respAnsResponse: {fields: []field{
		{"usage", respAnsUsage}, {"tool_usage", respAnsTools}, {"error", respAnsError},
		{"id", respAnsID}, {"model", respAnsModel}, {"created_at", respAnsCreated},
	}},
	respAnsUsage: {raw: kindAny},
	// What the provider's own tools did, which usage leaves out: searches by their number, pictures by
	// the tokens of the model that drew them.
	respAnsTools:      {fields: []field{{"web_search", respAnsSearch}, {"image_gen", respAnsDrawing}}},
	respAnsSearch:     {fields: []field{{"num_requests", respAnsSearches}}},
	respAnsSearches:   {},
	respAnsDrawing:    {fields: []field{{"input_tokens", respAnsDrawInput}, {"output_tokens", respAnsDrawOutput}}},
	respAnsDrawInput:  {},
	respAnsDrawOutput: {},
	respAnsError:      {},
	respAnsOutput:     {elem: respAnsItem},
	respAnsItem: {fields: []field{
		{"content", respAnsContent}, {"summary", respAnsContent}, {"name", respAnsText}, {"arguments", respAnsText},
		{"input", respAnsText}, {"code", respAnsText},
	}},
	respAnsContent: {text: true, elem: respAnsContent, fields: []field{{"text", respAnsText}, {"refusal", respAnsText}}},
	respAnsText:    {text: true},
	respAnsNumber:  {},
	respAnsID:      {value: true},
	respAnsModel:   {value: true},
	respAnsCreated: {},
}

var respAnsRoles = [respAnsNodes]role{
	respAnsType: typeRole, respAnsIndex: indexRole, respAnsDelta: textRole, respAnsUsage: usageRole, respAnsError: errorRole,
	respAnsSearches: figureRole, respAnsDrawInput: figureRole, respAnsDrawOutput: figureRole,
	respAnsItem: itemRole, respAnsContent: textRole, respAnsText: textRole,
}

func setToolUsage(u *usageRecord, n uint8, v int64) {
	switch n {
	case respAnsSearches:
		u.searches = max(u.searches, v)
	case respAnsDrawInput:
		u.toolInput = max(u.toolInput, v)
	case respAnsDrawOutput:
		u.toolOutput = max(u.toolOutput, v)
	}
}

func respEvent(name string) mark {
	switch name {
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return endMark
	}
	return failsByName(name)
}

// freeAnswer reads answers to calls that cost nothing: whether they are errors.
var freeAnswer = answer{schema: embAnswer.schema, roles: embAnswer.roles, usage: readOpenAIUsage, event: failsByName, free: true}
