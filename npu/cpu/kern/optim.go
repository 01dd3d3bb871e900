//go:build cgo && linux && (amd64 || arm64)

package kern

// #include "flags.h"
import "C"

import "github.com/gotrain/gotrain/npu"

func init() {
	register(npu.SGD, func(op npu.Op) *Call {
		a := op.Attrs
		has := a.Bool("has_momentum")
		c := flatF32("sgd", op, bit(a.Bool("nesterov"), C.SGD_NESTEROV)|bit(a.Bool("decoupled"), C.SGD_DECOUPLED)|bit(has, C.SGD_MOMENTUM), op.In...)
		return c.places(map[bool][]int{false: {1}, true: {1, 3}}[has])
	})
	register(npu.AdamW, func(op npu.Op) *Call {
		return flatF32("adamw", op, bit(op.Attrs.Bool("coupled"), C.ADAM_COUPLED), op.In...).places([]int{1, 3, 4})
	})
	register(npu.LARS, func(op npu.Op) *Call {
		if op.In[4].DType != npu.F64 || op.In[5].DType != npu.F64 {
			return nil
		}
		return flatF32("lars", op, bit(op.Attrs.Bool("skip"), C.LARS_SKIP), op.In[:4]...).places([]int{1, 3})
	})
	register(npu.LAMBMoments, prepareLAMBMoments)
	register(npu.LAMB, func(op npu.Op) *Call {
		return flatF32("lamb", op, bit(op.Attrs.Bool("clip"), C.LAMB_CLIP), op.In[:4]...).places([]int{1})
	})
	register(npu.SumSq, prepareSumSq)
	register(npu.Scale, prepareScale)
	register(npu.EMA, func(op npu.Op) *Call { return flatF32("ema", op, 0, op.In...).places([]int{1}) })
}

// flatF32 is the Call of an optimizer: hyper first, then vectors of the length of op.In[1].
func flatF32(kernel string, op npu.Op, flags int, in ...npu.Desc) *Call {
	if !plainF32(in...) || !plainF32(op.Out...) {
		return nil
	}
	return &Call{kernel: kernel, flags: flags, n: []int64{op.In[1].Shape.Elems()}}
}

// places lists the inputs that the outputs share memory with: kinds.go defines them as in place, so the kernel uses the inputs only.
func (c *Call) places(inputs []int) *Call {
	if c != nil {
		c.inplace = inputs
	}
	return c
}

func prepareSumSq(op npu.Op) *Call {
	if !plainF32(op.In[0]) || op.Out[0].Layout != npu.Plain {
		return nil
	}
	n := op.In[0].Shape.Elems()
	c := &Call{kernel: "sumsq", n: []int64{n}, slots: []int{0, 1}, workspace: (n + 1023) / 1024 * 16}
	if len(op.In) == 2 {
		c.slots, c.inplace = []int{0, -1, 1}, []int{1}
	}
	return c
}

func prepareLAMBMoments(op npu.Op) *Call {
	if !plainF32(op.In...) || !plainF32(op.Out[1:]...) || op.Out[0].Layout != npu.Plain {
		return nil
	}
	n := op.In[1].Shape.Elems()
	return &Call{kernel: "lamb_moments", n: []int64{n}, slots: []int{0, 1, 2, 3, 4, 5, -1, -1}, inplace: []int{3, 4}, workspace: (n + 1023) / 1024 * 16}
}

func prepareScale(op npu.Op) *Call {
	if !plainF32(op.In...) || !plainF32(op.Out...) {
		return nil
	}
	return &Call{kernel: "scale", n: []int64{op.In[1].Shape.Elems()}}
}
