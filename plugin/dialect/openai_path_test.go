package dialect

import "testing"

func TestOpenAIPaths(t *testing.T) {
	for _, c := range []struct{ method, path, dialect, model string }{
		{"POST", "/v1/chat/completions", "openai-chat", ""},
		{"POST", "/api/v1/chat/completions", "openai-chat", ""},                                // OpenRouter
		{"POST", "/openai/v1/chat/completions", "openai-chat", ""},                             // Groq, Azure's v1
		{"POST", "/compatible-mode/v1/chat/completions", "openai-chat", ""},                    // Alibaba
		{"POST", "/v1beta/openai/chat/completions", "openai-chat", ""},                         // Google
		{"POST", "/models/chat/completions?api-version=2024-05-01-preview", "openai-chat", ""}, // Azure's Foundry
		{"POST", "/openai/deployments/d1/chat/completions?api-version=z", "openai-chat", "d1"},
		{"POST", "/openai/deployments/My%20D/chat/completions/", "openai-chat", "My D"},
		{"POST", "/OpenAI/Deployments//d1/./chat/completions", "openai-chat", "d1"},
		{"POST", "/openai/deployments/d0/../d1/chat/completions", "openai-chat", "d1"},
		{"POST", "/openai/deployments/chat/completions", "openai-completions", "chat"},
		{"POST", "/openai/deployments/api/embeddings", "openai-embeddings", "api"},
		{"POST", "/v1/completions", "openai-completions", ""},
		{"POST", "/beta/completions", "openai-completions", ""},
		{"POST", "/v1/fim/completions", "openai-completions", ""},
		{"POST", "/v1/engines/davinci/completions", "openai-completions", "davinci"},
		{"POST", "/openai/deployments/d1/completions", "openai-completions", "d1"},
		{"POST", "/v1/chat/x/../completions", "openai-chat", ""},
		{"GET", "/v1/completions", "", ""},
		{"POST", "/v1/embeddings", "openai-embeddings", ""},
		{"POST", "/V1//Embeddings/", "openai-embeddings", ""},
		{"POST", "/v1/multimodalembeddings", "openai-embeddings", ""},
		{"POST", "/v1/contextualizedembeddings", "openai-embeddings", ""},
		{"POST", "/openai/deployments/ada/embeddings?api-version=z", "openai-embeddings", "ada"},
		{"POST", "/v1/engines/ada/embeddings", "openai-embeddings", "ada"},
		{"POST", "/v1/responses", "openai-responses", ""},
		{"POST", "/openai/v1/responses?api-version=preview", "openai-responses", ""},
		{"POST", "/openai/responses?api-version=2025-04-01-preview", "openai-responses", ""},
		{"POST", "/v1/responses/compact", "openai-responses", ""},
		{"POST", "/v1/responses/input_tokens", "openai-input-tokens", ""},
		{"POST", "/v1/responses/resp_1", "", ""},
		{"POST", "/v1/responses/resp_1/cancel", "", ""},
		{"GET", "/v1/responses", "", ""},
		{"GET", "/v1/responses/resp_1", "", ""},
		{"DELETE", "/v1/responses/resp_1", "", ""},
		{"GET", "/v1/embeddings", "", ""},
		{"POST", "/v1/embeddings/x", "", ""},
		{"POST", "/v1/embedding", "", ""},
	} {
		d, ok := Recognise(c.method, c.path)
		name, model := "", ""
		if ok {
			name = d.Name()
			s := d.NewScanner(RequestHead{}, 8, nil)
			s.Write([]byte(`{"model":"m"}`))
			f, _ := s.Close()
			if f.ModelInPath != (Span{}) {
				model = f.Model
				if f.ModelSpan != (Span{}) {
					t.Errorf("%s: the model of the body counts beside that of the path", c.path)
				}
			}
		}
		if name != c.dialect || model != c.model {
			t.Errorf("%s %s: %q of model %q", c.method, c.path, name, model)
		}
	}
}

func TestFreeCalls(t *testing.T) {
	for _, c := range []struct {
		method, path string
		want         bool
	}{
		{"GET", "/v1/models", true}, {"GET", "/v1/models/gpt-5", true}, {"get", "/openai/v1/models?x=y", true},
		{"GET", "/v1/responses/resp_1", true}, {"GET", "/v1/responses/resp_1/input_items", true}, {"DELETE", "/v1/responses/resp_1", true},
		{"POST", "/v1/responses/resp_1/cancel", true}, {"GET", "/v1/chat/completions", true}, {"GET", "/v1/chat/completions/c1/messages", true},
		{"POST", "/v1/moderations", true}, {"POST", "/v1/chat/completions/c1", true}, {"POST", "/v1/chat/completions", false}, {"HEAD", "/v1/models", true}, {"OPTIONS", "/v1/chat/completions", true},
		{"GET", "/v1/responses", false}, {"POST", "/v1/responses", false}, {"POST", "/v1/models", false}, {"POST", "/v1/cancel", false},
		{"POST", "/v1/responses/cancel", false}, {"GET", "/v1/realtime", false}, {"GET", "/v1/completions", false}, {"POST", "/v1/batches", false},
		{"POST", "/v1/threads;/moderations", false}, {"POST", "/v1/moderations;x", false}, {"GET", "/v1/realtime%3F/models", false},
		{"GET", "/v1/batches", false}, {"PUT", "/v1/models/m", false}, {"GET", "/", false}, {"", "", false},
	} {
		if Free(c.method, c.path) != c.want {
			t.Errorf("%s %s: %v", c.method, c.path, !c.want)
		}
	}
}
