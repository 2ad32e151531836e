package dialect

import "github.com/tidwall/gjson"

// Places of an answer, or of one event of a streamed answer, that are read.
const (
	caRoot uint8 = iota + 1
	caType
	caMessage
	caOpening
	caUsage
	caError
	caIndex
	caBlocks
	caBlock
	caStart
	caDelta
	caText
	caName
	caInput
	caFinish
	caNodes
)

// claudeAnswer reads answers of the Messages API. A stream opens with message_start, whose usage has
// the input and a first word of the output; message_delta has the cumulative truth of all, and
// message_stop ends it.
var claudeAnswer = answer{schema: caSchema[:], roles: caRoles[:], usage: readClaudeUsage, event: claudeEvent,
	tail: &claudeEnding}

// claudeCount reads answers that only say how long a prompt is.
var claudeCount = answer{schema: caCountSchema[:], roles: caRoles[:], event: claudeEvent, free: true}

func claudeEvent(name string) mark {
	switch name {
	case "message_stop":
		return endMark
	case "error":
		return failMark
	}
	return noMark
}

var caSchema = [caNodes]node{
	caRoot: {kinds: kindObject, want: "a JSON object", fields: []field{
		{"type", caType}, {"message", caMessage}, {"usage", caUsage}, {"error", caError}, {"index", caIndex},
		{"content", caBlocks}, {"content_block", caStart}, {"delta", caDelta},
	}},
	caType:    {value: true},
	caMessage: {fields: []field{{"usage", caOpening}}},
	caOpening: {raw: kindAny},
	caUsage:   {raw: kindAny},
	caError:   {},
	caIndex:   {},
	caBlocks:  {elem: caBlock},
	// What tools of the provider's brought back is input; citations, signatures and what is sealed are not
	// billed by their length.
	caBlock: {fields: []field{{"text", caText}, {"thinking", caText}, {"name", caName}, {"input", caInput}, {"content", caText}}},
	// The input of a tool begins as {}; its deltas bring it.
	caStart:  {fields: []field{{"text", caText}, {"thinking", caText}, {"name", caName}, {"content", caText}}},
	caDelta:  {fields: []field{{"text", caText}, {"thinking", caText}, {"partial_json", caInput}, {"content", caText}, {"stop_reason", caFinish}}},
	caText:   {text: true},
	caName:   {text: true},
	caInput:  {text: true, raw: kindAny &^ (kindString | kindNull)},
	caFinish: {},
}

var caCountSchema = [caNodes]node{
	caRoot:  {kinds: kindObject, want: "a JSON object", fields: []field{{"error", caError}}},
	caError: {},
}

var caRoles = [caNodes]role{
	caType: typeRole, caOpening: openingRole, caUsage: usageRole, caError: errorRole, caIndex: indexRole,
	caBlock: itemRole, caText: textRole, caName: textRole, caInput: textRole, caFinish: finishRole,
}

// Figures of a usage record of Anthropic's.
const (
	clInput = iota
	clRead
	clWritten
	clShort
	clHour
	clWrote
	clThought
	clSearches
)

var claudeUsagePaths = [...]usagePath{
	{name: "input_tokens", figure: clInput},
	{name: "cache_read_input_tokens", figure: clRead},
	{name: "cache_creation_input_tokens", figure: clWritten},
	{name: "cache_creation", within: []usagePath{
		{name: "ephemeral_5m_input_tokens", figure: clShort}, {name: "ephemeral_1h_input_tokens", figure: clHour},
	}},
	{name: "output_tokens", figure: clWrote},
	{name: "output_tokens_details", within: []usagePath{{name: "thinking_tokens", figure: clThought}}},
	{name: "server_tool_use", within: []usagePath{{name: "web_search_requests", figure: clSearches}}},
}

// readClaudeUsage reads a usage object that the scanner has found valid. It gives nothing for null,
// for an object without token counts and for one with a figure that cannot be true.
//
// input_tokens leaves out what was read from the cache and what was written to it. What was written is
// told as a whole and, by how long it is kept, in parts. Work beside the answer (iterations of the
// types compaction and advisor_message) is not in the figures and comes on top.
func readClaudeUsage(raw []byte) usageRecord {
	if len(raw) == 0 || raw[0] != '{' {
		return usageRecord{}
	}
	object := gjson.ParseBytes(raw)
	u := readClaudeFigures(object)
	if !u.seen {
		return u
	}
	object.Get("iterations").ForEach(func(_, v gjson.Result) bool {
		if kind := v.Get("type").Str; kind == "compaction" || kind == "advisor_message" {
			beside := readClaudeFigures(v)
			u.fresh += beside.fresh
			u.cached += beside.cached
			u.written += beside.written
			u.hour += beside.hour
			u.output += beside.output
		}
		return true
	})
	return u
}

func readClaudeFigures(object gjson.Result) usageRecord {
	var r usageReader
	r.read(object, claudeUsagePaths[:])
	if r.bad || !r.found[clInput] && !r.found[clWrote] {
		return usageRecord{}
	}
	f := &r.figures
	return usageRecord{
		seen: true, apart: true,
		fresh: f[clInput], cached: f[clRead], hour: f[clHour],
		written: max(f[clWritten], f[clShort]+f[clHour]),
		output:  f[clWrote], reasoning: f[clThought], searches: f[clSearches],
	}
}
