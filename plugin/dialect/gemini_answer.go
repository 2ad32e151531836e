package dialect

import "github.com/tidwall/gjson"

// Places of an answer, or of one piece of a streamed answer, that are read.
const (
	gemaRoot uint8 = iota + 1
	gemaUsage
	gemaError
	gemaFeedback
	gemaBlocked
	gemaCandidates
	gemaCandidate
	gemaIndex
	gemaFinish
	gemaContent
	gemaParts
	gemaPart
	gemaText
	gemaData
	gemaCall
	gemaName
	gemaArgs
	gemaCode
	gemaGrounds
	gemaQueries
	gemaQuery
	gemaWrapped
	gemaID
	gemaModel
	gemaNodes
)

// geminiAnswer reads answers of generateContent, whole, as events or as the elements of an array. One
// that was blocked ends without a candidate.
var geminiAnswer = answer{schema: gemaSchema[:], roles: gemaRoles[:], usage: readGeminiUsage, event: failsByName,
	tail: &geminiEnding}

var geminiCountAnswer = answer{schema: gemaSchema[:], roles: gemaRoles[:], usage: readGeminiUsage, event: failsByName, free: true}

// What a piece has. Code Assist's is within another.
var geminiPiece = []field{
	{"candidates", gemaCandidates}, {"promptFeedback", gemaFeedback}, {"usageMetadata", gemaUsage}, {"error", gemaError},
	{"responseId", gemaID}, {"modelVersion", gemaModel},
}

var gemaSchema = [gemaNodes]node{
	gemaRoot:       {kinds: kindObject, want: "a JSON object", fields: append([]field{{"response", gemaWrapped}}, geminiPiece...)},
	gemaWrapped:    {fields: geminiPiece},
	gemaID:         {value: true},
	gemaModel:      {value: true},
	gemaUsage:      {raw: kindAny},
	gemaError:      {},
	gemaFeedback:   {fields: []field{{"blockReason", gemaBlocked}}},
	gemaBlocked:    {},
	gemaCandidates: {elem: gemaCandidate},
	gemaCandidate:  {fields: []field{{"index", gemaIndex}, {"content", gemaContent}, {"finishReason", gemaFinish}, {"groundingMetadata", gemaGrounds}}},
	gemaIndex:      {},
	gemaFinish:     {},
	gemaContent:    {fields: []field{{"parts", gemaParts}}},
	gemaParts:      {elem: gemaPart},
	gemaPart: {fields: []field{
		{"text", gemaText}, {"inlineData", gemaData}, {"functionCall", gemaCall}, {"executableCode", gemaCode},
	}},
	gemaText: {text: true},
	gemaData: {},
	gemaCall: {fields: []field{{"name", gemaName}, {"args", gemaArgs}}},
	gemaName: {text: true},
	gemaArgs: {raw: kindAny &^ kindNull},
	gemaCode: {fields: []field{{"code", gemaText}}},
	// Gemini 3 bills each query of a search, earlier ones each answer that has any: never less than one.
	gemaGrounds: {fields: []field{{"webSearchQueries", gemaQueries}}},
	gemaQueries: {elem: gemaQuery},
	gemaQuery:   {},
}

var gemaRoles = [gemaNodes]role{
	gemaUsage: usageRole, gemaError: errorRole, gemaCandidate: itemRole, gemaIndex: indexRole,
	gemaFinish: finishRole, gemaBlocked: finishRole, gemaData: producedRole, gemaQuery: searchRole,
	gemaText: textRole, gemaName: textRole, gemaArgs: textRole,
}

// readGeminiUsage reads a usageMetadata. Zeros are left out of it. promptTokenCount holds what came
// from a cache (reference of GenerateContentResponse.UsageMetadata, read 2026-10). What tools put
// into the prompt and what the model thought comes on top of prompt and candidates, unless the total
// shows that an endpoint counts it among them.
func readGeminiUsage(raw []byte) usageRecord {
	r, ok := readUsage(raw, geminiPaths[:])
	u := gjson.ParseBytes(raw)
	for _, list := range [...]string{"promptTokensDetails", "toolUsePromptTokensDetails"} {
		r.modality(u.Get(list), "AUDIO", audioHeard)
	}
	r.modality(u.Get("candidatesTokensDetails"), "AUDIO", audioSpoken)
	if !ok || r.bad || !r.found[promptTokens] && !r.found[completionTokens] && !r.found[reasoningTokens] {
		return usageRecord{}
	}
	f := &r.figures
	prompt, candidates, tool, thoughts := f[promptTokens], f[completionTokens], f[toolTokens], f[reasoningTokens]
	input, output := prompt+tool, candidates+thoughts
	switch f[totalTokens] {
	case input + output:
	case prompt + output: // the tool's part is in prompt
		input = prompt
	case input + candidates: // the thoughts are among the candidates
		output = candidates
	case prompt + candidates:
		input, output = prompt, candidates
	}
	return usageRecord{seen: true, input: input, cached: f[cachedTokens], heard: f[audioHeard],
		output: output, reasoning: thoughts, spoken: f[audioSpoken]}
}

const toolTokens = webSearches + 1

var geminiPaths = [...]usagePath{
	{name: "promptTokenCount", figure: promptTokens},
	{name: "candidatesTokenCount", figure: completionTokens},
	{name: "toolUsePromptTokenCount", figure: toolTokens},
	{name: "thoughtsTokenCount", figure: reasoningTokens},
	{name: "cachedContentTokenCount", figure: cachedTokens},
	{name: "totalTokenCount", figure: totalTokens},
}

// modality adds the figures for one kind of medium: [{"modality":"AUDIO","tokenCount":7}].
func (r *usageReader) modality(list gjson.Result, kind string, figure int) {
	sum := r.figures[figure]
	list.ForEach(func(_, v gjson.Result) bool {
		if v.IsObject() && v.Get("modality").Str == kind {
			r.figures[figure] = 0
			r.take(figure, v.Get("tokenCount"))
			sum = min(sum+r.figures[figure], maxUsage)
		}
		return true
	})
	r.figures[figure] = sum
}
