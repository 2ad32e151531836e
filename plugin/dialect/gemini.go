package dialect

import "strconv"

// gemini is what Google's model APIs have in common: the model and what is to be done with it stand
// in the last segment of the path, {model}:{verb}, on ai.google.dev (/v1beta/models/...) as on Vertex
// (/v1/projects/.../publishers/google/models/...); bodies are JSON forms of protocol buffers; errors
// are google.rpc.Status.
type gemini struct{ inPath }

// Refusal writes {"error":{"code","message","status","details"}}. google-genai chooses ClientError or
// ServerError by the status (google/genai/errors.py, APIError.raise_error) and takes code, status and
// message from the body; Google's own clients wait for as long as RetryInfo says.
func (gemini) Refusal(r Refusal) ([][2]string, []byte) {
	b := make([]byte, 0, 320+len(r.Message)+len(r.Code))
	b = append(b, `{"error":{"code":`...)
	b = strconv.AppendInt(b, int64(r.HTTPStatus()), 10)
	b = append(b, `,"message":`...)
	b = appendQuoted(b, r.Message)
	b = append(b, `,"status":"`...)
	b = append(b, googleStatus(r)...)
	b = append(b, `","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":`...)
	code := r.Code
	if code == "" {
		code = openAIErrorCode(r.Reason)
	}
	b = appendQuoted(b, code)
	b = append(b, `,"domain":"emmer"}`...)
	if r.Param != "" {
		b = append(b, `,{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":`...)
		b = appendQuoted(b, r.Param)
		b = append(b, `,"description":`...)
		b = appendQuoted(b, r.Message)
		b = append(b, `}]}`...)
	}
	if r.Retry > 0 {
		b = append(b, `,{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"`...)
		b = strconv.AppendInt(b, int64((r.Retry-1)/1000+1), 10)
		b = append(b, `s"}`...)
	}
	b = append(b, "]}}\n"...)
	return jsonHeaders(), b
}

// googleStatus is the name that google.rpc.Code has for a refusal.
func googleStatus(r Refusal) string {
	switch r.Reason {
	case RateLimited, OverBudget:
		return "RESOURCE_EXHAUSTED"
	case Killed:
		return "PERMISSION_DENIED"
	case Unavailable:
		return "UNAVAILABLE"
	case BadRequest, TooLarge, Unsupported:
		return "INVALID_ARGUMENT"
	case Unauthorized:
		return "UNAUTHENTICATED"
	case NotFound:
		return "NOT_FOUND"
	}
	return "INTERNAL"
}

// geminiVerbs are what LLMPath takes for a call of Google's, whether or not a dialect does.
var geminiVerbs = [...]string{"generatecontent", "streamgeneratecontent", "counttokens", "computetokens",
	"embedcontent", "batchembedcontents", "asyncbatchembedcontent", "batchgeneratecontent",
	"predict", "rawpredict", "streamrawpredict", "serverstreamingpredict", "directpredict", "predictlongrunning"}

// recogniseGemini asks for no more than a POST with a verb: what stands before the model differs by
// product, and gateways give it roots of their own.
func recogniseGemini(c *call) Dialect {
	of, verb := c.verb()
	if verb == "" || c.method != "POST" {
		return nil
	}
	g := gemini{inPath{model: c.named(of), at: of.at}}
	if of.text == "v1internal" {
		g.inPath = inPath{} // Code Assist: the model stands in the body
	}
	switch verb {
	case "streamgeneratecontent":
		g.stream = true
		return geminiGenerate{g}
	case "generatecontent":
		return geminiGenerate{g}
	case "counttokens":
		return geminiCount{g}
	case "embedcontent", "batchembedcontents":
		return geminiEmbed{g}
	case "predict":
		if embeds(of.text) {
			return geminiEmbed{g}
		}
	}
	return nil
}
