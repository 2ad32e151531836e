package hostsim

import (
	"time"
)

var logLevels = [...]string{"trace", "debug", "info", "warn", "error", "critical"}

// rootCalls belong to the plugin rather than to a stream.
var rootCalls = map[string]hostFunc{
	"proxy_log": {params: "iii", do: func(v *vm, a []uint64) status {
		msg, ok := v.text(a[1], a[2])
		if !ok {
			return statusInvalidMemoryAccess
		}
		if a[0] >= uint64(len(logLevels)) {
			return statusBadArgument
		}
		v.w.host.log(logLevels[a[0]], msg)
		return statusOK
	}},
	"proxy_get_log_level": {params: "i", do: func(v *vm, a []uint64) status { return v.writeUint32(a[0], 0) }},
	"proxy_get_current_time_nanoseconds": {params: "i", do: func(v *vm, a []uint64) status {
		if !v.mod.Memory().WriteUint64Le(uint32(a[0]), uint64(v.w.host.clock.Now().UnixNano())) {
			return statusInvalidMemoryAccess
		}
		return statusOK
	}},
	"proxy_set_tick_period_milliseconds": {params: "i", do: func(v *vm, a []uint64) status {
		c := v.context()
		if c == nil || c.root == nil {
			return statusBadArgument
		}
		c.root.setTick(time.Duration(uint32(a[0])) * time.Millisecond)
		return statusOK
	}},
	"proxy_set_effective_context": {params: "i", do: func(v *vm, a []uint64) status {
		c := v.contexts[uint32(a[0])]
		if c == nil || v.now == nil {
			return statusBadArgument
		}
		v.now.effective = c
		return statusOK
	}},
	"proxy_done": {do: func(v *vm, a []uint64) status {
		c := v.context()
		if c == nil || !c.isRoot() || c.root == nil || !c.root.draining || c.root.finished {
			return statusNotFound
		}
		r := c.root
		// Not one of the actions that the one-per-callback rule is about.
		v.after = append(v.after, r.finish)
		return statusOK
	}},
	"proxy_http_call": {params: "iiiiiiiiii", do: func(v *vm, a []uint64) status {
		cluster, ok1 := v.text(a[0], a[1])
		rawHead, ok2 := v.read(a[2], a[3])
		payload, ok3 := v.read(a[4], a[5])
		rawTail, ok4 := v.read(a[6], a[7])
		if !ok1 || !ok2 || !ok3 || !ok4 {
			return statusInvalidMemoryAccess
		}
		head, ok1 := decodePairs(rawHead)
		tail, ok2 := decodePairs(rawTail)
		c := v.context()
		if !ok1 || !ok2 || c == nil || c.root == nil {
			return statusBadArgument
		}
		// The token's place is tried before anything is sent.
		if st := v.writeUint32(a[9], 0); st != statusOK {
			return st
		}
		token, st := c.root.dispatch(cluster, &fields{head}, &fields{tail}, payload, uint32(a[8]))
		if st != statusOK {
			return st
		}
		return v.writeUint32(a[9], token)
	}},
	"proxy_call_foreign_function": {params: "iiiiii", do: func(v *vm, a []uint64) status {
		name, ok := v.text(a[0], a[1])
		if !ok {
			return statusInvalidMemoryAccess
		}
		if name == "clear_route_cache" { // the route is chosen when the headers leave: nothing is cached
			return v.give(nil, a[4], a[5])
		}
		return statusNotFound
	}},
	"proxy_get_status": {params: "iii", do: func(v *vm, a []uint64) status {
		if st := v.writeUint32(a[0], 0); st != statusOK {
			return st
		}
		return v.give(nil, a[1], a[2])
	}},
	"proxy_grpc_call":   {params: "iiiiiiiiiiii", do: unimplemented},
	"proxy_grpc_stream": {params: "iiiiiiiii", do: unimplemented},
	"proxy_grpc_cancel": {params: "i", do: unimplemented},
	"proxy_grpc_close":  {params: "i", do: unimplemented},
	"proxy_grpc_send":   {params: "iiii", do: unimplemented},
}

