package bench

import (
	"fmt"
	"strconv"
	"strings"
)

// prose is what the benchmark's users talk about; English with digits and punctuation, so that a
// token counter meets what it meets in life.
const prose = "The gateway reserves 1,024 tokens before the call and settles what was used after it; " +
	"nothing is admitted twice. Please summarise the incident of 14 March, list who was affected, and " +
	"say in two sentences what we should tell the customers whose orders (about 3.7 %) were delayed. "

// chatBody is an OpenAI chat request of exactly size bytes, a conversation of several turns.
func chatBody(size int) []byte {
	const head = `{"model":"gpt-4o","max_tokens":256,"temperature":0.2,"messages":[{"role":"system","content":"You answer briefly."}`
	const tail = `]}`
	var b strings.Builder
	b.WriteString(head)
	roles := []string{"user", "assistant"}
	for turn := 0; ; turn++ {
		frame := len(`,{"role":"`+roles[turn%2]+`","content":""}`) + len(tail)
		left := size - b.Len() - frame
		if left <= 0 {
			break
		}
		// The last turn takes what is left; a remainder too small for a turn of its own is avoided.
		text := min(left, 2000)
		if left-text < 200 {
			text = left
		}
		fmt.Fprintf(&b, `,{"role":"%s","content":"%s"}`, roles[turn%2], proseOf(text, turn*37))
	}
	b.WriteString(tail)
	return []byte(b.String())
}

// proseOf is n bytes of prose, beginning at some offset.
func proseOf(n, offset int) string {
	offset %= len(prose)
	text := strings.Repeat(prose, n/len(prose)+2)
	return text[offset : offset+n]
}

// chatAnswer is what the fake provider says.
const chatAnswer = `{"id":"chatcmpl-bench","object":"chat.completion","created":1700000000,"model":"gpt-4o",` +
	`"choices":[{"index":0,"message":{"role":"assistant","content":"Nobody was affected for longer than an hour."},"finish_reason":"stop"}],` +
	`"usage":{"prompt_tokens":200,"completion_tokens":10,"total_tokens":210}}`

func chatRequest(body []byte) []byte {
	head := "POST /v1/chat/completions HTTP/1.1\r\nhost: llm.test\r\ncontent-type: application/json\r\n" +
		"x-tenant: acme\r\nauthorization: Bearer sk-bench-0001\r\ncontent-length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
	return append([]byte(head), body...)
}
