package dialect

// Places of a request body that are read. What is not named here is checked for being JSON and
// nothing else.
const (
	chatRoot uint8 = iota + 1
	chatModel
	chatStream
	chatStreamOptions
	chatIncludeUsage
	chatCap
	chatN
	chatDocuments

	chatMessages
	chatMessage
	chatName
	chatThoughts
	chatThought
	chatSealed
	chatContent
	chatPart
	chatText
	chatToolCalls
	chatToolCall
	chatCall

	chatImage
	chatImageURL
	chatImageDetail
	chatAudio
	chatAudioData
	chatAudioFormat
	chatFile
	chatFileData
	chatFileRef

	chatTools
	chatTool
	chatFunction
	chatToolName
	chatToolDescription
	chatParameters
	chatSubschema
	chatProperties
	chatProperty
	chatDefinitions
	chatType
	chatDescription
	chatEnum
	chatEnumValue
	chatJSON

	chatFormat
	chatFormatSchema
	chatChoice
	chatNodes
)

var chatParts = []field{
	{"text", chatText}, {"refusal", chatText}, {"thinking", chatContent},
	{"image_url", chatImage}, {"image", chatImage}, {"video_url", chatImage},
	{"input_audio", chatAudio}, {"audio_url", chatAudio}, {"file", chatFile}, {"document_url", chatFile},
}

// What OpenAI's cookbook does not count (How_to_count_tokens_with_tiktoken, read 2026-10) is named
// with node 0: the type of a tool and of the object of its parameters, strict, required and a bare
// true or false of additionalProperties. The model sees them as syntax, if at all. Keywords of a
// schema that the cookbook is silent about count as the JSON that they are, with their keys.
var (
	toolFields = []field{
		{"name", chatToolName}, {"description", chatToolDescription}, {"parameters", chatParameters}, {"strict", 0},
	}
	parametersFields = append([]field{{"type", 0}}, keywords...)
	schemaFields     = append([]field{{"type", chatType}}, keywords...)
	keywords         = []field{
		{"description", chatDescription}, {"enum", chatEnum}, {"required", 0},
		{"properties", chatProperties}, {"patternProperties", chatProperties}, {"additionalProperties", chatSubschema},
		{"items", chatSubschema}, {"prefixItems", chatSubschema},
		{"anyOf", chatSubschema}, {"oneOf", chatSubschema}, {"allOf", chatSubschema},
		{"$defs", chatDefinitions}, {"definitions", chatDefinitions},
	}
)

const (
	// Values of these kinds where an object or a list is looked into: text of the caller's all the same.
	plainValue = kindString | kindNumber
	// Values of these kinds where a string is meant.
	noString = kindObject | kindArray | kindNumber | kindBool
)

