package bpe

import "sync/atomic"

// single holds the one value of an encoding from its first use on.
type single struct{ e atomic.Pointer[Encoding] }

func (s *single) get(make func() *Encoding) *Encoding {
	if e := s.e.Load(); e != nil {
		return e
	}
	s.e.CompareAndSwap(nil, make())
	return s.e.Load()
}

// The work space lies here while nobody counts. Whoever counts takes it for the length of one call;
// who finds none makes another, to be left behind for the next. The first is no part of the heap,
// which would grow by more than its size in a wasm VM; that has one thread, and hence needs no other.
var (
	idle       atomic.Pointer[workspace]
	first      workspace
	firstTaken atomic.Bool
)

func takeWorkspace() *workspace {
	if w := idle.Swap(nil); w != nil {
		return w
	}
	if firstTaken.CompareAndSwap(false, true) {
		return &first
	}
	return new(workspace)
}

func (w *workspace) putBack() { idle.Store(w) }
