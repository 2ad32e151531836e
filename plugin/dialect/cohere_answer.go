package dialect

// Places of an answer of Cohere's, or of one event of a stream: of v2 in delta, of v1 at the root.
const (
	coaRoot uint8 = iota + 1
	coaType
	coaUsage
	coaResponse
	coaMessage
	coaDelta
	coaError
	coaIndex
	coaContent
	coaPiece
	coaWords
	coaPlan
	coaCalls
	coaCall
	coaFunction
	coaName
	coaArguments
	coaFinish
	coaID
	coaNodes
)

// cohereAnswer reads answers of the Chat API. Streams are server-sent events, or of v1 one JSON
// document a line, and end with message-end or stream-end, which has the usage.
var cohereAnswer = answer{schema: coaSchema[:], roles: coaRoles[:], usage: readCohereUsage, event: cohereEvent,
	tail: &cohereEnding}

func cohereEvent(name string) mark {
	switch name {
	case "message-end", "stream-end":
		return endMark
	case "error":
		return failMark
	}
	return noMark
}

var coaSchema = [coaNodes]node{
	coaRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
		{"type", coaType}, {"event_type", coaType}, {"usage", coaUsage}, {"meta", coaUsage}, {"response", coaResponse},
		{"message", coaMessage}, {"delta", coaDelta}, {"error", coaError}, {"index", coaIndex},
		{"text", coaWords}, {"tool_calls", coaCalls}, {"tool_call_delta", coaCall}, {"finish_reason", coaFinish},
		{"id", coaID},
	}},
	coaType:     {value: true},
	coaUsage:    {raw: kindAny},
	coaResponse: {fields: []field{{"meta", coaUsage}}}, // and the text once more
	// An object; a string is the message of an error.
	coaMessage: {fields: []field{{"content", coaContent}, {"tool_plan", coaPlan}, {"tool_calls", coaCalls}}},
	coaDelta:   {fields: []field{{"message", coaMessage}, {"usage", coaUsage}, {"error", coaError}, {"finish_reason", coaFinish}}},
	coaError:   {},
	coaIndex:   {},
	coaContent: {text: true, elem: coaPiece, fields: []field{{"text", coaWords}, {"thinking", coaWords}}},
	coaPiece:   {fields: []field{{"text", coaWords}, {"thinking", coaWords}}},
	coaWords:   {text: true},
	coaPlan:    {text: true},
	coaCalls:   {elem: coaCall, fields: []field{{"function", coaFunction}}},
	// v1 has name and parameters at once.
	coaCall:      {fields: []field{{"function", coaFunction}, {"name", coaName}, {"parameters", coaArguments}}},
	coaFunction:  {fields: []field{{"name", coaName}, {"arguments", coaArguments}}},
	coaName:      {text: true},
	coaArguments: {text: true, raw: kindAny &^ (kindString | kindNull)},
	coaFinish:    {},
	coaID:        {value: true},
}

var coaRoles = [coaNodes]role{
	coaType: typeRole, coaUsage: usageRole, coaError: errorRole, coaIndex: indexRole, coaFinish: finishRole,
	coaPiece: itemRole, coaWords: textRole, coaPlan: textRole, coaName: textRole, coaArguments: textRole,
}

// Figures of Cohere's records, and of those of others who rerank.
const (
	coBilledInput = iota
	coBilledOutput
	coBilledText
	coBilledImage
	coUnits
	coInput
	coOutput
	coCached
	coTotal
)

var cohereUsagePaths = [...]usagePath{
	{name: "billed_units", within: []usagePath{
		{name: "input_tokens", figure: coBilledInput}, {name: "output_tokens", figure: coBilledOutput},
		{name: "text_tokens", figure: coBilledText}, {name: "image_tokens", figure: coBilledImage},
		{name: "search_units", figure: coUnits},
	}},
	{name: "tokens", within: []usagePath{{name: "input_tokens", figure: coInput}, {name: "output_tokens", figure: coOutput}}},
	{name: "cached_tokens", figure: coCached},
	{name: "total_tokens", figure: coTotal}, {name: "prompt_tokens", figure: coTotal},
}

// readCohereUsage reads usage or meta of Cohere's, and usage of who has the same API for reranking. What
// is billed wins over what the model read: that has a preamble of Cohere's in it. Nothing is known of
// a record without any figure.
func readCohereUsage(raw []byte) usageRecord {
	r, ok := readUsage(raw, cohereUsagePaths[:])
	if !ok {
		return usageRecord{}
	}
	var u usageRecord
	for figure := range coTotal + 1 {
		u.seen = u.seen || r.found[figure] && figure != coCached
	}
	f := &r.figures
	u.input, u.output, u.cached, u.units = max(f[coBilledInput], f[coBilledText]+f[coBilledImage]), f[coBilledOutput], f[coCached], f[coUnits]
	if !r.found[coBilledInput] && u.input == 0 {
		u.input = max(f[coInput], f[coTotal])
	}
	if !r.found[coBilledOutput] {
		u.output = f[coOutput]
	}
	return u
}
