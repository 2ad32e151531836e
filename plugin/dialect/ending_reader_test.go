package dialect

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
)

// The readers below take a stream as the official libraries do, and complain of all that these would
// raise about, of what a strict one could, and of an end that is missing or comes twice.

type object = map[string]any

// sentAs is an event: its name and its data, or a line, or a message.
type sentAs struct {
	name string
	doc  object // nil for [DONE]
}

func decode(doc string) (object, error) {
	var v object
	d := json.NewDecoder(strings.NewReader(doc))
	if err := d.Decode(&v); err != nil || d.More() {
		return nil, fmt.Errorf("no JSON: %q: %v", doc, err)
	}
	return v, nil
}

// readSSE takes events apart that end with an empty line, the last too.
func readSSE(stream string) (all []sentAs, comments []string, err error) {
	stream = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(stream)
	if stream != "" && !strings.HasSuffix(stream, "\n\n") {
		return nil, nil, fmt.Errorf("it ends within an event")
	}
	for block := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		var e sentAs
		data := ""
		for line := range strings.SplitSeq(strings.TrimPrefix(block, "\n"), "\n") {
			key, value, _ := strings.Cut(line, ": ")
			switch key {
			case "":
				comments = append(comments, value)
			case "data":
				data += value
			case "event":
				e.name = value
			default:
				return nil, nil, fmt.Errorf("a line %q", line)
			}
		}
		if data == "" {
			continue
		}
		if data != "[DONE]" {
			if e.doc, err = decode(data); err != nil {
				return nil, nil, err
			}
		}
		all = append(all, e)
	}
	return all, comments, nil
}

func readLines(stream string) (all []sentAs, err error) {
	if !strings.HasSuffix(stream, "\n") {
		return nil, fmt.Errorf("the last line has no end")
	}
	for line := range strings.Lines(stream) {
		doc, err := decode(line)
		if err != nil {
			return nil, err
		}
		all = append(all, sentAs{doc: doc})
	}
	return all, nil
}

func readArray(stream string) (all []sentAs, err error) {
	var docs []object
	if err := json.Unmarshal([]byte(stream), &docs); err != nil {
		return nil, err
	}
	for _, d := range docs {
		all = append(all, sentAs{doc: d})
	}
	return all, nil
}

// readFrames checks both checksums of every message.
func readFrames(stream string, wrapped bool) (all []sentAs, err error) {
	b := []byte(stream)
	for len(b) > 0 {
		if len(b) < 16 || int(binary.BigEndian.Uint32(b)) > len(b) {
			return nil, fmt.Errorf("it ends within a message")
		}
		size, heads := int(binary.BigEndian.Uint32(b)), int(binary.BigEndian.Uint32(b[4:]))
		if crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) || crc32.ChecksumIEEE(b[:size-4]) != binary.BigEndian.Uint32(b[size-4:]) {
			return nil, fmt.Errorf("a checksum is wrong")
		}
		headers := map[string]string{}
		for h := b[12 : 12+heads]; len(h) > 0; {
			n := int(h[0])
			v := int(binary.BigEndian.Uint16(h[n+2:]))
			headers[string(h[1:n+1])] = string(h[n+4 : n+4+v])
			h = h[n+4+v:]
		}
		if headers[":message-type"] != "event" || headers[":content-type"] != "application/json" {
			return nil, fmt.Errorf("headers %v", headers)
		}
		payload := string(b[12+heads : size-4])
		b = b[size:]
		if wrapped {
			doc, err := decode(payload)
			if err != nil {
				return nil, err
			}
			inner, err := base64.StdEncoding.DecodeString(doc["bytes"].(string))
			if err != nil || headers[":event-type"] != "chunk" {
				return nil, fmt.Errorf("%v of %v", err, headers)
			}
			payload = string(inner)
		}
		doc, err := decode(payload)
		if err != nil {
			return nil, err
		}
		all = append(all, sentAs{headers[":event-type"], doc})
	}
	return all, nil
}

