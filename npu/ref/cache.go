package ref

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

var cacheKinds = map[string]body{npu.CacheWrite: runCacheWrite}

// runCacheWrite works on bytes: the cache is large, mostly unchanged, and bound in place by the plan.
func runCacheWrite(c *call) error {
	cs, xs := c.op.In[0].Shape, c.op.In[1].Shape
	n, t, row := xs[1], cs[1], cs[2]*cs[3]
	pos := make([]int, xs[0]*n)
	for i := range pos {
		if pos[i] = int(loadInt(c.rawIn(2), i, npu.I32)); pos[i] >= t {
			return fmt.Errorf(
				"pos%v: position %d outside 0…%d\nhint: the sequence is longer than the cache; make the cache larger or the sequence shorter",
				place(i, c.op.In[2].Shape),
				pos[i],
				t-1,
			)
		}
	}
	dst := c.rawOut(0)
	if dst == nil {
		return nil
	}
	x := c.in(1)
	copy(dst, c.rawIn(0)[:c.op.In[0].PlainBytes()])
	for i, p := range pos { // in order: of two rows with one position the later one wins
		if p >= 0 {
			store(dst, (i/n*t+p)*row, x[i*row:][:row], c.op.Out[0].DType)
		}
	}
	return nil
}
