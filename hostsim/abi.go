package hostsim

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// status is proxy-wasm's WasmResult.
type status uint32

const (
	statusOK                  status = 0
	statusNotFound            status = 1
	statusBadArgument         status = 2
	statusInvalidMemoryAccess status = 6
	statusEmpty               status = 7
	statusCasMismatch         status = 8
	statusInternalFailure     status = 10
	statusUnimplemented       status = 12
)

// hostFunc is one import: its parameters (i = i32, I = i64), and what it does. The result is an i32 unless void.
type hostFunc struct {
	params string
	void   bool
	do     func(v *vm, a []uint64) status
}

// imports is all that a module may import, by module and name: what cpp-host implements, no more.
var imports = map[string]map[string]hostFunc{}

func init() {
	env := map[string]hostFunc{}
	for _, family := range []map[string]hostFunc{rootCalls, streamCalls, mapCalls, sharedCalls, metricCalls, propertyCalls} {
		for name, f := range family {
			env[name] = f
		}
	}
	imports["env"] = env
	imports["wasi_snapshot_preview1"] = wasiCalls
	imports["wasi_unstable"] = wasiCalls
}

func instantiateHost(ctx context.Context, r wazero.Runtime) error {
	for _, module := range []string{"env", "wasi_snapshot_preview1", "wasi_unstable"} {
		b := r.NewHostModuleBuilder(module)
		for name, f := range imports[module] {
			params := make([]api.ValueType, len(f.params))
			for i, p := range f.params {
				params[i] = api.ValueTypeI32
				if p == 'I' {
					params[i] = api.ValueTypeI64
				}
			}
			results := []api.ValueType{api.ValueTypeI32}
			if f.void {
				results = nil
			}
			b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
				for i, p := range f.params {
					if p == 'i' { // the upper half of an i32 slot is not defined
						stack[i] = uint64(uint32(stack[i]))
					}
				}
				st := f.do(ctx.Value(vmKey{}).(*vm), stack)
				if !f.void {
					stack[0] = uint64(st)
				}
			}), params, results).Export(name)
		}
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("host module %s: %w", module, err)
		}
	}
	return nil
}

// checkImports lists every import that Envoy does not have: one is enough for it to refuse the module.
func checkImports(m wazero.CompiledModule) error {
	var missing []string
	for _, f := range m.ImportedFunctions() {
		module, name, _ := f.Import()
		known, ok := imports[module][name]
		switch {
		case !ok:
			missing = append(missing, module+"."+name)
		case len(known.params) != len(f.ParamTypes()):
			missing = append(missing, module+"."+name+" with "+fmt.Sprint(len(f.ParamTypes()))+" parameters")
		}
	}
	if len(missing) > 0 {
		sort.Strings(missing)
		return fmt.Errorf("failed to load the module due to missing imports: %s", strings.Join(missing, ", "))
	}
	for name := range m.ExportedFunctions() {
		if strings.HasPrefix(name, "proxy_abi_version_0_2_") {
			return nil
		}
	}
	return fmt.Errorf("the module does not export proxy_abi_version_0_2_0 or 0_2_1")
}

// read returns a copy of module memory.
func (v *vm) read(ptr, size uint64) ([]byte, bool) {
	if size == 0 {
		return nil, true
	}
	b, ok := v.mod.Memory().Read(uint32(ptr), uint32(size))
	if !ok {
		return nil, false
	}
	return append([]byte(nil), b...), true
}

func (v *vm) text(ptr, size uint64) (string, bool) {
	if size == 0 {
		return "", true
	}
	b, ok := v.mod.Memory().Read(uint32(ptr), uint32(size))
	return string(b), ok
}

func (v *vm) writeUint32(ptr uint64, n uint32) status {
	if !v.mod.Memory().WriteUint32Le(uint32(ptr), n) {
		return statusInvalidMemoryAccess
	}
	return statusOK
}

// give copies data into fresh memory of the module and writes where it is. No data is a nil pointer.
func (v *vm) give(b []byte, ptr, size uint64) status {
	var at uint32
	if len(b) > 0 {
		var ok bool
		if at, ok = v.allocate(len(b)); !ok || !v.mod.Memory().Write(at, b) {
			return statusInvalidMemoryAccess
		}
	}
	if st := v.writeUint32(ptr, at); st != statusOK {
		return st
	}
	return v.writeUint32(size, uint32(len(b)))
}

// isRoot tells a root's context from those of streams and connections.
func (c *vmContext) isRoot() bool { return c.filter == nil && c.network == nil }

// context is the one that host calls act on: the effective one, if set and alive.
func (v *vm) context() *vmContext {
	if v.now == nil {
		return nil
	}
	if e := v.now.effective; e != nil && v.contexts[e.id] == e {
		return e
	}
	return v.now.current
}
