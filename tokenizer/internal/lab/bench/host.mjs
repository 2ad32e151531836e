// Runs benchmark modules in V8, the engine of Envoy.
//
//   node host.mjs JOBS.json
//
// JOBS.json: {"room": bytes, "modules": [{"path", "jobs": [{"file", "bytes", "encoding", "rounds"}]}]}.
// Prints, for each module, {"setup_ms"} and then for each job {"tokens", "seconds", "allocs", "memory"}.
// seconds is the best round after one that warms up; memory that of the instance, in bytes.
import { readFileSync } from 'node:fs';

const { room, modules } = JSON.parse(readFileSync(process.argv[2], 'utf8'));

// The least of WASI preview 1 that a Go module calls. What is not here answers ENOSYS.
function wasi(memory) {
  const view = () => new DataView(memory().buffer);
  const calls = {
    args_sizes_get: (a, b) => (view().setUint32(a, 0, true), view().setUint32(b, 0, true), 0),
    environ_sizes_get: (a, b) => (view().setUint32(a, 0, true), view().setUint32(b, 0, true), 0),
    args_get: () => 0,
    environ_get: () => 0,
    clock_time_get: (_id, _precision, at) => (view().setBigUint64(at, process.hrtime.bigint(), true), 0),
    random_get: (at, n) => (new Uint8Array(memory().buffer, at, n).fill(7), 0),
    fd_prestat_get: () => 8, // EBADF: no open directories
    fd_write: (_fd, vectors, n, written) => {
      let total = 0;
      for (let i = 0; i < n; i++) {
        const at = view().getUint32(vectors + 8 * i, true), size = view().getUint32(vectors + 8 * i + 4, true);
        process.stderr.write(new Uint8Array(memory().buffer, at, size));
        total += size;
      }
      view().setUint32(written, total, true);
      return 0;
    },
    proc_exit: (code) => { throw new Error(`the module exits with ${code}`); },
    sched_yield: () => 0,
  };
  return new Proxy(calls, { get: (all, name) => all[name] ?? (() => 52), has: () => true });
}

const say = (o) => process.stdout.write(JSON.stringify(o) + '\n');
const texts = new Map();
const textOf = (file) => texts.get(file) ?? texts.set(file, readFileSync(file)).get(file);

for (const { path, jobs } of modules) {
  const module = new WebAssembly.Module(readFileSync(path));
  let instance;
  const imports = {};
  const functions = wasi(() => instance.exports.memory);
  for (const { module: space, name } of WebAssembly.Module.imports(module)) {
    (imports[space] ??= {})[name] = functions[name];
  }
  const begin = performance.now();
  instance = new WebAssembly.Instance(module, imports);
  const x = instance.exports;
  x._initialize();
  const at = x.room(room) >>> 0;
  const put = (bytes) => new Uint8Array(x.memory.buffer, at, bytes.length).set(bytes);
  put(Buffer.from('hello world'));
  x.count(0, 11);
  say({ setup_ms: performance.now() - begin });
  for (const { file, bytes, encoding, rounds } of jobs) {
    const text = textOf(file).subarray(0, bytes);
    put(text);
    let tokens = x.count(encoding, text.length);
    let best = Infinity;
    for (let i = 0; i < rounds; i++) {
      const start = performance.now();
      tokens = x.count(encoding, text.length);
      best = Math.min(best, performance.now() - start);
    }
    const before = x.allocations();
    x.count(encoding, text.length);
    const allocs = Number(x.allocations() - before);
    say({ tokens, seconds: best / 1000, allocs, memory: x.memory.buffer.byteLength });
  }
}