func unimplemented(*vm, []uint64) status { return statusUnimplemented }

var sharedCalls = map[string]hostFunc{
	"proxy_get_shared_data": {params: "iiiii", do: func(v *vm, a []uint64) status {
		key, ok := v.text(a[0], a[1])
		if !ok {
			return statusInvalidMemoryAccess
		}
		value, ok := v.w.host.shared.get(v.id, key)
		if !ok {
			return statusNotFound
		}
		if st := v.give(value.value, a[2], a[3]); st != statusOK {
			return st
		}
		return v.writeUint32(a[4], value.cas)
	}},
	"proxy_set_shared_data": {params: "iiiii", do: func(v *vm, a []uint64) status {
		key, ok1 := v.text(a[0], a[1])
		value, ok2 := v.read(a[2], a[3])
		if !ok1 || !ok2 {
			return statusInvalidMemoryAccess
		}
		return v.w.host.shared.set(v.id, key, value, uint32(a[4]))
	}},
	"proxy_register_shared_queue": {params: "iii", do: func(v *vm, a []uint64) status {
		name, ok := v.text(a[0], a[1])
		c := v.context()
		if !ok {
			return statusInvalidMemoryAccess
		}
		if c == nil || c.root == nil {
			return statusBadArgument
		}
		return v.writeUint32(a[2], v.w.host.shared.register(v.w, v.id, name, c.root.id))
	}},
	"proxy_resolve_shared_queue": {params: "iiiii", do: func(v *vm, a []uint64) status {
		vmID, ok1 := v.text(a[0], a[1])
		name, ok2 := v.text(a[2], a[3])
		if !ok1 || !ok2 {
			return statusInvalidMemoryAccess
		}
		token, ok := v.w.host.shared.resolve(vmID, name)
		if !ok {
			return statusNotFound
		}
		return v.writeUint32(a[4], token)
	}},
	"proxy_enqueue_shared_queue": {params: "iii", do: func(v *vm, a []uint64) status {
		item, ok := v.read(a[1], a[2])
		if !ok {
			return statusInvalidMemoryAccess
		}
		return v.w.host.shared.enqueue(uint32(a[0]), item)
	}},
	"proxy_dequeue_shared_queue": {params: "iii", do: func(v *vm, a []uint64) status {
		item, st := v.w.host.shared.dequeue(uint32(a[0]))
		if st != statusOK {
			return st
		}
		return v.give(item, a[1], a[2])
	}},
}

var metricCalls = map[string]hostFunc{
	"proxy_define_metric": {params: "iiii", do: func(v *vm, a []uint64) status {
		name, ok := v.text(a[1], a[2])
		if !ok {
			return statusInvalidMemoryAccess
		}
		m, st := v.w.host.metrics.define(uint32(a[0]), name)
		if st != statusOK {
			return st
		}
		v.metrics = append(v.metrics, m)
		return v.writeUint32(a[3], uint32(len(v.metrics)))
	}},
	"proxy_increment_metric": {params: "iI", do: func(v *vm, a []uint64) status {
		m := v.metric(a[0])
		if m == nil {
			return statusNotFound
		}
		return m.increment(int64(a[1]))
	}},
	"proxy_record_metric": {params: "iI", do: func(v *vm, a []uint64) status {
		m := v.metric(a[0])
		if m == nil {
			return statusNotFound
		}
		return m.record(int64(a[1]))
	}},
	"proxy_get_metric": {params: "ii", do: func(v *vm, a []uint64) status {
		m := v.metric(a[0])
		if m == nil {
			return statusNotFound
		}
		if m.kind == histogramMetric {
			return statusBadArgument
		}
		if !v.mod.Memory().WriteUint64Le(uint32(a[1]), uint64(m.value.Load())) {
			return statusInvalidMemoryAccess
		}
		return statusOK
	}},
}

func (v *vm) metric(id uint64) *metric {
	if id == 0 || id > uint64(len(v.metrics)) {
		return nil
	}
	return v.metrics[id-1]
}
