package hostsim

import (
	"errors"
	"net"
	"sort"
	"strings"
	"sync"
)

// The ABI's ways of a connection to end (proxy_on_downstream_connection_close).
const (
	closedLocally  = 1
	closedRemotely = 2
)

// The directions of a network filter's bytes.
const (
	fromClient = 0
	toClient   = 1
)

// networkFilter is one network filter of one connection: a context of the VM.
type networkFilter struct {
	n      *network
	plugin *plugin
	vm     *vm
	ctx    vmContext
	data   [2]*body // in reach while its callback runs
}

// network is a connection that network filters stand before: what the HTTP server reads from it and writes to it
// passes them first, on the connection's worker, in Envoy's order: reads in the chain's, writes against it.
type network struct {
	net.Conn
	l       *listener
	c       *connection
	filters []*networkFilter // of the worker's loop
	closed  bool             // of the worker's loop
	state   map[string][]byte

	writing sync.Mutex // a write, from the filters to the socket
	ended   bool       // under writing

	// of the one reader:
	passed  []byte // what the filters let through and nobody has read
	readErr error
	buf     []byte
}

// open makes the filters' contexts, before a byte is read.
func (n *network) open() {
	w := n.c.worker
	for _, p := range n.l.network {
		v := w.place(p)
		if v.failed && p.policy == FailOpen {
			continue
		}
		if v.failed {
			n.close("")
			return
		}
		root := v.roots[p.key]
		f := &networkFilter{n: n, plugin: p, vm: v}
		f.ctx.root, f.ctx.network = root, f
		v.newContext(&f.ctx)
		n.filters = append(n.filters, f)
		v.call("proxy_on_context_create", &f.ctx, 0, uint64(f.ctx.id), uint64(root.id))
		v.runAfter()
		f.invoke("proxy_on_new_connection")
	}
}

// invoke runs a callback that may return Pause, which no connection here can be resumed from.
func (f *networkFilter) invoke(name string, args ...uint64) {
	a := f.vm.call(name, &f.ctx, uint32(actContinue), append([]uint64{uint64(f.ctx.id)}, args...)...)
	f.vm.runAfter()
	switch {
	case a.dead:
		f.n.close("") // as in Envoy, whatever the failure policy
	case a.value != uint32(actContinue) && name == "proxy_on_upstream_data":
		f.n.l.host.violate("%q stops bytes on their way to the client: Envoy has no way to let them go on", f.plugin.name)
	case a.value != uint32(actContinue):
		f.n.l.host.violate("%q stops a connection in %s: this host can't hold one", f.plugin.name, name)
	}
}

// pass takes a piece through the filters; ok is false when the connection ended on the way, and the piece is lost.
func (n *network) pass(direction int, piece []byte) (out []byte, ok bool) {
	if n.closed {
		return nil, false
	}
	b := &body{append([]byte(nil), piece...)}
	name := [2]string{"proxy_on_downstream_data", "proxy_on_upstream_data"}[direction]
	filters := n.filters
	for i := range filters {
		f := filters[i]
		if direction == toClient {
			f = filters[len(filters)-1-i]
		}
		f.data[direction] = b
		f.invoke(name, uint64(len(b.b)), 0)
		f.data[direction] = nil
		if n.closed {
			if direction == toClient {
				n.l.host.strictly("%q closes the connection while bytes are written: %d are lost", f.plugin.name, len(b.b))
			}
			return nil, false
		}
	}
	return b.b, true
}

// over tells the filters, once, that the connection has ended.
func (n *network) over(how uint64) {
	if n.closed {
		return
	}
	n.closed = true
	for _, f := range n.filters {
		for _, step := range []struct {
			name string
			args []uint64
		}{{"proxy_on_downstream_connection_close", []uint64{uint64(f.ctx.id), how}}, {name: "proxy_on_done"}, {name: "proxy_on_log"}, {name: "proxy_on_delete"}} {
			args := step.args
			if args == nil {
				args = []uint64{uint64(f.ctx.id)}
			}
			f.vm.call(step.name, &f.ctx, 1, args...)
			f.vm.runAfter()
		}
		delete(f.vm.contexts, f.ctx.id)
	}
}

// close ends the connection from this side: what was written goes out, then comes FIN; streams end.
func (n *network) close(why string) {
	if n.closed {
		return
	}
	n.over(closedLocally)
	details := "downstream_local_disconnect"
	if why != "" {
		details += "(" + why + ")"
	}
	var streams []*stream
	for s := range n.c.worker.streams {
		if s.conn == n.c {
			streams = append(streams, s)
		}
	}
	sort.Slice(streams, func(i, j int) bool { return streams[i].id < streams[j].id })
	for _, s := range streams {
		s.flags |= flagDownstreamGone
		s.explain(details)
		s.reset()
	}
	h := n.l.host
	h.running.Add(1)
	go func() { // a write may be under way, and wait for this loop
		defer h.running.Done()
		n.writing.Lock()
		defer n.writing.Unlock()
		n.ended = true
		_ = n.Conn.Close()
	}()
}

func (n *network) Read(p []byte) (int, error) {
	for len(n.passed) == 0 {
		if n.readErr != nil {
			return 0, n.readErr
		}
		if n.buf == nil {
			n.buf = make([]byte, http2Frame)
		}
		k, err := n.Conn.Read(n.buf)
		if k > 0 {
			n.c.worker.run(func() { n.passed, _ = n.pass(fromClient, n.buf[:k]) })
		}
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return n.take(p), err // the server's own way to interrupt a read
		}
		if err != nil {
			n.readErr = err
			n.c.worker.run(func() { n.over(closedRemotely) })
		}
	}
	return n.take(p), nil
}

func (n *network) take(p []byte) int {
	k := copy(p, n.passed)
	n.passed = n.passed[k:]
	return k
}

func (n *network) Write(p []byte) (int, error) {
	n.writing.Lock()
	defer n.writing.Unlock()
	if n.ended {
		return 0, net.ErrClosed
	}
	var out []byte
	ok := false
	n.c.worker.run(func() { out, ok = n.pass(toClient, p) })
	if !ok {
		return 0, net.ErrClosed
	}
	if _, err := n.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close is the server's.
func (n *network) Close() error {
	n.c.worker.post(func() { n.over(closedLocally) })
	return n.Conn.Close()
}

// property is what a network filter can ask for.
func (n *network) property(path []string) ([]byte, bool) {
	one := ""
	if len(path) > 1 {
		one = path[1]
	}
	if v, known, ok := n.c.property(path[0], one); known {
		return v, ok
	}
	if path[0] == "xds" && one == "node" {
		return []byte("hostsim"), true
	}
	v, ok := n.state["wasm."+strings.Join(path, "\x00")]
	return v, ok
}
