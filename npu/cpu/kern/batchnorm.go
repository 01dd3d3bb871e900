//go:build cgo && linux && (amd64 || arm64)

package kern

// #include "batchnorm.h"
//
// static int64_t kern_bn_workspace(int64_t n, int64_t c, int64_t hw, int64_t layout) {
//     kern_cmd cmd = {.n = {n, c, hw, layout}};
//     return bn_workspace(&cmd);
// }
import "C"

import "github.com/gotrain/gotrain/npu"

// setPast changes from how many bytes on forward writes past the caches, and returns what it was, for tests.
func setPast(bytes int64) int64 {
	was := int64(C.kern_bn_past)
	C.kern_bn_past = C.int64_t(bytes)
	return was
}

func init() {
	register(npu.BatchNorm, prepareBatchNorm)
	register(npu.BatchNormInfer, prepareBatchNormInfer)
	register(npu.BatchNormBwd, prepareBatchNormBwd)
}

// batchNorm makes the common part of the three Calls; acts are the large tensors, x first, and stats the per-channel vectors.
func batchNorm(kernel string, op npu.Op, acts, stats []npu.Desc) *Call {
	x := acts[0]
	dt, ok := act(x.DType)
	layout, hw, known := order(x)
	if !ok || !known || !alike(acts...) || !plainF32(stats...) {
		return nil
	}
	n, ch := int64(x.Shape[0]), int64(x.Shape[1])
	return &Call{
		kernel: kernel, dt: dt,
		n: []int64{n, ch, hw, int64(layout)}, f: []float64{op.Attrs.Float("eps", 1e-5), op.Attrs.Float("momentum", 0.1)},
		flags:     bit(op.Attrs.Bool("relu"), C.BN_RELU) | bit(op.Attrs.Bool("add"), C.BN_ADD) | bit(op.Attrs.Bool("sum"), C.BN_SUM),
		workspace: int64(C.kern_bn_workspace(C.int64_t(n), C.int64_t(ch), C.int64_t(hw), C.int64_t(layout))),
	}
}

func prepareBatchNorm(op npu.Op) *Call {
	acts := append([]npu.Desc{op.In[0], op.Out[0]}, op.In[5:]...)
	c := batchNorm("bn_fwd", op, acts, append(op.In[1:5:5], op.Out[1:]...))
	if c != nil {
		c.slots = []int{0, 1, 2, 3, 4}
		if len(op.In) > 5 {
			c.slots = append(c.slots, 5)
		}
		c.slots = append(c.slots, []int{6, 7, 8, 9, 10}[:len(op.Out)]...)
	}
	return c
}

func prepareBatchNormInfer(op npu.Op) *Call {
	c := batchNorm("bn_infer", op, append([]npu.Desc{op.In[0], op.Out[0]}, op.In[5:]...), op.In[1:5])
	if c != nil {
		c.slots = append([]int{0, 1, 2, 3, 4, 5}[:len(op.In)], 6)
	}
	return c
}

func prepareBatchNormBwd(op npu.Op) *Call {
	if len(op.Out) < 3 || op.Attrs.Bool("add") && len(op.Out) < 4 {
		return nil
	}
	acts := append([]npu.Desc{op.In[0], op.In[1], op.Out[0]}, op.In[6:]...)
	c := batchNorm("bn_bwd", op, append(acts, op.Out[3:]...), append(op.In[2:6:6], op.Out[1:3]...))
	if c == nil {
		return nil
	}
	c.slots = []int{0, 1, 2, 3, 4, 5}
	c.flags |= bit(op.Attrs.Bool("relu") && op.Attrs.Bool("own_y") && !op.Attrs.Bool("add"), C.BN_OWN)
	if op.Attrs.Bool("relu") {
		c.slots = append(c.slots, 6)
	}
	if op.Attrs.Bool("sum") {
		c.slots = append(c.slots, 7)
	}
	c.slots = append(c.slots, []int{8, 9, 10, 11}[:len(op.Out)]...)
	return c
}