func pick(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			o, _ := v.(object)
			v = o[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func list(v any, path ...any) []any {
	l, _ := pick(v, path...).([]any)
	return l
}

func whole(v any, path ...any) int {
	f, ok := pick(v, path...).(float64)
	if !ok {
		return -1
	}
	return int(f)
}

// chatReader is finalizeChatCompletion of openai-node, which wants a role and a reason of every choice.
func chatReader(all []sentAs, usage bool, object string) error {
	id, roles, reasons := any(nil), map[int]bool{}, map[int]string{}
	reported := 0
	for i, e := range all {
		if e.doc == nil {
			if i != len(all)-1 {
				return fmt.Errorf("something comes after [DONE]")
			}
			continue
		}
		if now, ok := pick(e.doc, "id").(string); !ok || now != "" && now != id {
			if id != nil {
				return fmt.Errorf("id %v, then %v", id, now)
			}
			id = now
		}
		if e.doc["object"] != object || pick(e.doc, "model") != "gpt-5" && pick(e.doc, "model") != "" {
			return fmt.Errorf("%v", e.doc)
		}
		for _, c := range list(e.doc, "choices") {
			n := whole(c, "index")
			if n < 0 || reasons[n] != "" {
				return fmt.Errorf("choice %d goes on behind its end", n)
			}
			if pick(c, "delta", "role") != nil {
				if roles[n] {
					return fmt.Errorf("a second role")
				}
				roles[n] = true
			}
			if pick(c, "delta") != nil && !roles[n] {
				return fmt.Errorf("choice %d has no role", n)
			}
			roles[n] = true
			reasons[n], _ = pick(c, "finish_reason").(string)
		}
		if pick(e.doc, "usage") != nil {
			if reported++; len(list(e.doc, "choices")) != 0 || whole(e.doc, "usage", "prompt_tokens") != 5 ||
				whole(e.doc, "usage", "total_tokens") != whole(e.doc, "usage", "completion_tokens")+5 {
				return fmt.Errorf("usage %v", e.doc)
			}
		}
	}
	if all[len(all)-1].doc != nil {
		return fmt.Errorf("no [DONE]")
	}
	if len(roles) == 0 {
		return fmt.Errorf("no choice")
	}
	for n := range roles {
		if reasons[n] == "" {
			return fmt.Errorf("choice %d has no reason", n)
		}
	}
	if want := map[bool]int{true: 1}[usage]; reported != want {
		return fmt.Errorf("%d reports of usage", reported)
	}
	return nil
}

// claudeReader is accumulate_event of anthropic-python, and the order that Anthropic documents.
func claudeReader(all []sentAs, named bool) error {
	open, next, state := -1, 0, "new"
	for i, e := range all {
		kind, _ := e.doc["type"].(string)
		if named && kind != e.name {
			return fmt.Errorf("%s is named %s", kind, e.name)
		}
		ok := true
		switch kind {
		case "message_start":
			ok, state = state == "new", "open"
		case "content_block_start":
			ok = state == "open" && open < 0 && whole(e.doc, "index") == next
			open, next = next, next+1
		case "content_block_delta":
			ok = state == "open" && whole(e.doc, "index") == open
		case "content_block_stop":
			ok = state == "open" && open >= 0 && whole(e.doc, "index") == open
			open = -1
		case "message_delta":
			ok = state == "open" && open < 0 && pick(e.doc, "delta", "stop_reason") != nil && whole(e.doc, "usage", "output_tokens") >= 0 &&
				whole(e.doc, "usage", "input_tokens") == 3 && whole(e.doc, "usage", "cache_read_input_tokens") == 2
			state = "stopped"
		case "message_stop":
			ok, state = state == "stopped" && i == len(all)-1, "over"
		case "ping":
		default:
			ok = false
		}
		if !ok {
			return fmt.Errorf("%v out of order", e.doc)
		}
	}
	if state != "over" {
		return fmt.Errorf("no message_stop")
	}
	return nil
}

// responsesReader is accumulate_event of openai-python and accumulateResponse of openai-node.
func responsesReader(all []sentAs) error {
	id, last := any(nil), -1
	for i, e := range all {
		kind, _ := e.doc["type"].(string)
		if kind != e.name || whole(e.doc, "sequence_number") != last+1 {
			return fmt.Errorf("%s named %s, number %v after %d", kind, e.name, e.doc["sequence_number"], last)
		}
		last++
		if (kind == "response.created") != (i == 0) {
			return fmt.Errorf("%s as event %d", kind, i)
		}
		r := e.doc["response"]
		if r == nil {
			continue
		}
		if i == 0 {
			id = pick(r, "id")
		}
		if pick(r, "id") != id || pick(r, "output") == nil || pick(r, "error") != nil || pick(r, "model") != "gpt-5" || whole(r, "created_at") != 1766000000 {
			return fmt.Errorf("%v", r)
		}
	}
	end := all[len(all)-1].doc
	switch end["type"] {
	case "response.completed":
		return nil
	case "response.incomplete":
		r := end["response"]
		if pick(r, "status") == "incomplete" && pick(r, "incomplete_details", "reason") == "max_output_tokens" && whole(r, "usage", "input_tokens") == 5 &&
			whole(r, "usage", "total_tokens") >= 5 && whole(r, "usage", "input_tokens_details", "cached_tokens") == 2 && whole(r, "usage", "output_tokens_details", "reasoning_tokens") >= 0 {
			return nil
		}
	}
	return fmt.Errorf("it ends with %v", end)
}

// geminiReader wants one reason of every candidate, a part in each piece, and the usage at the end.
func geminiReader(all []sentAs, wrapped bool) error {
	open, seen := map[int]bool{}, false
	for _, e := range all {
		doc := any(e.doc)
		if wrapped {
			doc = e.doc["response"]
		}
		if pick(doc, "responseId") != "r-1" || pick(doc, "modelVersion") != "gemini-3" {
			return fmt.Errorf("%v", doc)
		}
		for _, c := range list(doc, "candidates") {
			n := max(whole(c, "index"), 0)
			if was, had := open[n]; had && !was || len(list(c, "content", "parts")) == 0 {
				return fmt.Errorf("%v", c)
			}
			open[n], seen = pick(c, "finishReason") == nil, true
		}
	}
	for n, still := range open {
		if still {
			return fmt.Errorf("candidate %d has no reason", n)
		}
	}
	last := any(all[len(all)-1].doc)
	if wrapped {
		last = pick(last, "response")
	}
	if !seen || whole(last, "usageMetadata", "promptTokenCount") != 5 {
		return fmt.Errorf("no candidate, or no usage: %v", last)
	}
	return nil
}

func cohereReader(all []sentAs) error {
	open, state := []string{}, "new"
	for i, e := range all {
		kind, _ := e.doc["type"].(string)
		block := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(kind, "-start"), "-end"), "-delta") + fmt.Sprint(whole(e.doc, "index"))
		ok := kind == e.name
		switch kind {
		case "message-start":
			ok, state = ok && state == "new", "open"
		case "content-start", "tool-call-start":
			ok = ok && state == "open" && !slices.Contains(open, block)
			open = append(open, block)
		case "content-delta", "tool-call-delta":
			ok = ok && slices.Contains(open, block)
		case "content-end", "tool-call-end":
			ok = ok && slices.Contains(open, block)
			open = slices.DeleteFunc(open, func(s string) bool { return s == block })
		case "message-end":
			ok = ok && len(open) == 0 && state == "open" && i == len(all)-1 && pick(e.doc, "delta", "finish_reason") != nil &&
				whole(e.doc, "delta", "usage", "tokens", "input_tokens") == 5
			state = "over"
		default:
			ok = false
		}
		if !ok {
			return fmt.Errorf("%v, %v open", e.doc, open)
		}
	}
	if state != "over" {
		return fmt.Errorf("no message-end")
	}
	return nil
}

