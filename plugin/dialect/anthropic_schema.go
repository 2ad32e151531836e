package dialect

// Places of a request of Anthropic's, beside those of a tool's schema, which are chat's.
const (
	clModel = chatNodes + iota
	clMessages
	clMessage
	clContent
	clBlock
	clKind
	clText
	clLines
	clSealed
	clSource
	clData
	clURL
	clFile
	clMediaType
	clMax
	clStream
	clThinking
	clBudget
	clTools
	clTool
	clOutput
	clFormat
	clNodes
)

// The members of blocks of every type, those that the provider's own tools bring back included. A
// signature, a cache_control, citations of earlier answers and files for a container are no input.
var clBlockFields = []field{
	{"type", clKind}, {"text", clText}, {"thinking", clText}, {"source", clSource},
	{"name", clText}, {"input", clText}, {"content", clContent},
	{"title", clText}, {"context", clText}, {"url", clText},
	{"stdout", clText}, {"stderr", clText}, {"lines", clLines},
	{"encrypted_content", clSealed}, {"encrypted_stdout", clSealed}, {"data", clSealed},
}

var claudeSchema = onChat([]node{
	chatRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
		{"model", clModel}, {"messages", clMessages}, {"system", clContent},
		{"max_tokens", clMax}, {"stream", clStream}, {"thinking", clThinking},
		{"tools", clTools}, {"output_config", clOutput}, {"output_format", clFormat},
	}},
	clModel:    {kinds: kindString, want: "a string", value: true},
	clMessages: {kinds: kindArray, want: "an array of messages", elem: clMessage},
	clMessage:  {text: true, fields: []field{{"role", clText}, {"content", clContent}}},
	// A string or an array of blocks. What a tool of the provider's found is an object.
	clContent: {text: true, elem: clBlock, fields: clBlockFields},
	clBlock:   {text: true, fields: clBlockFields},
	clKind:    {value: true},
	clText:    {text: true, raw: kindAny &^ (kindString | kindNull)},
	clLines:   {elem: clText},
	clSealed:  {text: true},
	// Of an image or a document; of a result of a search, its name.
	clSource: {text: true, fields: []field{
		{"media_type", clMediaType}, {"data", clData}, {"url", clURL}, {"file_id", clFile}, {"content", clContent},
	}},
	clData:      {text: true},
	clURL:       {text: true},
	clFile:      {text: true},
	clMediaType: {text: true},

	clMax:      {kinds: kindNumber, want: "a whole number of at least 0"},
	clStream:   {kinds: kindBool, want: "true or false"},
	clThinking: {kinds: kindObject, want: "an object", fields: []field{{"budget_tokens", clBudget}}},
	clBudget:   {kinds: kindNumber, want: "a whole number of at least 0"},

	clTools: {elem: clTool},
	// The caller's own, or one of the provider's with its settings.
	clTool: {raw: kindAny &^ kindObject, other: chatJSON, fields: []field{
		{"type", 0}, {"name", chatToolName}, {"description", chatToolDescription}, {"input_schema", chatParameters},
		{"strict", 0}, {"cache_control", 0}, {"defer_loading", 0}, {"allowed_callers", 0}, {"eager_input_streaming", 0},
	}},
	clOutput: {kinds: kindObject, want: "an object", fields: []field{{"format", clFormat}}},
	clFormat: {fields: []field{{"schema", chatJSON}}},
	clNodes:  {},
}[:clNodes], chatSchema[:])

var claudeTexts = onChat([]Part{
	clSealed: sealedText, clData: FileData, clURL: MediaURL, clFile: FileRef, clMediaType: AudioFormat, clTool: Schema, clNodes: 0,
}[:clNodes], chatTexts[:])

var claudeItems = onChat([]Item{
	clMessage: Message, clTool: Tool, clFormat: ResponseFormat, clNodes: 0,
}[:clNodes], chatItems[:])

// A block with something in its source is a document, unless it says that it is an image.
var claudeMedia = media{
	parts: []bool{clContent: true, clBlock: true, clNodes: false}[:clNodes],
	holds: []Item{clData: File, clURL: File, clFile: File, clNodes: 0}[:clNodes],
	kind:  clKind,
	named: func(p []byte) Item {
		if string(p) == "image" {
			return Image
		}
		return 0
	},
}
