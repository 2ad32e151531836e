package dialect

// Places of a request body that Chat's have no like of. The others are Chat's, with their numbers.
const (
	respBackground uint8 = chatNodes + iota
	respInput
	respItem
	respContent
	respPart
	respPartType
	respImage
	respImageURL
	respDetail
	respAudio
	respFileRef
	respFileData
	respPicture
	respSealed
	respJSON
	respTools
	respText
	respFormat
	respFormatSchema
	respPrompt
	respVariables
	respNodes
)

var respRequest = request{
	schema: onChat(respSchema[:], chatSchema[:]), texts: onChat(respTexts[:], chatTexts[:]),
	items: onChat(respItems[:], chatItems[:]), set: setResponses,
	media: &media{parts: respParts[:], holds: respHolds[:], kind: respPartType, named: respPartIs},
}

// onChat puts Chat's places, but for the root, into a table of an API that has them too.
func onChat[T any](own, chat []T) []T {
	copy(own[chatRoot+1:], chat[chatRoot+1:])
	return own
}

// A part of a message, of a tool's output or of a tool's log. What it holds stands beside its type
// and detail, so that only its end shows what it was.
var respPartFields = []field{
	{"type", respPartType}, {"text", chatText}, {"refusal", chatText},
	{"image_url", respImage}, {"detail", respDetail}, {"url", respImage}, {"input_audio", respAudio},
	{"file_id", respFileRef}, {"file_url", respFileRef}, {"filename", respFileRef}, {"file_data", respFileData},
	{"stdout", chatText}, {"stderr", chatText}, {"logs", chatText}, {"encrypted_content", respSealed},
}

var respSchema = [respNodes]node{
	chatRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
		{"model", chatModel}, {"stream", chatStream}, {"max_output_tokens", chatCap}, {"background", respBackground},
		{"input", respInput}, {"instructions", respInput}, {"tools", respTools}, {"tool_choice", chatChoice},
		{"text", respText}, {"prompt", respPrompt},
	}},
	respBackground: {kinds: kindBool, want: "true or false"},
	respInput:      {text: true, elem: respItem},
	// A message, or one of many kinds of calls, their results and thoughts. Its fields tell enough.
	respItem: {text: true, fields: []field{
		{"role", chatText}, {"content", respContent}, {"name", chatText}, {"namespace", chatText},
		{"arguments", chatText}, {"input", chatText}, {"output", respContent}, {"summary", respContent},
		{"encrypted_content", respSealed}, {"action", respJSON}, {"actions", respJSON}, {"queries", respJSON},
		{"results", respJSON}, {"code", chatText}, {"outputs", respContent}, {"operation", respJSON},
		{"tools", respTools}, {"result", respPicture}, {"reason", chatText}, {"error", chatText},
	}},
	respContent:  {text: true, elem: respPart, fields: respPartFields},
	respPart:     {text: true, fields: respPartFields},
	respPartType: {value: true},
	respImage:    {text: true, fields: []field{{"url", respImageURL}, {"detail", respDetail}}},
	respImageURL: {text: true},
	respDetail:   {text: true},
	respAudio:    {text: true, fields: []field{{"data", chatAudioData}, {"format", chatAudioFormat}}},
	respFileRef:  {text: true},
	respFileData: {text: true},
	respPicture:  {text: true}, // of image_generation_call, in base64
	respSealed:   {text: true},
	respJSON:     {raw: kindAny &^ kindNull},
	respTools:    {elem: chatTool},

	respText: {fields: []field{{"format", respFormat}}},
	respFormat: {fields: []field{
		{"name", chatToolName}, {"description", chatToolDescription}, {"schema", respFormatSchema},
	}},
	respFormatSchema: {raw: kindAny &^ kindNull},

	respPrompt:    {fields: []field{{"variables", respVariables}}},
	respVariables: {other: respContent},
}

var respTexts = [respNodes]Part{
	respImage: MediaURL, respImageURL: MediaURL, respDetail: MediaDetail, respAudio: AudioData,
	respFileRef: FileRef, respFileData: FileData, respPicture: MediaURL, respSealed: sealedText,
	respFormatSchema: Schema, respVariables: Schema,
}

var respItems = [respNodes]Item{
	respInput: spoken, respItem: Message, respPicture: Image, respFormatSchema: ResponseFormat,
}

var respParts = [respNodes]bool{respPart: true, respContent: true}

var respHolds = [respNodes]Item{
	respImage: Image, respAudio: Audio, respFileRef: File, respFileData: File,
}

func respPartIs(kind []byte) Item {
	switch string(kind) {
	case "input_image", "computer_screenshot":
		return Image
	case "input_file":
		return File
	case "input_audio":
		return Audio
	}
	return 0
}

func setResponses(f *Facts, n uint8, k kinds, p []byte, at Span) string {
	switch n {
	case respBackground:
		f.Background = k == kindTrue
	case respInput:
		if k == kindString {
			f.TokenIDs++ // the role that the message has without saying so
		}
	default:
		return setChat(f, n, k, p, at)
	}
	return ""
}
