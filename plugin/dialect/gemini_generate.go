package dialect

// geminiGenerate is generateContent and streamGenerateContent.
type geminiGenerate struct{ gemini }

func (geminiGenerate) Name() string { return "gemini-generate" }

func (d geminiGenerate) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	return geminiRequest.newScanner(d.facts(), maxDepth, sink)
}

func (geminiGenerate) NewMeter(h ResponseHead, sink Sink) Meter {
	return geminiAnswer.newMeter(h, sink)
}

// geminiCount is countTokens, for which Google bills nothing.
type geminiCount struct{ gemini }

func (geminiCount) Name() string { return "gemini-count-tokens" }

func (d geminiCount) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	f := d.facts()
	f.Free = true
	return geminiRequest.newScanner(f, maxDepth, sink)
}

func (geminiCount) NewMeter(h ResponseHead, sink Sink) Meter {
	return geminiCountAnswer.newMeter(h, sink)
}

// Places of a request that are read.
const (
	gemRoot uint8 = iota + 1
	gemModel
	gemContents
	gemContent
	gemParts
	gemPart
	gemText
	gemBlob
	gemBlobData
	gemMediaType
	gemFile
	gemFileURI
	gemCall
	gemResponse
	gemCode
	gemCodeResult
	gemJSON

	gemTools
	gemTool
	gemFunctions
	gemFunction
	gemToolName
	gemToolDescription
	gemParameters
	gemSubschema
	gemProperties
	gemProperty
	gemDefinitions
	gemType
	gemDescription
	gemEnum
	gemEnumValue
	gemKeyword

	gemConfig
	gemCap
	gemN
	gemFormat
	gemNodes
)

// The JSON form of protocol buffers takes one value where a list is meant, and a field's own name,
// which is in snake_case, beside its name in JSON.
var (
	gemContentFields = []field{{"role", gemText}, {"parts", gemParts}}
	gemPartFields    = []field{
		{"text", gemText}, {"inlineData", gemBlob}, {"fileData", gemFile},
		{"functionCall", gemCall}, {"functionResponse", gemResponse},
		{"executableCode", gemCode}, {"codeExecutionResult", gemCodeResult},
	}
	gemToolFields     = []field{{"functionDeclarations", gemFunctions}}
	gemFunctionFields = []field{
		{"name", gemToolName}, {"description", gemToolDescription},
		{"parameters", gemParameters}, {"parametersJsonSchema", gemParameters},
		{"response", gemKeyword}, {"responseJsonSchema", gemKeyword}, {"behavior", 0},
	}
	gemParametersFields = append([]field{{"type", 0}}, gemKeywords...)
	gemSchemaFields     = append([]field{{"type", gemType}}, gemKeywords...)
	gemKeywords         = []field{
		{"description", gemDescription}, {"enum", gemEnum}, {"required", 0}, {"propertyOrdering", 0},
		{"properties", gemProperties}, {"additionalProperties", gemSubschema},
		{"items", gemSubschema}, {"prefixItems", gemSubschema},
		{"anyOf", gemSubschema}, {"oneOf", gemSubschema}, {"allOf", gemSubschema},
		{"$defs", gemDefinitions}, {"definitions", gemDefinitions}, {"defs", gemDefinitions},
	}
)

var geminiRequest = request{schema: geminiSchema[:], texts: geminiTexts[:], items: geminiItems[:], set: setGemini}

