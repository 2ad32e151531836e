package plan

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/emmer-proxy/emmer/plugin/config"
	"github.com/emmer-proxy/emmer/plugin/dialect"
)

// shown is a caller's text as a message may repeat it: short, quoted, printable.
func shown(s string) string {
	const most = 64
	if len(s) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "..."
	}
	return strconv.Quote(s)
}

// FromFault is the refusal of a body that can't be read.
func FromFault(f *dialect.Fault) dialect.Refusal {
	r := dialect.Refusal{Reason: dialect.BadRequest, Status: f.Status, Code: f.Code, Param: f.Param, Message: f.Message}
	if f.Status == 413 {
		r.Reason = dialect.TooLarge
	}
	return r
}

// UnknownRoute refuses a path that no dialect knows, where the configuration says so.
func UnknownRoute(path string) dialect.Refusal {
	r := dialect.Refusal{Reason: dialect.NotFound, Code: "unknown_route",
		Message: "This path is not a call that can be metered here, so it is not forwarded."}
	if dialect.Batch(path) {
		r.Message = "The calls of a batch are answered later, where they can't be metered, so it is not forwarded. Send them one by one."
	}
	return r
}

// AmbiguousPath refuses a path that servers may read as different metered calls.
func AmbiguousPath() dialect.Refusal {
	return dialect.Refusal{Reason: dialect.BadRequest, Code: "ambiguous_path",
		Message: "The path can be read as different calls, so it is not forwarded. Write it without parameters and encoded delimiters (; %3B %3F %23 %00)."}
}

// UpgradeDenied refuses to leave HTTP on the path of an LLM API: what is said there is not seen.
func UpgradeDenied() dialect.Refusal {
	return dialect.Refusal{Reason: dialect.NotFound, Code: "unmetered_upgrade",
		Message: "A connection that is upgraded can't be metered here, so it is not forwarded. Use the API over HTTP."}
}

// backgroundDenied refuses a call that would go on after its answer.
func backgroundDenied() dialect.Refusal {
	return dialect.Refusal{Reason: dialect.BadRequest, Code: "background_not_allowed", Param: "background",
		Message: "A response in the background can't be metered here, so it is not forwarded. Leave out background, or set it to false."}
}

// BodyTooLarge refuses a body of more than the bytes that may be held.
func BodyTooLarge(most int) dialect.Refusal {
	return dialect.Refusal{Reason: dialect.TooLarge, Code: "request_too_large",
		Message: "The request body is larger than the " + strconv.Itoa(most) + " bytes that are accepted here. Send a shorter one."}
}

// BodyMissing refuses a call of a metered API that has no body.
func BodyMissing() dialect.Refusal {
	return dialect.Refusal{Reason: dialect.BadRequest, Code: "missing_body",
		Message: "The request has no body. Send a JSON object."}
}

// UnsupportedEncoding refuses a body in a content coding that can't be read.
func UnsupportedEncoding(coding string) dialect.Refusal {
	return dialect.Refusal{Reason: dialect.Unsupported, Code: "unsupported_content_encoding",
		Message: "The content-encoding " + shown(coding) + " can't be read here. Send the body without one."}
}

// UnsupportedType refuses a body in a charset that can't be read.
func UnsupportedType(contentType string) dialect.Refusal {
	return dialect.Refusal{Reason: dialect.Unsupported, Code: "unsupported_media_type",
		Message: "The content-type " + shown(contentType) + " can't be read here. Send application/json in UTF-8."}
}

// Misconfigured refuses because the filter's other entry is missing or in another VM.
func Misconfigured() dialect.Refusal {
	return dialect.Refusal{Reason: dialect.Unavailable, Code: "gateway_not_ready",
		Message: "The gateway is not set up to check this call, or is being updated. Try again."}
}

// Internal refuses after a fault of the filter itself.
func Internal() dialect.Refusal {
	return dialect.Refusal{Reason: dialect.Internal, Code: "internal_error",
		Message: "The gateway failed to check this call. It was not forwarded."}
}

func unavailable() dialect.Refusal {
	return dialect.Refusal{Reason: dialect.Unavailable, Code: "limits_unavailable",
		Message: "The limits of this call can't be checked right now, so it is not forwarded. Try again."}
}

func queueFull() dialect.Refusal {
	return dialect.Refusal{Reason: dialect.RateLimited, Status: 429, Code: "queue_full",
		Message: "This call would have to wait for its turn, and too many calls wait already. Try again later."}
}

func missing(id *config.Identity) *dialect.Refusal {
	var from []string
	for _, s := range id.Sources {
		switch {
		case s.Header != "":
			from = append(from, "header "+s.Header)
		case s.Query != "":
			from = append(from, "query parameter "+s.Query)
		case s.Claim > 0:
			from = append(from, "a claim of a verified token")
		}
	}
	return &dialect.Refusal{Reason: dialect.Unauthorized, Code: "missing_identity",
		Message: "The call doesn't say its " + id.Name + ", which comes from " + strings.Join(from, " or ") + "."}
}

func notAllowed(name string) *dialect.Refusal {
	return &dialect.Refusal{Reason: dialect.Unauthorized, Status: 403, Code: "identity_not_allowed",
		Message: "The call's " + name + " is not one that it may use."}
}

func malformed(header, scheme string) *dialect.Refusal {
	return &dialect.Refusal{Reason: dialect.Unauthorized, Code: "malformed_credentials",
		Message: "The header " + header + " must be " + scheme + ", a space and one token."}
}

func conflict(what string) *dialect.Refusal {
	return &dialect.Refusal{Reason: dialect.BadRequest, Code: "conflicting_identity",
		Message: "The " + what + " comes with different values. Send it once."}
}
