package dialect

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestRecognise(t *testing.T) {
	for _, c := range []struct {
		method, path string
		want         bool
	}{
		{"POST", "/v1/chat/completions", true},
		{"POST", "/v1/chat/completions?api-version=1", true},
		{"POST", "/v1/chat/completions/", true},
		{"POST", "/chat/completions", true},
		{"POST", "/openai/v1/chat/completions", true},
		{"POST", "/openai/deployments/d1/chat/completions?api-version=z", true},
		{"post", "/V1/Chat/Completions", true},
		{"POST", "//v1///chat//completions", true},
		{"POST", "/v1/chat/./completions", true},
		{"POST", "/v1/files/../chat/completions", true},
		{"POST", "/v1/files/%2e%2E/chat/completions", true},
		{"POST", "/v1/%63hat/completion%73", true},
		{"POST", "/v1/chat%2Fcompletions", true},
		{"POST", "/v1/chat%252Fcompletions", true},
		{"POST", `/v1\chat\completions`, true},
		{"POST", "/v1/chat;x=1/completions;y", true},
		{"POST", "http://host/v1/chat/completions", true},
		{"POST", "/v1/chat/completions#x", true},
		{"POST", "/../../v1/chat/completions", true},
		{"GET", "/v1/chat/completions", false},
		{"OPTIONS", "/v1/chat/completions", false},
		{"HEAD", "/v1/chat/completions", false},
		{"", "/v1/chat/completions", false},
		{"POST", "/v1/chat/completions/abc", false},
		{"POST", "/v1/completions", false},
		{"POST", "/v1/chatcompletions", false},
		{"POST", "/v1/chat/completions2", false},
		{"POST", "/v1/embeddings", false},
		{"POST", "/x?p=/v1/chat/completions", false},
		{"POST", "/v1/chat/completions/..", false},
		{"POST", "", false},
		{"POST", "/", false},
		{"POST", "%", false},
		{"POST", "http://", false},
	} {
		d, ok := Recognise(c.method, c.path)
		if chat := ok && d.Name() == "openai-chat"; chat != c.want || ok != (d != nil) {
			t.Errorf("%s %s: %v", c.method, c.path, ok)
		}
	}
	if CanonicalPath("/a//%2E./V1%2fx/?q") != "/v1/x" || CanonicalPath("") != "/" {
		t.Error(CanonicalPath("/a//%2E./V1%2fx/?q"), CanonicalPath(""))
	}
}

func TestLLMPath(t *testing.T) {
	for path, want := range map[string]bool{
		"/v1/models": true, "/V1/responses": true, "/v1beta/models/gemini:generateContent": true,
		"/openai/deployments/d/x": true, "/api/v2/rerank": true, "/rerank": true,
		"/invocations": true, "/api/chat": true, "/api/generate": true, "/model/anthropic.claude/converse": true, "/chat": false,
		"/healthz": false, "/": false, "/index.html": false, "/metrics?v1": false, "/v10": false,
	} {
		if LLMPath(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}

func FuzzCanonicalPath(f *testing.F) {
	f.Add("/v1/%2e%2e/chat//completions;x?y")
	f.Fuzz(func(t *testing.T, path string) {
		c := CanonicalPath(path)
		if !strings.HasPrefix(c, "/") || len(c) > len(path)+1 || strings.Contains(c, "//") || strings.Contains(c+"/", "/../") {
			t.Fatalf("%q", c)
		}
		_, ok := Recognise("POST", path)
		if strings.HasSuffix(c, "/chat/completions") && !ok {
			t.Fatalf("%q is not recognised", c)
		}
	})
}

func TestRefusalIsOpenAIsErrorShape(t *testing.T) {
	type body struct {
		Error struct {
			Message, Type, Code string
			Param               *string
		}
	}
	for _, c := range []struct {
		r              Refusal
		status         int
		typ, code, prm string
	}{
		{Refusal{Reason: RateLimited, Message: "later"}, 429, "tokens", "rate_limit_exceeded", ""},
		{Refusal{Reason: RateLimited, Code: "requests", Message: "later"}, 429, "requests", "requests", ""},
		{Refusal{Reason: OverBudget, Message: "x"}, 402, "insufficient_quota", "insufficient_quota", ""},
		{Refusal{Reason: OverBudget, Status: 429}, 429, "insufficient_quota", "insufficient_quota", ""},
		{Refusal{Reason: Killed}, 403, "request_forbidden", "killed", ""},
		{Refusal{Reason: Unavailable}, 503, "server_error", "service_unavailable", ""},
		{Refusal{Reason: BadRequest, Code: "duplicate_key", Param: "messages[1].\"x\"", Message: "a \"b\"\n\x01\t\\ é \xff\x7f😀"},
			400, "invalid_request_error", "duplicate_key", "messages[1].\"x\""},
		{Refusal{Reason: TooLarge}, 413, "invalid_request_error", "request_too_large", ""},
		{Refusal{Reason: Unsupported}, 415, "invalid_request_error", "unsupported_media_type", ""},
		{Refusal{Reason: Unauthorized}, 401, "invalid_request_error", "invalid_api_key", ""},
		{Refusal{Reason: NotFound}, 404, "invalid_request_error", "not_found", ""},
		{Refusal{Reason: Internal}, 500, "server_error", "internal_error", ""},
		{Refusal{}, 500, "server_error", "internal_error", ""},
	} {
		headers, b := OpenAIChat.Refusal(c.r)
		var got body
		if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(headers, [][2]string{{"content-type", "application/json"}}) {
			t.Fatalf("%s: %v", b, err)
		}
		e := got.Error
		param := ""
		if e.Param != nil {
			param = *e.Param
		}
		want := strings.ToValidUTF8(c.r.Message, "\ufffd")
		if e.Message != want || e.Type != c.typ || e.Code != c.code || param != c.prm || c.r.HTTPStatus() != c.status {
			t.Errorf("%s: status %d, want %+v", b, c.r.HTTPStatus(), c)
		}
	}
}
