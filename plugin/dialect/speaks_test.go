package dialect

import (
	"strings"
	"testing"
)

func TestSpeaks(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/messages/batches": "anthropic-messages", "/anthropic/v1/files": "anthropic-messages", "/V1//m%65ssages/x": "anthropic-messages",
		"/v1/projects/p/publishers/anthropic/models/m:predict": "anthropic-messages",
		"/v2/datasets": "cohere-chat", "/v1/embed-jobs": "cohere-chat",
		"/v1beta/models/g:batchGenerateContent": "gemini-generate", "/v1/projects/p/publishers/google/models/g:x": "gemini-generate",
		"/v1/publishers/x/models/m:predict": "gemini-generate", "/g/m:asyncBatchEmbedContent": "gemini-generate",
		"/model/m/invoke-with-bidirectional-stream": "bedrock-converse", "/async-invoke": "bedrock-converse", "/model-invocation-job": "bedrock-converse",
		"/v1/batches": "openai-chat", "/v1/threads/t/messages": "openai-chat", "/v1/x?y=/v1/messages": "openai-chat", "": "openai-chat", "/v2": "openai-chat",
	} {
		if got := Speaks(path).Name(); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
		batch := strings.Contains(strings.ToLower(path), "batch") || strings.HasPrefix(path, "/async") || strings.HasSuffix(path, "job")
		if Batch(path) != batch {
			t.Errorf("%s: a batch: %v", path, !batch)
		}
	}
}
