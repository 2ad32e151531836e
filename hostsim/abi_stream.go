package hostsim

import (
	"strings"
)

// The ABI's map types.
const (
	mapRequestHeaders   = 0
	mapRequestTrailers  = 1
	mapResponseHeaders  = 2
	mapResponseTrailers = 3
	mapCalloutHeaders   = 6
	mapCalloutTrailers  = 7
)

// fieldsOf finds a map of the context that calls. writable is false where Envoy hands out a const map.
func (v *vm) fieldsOf(kind uint64) (f *fields, writable bool, st status) {
	c := v.context()
	if c == nil {
		return nil, false, statusBadArgument
	}
	if kind == mapCalloutHeaders || kind == mapCalloutTrailers {
		if c.root == nil || c.root.response == nil {
			return nil, false, statusNotFound
		}
		if kind == mapCalloutHeaders {
			return c.root.response.head, false, statusOK
		}
		return c.root.response.tail, false, statusOK
	}
	if c.network != nil {
		return nil, false, statusNotFound
	}
	if c.filter == nil || kind > mapResponseTrailers {
		return nil, false, statusBadArgument
	}
	e := &c.filter.sides[request]
	if kind >= mapResponseHeaders {
		e = &c.filter.sides[response]
	}
	f = e.head
	if kind == mapRequestTrailers || kind == mapResponseTrailers {
		f = e.tail
	}
	if f == nil {
		return nil, false, statusBadArgument
	}
	return f, !c.filter.s.destroyed, statusOK
}

// edit runs change on a map that the module may write.
func (v *vm) edit(kind uint64, change func(f *fields)) status {
	f, writable, st := v.fieldsOf(kind)
	if st != statusOK || !writable {
		return statusBadArgument
	}
	change(f)
	return statusOK
}

var mapCalls = map[string]hostFunc{
	"proxy_get_header_map_value": {params: "iiiii", do: func(v *vm, a []uint64) status {
		name, ok := v.text(a[1], a[2])
		if !ok {
			return statusInvalidMemoryAccess
		}
		f, _, st := v.fieldsOf(a[0])
		if st != statusOK {
			return st
		}
		value, ok := f.get(name)
		if !ok {
			return statusNotFound
		}
		return v.give([]byte(value), a[3], a[4])
	}},
	"proxy_add_header_map_value": {params: "iiiii", do: func(v *vm, a []uint64) status {
		name, ok1 := v.text(a[1], a[2])
		value, ok2 := v.text(a[3], a[4])
		if !ok1 || !ok2 {
			return statusInvalidMemoryAccess
		}
		return v.edit(a[0], func(f *fields) { f.add(name, value) })
	}},
	"proxy_replace_header_map_value": {params: "iiiii", do: func(v *vm, a []uint64) status {
		name, ok1 := v.text(a[1], a[2])
		value, ok2 := v.text(a[3], a[4])
		if !ok1 || !ok2 {
			return statusInvalidMemoryAccess
		}
		return v.edit(a[0], func(f *fields) { f.replace(name, value) })
	}},
	"proxy_remove_header_map_value": {params: "iii", do: func(v *vm, a []uint64) status {
		name, ok := v.text(a[1], a[2])
		if !ok {
			return statusInvalidMemoryAccess
		}
		return v.edit(a[0], func(f *fields) { f.remove(name) })
	}},
	"proxy_get_header_map_pairs": {params: "iii", do: func(v *vm, a []uint64) status {
		f, _, st := v.fieldsOf(a[0])
		if st != statusOK {
			return st
		}
		if f.len() == 0 {
			return v.give(nil, a[1], a[2])
		}
		return v.give(encodePairs(f.list), a[1], a[2])
	}},
	"proxy_set_header_map_pairs": {params: "iii", do: func(v *vm, a []uint64) status {
		raw, ok := v.read(a[1], a[2])
		if !ok {
			return statusInvalidMemoryAccess
		}
		list, ok := decodePairs(raw)
		if !ok {
			return statusBadArgument
		}
		return v.edit(a[0], func(f *fields) { f.list = list })
	}},
	"proxy_get_header_map_size": {params: "ii", do: func(v *vm, a []uint64) status {
		f, _, st := v.fieldsOf(a[0])
		if st != statusOK {
			return st
		}
		size := 0
		for _, p := range f.list {
			size += len(p[0]) + len(p[1])
		}
		return v.writeUint32(a[1], uint32(size))
	}},
}

// The ABI's buffer types.
const (
	bufferRequestBody   = 0
	bufferResponseBody  = 1
	bufferDownstream    = 2
	bufferUpstream      = 3
	bufferCalloutBody   = 4
	bufferVMConfig      = 6
	bufferPluginConfig  = 7
	bufferCallData      = 8
	streamRequest       = 0
	streamResponse      = 1
	streamDownstream    = 2
	streamUpstream      = 3
	maxReturnedBodySize = 1 << 30
)

