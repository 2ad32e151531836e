package dialect

import "github.com/tidwall/gjson"

// Places of Bedrock's answers beside those of Anthropic's.
const (
	baOutput = caNodes + iota
	baMessage
	baBlocks
	baBlock
	baUse
	baReasoning
	baReasoningText
	baThought
	baStart
	baDelta
	baUseDelta
	baPicture
	baCallsOf
	baCallOf
	baFunctionOf
	baEvent
	baMetadata
	baTitan
	baResult
	baParts
	baPart
	baChoices
	baChoice
	baIn
	baOut
	baAdd
	baEventStop
	baEventEnd
	baOutputs
	baGeneration
	baTitanText
	baCohereText
	baNodes
)

// The members of an event of Converse's, or of Nova's own, and of an answer that is none.
var converseAnswerFields = []field{
	{"output", baOutput}, {"stopReason", caFinish}, {"usage", caUsage}, {"contentBlockIndex", caIndex},
	{"start", baStart}, {"delta", baDelta},
}

// What a model's own answer, or an event of it, has.
var invokeAnswerFields = []field{
	{"type", caType}, {"message", caMessage}, {"error", caError}, {"index", caIndex}, // Anthropic
	{"content", caBlocks}, {"content_block", caStart}, {"stop_reason", caFinish},
	{"contentBlockStart", baEvent}, {"contentBlockDelta", baEvent}, {"contentBlockStop", baEventStop}, {"messageStop", baEventEnd}, {"metadata", baMetadata}, // Nova
	{"generation", baGeneration}, {"prompt_token_count", baIn}, {"generation_token_count", baOut}, // Llama
	{"inputTextTokenCount", baIn}, {"results", baTitan}, {"outputText", baTitanText}, {"totalOutputTextTokenCount", baOut}, {"completionReason", caFinish}, // Titan
	{"outputs", baOutputs}, {"choices", baChoices}, // Mistral, OpenAI
	{"text", baCohereText}, {"generations", baParts}, {"finish_reason", caFinish}, // Cohere
	{"amazon-bedrock-invocationMetrics", caUsage},
}

var converseAnswer = func() answer {
	a := bedrockAnswer(converseAnswerFields)
	a.tail = &converseEnding
	return a
}()

// invokeAnswer reads answers of every family; on a stream Bedrock adds its own figures to the last
// event, and otherwise to the head.
var invokeAnswer = func() answer {
	a := bedrockAnswer(append(invokeAnswerFields, converseAnswerFields...))
	a.wrapped, a.told, a.event, a.figure = true, readBedrockHeaders, claudeEvent, setBedrockFigure
	a.tail = &invokeEnding
	return a
}()

var bedrockCountAnswer = func() answer {
	a := bedrockAnswer([]field{{"error", caError}})
	a.free = true
	return a
}()

