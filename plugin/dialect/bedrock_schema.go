package dialect

// Places of Bedrock's requests, beside those of Anthropic's and of a chat's.
const (
	brContent = clNodes + iota
	brBlock
	brImage
	brImageSource
	brImageData
	brImageAt
	brFile
	brFileSource
	brFileData
	brFileAt
	brFileURI
	brFormat
	brGuard
	brReasoning
	brUse
	brWrapped
	brMessages
	brMessage
	brVariables

	brInference
	brExtra
	brToolConfig
	brTools
	brTool
	brSpec
	brInputSchema
	brOutput
	brOutputFormat
	brStructure
	brStructureJSON

	brTexts
	brText
	brPictures
	brPicture
	brInputs
	brInput
	brDocuments
	brDocument
	brTitan
	brN
	brDraw
	brDrawConfig
	brDrawn

	brCount
	brCountConverse
	brNodes
)

// The members of blocks of Converse's own, which are told by their names.
var converseBlockFields = []field{
	{"text", clText}, {"image", brImage}, {"document", brFile}, {"video", brFile}, {"audio", brFile},
	{"toolUse", brUse}, {"toolResult", brUse}, {"guardContent", brGuard}, {"reasoningContent", brReasoning},
	{"citationsContent", brUse}, {"searchResult", brUse}, {"json", clText},
}

// What a model's own body has beside: Anthropic's blocks, which are told by their type, and OpenAI's.
var invokeBlockFields = []field{
	{"type", clKind}, {"thinking", clText}, {"source", clSource},
	{"name", clText}, {"input", clText}, {"content", brContent},
	{"title", clText}, {"context", clText}, {"url", clText}, {"stdout", clText}, {"stderr", clText}, {"lines", clLines},
	{"encrypted_content", clSealed}, {"encrypted_stdout", clSealed}, {"data", clSealed},
	{"image_url", chatImage}, {"input_audio", chatAudio},
}

var (
	converseMessageFields = []field{{"role", clText}, {"content", brContent}}
	invokeMessageFields   = append([]field{
		{"message", clText}, {"name", chatName}, {"tool_calls", chatToolCalls}, {"reasoning_content", chatText},
	}, converseMessageFields...)
	converseFields = []field{
		{"messages", brMessages}, {"system", brContent}, {"promptVariables", brVariables},
		{"inferenceConfig", brInference}, {"toolConfig", brToolConfig},
		{"additionalModelRequestFields", brExtra}, {"outputConfig", brOutput},
	}
	// A model's own, by the fields of its family.
	invokeFields = []field{
		{"messages", brMessages}, {"system", brContent}, {"max_tokens", clMax}, {"thinking", clThinking}, // Anthropic
		{"tools", clTools}, {"output_config", clOutput}, {"output_format", clFormat},
		{"inferenceConfig", brInference}, {"toolConfig", brToolConfig}, // Nova
		{"prompt", clText}, {"max_gen_len", clMax}, {"images", brPictures}, // Llama, Mistral
		{"max_completion_tokens", clMax}, {"n", brN}, {"response_format", chatFormat}, // OpenAI, AI21
		{"inputText", brText}, {"inputImage", brPicture}, {"textGenerationConfig", brTitan}, // Titan
		{"texts", brTexts}, {"inputs", brInputs}, {"message", clText}, {"preamble", clText}, // Cohere
		{"chat_history", brMessages}, {"documents", brDocuments}, {"query", clText}, {"num_generations", brN},
		{"max_tokens_to_sample", clMax}, {"maxTokens", clMax},
		{"textToImageParams", brDraw}, {"imageGenerationConfig", brDrawConfig}, // Nova Canvas, Titan Image
	}
)

var converseRequest = bedrockRequest(converseFields, converseMessageFields, converseBlockFields)
var invokeRequest = bedrockRequest(invokeFields, invokeMessageFields, append(invokeBlockFields, converseBlockFields...))

// What is to be counted is a body of Converse, or one of a model's own as base64, which is not read.
var bedrockCountRequest = bedrockRequest([]field{{"input", brCount}}, converseMessageFields, converseBlockFields)

