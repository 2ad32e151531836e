package hostsim

// filter is one entry of the chain in one stream: a context of the VM, created there at its first callback.
type filter struct {
	s       *stream
	plugin  *plugin
	vm      *vm
	ctx     vmContext
	created bool
	failed  bool // it has answered for its dead VM
	sides   [2]passage
	index   [2]int // place in each direction's order
}

// create makes the context in the VM.
func (f *filter) create() {
	if f.created {
		return
	}
	f.created = true
	if f.vm.failed {
		return
	}
	root := f.vm.roots[f.plugin.key]
	f.ctx.root, f.ctx.filter = root, f
	f.vm.newContext(&f.ctx)
	f.vm.call("proxy_on_context_create", &f.ctx, 0, uint64(f.ctx.id), uint64(root.id))
	f.vm.runAfter()
}

// fail answers for a dead VM: 503 while no response has begun, a reset after that, under every policy.
func (f *filter) fail() {
	if f.failed {
		return
	}
	f.failed = true
	f.s.localReply(reply{code: 503, details: "wasm_fail_stream"})
}

// invoke runs a callback; ok is false when the VM is dead.
func (f *filter) invoke(name string, missing action, args ...uint64) (a answer, ok bool) {
	if f.vm.failed {
		f.fail()
		return answer{}, false
	}
	a = f.vm.call(name, &f.ctx, uint32(missing), append([]uint64{uint64(f.ctx.id)}, args...)...)
	if a.dead {
		f.fail()
		f.vm.runAfter()
		return a, false
	}
	f.vm.runAfter()
	return a, true
}

// absent filters let everything pass: the request never came to them, or they have answered for their dead VM.
func (f *filter) absent() bool { return !f.created || f.failed }

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func (f *filter) onHeaders(p *path, e *passage, end bool) action {
	name := "proxy_on_response_headers"
	if p.side == request {
		f.create()
		name = "proxy_on_request_headers"
	} else if f.absent() {
		return actContinue
	}
	e.head = p.head
	a, ok := f.invoke(name, actContinue, uint64(p.head.len()), flag(end))
	if !ok {
		return actStopAll
	}
	act := action(a.value)
	switch {
	case a.stop, act > actStopAll, act == 3, act == 1 && !f.plugin.allowOnHeadersStop:
		act = actStopAll
	case act == 2: // ContinueAndEndStream: Envoy takes it for Continue
		act = actContinue
	}
	if act == actContinue {
		e.head = nil
	}
	return act
}

func (f *filter) onData(p *path, e *passage, d *body, end bool) action {
	if f.absent() {
		return actContinue
	}
	if e.buffering {
		p.lenient = false
		p.hold(d)
		if p.s.destroyed || p.aborted {
			return actStopNoBuffer
		}
		e.data = p.held
	} else {
		e.data = d
	}
	e.stale = false
	name := "proxy_on_response_body"
	if p.side == request {
		name = "proxy_on_request_body"
	}
	a, ok := f.invoke(name, actContinue, uint64(len(e.data.b)), flag(end))
	e.buffering = false
	if !ok {
		return actStopNoBuffer
	}
	act := action(a.value)
	if a.stop || act > actStopNoBuffer {
		act = actStopNoBuffer
	}
	switch act {
	case actContinue:
		e.data = nil
	case actStop:
		e.buffering = true
	default:
		e.stale = true
	}
	return act
}

func (f *filter) onTrailers(p *path, e *passage) action {
	if f.absent() {
		return actContinue
	}
	name := "proxy_on_response_trailers"
	if p.side == request {
		name = "proxy_on_request_trailers"
	}
	e.tail = p.tail
	a, ok := f.invoke(name, actContinue, uint64(p.tail.len()))
	if !ok || a.stop || a.value != 0 {
		return actStop
	}
	e.tail = nil
	return actContinue
}

// reach returns what the module may read and write of a body: nil is an empty buffer that cannot be written.
func (f *filter) reach(which side) *body {
	e := &f.sides[which]
	if e.stale {
		// The filter that returned 2 or 3 kept a pointer into a buffer that was handed on: on Envoy a write
		// here lands in other bytes of the connection.
		f.s.w.host.violate("%q touches a %s body outside its callback after it did not buffer it", f.plugin.name, which)
		return nil
	}
	if e.buffering {
		return f.s.paths[which].held
	}
	return e.data
}

// proceed is continue_stream: the request is out of reach at once, the rest happens after the call.
func (f *filter) proceed(which side) {
	e := &f.sides[which]
	p := f.s.paths[which]
	host := f.s.w.host
	if p.depth > 0 {
		host.strictly("%q resumes the %s from inside one of its own callbacks", f.plugin.name, which)
	} else if e.state == flowing && !f.s.destroyed {
		host.strictly("%q resumes a %s that is not stopped there", f.plugin.name, which)
	}
	f.vm.deferAction("continue_stream("+which.String()+")", func() { p.resume(f.index[which]) })
	// Either direction takes the request out of reach, and neither the response (envoy context.cc).
	r := &f.sides[request]
	r.head, r.data, r.tail, r.stale = nil, nil, nil, false
}