func bedrockAnswer(root []field) answer {
	s := append(caSchema[:], make([]node, baNodes-caNodes)...)
	for n, v := range map[uint8]node{
		caRoot:    {kinds: kindObject, want: "a JSON object", fields: root},
		baOutput:  {fields: []field{{"message", baMessage}}},
		baMessage: {fields: []field{{"content", baBlocks}}},
		baBlocks:  {elem: baBlock},
		baBlock: {fields: []field{
			{"text", caText}, {"toolUse", baUse}, {"reasoningContent", baReasoning}, {"citationsContent", baMessage}, {"image", baPicture},
		}},
		baUse:           {fields: []field{{"name", caName}, {"input", caInput}}},
		baReasoning:     {fields: []field{{"reasoningText", baReasoningText}, {"text", baThought}}},
		baReasoningText: {fields: []field{{"text", baThought}}},
		baThought:       {text: true},
		baPicture:       {},
		baStart:         {fields: []field{{"toolUse", baUse}}},
		// Converse's, and Anthropic's own.
		baDelta: {fields: []field{
			{"text", caText}, {"toolUse", baUse}, {"reasoningContent", baReasoning}, {"image", baPicture},
			{"thinking", caText}, {"partial_json", caInput}, {"content", caText}, {"stop_reason", caFinish},
		}},
		baEvent:      {fields: []field{{"start", baStart}, {"delta", baDelta}, {"contentBlockIndex", caIndex}, {"stopReason", caFinish}}},
		baEventStop:  {fields: []field{{"contentBlockIndex", caIndex}}},
		baEventEnd:   {fields: []field{{"stopReason", caFinish}}},
		baOutputs:    {elem: baPart},
		baGeneration: {text: true},
		baTitanText:  {text: true},
		baCohereText: {text: true},
		baMetadata:   {fields: []field{{"usage", caUsage}}},
		baTitan:      {elem: baResult},
		baResult:     {fields: []field{{"outputText", caText}, {"tokenCount", baAdd}, {"completionReason", caFinish}}},
		baParts:      {elem: baPart},
		baPart:       {fields: []field{{"text", caText}, {"stop_reason", caFinish}, {"finish_reason", caFinish}}},
		baChoices:    {elem: baChoice},
		baChoice: {fields: []field{
			{"index", caIndex}, {"message", baUseDelta}, {"delta", baUseDelta}, {"text", caText}, {"finish_reason", caFinish}, {"stop_reason", caFinish},
		}},
		baUseDelta:   {fields: []field{{"content", caText}, {"reasoning_content", caText}, {"reasoning", caText}, {"tool_calls", baCallsOf}}},
		baCallsOf:    {elem: baCallOf},
		baCallOf:     {fields: []field{{"function", baFunctionOf}}},
		baFunctionOf: {fields: []field{{"name", caName}, {"arguments", caInput}}},
		baIn:         {},
		baOut:        {},
		baAdd:        {},
	} {
		s[n] = v
	}
	roles := append(caRoles[:], make([]role, baNodes-caNodes)...)
	for _, n := range [...]uint8{baBlock, baPart, baChoice, baResult} {
		roles[n] = itemRole
	}
	roles[baThought], roles[baPicture] = textRole, producedRole
	roles[baGeneration], roles[baTitanText], roles[baCohereText] = textRole, textRole, textRole
	roles[baIn], roles[baOut], roles[baAdd] = figureRole, figureRole, figureRole
	return answer{schema: s, roles: roles, usage: readBedrockUsage, event: failsByName, frames: true}
}

// setBedrockFigure takes figures that stand alone. Those of several results of one answer add up.
func setBedrockFigure(u *usageRecord, n uint8, v int64) {
	u.seen = true
	switch n {
	case baIn:
		u.input = v
	case baOut:
		u.output = v
	case baAdd:
		u.output = min(u.output+v, maxUsage)
	}
}

var bedrockUsagePaths = append([]usagePath{
	{name: "inputTokens", figure: clInput}, {name: "inputTokenCount", figure: clInput}, {name: "prompt_tokens", figure: clInput},
	{name: "cacheReadInputTokens", figure: clRead}, {name: "cacheReadInputTokenCount", figure: clRead},
	{name: "cacheWriteInputTokens", figure: clWritten}, {name: "cacheWriteInputTokenCount", figure: clWritten},
	{name: "outputTokens", figure: clWrote}, {name: "outputTokenCount", figure: clWrote}, {name: "completion_tokens", figure: clWrote},
}, claudeUsagePaths[:]...)

// readBedrockUsage reads a usage of Converse's (inputTokens), of a model's own, or Bedrock's metrics of an
// invocation (inputTokenCount). What was read from the cache and written to it is not in the input: the
// total is their sum (TokenUsage and "Prompt caching" of Bedrock's documentation, read 2026-10).
func readBedrockUsage(raw []byte) usageRecord {
	r, ok := readUsage(raw, bedrockUsagePaths)
	if !ok || !r.found[clInput] && !r.found[clWrote] {
		return usageRecord{}
	}
	f := &r.figures
	gjson.GetBytes(raw, "cacheDetails").ForEach(func(_, v gjson.Result) bool {
		if v.Get("ttl").Str == "1h" {
			r.take(clHour, v.Get("inputTokens"))
		}
		return true
	})
	if r.bad {
		return usageRecord{}
	}
	return usageRecord{
		seen: true, apart: true,
		fresh: f[clInput], cached: f[clRead], hour: f[clHour],
		written: max(f[clWritten], f[clShort]+f[clHour]),
		output:  f[clWrote], reasoning: f[clThought], searches: f[clSearches],
	}
}
