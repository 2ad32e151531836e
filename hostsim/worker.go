package hostsim

import (
	"sync"
	"time"
)

// worker is one thread of Envoy: a loop that runs one thing at a time. VMs, streams and everything that hangs on
// them belong to one worker and are touched on its loop only.
type worker struct {
	host *Host
	name string

	mu     sync.Mutex
	ready  sync.Cond
	queue  []func()
	closed bool
	done   chan struct{}

	vms     map[string]*vm // by VM id
	places  map[*plugin]*place
	streams map[*stream]struct{}
}

// place is where a plugin lives on a worker.
type place struct {
	vm         *vm
	nextReload time.Time
}

func newWorker(h *Host, name string) *worker {
	w := &worker{host: h, name: name, done: make(chan struct{}), vms: map[string]*vm{}, places: map[*plugin]*place{}, streams: map[*stream]struct{}{}}
	w.ready.L = &w.mu
	go w.loop()
	return w
}

func (w *worker) loop() {
	defer close(w.done)
	for {
		w.mu.Lock()
		for len(w.queue) == 0 && !w.closed {
			w.ready.Wait()
		}
		if w.closed {
			w.queue = nil
			w.mu.Unlock()
			return
		}
		batch := w.queue
		w.queue = nil
		w.mu.Unlock()
		for i, f := range batch {
			batch[i] = nil
			f()
		}
	}
}

// post runs f on the loop, after all that was posted before. After close it drops f and says so.
func (w *worker) post(f func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.queue = append(w.queue, f)
	w.ready.Signal()
	return true
}

// run posts f and waits until it has run or the worker has closed. Never call it on the loop itself.
func (w *worker) run(f func()) {
	ran := make(chan struct{})
	if !w.post(func() { defer close(ran); f() }) {
		return
	}
	select {
	case <-ran:
	case <-w.done:
	}
}

func (w *worker) close() {
	w.mu.Lock()
	w.closed = true
	w.ready.Signal()
	w.mu.Unlock()
	<-w.done
}

// after runs f on the loop, d from now. A manual clock waits inside Advance until f has run.
func (w *worker) after(d time.Duration, f func()) Timer {
	return w.host.clock.AfterFunc(d, func() { w.run(f) })
}

// place returns the VM of a plugin. If that has crashed, the plugin's policy asks for it and its back-off is over, the
// plugin moves to a new one: the first that moves makes it, the others of the same VM id join it with their next
// request.
func (w *worker) place(p *plugin) *vm {
	at := w.places[p]
	h := w.host
	if !at.vm.failed || p.policy != FailReload || h.clock.Now().Before(at.nextReload) {
		return at.vm
	}
	// The back-off counts from the last reload: the first crash is cured by the next request.
	at.nextReload = h.clock.Now().Add(h.reloadBackoff)
	if dead := w.vms[p.vmID]; dead.failed {
		fresh, err := newVM(w, p.vmID, w.name, false)
		if err != nil {
			h.logf("error", "reload of the VM %q on %s: %v", p.vmID, w.name, err)
			return at.vm
		}
		dead.drop()
		w.vms[p.vmID] = fresh
	}
	if err := w.vms[p.vmID].start(p); err != nil {
		h.logf("error", "reload on %s: %v", w.name, err)
		w.vms[p.vmID].failed = true
		return at.vm
	}
	at.vm = w.vms[p.vmID]
	return at.vm
}
