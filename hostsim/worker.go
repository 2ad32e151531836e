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

	vms     map[string]*vmSlot // by VM id
	streams map[*stream]struct{}
}

// vmSlot is the place of a VM on a worker: a crashed VM is replaced in it.
type vmSlot struct {
	vm         *vm
	nextReload time.Time
}

func newWorker(h *Host, name string) *worker {
	w := &worker{host: h, name: name, done: make(chan struct{}), vms: map[string]*vmSlot{}, streams: map[*stream]struct{}{}}
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

// slot returns the VM of a filter, reloading it if its policy asks for that and the back-off is over.
func (w *worker) slot(p *plugin) *vm {
	s := w.vms[p.vmID]
	if s == nil {
		return nil
	}
	if !s.vm.failed || p.policy != FailReload || w.host.clock.Now().Before(s.nextReload) {
		return s.vm
	}
	// The back-off counts from the last reload: the first crash is cured by the next request.
	s.nextReload = w.host.clock.Now().Add(w.host.reloadBackoff)
	fresh, err := newVM(w, p.vmID, w.name, false)
	if err == nil {
		err = fresh.startAll()
	}
	if err != nil {
		w.host.logf("error", "reload of the VM %q on %s: %v", p.vmID, w.name, err)
		if fresh != nil {
			fresh.drop()
		}
		return s.vm
	}
	s.vm.drop()
	s.vm = fresh
	return fresh
}
