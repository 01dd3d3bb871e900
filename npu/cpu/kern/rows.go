//go:build cgo && linux && (amd64 || arm64)

package kern

// #include "flags.h"
import "C"

import "github.com/gotrain/gotrain/npu"

func init() {
	register(npu.Softmax, func(op npu.Op) *Call { return rowsCall("softmax", op, 0) })
	register(npu.LogSoftmax, func(op npu.Op) *Call { return rowsCall("softmax", op, C.ROWS_LOG) })
	register(npu.SoftmaxBwd, func(op npu.Op) *Call { return rowsCall("softmax_bwd", op, 0) })
	register(npu.LogSoftmaxBwd, func(op npu.Op) *Call { return rowsCall("softmax_bwd", op, C.ROWS_LOG) })
	register(npu.CrossEntropy, prepareCrossEntropy)
	register(npu.CrossEntropyBwd, prepareCrossEntropyBwd)
	register(npu.SoftCrossEntropy, prepareSoftCrossEntropy)
	register(npu.SoftCrossEntropyBwd, prepareSoftCrossEntropyBwd)
	register(npu.TopK, prepareTopK)
	register(npu.Dropout, prepareDropout)
}

func rowsCall(kernel string, op npu.Op, flags int) *Call {
	x := op.In[0]
	dt, ok := act(x.DType)
	m := int64(x.Shape[len(x.Shape)-1])
	if !ok || x.Layout != npu.Plain || !alike(args(op)...) || m == 0 {
		return nil
	}
	return &Call{kernel: kernel, dt: dt, flags: flags, n: []int64{x.Shape.Elems() / m, m}}
}

// classes is the Call of an op on logits and labels, with a float64 of workspace per row.
func classes(kernel string, op npu.Op, rest ...npu.Desc) *Call {
	x, labels := op.In[0], op.In[1]
	dt, ok := act(x.DType)
	if !ok || x.Layout != npu.Plain || labels.Layout != npu.Plain || !plainF32(rest...) || x.Shape[1] == 0 {
		return nil
	}
	return &Call{
		kernel: kernel, dt: dt, n: []int64{int64(x.Shape[0]), int64(x.Shape[1]), int64(op.Attrs.Int("ignore_index", -100)), int64(op.Attrs.Int("k", 1))},
		f: []float64{op.Attrs.Float("smoothing", 0)}, workspace: int64(x.Shape[0]) * 8,
	}
}

func prepareCrossEntropy(op npu.Op) *Call { return classes("cross_entropy", op, op.Out...) }

func prepareCrossEntropyBwd(op npu.Op) *Call {
	if !alike(op.In[0], op.Out[0]) {
		return nil
	}
	return classes("cross_entropy_bwd", op, op.In[2:]...)
}

func prepareSoftCrossEntropy(op npu.Op) *Call {
	x := op.In[0]
	dt, ok := act(x.DType)
	if !ok || x.Layout != npu.Plain || !plainF32(op.In[1]) || !plainF32(op.Out...) || x.Shape[1] == 0 {
		return nil
	}
	return &Call{kernel: "soft_ce", dt: dt, n: []int64{int64(x.Shape[0]), int64(x.Shape[1])}, workspace: int64(x.Shape[0]) * 16}
}

func prepareSoftCrossEntropyBwd(op npu.Op) *Call {
	x := op.In[0]
	dt, ok := act(x.DType)
	if !ok || x.Layout != npu.Plain || !alike(x, op.Out[0]) || !plainF32(op.In[1:]...) {
		return nil
	}
	return &Call{kernel: "soft_ce_bwd", dt: dt, n: []int64{int64(x.Shape[0]), int64(x.Shape[1])}}
}

func prepareTopK(op npu.Op) *Call { return classes("topk", op, op.Out...) }

func prepareDropout(op npu.Op) *Call {
	x := op.In[0]
	dt, ok := act(x.DType)
	if !ok || !alike(x, op.Out[0]) {
		return nil
	}
	row := int64(0)
	if op.Attrs.Bool("rows") { // which are the outermost axis of all layouts
		if !flat(x) {
			return nil
		}
		row = x.Shape.Elems() / int64(max(x.Shape[0], 1))
	} else if x.Layout != npu.Plain {
		return nil
	}
	return &Call{kernel: "dropout", dt: dt, n: []int64{x.Shape.Elems(), int64(op.Attrs.Int("id", 0)), row}, f: []float64{op.Attrs.Float("p", 0)}}
}
