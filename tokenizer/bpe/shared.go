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

// shelf is where an encoding's work space lies while nobody counts. Whoever counts takes it for the
// length of one call; who finds the shelf empty makes another. A wasm VM has one thread, hence one
// work space per encoding in use.
type shelf struct{ idle atomic.Pointer[workspace] }

func (s *shelf) take() *workspace {
	if w := s.idle.Swap(nil); w != nil {
		return w
	}
	return new(workspace)
}

func (s *shelf) put(w *workspace) { s.idle.Store(w) }
