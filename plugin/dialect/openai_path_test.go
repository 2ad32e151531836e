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
		{"POST", "/openai/deployments/chat/completions", "openai-chat", ""},
		{"POST", "/v1/engines/davinci/completions", "", ""},
		{"POST", "/v1/embeddings", "openai-embeddings", ""},
		{"POST", "/V1//Embeddings/", "openai-embeddings", ""},
		{"POST", "/v1/multimodalembeddings", "openai-embeddings", ""},
		{"POST", "/v1/contextualizedembeddings", "openai-embeddings", ""},
		{"POST", "/openai/deployments/ada/embeddings?api-version=z", "openai-embeddings", "ada"},
		{"POST", "/v1/engines/ada/embeddings", "openai-embeddings", "ada"},
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
