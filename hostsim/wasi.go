package hostsim

import (
	"crypto/rand"
	"encoding/binary"
	"sort"
)

// What cpp-host answers to WASI, no more: there are no files, no polling, and exit returns.
const (
	errnoSuccess status = 0
	errnoBadf    status = 8
	errnoFault   status = 21
	errnoInval   status = 28
	errnoNoent   status = 44
	errnoNosys   status = 52
)

var wasiCalls = map[string]hostFunc{
	"args_sizes_get": {params: "ii", do: func(v *vm, a []uint64) status {
		return faultUnless(v.writeUint32(a[0], 0) == statusOK && v.writeUint32(a[1], 0) == statusOK)
	}},
	"args_get": {params: "ii", do: func(*vm, []uint64) status { return errnoSuccess }},
	"environ_sizes_get": {params: "ii", do: func(v *vm, a []uint64) status {
		n := 0
		for _, e := range v.w.host.env {
			n += len(e) + 1
		}
		return faultUnless(v.writeUint32(a[0], uint32(len(v.w.host.env))) == statusOK && v.writeUint32(a[1], uint32(n)) == statusOK)
	}},
	"environ_get": {params: "ii", do: func(v *vm, a []uint64) status {
		list, at := a[0], a[1]
		for _, e := range v.w.host.env {
			if v.writeUint32(list, uint32(at)) != statusOK || !v.mod.Memory().Write(uint32(at), append([]byte(e), 0)) {
				return errnoFault
			}
			list, at = list+4, at+uint64(len(e))+1
		}
		return errnoSuccess
	}},
	"clock_time_get": {params: "iIi", do: func(v *vm, a []uint64) status {
		var t uint64
		switch uint32(a[0]) {
		case 0:
			t = uint64(v.w.host.clock.Now().UnixNano())
		case 1:
			t = v.w.host.monotonic()
		default:
			return errnoNosys
		}
		return faultUnless(v.mod.Memory().WriteUint64Le(uint32(a[2]), t))
	}},
	"random_get": {params: "ii", do: func(v *vm, a []uint64) status {
		b, ok := v.mod.Memory().Read(uint32(a[0]), uint32(a[1]))
		if !ok {
			return errnoInval
		}
		_, _ = rand.Read(b)
		return errnoSuccess
	}},
	"sched_yield": {do: func(*vm, []uint64) status { return errnoSuccess }},
	"poll_oneoff": {params: "iiii", do: func(v *vm, a []uint64) status {
		// cpp-host since April 2026: no events; before, ENOSYS, on which the Go runtime throws.
		if v.now != nil {
			v.now.polled = true
		}
		return faultUnless(v.writeUint32(a[3], 0) == statusOK)
	}},
	"proc_exit": {params: "i", void: true, do: func(v *vm, a []uint64) status {
		v.w.host.logf("error", "proc_exit(%d) has no effect", int32(a[0]))
		return errnoSuccess
	}},
	"fd_write": {params: "iiii", do: func(v *vm, a []uint64) status {
		level := "info"
		switch uint32(a[0]) {
		case 1:
		case 2:
			level = "error"
		default:
			return errnoBadf
		}
		var text []byte
		for i := range a[2] {
			iov, ok := v.mod.Memory().Read(uint32(a[1]+8*i), 8)
			if !ok {
				return errnoFault
			}
			part, ok := v.read(uint64(binary.LittleEndian.Uint32(iov)), uint64(binary.LittleEndian.Uint32(iov[4:])))
			if !ok {
				return errnoFault
			}
			text = append(text, part...)
		}
		if len(text) > 0 {
			v.w.host.log(level, string(text))
		}
		return faultUnless(v.writeUint32(a[3], uint32(len(text))) == statusOK)
	}},
	"fd_read":             {params: "iiii", do: nosys},
	"fd_seek":             {params: "iIii", do: nosys},
	"fd_close":            {params: "i", do: nosys},
	"fd_fdstat_set_flags": {params: "ii", do: nosys},
	"fd_fdstat_get": {params: "ii", do: func(v *vm, a []uint64) status {
		if fd := uint32(a[0]); fd != 1 && fd != 2 {
			return errnoBadf
		}
		stat := make([]byte, 24)
		stat[0] = 2                                  // a character device
		binary.LittleEndian.PutUint64(stat[8:], 64)  // it can be written
		binary.LittleEndian.PutUint64(stat[16:], 64) // and passed on
		return faultUnless(v.mod.Memory().Write(uint32(a[1]), stat))
	}},
	"fd_prestat_get":      {params: "ii", do: func(*vm, []uint64) status { return errnoBadf }},
	"fd_prestat_dir_name": {params: "iii", do: nosys},
	"path_open":           {params: "iiiiiIIii", do: func(*vm, []uint64) status { return errnoNoent }},
}

func nosys(*vm, []uint64) status { return errnoNosys }

func faultUnless(ok bool) status {
	if ok {
		return errnoSuccess
	}
	return errnoFault
}

// environment is Options.Env as name=value, in order.
func environment(m map[string]string) []string {
	var list []string
	for k, v := range m {
		list = append(list, k+"="+v)
	}
	sort.Strings(list)
	return list
}
