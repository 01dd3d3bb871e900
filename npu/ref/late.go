package ref

import "sync"

// gate holds back a stream's tasks until someone waits for them: for the stream, for an event behind them, or for another stream that waits for such an
// event. This is as late as an asynchronous device can be. A program that is right does not notice; one that reuses host memory before its copy has run,
// or reads a result before it has waited for it, gets wrong numbers every time instead of now and then. The nil gate is always open.
type gate struct {
	mu     sync.Mutex
	moved  sync.Cond
	posted uint64
	open   uint64 // tasks up to this number may run
}

// held is how many tasks may be held back: fewer than the queue has room for.
const held = queueLen / 2

func newGate() *gate {
	g := &gate{}
	g.moved.L = &g.mu
	return g
}

// post numbers a new task.
func (g *gate) post() uint64 {
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.posted++
	if g.posted-g.open > held {
		g.open = g.posted - held
		g.moved.Broadcast()
	}
	return g.posted
}

// pass waits until task n may run.
func (g *gate) pass(n uint64) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.open < n {
		g.moved.Wait()
	}
}

// release lets tasks up to number n run.
func (g *gate) release(n uint64) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if n > g.open {
		g.open = n
		g.moved.Broadcast()
	}
}

// releaseAll lets all tasks run that were posted so far.
func (g *gate) releaseAll() {
	if g != nil {
		g.mu.Lock()
		n := g.posted
		g.mu.Unlock()
		g.release(n)
	}
}
