package images

import "sync"

// pool lends out scratch memory. Unlike sync.Pool it never frees it, so that steady state allocates nothing; it holds as many entries as were
// ever in use at the same time.
type pool[T any] struct {
	mu   sync.Mutex
	free []*T
}

// get returns a used entry, or nil.
func (p *pool[T]) get() *T {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.free)
	if n == 0 {
		return nil
	}
	t := p.free[n-1]
	p.free = p.free[:n-1]
	return t
}

func (p *pool[T]) put(t *T) {
	p.mu.Lock()
	p.free = append(p.free, t)
	p.mu.Unlock()
}
