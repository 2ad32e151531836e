package shell

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm"
	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/emmer-proxy/emmer/plugin/closer"
)

// The types of closeStream.
const (
	closeResponse   = 1 // in an HTTP context: reset what is left of the stream
	closeDownstream = 2 // in a connection's context: FIN behind what was written
)

// wire is one connection at the closer's entry, before the HTTP server: it sees what the client is
// sent, and puts the end of a cut answer in. It shares the VM with the HTTP entries, which find it by
// the connection's id.
type wire struct {
	types.DefaultTcpContext
	plugin *plugin
	id     uint32
	key    uint64
	conn   closer.Conn
	armed  map[closer.Mark]*exchange
	gone   bool
}

// connectionID is the same in a connection's context and in those of its exchanges.
func connectionID() (uint64, bool) {
	b, err := proxywasm.GetProperty([]string{"connection", "id"})
	if err != nil || len(b) != 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

// OnNewConnection announces the closer to the exchanges of this connection.
func (w *wire) OnNewConnection() types.Action {
	defer w.guard("a new connection")
	key, ok := connectionID()
	if !ok { // answers of this connection are never cut
		w.gone = true
		w.plugin.vm.counters.add("emmer.host_refused", 1)
		return types.ActionContinue
	}
	w.key = key
	w.plugin.vm.wires[key] = w
	return types.ActionContinue
}

func (w *wire) OnUpstreamData(size int, _ bool) types.Action {
	if w.gone || size == 0 {
		return types.ActionContinue
	}
	defer w.guard("bytes of a connection")
	out := w.conn.Pass(size, func(from, to int) []byte {
		b, _ := proxywasm.GetUpstreamData(from, to-from)
		return b // none: then nothing on this connection is cut any more
	})
	w.edit(size, out.Edits)
	for _, e := range out.Ended {
		w.ended(e)
	}
	for _, mark := range out.Lost {
		// Its final bytes passed, or pass still, without an end behind them: the exchange ends as it would
		// have without a closer.
		delete(w.armed, mark)
		w.plugin.vm.counters.add("emmer.close_lost", 1)
	}
	if out.Untracked {
		w.plugin.vm.counters.add("emmer.close_untracked", 1)
	}
	return types.ActionContinue
}

// edit changes the piece that is being written. A host that refuses leaves it as it was: an end that
// was to be put in is then missing, so the fault ends the work on this connection.
func (w *wire) edit(size int, edits []closer.Edit) {
	var err error
	switch {
	case len(edits) == 0:
		return
	case len(edits) == 1 && edits[0].At == size:
		err = proxywasm.AppendUpstreamData(edits[0].Insert)
	default:
		var b []byte
		if b, err = proxywasm.GetUpstreamData(0, size); err == nil {
			err = proxywasm.ReplaceUpstreamData(closer.Apply(b, edits))
		}
	}
	if err != nil {
		panic("editing bytes of a connection: " + err.Error())
	}
}

// ended lets the host end what the client has seen end: never in this callback, inside which the
// bytes are still being written.
func (w *wire) ended(e closer.Ended) {
	x := w.armed[e.Mark]
	delete(w.armed, e.Mark)
	w.plugin.vm.counters.add("emmer.closed_clean", 1)
	if e.Close {
		w.plugin.later(w.close)
		return
	}
	if x == nil || x.gone { // it ended by itself meanwhile
		return
	}
	x.cutting = false
	x.later(func() {
		x.spent = true
		closeStream(closeResponse)
	})
}

// close ends the connection: the client gets FIN at once, and its exchange is done.
func (w *wire) close() {
	if w.gone || proxywasm.SetEffectiveContext(w.id) != nil {
		return
	}
	closeStream(closeDownstream)
}

// OnDownstreamClose comes before the connection's exchanges are done.
func (w *wire) OnDownstreamClose(types.PeerType) { w.leave() }

func (w *wire) OnStreamDone() { w.leave() }

func (w *wire) leave() {
	w.gone = true
	if w.plugin.vm.wires[w.key] == w {
		delete(w.plugin.vm.wires, w.key)
	}
	w.armed = nil
}

// guard keeps a fault on one connection from killing the VM. What the walk knew is no longer sure:
// the connection's bytes pass as they are from here on, and nothing on it is cut any more.
func (w *wire) guard(where string) {
	if e := recover(); e != nil {
		w.plugin.vm.counters.add("emmer.recovered", 1)
		proxywasm.LogCritical("emmer: fault in " + where + ": " + describe(e))
		w.leave()
	}
}

// randomMark is what final bytes are known by: 128 random bits.
func randomMark() closer.Mark {
	const digits = "0123456789abcdef"
	var m closer.Mark
	var bits uint64
	for i := range m {
		if i%16 == 0 {
			bits = rand.Uint64()
		}
		m[i] = digits[bits&15]
		bits >>= 4
	}
	return m
}

// hasCloser says whether the connection of this exchange has a closer in this VM.
func (x *exchange) hasCloser() bool {
	if x.wire == nil && len(x.plugin.vm.wires) > 0 {
		if key, ok := connectionID(); ok {
			x.wire = x.plugin.vm.wires[key]
		}
	}
	return x.wire != nil && !x.wire.gone
}

// mayCut announces, in the callback of the response headers, that this answer may be cut: on HTTP/1.1
// its head then says connection: close. Not for an answer to HEAD, nor for one that states its length,
// which would be a lie. False: there is no closer, or none that could follow.
func (x *exchange) mayCut() bool {
	x.announced = x.hasCloser() && x.wire.conn.Announce()
	return x.announced
}

// canCut says, in a body callback, whether the answer that was announced could be cut there.
func (x *exchange) canCut() bool { return x.announced && x.hasCloser() && x.wire.conn.CanCut() }

// arm is called in the body callback that hands the answer's final bytes to the host, before it
// returns. They contain the mark once, and after bytes follow it. From then on the exchange hands on
// nothing: bytes are emptied, trailers held. Once the end is on the wire the host closes the stream.
// False: nothing will end this answer on the wire.
func (x *exchange) arm(mark closer.Mark, after int) bool {
	if !x.canCut() || x.cutting || !x.wire.conn.Arm(mark, after) {
		return false
	}
	if x.wire.armed == nil {
		x.wire.armed = map[closer.Mark]*exchange{}
	}
	x.wire.armed[mark] = x
	x.cutting, x.mark = true, mark
	return true
}

// disarm forgets a cut whose exchange is over before its end is on the wire.
func (x *exchange) disarm() {
	if x.cutting && x.wire != nil && !x.wire.gone {
		x.wire.conn.Disarm(x.mark)
		delete(x.wire.armed, x.mark)
	}
	x.cutting = false
}