// buffer finds a buffer of the context that calls: target is one that can be written.
func (v *vm) buffer(kind uint64) (b []byte, target *body, st status) {
	c := v.context()
	if c == nil {
		return nil, nil, statusNotFound
	}
	switch kind {
	case bufferRequestBody, bufferResponseBody:
		if c.filter == nil {
			return nil, nil, statusOK
		}
		d := c.filter.reach(side(kind))
		if d == nil {
			if c.filter.sides[kind].stale {
				return nil, nil, statusBadArgument
			}
			return nil, nil, statusOK
		}
		return d.b, d, statusOK
	case bufferDownstream, bufferUpstream:
		if c.network == nil {
			return nil, nil, statusOK
		}
		d := c.network.data[kind-bufferDownstream]
		if d == nil {
			v.w.host.violate("%q touches the bytes of a connection outside their callback", c.network.plugin.name)
			return nil, nil, statusOK
		}
		return d.b, d, statusOK
	case bufferCalloutBody:
		if c.root == nil || c.root.response == nil {
			return nil, nil, statusNotFound
		}
		return c.root.response.body, nil, statusOK
	case bufferVMConfig:
		return v.w.host.vmConfig, nil, statusOK
	case bufferPluginConfig:
		if c.root == nil {
			return nil, nil, statusNotFound
		}
		return c.root.plugin.config, nil, statusOK
	}
	return nil, nil, statusNotFound
}

var streamCalls = map[string]hostFunc{
	"proxy_get_buffer_bytes": {params: "iiiii", do: func(v *vm, a []uint64) status {
		b, _, st := v.buffer(a[0])
		if st != statusOK {
			return st
		}
		start, length := uint64(uint32(a[1])), uint64(uint32(a[2]))
		if start > uint64(len(b)) {
			return statusBadArgument
		}
		length = min(length, uint64(len(b))-start, maxReturnedBodySize)
		if length == 0 {
			return statusOK // the pointers are left alone, as in cpp-host
		}
		return v.give(b[start:start+length], a[3], a[4])
	}},
	"proxy_get_buffer_status": {params: "iii", do: func(v *vm, a []uint64) status {
		b, _, st := v.buffer(a[0])
		if st != statusOK {
			return st
		}
		if st := v.writeUint32(a[1], uint32(len(b))); st != statusOK {
			return st
		}
		return v.writeUint32(a[2], 0)
	}},
	"proxy_set_buffer_bytes": {params: "iiiii", do: func(v *vm, a []uint64) status {
		data, ok := v.read(a[3], a[4])
		if !ok {
			return statusInvalidMemoryAccess
		}
		_, d, st := v.buffer(a[0])
		if st != statusOK {
			return st
		}
		if d == nil {
			return statusBadArgument
		}
		// No edit in the middle: replace all, prepend, append (envoy context.cc, Buffer::copyFrom).
		start, length, size := int(uint32(a[1])), int(uint32(a[2])), len(d.b)
		switch {
		case start == 0 && length == 0:
			d.b = append(data, d.b...)
		case start == 0 && length >= size:
			d.b = data
		case start > 0 && start >= size:
			d.b = append(d.b, data...)
		default:
			return statusBadArgument
		}
		return statusOK
	}},
	"proxy_continue_stream": {params: "i", do: func(v *vm, a []uint64) status {
		c := v.context()
		switch {
		case a[0] == streamUpstream:
			return statusUnimplemented
		case a[0] > streamUpstream || c == nil:
			return statusBadArgument
		case c.network != nil:
			return statusOK // nothing is ever stopped there
		case c.filter == nil:
			v.w.host.strictly("continue_stream on a root context does nothing")
			return statusOK
		case a[0] == streamDownstream:
			return statusOK
		}
		c.filter.proceed(side(a[0]))
		return statusOK
	}},
	"proxy_close_stream": {params: "i", do: func(v *vm, a []uint64) status {
		c := v.context()
		if a[0] > streamUpstream || c == nil {
			return statusBadArgument
		}
		if n := c.network; n != nil && a[0] >= streamDownstream {
			why := "wasm_downstream_close"
			if a[0] == streamUpstream {
				why = "wasm_upstream_close"
			}
			v.deferAction("close_stream", func() { n.n.close(why) })
			return statusOK
		}
		if c.filter == nil || a[0] >= streamDownstream {
			// Types 2 and 3 have no effect from an HTTP context (measured on Envoy 1.40), and the others none
			// from a connection's.
			return statusOK
		}
		s := c.filter.s
		v.deferAction("close_stream", func() {
			if !s.destroyed {
				if !s.explained {
					s.explain("wasm_close_stream")
				}
				s.reset()
			}
		})
		return statusOK
	}},
	"proxy_send_local_response": {params: "iiiiiiii", do: func(v *vm, a []uint64) status {
		details, ok1 := v.text(a[1], a[2])
		payload, ok2 := v.read(a[3], a[4])
		rawHead, ok3 := v.read(a[5], a[6])
		if !ok1 || !ok2 || !ok3 {
			return statusInvalidMemoryAccess
		}
		head, ok := decodePairs(rawHead)
		c := v.context()
		if !ok || c == nil {
			return statusBadArgument
		}
		if v.now != nil {
			v.now.stop = true
		}
		if c.filter == nil {
			v.w.host.strictly("send_local_response outside a stream does nothing")
			return statusOK
		}
		s := c.filter.s
		r := reply{code: int(uint32(a[0])), headers: head, body: payload, details: strings.ReplaceAll(details, " ", "_")}
		v.deferAction("send_local_response", func() { s.localReply(r) })
		return statusOK
	}},
}