// lastOnly wants the end to come once, as the last.
func lastOnly(all []sentAs, ends func(object) bool) error {
	for i, e := range all {
		if ends(e.doc) != (i == len(all)-1) {
			return fmt.Errorf("%v as document %d of %d", e.doc, i+1, len(all))
		}
	}
	return nil
}

// converseReader closes what deltas open.
func converseReader(all []sentAs) error {
	open, state := -1, "new"
	for i, e := range all {
		n, ok := whole(e.doc, "contentBlockIndex"), true
		switch e.name {
		case "messageStart":
			ok, state = state == "new", "open"
		case "contentBlockStart", "contentBlockDelta":
			ok = state == "open" && (open < 0 || open == n)
			open = n
		case "contentBlockStop":
			ok = state == "open" && open == n
			open = -1
		case "messageStop":
			ok, state = state == "open" && open < 0 && pick(e.doc, "stopReason") != nil, "stopped"
		case "metadata":
			ok = state == "stopped" && i == len(all)-1 && whole(e.doc, "usage", "inputTokens") == 3 && whole(e.doc, "metrics", "latencyMs") >= 0
			state = "over"
		default:
			ok = false
		}
		if !ok {
			return fmt.Errorf("%s %v out of order", e.name, e.doc)
		}
	}
	if state != "over" {
		return fmt.Errorf("no metadata")
	}
	return nil
}
