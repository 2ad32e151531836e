package dialect

import "strings"

// bedrock is what the APIs of Amazon Bedrock's runtime have in common: the model between /model/ and the
// verb (an id, an inference profile, or an ARN whose slashes are encoded), a signature over the head,
// the path and the body, streams of AWS event stream messages, and errors named by a header.
//
// Nothing of a signed call is edited (Facts.Sealed): a model that has another name at its target goes
// by the one that the caller signed.
type bedrock struct{ inPath }

// Refusal writes {"message":"..."} and names the error in x-amzn-errortype, from which AWS's SDKs make
// their exception: boto3 a ClientError whose Error.Code it is (botocore/parsers.py,
// RestJSONParser._do_error_parse), and by that name they know what to try again.
func (bedrock) Refusal(r Refusal) ([][2]string, []byte) {
	b := make([]byte, 0, 32+len(r.Message))
	b = append(b, `{"message":`...)
	b = appendQuoted(b, r.Message)
	headers := append(jsonHeaders(), [2]string{"x-amzn-errortype", awsError(r)})
	return headers, append(b, "}\n"...)
}

// awsError is an error that InvokeModel and Converse are documented to have.
func awsError(r Refusal) string {
	switch r.Reason {
	case RateLimited:
		return "ThrottlingException"
	case OverBudget:
		return "ServiceQuotaExceededException" // which no SDK tries again
	case Killed, Unauthorized:
		return "AccessDeniedException"
	case Unavailable:
		return "ServiceUnavailableException"
	case BadRequest, TooLarge, Unsupported:
		return "ValidationException"
	case NotFound:
		return "ResourceNotFoundException"
	}
	return "InternalServerException"
}

type (
	bedrockConverse struct{ bedrock } // POST /model/{id}/converse and converse-stream
	bedrockCount    struct{ bedrock } // POST /model/{id}/count-tokens, which is free
	// bedrockInvoke is POST /model/{id}/invoke and invoke-with-response-stream. The body is the model's own.
	bedrockInvoke struct {
		bedrock
		embeds, ranks bool // by the model's name
	}
)

func (bedrockConverse) Name() string { return "bedrock-converse" }
func (bedrockCount) Name() string    { return "bedrock-count-tokens" }
func (bedrockInvoke) Name() string   { return "bedrock-invoke" }

func recogniseBedrock(c *call) Dialect {
	last := len(c.seg) - 1
	if c.method != "POST" || last < 2 {
		return nil
	}
	from := last - 1 // the model's first segment
	for from > 0 && c.seg[from-1].text != "model" {
		from--
	}
	if from == 0 {
		return nil
	}
	at := Span{c.seg[from].at.Start, c.seg[last-1].at.End}
	b := bedrock{inPath{model: c.named(segment{at: at}), at: at, sealed: true}}
	name := strings.ToLower(b.model)
	switch c.seg[last].text {
	case "converse-stream":
		b.stream = true
		return bedrockConverse{b}
	case "converse":
		return bedrockConverse{b}
	case "invoke-with-response-stream":
		b.stream = true
		return bedrockInvoke{bedrock: b}
	case "invoke":
		return bedrockInvoke{b, strings.Contains(name, "embed"), strings.Contains(name, "rerank")}
	case "count-tokens":
		return bedrockCount{b}
	}
	return nil
}

func (d bedrockConverse) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	return converseRequest.newScanner(d.facts(), maxDepth, sink)
}

func (d bedrockCount) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	f := d.facts()
	f.Free = true
	return bedrockCountRequest.newScanner(f, maxDepth, sink)
}

func (d bedrockInvoke) NewScanner(_ RequestHead, maxDepth int, sink Sink) Scanner {
	f := d.facts()
	f.NoChat = d.embeds || d.ranks
	f.NoOutput = f.NoChat
	s := invokeRequest.newScanner(f, maxDepth, sink)
	return &invokeScanner{s, d}
}

// invokeScanner keeps the counts that the kind of the model asks for: the same field holds a text to
// embed for one and a prompt for another.
type invokeScanner struct {
	*requestScanner
	d bedrockInvoke
}

func (s *invokeScanner) Close() (Facts, *Fault) {
	f, fault := s.requestScanner.Close()
	if !s.d.embeds {
		f.Inputs = 0
	}
	if !s.d.ranks {
		f.Documents = 0
	}
	return f, fault
}

func (bedrockConverse) NewMeter(h ResponseHead, sink Sink) Meter {
	return converseAnswer.newMeter(h, sink)
}

func (bedrockCount) NewMeter(h ResponseHead, sink Sink) Meter {
	return bedrockCountAnswer.newMeter(h, sink)
}

func (bedrockInvoke) NewMeter(h ResponseHead, sink Sink) Meter { return invokeAnswer.newMeter(h, sink) }

// UsageHeaders tell, of an answer that is no stream, what it took, whatever the model's body says.
func (bedrockInvoke) UsageHeaders() []string { return bedrockHeaders[:] }

var bedrockHeaders = [...]string{
	"x-amzn-bedrock-input-token-count", "x-amzn-bedrock-output-token-count",
	"x-amzn-bedrock-cache-read-input-token-count", "x-amzn-bedrock-cache-write-input-token-count",
}

func readBedrockHeaders(values []string) usageRecord {
	var figures [len(bedrockHeaders)]int64
	seen := false
	for i, v := range values {
		if i == len(figures) {
			break
		}
		n, ok := parseDigits(v)
		if v != "" && !ok {
			return usageRecord{}
		}
		figures[i] = n
		seen = seen || i < 2 && ok
	}
	return usageRecord{seen: seen, apart: true,
		fresh: figures[0], output: figures[1], cached: figures[2], written: figures[3]}
}

// parseDigits reads a figure of a header.
func parseDigits(s string) (n int64, ok bool) {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' || n > maxUsage/10 {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, s != ""
}
