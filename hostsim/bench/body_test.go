package bench

import (
	"encoding/json"
	"testing"
)

func TestChatBodyHasItsSize(t *testing.T) {
	for _, size := range []int{300, 1 << 10, 5000, 100 << 10} {
		body := chatBody(size)
		if len(body) != size {
			t.Errorf("asked for %d bytes, got %d", size, len(body))
		}
		if !json.Valid(body) {
			t.Errorf("%d bytes: not JSON", size)
		}
	}
	if !json.Valid([]byte(chatAnswer)) {
		t.Error("the answer is not JSON")
	}
}