func bedrockRequest(root, message, block []field) request {
	s := append(append([]node(nil), claudeSchema...), make([]node, brNodes-clNodes)...)
	for n, v := range map[uint8]node{
		chatRoot:   {kinds: kindObject, want: "a JSON object", fields: root},
		brMessages: {kinds: kindArray, want: "an array of messages", elem: brMessage},
		brMessage:  {text: true, fields: message},
		// A string, or an array of blocks.
		brContent:     {text: true, elem: brBlock, fields: block},
		brBlock:       {text: true, fields: block},
		brImage:       {fields: []field{{"source", brImageSource}}},
		brImageSource: {fields: []field{{"bytes", brImageData}, {"s3Location", brImageAt}}},
		brImageAt:     {fields: []field{{"uri", brImageData}}},
		brImageData:   {text: true},
		brFile:        {fields: []field{{"format", brFormat}, {"name", brFileURI}, {"source", brFileSource}, {"context", clText}}},
		brFileSource:  {fields: []field{{"bytes", brFileData}, {"text", clText}, {"content", brContent}, {"s3Location", brFileAt}}},
		brFileData:    {text: true},
		brFileAt:      {fields: []field{{"uri", brFileURI}}},
		brFileURI:     {text: true},
		brFormat:      {text: true},
		brGuard:       {fields: []field{{"text", brWrapped}, {"image", brImage}}},
		brWrapped:     {fields: []field{{"text", clText}}},
		brReasoning:   {fields: []field{{"reasoningText", brWrapped}, {"redactedContent", clSealed}}},
		brUse:         {fields: []field{{"name", clText}, {"input", clText}, {"content", brContent}, {"title", clText}, {"source", clText}}},
		brVariables:   {other: brContent},

		brInference:  {kinds: kindObject, want: "an object", fields: []field{{"maxTokens", clMax}, {"max_new_tokens", clMax}}},
		brToolConfig: {fields: []field{{"tools", brTools}}},
		brTools:      {elem: brTool},
		brTool:       {fields: []field{{"toolSpec", brSpec}}},
		brSpec: {fields: []field{
			{"name", chatToolName}, {"description", chatToolDescription}, {"inputSchema", brInputSchema},
		}},
		brInputSchema: {fields: []field{{"json", chatParameters}}},
		// What goes to the model as it is may say again how much it may write.
		brExtra: {fields: []field{
			{"max_tokens", clMax}, {"max_tokens_to_sample", clMax}, {"max_completion_tokens", clMax}, {"max_gen_len", clMax},
			{"maxTokens", clMax}, {"max_new_tokens", clMax}, {"maxTokenCount", clMax}, {"inferenceConfig", brInference},
			{"textGenerationConfig", brTitan}, {"thinking", clThinking}, {"reasoning_config", clThinking}, {"tools", clTools},
		}},
		brOutput:        {fields: []field{{"textFormat", brOutputFormat}}},
		brOutputFormat:  {fields: []field{{"structure", brStructure}}},
		brStructure:     {fields: []field{{"jsonSchema", brStructureJSON}}},
		brStructureJSON: {fields: []field{{"name", chatToolName}, {"description", chatToolDescription}, {"schema", chatType}}},

		brTexts:      {elem: brText},
		brText:       {text: true},
		brPictures:   {elem: brPicture},
		brPicture:    {text: true},
		brInputs:     {elem: brInput},
		brInput:      {text: true, fields: []field{{"content", brContent}}},
		brDocuments:  {elem: brDocument},
		brDocument:   {text: true, raw: kindAny &^ (kindString | kindNull)},
		brTitan:      {fields: []field{{"maxTokenCount", clMax}}},
		brN:          {kinds: kindNumber, want: "a whole number of at least 1"},
		brDraw:       {fields: []field{{"text", clText}, {"negativeText", clText}, {"conditionImage", brPicture}}},
		brDrawConfig: {fields: []field{{"numberOfImages", brDrawn}}},
		brDrawn:      {kinds: kindNumber, want: "a whole number of at least 1"},

		brCount:         {fields: []field{{"converse", brCountConverse}}},
		brCountConverse: {fields: converseFields},
	} {
		s[n] = v
	}
	texts := append(append([]Part(nil), claudeTexts...), make([]Part, brNodes-clNodes)...)
	texts[brImageData], texts[brPicture] = MediaURL, MediaURL
	texts[brFileData], texts[brFileURI], texts[brFormat] = FileData, FileRef, AudioFormat
	texts[brVariables] = Schema
	items := append(append([]Item(nil), claudeItems...), make([]Item, brNodes-clNodes)...)
	items[brMessage], items[brSpec], items[brStructureJSON] = Message, Tool, ResponseFormat
	items[brImage], items[brPicture], items[brFile] = Image, Image, File
	m := claudeMedia
	m.parts = append(append([]bool(nil), m.parts...), make([]bool, brNodes-clNodes)...)
	m.parts[brContent], m.parts[brBlock] = true, true
	m.holds = append(append([]Item(nil), m.holds...), make([]Item, brNodes-clNodes)...)
	return request{schema: s, texts: texts, items: items, set: setBedrock, media: &m}
}

func setBedrock(f *Facts, n uint8, k kinds, p []byte, at Span) string {
	switch n {
	case brText, brPicture:
		if k != kindNull {
			f.Inputs++
		}
	case brInput:
		f.Inputs++
	case brDocument:
		f.Documents++
	case brN, brDrawn:
		if k != kindNumber {
			break
		}
		v, ok := asWhole(p)
		if !ok {
			return "must be a whole number of at least 1"
		}
		if n == brN {
			f.N = max(f.N, v)
		} else {
			f.Images = v
		}
	default:
		return setClaude(f, n, k, p, at)
	}
	return ""
}
