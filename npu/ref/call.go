package ref

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/gotrain/gotrain/npu"
)

// call is one execution of an op. Kernels read inputs with in and fill outputs with out, both in float64. store writes the outputs back at the end, so
// that an output may share memory with an input.
type call struct {
	op      npu.Op
	args    [][]byte
	threads int
	outs    [][]float64
	taken   [][]float64
}

// in is input i as float64.
func (c *call) in(i int) []float64 {
	d := c.op.In[i]
	x := c.scratch(int(d.Shape.Elems()))
	c.chunks(len(x), func(lo, hi int) { load(x[lo:hi], c.args[i], lo, d.DType) })
	return x
}

// out is output i, zeroed on first use.
func (c *call) out(i int) []float64 {
	if c.outs[i] == nil {
		x := c.scratch(int(c.op.Out[i].Shape.Elems()))
		clear(x)
		c.outs[i] = x
	}
	return c.outs[i]
}

// optOut is out, or throw-away memory of n elements if the op does not have the output.
func (c *call) optOut(i, n int) []float64 {
	if i < len(c.outs) {
		return c.out(i)
	}
	x := c.scratch(n)
	clear(x)
	return x
}

// rawIn and rawOut are the bytes; rawOut is nil for an unused output.
func (c *call) rawIn(i int) []byte  { return c.args[i] }
func (c *call) rawOut(i int) []byte { return c.args[len(c.op.In)+i] }

func (c *call) store() {
	for i, x := range c.outs {
		if dst := c.rawOut(i); dst != nil && x != nil {
			t := c.op.Out[i].DType
			c.chunks(len(x), func(lo, hi int) { store(dst, lo, x[lo:hi], t) })
		}
	}
}

// Scratch memory is pooled: otherwise garbage collection would take most of a training step on this device.
var pool sync.Pool

func (c *call) scratch(n int) []float64 {
	if p, ok := pool.Get().(*[]float64); ok && cap(*p) >= n {
		x := (*p)[:n]
		c.taken = append(c.taken, x)
		return x
	}
	x := make([]float64, n)
	c.taken = append(c.taken, x)
	return x
}

func (c *call) release() {
	for _, x := range c.taken {
		pool.Put(&x)
	}
	c.taken, c.outs = nil, nil
}

// parallel calls fn for 0…n-1 from several goroutines. Items must be independent: an item's result never depends on the goroutine that runs it.
func (c *call) parallel(n int, fn func(i int)) {
	workers := c.threads
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if workers = min(workers, n); workers <= 1 {
		for i := range n {
			fn(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				fn(i)
			}
		})
	}
	wg.Wait()
}

// chunks is parallel over ranges of n elements; small n stay on the calling goroutine.
func (c *call) chunks(n int, fn func(lo, hi int)) {
	const size = 1 << 15
	c.parallel((n+size-1)/size, func(i int) { fn(i*size, min(n, (i+1)*size)) })
}
