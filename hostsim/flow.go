package hostsim

import "sync"

// gate holds back a goroutine that reads from the network: while the worker has paused it, or while more than
// gateRoom bytes that it read are not yet handed on.
type gate struct {
	mu     sync.Mutex
	moved  sync.Cond
	paused bool
	shutup bool
	queued int
}

const gateRoom = 256 << 10

func newGate() *gate {
	g := &gate{}
	g.moved.L = &g.mu
	return g
}

// wait returns false when there is nobody left to read for.
func (g *gate) wait() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.shutup && (g.paused || g.queued > gateRoom) {
		g.moved.Wait()
	}
	return !g.shutup
}

func (g *gate) change(f func()) {
	g.mu.Lock()
	f()
	g.moved.Broadcast()
	g.mu.Unlock()
}

func (g *gate) pause(on bool) { g.change(func() { g.paused = on }) }
func (g *gate) add(n int)     { g.change(func() { g.queued += n }) }
func (g *gate) shut()         { g.change(func() { g.shutup = true }) }

type outKind uint8

const (
	outHeaders outKind = iota
	outData
	outTrailers
	outEnd
	outReset
)

// outItem is one step of a response on its way to the client's connection.
type outItem struct {
	kind  outKind
	head  *fields
	data  []byte
	end   bool // headers only: nothing follows
	close bool // headers only: the connection ends with this response
}

// outbox is the queue between a worker and the goroutine that writes to the client.
type outbox struct {
	mu    sync.Mutex
	more  sync.Cond
	items []outItem
}

func newOutbox() *outbox {
	o := &outbox{}
	o.more.L = &o.mu
	return o
}

func (o *outbox) push(i outItem) {
	o.mu.Lock()
	o.items = append(o.items, i)
	o.more.Signal()
	o.mu.Unlock()
}

func (o *outbox) pop() outItem {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.items) == 0 {
		o.more.Wait()
	}
	i := o.items[0]
	o.items[0] = outItem{}
	o.items = o.items[1:]
	return i
}

// empty says whether nothing waits to be written.
func (o *outbox) empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.items) == 0
}

// uplink is a request body on its way to the upstream: an io.ReadCloser for net/http's transport.
type uplink struct {
	mu      sync.Mutex
	more    sync.Cond
	chunks  [][]byte
	ended   bool
	stopped error
	flow    *gate
	atEnd   func() // runs in the reader once, right before io.EOF
}