var geminiSchema = [gemNodes]node{
	gemRoot: {kinds: kindObject, want: "a JSON object", snake: true, fields: []field{
		{"model", gemModel}, {"contents", gemContents}, {"systemInstruction", gemContent},
		{"tools", gemTools}, {"generationConfig", gemConfig},
		// countTokens takes a whole request, Code Assist nothing else.
		{"generateContentRequest", gemRoot}, {"request", gemRoot},
	}},
	gemModel:    {kinds: kindString, want: "a string", value: true},
	gemContents: {text: true, elem: gemContent, fields: gemContentFields, snake: true},
	gemContent:  {text: true, fields: gemContentFields, snake: true},
	gemParts:    {text: true, elem: gemPart, fields: gemPartFields, snake: true},
	gemPart:     {text: true, fields: gemPartFields, snake: true},
	gemText:     {text: true},

	gemBlob:       {snake: true, fields: []field{{"mimeType", gemMediaType}, {"data", gemBlobData}}},
	gemBlobData:   {text: true},
	gemMediaType:  {text: true},
	gemFile:       {snake: true, fields: []field{{"mimeType", gemMediaType}, {"fileUri", gemFileURI}}},
	gemFileURI:    {text: true},
	gemCall:       {snake: true, fields: []field{{"name", gemText}, {"args", gemJSON}}},
	gemResponse:   {snake: true, fields: []field{{"name", gemText}, {"response", gemJSON}, {"parts", gemParts}}},
	gemCode:       {snake: true, fields: []field{{"code", gemText}}},
	gemCodeResult: {snake: true, fields: []field{{"output", gemText}}},
	gemJSON:       {raw: kindAny &^ kindNull},

	gemTools:           {elem: gemTool, fields: gemToolFields, snake: true},
	gemTool:            {fields: gemToolFields, snake: true},
	gemFunctions:       {elem: gemFunction, fields: gemFunctionFields, snake: true},
	gemFunction:        {fields: gemFunctionFields, snake: true},
	gemToolName:        {text: true},
	gemToolDescription: {text: true},
	gemParameters:      {raw: plainValue | kindArray, other: gemKeyword, fields: gemParametersFields, snake: true},
	gemSubschema:       {raw: plainValue, other: gemKeyword, fields: gemSchemaFields, elem: gemSubschema, snake: true},
	gemProperties:      {raw: plainValue | kindArray, other: gemProperty},
	gemProperty:        {raw: plainValue | kindArray, other: gemKeyword, fields: gemSchemaFields, snake: true},
	gemDefinitions:     {raw: plainValue | kindArray, other: gemSubschema},
	gemType:            {text: true, raw: kindObject | kindNumber, elem: gemType},
	gemDescription:     {text: true, raw: noString},
	gemEnum:            {raw: plainValue | kindObject, elem: gemEnumValue},
	gemEnumValue:       {text: true, raw: kindAny &^ kindString},
	gemKeyword:         {raw: kindAny},

	// thinkingConfig says nothing of the most that is written: maxOutputTokens bounds thoughts too.
	gemConfig: {kinds: kindObject, want: "an object", snake: true, fields: []field{
		{"maxOutputTokens", gemCap}, {"candidateCount", gemN},
		{"responseSchema", gemFormat}, {"responseJsonSchema", gemFormat},
	}},
	gemCap:    {kinds: kindNumber | kindString, want: "a whole number of at least 1", value: true},
	gemN:      {kinds: kindNumber | kindString, want: "a whole number of at least 1", value: true},
	gemFormat: {raw: kindAny &^ kindNull},
}

// geminiTexts says which part the text of a place is, where it isn't Text.
var geminiTexts = [gemNodes]Part{
	gemBlobData: FileData, gemMediaType: AudioFormat, gemFileURI: FileRef,
	gemToolName: ToolName, gemToolDescription: ToolDescription,
	gemType: PropertyType, gemDescription: PropertyDescription, gemEnumValue: EnumValue,
	gemParameters: Schema, gemSubschema: Schema, gemProperties: Schema, gemProperty: Schema,
	gemDefinitions: Schema, gemEnum: Schema, gemKeyword: Schema, gemFormat: Schema,
}

// geminiItems says which item a place is. Pictures and sounds are told from files by what is in them.
var geminiItems = [gemNodes]Item{
	gemContents: Message, gemContent: Message, gemFunctions: Tool, gemFunction: Tool, gemProperties: Properties, gemProperty: Property,
	gemEnum: Enum, gemFormat: ResponseFormat, gemBlob: File, gemFile: File,
}

func setGemini(f *Facts, n uint8, k kinds, p []byte, at Span) string {
	switch n {
	case gemModel:
		f.setModel(k, p, at)
	case gemCap, gemN:
		if k == kindNull {
			break
		}
		v, ok := asWholeOrText(k, p)
		if !ok {
			return "must be " + geminiSchema[n].want
		}
		if n == gemN {
			f.N = max(f.N, v)
			break
		}
		f.MaxOutput, f.HasMaxOutput = max(f.MaxOutput, v), true
	}
	return ""
}

// asWholeOrText reads a number of at least 1, which the JSON form of protocol buffers takes as the
// text of its digits too.
func asWholeOrText(k kinds, p []byte) (int64, bool) {
	if k == kindString {
		if len(p) == 0 || p[0] == '0' {
			return 0, false
		}
		for _, c := range p {
			if c < '0' || c > '9' {
				return 0, false
			}
		}
	}
	return asWhole(p)
}