var chatSchema = [chatNodes]node{
	chatRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
		{"model", chatModel}, {"messages", chatMessages},
		{"stream", chatStream}, {"stream_options", chatStreamOptions},
		{"max_tokens", chatCap}, {"max_completion_tokens", chatCap}, {"n", chatN},
		{"tools", chatTools}, {"functions", chatTools},
		{"response_format", chatFormat}, {"documents", chatDocuments},
		{"tool_choice", chatChoice}, {"function_call", chatChoice},
	}},
	chatModel:         {kinds: kindString, want: "a string", value: true},
	chatStream:        {kinds: kindBool, want: "true or false"},
	chatStreamOptions: {kinds: kindObject, want: "an object", fields: []field{{"include_usage", chatIncludeUsage}}},
	chatIncludeUsage:  {kinds: kindBool, want: "true or false"},
	chatCap:           {kinds: kindNumber, want: "a whole number of at least 1"},
	chatN:             {kinds: kindNumber, want: "a whole number of at least 1"},
	chatDocuments:     {raw: kindAny},

	chatMessages: {kinds: kindArray, want: "an array of messages", elem: chatMessage},
	chatMessage: {text: true, fields: []field{
		{"role", chatText}, {"content", chatContent}, {"name", chatName},
		{"refusal", chatText}, {"reasoning_content", chatText}, {"reasoning", chatText},
		{"tool_calls", chatToolCalls}, {"function_call", chatCall}, {"reasoning_details", chatThoughts},
	}},
	chatName: {text: true},
	// OpenRouter's, in plain or as only the provider can read them.
	chatThoughts: {elem: chatThought},
	chatThought:  {fields: []field{{"text", chatText}, {"summary", chatText}, {"data", chatSealed}}},
	chatSealed:   {text: true},
	// A string, an array of parts, or (on lenient servers) one part.
	chatContent: {text: true, elem: chatPart, fields: chatParts},
	chatPart:    {text: true, fields: chatParts},
	// Arguments are a string; some servers take them as an object.
	chatText:      {text: true, raw: kindAny &^ kindString},
	chatToolCalls: {elem: chatToolCall},
	chatToolCall:  {fields: []field{{"function", chatCall}, {"custom", chatCall}}},
	chatCall: {fields: []field{
		{"name", chatText}, {"arguments", chatText}, {"input", chatText},
	}},

	// An object, or (on lenient servers) the URL itself.
	chatImage:       {text: true, fields: []field{{"url", chatImageURL}, {"detail", chatImageDetail}}},
	chatImageURL:    {text: true},
	chatImageDetail: {text: true},
	chatAudio: {text: true, fields: []field{
		{"data", chatAudioData}, {"url", chatAudioData}, {"format", chatAudioFormat},
	}},
	chatAudioData:   {text: true},
	chatAudioFormat: {text: true},
	chatFile: {text: true, fields: []field{
		{"file_data", chatFileData}, {"url", chatFileData}, {"file_id", chatFileRef}, {"filename", chatFileRef},
	}},
	chatFileData: {text: true},
	chatFileRef:  {text: true},

	chatTools: {elem: chatTool},
	// One of tools, of functions (the same without its shell), or a provider's own kind.
	chatTool: {raw: kindAny &^ kindObject, other: chatJSON, fields: append([]field{
		{"type", 0}, {"function", chatFunction}, {"custom", chatFunction},
	}, toolFields...)},
	chatFunction:        {raw: plainValue | kindArray, other: chatJSON, fields: toolFields},
	chatToolName:        {text: true, raw: noString},
	chatToolDescription: {text: true, raw: noString},
	chatParameters:      {raw: plainValue | kindArray, other: chatJSON, fields: parametersFields},
	chatSubschema:       {raw: plainValue, other: chatJSON, fields: schemaFields, elem: chatSubschema},
	chatProperties:      {raw: plainValue | kindArray, other: chatProperty},
	chatProperty:        {raw: plainValue | kindArray, other: chatJSON, fields: schemaFields},
	chatDefinitions:     {raw: plainValue | kindArray, other: chatSubschema},
	chatType:            {text: true, raw: kindObject | kindNumber, elem: chatType},
	chatDescription:     {text: true, raw: noString},
	chatEnum:            {raw: plainValue | kindObject, elem: chatEnumValue},
	chatEnumValue:       {text: true, raw: kindAny &^ kindString},
	chatJSON:            {raw: kindAny},

	chatFormat: {raw: plainValue | kindArray, other: chatJSON, fields: []field{{"type", 0}, {"json_schema", chatFormatSchema}}},
	// The model is given the schema as it is.
	chatFormatSchema: {raw: plainValue | kindArray, other: chatJSON, fields: []field{
		{"name", chatToolName}, {"description", chatToolDescription}, {"schema", chatJSON}, {"strict", 0},
	}},
	// A word, or what names the tools that may or must be called: their names are said once more.
	chatChoice: {elem: chatChoice, fields: []field{
		{"name", chatText}, {"function", chatChoice}, {"custom", chatChoice}, {"allowed_tools", chatChoice}, {"tools", chatChoice},
	}},
}

// chatTexts says which part the text of a place is, where it isn't Text.
var chatTexts = [chatNodes]Part{
	chatImage: MediaURL, chatImageURL: MediaURL, chatImageDetail: MediaDetail,
	chatAudio: AudioData, chatAudioData: AudioData, chatAudioFormat: AudioFormat,
	chatFile: FileRef, chatFileData: FileData, chatFileRef: FileRef,
	chatToolName: ToolName, chatToolDescription: ToolDescription,
	chatType: PropertyType, chatDescription: PropertyDescription, chatEnumValue: EnumValue,
	chatTool: Schema, chatFunction: Schema, chatParameters: Schema, chatSubschema: Schema,
	chatProperties: Schema, chatProperty: Schema, chatDefinitions: Schema, chatEnum: Schema, chatJSON: Schema,
	chatFormat: Schema, chatFormatSchema: Schema, chatSealed: sealedText,
}

// chatItems says which item a place is.
var chatItems = [chatNodes]Item{
	chatMessage: Message, chatName: Name, chatTool: Tool, chatProperties: Properties, chatProperty: Property,
	chatEnum: Enum, chatFormatSchema: ResponseFormat, chatImage: Image, chatAudio: Audio, chatFile: File,
}
