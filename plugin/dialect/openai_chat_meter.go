package dialect

// Places of an answer, or of one frame of a streamed answer, that are read.
const (
	ansRoot uint8 = iota + 1
	ansUsage
	ansGroq
	ansError
	ansChoices
	ansChoice
	ansIndex
	ansFinish
	ansMessage
	ansText
	ansContent
	ansRefusal
	ansReasoning
	ansCalls
	ansCall
	ansFunction
	ansName
	ansArguments
	ansAudio
	ansTranscript
	ansID
	ansModel
	ansCreated
	ansPlace
	ansNodes
)

// A part of content: {"type":"text","text":...}, or Mistral's {"type":"thinking","thinking":[parts]}.
var ansParts = []field{{"text", ansContent}, {"thinking", ansContent}}

// chatAnswer reads answers of the Chat Completions API and of its predecessor.
var chatAnswer = answer{schema: ansSchema[:], roles: ansRoles[:], usage: readOpenAIUsage, event: failsByName,
	same: [2]uint8{ansText, ansContent}, // Together sends both
	tail: &chatEnding}

var completionAnswer = func() answer {
	a := chatAnswer
	a.tail = &completionEnding
	return a
}()

var ansSchema = [ansNodes]node{
	ansRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
		{"usage", ansUsage}, {"x_groq", ansGroq}, {"error", ansError}, {"choices", ansChoices},
		{"id", ansID}, {"model", ansModel}, {"created", ansCreated},
	}},
	ansUsage:   {raw: kindAny},
	ansGroq:    {fields: []field{{"usage", ansUsage}}},
	ansError:   {},
	ansChoices: {elem: ansChoice},
	ansChoice: {fields: []field{
		{"index", ansPlace}, {"delta", ansMessage}, {"message", ansMessage},
		{"text", ansText}, {"finish_reason", ansFinish},
	}},
	ansIndex:  {},
	ansFinish: {},
	ansMessage: {fields: []field{
		{"content", ansContent}, {"refusal", ansRefusal},
		{"reasoning_content", ansReasoning}, {"reasoning", ansReasoning},
		{"tool_calls", ansCalls}, {"function_call", ansFunction}, {"audio", ansAudio},
	}},
	ansText:       {text: true},
	ansContent:    {text: true, elem: ansContent, fields: ansParts},
	ansRefusal:    {text: true},
	ansReasoning:  {text: true},
	ansCalls:      {elem: ansCall},
	ansCall:       {fields: []field{{"index", ansIndex}, {"function", ansFunction}, {"custom", ansFunction}}},
	ansFunction:   {fields: []field{{"name", ansName}, {"arguments", ansArguments}, {"input", ansArguments}}},
	ansName:       {text: true},
	ansArguments:  {text: true, raw: kindAny &^ kindString},
	ansAudio:      {fields: []field{{"transcript", ansTranscript}}},
	ansTranscript: {text: true},
	ansID:         {value: true},
	ansModel:      {value: true},
	ansCreated:    {},
	ansPlace:      {},
}

var ansRoles = [ansNodes]role{
	ansUsage: usageRole, ansError: errorRole, ansChoice: itemRole, ansIndex: indexRole, ansPlace: indexRole, ansFinish: finishRole,
	ansMessage: messageRole, ansReasoning: reasoningRole,
	ansText: textRole, ansContent: textRole, ansRefusal: textRole, ansName: textRole, ansArguments: textRole,
	ansTranscript: textRole,
}
