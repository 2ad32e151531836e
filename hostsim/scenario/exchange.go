package scenario

import (
	"net/http"
	"sync"
	"time"
)

// exchangePatience is how long a request may take in all before the client gives up.
const exchangePatience = 30 * time.Second

// How an answer can end.
const (
	endComplete = "complete" // as its framing says
	endCut      = "cut"      // the connection was closed before its end
	endReset    = "reset"    // RST, or RST_STREAM
	endTimeout  = "timeout"  // the client gave up
	endAborted  = "aborted"  // the client left, as the scenario said
	endRefused  = "refused"  // no connection
)

// exchange is one request of the client and what came back so far.
type exchange struct {
	label   string
	message *message
	gateway int

	mu       sync.Mutex
	changed  chan struct{}
	informed []int // 1xx statuses
	status   int   // 0 = no answer yet
	header   http.Header
	body     []byte
	trailer  http.Header
	end      string // "" = still running
	detail   string
	left     bool // the scenario ended it
	sent     int  // bytes of the body that `part` has taken

	// put sends a piece of the body, done ends it, leave gives up: rudely or with a proper close.
	put   func(piece []byte)
	done  func()
	leave func(rude bool)
}

func newExchange(label string, m *message) *exchange {
	return &exchange{label: label, message: m, changed: make(chan struct{})}
}

func (x *exchange) note(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f()
	close(x.changed)
	x.changed = make(chan struct{})
}

func (x *exchange) seen() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.changed
}

func (x *exchange) ended() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.end != ""
}

// finish records how the exchange ended; the first end stands.
func (x *exchange) finish(end, detail string) {
	x.note(func() {
		if x.end != "" {
			return
		}
		if x.left && end != endComplete {
			end = endAborted
		}
		x.end, x.detail = end, detail
	})
}

// pieces cuts a body as the scenario asked for; the last size repeats.
func pieces(body []byte, sizes []int) [][]byte {
	if len(sizes) == 0 {
		return [][]byte{body}
	}
	var out [][]byte
	for i := 0; len(body) > 0; i++ {
		n := min(sizes[min(i, len(sizes)-1)], len(body))
		out = append(out, body[:n])
		body = body[n:]
	}
	return out
}
