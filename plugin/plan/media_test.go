package plan

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/emmer-proxy/emmer/plugin/dialect"
)

// TestMediaAreNeverText is case C77 for the APIs that hold media in places of their own: 1.5 MB of
// base64 is the same picture as a URL of it in a chat, neither text nor nothing.
func TestMediaAreNeverText(t *testing.T) {
	png := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 1024), 768)...)
	data := base64.StdEncoding.EncodeToString(append(png, make([]byte, 1<<20)...))
	c := compiled(t, "models", `{"gpt-4o": {"tokenizer": "o200k_base", "max_output": 100}}`)
	const picture = 765 // four tiles of 512 by 512, and the base
	for path, body := range map[string]string{
		"/v1/chat/completions":                  `{"model":"gpt-4o","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,DATA"}}]}]}`,
		"/v1beta/models/gpt-4o:generateContent": `{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"DATA"}}]}]}`,
		"/v1/models/gpt-4o:generateContent":     `{"contents":[{"role":"user","parts":[{"functionResponse":{"parts":[{"inline_data":{"data":"DATA","mime_type":"image/png"}}]}}]}]}`,
		"/model/gpt-4o/converse":                `{"messages":[{"role":"user","content":[{"image":{"format":"png","source":{"bytes":"DATA"}}}]}]}`,
		"/model/gpt-4o/converse-stream":         `{"messages":[{"role":"user","content":[{"toolResult":{"content":[{"image":{"format":"png","source":{"bytes":"DATA"}}}]}}]}]}`,
		"/model/gpt-4o/invoke":                  `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"DATA"}}]}]}`,
		"/api/chat":                             `{"model":"gpt-4o","messages":[{"role":"user","images":["DATA"]}]}`,
	} {
		d, ok := dialect.Recognise("POST", path)
		if !ok {
			t.Fatal(path)
		}
		p, refusal := Build(c, d, Caller{}, []byte(strings.ReplaceAll(body, "DATA", data)), now)
		if refusal != nil {
			t.Fatalf("%s: %+v", path, *refusal)
		}
		if p.Raw < picture || p.Raw > picture+10 {
			t.Errorf("%s: %d tokens, want %d and the frame", path, p.Raw, picture)
		}
	}
}
