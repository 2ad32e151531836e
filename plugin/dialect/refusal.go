package dialect

// HTTPStatus is the status that the refusal is sent with.
func (r Refusal) HTTPStatus() int {
	if r.Status != 0 {
		return r.Status
	}
	switch r.Reason {
	case RateLimited:
		return 429
	case OverBudget:
		return 402
	case Killed:
		return 403
	case Unavailable:
		return 503
	case BadRequest:
		return 400
	case TooLarge:
		return 413
	case Unsupported:
		return 415
	case Unauthorized:
		return 401
	case NotFound:
		return 404
	}
	return 500
}

// openAIRefusal writes {"error":{"message","type","param","code"}}. The SDKs of OpenAI choose their
// error type by the status (openai-python _make_status_error, openai-node APIError.generate) and
// show message, type, param and code from the body.
func openAIRefusal(r Refusal) (headers [][2]string, body []byte) {
	b := make([]byte, 0, 160+len(r.Message)+len(r.Param)+len(r.Code))
	b = append(b, `{"error":{"message":`...)
	b = appendQuoted(b, r.Message)
	b = append(b, `,"type":`...)
	b = appendQuoted(b, openAIErrorType(r))
	b = append(b, `,"param":`...)
	if r.Param == "" {
		b = append(b, "null"...)
	} else {
		b = appendQuoted(b, r.Param)
	}
	b = append(b, `,"code":`...)
	code := r.Code
	if code == "" {
		code = openAIErrorCode(r.Reason)
	}
	b = appendQuoted(b, code)
	b = append(b, "}}\n"...)
	return jsonHeaders(), b
}

func jsonHeaders() [][2]string { return [][2]string{{"content-type", "application/json"}} }

func openAIErrorType(r Refusal) string {
	switch r.Reason {
	case RateLimited:
		// OpenAI names what ran out here; limits that do not count requests weigh tokens.
		if r.Code == "requests" || r.Code == "request_rate_exceeded" || r.Code == "concurrency_exceeded" {
			return "requests"
		}
		return "tokens"
	case OverBudget:
		return "insufficient_quota"
	case Killed:
		return "request_forbidden"
	case BadRequest, TooLarge, Unsupported, Unauthorized, NotFound:
		return "invalid_request_error"
	}
	return "server_error"
}

func openAIErrorCode(r Reason) string {
	switch r {
	case RateLimited:
		return "rate_limit_exceeded"
	case OverBudget:
		return "insufficient_quota"
	case Killed:
		return "killed"
	case Unavailable:
		return "service_unavailable"
	case BadRequest:
		return "invalid_request"
	case TooLarge:
		return "request_too_large"
	case Unsupported:
		return "unsupported_media_type"
	case Unauthorized:
		return "invalid_api_key"
	case NotFound:
		return "not_found"
	}
	return "internal_error"
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends s as a JSON string. Bytes that are no UTF-8 become U+FFFD.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s { // an invalid byte reads as U+FFFD
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\t':
			b = append(b, '\\', 't')
		case r < 0x20 || r == 0x7f:
			b = append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}
