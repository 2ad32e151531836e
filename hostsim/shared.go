package hostsim

import "sync"

// sharedStore is the process-wide shared data and queues, keyed by VM id.
type sharedStore struct {
	mu     sync.Mutex
	cas    uint32
	data   map[string]map[string]sharedValue
	queues map[uint32]*sharedQueue
	tokens map[[2]string]uint32
}

type sharedValue struct {
	value []byte
	cas   uint32
}

type sharedQueue struct {
	items [][]byte
	// The last that registered gets all callbacks, on its own thread.
	w    *worker
	vmID string
	root uint32
}

func newSharedStore() *sharedStore {
	return &sharedStore{cas: 1, data: map[string]map[string]sharedValue{}, queues: map[uint32]*sharedQueue{}, tokens: map[[2]string]uint32{}}
}

func (s *sharedStore) get(vmID, key string) (sharedValue, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.data[vmID][key]
	return v, ok
}

// set: cas 0 overwrites, another must match, and on a missing key any succeeds (cpp-host shared_data.cc).
func (s *sharedStore) set(vmID, key string, value []byte, cas uint32) status {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.data[vmID]
	if m == nil {
		m = map[string]sharedValue{}
		s.data[vmID] = m
	}
	if old, ok := m[key]; ok && cas != 0 && cas != old.cas {
		return statusCasMismatch
	}
	m[key] = sharedValue{value, s.cas}
	s.cas++
	if s.cas == 0 {
		s.cas = 1
	}
	return statusOK
}

func (s *sharedStore) register(w *worker, vmID, name string, root uint32) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]string{vmID, name}
	token, ok := s.tokens[key]
	if !ok {
		token = uint32(len(s.tokens)) + 1
		s.tokens[key] = token
		s.queues[token] = &sharedQueue{}
	}
	q := s.queues[token]
	q.w, q.vmID, q.root = w, vmID, root
	return token
}

func (s *sharedStore) resolve(vmID, name string) (uint32, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tokens[[2]string{vmID, name}]
	return t, ok
}

// enqueue adds an item and lets the registrant know, in a callback of its own on its worker.
func (s *sharedStore) enqueue(token uint32, item []byte) status {
	s.mu.Lock()
	q := s.queues[token]
	if q == nil {
		s.mu.Unlock()
		return statusNotFound
	}
	q.items = append(q.items, item)
	w, vmID, root := q.w, q.vmID, q.root
	s.mu.Unlock()
	w.post(func() {
		v := w.vms[vmID]
		if v == nil || v.failed {
			return
		}
		c := v.contexts[root]
		if c == nil || !c.isRoot() {
			return
		}
		v.call("proxy_on_queue_ready", c, 0, uint64(root), uint64(token))
		v.runAfter()
	})
	return statusOK
}

func (s *sharedStore) dequeue(token uint32) ([]byte, status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[token]
	if q == nil {
		return nil, statusNotFound
	}
	if len(q.items) == 0 {
		return nil, statusEmpty
	}
	item := q.items[0]
	q.items[0] = nil
	q.items = q.items[1:]
	return item, statusOK
}
